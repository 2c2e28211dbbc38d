"""Scalar randomizers and ALIBI with more and more classes ([Z25], Appendix B)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product

import numpy as np

from optrand.baselines import Alibi
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import RATIOS, Instance, seeded, shares
from optrand.theory.sums import total

__all__ = ["Channel", "Crowd", "Noisy"]


class Channel(Instance):
    """A randomizer from classes to classes: a row of probabilities a label, and the largest ratio in a column."""

    rows: tuple[tuple[Fraction, ...], ...]
    ratio: Fraction


def _channels(budget: Budget) -> Iterator[Channel]:
    """Randomized response on the first classes, all others giving one of these; then any rows."""
    for k, ratio in product((2, 3, 10, 30), RATIOS):
        for kept in sorted({1, 2, k}):
            rest = (Fraction(0),) * (k - kept)
            own = [(*(ratio ** (v == y) / (ratio + kept - 1) for v in range(kept)), *rest) for y in range(kept)]
            other = [(*(Fraction(1, kept),) * kept, *rest)] * (k - kept)
            yield Channel((*own, *other), ratio)
    random = seeded(1)
    for _ in range(budget.pick(quick=300, full=5_000)):
        k = random.randint(2, 8)
        rows = [shares([random.randint(1, 9) + (v == y) * random.randint(0, 60) for v in range(k)]) for y in range(k)]
        yield Channel(tuple(rows), max(max(column) / min(column) for column in zip(*rows, strict=True)))


@claim(
    "Z25 Appendix B.1",
    on=_channels,
    given="any epsilon-DP randomizer from K classes to the same classes",
    sides=("mean probability that a label is kept", "bound"),
    false=Variant("The same with ``exp(epsilon) / (exp(epsilon) + K)``, hardly below what is attained.", more=True),
)
def retention_falls_as_one_over_k(channel: Channel, *, more: bool = False) -> Comparison:
    """Averaged over all labels alike, a label is kept with probability at most ``exp(epsilon) / K``."""
    k = len(channel.rows)
    return at_most(total(row[y] for y, row in enumerate(channel.rows)) / k, channel.ratio / (k + more * channel.ratio))


class Noisy(Instance, coordinates="o"):
    """A one-hot vector plus noise of scale ``2 / epsilon``; the first class is the true one."""

    coordinates: tuple[Fraction, ...]
    epsilon: float

    @cached_property
    def soft(self) -> list[float]:
        """The soft label, as the package computes it."""
        soft = Alibi(len(self.coordinates), self.epsilon).soft_labels([float(x) for x in self.coordinates])
        return [float(share) for share in soft]

    @cached_property
    def fits(self) -> tuple[Fraction, ...]:
        """For each class, minus the distance from its one-hot vector: the paper's ``f``, in ``O(K^2)``."""
        o = self.coordinates
        return tuple(-total(abs(x - (j == c)) for j, x in enumerate(o)) for c in range(len(o)))


def _noisy(budget: Budget) -> Iterator[Noisy]:
    for k in (2, 3):
        for coordinates in product(map(Fraction, ("0", "1", "2", "-1", "1/2")), repeat=k):
            yield from (Noisy(coordinates, epsilon) for epsilon in (1.0, 1e-6, 100.0))
    random = seeded(29)
    for _ in range(budget.pick(quick=300, full=10_000)):
        coordinates = tuple(Fraction(random.randint(-30, 40), 10) for _ in range(random.randint(2, 12)))
        yield Noisy(coordinates, random.choice((0.1, 1.0, 4.0, 20.0)))


@claim(
    "Z25 Equation 29",
    on=_noisy,
    given="a uniform prior",
    sides=("posterior probability of a class", "softmax of the scores"),
    false=Variant("The same with ``2 o_c`` for ``f(c)``: right where all coordinates are in [0, 1].", clipped=False),
)
def soft_labels_are_posteriors(noisy: Noisy, *, clipped: bool = True) -> Comparison:
    """Under a uniform prior the probability of class ``c``, given its noisy vector, is a softmax of ``f(c) / lambda``.

    ``f(c)`` is minus the distance of the noisy vector from the one-hot vector of ``c``. So it is in the package, too.
    """
    o, scale = noisy.coordinates, Alibi(len(noisy.coordinates), noisy.epsilon).scale
    scores = noisy.fits if clipped else tuple(2 * x for x in o)
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    densities = [
        math.prod(math.exp(-abs(x - (j == c)) / scale) / (2 * scale) for j, x in enumerate(o)) for c in range(len(o))
    ]
    posteriors = [density / sum(densities) for density in densities]
    pairs = zip(posteriors * 2, [*(weight / sum(weights) for weight in weights), *noisy.soft], strict=True)
    return worst(*(equal(posterior, share, tolerance=1e-12, scale=1) for posterior, share in pairs))


@claim(
    "Z25 Equation 30",
    on=_noisy,
    given="a uniform prior, any noisy vector; one over none is infinite",
    sides=("soft label times its rivals, or classes as high", "1, or rivals (count)"),
    false=Variant("The same, the second step the other way round: who fits as well is as high.", swapped=True),
)
def truth_has_rivals(noisy: Noisy, *, swapped: bool = False) -> Comparison:
    """The soft label of the truth is at most one over the number of other classes that fit as well.

    And that is at most one over the number of other classes whose noisy coordinate is as high.
    """
    fit, high = (sum(x >= values[0] for x in values[1:]) for values in (noisy.fits, noisy.coordinates))
    second = at_most(fit, high) if swapped else at_most(high, fit)
    return worst(at_most(noisy.soft[0] * fit, 1, tolerance=1e-12), second)


