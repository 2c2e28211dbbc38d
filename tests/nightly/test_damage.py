"""Saved mechanisms and ledgers that are damaged, and records that are forged with a right digest.

Each file is read as a user would read it: it must be refused in words, or equal the saved one, or still be a mechanism
that code apart from the package's own proves private for the epsilon it states.
"""

import copy
import json
import random
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

pytestmark = pytest.mark.nightly

REFUSED, RIGHT, PROVEN, WRONG, CHANGED = "refused", "as saved", "proven private", "ACCEPTED", "read as it is"
ACCEPTABLE = (REFUSED, RIGHT, PROVEN, CHANGED)
EPSILON = 0.75


def damaged(content, rng):
    """Content that was cut, overwritten, extended, or of which bits have flipped, and never as it was."""
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
    return PROVEN if verdict["private"] and verdict["totals"] else WRONG


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


def _record_forger(folder, rng):
    path = folder / "out.release.json"
    values = np.random.default_rng(0).integers(0, 4, 5000).astype(np.float64)
    optrand.randomize(values, EPSILON, labels=range(4)).record.save(path)
    right = json.loads(path.read_bytes())

    def forge():
        """A total, or parts, smaller than the spent epsilon, or a mechanism with another weight."""
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


def test_records_that_are_forged_with_a_right_digest_are_refused_or_state_no_less(tmp_path, record_property):
    forge = _record_forger(tmp_path, random.Random(4))
    check(Counter(forge() for _ in range(200)), record_property, "forged records")
