"""Regression on private labels: two stages against one prior, and the experiments of [B23], Figures 4b, 5a, 5b and G.3.

An error is the mean loss on test rows. An excess is its difference from the error of the same model trained on true
labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from benchmarks.learning import tables
from benchmarks.learning.experiment import NON_PRIVATE, Cell, Experiment, Row, Setup
from benchmarks.learning.reports import report
from optrand import Interval, feasible_output_set, solve, unbiased_regression
from optrand.base._validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase
from optrand.learning import LabelDPRegressor, OnePrior, Plan, PrivateLabels, PublicClusters, RowPriors, TwoStages
from optrand.learning._training import Training
from optrand.sampling._entropy import SeededEntropy
from optrand.sampling._priors import split_budget

STEEPEST = 20.0
"""Exponents are cut here, so that no trial step overflows."""


class PoissonLinear(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Means ``exp(X w + b)`` of the least sum of Poisson log losses with a ridge `alpha`. Labels may be negative.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 400)[:, np.newaxis]
    >>> noise = np.where(np.arange(400) % 2, 3.0, -3.0)
    >>> model = PoissonLinear(1e-3).fit(X, np.exp(X[:, 0]) + noise)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([1.0], -0.0)
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> PoissonLinear:
        """Minimise by L-BFGS."""
        rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        weights = np.ones(labels.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)

        def loss(point: Floats) -> tuple[float, Floats]:
            exponents = np.minimum(rows @ point[:-1] + point[-1], STEEPEST)
            means = np.exp(exponents)
            slopes = weights * (means - labels)
            ridge = self.alpha * point[:-1]
            value = weights @ (means - labels * exponents) + ridge @ point[:-1] / 2
            return float(value / labels.size), np.append(rows.T @ slopes + ridge, slopes.sum()) / labels.size

        found = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B")
        self.coef_, self.intercept_ = found.x[:-1], float(found.x[-1])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Predict means."""
        means: Floats = np.exp(np.minimum(np.asarray(X, dtype=np.float64) @ self.coef_ + self.intercept_, STEEPEST))
        return means


def poisson_loss(guesses: Any, y: Any) -> float:
    """Return the mean of ``f - y log f``, [B23]'s Poisson log loss. Guesses below a hundredth count as a hundredth.

    Examples
    --------
    >>> poisson_loss(np.array([1.0, 1.0]), np.array([0, 2]))
    1.0
    """
    means = np.maximum(guesses, 0.01)
    return float((means - y * np.log(means)).mean())


MODELS: dict[str, Callable[..., Any]] = {
    "ridge": Ridge,
    "boosting": HistGradientBoostingRegressor,
    "poisson": PoissonLinear,
}
LOSSES: dict[str, tuple[str, Callable[[Any, Any], float]]] = {
    "squared": ("test error (mean squared)", lambda guesses, y: float(((guesses - y) ** 2).mean())),
    "poisson": ("test error (Poisson log loss)", poisson_loss),
}


def measure(setup: Setup, cell: Cell) -> dict[str, float]:
    """Measure the test error of each model, and its noisy label loss: half the mean squared error of the labels."""
    found: dict[str, float] = {}
    given = tables.of(setup, cell.seed)
    error = LOSSES[setup.settings.get("loss", "squared")][1]
    for name in [model for model in MODELS if model in setup.settings]:
        X, test = given.codes if name == "boosting" else given.indicators
        model = MODELS[name](**setup.settings[name])
        if cell.arm == NON_PRIVATE:
            model.fit(X, given.y[0])
        else:
            labels = PrivateLabels(given.y[0], cell.epsilon, given.labels, source=SeededEntropy(cell.seed))
            model, noisy = train_arm(setup, cell, model, X, labels)
            found[f"{name} label loss"] = float(((noisy - given.y[0]) ** 2).mean() / 2)
        guesses = np.clip(model.predict(test), given.labels[0], given.labels[-1])
        found[name] = error(guesses, given.y[1])
    return found


