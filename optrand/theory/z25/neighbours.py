"""Nearest neighbours learn the means of bits: each step of the bound, and rates ([Z25], eqs. 33 to 36, Appendix C.1).

Rates are not decided, because their constants have no names. Checked are their steps and the trend of exact excess
risks.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from functools import cache
from random import Random
from typing import Any

import numpy as np

from optrand.base._arithmetic import exp_bracket, log_bracket
from optrand.base._validation import Floats
from optrand.baselines import UnaryBits
from optrand.theory._engine import TOLERANCE, Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import Row, binomial, bit_sums, total
from optrand.theory.z25.bits import bit_mean, gain

TWELFTHS = tuple(F(n, 12) for n in range(13))


@claim(
    "Z25 Equation 33",
    grid(distances=[(1,)], here=(1, F(0)), there=[(1,)], bits=[(0,), (1,)], odds=[F(2), F(50)]),
    draws(
        120,
        there=lambda draw: draw.choices(TWELFTHS, k=draw.randint(1, 6)),
        distances=lambda draw, there: [F(d, 10) for d in sorted(draw.sample(range(1, 20), len(there)))],
        bits=lambda draw, there: draw.choices((0, 1), k=len(there)),
        here=TWELFTHS,
        odds=[F(n, 10) for n in range(11, 71)],
    ),
    given="probabilities that are Lipschitz, neighbours on the line",
)
@corrected("The output is as near to the mean of a bit of its class: a tilde is lost.", tilde=True)
@false("As corrected, with the distance of the nearest neighbour.", tilde=True, far=0)
def outputs_are_near(
    distances: Row, here: F, there: Row, bits: Row, odds: F, *, tilde: bool = False, far: int = -1
) -> Comparison:
    """The output is within noise plus ``(r - 1) / (r + 1) L rho`` of the probability of its class.

    ``rho`` is the distance of the farthest neighbour, ``L`` the Lipschitz constant, ``r = exp(epsilon / 2)``. Noise is
    the distance of the bits' average from its mean.
    """
    output = total(map(F, bits)) / len(bits)
    noise = abs(output - total(bit_mean(p, odds) for p in there) / len(bits))
    known = [(F(0), here), *zip(distances, there, strict=True)]
    slope = max(abs(p - q) / (b - a) for a, p in known for b, q in known if a < b)
    centre = bit_mean(here, odds) if tilde else here
    return at_most(abs(output - centre), noise + gain(odds) * slope * distances[far])


def deviates(means: Row, logarithm: F) -> F:
    """Return the probability that bits average farther than ``sqrt(logarithm / (2 k))`` from the mean of `means`."""
    chances = bit_sums(np.array(means, dtype=object))
    return total(p for n, p in enumerate(chances) if 2 * (n - sum(means)) ** 2 > len(means) * logarithm)


def _tails(draw: Random) -> list[tuple[Row, F]]:
    """Return probabilities just above those at which Hoeffding's inequality counts one more number of ones."""
    found = []
    for k in (1, 2, 3, 5, 8):
        for odds in (F(2), F(11, 10)):
            mixed = tuple(bit_mean(F(draw.randint(0, 6), 6), odds) for _ in range(k))
            for means in ((F(1, 2),) * k, (bit_mean(F(1), odds),) * k, mixed):
                for ones in range(k + 1):
                    tail = exp_bracket(-2 * float((ones - sum(means)) ** 2) / k)[1] * F(1001, 1000)
                    found += [(means, each.limit_denominator(10**9)) for each in (2 * tail, tail)]
    return found


@claim(
    "Z25 Equation 34",
    cases("means allowed", *_tails(Random(34))),  # noqa: S311
    given="independent bits, allowed is delta / K, up to a half",
    where=lambda allowed: allowed <= F(1, 2),
)
@false("The same with ``ln(K / delta)``: as if the average were off to one side.", sides=1)
def averages_of_bits_are_near(means: Row, allowed: F, sides: int = 2) -> Comparison:
    """An average of `k` bits is ``sqrt(ln(2 K / delta) / (2 k))`` off with a chance of at most ``delta / K``."""
    return at_most(deviates(means, log_bracket(sides / allowed)[0]), allowed)


