"""Labels as vectors of random bits, and scalar rivals: privacy, cost, excess risk ([Z25], 3, 4, Appendices B, C.2)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache, cached_property, lru_cache
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np

from optrand.base._arithmetic import exp_bracket
from optrand.baselines import Alibi, UnaryBits
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import Row, Table, largest_ratio, prior, push_forward, shares, times, total
from optrand.theory.g21.response import CHANNELS

Vector = tuple[int, ...]
Learner = Callable[[tuple[Vector, ...]], object]

EPSILONS = (1.0, 0.1, 2.0, 4.0, 1e-6, 10.0, 40.0)


@lru_cache(maxsize=4096)
def law(k: int, epsilon: float, y: int) -> dict[Vector, F]:
    """Return the probability of every vector under label `y`, from the coins of the randomizer."""
    flip = UnaryBits(k, epsilon).flip
    vectors = product((0, 1), repeat=k)
    return {z: times(1 - flip if bit == (j == y) else flip for j, bit in enumerate(z)) for z in vectors}


def gain(odds: F) -> F:
    """Return the slope of a bit's mean in the probability of its class."""
    return (odds - 1) / (odds + 1)


def bit_mean(eta: Any, odds: F) -> Any:
    """Return the mean of a bit whose class has probability `eta`, or of several ([Z25], eq. 24)."""
    return 1 / (1 + odds) + gain(odds) * eta


def _mix(eta: Row, epsilon: float) -> dict[Vector, F]:
    laws = [law(len(eta), epsilon, y) for y in range(len(eta))]
    return push_forward(((z, p * q) for p, each in zip(eta, laws, strict=True) for z, q in each.items()), tuple)


WEIGHTS = ([1, 1], [1, 0], [2, 1], [1, 1, 1], [1, 0, 0], [3, 2, 1])

ETAS = (
    grid(eta=map(shares, WEIGHTS), epsilon=EPSILONS),
    draws(40, eta=lambda draw: prior(draw, draw.randint(2, 5)), epsilon=[n / 20 for n in range(1, 91)]),
)


@claim("Z25 Theorem 1", k=(2, 3, 4, 5), epsilon=EPSILONS, given="at least two classes, any epsilon above 0")
@false("The same with each bit exp(epsilon) times likelier right than wrong.", share=2)
def two_bits(k: int, epsilon: float, share: int = 1) -> Comparison:
    """If each bit is exp(epsilon / 2) times likelier right than wrong, no vector has a ratio above exp(epsilon)."""
    return at_most(largest_ratio([law(k, share * epsilon, y) for y in range(k)]), exp_bracket(epsilon)[0])


def everything(vectors: tuple[Vector, ...]) -> object:
    return vectors


def votes(vectors: tuple[Vector, ...]) -> object:
    """Return the class of most bits, the first one of equal ones."""
    sums = [sum(bits) for bits in zip(*vectors, strict=True)]
    return sums.index(max(sums))


def learn(labels: Vector, k: int, epsilon: float, learner: Learner, rounds: int = 1) -> dict[object, F]:
    """Return the law of the learner's result if each label is randomized `rounds` times."""
    vectors = product(*(law(k, epsilon, y).items() for y in labels * rounds))
    return push_forward(((tuple(z for z, _ in each), times(p for _, p in each)) for each in vectors), learner)


@claim(
    "Z25 Section 3.1: local to central",
    grid(labels=[(0,), (0, 0, 0), (0, 1, 0)], k=[2], epsilon=(1.0, 0.1, 4.0), learner=(everything, votes)),
    grid(labels=[(0, 0), (0, 1)], k=[3], epsilon=(1.0, 0.1, 4.0), learner=(everything, votes)),
    given="small datasets, vectors of Theorem 1, algorithms that return all vectors, or the class of most bits",
)
@false("The same if a label is randomized anew in each of two rounds.", rounds=2)
def local_is_central(labels: Vector, k: int, epsilon: float, learner: Learner, rounds: int = 1) -> Comparison:
    """The result of any algorithm on the randomized labels is epsilon-DP for a change of one label of the dataset."""
    laws = [learn((first, *labels[1:]), k, epsilon, learner, rounds) for first in (labels[0], k - 1)]
    return at_most(largest_ratio(laws), exp_bracket(epsilon)[0])


@claim("Z25 Equation 24", *ETAS, given="any distribution of the label, any epsilon above 0")
@false("The same with `r / (r + 1)` for `(r - 1) / (r + 1)`: without the noise of other bits.", lost=0)
def bits_tell_the_class(eta: Row, epsilon: float, lost: int = 1) -> Comparison:
    """Bit ``j`` is 1 with probability ``1 / (1 + r) + eta_j (r - 1) / (r + 1)``, where ``r = exp(epsilon / 2)``."""
    r = UnaryBits(len(eta), epsilon).odds
    mixture = _mix(eta, epsilon).items()
    means = [total(p for z, p in mixture if z[j]) for j in range(len(eta))]
    return equal(means, [1 / (1 + r) + (r - lost) / (r + 1) * p for p in eta])


