"""Random problems of up to 64 labels, with optima in rationals: exact on grids, enclosed to 1e-30 on the line.

Privacy ratios are rational. Priors are Dirichlet draws, flat and sparse, uniform and normal ones, some with labels of
prior zero. Each optimum is proven by :func:`optrand.certificates.rational.enclosure`, which every row counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from optrand import classification, feasible_output_set, losses, regression, unbiased_regression
from optrand.base.validation import Floats
from optrand.errors import OptrandError
from optrand.model.problem import Problem
from optrand.studies import exact_optimum

__all__ = ["drawn"]

KINDS = ("line", "line, sparse", "grid, unbiased", "grid, biased", "grid, absolute", "classes")
COUNT = 200
DIGITS = 30
COLUMNS = ("problems", "proven", "worst gap", "most bits", "most pivots", "median time", "worst time", "not proven")


class Outcome(NamedTuple):
    """An optimum in figures; no gap where it was not proven."""

    kind: str
    k: int
    seconds: float
    gap: Fraction | None
    bits: int = 0
    pivots: int = 0


def drawn(kind: str, seed: int, *, largest: int = 64) -> tuple[Problem, Fraction]:
    """Random problem of a kind, and its ratio.

    Examples
    --------
    >>> problem, ratio = drawn("classes", 3)
    >>> problem.epsilon == math.log(ratio), problem.k <= 64
    (True, True)
    """
    random = np.random.default_rng([KINDS.index(kind), seed])
    k, ratio = int(random.integers(2, largest + 1)), Fraction(int(random.integers(11, 250)), 10)
    labels: Floats = np.arange(float(k)) if random.random() < 0.5 else np.sort(random.normal(size=k))
    prior, epsilon = _prior(random, k, sparse=kind == "line, sparse"), math.log(ratio)
    if kind.startswith("line"):
        return unbiased_regression(labels, prior, epsilon), ratio
    if kind == "classes":
        return classification(prior, epsilon), ratio
    mesh = int(random.integers(10, 100))
    if kind == "grid, unbiased":
        return unbiased_regression(labels, prior, epsilon, outputs=feasible_output_set(labels, epsilon, mesh)), ratio
    loss = losses.absolute if kind == "grid, absolute" else losses.squared
    return regression(labels, prior, epsilon, loss=loss, outputs=np.linspace(labels[0], labels[-1], mesh)), ratio


def _prior(random: np.random.Generator, k: int, *, sparse: bool) -> Floats:
    if sparse:
        prior = random.dirichlet(np.full(k, 0.1))
        prior[prior < 1e-30] = 0.0
    else:
        bell = np.exp(-(np.linspace(-4, 4, k) ** 2) / 2)
        prior = (random.dirichlet(np.ones(k)), np.ones(k), bell)[int(random.integers(3))]
        if random.random() < 0.2:
            prior = np.where(random.random(k) < 0.3, 0.0, prior)
    if not prior.any():
        prior = np.ones(k)
    normalised: Floats = prior / prior.sum()
    return normalised


def measured(kind: str, seed: int, *, largest: int) -> Outcome:
    """Outcome of one problem, in processor seconds, solving in floats included."""
    problem, ratio = drawn(kind, seed, largest=largest)
    start = time.process_time()
    try:
        best = exact_optimum(problem, ratio=ratio, digits=DIGITS)
    except OptrandError:
        return Outcome(kind, problem.k, time.process_time() - start, None)
    return Outcome(kind, problem.k, time.process_time() - start, best.gap, best.bits, best.pivots)


def row(outcomes: Sequence[Outcome]) -> list[str]:
    """Cells of a kind."""
    proven = [o for o in outcomes if o.gap is not None]
    seconds = [o.seconds for o in outcomes]
    gaps = [o.gap for o in outcomes if o.gap is not None]
    worst = max(gaps, default=Fraction(0))
    return [
        str(len(outcomes)),
        str(len(proven)),
        "exactly 0" if worst == 0 else f"{float(worst):.0e}",
        str(max((o.bits for o in proven), default=0)),
        str(max((o.pivots for o in proven), default=0)),
        duration(float(np.median(seconds))),
        duration(max(seconds)),
        str(len(outcomes) - len(proven)),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each kind; 1 unless all are proven."""
    chosen = options("exact", __doc__).parse_args(arguments)
    use_one_core()
    count, largest = (len(KINDS), 12) if chosen.smoke else (COUNT, 64)
    outcomes = [measured(KINDS[seed % len(KINDS)], seed, largest=largest) for seed in range(count)]
    print(circumstances())
    rows = [[kind, *row([o for o in outcomes if o.kind == kind])] for kind in KINDS]
    print_table(f"{count} random problems of at most {largest} labels at rational ratios", ("kind", *COLUMNS), rows)
    records = [{**o._asdict(), "gap": None if o.gap is None else float(o.gap)} for o in outcomes]
    write_json(chosen.results, "exact-smoke" if chosen.smoke else "exact", records)
    return int(any(o.gap is None or o.gap > Fraction(1, 10**DIGITS) for o in outcomes))
