"""Randomized response on bins against the cubic dynamic program of [GKK23], for three losses.

Labels are 0 ... k-1. The paper's algorithm is written here as it is told: the cost of every bin, and for every number
of bins the best place where the last one begins; its loops are over NumPy arrays. Its loss must be ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import (
    Benchmark,
    Case,
    Clock,
    Method,
    Row,
    compare,
    solve_and_certify,
)
from benchmarks.priors import PRIORS
from optrand import losses, regression
from optrand.base.validation import Floats
from optrand.model.arcs import Arcs
from optrand.model.losses import Loss
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Solution, Stats
from optrand.solvers import BinPath

SIZES, SMALL_SIZES = (11, 53, 101, 201, 401, 1_001, 2_001, 4_001, 20_001, 100_001), (5, 9)
LOSSES = (losses.squared, losses.absolute, losses.poisson_log)
OURS, CUBIC = "BinPath, proof included", "cubic dynamic program"


@dataclass(frozen=True)
class CubicProgram:
    """The algorithm of [GKK23]: ``best[d, j]`` of the first ``j`` labels in ``d`` bins, for every ``d`` and ``j``.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> CubicProgram()(problem).randomizer.outputs.round(3).tolist()
    [0.396, 0.72]
    """

    def accepts(self, problem: Problem) -> bool:
        """Accept the problems that randomized response on bins answers."""
        return BinPath().accepts(problem)

    def __call__(self, problem: Problem) -> Solution:
        """Solve at a cost of ``O(k^3)`` with memory ``O(k^2)``."""
        start, k, ratio = time.perf_counter(), problem.k, math.exp(problem.epsilon)
        costs, outputs = costs_of_bins(problem)
        best, before = np.append(0.0, np.full(k, math.inf)), np.zeros((k + 1, k + 1), dtype=np.int32)
        found, count = math.inf, 0
        for d in range(1, k + 1):
            totals = best[:, np.newaxis] + costs
            before[d] = totals.argmin(axis=0)
            best = totals[before[d], np.arange(k + 1)]
            if best[k] / (ratio + d - 1) < found:
                found, count = best[k] / (ratio + d - 1), d
        nodes = [k]
        for d in range(count, 0, -1):
            nodes.append(int(before[d, nodes[-1]]))
        nodes.reverse()
        first, after = np.array(nodes[:-1]), np.array(nodes[1:])
        masses = np.full(count, 1 / (ratio + count - 1))
        arcs = Arcs(k, first, after - 1, outputs[first, after], masses)
        stats = Stats(repr(self), time.perf_counter() - start, k, "every number of bins tried")
        return Solution(problem, Randomizer.of_arcs(problem.labels, arcs, problem.epsilon), None, stats)


def costs_of_bins(problem: Problem) -> tuple[Floats, Floats]:
    """Return the cost of the bin between any two nodes and its best output; shape ``(k + 1, k + 1)`` each."""
    p, y, gain = problem.prior, problem.labels, math.expm1(problem.epsilon)
    backwards = np.tri(p.size + 1, dtype=bool)

    def weighted(terms: Floats) -> Floats:
        sums = np.append(0.0, np.cumsum(terms))
        inside: Floats = np.where(backwards, 0.0, sums - sums[:, np.newaxis])
        return float(terms.sum()) + gain * inside

    if problem.loss == losses.absolute:
        costs, outputs = np.full(backwards.shape, math.inf), np.zeros(backwards.shape)
        for v in y:
            found = weighted(p * np.abs(v - y))
            better = found < costs
            costs[better], outputs[better] = found[better], v
    else:
        weight, pull = weighted(p), weighted(p * y)
        outputs = pull / weight
        squared = problem.loss == losses.squared
        costs = (weighted(p * y**2) - pull * outputs) / 2 if squared else pull - pull * np.log(outputs)
    return np.where(backwards, math.inf, costs), outputs


def agree(_: Sequence[Problem], answers: Sequence[Solution], optimum: float) -> Row:
    """Compare the loss of the paper's algorithm with the proven optimum: both are the same, or something is wrong."""
    excess = (answers[0].value - optimum) / abs(optimum)
    right = abs(excess) <= 1e-9
    found = {"value": answers[0].value, "excess": excess, "outputs": answers[0].randomizer.n, "right": right}
    return found | {"verdict": "the same loss" if right else "ANOTHER LOSS"}


METHODS = (
    Method(OURS, solve_and_certify),
    Method(CUBIC, CubicProgram(), agree, 4_001),
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
