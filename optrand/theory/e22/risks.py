"""Excess risk on a curator's release ([E22], Lemma 7, Theorem 2, Corollaries 1 and 2).

The constant in these bounds has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N` at a
scale `alpha` that is not said. Classes are tried whose deviations, complexities and excess risks can be summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, smirnovi

from optrand.baselines import LabelRandomization
from optrand.baselines._cluster import cluster_distribution
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, corrected, equal, false, grid
from optrand.theory._shared import Row, total
from optrand.theory.e22.losses import TEMPTING, Contest, Histogram, draw_contest, histograms, noisy_law
from optrand.theory.g21.debiased import correlation

ANY = "any class of hypotheses and population, gamma of at most 1/2"
CONSTANT = "an unnamed constant, over all classes of hypotheses and populations"
GAMMAS = (0.5, 0.05, 1e-4)
THRESHOLDS = f"{ANY}; one number for each example, its label 0, every threshold of numbers as a hypothesis"


@claim("E22 Lemma 7", n=(1, 2, 5, 20, 100, 1_000), gamma=GAMMAS, given=THRESHOLDS, undecided=CONSTANT)
@false("Without the root, of deviations to one side.", power=1.0, sides=1)
def thresholds_deviate_like_roots(n: int, gamma: float, power: float = 0.5, sides: int = 2) -> Comparison:
    """With probability 1 - gamma, mean losses and risks differ by at most C K / (1 - beta) sqrt(dim log(1/gamma) / n).

    Tried without noise, K = 2 and beta = lambda = 0, at a dimension of 1 and C = 1: a deviation to one side with the
    chance ``gamma / 2``, and so one to either side with the chance `gamma`, is no larger.
    """
    return at_most(smirnovi(n, gamma / sides), 2 * math.pow(math.log(1 / gamma) / n, power))


def coins_deviate(n: int, gamma: float) -> float:
    """Return the distance of a mean of `n` fair coins from 1/2 that has the chance `gamma`."""
    heads = np.arange(n + 1)
    return int(heads[bdtrc(heads, n, 0.5) <= gamma / 2 * (1 + TOLERANCE.proven)][0]) / n - 0.5


@claim(
    "E22 Lemma 7: equation 12",
    b=(1, 2, 10, 100),
    n=(1, 10, 100),
    gamma=GAMMAS,
    given="one function, the mean of n fair coins times b; gamma of at most 1/2",
)
@corrected(
    "One function of b-bounded differences deviates, either way, by at most b sqrt(log(2/gamma) / (2 n)).", parts=2
)
@false("The corrected form with 4 n for 2 n.", parts=4)
def differences_count_by_their_root(b: int, n: int, gamma: float, parts: int = 0) -> Comparison:
    """One function of b-bounded differences deviates by at most sqrt(b log(1/gamma) / n) (equation 12)."""
    square = b**2 * math.log(2 / gamma) / (parts * n) if parts else b * math.log(1 / gamma) / n
    return at_most(b * coins_deviate(n, gamma), math.sqrt(square), tolerance=TOLERANCE.proven)


def _hull(values: Sequence[Sequence[int]], b: int) -> list[tuple[int, ...]]:
    """Return twice the combinations whose weights are halves of `b` and have absolute sums of at most `b`."""
    weights = (w for w in product(range(-2, 3), repeat=len(values)) if sum(map(abs, w)) <= 2)
    columns = list(zip(*values, strict=True))
    return [tuple(b * sum(map(int.__mul__, w, column)) for column in columns) for w in weights]


def _draw_functions(draw: Random) -> dict[str, Any]:
    n, count = draw.randint(1, 6), draw.randint(1, 3)
    return {"values": [[draw.randint(0, 4) for _ in range(n)] for _ in range(count)], "b": draw.randint(1, 9)}


@claim(
    "E22 Equation 14",
    grid(values=(((1,),), ((1, 0),), ((1, 0), (0, 1)), ((1, -1), (-1, 1))), b=(1, 2)),
    Draws(60, _draw_functions),
    given="Rademacher complexity as in the book that is cited, without absolute values; given samples",
)
@corrected("The complexity of the hull is b times that of the functions and their negatives.", signs=(1, -1))
@false("The corrected form with 2 b for b.", times=2, signs=(1, -1))
def hulls_are_as_complex(
    values: Sequence[Sequence[int]], b: int, times: int = 1, signs: tuple[int, ...] = (1,)
) -> Comparison:
    """The Rademacher complexity of the absolute convex hull of functions, scaled by b, is b times theirs."""
    signed, once = [[sign * value for value in row] for row, sign in product(values, signs)], (1,) * len(values[0])
    return equal(correlation(_hull(values, b), once) / 2, times * b * correlation(signed, once))


def longest_walk(steps: int) -> float:
    """Return the mean of the largest sum of the first fair signs, of any number up to `steps`: by reflection."""
    reached = np.arange(1, steps + 1)
    at_least, above = (bdtrc(np.ceil((steps + x) / 2) - 1, steps, 0.5) for x in (reached, reached + 1))
    return float((at_least + above).sum())


@claim("E22 Equation 15", n=(1, 2, 5, 20, 100, 1_000), given=THRESHOLDS, undecided=CONSTANT)
@false("Without the root.", power=1.0)
def complexity_falls_like_a_root(n: int, power: float = 0.5) -> Comparison:
    """The Rademacher complexity of the losses is at most C sqrt(dim / n)."""
    return at_most(longest_walk(n) / n, n**-power)


def largest_loss_at(misled: Callable[[float], float], gamma: float) -> float:
    """Return the largest excess risk, over all probabilities of a label, that has a probability of at least `gamma`.

    "Always 0" costs `2 p - 1` more than "always 1" where labels are 1 with probability `p` above 1/2; `misled` is the
    probability that "always 0" is chosen, and falls with `p`.
    """
    low, high = 0.5, 1.0
    if misled(high) >= gamma:
        return 1.0
    while high - low > TOLERANCE.proven:
        middle = (low + high) / 2
        low, high = (middle, high) if misled(middle) >= gamma else (low, middle)
    return 2 * low - 1


def _learn_from_responses(n: int, beta: float, gamma: float) -> float:
    """Return the largest excess risk of two constant hypotheses, chosen by the majority of uniform responses."""
    chances = LabelRandomization((Fraction(1, 2), Fraction(1, 2)), Fraction(beta)).matrix[1]
    return largest_loss_at(lambda p: float(bdtr(n // 2, n, chances @ (1 - p, p))), gamma)


@claim(
    "E22 Theorem 2",
    n=(1, 2, 5, 100, 10_000),
    beta=(0.5, 0.9, 0.99),
    gamma=GAMMAS,
    given=ANY,
    undecided=CONSTANT,
)
@false("Without 1 - beta.", power=0)
def responses_are_learned_from(n: int, beta: float, gamma: float, power: int = 1) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. Tried at beta = lambda, K = 2, a dimension of 1 and C = 1.
    """
    bound = 2 / (1 - beta) ** power * math.sqrt(math.log(1 / gamma) / n)
    return at_most(_learn_from_responses(n, beta, gamma), bound, tolerance=TOLERANCE.proven)


