"""Privacy of a curator's release, and excess risk on it ([E22], Lemma 7, Theorems 1, 2 and 6, Corollaries 1 and 2).

The constant in bounds of risks has no name, and the dimension is `log N / log(1 / alpha)` for the covering number `N`
at a scale `alpha` that is not given. Classes are tried whose deviations, complexities and excess risks can be summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction as F
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, smirnovi

from optrand.baselines import LabelRandomization
from optrand.baselines._cluster import cluster_distribution
from optrand.theory._engine import TOLERANCE, Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, Row, largest_ratio, prior, total
from optrand.theory.e22.losses import (
    TEMPTING,
    Contest,
    Histogram,
    draw_contest,
    histograms,
    inverse_columns,
    label_laws,
    noisy_law,
)
from optrand.theory.g21.debiased import correlation


def find_ratio(others: Histogram, tau: F, noise: F, resampling: F) -> F | float:
    """Return the largest ratio over all that is released of a cluster, the noisy label of its first row included.

    That row has the label 0 or 1, `others` are the counts of the other rows, and `noise` is ``exp(1 / sigma)``.
    """
    laws = [
        {
            (q, out): mass * label_laws(q, resampling)[first, out]
            for q, mass in noisy_law(tuple(n + (y == first) for y, n in enumerate(others)), tau, noise).items()
            for out in range(len(others))
        }
        for first in (0, 1)
    ]
    return largest_ratio(laws)


CLUSTERS = [
    {"others": others, "tau": F(low, size)}
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4))
    for others, low in product(histograms(k, size - 1), range(1, -(-size // k)))
]
"""Counts of all rows but the first, and a threshold, of small clusters."""

WHOLE = "noise in whole rows, compared as ratios"


@claim(
    "E22 Theorem 1",
    *(
        [each | {"noise": F(noise), "resampling": F(share)} for each in CLUSTERS]
        for noise, share in (("3/2", "99/100"), ("101/100", "9/10"), ("5", "1/2"))
    ),
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    cases("others tau noise resampling", ((0, 2, 3), F(1, 6), F(11, 10), F(1, 2))),
    given=f"beta above 0, so that the noisy distribution is defined, {WHOLE}",
)
@corrected("A release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same with 2 / sigma and 1 / K for tau.", noises=2, floored=False)
def noise_is_paid_once(
    others: Histogram, tau: F, noise: F, resampling: F, noises: int = 1, *, floored: bool = True
) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    least = tau if floored else F(1, len(others))
    bound = noise**noises * (1 + (1 - resampling) / (resampling * least))
    return at_most(find_ratio(others, tau, noise, resampling), bound)


@cache
def spend_alone(size: int, ratio: F, threshold: F) -> float:
    """Compute the epsilon that a release of noisy labels, all of them 0, spends. Return its share of the nominal one.

    Two labels, `size` rows, and nothing but noisy labels is released: `beta = 0` keeps the loss as it is. As in
    Corollary 2, `sigma = 1 / epsilon` and `lambda = 1 / (1 + (exp(epsilon) - 1) tau)`, so that the second summand of
    Theorem 1 is epsilon. `ratio` is ``exp(epsilon)``.
    """
    share, zeros = 1 / (1 + (ratio - 1) * threshold), []
    for ones in range(size + 1):
        law = noisy_law((size - ones, ones), threshold, ratio).items()
        kept = (mass * (1 - share + share * q[0]) ** (size - ones) * (share * q[0]) ** ones for q, mass in law)
        zeros.append(total(kept))
    return math.log(max(more / fewer for more, fewer in pairwise(zeros))) / math.log(ratio)


ALONE = tuple(map(F, ("101/100", "11/10", "27/10")))


@claim(
    "E22 Theorem 1: noisy labels alone",
    grid(size=(2, 4, 8), ratio=ALONE, threshold=map(F, ("1/4", "1/10", "2/5"))),
    cases("size ratio threshold", (12, F(11, 10), F(2, 5)), (22, F(101, 100), F(2, 5))),
    given="two labels, noise in whole rows, beta = 0, both summands alike, compared as shares of epsilon",
)
@corrected("The same at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)).", noises=2)
@false("The same at 3 / (2 sigma) + log(1 + (1 - lambda) / (lambda tau)).", noises=3 / 2)
def labels_alone(size: int, ratio: F, threshold: F, noises: float = 1) -> Comparison:
    """If only noisy labels are released, they are private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(spend_alone(size, ratio, threshold), noises + 1)


