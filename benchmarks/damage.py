"""Saved mechanisms, keys, ledgers and records that were damaged at random, or forged with a right digest.

Each is read as a user would read it: it must be refused in words, or be what was saved, or still be a mechanism that
code apart from the package's own proves private for the epsilon it states.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exactness import verified
from optrand import Interval, checker, classification, regression, solve, tabulate, unbiased_regression
from optrand.accounting import Entry, Ledger, Request, Spent, Vault
from optrand.base import strict_json
from optrand.errors import AlreadySpent, InvalidFile, OptrandError
from optrand.mechanism.mechanism import load
from optrand.release.circumstances import Circumstances, RandomizerFile
from optrand.release.job import LabelJob
from optrand.release.record import ReleaseRecord, load_release, sha256_of

__all__ = ["ACCEPTABLE", "damaged", "damaged_keys", "damaged_ledgers", "damaged_mechanisms", "forged_files"]

REFUSED, RIGHT, PROVEN, WRONG = "refused", "as saved", "proven private", "ACCEPTED"
ACCEPTABLE = (REFUSED, RIGHT, PROVEN)
NUMBERS: tuple[object, ...] = (
    0.0,
    -1.0,
    0.5,
    1.0,
    2.0,
    5e-324,
    1e300,
    700.0,
    True,
    None,
    "0",
    "1",
    "9" * 50,
    "1/0",
    [],
    {},
)
EPSILON = 0.75


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Content that was cut, overwritten, extended, or of which bits have flipped; never as it was.

    Examples
    --------
    >>> rng = random.Random(1)
    >>> all(damaged(b"saved", rng) != b"saved" for _ in range(100))
    True
    """
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


def damaged_mechanisms(folder: Path, times: int) -> Counter[str]:
    """Verdicts on mechanisms damaged at random."""
    rng, path, saved = random.Random(1), folder / "mechanism.json", list(_mechanisms(folder))
    seen: Counter[str] = Counter()
    for _ in range(times):
        path.write_bytes(damaged(rng.choice(saved), rng))
        seen[_of_mechanism(path)] += 1
    return seen


def _mechanisms(folder: Path) -> Iterator[bytes]:
    """Files of mechanisms of every kind: arcs and tables, with and without bias, classes."""
    labels, prior = [0.0, 1.0, 2.5, 7.0], [0.5, 0.25, 0.125, 0.125]
    for problem in (
        unbiased_regression(labels, prior, EPSILON),
        regression(labels, prior, EPSILON, bias_penalty=0.5, outputs=Interval(-9, 19)),
        regression(labels, prior, EPSILON, outputs=[0.5, 1.0, 4.0]),
        classification(prior, EPSILON),
    ):
        path = folder / "saved.json"
        tabulate(solve(problem)).save(path, overwrite=True)
        yield path.read_bytes()


def _of_mechanism(path: Path) -> str:
    try:
        mechanism = load(path)
    except InvalidFile:
        return REFUSED
    try:
        checker.check(path.read_text())
    except checker.Refused:
        return f"{WRONG} by one reader alone"
    verdict = verified(mechanism)
    return PROVEN if verdict.private and verdict.totals else WRONG


def damaged_keys(folder: Path, times: int) -> Counter[str]:
    """Verdicts on keys, and on the secret that seals them, damaged at random."""
    rng, place = random.Random(2), folder / "vault"
    vault = Vault(place)
    release = "00000000-0000-4000-8000-000000000000"
    key, secret = vault.new_key(release), vault.secret
    files = {path: path.read_bytes() for path in place.iterdir() if path.suffix in (".key", ".secret")}
    seen: Counter[str] = Counter()
    for _ in range(times):
        victim = rng.choice(sorted(files))
        victim.write_bytes(damaged(files[victim], rng))
        try:
            read = Vault(place)
            seen[RIGHT if read.key(release) == key and read.secret == secret else WRONG] += 1
        except InvalidFile:
            seen[REFUSED] += 1
        victim.write_bytes(files[victim])
    return seen


def damaged_ledgers(folder: Path, times: int) -> Counter[str]:
    """Verdicts on ledgers damaged at random, with a finished release and one under way."""
    rng, place = random.Random(3), folder / "ledger"
    path, right = _ledger(place)
    content, seen, here = path.read_bytes(), Counter[str](), folder / "damaged"
    for _ in range(times):
        shutil.copytree(place, here)
        (here / path.name).write_bytes(damaged(content, rng))
        seen[_of_ledger(here / path.name, right)] += 1
        shutil.rmtree(here)
    return seen


def _request(column: str) -> Request:
    return Request("census", column, {"labels": Spent(Fraction(1))}, "0" * 64, "1" * 64, "out.csv")


