"""Convex losses on private labels: the excess risk against rows and epsilon, beside [G21], Theorem 9, Proposition 11.

Features are 256 public points of norm 1, and labels have a known law given these, so that an excess risk is exact for
the weights that came out. The bounds fall as ``log(n) / sqrt(n)`` and, at a small epsilon, as ``1 / epsilon``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import binom

from benchmarks.harness import print_table
from benchmarks.learning.experiment import Cell, Experiment, Row, Setup
from benchmarks.learning.reports import Errors, slope
from benchmarks.learning.sgd import LPRRSGD, LinearLoss, LogisticLoss, LPNormalSGD, SquaredLoss
from optrand.base._validation import Floats
from optrand.learning import PrivateLabels
from optrand.sampling._entropy import SeededEntropy

POINTS, DIMENSION, CLASSES = 256, 4, 3

ARMS: dict[str, Callable[[float, float, float], LPRRSGD | LPNormalSGD]] = {
    "LP-RR-SGD, printed steps": lambda epsilon, _, diameter: LPRRSGD(epsilon, diameter, printed=True),
    "LP-RR-SGD": lambda epsilon, _, diameter: LPRRSGD(epsilon, diameter),
    "LP-Normal-SGD": LPNormalSGD,
}
"""By epsilon, delta and the diameter of the ball of weights."""


@dataclass(frozen=True, eq=False)
class Law:
    """Distribution of features and labels, and the weights of least risk.

    Attributes
    ----------
    points : (P, d) array
        Features, equally likely.
    chances : (P, K) array
        Variance of the labels at each point.
    loss : LinearLoss
    best : (m, d) array
        Its risk has no gradient.
    """

    points: Floats
    chances: Floats
    loss: LinearLoss
    best: Floats

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.intp]]:
        """Draw independent features and numbers of labels."""
        places = rng.integers(0, len(self.points), rows)
        codes = (rng.random((rows, 1)) > np.cumsum(self.chances, axis=1)[places, :-1]).sum(axis=1)
        return self.points[places], codes

    def excess(self, weights: Floats) -> float:
        """Return the risk of weights above the least."""
        here, least = (self.loss.values(self.points @ each.T) for each in (weights, self.best))
        return float((self.chances * (here - least)).sum(axis=1).mean())


def law(name: str) -> Law:
    """Return the law of a loss, "logistic" or "squared", one for all seeds.

    Examples
    --------
    >>> found = law("squared")
    >>> found.excess(found.best), round(found.excess(0 * found.best), 2)
    (0.0, 0.59)
    """
    rng = np.random.default_rng(0)
    others = rng.normal(size=(POINTS, DIMENSION - 1))
    others /= np.sqrt(2) * np.linalg.norm(others, axis=1, keepdims=True)
    points = np.column_stack([np.full(POINTS, np.sqrt(0.5)), others])
    if name == "logistic":
        best = rng.normal(size=(CLASSES, DIMENSION))
        best *= 4 / np.linalg.norm(best)
        return Law(points, softmax(points @ best.T, axis=1), LogisticLoss(CLASSES), best)
    # The mean label is w x, and the label binomial.
    best = np.array([[np.sqrt(2), *rng.normal(size=DIMENSION - 1)]])
    best[0, 1:] *= 0.9 / np.linalg.norm(best[0, 1:])
    labels = np.arange(CLASSES, dtype=np.float64)
    chances = np.asarray(binom.pmf(labels, CLASSES - 1, points @ best.T / (CLASSES - 1)))
    return Law(points, chances, SquaredLoss((*labels.tolist(),)), best)


def cells(setup: Setup, seeds: int) -> list[Cell]:
    """List every algorithm on every loss at every epsilon. A cell has all numbers of rows."""
    arms = [f"{loss}, {arm}" for loss, arm in product(setup.settings["diameters"], ARMS)]
    return [Cell(*one) for one in product(range(seeds), setup.settings["epsilons"], arms)]


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the excess risk and its bound, by the number of rows."""
    name, _, arm = cell.arm.partition(", ")
    given, delta, found = law(name), setup.settings["delta"], {}
    learner = ARMS[arm](cell.epsilon, delta, setup.settings["diameters"][name])
    domain = getattr(given.loss, "labels", range(CLASSES))
    for rows in setup.settings["rows"]:
        X, codes = given.draw(rows, np.random.default_rng([cell.seed, rows]))
        source = SeededEntropy(cell.seed)
        labels = PrivateLabels(codes, cell.epsilon, domain, delta=delta, allow_inexact=True, source=source)
        fitted = learner.fit(X, labels, given.loss)
        found[f"{rows}"], found[f"{rows} bound"] = given.excess(fitted.weights), fitted.excess_risk
    return found


def report(setup: Setup, rows: Sequence[Row]) -> bool:
    """Print excess risks, bounds and slopes. Return whether every mean is below its bound."""
    found, settings = Errors(rows), setup.settings
    sizes, epsilons, names = settings["rows"], settings["epsilons"], dict.fromkeys(row.cell.arm for row in rows)
    largest, by_rows, by_epsilon, shares = sizes[-1], [], [], []
    for arm in names:
        for epsilon in epsilons:
            excess = [found.of(epsilon, arm, f"{n}") for n in sizes]
            bounds = [found.of(epsilon, arm, f"{n} bound") for n in sizes]
            shares += [float((part / bound).mean()) for part, bound in zip(excess, bounds, strict=True)]
            means = [f"{part.mean():.3g}" for part in (*excess, bounds[-1])]
            by_rows.append(
                [arm, f"{epsilon:g}", *means, str(slope(sizes, excess)), f"{slope(sizes, bounds).value:.2f}"]
            )
        excess, bounds = ([found.of(e, arm, f"{largest}{of}") for e in epsilons] for of in ("", " bound"))
        by_epsilon.append([arm, str(slope(epsilons, excess)), f"{slope(epsilons, bounds).value:.2f}"])
    title = f"Excess risk: mean of {len(excess[0])} seeds, and slopes in log-log scales, interval at 95 %"
    columns = ["loss, algorithm", "epsilon", *(f"n = {n}" for n in sizes)]
    print_table(title, [*columns, f"bound, n = {largest}", "slope in n", "the bound's"], by_rows)
    print_table(f"Slopes at n = {largest}", ["loss, algorithm", "slope in epsilon", "the bound's"], by_epsilon)
    print(f"means are at most {100 * max(shares):.2g} percent of their bounds, which hold for the expectation")
    return max(shares) <= 1


EXPERIMENTS = {"convex": Experiment("[G21], Theorem 9, Proposition 11: convex losses", measure, report, cells=cells)}
