"""Privacy of a curator's release ([E22], Theorems 1 and 6, Corollaries 1 and 2, Section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np

from optrand.base._validation import Floats
from optrand.baselines._cluster import cluster_distribution
from optrand.theory._engine import Comparison, Draws, Space, at_most, cases, claim, corrected, equal, false, grid
from optrand.theory._shared import RATIOS, Row, largest_ratio, prior, times, total
from optrand.theory.e22.losses import Histogram, channel, histograms, inverse_columns, label_laws, renormalize


def weigh_corner(counts: Histogram, low: int, noise: Fraction, top: int) -> Fraction:
    """Return the probability that Algorithm 1 has only `top` above the threshold, `low` rows, of one cluster.

    Counts stop there in tails of Laplace noise, which begin a whole number of rows away. `noise` is ``exp(1 / sigma)``.
    """
    rest = sum(counts) - (len(counts) - 1) * low
    gaps = [rest - count if y == top else count - low for y, count in enumerate(counts)]
    return times(noise**-gap / 2 if gap >= 0 else 1 - noise**gap / 2 for gap in gaps)


def find_corner_ratio(others: Histogram, low: int, noise: Fraction, resampling: Fraction) -> Fraction | float:
    """Return the largest ratio over releases with all labels but one at the threshold, under continuous noise.

    The first row of the cluster has the label 0 or 1, `others` are the counts of the other rows.
    """
    k, tau = len(others), _find_threshold(others, low)
    laws: list[dict[tuple[int, int], Fraction]] = [{}, {}]
    for first, top, out in product((0, 1), range(k), range(k)):
        counts = tuple(count + (y == first) for y, count in enumerate(others))
        q = tuple(1 - (k - 1) * tau if y == top else tau for y in range(k))
        laws[first][top, out] = weigh_corner(counts, low, noise, top) * channel(out, first, q, resampling)
    return largest_ratio(laws)


def _find_threshold(others: Histogram, low: int) -> Fraction:
    return Fraction(low, sum(others) + 1)


def _small_clusters() -> Iterator[dict[str, Any]]:
    spent = [(Fraction(3, 2), Fraction(99, 100)), (Fraction(101, 100), Fraction(9, 10)), (Fraction(5), Fraction(1, 2))]
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4)):
        for others, low, (noise, share) in product(histograms(k, size - 1), range(1, -(-size // k)), spent):
            yield {"others": others, "low": low, "noise": noise, "resampling": share}
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    yield {"others": (0, 5, 6), "low": 1, "noise": Fraction(11, 10), "resampling": Fraction(1, 2)}


def _draw_cluster(draw: Random) -> dict[str, Any]:
    k, size = draw.choice(((2, 8), (2, 12), (3, 6)))
    noise, share = 1 + Fraction(draw.randint(1, 300), 100), Fraction(draw.randint(1, 999), 1_000)
    others = draw.choice([*histograms(k, size - 1)])
    return {"others": others, "low": draw.randint(1, (size - 1) // k), "noise": noise, "resampling": share}


@claim(
    "E22 Theorem 1",
    _small_clusters,
    Draws(6, _draw_cluster),
    given="beta above 0, so that the noisy distribution is defined; as ratios",
)
@corrected("A release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same with 2 / sigma and 1 / K for tau.", noises=2, floored=False)
def noise_is_paid_once(
    others: Histogram, low: int, noise: Fraction, resampling: Fraction, noises: int = 1, *, floored: bool = True
) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    tau = _find_threshold(others, low) if floored else Fraction(1, len(others))
    bound = noise**noises * (1 + (1 - resampling) / (resampling * tau))
    return at_most(find_corner_ratio(others, low, noise, resampling), bound)


@cache
def spend_alone(size: int, epsilon: float, threshold: float) -> float:
    """Return a lower bound of the epsilon that noisy labels spend alone, as a share of the nominal one.

    Two labels and continuous noise. Nothing but noisy labels is released: `beta = 0` keeps the loss as it is. As in
    Corollary 2, `sigma = 1 / epsilon` and `lambda = 1 / (1 + (exp(epsilon) - 1) tau)`, so that the second summand of
    Theorem 1 is epsilon. The bound is from two neighbours and zeros alone.
    """
    least, most = (bound_zeros(size, epsilon, threshold, q) for q in final_shares(size, threshold))
    return math.log(max(low / high for low, high in zip(least, most[1:], strict=False))) / epsilon


def bound_zeros(size: int, epsilon: float, threshold: float, q: Floats) -> list[float]:
    """Return bounds of the probability that all noisy labels are 0, for each number of ones from 0 on.

    They are from below or from above, as the final shares `q` are.
    """
    share, edges = 1 / (1 + math.expm1(epsilon) * threshold), _edges(size, threshold)[1:-1] * size
    drawn = share * np.maximum(q, 1e-300)
    # The probability of each piece, under each number of rows.
    pieces = [np.diff(_laplace_below((edges - count) * epsilon), prepend=0.0, append=1.0) for count in range(size + 1)]
    logs, found = (np.log(1 - share + drawn), np.log(drawn)), []
    for ones in range(size + 1):
        zeros = size - ones
        found.append(float(pieces[zeros] @ np.exp(zeros * logs[0] + ones * logs[1]) @ pieces[ones]))
    return found


def _laplace_below(x: Floats) -> Floats:
    tail = np.exp(-abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _edges(size: int, threshold: float) -> Floats:
    """Return the ends of the pieces of a clipped noisy share, 30 for each row; the outermost pieces are points."""
    inner = np.linspace(threshold, 1, round(size * (1 - threshold) * 30) + 1)
    return np.concatenate((inner[:1], inner, inner[-1:]))


@cache
def final_shares(size: int, threshold: float) -> list[Floats]:
    """Return the least and the largest final share of label 0, which grows with its clipped share."""
    edges = _edges(size, threshold)
    low, high = edges[:-1], edges[1:]
    pairs = [np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1) for ends in ((low, high), (high, low))]
    return [renormalize(pair, threshold)[..., 0] for pair in pairs]


@claim(
    "E22 Theorem 1: noisy labels alone",
    grid(size=(2, 4, 8), epsilon=(0.01, 0.1, 1.0), threshold=(0.25, 0.1, 0.4)),
    cases("size epsilon threshold", (12, 0.1, 0.4), (22, 0.01, 0.4)),
    given="two labels, continuous noise, beta = 0; both summands alike, compared as shares of epsilon",
)
@corrected("The same at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same at 3 / (2 sigma) + log(1 + (1 - lambda) / (lambda tau)).", noises=3 / 2)
def labels_alone(size: int, epsilon: float, threshold: float, noises: float = 1) -> Comparison:
    """If only noisy labels are released, they are private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(spend_alone(size, epsilon, threshold), noises + 1)