@claim(
    "E22 Section 6: privacy",
    size=(2, 4, 8, 12),
    ratio=ALONE,
    given="two labels, noise in whole rows, compared as shares of epsilon",
)
@corrected("The same at 2 epsilon.", noises=2)
@false("The same at 3/2 epsilon.", noises=3 / 2)
def drawing_all_labels_costs_epsilon(size: int, ratio: F, noises: float = 1) -> Comparison:
    """With beta = 0, lambda = 1, tau = 0 and sigma = 1 / epsilon a release is private at epsilon."""
    return at_most(spend_alone(size, ratio, F(0)), noises)


HALF, THIRD = F(1, 2), F(1, 3)


@claim(
    "E22 Theorem 1: resampling",
    cases("q share", ((HALF, HALF), HALF), ((THIRD, 2 * THIRD), HALF), ((THIRD, 2 * THIRD), F(1))),
    draws(
        100,
        p=lambda draw: prior(draw, draw.randint(2, 6)),
        q=lambda draw, p: cluster_distribution(p, F(draw.randint(1, 99), 100 * len(p))),
        share=[F(n, 100) for n in range(1, 101)],
    ),
    given="a public distribution whose least share is tau, labels resampled with a share of lambda",
)
@false("The same with 1 / K for tau.", floored=False)
def labels_cost_their_rarest(q: Row, share: F, *, floored: bool = True) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)) (as ratios)."""
    tau = min(q) if floored else F(1, len(q))
    return at_most(largest_ratio(label_laws(q, share)), 1 + (1 - share) / (share * tau))


SHARES = (
    *(grid(shares=[*product(map(F, ("-1/2", "1/2", "3/2")), repeat=k)], part=(F(0), HALF, F(1))) for k in (2, 3)),
    draws(
        60,
        shares=lambda draw: tuple(p + F(draw.randint(-9, 9), 9) for p in prior(draw, draw.randint(2, 8))),
        part=[F(n, 100) for n in range(101)],
    ),
)


def _divide_by_the_sum(shares: Row, threshold: F) -> Row:
    clipped = [max(threshold, min(F(1), share)) for share in shares]
    return tuple(q / total(clipped) if any(clipped) else F(1, len(clipped)) for q in clipped)


@claim("E22 Theorem 6", *SHARES, given="at least two labels, tau from 0 to 1/K (a part of 1/K), any noise")
@false("The same with clipped shares divided by their sum, or equal shares if all are 0.", settle=_divide_by_the_sum)
def distributions_are_well_defined(shares: Row, part: F, settle: Any = cluster_distribution) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau."""
    threshold = part / len(shares)
    q = settle(shares, threshold)
    return at_most([threshold, max(q), total(q), 1], [min(q), 1, 1, total(q)])


@claim("E22 Theorem 6: inverse", *SHARES, given="any distribution, beta below 1")
@false("Its inverse is (I - beta q 1') / (1 - beta)**2.", power=2)
def matrices_are_invertible(shares: Row, part: F, power: int = 1) -> Comparison:
    """The matrix of a distribution and a beta below 1 has the inverse (I - beta q 1') / (1 - beta)."""
    q, beta = cluster_distribution(shares, part / len(shares)), F(9, 10)
    return equal(
        label_laws(q, beta) @ inverse_columns(q, beta) / (1 - beta) ** (power - 1), np.identity(len(q), dtype=int)
    )


@claim(
    "E22 Corollary 1: privacy",
    grid(shares=[(F(1, k),) * k for k in (2, 3, 10)], ratio=RATIOS),
    draws(50, shares=[[F(n, 10) for n in row] for row in permutations(range(-9, 9, 4), 3)], ratio=RATIOS),
    given="tau = 1/K, any noise, epsilon above 0, so that the distribution is uniform",
)
@false("The same with lambda = (K - 1) / (K - 1 + exp(epsilon)).", less=1)
def uniform_response_spends_epsilon(shares: Row, ratio: F, less: int = 0) -> Comparison:
    """With tau = 1/K and lambda = K / (K - 1 + exp(epsilon)) labels are uniform and cost epsilon (as ratios)."""
    k = len(shares)
    laws = label_laws(cluster_distribution(shares, F(1, k)), (k - less) / (k - 1 + ratio))
    return at_most(largest_ratio(laws), ratio)


@claim(
    "E22 Corollary 2: privacy",
    [each | {"ratio": F(33, 20)} for each in CLUSTERS],
    cases("others tau ratio", ((0, 9, 2), F(1, 6), F(17, 15))),
    given=f"tau = phi of at most 1/K, sigma = 1 / epsilon, lambda = 1 / (1 + (exp(epsilon) - 1) phi), {WHOLE}",
)
@false("The same with 2 epsilon: compared as ratios.", times_epsilon=2)
def release_spends_three_epsilon(others: Histogram, tau: F, ratio: F, times_epsilon: int = 3) -> Comparison:
    """With sigma = 1 / epsilon and lambda = 1 / (1 + (exp(epsilon) - 1) tau) the release costs O(epsilon): 3 epsilon.

    The noisy distribution counts as released.
    """
    return at_most(find_ratio(others, tau, ratio, 1 / (1 + (ratio - 1) * tau)), ratio**times_epsilon)