@claim(
    "Z25 Equation 35",
    k=(1, 2, 3, 5, 10, 20, 40),
    times=(2, 3, 5, 10),
    given="features with a density, N a multiple of k, at least 2 k: for smaller N there is no such ball",
)
@false("The same with ``exp(-k / 2)``.", rate=0.5)
def neighbours_are_in_the_ball(k: int, times: int, rate: float = 1 - math.log(2)) -> Comparison:
    """The `k`-th neighbour is outside of the ball of mass ``2 k / N`` with probability at most ``exp(-(1 - ln 2) k)``.

    That is, fewer than `k` of `N` records are inside.
    """
    n, mass = k * times, F(2, times)
    outside = total(math.comb(n, i) * mass**i * (1 - mass) ** (n - i) for i in range(k))
    return at_most(float(outside), math.exp(-rate * k))


def constant_exceeds(classes: int, k: int, epsilon: float, allowed: float) -> float:
    """Return the probability that some class has such an error, if all labels are the same: bits are independent."""
    right = float(1 - UnaryBits(classes, epsilon).flip)
    off = np.abs(np.arange(k + 1) / k - right) > allowed * (1 - 1e-9)
    one = min(1.0, float(bit_sums(np.full(k, right))[off].sum()))
    return 1.0 if one == 1 else -math.expm1(classes * math.log1p(-one))


@claim(
    "Z25 Equation 36",
    k=(1, 2, 5, 30, 100),
    classes=(2, 10, 1_000, 1_000_000),
    epsilon=(1.0, 0.1, 4.0),
    delta=(0.5, 0.01),
    given="all labels are the same, so that L is 0, features with a density, N at least 2 k",
)
@false("The same with ``ln(2 / delta)``: without a union over the classes.", union=False)
def outputs_are_near_for_all(k: int, epsilon: float, delta: float, classes: int, *, union: bool = True) -> Comparison:
    """With high probability no error exceeds ``sqrt(ln(2 K / delta) / (2 k)) + (r - 1) / (r + 1) L r_0``.

    The probability of a larger one is at most ``delta + exp(-(1 - ln 2) k)``. ``r_0`` is where the ball of mass ``2 k /
    N`` ends.
    """
    allowed = math.sqrt(math.log(2 * (classes if union else 1) / delta) / (2 * k))
    bound = delta + math.exp((math.log(2) - 1) * k)
    return at_most(constant_exceeds(classes, k, epsilon, allowed), bound, tolerance=TOLERANCE.proven)


def balance_errors(dimension: int, size: float, epsilon: float, *, shrinking: int = 0) -> tuple[float, float]:
    """Return the `k` that minimizes ``k**(-1/2) + epsilon r_0``, where its derivative is zero, and that error.

    This is what remains of eq. 36 without constants and logarithms, with ``r_0 = epsilon**shrinking (k / N)**(1/d)``.
    """
    slope = epsilon ** (1 + shrinking) * size ** (-1 / dimension)
    k = (dimension / (2 * slope)) ** (2 * dimension / (dimension + 2))
    return k, k**-0.5 + slope * k ** (1 / dimension)


@claim(
    "Z25 Appendix C.1: best k",
    dimension=(1, 2, 5),
    size=(1e2, 1e4, 1e8),
    epsilon=(1.0, 0.5, 0.1, 0.01),
    given="epsilon at most 1, the bound without constants and logarithms, any real k, one constant per dimension",
)
@corrected("The same since ``r_0`` is of the order ``(k / N)**(1/d)``: no ball depends on epsilon.", shrinking=0)
@false("As corrected, with ``N epsilon`` for ``N epsilon**2`` in the error.", shrinking=0, power=1)
def errors_balance(dimension: int, size: float, epsilon: float, shrinking: int = 1, power: int = 2) -> Comparison:
    """Since ``r_0`` is of the order ``epsilon (k / N)**(1/d)``, the best `k` is ``epsilon**(-2d/(d+2)) N**(2/(d+2))``.

    The error is then ``epsilon`` times ``(N epsilon**2)**(-1/(d+2))``.
    """
    d = dimension
    best = balance_errors(d, size, epsilon, shrinking=shrinking)
    one, least = balance_errors(d, 1.0, 1.0, shrinking=shrinking)
    k = one * epsilon ** (-2 * d / (d + 2)) * size ** (2 / (d + 2))
    return equal(best, [k, epsilon * least * (size * epsilon**power) ** (-1 / (d + 2))], tolerance=TOLERANCE.floats)


MIDDLES = (np.arange(100) + 0.5) / 100
"""Features at which the excess risk is computed."""