@claim(
    "E22 Section 6: privacy",
    size=(2, 4, 8, 12),
    epsilon=(0.01, 0.1, 1.0),
    given="two labels, continuous noise; compared as shares of epsilon",
)
@corrected("The same at 2 epsilon.", noises=2)
@false("The same at 3/2 epsilon.", noises=3 / 2)
def drawing_all_labels_costs_epsilon(size: int, epsilon: float, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(spend_alone(size, epsilon, 0.0), noises)


def _draw_resampling(draw: Random) -> dict[str, Any]:
    shares = prior(draw, draw.randint(2, 6))
    threshold = Fraction(draw.randint(1, 99), 100 * len(shares))
    return {"q": cluster_distribution(shares, threshold), "share": Fraction(draw.randint(1, 100), 100)}


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@claim(
    "E22 Theorem 1: resampling",
    cases("q share", ((HALF, HALF), HALF), ((THIRD, 2 * THIRD), HALF), ((THIRD, 2 * THIRD), Fraction(1))),
    Draws(100, _draw_resampling),
    given="a public distribution whose least share is tau, labels resampled with a share of lambda",
)
@false("The same with 1 / K for tau.", floored=False)
def labels_cost_their_rarest(q: Row, share: Fraction, *, floored: bool = True) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    tau = min(q) if floored else Fraction(1, len(q))
    return at_most(largest_ratio(label_laws(q, share)), 1 + (1 - share) / (share * tau))


def _draw_shares(draw: Random) -> dict[str, Any]:
    k = draw.randint(2, 8)
    shares = tuple(p + Fraction(draw.randint(-1_000, 1_000), 1_000) for p in prior(draw, k))
    return {"shares": shares, "part": Fraction(draw.randint(0, 100), 100)}


SHARES: tuple[Space, ...] = (
    *(
        grid(
            shares=[tuple(Fraction(x, 2) for x in halves) for halves in product((-1, 1, 3), repeat=k)],
            part=(Fraction(0), HALF, Fraction(1)),
        )
        for k in (2, 3)
    ),
    Draws(60, _draw_shares),
)


def _divide_by_the_sum(shares: Row, threshold: Fraction) -> Row:
    clipped = [max(threshold, min(Fraction(1), share)) for share in shares]
    return tuple(q / total(clipped) if any(clipped) else Fraction(1, len(clipped)) for q in clipped)


@claim("E22 Theorem 6", *SHARES, given="at least two labels, tau from 0 to 1/K: a part of 1/K; any noise")
@false(
    "The same where clipped shares are divided by their sum, or shares are equal if all are 0.",
    settle=_divide_by_the_sum,
)
def distributions_are_well_defined(shares: Row, part: Fraction, settle: Any = cluster_distribution) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau."""
    threshold = part / len(shares)
    q = settle(shares, threshold)
    return at_most([threshold, max(q), total(q), 1], [min(q), 1, 1, total(q)])


@claim("E22 Theorem 6: inverse", *SHARES, given="any distribution, beta below 1")
@false("Its inverse is (I - beta q 1') / (1 - beta)**2.", power=2)
def matrices_are_invertible(shares: Row, part: Fraction, power: int = 1) -> Comparison:
    """The matrix of a distribution and a beta below 1 has the inverse (I - beta q 1') / (1 - beta)."""
    q, beta = cluster_distribution(shares, part / len(shares)), Fraction(9, 10)
    matrix, inverse = (np.array(columns(q, beta)).T for columns in (label_laws, inverse_columns))
    return equal(inverse @ matrix / (1 - beta) ** (power - 1), np.identity(len(q), dtype=int))


def _draw_uniform(draw: Random) -> dict[str, Any]:
    k = draw.choice((2, 3, 10))
    shares = prior(draw, k) if draw.random() < 0.5 else tuple(Fraction(draw.randint(-30, 30), 10) for _ in range(k))
    return {"shares": shares, "ratio": draw.choice(RATIOS)}


@claim(
    "E22 Corollary 1: privacy",
    *(grid(shares=[(Fraction(1, k),) * k], ratio=RATIOS) for k in (2, 3, 10)),
    Draws(50, _draw_uniform),
    given="tau = 1/K, any noise, epsilon above 0; the distribution is then uniform",
)
@false("The same with lambda = (K - 1) / (K - 1 + exp(epsilon)).", less=1)
def uniform_response_spends_epsilon(shares: Row, ratio: Fraction, less: int = 0) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are drawn uniformly and cost epsilon; as ratios."""
    k = len(shares)
    laws = label_laws(cluster_distribution(shares, Fraction(1, k)), (k - less) / (k - 1 + ratio))
    return at_most(largest_ratio(laws), ratio)


SMALL_RATIOS = Fraction(33, 20), Fraction(17, 15)
"""Settings with budgets of about 1/2 and 1/8."""


@claim(
    "E22 Corollary 2: privacy",
    *(
        grid(others=[*histograms(k, size - 1)], low=range(1, -(-size // k)), ratio=SMALL_RATIOS)
        for k, size in ((2, 3), (2, 4), (3, 4))
    ),
    cases("others low ratio", ((0, 9, 2), 2, SMALL_RATIOS[1])),
    given="tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi); as ratios",
)
@false("The same with 2 epsilon: compared as ratios.", times_epsilon=2)
def release_spends_three_epsilon(others: Histogram, low: int, ratio: Fraction, times_epsilon: int = 3) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    The noisy distribution counts as released.
    """
    share = 1 / (1 + (ratio - 1) * _find_threshold(others, low))
    return at_most(find_corner_ratio(others, low, ratio, share), ratio**times_epsilon)