def train_arm(setup: Setup, cell: Cell, model: Any, X: Floats, labels: PrivateLabels) -> tuple[Any, Floats]:
    """Train a model as an arm does. Return it and the noisy labels that it learned from."""
    plan = plan_of(setup, cell)
    if plan is None:
        noisy = labels.release(slice(None), add_noise(cell.arm, labels.domain.array, cell.epsilon)).values
        return model.fit(X, noisy), np.asarray(noisy, dtype=np.float64)
    penalty = {"bins": 0.0, "bins in clusters": 0.0}.get(cell.arm)
    learner = LabelDPRegressor(model, cell.epsilon, plan, penalty, random_state=cell.seed)
    learner.fit(X, labels)
    values = np.empty(len(labels))
    for release in learner.releases_:
        values[release.rows] = release.values
    return learner, values


PLANS: dict[str, Plan] = {
    "two stages": TwoStages(),
    "per-row priors": RowPriors(),
    "one prior": OnePrior(),
    "bins": OnePrior(),
    "the line": OnePrior(),
}


def plan_of(setup: Setup, cell: Cell) -> Plan | None:
    """Return the plan of an arm, or None for additive noise."""
    if cell.arm == "bins in clusters":
        return PublicClusters(partial(assign_clusters, setup, cell.seed))
    if cell.arm.startswith("mesh "):
        return OnMesh(int(cell.arm.removeprefix("mesh ")))
    return PLANS.get(cell.arm)


def assign_clusters(setup: Setup, seed: int, X: Any) -> Any:  # noqa: ARG001
    """Return the cluster of each training row by its indicators, which are public, for any features of the model."""
    rows = tables.of(setup, seed).indicators[0]
    return MiniBatchKMeans(setup.settings["clusters"], random_state=seed, n_init=3).fit_predict(rows)


def add_noise(arm: str, labels: NDArray[Any], epsilon: float) -> Any:
    """Make noise on the lattice of the labels ([B23], Appendix F), clipped to their range or not."""
    kind = {"Laplace": DiscreteLaplace, "staircase": DiscreteStaircase}[arm.removeprefix("clipped ")]
    ends = Interval(float(labels[0]), float(labels[-1]))
    return kind(labels, epsilon, clip=ends if arm.startswith("clipped") else None)


@dataclass(frozen=True)
class OnMesh(Plan):
    """One prior, and an unbiased randomizer on a mesh ([B23], Algorithm 2)."""

    for_numbers: ClassVar[bool] = True

    mesh: int

    def train(self, training: Training) -> Any:
        """Train as :class:`~optrand.learning.OnePrior` does, on a grid."""
        rows = np.arange(training.rows)
        split = split_budget(training.epsilon, training.k, training.rows)
        prior = training.prior(rows, split.prior).probabilities
        outputs = feasible_output_set(training.numbers, split.labels, self.mesh)
        problem = unbiased_regression(training.numbers, prior, split.labels, outputs=outputs)
        return training.learn_numbers([[training.release(rows, solve(problem))]])


def report_errors(setup: Setup, rows: Sequence[Row]) -> bool:
    """Report the errors under the name of their loss."""
    error = LOSSES[setup.settings.get("loss", "squared")][0]
    return report(setup, rows, error)


EXPERIMENTS = {
    name: Experiment(summary, measure, report_errors, ("pandas",))
    for name, summary in {
        "weeks": "weeks worked: two stages with a bias penalty against one prior without bias, and bins in clusters",
        "rows": "weeks worked, the bundled table: one prior, two stages, a prior for each row",
        "figure5a": "[B23], Figure 5a: every randomizer, weeks worked",
        "figure4b": "[B23], Figure 4b: every randomizer, on what customers spend instead of Criteo's revenue",
        "figure5b": "[B23], Figure 5b: every randomizer, Poisson loss of counts, visits to a physician",
        "meshes": "[B23], Appendix G.3: test loss on finer and finer meshes, weeks worked",
    }.items()
}