def _ledger(place: Path) -> tuple[Path, Any]:
    place.mkdir(mode=0o700)
    path = place / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        with ledger.begin(_request("weeks")) as entry:
            entry.keep_mechanism("2" * 64)
            entry.complete()
        with ledger.begin(_request("income")) as entry:
            entry.keep_prior((entry.key[0], *range(50)))
    with Ledger.open(path) as ledger:
        return path, ledger.entries()


def _of_ledger(path: Path, right: object) -> str:
    """The verdict on a ledger; one that opens must hold the right lines and charge on."""

    def begun(ledger: Ledger, column: str) -> Entry | None:
        try:
            return ledger.begin(_request(column))
        except AlreadySpent:
            return None

    try:
        with Ledger.open(path) as ledger:
            entries = ledger.entries()
            if entries != right or begun(ledger, "weeks") is not None:
                return WRONG
            resumed = begun(ledger, "income")
            if resumed is None or resumed.prior is None or resumed.prior[0] != resumed.key[0]:
                return WRONG
            resumed.close()
            return RIGHT
    except (OptrandError, OSError):
        return REFUSED


def forged_files(folder: Path, times: int) -> Counter[str]:
    """Verdicts on mechanisms, records and lines of ledgers that were edited and sealed again with a right digest."""
    rng = random.Random(4)
    makers: tuple[Callable[[], str], ...] = (
        _mechanism_forger(folder, rng),
        _mechanism_forger(folder, rng),
        _record_forger(folder, rng),
        _ledger_forger(folder, rng),
    )
    return Counter(makers[number % len(makers)]() for number in range(times))


def _mechanism_forger(folder: Path, rng: random.Random) -> Callable[[], str]:
    saved, path = [json.loads(content) for content in _mechanisms(folder)], folder / "forged.json"

    def forge() -> str:
        document = copy.deepcopy(rng.choice(saved))
        *parents, last = rng.choice([place for place in _places(document) if place and place[0] != "digest"])
        target = document
        for name in parents:
            target = target[name]
        target[last] = _edited(target[last], rng)
        path.write_text(json.dumps({**document, "digest": strict_json.digest(document)}))
        return _of_mechanism(path)

    return forge


def _places(content: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in items:
        yield from _places(value, (*path, name))


def _edited(value: object, rng: random.Random) -> object:
    """Another value, a little larger or smaller where it is a number."""
    if isinstance(value, str) and value.isdigit() and rng.random() < 0.7:
        return str(int(value) + rng.choice([-1, 1]))
    if isinstance(value, float) and rng.random() < 0.7:
        return rng.choice([value * (1 + 2**-52), value / 3, value * 2, value + 1, -value - 1])
    return rng.choice([other for other in NUMBERS if other != value])


def _record_forger(folder: Path, rng: random.Random) -> Callable[[], str]:
    place = folder / "record"
    place.mkdir()
    values = np.random.default_rng(0).integers(0, 4, 5000).astype(np.float64)
    release = LabelJob(labels=np.arange(4.0), epsilon=EPSILON).run(values)
    beside, path = place / "out.csv.mechanism.json", place / "out.csv.release.json"
    release.save(beside)
    circumstances = Circumstances(column="weeks", task="regression")
    ReleaseRecord.of(
        release, circumstances, table=None, randomizers=(RandomizerFile(beside.name, sha256_of(beside)),)
    ).save(path)
    right: dict[str, Any] = json.loads(path.read_bytes())

    def forge() -> str:
        """A total, or parts, that are smaller than what was spent; or another mechanism's digest."""
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
            document["randomizers"][0]["sha256"] = rng.randbytes(32).hex()
        path.write_text(json.dumps({**document, "digest": strict_json.digest(document)}))
        try:
            record = load_release(path)
            _ = record.drawn
        except InvalidFile:
            return REFUSED
        return PROVEN if record.epsilon >= EPSILON else WRONG

    return forge


def _ledger_forger(folder: Path, rng: random.Random) -> Callable[[], str]:
    place, here = folder / "forged ledger", folder / "forged here"
    path, right = _ledger(place)

    def forge() -> str:
        """A line with another epsilon, name or state, whose own digest is right; or lines that changed places."""
        shutil.copytree(place, here)
        charge = right[rng.randrange(2)]
        parts = {"labels": Spent(Fraction(1, rng.randrange(2, 1000)))}
        other = rng.choice(
            [
                replace(charge, parts=parts),
                replace(charge, column=f"another {rng.random()}"),
                replace(charge, state=rng.choice([state for state in type(charge.state) if state != charge.state])),
                right[1] if charge == right[0] else right[0],
            ]
        )
        with sqlite3.connect(here / path.name) as connection:
            connection.execute(
                "UPDATE charges SET content = ? WHERE sequence = ?", (other.content(), 1 + right.index(charge))
            )
        connection.close()
        verdict = _of_ledger(here / path.name, right)
        shutil.rmtree(here)
        return verdict

    return forge
