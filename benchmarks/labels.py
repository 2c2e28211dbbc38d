"""How time and memory grow with the number of labels: the optimal unbiased randomizer of 11 to 100,001 labels.

Each number of labels is solved in a fresh process, at epsilon 1 on the real line, for a rough and for a smooth prior;
the clock runs over `solve` and `certify`, and the exact mechanism is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness import Benchmark, Case, Clock, Method, Row, compare, solve_and_certify
from benchmarks.priors import posed

SIZES, SMALL_SIZES = (11, 21, 53, 101, 201, 401, 701, 1_001, 2_001, 4_001, 10_001, 40_001, 100_001), (6, 11, 16)


def records(prior: str, sizes: Sequence[int], limit: float) -> Iterator[Row]:
    """Solve each number of labels in a fresh process."""
    cases = (
        Case({"prior": prior, "k": k, "epsilon": 1.0}, (posed(prior, k, 1.0),), (posed(prior, 5, 1.0),), fresh=True)
        for k in sizes
    )
    yield from compare(cases, [Method("optrand", solve_and_certify)], Clock(limit, patience=20.0))


def measure(given: Any) -> Iterator[Row]:
    """Solve every size for each prior."""
    for prior in ("Dirichlet",) if given.smoke else ("Dirichlet", "exponential"):
        yield from records(prior, SMALL_SIZES if given.smoke else SIZES, given.limit)


TABLES = {
    "Time and memory against the number of labels": "k prior seconds runs outputs megabytes exact_gap verdict",
}
main = Benchmark("labels", __doc__, measure, TABLES, limit=120.0, one_core=False).run