@claim("Z25 Equation 44", *ETAS, given="any law of the label, any epsilon")
@false("The same with the probability of the class in place of the mean of its bit.", noisy=False)
def cross_entropy(eta: Row, epsilon: float, *, noisy: bool = True) -> Comparison:
    """Output `u` for a bit of mean `m` has the expected loss ``-m ln u - (1 - m) ln(1 - u)``."""
    mean = bit_mean(eta[0], UnaryBits(len(eta), epsilon).odds) if noisy else eta[0]
    mixture, outputs = _mix(eta, epsilon).items(), [n / 12 for n in range(1, 12)]
    losses = [math.fsum(-float(p) * math.log(u if z[0] else 1 - u) for z, p in mixture) for u in outputs]
    entropies = [-float(mean) * math.log(u) - float(1 - mean) * math.log(1 - u) for u in outputs]
    return equal(losses, entropies, tolerance=TOLERANCE.floats)


@dataclass(frozen=True, eq=False)
class Task:
    """Points, class probabilities there, ``exp(epsilon / 2)``, and models with their probabilities.

    The outputs of a model estimate the means of bits, shape (models, points, classes). It names the first class with
    the largest output.
    """

    masses: Table
    etas: Table
    odds: F
    chances: Table
    outputs: Table

    @property
    def mass(self) -> Table:
        """The probability of each model together with each point."""
        return np.outer(self.chances, self.masses)

    @cached_property
    def named(self) -> Table:
        return self.outputs.argmax(axis=2)

    @cached_property
    def lack(self) -> Table:
        """Distance of the probability of the named class from the largest."""
        return self.etas.max(axis=1) - self.etas[np.arange(len(self.etas)), self.named]

    @cached_property
    def gap(self) -> Table:
        """Distance of the second class from the likeliest."""
        ordered = np.sort(self.etas, axis=1)
        return np.broadcast_to(ordered[:, -1] - ordered[:, -2], self.lack.shape)

    @cached_property
    def error(self) -> Table:
        """``Delta_epsilon``, for each model and point."""
        return abs(self.outputs - bit_mean(self.etas, self.odds)).max(axis=2) / gain(self.odds)

    @cached_property
    def excess(self) -> F:
        """The probability of a wrong class less the least of all classifiers, which are all tried."""
        size, k = self.etas.shape
        least = min(map(self._risk, product(range(k), repeat=size)))
        return total(chance * self._risk(row) for chance, row in zip(self.chances, self.named, strict=True)) - least

    def _risk(self, classifier: Sequence[int]) -> F:
        return total(self.masses * (1 - self.etas[np.arange(len(self.etas)), list(classifier)]))


def _draw_task(draw: Random) -> Task:
    k, size = draw.randint(2, 4), draw.randint(1, 3)
    # Small weights, so that ties are common.
    weights = [[draw.randint(0, 4) for _ in range(k)] for _ in range(size)]
    etas = np.array([shares(each if any(each) else [1] * k) for each in weights])
    odds = 1 + F(draw.randint(1, 40), 10)
    chances = shares([draw.randint(1, 4) for _ in range(draw.randint(1, 3))])
    errors = [F(draw.choice((0, 1, 2, 4, 8)) * draw.randint(-2, 2), 80) for _ in range(len(chances) * size * k)]
    outputs = bit_mean(etas + np.array(errors).reshape(-1, size, k), odds)
    return Task(np.array(shares([draw.randint(1, 5) for _ in range(size)])), etas, odds, np.array(chances), outputs)


def _list_misled_tasks() -> Iterator[Task]:
    """Yield models that estimate the best class too low by an error and the others too high."""
    odds, errors = (map(F, texts.split()) for texts in ("2 1000001/1000000 10000000000", "1/10 3/20 0 1/20 1/2"))
    sure = np.array([F(1)])
    for weights, r, error in product(((2, 3), (1, 1), (1, 2, 2), (1, 3, 2), (0, 1)), odds, errors):
        etas = np.array([shares(weights)])
        yield Task(sure, etas, r, sure, bit_mean(etas + error * (1 - 2 * (etas == etas.max())), r)[np.newaxis])


TASKS = _list_misled_tasks, Draws(60, _draw_task)


def _lose_by_majority(task: Task) -> Comparison:
    """Compare the excess risk with the mean lack of the class that most models name at a point."""
    votes = np.array([task.chances @ (task.named == y) for y in range(task.etas.shape[1])])
    best = task.etas[np.arange(len(task.etas)), votes.argmax(axis=0)]
    return equal(task.excess, total(task.masses * (task.etas.max(axis=1) - best)))


