"""Saved mechanisms, keys, ledgers and records that are damaged or forged with a right digest; shared random words.

Each file is read as a user would read it: it must be refused in words, or be what was saved, or still be a mechanism
that code apart from the package's own proves private for the epsilon it states.
"""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import optrand
from benchmarks.exactness import verify
from optrand import Interval, checker, classification, regression, solve, unbiased_regression
from optrand.accounting import Charge, Ledger
from optrand.base import _strict_json
from optrand.errors import InvalidFile, OptrandError
from optrand.programs._mechanism import load
from optrand.release import load_release
from optrand.sampling._entropy import SystemEntropy
from optrand.sampling._keyed import KEY_BYTES, KeyedEntropy

pytestmark = pytest.mark.nightly

REFUSED, RIGHT, PROVEN, WRONG, CHANGED = "refused", "as saved", "proven private", "ACCEPTED", "read as it is"
ACCEPTABLE = (REFUSED, RIGHT, PROVEN, CHANGED)
NUMBERS = (0.0, -1.0, 0.5, 1.0, 2.0, 5e-324, 1e300, 700.0, True, None, "0", "1", "9" * 50, "1/0", [], {})
EPSILON = 0.75


def damaged(content, rng):
    """Content that was cut, overwritten, extended, or of which bits have flipped; never as it was."""
    found = bytearray(content)
    while found == content:
        kind, at = rng.randrange(5), rng.randrange(len(content))
        if kind == 0:
            del found[at:]
        elif kind == 1:
            size = rng.randrange(1, 600)
            found[at : at + size] = rng.randbytes(min(size, len(content) - at))
        elif kind == 2:
            found[at:at] = rng.randbytes(rng.randrange(1, 20))
        else:
            for _ in range(rng.choice([1, 1, 1, 3, 50])):
                found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def damaged_mechanisms(folder, times):
    """Verdicts on mechanisms damaged at random."""
    rng, path, saved = random.Random(1), folder / "mechanism.json", list(_mechanisms(folder))
    seen = Counter()
    for _ in range(times):
        path.write_bytes(damaged(rng.choice(saved), rng))
        seen[_of_mechanism(path)] += 1
    return seen


def _mechanisms(folder):
    """Files of mechanisms of every kind: arcs and tables, with and without bias, classes."""
    labels, prior = [0.0, 1.0, 2.5, 7.0], [0.5, 0.25, 0.125, 0.125]
    for problem in (
        unbiased_regression(labels, prior, EPSILON),
        regression(labels, prior, EPSILON, bias_penalty=0.5, outputs=Interval(-9, 19)),
        regression(labels, prior, EPSILON, outputs=[0.5, 1.0, 4.0]),
        classification(prior, EPSILON),
    ):
        path = folder / "saved.json"
        solve(problem).save(path, overwrite=True)
        yield path.read_bytes()


def _of_mechanism(path):
    try:
        mechanism = load(path)
    except InvalidFile:
        return REFUSED
    try:
        checker.check(path.read_text())
    except checker.Refused:
        return f"{WRONG} by one reader alone"
    verdict = verify(mechanism)
    return PROVEN if verdict.private and verdict.totals else WRONG


def damaged_ledgers(folder, times):
    """Verdicts on ledgers damaged at random, with a finished release and one under way."""
    rng, path, here = random.Random(3), folder / "ledger.sqlite", folder / "damaged.sqlite"
    ledger = Ledger(path)
    ledger.complete(ledger.begin([_charge("weeks")]))
    ledger.begin([_charge("income")])
    content, right, seen = path.read_bytes(), ledger.entries(), Counter()
    for _ in range(times):
        here.write_bytes(damaged(content, rng))
        here.chmod(0o600)
        seen[_of_ledger(here, right)] += 1
        for left in folder.glob("damaged.sqlite*"):
            left.unlink()
    return seen


def _charge(column):
    return Charge(
        dataset="census",
        column=column,
        epsilon=Fraction(1),
        prior_epsilon=Fraction(0),
        question="q",
        input="i",
        output="o",
    )


def _of_ledger(path, right):
    """The verdict on a ledger, whose lines nothing seals: SQLite sees damage of a page, not within a cell."""
    try:
        entries = Ledger(path).entries()
        return RIGHT if entries == right else CHANGED
    except (OptrandError, OSError, ValueError):
        return REFUSED


def _mechanism_forger(folder, rng):
    saved, path = [json.loads(content) for content in _mechanisms(folder)], folder / "forged.json"

    def forge():
        document = copy.deepcopy(rng.choice(saved))
        *parents, last = rng.choice([place for place in _places(document) if place and place[0] != "digest"])
        target = document
        for name in parents:
            target = target[name]
        target[last] = _edited(target[last], rng)
        path.write_text(json.dumps({**document, "digest": _strict_json.digest(document)}))
        return _of_mechanism(path)

    return forge


def _places(content, path=()):
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in items:
        yield from _places(value, (*path, name))