class Crowd(Instance, k="K"):
    """`k` classes, of which the first is the true one, and noise of scale ``2 / epsilon``."""

    k: int
    epsilon: float

    @cached_property
    def truth(self) -> float:
        r"""The mean soft label of the true class, of up to 100,000 classes within 1e-8.

        The soft label of class ``c`` is :math:`x_c / \sum_{c'} x_{c'}` with independent :math:`x_c = \exp(\epsilon \,
        \mathrm{clip}(o_c, 0, 1))`. Since :math:`1 / s = \int_0^\infty e^{-t s} dt`, its mean is an integral, here over
        :math:`\log t`, of products of one-class means. Under the truth, the law of :math:`x` is that of the other
        classes times :math:`x e^{-\epsilon / 2}`.
        """
        nodes, weights = np.polynomial.legendre.leggauss(160)
        between = (nodes + 1) / 2
        density = weights / 2 * self.epsilon / 4 * np.exp(-self.epsilon * between / 2)
        masses = np.concatenate(([0.5], density, [0.5 * math.exp(-self.epsilon / 2)]))
        x = np.exp(self.epsilon * np.concatenate(([0.0], between, [1.0])))
        # Outside of these logarithms of K t the integrand is below rounding, up to epsilon 16.
        logarithms, step = np.linspace(-60.0, 6.0, 1_600, retstep=True)
        times = np.exp(logarithms) / self.k
        decay = np.exp(-np.outer(times, x))
        own, other = decay @ (masses * x**2) * math.exp(-self.epsilon / 2), decay @ masses
        return float((times * own * other ** (self.k - 1)).sum() * step)


def _small_crowds(budget: Budget) -> Iterator[Crowd]:
    epsilons = (1.0, 1e-6, 0.01, 0.1, 0.5, 2.0, 4.0, 9.0, 100.0)
    yield from (Crowd(k, epsilon) for k in range(2, budget.pick(quick=5, full=6)) for epsilon in epsilons)


@claim(
    "Z25 Appendix B.2: privacy",
    on=_small_crowds,
    given="noise in real numbers, of scale 2 / epsilon: the paper refers to another one for it",
    sides=("largest logarithm of a ratio of densities", "epsilon"),
    false=Variant("The same with noise of scale ``1 / epsilon``: one coordinate forgotten.", spent=2),
)
def noise_of_two_over_epsilon_is_private(crowd: Crowd, spent: int = 1) -> Comparison:
    """The one-hot vector with Laplace noise of scale ``lambda = 2 / epsilon`` on each coordinate is epsilon-DP."""
    # The logarithm of the ratio of two densities is piecewise linear in every coordinate, and constant outside of 0, 1.
    points = product((-1, 0, 1, 2), repeat=crowd.k)
    rows = ([sum(abs(x - (j == y)) for j, x in enumerate(o)) for y in range(crowd.k)] for o in points)
    largest = max(z - y for row in rows for y, z in permutations(row, 2))
    return at_most(largest / Fraction(Alibi(crowd.k, spent * crowd.epsilon).scale), crowd.epsilon, tolerance=1e-12)


def _crowds(budget: Budget) -> Iterator[Crowd]:
    sizes = budget.pick(quick=(2, 3, 10, 100, 1_000, 100_000), full=(2, 3, 4, 5, 7, 10, 30, 100, 300, 10**3, 10**5))
    epsilons = budget.pick(quick=(1.0, 0.1, 4.0, 10.0), full=(1.0, 0.01, 0.1, 0.5, 2.0, 4.0, 6.0, 9.0, 12.0, 16.0))
    yield from (Crowd(k, epsilon) for k in sizes for epsilon in epsilons)


@claim(
    "Z25 Appendix B.2: decay",
    on=_crowds,
    given='all labels are the same, a uniform prior, "nearly" up to a factor of exp(epsilon)',
    sides=("mean soft label of the truth, or 1 / K", "bound, or mean soft label"),
    false=Variant(
        'The mean soft label of the truth is 2 / `K` of what it is with two classes: inversely, without "nearly".',
        lambda crowd: equal(crowd.truth * crowd.k, Crowd(2, crowd.epsilon).truth * 2, tolerance=1e-8),
    ),
)
def the_truth_decays_as_posteriors_do(crowd: Crowd) -> Comparison:
    """The mean soft label of the truth decays nearly inversely with `K`, from ``1 / K`` up to ``exp(epsilon) / K``.

    More closely, it is between ``1 / K`` and ``exp(epsilon) / (exp(epsilon) + K - 1)``: no epsilon-DP randomizer admits
    a larger posterior probability under a uniform prior, the paper's own included.
    """
    ends = 1 / crowd.k, 1 / (1 + (crowd.k - 1) * math.exp(-crowd.epsilon))
    return worst(*(at_most(*each, tolerance=1e-8) for each in ((crowd.truth, ends[1]), (ends[0], crowd.truth))))
