"""The generator of hard problems, for tests and for the benchmark `exactness`: every problem has a class.

:func:`random_problem` draws by number: spread, clustered and half-empty priors, Gaussian tails and spikes, any bias, a
bias penalty or no bias, on the line and on an interval. :func:`few_labels` are 7,280 problems of 2 to 21 labels: seven
priors, five label sets, four kinds of outputs, four penalties and epsilon up to 600. :func:`thin_tails` are priors that
fade away, at every price of bias.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import count, product
from typing import NamedTuple

import numpy as np

from benchmarks.priors import DIRICHLET_SEED
from optrand import Grid, Interval, regression, unbiased_range
from optrand.base._validation import Floats
from optrand.model._problem import OutputSet, Problem

FAMILIES = ("spread", "clustered", "half zero")
TAILS = (*FAMILIES, "gaussian tails", "spikes")
"""With priors of which most entries are next to nothing."""

BIASES = ("free", "priced", "unbiased")


def random_problem(
    number: int, largest: int = 401, families: Sequence[str] = FAMILIES
) -> tuple[tuple[str, str, str], Problem]:
    """Draw the problem of a number and return its class: every class in turn, all else at random.

    Examples
    --------
    >>> [random_problem(number)[0] for number in (0, 1, 17)]
    [('spread', 'free', 'line'), ('clustered', 'free', 'line'), ('half zero', 'unbiased', 'interval')]
    """
    rest, at = divmod(number, len(families))
    family, bias, place = families[at], BIASES[rest % 3], ("line", "interval")[rest // 3 % 2]
    rng = np.random.default_rng([271828, number])
    k, epsilon = round(_log_uniform(rng, 2, largest)), _log_uniform(rng, 0.05, 8.0)
    gaps, prior = np.ones(k), rng.dirichlet(np.full(k, 0.5)) + 1e-4
    if family == "clustered":
        gaps[rng.random(k) < 0.5] = 1e-5 * k
    elif family == "half zero":
        prior[rng.permutation(k)[: k // 2]] = 0.0
    elif family == "gaussian tails":
        prior = np.maximum(np.exp(-(((np.arange(k) - rng.uniform(0, k)) * rng.uniform(2, 12) / k) ** 2) / 2), 1e-20)
    elif family == "spikes":
        prior = np.where(rng.random(k) < 3 / k, 1.0, 1e-6) * prior
    labels = np.cumsum(gaps) - gaps[0]
    penalty = {"free": 0.0, "priced": _log_uniform(rng, 1e-2, 1e2), "unbiased": math.inf}[bias]
    outputs = None
    if place == "interval":
        low, high = unbiased_range(labels, epsilon) if bias == "unbiased" else (labels[0], labels[-1])
        margins = rng.uniform(0.0 if bias == "unbiased" else -0.3, 0.5, 2) * (high - low)
        outputs = Interval(low - margins[0], high + margins[1])
    problem = regression(labels, prior / prior.sum(), epsilon, bias_penalty=penalty, outputs=outputs)
    return (family, bias, place), problem


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


OPEN = ("epsilon 16 to 40", "epsilon 100, 600", "penalty 1000")
"""Ends of the names of classes whose gaps may stay open, since floats lose digits there (docs/problems.md)."""


class Hard(NamedTuple):
    """Names of the parts of a hard problem of few labels."""

    prior: str
    labels: str
    place: str
    penalty: float
    epsilon: float
    k: int

    @property
    def family(self) -> tuple[str, str, str]:
        """Class by which the share proven is stated."""
        ranges = ("epsilon to 10", "epsilon 16 to 40", "epsilon 100, 600")
        return (
            self.place,
            "unbiased" if math.isinf(self.penalty) else "priced",
            ranges[(self.epsilon > 10) + (self.epsilon > 40)],
        )

    @property
    def problem(self) -> Problem:
        """Return the problem. Intervals and grids span the outputs that unbiased answers need, or else the labels."""
        labels, prior = _labels(self.labels, self.k), _prior(self.prior, self.k)
        low, high = unbiased_range(labels, self.epsilon) if math.isinf(self.penalty) else (labels[0], labels[-1])
        margin = 0.3 * (high - low)
        outputs: dict[str, OutputSet | None] = {
            "line": None,
            "narrowest": Interval(low, high),
            "wider": Interval(low - margin, high + margin),
            "grid": Grid(np.linspace(low - margin, high + margin, 17)),
        }
        return regression(labels, prior, self.epsilon, bias_penalty=self.penalty, outputs=outputs[self.place])


def few_labels() -> Iterator[Hard]:
    """List all hard problems of few labels, with the numbers of labels in turn.

    Examples
    --------
    >>> sum(1 for _ in few_labels())
    7280
    """
    priors = ("uniform", "geometric", "alternating", "spike", "gaussian", "dirichlet", "half zero")
    label_sets = ("equispaced", "squares", "clustered", "random", "outlier")
    places, penalties = ("line", "narrowest", "wider", "grid"), (math.inf, 1000.0, 1.0, 0.001)
    epsilons = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 7.0, 10.0, 16.0, 28.0, 40.0, 100.0, 600.0)
    sizes, turns = (2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 21), count()
    for parts in product(priors, label_sets, places, penalties, epsilons):
        yield Hard(*parts, sizes[next(turns) % len(sizes)])


def _prior(name: str, k: int) -> Floats:
    each, rng = np.arange(k), np.random.default_rng([DIRICHLET_SEED, k])
    weights = {
        "uniform": np.ones(k),
        "geometric": 0.2**each,
        "alternating": np.where(each % 2, 0.1, 1e-12),
        "spike": np.where(each == k // 3, 1.0, 1e-6),
        "gaussian": np.exp(-((each - (k - 1) / 2) ** 2) * 50 / k**1.5),
        "dirichlet": rng.dirichlet(np.full(k, 0.5)),
        "half zero": np.where(rng.permutation(k) < (k + 1) // 2, 1.0, 0.0),
    }[name]
    return np.asarray(weights / weights.sum())


def _labels(name: str, k: int) -> Floats:
    each = np.arange(float(k))
    labels: Floats = {
        "equispaced": each,
        "squares": each**2,
        "clustered": each // 2 + 1e-5 * (each % 2),
        "random": np.sort(np.random.default_rng([DIRICHLET_SEED, k, 1]).random(k)),
        "outlier": np.where(each == k - 1, 1000.0, each),
    }[name]
    return labels


def thin_tails() -> Iterator[tuple[tuple[str, str, str], Problem]]:
    """List 288 problems whose priors fade away, each with its class: prior, outputs, and penalty.

    Poisson of mean 5, 30 trials of chance 0.1, a normal of deviation 3, a geometric, on the line, between the first and
    the last label, or from one deviation below the mean to two above it. At a finite bias penalty the multipliers of
    labels are charged in proportion to the inverse of their prior.

    Examples
    --------
    >>> kind, problem = next(thin_tails())
    >>> kind, float(f"{problem.prior.min():.0e}"), sum(1 for _ in thin_tails())
    (('poisson', 'line', 'penalty to 100'), 8e-23, 288)
    """
    forty, thirty, normal, sixty = np.arange(41.0), np.arange(31.0), np.arange(-30.0, 31.0), np.arange(60.0)
    gamma = np.vectorize(math.lgamma)
    choices = math.lgamma(31) - gamma(thirty + 1) - gamma(31 - thirty)
    families: dict[str, tuple[Floats, Floats]] = {
        "poisson": (forty, forty * math.log(5) - gamma(forty + 1)),
        "binomial": (thirty, choices + thirty * math.log(0.1) + (30 - thirty) * math.log(0.9)),
        "normal": (normal, -(normal**2) / 18),
        "geometric": (sixty, sixty * math.log(0.4)),
    }
    for family, (labels, logarithms) in families.items():
        weights = np.exp(logarithms - logarithms.max())
        prior = weights / math.fsum(weights)
        mean = float(prior @ labels)
        deviation = math.sqrt(prior @ (labels - mean) ** 2)
        outputs = {
            "line": None,
            "labels": Interval(labels[0], labels[-1]),
            "within": Interval(mean - deviation, mean + 2 * deviation),
        }
        for place, penalty, epsilon in product(outputs, (0.1, 1.0, 3.0, 10.0, 100.0, 1000.0), (0.5, 1.0, 2.0, 4.0)):
            problem = regression(labels, prior, epsilon, bias_penalty=penalty, outputs=outputs[place])
            yield (family, place, "penalty to 100" if penalty <= 100 else "penalty 1000"), problem