@claim("Z25 Proposition 1", *TASKS, given="a classifier learned from a sample independent of the test data")
@false("The same of the class that most models name.", _lose_by_majority)
def excess_is_mean_lack(task: Task) -> Comparison:
    """The excess risk is the mean, over points and models, of how far the named class is from the likeliest one."""
    return equal(task.excess, total((task.mass * task.lack).flat))


@claim("Z25 Theorem 2", *TASKS, given="any model of the means of bits, any epsilon above 0")
@false("The same if the gap is less than ``2 Delta_epsilon``.", near=operator.lt)
def excess_needs_a_small_gap(task: Task, near: Callable[[Any, Any], Table] = operator.le) -> Comparison:
    """The excess risk is at most the mean of ``2 Delta_epsilon`` where the two likeliest classes are no further apart.

    ``Delta_epsilon`` is the largest error of a bit's mean times ``(r + 1) / (r - 1)``, where ``r = exp(epsilon / 2)``.
    """
    return at_most(task.excess, total((task.mass * 2 * task.error)[near(task.gap, 2 * task.error)]))


def _lacks(task: Task, factor: int, below: Callable[[Any, Any], Table] = operator.lt) -> list[F]:
    return list(task.lack[below(factor * task.error, task.gap)])


@claim(
    "Z25 Section 1: gap",
    *TASKS,
    given="class probabilities estimated from the debiased outputs, the error the largest over the classes",
    where=lambda task: _lacks(task, 1),
)
@corrected("The named class is best wherever twice the error is below the gap.", where=lambda t: _lacks(t, 2), factor=2)
@false(
    "The named class is best wherever twice the error is at most the gap.",
    where=lambda task: _lacks(task, 2, operator.le),
    factor=2,
    below=operator.le,
)
def small_errors_are_safe(task: Task, factor: int = 1, below: Callable[[Any, Any], Table] = operator.lt) -> Comparison:
    """The named class is best wherever the error is below the gap of the two likeliest classes."""
    return equal(_lacks(task, factor, below), 0)


@claim("Z25 Equation 27", *TASKS, given="as in Theorem 2, whose proof it is")
@false("The same with ``2 Delta``, which is not debiased.", debiased=False)
def mistakes_need_a_small_gap(task: Task, *, debiased: bool = True) -> Comparison:
    """At each point the named class lacks at most ``2 Delta_epsilon``, and nothing where the gap is larger than that.

    The lack is the distance of its probability from the largest, the gap that of the two largest.
    """
    limits = 2 * task.error * (1 if debiased else gain(task.odds))
    return at_most(task.lack, np.where(task.gap <= limits, limits, 0))


@claim("Z25 Appendix B.1", *CHANNELS, given="any epsilon-DP randomizer from K classes to the same classes")
@false("The same with ``exp(epsilon) / (exp(epsilon) + K)``.", more=1)
def retention_falls_as_one_over_k(rows: tuple[Row, ...], ratio: F, more: int = 0) -> Comparison:
    """Averaged over all labels alike, a label is kept with probability at most ``exp(epsilon) / K``."""
    k = len(rows)
    return at_most(total(row[y] for y, row in enumerate(rows)) / k, ratio / (k + more * ratio))


def _fits(noisy: Row) -> list[F]:
    """Return minus the distance from the one-hot vector of each class: the paper's ``f``, in ``O(K^2)``."""
    return [-total(abs(x - (j == c)) for j, x in enumerate(noisy)) for c in range(len(noisy))]


NOISY = (
    *(grid(noisy=[*product(map(F, ("0", "1", "2", "-1/2")), repeat=k)], epsilon=(1.0, 100.0)) for k in (2, 3)),
    draws(
        80,
        noisy=lambda draw: tuple(F(draw.randint(-30, 40), 10) for _ in range(draw.randint(2, 12))),
        epsilon=(0.1, 1.0, 4.0, 20.0),
    ),
)


@claim("Z25 Equation 29", *NOISY, given="a uniform prior, the soft label of the package, too")
@false("The same with ``2 o_c`` for ``f(c)``: right where all coordinates are in [0, 1].", clipped=False)
def soft_labels_are_posteriors(noisy: Row, epsilon: float, *, clipped: bool = True) -> Comparison:
    """Under a uniform prior the probability of class ``c``, given its noisy vector, is a softmax of ``f(c) / lambda``.

    ``f(c)`` is minus the distance of the noisy vector from the one-hot vector of ``c``.
    """
    alibi = Alibi(len(noisy), epsilon)
    scores = _fits(noisy) if clipped else [2 * x for x in noisy]
    weights = np.exp([float(score - max(scores)) / alibi.scale for score in scores])
    distances = np.abs(np.array(noisy, dtype=float) - np.identity(len(noisy)))
    densities = np.exp(-distances / alibi.scale).prod(axis=1)
    soft = np.array([weights / weights.sum(), alibi.soft_labels([float(x) for x in noisy])])
    return at_most(abs(soft - densities / densities.sum()), TOLERANCE.floats)