def _count_neighbours(size: int, epsilon: float) -> int:
    return round(math.pow(size / epsilon, 2 / 3))


def _nearest(size: int, k: int, places: Floats) -> Floats:
    records = (np.arange(size) + 0.5) / size
    order = np.argsort(np.abs(records - places[:, np.newaxis]), axis=1, kind="stable")
    return np.take(records, np.sort(order[:, :k], axis=1))


@cache
def excess_with_two_classes(size: int, epsilon: float) -> float:
    """Return the excess risk for two classes that cross in the middle, the slope twice as large right of it.

    Equal votes are for the first class. Each neighbour votes ``Z(2) - Z(1)``: -1, 0 or 1.
    """
    k, right = _count_neighbours(size, epsilon), float(1 - UnaryBits(2, epsilon).flip)
    places = (MIDDLES, _nearest(size, k, MIDDLES))
    eta, etas = (np.clip(0.5 + np.maximum(x - 0.5, 2 * (x - 0.5)), 0, 1) for x in places)
    sums = np.zeros((eta.size, 2 * k + 1))
    sums[:, k] = 1.0
    for near in etas.T[:, :, np.newaxis]:
        fall, rise = (p * right**2 + (1 - p) * (1 - right) ** 2 for p in (near, 1 - near))
        sums = sums * (1 - rise - fall) + np.roll(sums, 1, axis=1) * rise + np.roll(sums, -1, axis=1) * fall
    second = sums[:, k + 1 :].sum(axis=1)
    return float((np.abs(2 * eta - 1) * np.where(eta >= 0.5, second, 1 - second)).mean())


@cache
def excess_with_ties(size: int, epsilon: float) -> float:
    """Return the excess risk for three classes, the first two of probability ``min(1/3 + x, 1/2)`` each.

    In case of a tie the third is not named. Computed at squares of evenly spread numbers, for it is large near 0 alone.
    Neighbours that are not of the third class toss a coin, and the outputs are independent given the number of
    neighbours of each class.
    """
    k, right = _count_neighbours(size, epsilon), float(1 - UnaryBits(3, epsilon).flip)
    places, weights = MIDDLES**2, 2 * MIDDLES / MIDDLES.size
    own, other, halves = ([binomial(m, chance) for m in range(k + 1)] for chance in (right, 1 - right, 0.5))
    outputs = np.array([np.convolve(own[m], other[k - m]) for m in range(k + 1)])
    below = np.cumsum(outputs, axis=1) - outputs
    # The probability that the third class is named, for each number of neighbours that are of it.
    third = [outputs[m] @ (halves[k - m] @ (below[: k - m + 1] * below[k - m :: -1])) for m in range(k + 1)]
    thirds = bit_sums(1 - 2 * np.minimum(1 / 3 + _nearest(size, k, places), 0.5)) @ np.array(third)
    return float((weights * (3 * np.minimum(1 / 3 + places, 0.5) - 1) * thirds).sum())


@claim(
    "Z25 Appendix C.1: rate with a margin",
    cases(
        "excess size after epsilon gamma",
        *((excess_with_two_classes, n, 4 * n, epsilon, 1) for n in (256, 512) for epsilon in (1.0, 0.5)),
        (excess_with_ties, 2_048, 8_192, 1.0, 2),
    ),
    given="records evenly spread on [0, 1], two classes (eta_1 = x up to 1/2, then min(2 x - 1/2, 1)) or three "
    "classes (eta_1 = eta_2 = min(1/3 + x, 1/2)), for which any gamma is as printed",
    undecided="constants without a name, all distributions with such a margin",
)
@corrected("The same if the gap is that to the likeliest class that is not itself best: gamma is 1.", gamma=1)
@false("As corrected, with gamma = 2.", gamma=2)
def excess_falls_with_the_margin(excess: Any, size: int, after: int, epsilon: float, gamma: int) -> Comparison:
    """Where gaps above 0 and below `t` have a probability of the order of ``t**gamma``, excess risk falls faster.

    Namely as ``(N epsilon**2)**(-(1 + gamma)/(d+2))``. The gap is that between the two likeliest classes.
    """
    scale = (after / size * epsilon**2) ** ((1 + gamma) / 3)
    # Numbers of neighbours are whole: hence the tolerance.
    return at_most(excess(after, epsilon) * scale, excess(size, 1.0), tolerance=0.05)