NOISE = Fraction(2)
"""``exp(1 / sigma)``."""

Looks = list[tuple[Fraction, tuple[Fraction, Fraction]]]


@cache
def look(counts: Histogram, noisy: Histogram, beta: Fraction) -> Looks:
    """Return the mean modified losses of "always 0" and "always 1", with the probability that the noise makes them so.

    One cluster of one example with these labels and noisy labels; `beta` is lambda, and `tau` and phi are 0.
    """
    zeros, ones = (Fraction(count, sum(noisy)) for count in noisy)
    laws = noisy_law(counts, Fraction(0), NOISE).items()
    return [(mass, ((ones - beta * q[1]) / (1 - beta), (zeros - beta * q[0]) / (1 - beta))) for q, mass in laws]


def _noisy_choices() -> Iterator[dict[str, Any]]:
    """Yield all small tables, each with labels for which mean modified losses are risks on average, and with others.

    The label is 1 with probability `ones`.
    """
    for size, beta in ((3, Fraction(1, 2)), (3, Fraction(9, 10)), (4, Fraction(1, 2))):
        for counts, noisy in product(histograms(2, size), repeat=2):
            mean = total(mass * losses[0] for mass, losses in look(counts, noisy, beta))
            for ones in (mean, Fraction(0), Fraction(1, 2), Fraction(3, 4)):
                if 0 <= ones <= 1:
                    yield {"ones": ones, "counts": counts, "noisy": noisy, "beta": beta}


