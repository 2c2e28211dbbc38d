"""Privacy of a curator's release ([E22], Theorems 1 and 6, Corollaries 1 and 2, Section 6)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.stats import laplace

from optrand.base._validation import Floats
from optrand.baselines._cluster import cluster_distribution
from optrand.theory._engine import Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, Row, largest_ratio, prior, total
from optrand.theory.e22.losses import Histogram, channel, histograms, inverse_columns, label_laws, noisy_law


def find_ratio(others: Histogram, tau: Fraction, noise: Fraction, resampling: Fraction) -> Fraction | float:
    """Return the largest ratio over all that is released of a cluster, the noisy label of its first row included.

    That row has the label 0 or 1, `others` are the counts of the other rows, and `noise` is ``exp(1 / sigma)``.
    """
    laws = [
        {
            (q, out): mass * channel(out, first, q, resampling)
            for q, mass in noisy_law(tuple(n + (y == first) for y, n in enumerate(others)), tau, noise).items()
            for out in range(len(others))
        }
        for first in (0, 1)
    ]
    return largest_ratio(laws)


CLUSTERS = [
    {"others": others, "tau": Fraction(low, size)}
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4))
    for others, low in product(histograms(k, size - 1), range(1, -(-size // k)))
]
"""Counts of all rows but the first, and a threshold, of small clusters."""

WHOLE = "noise in whole rows; compared as ratios"


@claim(
    "E22 Theorem 1",
    *(
        [each | {"noise": Fraction(noise), "resampling": Fraction(share)} for each in CLUSTERS]
        for noise, share in (("3/2", "99/100"), ("101/100", "9/10"), ("5", "1/2"))
    ),
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    cases("others tau noise resampling", ((0, 5, 6), Fraction(1, 12), Fraction(11, 10), Fraction(1, 2))),
    given=f"beta above 0, so that the noisy distribution is defined; {WHOLE}",
)
@corrected("A release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same with 2 / sigma and 1 / K for tau.", noises=2, floored=False)
def noise_is_paid_once(
    others: Histogram, tau: Fraction, noise: Fraction, resampling: Fraction, noises: int = 1, *, floored: bool = True
) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    least = tau if floored else Fraction(1, len(others))
    bound = noise**noises * (1 + (1 - resampling) / (resampling * least))
    return at_most(find_ratio(others, tau, noise, resampling), bound)


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
    # The probability of each piece, under each number of rows.
    below = laplace.cdf((edges - np.arange(size + 1)[:, np.newaxis]) * epsilon)
    pieces = np.diff(below, prepend=0.0, append=1.0, axis=1)
    drawn = share * np.maximum(q, 1e-300)
    kept, lost = np.log(1 - share + drawn), np.log(drawn)
    zeros = range(size, -1, -1)
    return [float(pieces[n] @ np.exp(n * kept + (size - n) * lost) @ pieces[size - n]) for n in zeros]


def _edges(size: int, threshold: float) -> Floats:
    """Return the ends of the pieces of a clipped noisy share, 30 for each row; the outermost pieces are points."""
    inner = np.linspace(threshold, 1, round(size * (1 - threshold) * 30) + 1)
    return np.concatenate((inner[:1], inner, inner[-1:]))


@cache
def final_shares(size: int, threshold: float) -> list[Floats]:
    """Return the least and the largest final share of label 0, which grows with its clipped share and not the other."""
    edges, found = _edges(size, threshold), []
    for own, other in ((edges[:-1, np.newaxis], edges[1:]), (edges[1:, np.newaxis], edges[:-1])):
        # Lines 9 to 19 of Algorithm 1: what is missing is taken where there is room for it.
        missing = 1 - own - other
        rooms = [np.where(missing < 0, share - threshold, 1 - share) for share in (own, other)]
        whole = rooms[0] + rooms[1]
        found.append(own + rooms[0] * np.divide(missing, whole, out=np.zeros_like(missing), where=whole > 0))
    return found


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
    given="two labels, continuous noise; as shares",
)
@corrected("The same at 2 epsilon.", noises=2)
@false("The same at 3/2 epsilon.", noises=3 / 2)
def drawing_all_labels_costs_epsilon(size: int, epsilon: float, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(spend_alone(size, epsilon, 0.0), noises)


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@claim(
    "E22 Theorem 1: resampling",
    cases("q share", ((HALF, HALF), HALF), ((THIRD, 2 * THIRD), HALF), ((THIRD, 2 * THIRD), Fraction(1))),
    draws(
        100,
        p=lambda draw: prior(draw, draw.randint(2, 6)),
        q=lambda draw, p: cluster_distribution(p, Fraction(draw.randint(1, 99), 100 * len(p))),
        share=[Fraction(n, 100) for n in range(1, 101)],
    ),
    given="a public distribution whose least share is tau, labels resampled with a share of lambda",
)
@false("The same with 1 / K for tau.", floored=False)
def labels_cost_their_rarest(q: Row, share: Fraction, *, floored: bool = True) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    tau = min(q) if floored else Fraction(1, len(q))
    return at_most(largest_ratio(label_laws(q, share)), 1 + (1 - share) / (share * tau))


SHARES = (
    *(
        grid(shares=[*product(map(Fraction, ("-1/2", "1/2", "3/2")), repeat=k)], part=(Fraction(0), HALF, Fraction(1)))
        for k in (2, 3)
    ),
    draws(
        60,
        shares=lambda draw: tuple(p + Fraction(draw.randint(-9, 9), 9) for p in prior(draw, draw.randint(2, 8))),
        part=[Fraction(n, 100) for n in range(101)],
    ),
)


def _divide_by_the_sum(shares: Row, threshold: Fraction) -> Row:
    clipped = [max(threshold, min(Fraction(1), share)) for share in shares]
    return tuple(q / total(clipped) if any(clipped) else Fraction(1, len(clipped)) for q in clipped)


@claim("E22 Theorem 6", *SHARES, given="at least two labels, tau from 0 to 1/K: a part of 1/K; any noise")
@false("The same with clipped shares divided by their sum, or equal shares if all are 0.", settle=_divide_by_the_sum)
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


@claim(
    "E22 Corollary 1: privacy",
    grid(shares=[(Fraction(1, k),) * k for k in (2, 3, 10)], ratio=RATIOS),
    draws(50, shares=[[Fraction(n, 10) for n in row] for row in permutations(range(-9, 9, 4), 3)], ratio=RATIOS),
    given="tau = 1/K, any noise, epsilon above 0; the distribution is then uniform",
)
@false("The same with lambda = (K - 1) / (K - 1 + exp(epsilon)).", less=1)
def uniform_response_spends_epsilon(shares: Row, ratio: Fraction, less: int = 0) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are drawn uniformly and cost epsilon; as ratios."""
    k = len(shares)
    laws = label_laws(cluster_distribution(shares, Fraction(1, k)), (k - less) / (k - 1 + ratio))
    return at_most(largest_ratio(laws), ratio)


@claim(
    "E22 Corollary 2: privacy",
    [each | {"ratio": Fraction(33, 20)} for each in CLUSTERS],
    cases("others tau ratio", ((0, 9, 2), Fraction(1, 6), Fraction(17, 15))),
    given=f"tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi); {WHOLE}",
)
@false("The same with 2 epsilon: compared as ratios.", times_epsilon=2)
def release_spends_three_epsilon(
    others: Histogram, tau: Fraction, ratio: Fraction, times_epsilon: int = 3
) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    The noisy distribution counts as released.
    """
    return at_most(find_ratio(others, tau, ratio, 1 / (1 + (ratio - 1) * tau)), ratio**times_epsilon)
