"""The package broken in ways that are written down, one at a time: the claims and the unit tests that notice.

A mutation is one edit of one file (:mod:`benchmarks.mutants`), made in a copy of package and tests. There
``optrand theory --budget quick`` tries the claims that speak of the broken piece, and the named test files run up to
their first failure, both in processes of their own. A claim notices by another verdict than it has of the package as
it is, or by a check that breaks off or sees nothing; a test notices by failing where it else passes. What does not end
has noticed nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.harness import ONE_THREAD, circumstances, duration, options, print_table, write_json
from benchmarks.mutants import MUTATIONS, SMOKE, Mutation

__all__ = ["ROOT", "Bench", "Trial", "failures", "misplaced", "mutated"]

ROOT = Path(__file__).resolve().parents[1]

COPIED = ("optrand", "benchmarks", "tests", "pyproject.toml")
IGNORED = shutil.ignore_patterns("results", ".hypothesis", "images")

AT_A_TIME = 2

USAGE_ERROR = 4
"""Exit code of pytest, where a file or a test is not there."""

COLUMNS = ("mutation", "claims that notice", "time", "first test that notices")


@dataclass(frozen=True)
class Trial:
    """A mutation that was tried.

    Attributes
    ----------
    name, file, old, new : str
        The edit.
    noticed : dict of str to str
        The verdicts of claims that notice, by their names, those that should among them.
    unnoticed : tuple of str
        Claims that should notice, and do not.
    test : str
        The first test that notices; empty if none does.
    seconds : float
    """

    name: str
    file: str
    old: str
    new: str
    noticed: dict[str, str]
    unnoticed: tuple[str, ...]
    test: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every claim that should and at least one test notice."""
        return bool(self.test) and not self.unnoticed


def misplaced(mutation: Mutation, root: Path = ROOT) -> str:
    """Reason why a mutation cannot be made: its file is gone, or its text is not there exactly once; else empty."""
    path = root / "optrand" / mutation.file
    if not path.is_file():
        return f"{mutation.name}: there is no file optrand/{mutation.file}"
    times = path.read_text(encoding="utf-8").count(mutation.old)
    return "" if times == 1 else f"{mutation.name}: its text is {times} times in optrand/{mutation.file}, expected once"


@contextmanager
def mutated(mutation: Mutation | None) -> Iterator[Path]:
    """A folder with a copy of package and tests, with the edit of a mutation if there is one, until it is left."""
    with tempfile.TemporaryDirectory(prefix="optrand-mutation-") as name:
        folder = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, folder / part, ignore=IGNORED)
            else:
                shutil.copy2(ROOT / part, folder / part)
        if mutation is not None:
            path = folder / "optrand" / mutation.file
            path.write_text(path.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
        yield folder


def run(folder: Path, arguments: Sequence[str], limit: float) -> tuple[str, int | None]:
    """Printed lines of ``python -m ...`` on a copy, and its exit code; None if it was ended at the limit."""
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(folder), "NO_COLOR": "1"}
    command = [sys.executable, "-m", *arguments]
    output = folder / "output.txt"
    with output.open("w", encoding="utf-8") as stream:
        try:
            code = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdout=stream,
                stderr=subprocess.DEVNULL,
                timeout=limit,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
    return output.read_text(encoding="utf-8"), code


def verdicts(folder: Path, claims: Collection[str], limit: float) -> dict[str, str]:
    """Verdicts of a copy on claims, by their names; all claims if none is named."""
    printed, _ = run(folder, ["benchmarks.verdicts", *claims], limit)
    return dict(json.loads(line) for line in printed.splitlines() if line.startswith("["))


