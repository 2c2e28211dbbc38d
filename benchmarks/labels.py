"""How time and memory grow with the number of labels: the optimal unbiased randomizer of 11 to 100,001 labels.

Each number of labels is solved in a fresh process, at epsilon 1 on the real line, for a rough and for a smooth prior;
the clock runs over `solve` and `certify`, and the exact mechanism is proven.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness import Benchmark, Case, Clock, Method, Row, Table, compare, growth, solve_and_certify
from benchmarks.priors import posed

SIZES, SMALL_SIZES = (11, 21, 53, 101, 201, 401, 701, 1_001, 2_001, 4_001, 10_001, 40_001, 100_001), (6, 11, 16)
COLUMNS = {
    "prior": "prior",
    "labels": "k:,",
    "time": "seconds:time",
    "runs": "runs",
    "outputs": "outputs:,",
    "peak MB": "megabytes:.0f",
    "exact gap": "exact_gap:.1e",
    "verdict": "verdict",
}


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


def notes(rows: Sequence[Row]) -> Iterator[str]:
    """Fit powers of the number of labels, over all sizes and from 401 on."""
    for prior in dict.fromkeys(row["prior"] for row in rows):
        for least in (0, 401):
            mine = [row for row in rows if row["prior"] == prior and row["k"] >= least and row["seconds"] is not None]
            power = growth([row["k"] for row in mine], [row["seconds"] for row in mine])
            yield f"{prior}: time grows as k^{power:.2f} from {least} labels on"


def draw(rows: Sequence[Row], _: Any) -> Any:
    """Draw time against the number of labels."""
    from optrand.plotting import times_figure

    figure = times_figure(rows, by="k", series="prior")
    figure.suptitle("Optimal unbiased randomizers on the line, ε = 1", fontsize=8)
    return figure


TABLES = (Table("Time and memory against the number of labels", "k", COLUMNS),)
main = Benchmark("labels", __doc__, measure, TABLES, limit=120.0, notes=notes, draw=draw, one_core=False).run
