"""Scalar randomizers and ALIBI with more and more classes ([Z25], Appendix B)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np

from optrand.baselines import Alibi
from optrand.theory.engine import Comparison, at_most, cases, claim, draws, equal, false, grid
from optrand.theory.instances import RATIOS, shares
from optrand.theory.sums import total

Row = tuple[Fraction, ...]


def _response(k: int, kept: int, ratio: Fraction) -> tuple[Row, ...]:
    """Return randomized response on the first classes, all others giving one of these."""
    rest = (Fraction(0),) * (k - kept)
    own = [(*(ratio ** (v == y) / (ratio + kept - 1) for v in range(kept)), *rest) for y in range(kept)]
    return (*own, *((*(Fraction(1, kept),) * kept, *rest),) * (k - kept))


def _draw_channel(draw: Random) -> dict[str, Any]:
    k = draw.randint(2, 8)
    rows = [shares([draw.randint(1, 9) + (v == y) * draw.randint(0, 60) for v in range(k)]) for y in range(k)]
    return {"rows": tuple(rows), "ratio": max(max(column) / min(column) for column in zip(*rows, strict=True))}


@claim(
    "Z25 Appendix B.1",
    cases(
        "rows ratio",
        *((_response(k, n, ratio), ratio) for k in (2, 3, 10, 30) for ratio in RATIOS for n in sorted({1, 2, k})),
    ),
    draws(300, _draw_channel),
    given="any epsilon-DP randomizer from K classes to the same classes",
)
@false("The same with ``exp(epsilon) / (exp(epsilon) + K)``.", more=1)
def retention_falls_as_one_over_k(rows: tuple[Row, ...], ratio: Fraction, more: int = 0) -> Comparison:
    """Averaged over all labels alike, a label is kept with probability at most ``exp(epsilon) / K``."""
    k = len(rows)
    return at_most(total(row[y] for y, row in enumerate(rows)) / k, ratio / (k + more * ratio))


def _fits(noisy: Row) -> list[Fraction]:
    """Return minus the distance from the one-hot vector of each class: the paper's ``f``, in ``O(K^2)``."""
    return [-total(abs(x - (j == c)) for j, x in enumerate(noisy)) for c in range(len(noisy))]


NOISY = (
    *(
        grid(noisy=[*product(map(Fraction, ("0", "1", "2", "-1", "1/2")), repeat=k)], epsilon=(1.0, 100.0))
        for k in (2, 3)
    ),
    draws(
        150,
        lambda draw: {
            "noisy": tuple(Fraction(draw.randint(-30, 40), 10) for _ in range(draw.randint(2, 12))),
            "epsilon": draw.choice((0.1, 1.0, 4.0, 20.0)),
        },
    ),
)


@claim("Z25 Equation 29", *NOISY, given="a uniform prior; the soft label of the package, too")
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
    soft = [weights / weights.sum(), alibi.soft_labels([float(x) for x in noisy])]
    return equal(soft, densities / densities.sum(), tolerance=1e-12, scale=1)


@claim("Z25 Equation 30", *NOISY, given="a uniform prior, any noisy vector; the first class is the true one")
@false("It is at most half of that.", share=2)
def truth_has_rivals(noisy: Row, epsilon: float, share: int = 1) -> Comparison:
    """The soft label of the truth is at most one over the number of other classes that fit as well.

    One over none is infinite.
    """
    fits = _fits(noisy)
    soft = Alibi(len(noisy), epsilon).soft_labels([float(x) for x in noisy])[0]
    return at_most(share * float(soft) * sum(fit >= fits[0] for fit in fits[1:]), 1, tolerance=1e-12)


@claim("Z25 Equation 30: second step", *NOISY, given="any noisy vector; the first class is the true one")
@false("At most as many: what fits as well is as high.", swapped=True)
def as_high_fits_as_well(noisy: Row, *, swapped: bool = False) -> Comparison:
    """At least as many other classes fit as well as have a noisy coordinate that is as high."""
    fit, high = (sum(x >= values[0] for x in values[1:]) for values in (_fits(noisy), noisy))
    return at_most(fit, high) if swapped else at_most(high, fit)


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
    return at_most(largest / Fraction(Alibi(k, spent * epsilon).scale), epsilon, tolerance=1e-12)


@claim(
    "Z25 Appendix B.2: decay",
    k=(2, 3, 10, 100, 1_000, 100_000),
    epsilon=(1.0, 0.1, 4.0, 10.0),
    given='all labels are the same, a uniform prior, "nearly" up to a factor of exp(epsilon)',
)
@false(
    'The mean soft label of the truth is 2 / `K` of what it is with two classes: inversely, without "nearly".',
    lambda k, epsilon: equal(mean_soft_label(k, epsilon) * k, mean_soft_label(2, epsilon) * 2, tolerance=1e-8),
)
def the_truth_decays_as_posteriors_do(k: int, epsilon: float) -> Comparison:
    """The mean soft label of the truth decays nearly inversely with `K`, from ``1 / K`` up to ``exp(epsilon) / K``.

    More closely, it is between ``1 / K`` and ``exp(epsilon) / (exp(epsilon) + K - 1)``: no epsilon-DP randomizer admits
    a larger posterior probability under a uniform prior, the paper's own included.
    """
    truth = mean_soft_label(k, epsilon)
    return at_most([1 / k, truth], [truth, 1 / (1 + (k - 1) * math.exp(-epsilon))], tolerance=1e-8)
