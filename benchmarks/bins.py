"""Randomized response on bins against the cubic dynamic program of [GKK23], for three losses.

Labels are 0 ... k-1. The paper's algorithm is written here as it is told: the cost of every bin, and for every number
of bins the best place where the last one begins; its loops are over NumPy arrays. Its loss must be ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Case, Clock, Method, Row, compare, solve_and_certify
from benchmarks.priors import PRIORS
from optrand import losses, regression
from optrand.base.validation import Floats
from optrand.model.losses import Loss
from optrand.model.problem import Problem

SIZES, SMALL_SIZES = (11, 53, 101, 201, 401, 1_001, 2_001, 4_001, 20_001, 100_001), (5, 9)
LOSSES = (losses.squared, losses.absolute, losses.poisson_log)
OURS, CUBIC = "BinPath, proof included", "cubic dynamic program"


def solve_cubic(problem: Problem) -> tuple[float, int]:
    """Return the least loss and its number of bins, by [GKK23]: the best loss of the first `j` labels in `d` bins.

    Costs ``O(k^3)``, with memory ``O(k^2)``. Where the bins begin is not kept.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> loss, count = solve_cubic(problem)
    >>> round(loss, 6) == round(solve_and_certify(problem).value, 6), count
    (True, 2)
    """
    k, ratio, found = problem.k, math.exp(problem.epsilon), list[tuple[float, int]]()
    costs = costs_of_bins(problem)
    best = np.append(0.0, np.full(k, math.inf))
    for d in range(1, k + 1):
        best = (best[:, np.newaxis] + costs).min(axis=0)
        found.append((float(best[k]) / (ratio + d - 1), d))
    return min(found)


def costs_of_bins(problem: Problem) -> Floats:
    """Return the cost of the bin between any two nodes with its best output, shape ``(k + 1, k + 1)``."""
    p, y, gain = problem.prior, problem.labels, math.expm1(problem.epsilon)
    backwards = np.tri(p.size + 1, dtype=bool)

    def weighted(terms: Floats) -> Floats:
        sums = np.append(0.0, np.cumsum(terms))
        inside: Floats = np.where(backwards, 0.0, sums - sums[:, np.newaxis])
        return float(terms.sum()) + gain * inside

    if problem.loss == losses.absolute:
        costs = np.full(backwards.shape, math.inf)
        for v in y:
            costs = np.minimum(costs, weighted(p * np.abs(v - y)))
    else:
        weight, pull = weighted(p), weighted(p * y)
        outputs = pull / weight
        squared = problem.loss == losses.squared
        costs = (weighted(p * y**2) - pull * outputs) / 2 if squared else pull - pull * np.log(outputs)
    return np.where(backwards, math.inf, costs)


def agree(_: Sequence[Problem], answers: Sequence[tuple[float, int]], optimum: float) -> Row:
    """Compare the loss of the paper's algorithm with the proven optimum: both are the same, or something is wrong."""
    value, count = answers[0]
    excess = (value - optimum) / abs(optimum)
    right = abs(excess) <= 1e-9
    found = {"value": value, "excess": excess, "outputs": count, "right": right}
    return found | {"verdict": "the same loss" if right else "ANOTHER LOSS"}


METHODS = (
    Method(OURS, solve_and_certify),
    Method(CUBIC, solve_cubic, agree, True, 4_001),
)


def posed(prior: str, k: int, epsilon: float, loss: Loss) -> Problem:
    """Pose the labels 0 ... k-1 under a named prior, with any bias; labels of prior zero are left out.

    Examples
    --------
    >>> posed("spike", 9, 1.0, losses.absolute).k
    6
    """
    chances = PRIORS[prior](k)
    kept = np.flatnonzero(chances)
    return regression(kept.astype(np.float64), chances[kept], epsilon, loss=loss)


def measure(given: Any) -> Iterator[Row]:
    """Solve every loss and size; peers as far as the limit lets them get."""
    for loss in LOSSES:
        tiny = regression([1.0, 2.0], [0.5, 0.5], given.epsilon, loss=loss)
        cases = [
            Case({"loss": loss.name, "k": k}, (posed(given.prior, k, given.epsilon, loss),), (tiny,), f"{k:,} labels")
            for k in (SMALL_SIZES if given.smoke else SIZES)
        ]
        yield from compare(cases, METHODS, Clock(given.limit))


def arguments(parser: Any) -> None:
    """Add the epsilon and the prior."""
    parser.add_argument("--epsilon", type=float, default=4.0, help="(default: 4)")
    parser.add_argument("--prior", choices=[name for name in PRIORS if name != "weeks"], default="Dirichlet")


TABLES = {
    "Randomized response on bins": "k method loss seconds runs outputs value excess exact_gap verdict",
}
main = Benchmark("bins", __doc__, measure, TABLES, 60.0, arguments).run