def _find_largest_gap(looks: Looks, risks: Row) -> Fraction:
    """Return the largest distance of a risk from the average, over the noise, of the mean modified loss."""
    return max(abs(total(mass * losses[h] for mass, losses in looks) - risk) for h, risk in enumerate(risks))


@claim(
    "E22 Theorem 2: step to equation 22",
    _noisy_choices,
    given="beta = lambda; means over noise in whole rows",
)
@corrected(
    "They are at most twice the average over the noise of the largest gap of a risk and modified loss.",
    of_means=False,
)
@false("They are at most that average once.", of_means=False, times=1)
def means_are_bounded_by_means(
    ones: Fraction, counts: Histogram, noisy: Histogram, beta: Fraction, *, of_means: bool = True, times: int = 2
) -> Comparison:
    """The last terms of (21) are on average at most twice the largest gap of a risk and average modified loss."""
    risks, looks = (ones, 1 - ones), look(counts, noisy, beta)
    best = risks.index(min(risks))
    # If two hypotheses look alike, "always 0" is chosen.
    chosen = [(mass, losses, losses.index(min(losses))) for mass, losses in looks]
    deviations = total(mass * (risks[h] - losses[h] + losses[best] - risks[best]) for mass, losses, h in chosen)
    gaps = total(mass * max(abs(losses[h] - risks[h]) for h in (0, 1)) for mass, losses in looks)
    return at_most(deviations, times * (_find_largest_gap(looks, risks) if of_means else gaps))


@claim("E22 Equation 22", _noisy_choices, given="beta = lambda; means over noise in whole rows")
@false("Without the first term.", biases=0)
def excess_is_bias_and_deviation(
    ones: Fraction, counts: Histogram, noisy: Histogram, beta: Fraction, biases: int = 1
) -> Comparison:
    """Mean excess risk is at most 8 K / (1 - beta) (phi + K tau + K sigma/s) and twice that largest difference."""
    risks, looks = (ones, 1 - ones), look(counts, noisy, beta)
    excess = total(mass * risks[losses.index(min(losses))] for mass, losses in looks) - min(risks)
    bias = 32 / float(1 - beta) / math.log(NOISE) / sum(counts)
    return at_most(excess, biases * bias + 2 * float(_find_largest_gap(looks, risks)))


def _lose_by_means(contest: Contest, threshold: Fraction, beta: Fraction, share: Fraction) -> Fraction:
    """Return the excess risk by the mean modified loss, whose weights are the inverse matrix times the noisy law."""
    noisy = np.array([cluster_distribution(shares, threshold) for shares in contest.shares])
    return contest.excess(((1 - share) * contest.labels + (share - beta) * noisy) / (1 - beta))


def _draw_residual(draw: Random) -> dict[str, Any]:
    share, beta = Fraction(draw.randint(0, 19), 20), Fraction(draw.choice((0, draw.randint(0, 19))), 20)
    return {"contest": draw_contest(draw, 4), "part": Fraction(draw.randint(0, 4), 4), "beta": beta, "share": share}


@claim(
    "E22 Theorem 2: residual",
    grid(contest=TEMPTING, part=[Fraction(0)], beta=[Fraction(0)], share=(Fraction(1, 2), Fraction(1, 20))),
    Draws(80, _draw_residual),
    given="two hypotheses, as many rows as one likes in every cluster; tau is a part of 1/K, lambda a share",
)
@false("The same without phi, as if all examples of a cluster were of one kind.", kinds=0)
def bias_is_heterogeneity_and_threshold(
    contest: Contest, part: Fraction, beta: Fraction, share: Fraction, kinds: int = 1
) -> Comparison:
    """With any number of rows, the excess risk is at most 8 K |beta - lambda| / (1 - beta) (phi + K tau)."""
    lost = _lose_by_means(contest, part / contest.k, beta, share)
    return at_most(lost, 8 * contest.k * abs(beta - share) / (1 - beta) * (kinds * contest.heterogeneity + part))
