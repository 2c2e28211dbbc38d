"""How time and memory grow with the number of labels: the optimal unbiased randomizer, and RR-on-Bins.

Each number of labels is solved in a fresh process, at epsilon 1 on the real line, for a rough and for a smooth prior.
The clock runs over `solve` and `certify`, and the exact mechanism is proven. Beside the second stands the cubic dynamic
program of [GKK23] as it is printed, in loops over NumPy arrays. Its loss must be ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import GAP, Benchmark, Case, Clock, Method, Row, compare, solve_and_certify
from benchmarks.priors import posed
from optrand.model._problem import Problem

SIZES, SMALL_SIZES = (11, 21, 53, 101, 201, 401, 701, 1_001, 2_001, 4_001, 10_001, 40_001, 100_001), (6, 11, 16)


def solve_cubic(problem: Problem) -> tuple[float, int]:
    """Return the least squared loss and its number of bins, by [GKK23]: the best loss of the first labels in `d` bins.

    Costs ``O(k^3)``, with memory ``O(k^2)``. The places where the bins begin are not kept.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> loss, count = solve_cubic(problem)
    >>> round(loss, 6) == round(solve_and_certify(problem).value, 6), count
    (True, 2)
    """
    k, gain = problem.k, math.expm1(problem.epsilon)
    sums = [np.append(0.0, np.cumsum(problem.prior * problem.labels**power)) for power in range(3)]
    # For the bin between any two nodes all labels count once, and those in the bin exp(epsilon) times.
    weight, pull, square = (each[-1] + gain * (each - each[:, np.newaxis]) for each in sums)
    costs = np.where(np.tri(k + 1, dtype=bool), math.inf, (square - pull**2 / weight) / 2)
    best, found = np.append(0.0, np.full(k, math.inf)), list[tuple[float, int]]()
    for d in range(1, k + 1):
        best = (best[:, np.newaxis] + costs).min(axis=0)
        found.append((float(best[k]) / (gain + d), d))
    return min(found)


def agree(_: Problem, answer: tuple[float, int], optimum: float) -> Row:
    """Compare the loss of the paper's algorithm with the proven optimum: both are the same, or something is wrong."""
    value, count = answer
    right = abs(value - optimum) <= GAP * optimum
    verdict = "the same loss" if right else f"ANOTHER LOSS THAN {optimum:g}"
    return {"value": value, "outputs": count, "right": right, "verdict": verdict}


OURS, CUBIC = Method("optrand", solve_and_certify), Method("cubic dynamic program", solve_cubic, agree, True, 4_001)


def records(
    prior: str, sizes: Sequence[int], limit: float, penalty: float = math.inf, methods: Sequence[Method] = (OURS,)
) -> Iterator[Row]:
    """Solve each number of labels in a fresh process."""
    kind = "any bias" if penalty == 0 else "unbiased"
    tiny = posed(prior, 5, 1.0, penalty=penalty)
    cases = (
        Case(
            {"kind": kind, "prior": prior, "k": k, "epsilon": 1.0},
            posed(prior, k, 1.0, penalty=penalty),
            tiny,
            f"{k:,} labels",
            fresh=True,
        )
        for k in sizes
    )
    yield from compare(cases, methods, Clock(limit, patience=20.0))


def measure(given: Any) -> Iterator[Row]:
    """Solve every size for each prior, without bias and with any."""
    sizes = SMALL_SIZES if given.smoke else SIZES
    for prior in ("Dirichlet",) if given.smoke else ("Dirichlet", "exponential"):
        yield from records(prior, sizes, given.limit)
        yield from records(prior, sizes, given.limit, 0.0, (OURS, CUBIC))


TABLES = {
    "Time and memory against the number of labels": (
        "k kind prior method seconds runs outputs value megabytes exact_gap verdict"
    ),
}
main = Benchmark("labels", __doc__, measure, TABLES, limit=120.0, one_core=False).run