def _edited(value, rng):
    """Another value, a little larger or smaller where it is a number."""
    if isinstance(value, str) and value.isdigit() and rng.random() < 0.7:
        return str(int(value) + rng.choice([-1, 1]))
    if isinstance(value, float) and rng.random() < 0.7:
        return rng.choice([value * (1 + 2**-52), value / 3, value * 2, value + 1, -value - 1])
    return rng.choice([other for other in NUMBERS if other != value])


def _record_forger(folder, rng):
    path = folder / "out.release.json"
    values = np.random.default_rng(0).integers(0, 4, 5000).astype(np.float64)
    optrand.randomize(values, EPSILON, labels=range(4)).record.save(path)
    right = json.loads(path.read_bytes())

    def forge():
        """A total, or parts, that are smaller than what was spent; or a mechanism with another weight."""
        document, share = copy.deepcopy(right), rng.uniform(0, 0.999)
        kind = rng.randrange(4)
        if kind == 0:
            document["epsilon"] *= share
        elif kind == 1:
            document["parts"]["labels"] *= share
        elif kind == 2:
            document["parts"]["labels"] *= share
            document["epsilon"] = document["parts"]["labels"] + document["parts"]["prior"]
        else:
            step = document["mechanisms"][0]["columns"][0][0]
            step[1] = str(int(step[1]) + 1)
        path.write_text(json.dumps({**document, "digest": _strict_json.digest(document)}))
        try:
            record = load_release(path)
        except InvalidFile:
            return REFUSED
        return PROVEN if record.epsilon >= EPSILON else WRONG

    return forge


def check(seen, record_property, name):
    """Fail unless every file was refused, as saved or proven private."""
    record_property(name, dict(seen))
    assert set(seen) <= set(ACCEPTABLE)
    assert seen[REFUSED] > 0


@pytest.mark.parametrize(("damage", "times"), [(damaged_mechanisms, 12_000), (damaged_ledgers, 1_000)])
def test_damaged_files_are_refused_or_as_saved(damage, times, tmp_path, record_property):
    check(damage(tmp_path, times), record_property, damage.__name__)


@pytest.mark.parametrize("forger", [_mechanism_forger, _record_forger])
def test_files_that_are_forged_with_a_right_digest_are_refused_or_private(forger, tmp_path, record_property):
    forge = forger(tmp_path, random.Random(4))
    check(Counter(forge() for _ in range(200)), record_property, forger.__name__)


WORDS, WORKERS, KEY = 4096, 64, bytes(range(KEY_BYTES))
"""Words have 64 bits, so that among the half million that are drawn two are equal by chance once in 10**8 runs."""

FORKED = """
import os, sys
import numpy as np
from optrand.errors import InvalidInput
from optrand.sampling._entropy import SystemEntropy
from optrand.sampling._keyed import KeyedEntropy, RecordStreams
words, workers, key = 4096, int(sys.argv[1]), bytes(range(32))
system, counter, streams = SystemEntropy(), KeyedEntropy(key), RecordStreams(key)
system.words(3), counter.words(3)  # A buffer, if there is one, is full.
for place in range(workers):
    reading, writing = os.pipe()
    if os.fork() == 0:
        ids = np.zeros((words, 2), dtype=np.uint64)
        ids[:, 0] = np.arange(place * words, (place + 1) * words)
        try:
            counter.words(1)
            refused = 0
        except InvalidInput:
            refused = 1
        drawn = [system.words(words), streams.first_words(ids), np.array([refused], dtype=np.uint64)]
        with os.fdopen(writing, "wb") as stream:
            stream.write(np.concatenate(drawn).astype(np.uint64).tobytes())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        sys.stdout.buffer.write(stream.read())
    os.wait()
"""


def test_forked_workers_share_no_word_and_none_goes_on_with_the_counter_of_its_parent():
    """Forked from a process without threads."""
    run = subprocess.run([sys.executable, "-c", FORKED, str(WORKERS)], capture_output=True, check=True)
    drawn = np.frombuffer(run.stdout, dtype=np.uint64).reshape(WORKERS, 2 * WORDS + 1)
    for words in (drawn[:, :WORDS], drawn[:, WORDS:-1]):
        assert np.unique(words).size == words.size
    assert drawn[:, -1].all()


def test_threads_share_no_word_and_lose_none_of_the_keyed_stream():
    keyed, system = KeyedEntropy(KEY), SystemEntropy()
    drawn, together = [[] for _ in range(WORKERS)], threading.Barrier(WORKERS)

    def draw(place):
        together.wait()
        for _ in range(16):
            drawn[place] += [keyed.words(WORDS // 16), system.words(WORDS // 16)]

    running = [threading.Thread(target=draw, args=(place,)) for place in range(WORKERS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    of_the_key = np.concatenate([words for each in drawn for words in each[::2]])
    of_the_system = np.concatenate([words for each in drawn for words in each[1::2]])
    assert np.unique(of_the_system).size == of_the_system.size
    assert np.array_equal(np.sort(of_the_key), np.sort(KeyedEntropy(KEY).words(of_the_key.size)))