ANY = "any class of hypotheses and population, gamma of at most 1/2"
CONSTANT = "an unnamed constant, over all classes of hypotheses and populations"
GAMMAS = (0.5, 0.05, 1e-4)
THRESHOLDS = f"{ANY}, one number for each example, its label 0, every threshold of numbers as a hypothesis"


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
    given="one function, the mean of n fair coins times b, gamma of at most 1/2",
)
@corrected("One function of b-bounded differences deviates by at most b sqrt(log(2/gamma) / (2 n)).", parts=2)
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


@claim(
    "E22 Equation 14",
    grid(values=(((1,),), ((1, 0),), ((1, 0), (0, 1)), ((1, -1), (-1, 1))), b=(1, 2)),
    draws(
        60,
        n=range(1, 7),
        values=lambda draw, n: [[draw.randint(0, 4) for _ in range(n)] for _ in range(draw.randint(1, 3))],
        b=range(1, 10),
    ),
    given="Rademacher complexity as in the book that is cited, without absolute values, given samples",
)
@corrected("The complexity of the hull is b times that of the functions and their negatives.", signs=(1, -1))
@false("The corrected form with 2 b for b.", times=2, signs=(1, -1))
def hulls_are_as_complex(
    values: Sequence[Sequence[int]], b: int, times: int = 1, signs: tuple[int, ...] = (1,)
) -> Comparison:
    """The Rademacher complexity of the absolute convex hull of functions, scaled by b, is b times theirs."""
    signed, once = [[sign * value for value in row] for row, sign in product(values, signs)], (1,) * len(values[0])
    return equal(correlation(_hull(values, b), once) / 2, times * b * correlation(signed, once))


def mean_largest_sum(steps: int) -> float:
    """Return the mean of the largest partial sum of `steps` fair signs, the empty sum included: by reflection."""
    reached = np.arange(1, steps + 1)
    at_least, above = (bdtrc(np.ceil((steps + x) / 2) - 1, steps, 0.5) for x in (reached, reached + 1))
    return float((at_least + above).sum())


@claim("E22 Equation 15", n=(1, 2, 5, 20, 100, 1_000), given=THRESHOLDS, undecided=CONSTANT)
@false("Without the root.", power=1.0)
def complexity_falls_like_a_root(n: int, power: float = 0.5) -> Comparison:
    """The Rademacher complexity of the losses is at most C sqrt(dim / n)."""
    return at_most(mean_largest_sum(n) / n, n**-power)


def largest_loss_at(misled: Callable[[float], float], gamma: float) -> float:
    """Return the largest excess risk, over all probabilities of a label, that has a probability of at least `gamma`.

    "Always 0" costs `2 p - 1` more than "always 1" if labels are 1 with probability `p` above 1/2. `misled` is the
    probability that "always 0" is chosen, and falls with `p`.
    """
    if misled(1.0) >= gamma:
        return 1.0
    return 2 * brentq(lambda p: misled(p) - gamma, 0.0, 1.0) - 1