@claim("Z25 Equation 30", *NOISY, given="a uniform prior, any noisy vector, the first class the true one")
@false("The soft label is at most half of the former.", share=2)
def truth_has_rivals(noisy: Row, epsilon: float, share: int = 1) -> Comparison:
    """The soft label of the truth is at most one over the number of other classes that fit as well.

    That number is at least that of others whose noisy coordinate is as high. One over 0 is infinite.
    """
    fits, high = (sum(x >= values[0] for x in values[1:]) for values in (_fits(noisy), noisy))
    soft = float(Alibi(len(noisy), epsilon).soft_labels([float(x) for x in noisy])[0])
    return at_most([share * soft * fits, high], [1, fits], tolerance=TOLERANCE.floats)


@cache
def mean_soft_label(k: int, epsilon: float) -> float:
    r"""Return the mean soft label of the true class, of up to 100,000 classes within 1e-8.

    The soft label of class ``c`` is :math:`x_c / \sum_{c'} x_{c'}` with independent :math:`x_c = \exp(\epsilon \,
    \mathrm{clip}(o_c, 0, 1))`. Since :math:`1 / s = \int_0^\infty e^{-t s} dt`, its mean is an integral, here over
    :math:`\log t`, of products of one-class means. Under the truth, the law of :math:`x` is that of the other
    classes times :math:`x e^{-\epsilon / 2}`.
    """
    nodes, weights = np.polynomial.legendre.leggauss(160)
    between = (nodes + 1) / 2
    density = weights / 2 * epsilon / 4 * np.exp(-epsilon * between / 2)
    masses = np.concatenate(([0.5], density, [0.5 * math.exp(-epsilon / 2)]))
    x = np.exp(epsilon * np.concatenate(([0.0], between, [1.0])))
    # Outside of these logarithms of K t the integrand is below rounding, up to epsilon 16.
    logarithms, step = np.linspace(-60.0, 6.0, 1_600, retstep=True)
    t = np.exp(logarithms) / k
    decay = np.exp(-np.outer(t, x))
    own = decay @ (masses * x**2) * math.exp(-epsilon / 2)
    other = decay @ masses
    return float((t * own * other ** (k - 1)).sum() * step)


@claim(
    "Z25 Appendix B.2: privacy",
    k=(2, 3, 4),
    epsilon=(1.0, 1e-6, 0.01, 0.1, 0.5, 2.0, 4.0, 9.0, 100.0),
    given="noise in real numbers, of scale 2 / epsilon: the paper refers to another one for it",
)
@false("The same with noise of scale ``1 / epsilon``.", spent=2)
def noise_of_two_over_epsilon_is_private(k: int, epsilon: float, spent: int = 1) -> Comparison:
    """The one-hot vector with Laplace noise of scale ``lambda = 2 / epsilon`` on each coordinate is epsilon-DP."""
    # The logarithm of the ratio of two densities is piecewise linear in every coordinate, and constant outside of 0, 1.
    points = product((-1, 0, 1, 2), repeat=k)
    rows = ([sum(abs(x - (j == y)) for j, x in enumerate(o)) for y in range(k)] for o in points)
    largest = max(z - y for row in rows for y, z in permutations(row, 2))
    return at_most(largest / F(Alibi(k, spent * epsilon).scale), epsilon, tolerance=TOLERANCE.floats)


@claim(
    "Z25 Appendix B.2: decay",
    k=(2, 3, 10, 100, 1_000, 100_000),
    epsilon=(1.0, 0.1, 4.0, 10.0),
    given='all labels are the same, a uniform prior, "nearly" up to a factor of exp(epsilon)',
)
@false(
    'The mean soft label of the truth is 2 / `K` of that with two classes: inversely, without "nearly".',
    lambda k, epsilon: equal(mean_soft_label(k, epsilon) * k, mean_soft_label(2, epsilon) * 2, tolerance=1e-8),
)
def the_truth_decays_as_posteriors_do(k: int, epsilon: float) -> Comparison:
    """The mean soft label of the truth decays nearly inversely with `K`, from ``1 / K`` up to ``exp(epsilon) / K``.

    More closely, it is between ``1 / K`` and ``exp(epsilon) / (exp(epsilon) + K - 1)``: no epsilon-DP randomizer admits
    a larger posterior probability under a uniform prior, the paper's own included.
    """
    truth = mean_soft_label(k, epsilon)
    return at_most([1 / k, truth], [truth, 1 / (1 + (k - 1) * math.exp(-epsilon))], tolerance=1e-8)