def failures(folder: Path, tests: Iterable[str], limit: float, *, first: bool = True) -> list[str]:
    """Names of tests of a copy that fail, of files or tests under ``tests/``: the first one, or all."""
    chosen = [f"tests/{test}" for test in tests]
    printed, code = run(folder, ["pytest", *["-x"] * first, "-q", "-p", "no:cacheprovider", "--tb=no", *chosen], limit)
    if code == USAGE_ERROR:
        raise ValueError(f"pytest does not find all of {', '.join(chosen)}")
    return re.findall(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", printed, re.MULTILINE)


@dataclass(frozen=True)
class Bench:
    """What mutations are tried against: the verdicts of the package as it is, all of them or not, and a time limit."""

    expected: Mapping[str, str]
    all_claims: bool
    limit: float

    def tried(self, mutation: Mutation) -> Trial:
        """Make a mutation, and look which claims notice, and which test first."""
        start = time.perf_counter()
        with mutated(mutation) as folder:
            asked = () if self.all_claims else mutation.claims
            found = verdicts(folder, asked, self.limit) if self.all_claims or asked else {}
            test = next(iter(failures(folder, mutation.tests, self.limit)), "")
        noticed = {claim: verdict for claim, verdict in found.items() if verdict != self.expected[claim]}
        unnoticed = tuple(claim for claim in mutation.claims if claim not in noticed)
        edit = mutation.name, mutation.file, mutation.old, mutation.new
        return Trial(*edit, noticed, unnoticed, test, time.perf_counter() - start)


def row(mutation: Mutation, trial: Trial) -> list[str]:
    """A row of the table."""
    share = f"{len(mutation.claims) - len(trial.unnoticed)} of {len(mutation.claims)}" if mutation.claims else "-"
    missing = [f"NOT NOTICED by {claim}" for claim in trial.unnoticed]
    return [trial.name, share, duration(trial.seconds), "\n".join((*missing, trial.test or "NOT NOTICED by a test"))]


def main(arguments: Sequence[str]) -> int:
    """Try every mutation, print the table, and return 1 if one cannot be made or is not noticed as it should be."""
    parser = options("mutations", __doc__)
    parser.add_argument("--all-claims", action="store_true", help="try all claims, not those alone that should notice")
    parser.add_argument("--only", metavar="WORDS", default="", help="only mutations with these words in their names")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for the claims, and for the tests, of each")
    given = parser.parse_args(arguments)
    chosen = [each for each in (SMOKE if given.smoke else MUTATIONS) if given.only in each.name]
    reasons = [reason for mutation in chosen if (reason := misplaced(mutation))]
    if reasons:
        return refused("\n".join(reasons))
    with mutated(None) as folder:
        named = dict.fromkeys(claim for mutation in chosen for claim in mutation.claims)
        expected = verdicts(folder, () if given.all_claims else named, given.limit) if given.all_claims or named else {}
        unknown = [claim for claim in named if claim not in expected]
        if unknown:
            return refused(f"no verdict on {', '.join(unknown)}: look for them in optrand theory --list")
        bench = Bench(expected, given.all_claims, given.limit)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            trials = list(pool.map(partial(shown, bench), chosen))
        # A test that fails without any mutation says nothing of one.
        tests = dict.fromkeys(trial.test for trial in trials if trial.test)
        always = failures(folder, tests, AT_A_TIME * given.limit, first=False) if tests else []
    trials = [replace(trial, test="") if trial.test in always else trial for trial in trials]
    passed = sum(trial.passed for trial in trials)
    rows = [row(mutation, trial) for mutation, trial in zip(chosen, trials, strict=True)]
    title = f"{len(trials)} mutations, {passed} noticed by every claim that should and by a test"
    print_table(f"{title}\n{circumstances()}", COLUMNS, rows)
    write_json(given.results, "mutations-smoke" if given.smoke else "mutations", [asdict(trial) for trial in trials])
    return 0 if passed == len(trials) else 1


def refused(reason: str) -> int:
    """Say why nothing is tried."""
    print(reason, file=sys.stderr)
    return 1


def shown(bench: Bench, mutation: Mutation) -> Trial:
    """Try a mutation, and say so on the error stream: the whole takes some time."""
    trial = bench.tried(mutation)
    print(f"{'noticed' if trial.passed else 'NOT NOTICED'}: {trial.name}", file=sys.stderr, flush=True)
    return trial