@claim("E22 Theorem 2", n=(1, 2, 5, 100, 10_000), beta=(0.5, 0.9, 0.99), gamma=GAMMAS, given=ANY, undecided=CONSTANT)
@false("Without 1 - beta.", power=0)
def responses_are_learned_from(n: int, beta: float, gamma: float, power: int = 1) -> Comparison:
    """Excess risk is at most C K (sqrt(dim log(1/gamma) / n) + |beta - lambda| (phi + K sigma/s + K tau)) / (1 - beta).

    With probability 1 - gamma. Tried at beta = lambda, K = 2, a dimension of 1 and C = 1.
    """
    bound = 2 / (1 - beta) ** power * math.sqrt(math.log(1 / gamma) / n)
    # Two constant hypotheses, chosen by the majority of uniform responses.
    chances = LabelRandomization((F(1, 2), F(1, 2)), F(beta)).matrix[1]
    lost = largest_loss_at(lambda p: float(bdtr(n // 2, n, chances @ (1 - p, p))), gamma)
    return at_most(lost, bound, tolerance=TOLERANCE.proven)


NOISE = F(2)
"""``exp(1 / sigma)``."""

Looks = list[tuple[F, tuple[F, F]]]


@cache
def look(counts: Histogram, noisy: Histogram, beta: F) -> Looks:
    """Return the mean modified losses of "always 0" and "always 1", with the probability that the noise makes them so.

    One cluster of one example with these labels and noisy labels. `beta` is lambda, and `tau` and phi are 0.
    """
    zeros, ones = (F(count, sum(noisy)) for count in noisy)
    laws = noisy_law(counts, F(0), NOISE).items()
    return [(mass, ((ones - beta * q[1]) / (1 - beta), (zeros - beta * q[0]) / (1 - beta))) for q, mass in laws]


def _noisy_choices() -> Iterator[dict[str, Any]]:
    """Yield all small tables, each with labels for which mean modified losses are risks on average, and with others.

    The label is 1 with probability `ones`.
    """
    for size, beta in ((3, F(1, 2)), (3, F(9, 10)), (4, F(1, 2))):
        for counts, noisy in product(histograms(2, size), repeat=2):
            mean = total(mass * losses[0] for mass, losses in look(counts, noisy, beta))
            for ones in (mean, F(0), F(1, 2), F(3, 4)):
                if 0 <= ones <= 1:
                    yield {"ones": ones, "counts": counts, "noisy": noisy, "beta": beta}


def _find_largest_gap(looks: Looks, risks: Row) -> F:
    """Return the largest distance of a risk from the average, over the noise, of the mean modified loss."""
    return max(abs(total(mass * losses[h] for mass, losses in looks) - risk) for h, risk in enumerate(risks))


@claim("E22 Theorem 2: step to equation 22", _noisy_choices, given="beta = lambda, means over noise in whole rows")
@corrected("They are at most twice the mean over noise of the largest gap of risk and modified loss.", of_means=False)
@false("They are at most that average once.", of_means=False, times=1)
def means_are_bounded_by_means(
    ones: F, counts: Histogram, noisy: Histogram, beta: F, *, of_means: bool = True, times: int = 2
) -> Comparison:
    """The last terms of (21) are on average at most twice the largest gap of a risk and average modified loss."""
    risks, looks = (ones, 1 - ones), look(counts, noisy, beta)
    best = risks.index(min(risks))
    # If two hypotheses look alike, "always 0" is chosen.
    chosen = [(mass, losses, losses.index(min(losses))) for mass, losses in looks]
    deviations = total(mass * (risks[h] - losses[h] + losses[best] - risks[best]) for mass, losses, h in chosen)
    gaps = total(mass * max(abs(losses[h] - risks[h]) for h in (0, 1)) for mass, losses in looks)
    return at_most(deviations, times * (_find_largest_gap(looks, risks) if of_means else gaps))


@claim("E22 Equation 22", _noisy_choices, given="beta = lambda, means over noise in whole rows")
@false("Without the first term.", biases=0)
def excess_is_bias_and_deviation(ones: F, counts: Histogram, noisy: Histogram, beta: F, biases: int = 1) -> Comparison:
    """Mean excess risk is at most 8 K / (1 - beta) (phi + K tau + K sigma/s) and twice that largest difference."""
    risks, looks = (ones, 1 - ones), look(counts, noisy, beta)
    excess = total(mass * risks[losses.index(min(losses))] for mass, losses in looks) - min(risks)
    bias = 32 / float(1 - beta) / math.log(NOISE) / sum(counts)
    return at_most(excess, biases * bias + 2 * float(_find_largest_gap(looks, risks)))


@claim(
    "E22 Theorem 2: residual",
    grid(contest=TEMPTING, part=[F(0)], beta=[F(0)], share=[F(n, 20) for n in (1, 10, 15, 19)]),
    draws(
        80,
        contest=lambda draw: draw_contest(draw, 4),
        part=[F(n, 4) for n in range(5)],
        beta=[F(0), *(F(n, 20) for n in range(20))],
        share=[F(n, 20) for n in range(20)],
    ),
    given="two hypotheses, as many rows as one likes in every cluster, tau a part of 1/K, lambda a share",
)
@false("The same without phi, as if all examples of a cluster were of one kind.", kinds=0)
def bias_is_heterogeneity_and_threshold(contest: Contest, part: F, beta: F, share: F, kinds: int = 1) -> Comparison:
    """With any number of rows, the excess risk is at most 8 K |beta - lambda| / (1 - beta) (phi + K tau)."""
    noisy = np.array([cluster_distribution(shares, part / contest.k) for shares in contest.shares])
    # Weights of the mean modified loss: the inverse matrix times the noisy law.
    lost = contest.excess(((1 - share) * contest.labels + (share - beta) * noisy) / (1 - beta))
    return at_most(lost, 8 * contest.k * abs(beta - share) / (1 - beta) * (kinds * contest.heterogeneity + part))
