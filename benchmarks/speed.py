"""How long the best randomizers take: every row with a limit, a median time, and the proof that makes it count.

The clock runs over `solve` and `certify`. The gap of the mechanism must be within 1e-9 (1e-8 from epsilon 6 on),
relative. The processor's time stands beside the clock's: if it is much
less, the machine had other things to do. Rows with a memory limit run in a fresh process each, and their peak is that
of the whole process. A missed limit is named and fails nothing: machines differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Case, Clock, Method, Row, Table, compare, solve_and_certify
from benchmarks.priors import posed
from optrand.model.problem import Problem

PENALTIES = np.concatenate(([0.0], np.geomspace(1e-3, 1e5, 23), [math.inf]))
TINY = (posed("weeks", 5, 1.0), posed("weeks", 5, 1.0, mesh=9), posed("weeks", 5, 1.0, penalty=1.0))
COLUMNS = {
    "what": "what",
    "prior": "prior",
    "epsilon": "epsilon:g",
    "at most": "most:time",
    "median": "seconds:time",
    "processor": "processor:time",
    "runs": "runs",
    "outputs": "outputs",
    "peak MB": "megabytes:.0f",
    "exact gap": "exact_gap:.1e",
    "limits": "limits",
    "verdict": "verdict",
}


def case(what: str, prior: str, problems: tuple[Problem, ...], seconds: float, megabytes: float = math.inf) -> Case:
    """Make a row of problems to solve one after the other, with its limits."""
    key = {"what": what, "prior": prior, "epsilon": problems[0].epsilon, "most": seconds, "most_megabytes": megabytes}
    return Case(key, problems, TINY, fresh=math.isfinite(megabytes))


def cases() -> Iterator[Case]:
    """List the rows, small problems first."""
    for prior in ("weeks", "Dirichlet", "exponential", "spike"):
        yield case("k = 53, line", prior, (posed(prior, 53, 1.0),), 0.03)
    for mesh in (52, 416, 1_664, 10_000):
        yield case(f"k = 53, mesh {mesh:,}", "weeks", (posed("weeks", 53, 1.0, mesh=mesh),), 0.1)
    for epsilon, limit in ((0.1, 0.4), (1.0, 0.4), (4.0, 1.0), (8.0, 1.5)):
        for prior in ("Dirichlet", "exponential", "spike", "revenue"):
            yield case("k = 401, line", prior, (posed(prior, 401, epsilon),), limit)
    yield case("k = 53, 25 penalties", "weeks", tuple(posed("weeks", 53, 1.0, penalty=x) for x in PENALTIES), 1.0)
    for k, limit in ((401, 0.05), (4_001, 3.0)):
        for prior in ("Dirichlet", "exponential", "log-normal"):
            yield case(f"k = {k:,}, RR-on-Bins", prior, (posed(prior, k, 1.0, penalty=0.0),), limit)
    yield case("k = 100,000, gap and bit", "Dirichlet", (posed("Dirichlet", 100_000, 0.5),), 5.0)
    for k, limit, megabytes in ((1_001, 1.2, math.inf), (4_001, 6.0, 500.0), (10_001, 30.0, 1000.0)):
        for prior in ("Dirichlet", "exponential", "log-normal"):
            yield case(f"k = {k:,}, line", prior, (posed(prior, k, 1.0),), limit, megabytes)


def small_cases() -> Iterator[Case]:
    """List a small row of each kind."""
    yield case("k = 12, line", "weeks", (posed("weeks", 12, 1.0),), 1.0)
    yield case("k = 12, mesh 24", "weeks", (posed("weeks", 12, 1.0, mesh=24),), 1.0)
    yield case("k = 12, penalties", "weeks", tuple(posed("weeks", 12, 1.0, penalty=x) for x in PENALTIES[::8]), 1.0)
    yield case("k = 12, RR-on-Bins", "Dirichlet", (posed("Dirichlet", 12, 1.0, penalty=0.0),), 1.0, 1e4)


def measure(given: Any) -> Iterator[Row]:
    """Solve the rows whose name holds a word, and compare with the limits."""
    chosen = [one for one in (small_cases() if given.smoke else cases()) if given.only in one.key["what"]]
    for row in compare(chosen, [Method("optrand", solve_and_certify)], Clock(given.limit, patience=120.0)):
        slow = row["seconds"] is not None and row["seconds"] > row["most"]
        missed = ["too slow"] * slow + ["too much memory"] * (row.get("megabytes", 0.0) > row["most_megabytes"])
        yield row | {"limits": ", ".join(missed) or "kept"}


main = Benchmark(
    "speed",
    __doc__,
    measure,
    (Table("Solving and proving", "what", COLUMNS),),
    limit=120.0,
    arguments=lambda parser: parser.add_argument("--only", default="", help="only rows whose name holds this"),
    one_core=False,
).run
