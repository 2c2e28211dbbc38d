"""Labels that peers exchange, and labels of small clusters ([E22], Lemmas 8 and 9, Theorems 3 to 5, Section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction as F
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import bdtr

from optrand.base._arithmetic import exp_bracket
from optrand.baselines import ClusterRR, PeerToPeer
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerPair, lemma9_at, theorem3, theorem3_flip
from optrand.sampling._entropy import SeededEntropy
from optrand.theory._engine import TOLERANCE, Comparison, at_most, cases, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, binomial, bit_sums, largest_ratio, total
from optrand.theory.e22.curator import CONSTANT, GAMMAS, largest_loss_at
from optrand.theory.e22.losses import Contest, draw_contest

ONE = F(1)
HALF = F(1, 2)
FLIPS = tuple(map(F, ("2/5", "1/2", "1/5", "1/3", "9/20", "3/5", "4/5", "99/100")))


@claim(
    "E22 Lemma 8",
    grid(power=[F(n) for n in (*range(2, 30), 100, 500)], a=(ONE, HALF), sign=(-1, 1)),
    grid(power=[F(3, 2)], a=[HALF], sign=(-1, 1)),
    draws(80, power=[F(n, 7) for n in range(14, 420)], a=(ONE, HALF), sign=(-1, 1)),
    given="s of -1 or 1, a of 1/2 or 1, x of 2 and more by its power x**a (a fraction), compared in whole powers",
)
@false("With 5/2 for 3.", halves=5)
def powers_are_within_three(power: F, a: F, sign: int, halves: int = 6) -> Comparison:
    """(1 + s/x)**(s x**a) is at most e**(2a - 1) + 3 / x**a, for x of 2 and more."""
    base, limit = (1 + sign / power, exp_bracket(1.0)[0]) if a == 1 else (1 + sign / power**2, ONE)
    return at_most(base ** (sign * power.numerator), (limit + halves / (2 * power)) ** power.denominator)


def promise(size: int, flip: F, rate: F, reach: F) -> tuple[float, float]:
    """Return the epsilon and the delta of Lemma 9 at xi, which is `reach` of its limit."""
    xi = 3 * float(reach * flip) * math.sqrt(float(rate * size * (1 - flip)))
    return lemma9_at(PeerToPeer(float(flip), float(rate)), xi, size)


@cache
def find_delta(flip: float, rate: float, epsilon: float, users: int) -> float:
    """Return the exact delta for the worst labels of the others, for more than 128 users the worst ones tried."""
    return PeerToPeer(flip, rate).delta(epsilon, users).delta


def _is_decided(size: int, flip: F, rate: F, reach: F, *, lesser: bool = False) -> bool:
    """Return whether the lemma covers these peers, and promises deltas that binomial sums can separate from 0."""
    least = min(flip, 1 - flip)
    promised = min(promise(size, each, rate, reach)[1] for each in (flip, least))
    return size * (least if lesser else flip) >= 2 and promised >= 1e-20


@claim(
    "E22 Lemma 9",
    *(
        grid(size=[n], flip=FLIPS, rate=(ONE, ONE / 10), reach=(HALF, ONE, ONE / 10), users=(n, 2 * n + 1))
        for n in (3, 5)
    ),
    *(
        grid(size=[n], flip=[F(flip)], rate=[ONE], reach=(3 * ONE / 10, ONE), users=[n])
        for n, flip in ((60, "1/10"), (60, "9/10"), (400, "1/50"))
    ),
    given="alpha >= 2 / s, clusters of s users and more, any xi of the lemma",
    where=_is_decided,
)
@corrected(
    "The same with the lesser of alpha and 1 - alpha for alpha, if it is at least 2 / s.",
    where=partial(_is_decided, lesser=True),
    lesser=True,
)
@false(
    "The same, alpha being at most 1/2, if users send their own flipped label: the exchange is left out.",
    where=lambda size, flip: size * flip >= 2 and flip <= HALF,
    alone=True,
)
def peers_are_private(
    size: int, flip: F, rate: F, reach: F, users: int, lesser: bool = False, alone: bool = False
) -> Comparison:
    """Delta is at most exp(-alpha xi**2 / (4 (alpha + 1/s) (1 - alpha))) at Lemma 9's epsilon.

    This epsilon is theta log(e + 3 / (s alpha)) + sqrt(theta) xi log(1 + 3 / sqrt(s alpha)).
    """
    epsilon, delta = promise(size, min(flip, 1 - flip) if lesser else flip, rate, reach)
    own = float(rate) * max(0.0, float(1 - flip) - math.exp(epsilon) * float(flip))
    return at_most(own if alone else find_delta(float(flip), float(rate), epsilon, users), delta)


def _exceed(n: int, t: int, p: F, square: F, centre: F) -> F:
    """Return the probability of more than the centre plus ``sqrt(square t p)`` ones, after one of `n` labels changed.

    The proof's model: `t` independent draws, and a label that changes from 0 to 1.
    """
    changed, reach = p + F(1, n), square * t * p
    counts = (k for k in range(t + 1) if k > centre and (k - centre) ** 2 > reach)
    return total(math.comb(t, k) * changed**k * (1 - changed) ** (t - k) for k in counts)


def _draws() -> Iterator[dict[str, Any]]:
    for n in (*range(5, 15), 20, 30):
        for t, low in product(sorted({n // 2, n}), sorted({2, n // 4, n // 2} - {0, 1})):
            for ones in sorted({low, n // 2, n - low - 1} & {*range(low, n - low)}):
                most = F(9 * low**2 * t * (n - low), n**3)
                yield from ({"n": n, "t": t, "p": F(ones, n), "low": low, "square": most / by} for by in (9, 1))


def _stay_below(n: int, t: int, p: F, low: int, square: F, power: int = 1) -> Comparison:
    delta = lemma9_at(PeerToPeer(low / n, t / n), math.sqrt(square), n)[1]
    return at_most(float(_exceed(n, t, p, square, t * p)), delta**power)


@claim("E22 Lemma 9: upper tail", _draws, given="n = s, alpha <= p < p' <= 1 - alpha, xi up to its limit")
@corrected("After the change, counts beyond t p + xi sqrt(t p) are no likelier than Lemma 9's delta.", _stay_below)
@false("The same with the square of that delta, as if binomial tails were thin as normal ones.", _stay_below, power=2)
def counts_are_centred_where_they_were(n: int, t: int, p: F, square: F) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than counts beyond t p' + xi sqrt(t p)."""
    return at_most(_exceed(n, t, p, square, t * p), _exceed(n, t, p, square, t * (p + F(1, n))))


@cache
def _pair(size: int, rate: float, ones: int) -> PeerPair:
    return PeerPair.of(size, theorem3_flip(size, rate), rate, ones=ones)


@claim(
    "E22 Theorem 3",
    cases("size rate ones", (20_000, 1.0, 0), (20_000, 1.0, 9_999), (11_700, 0.97, 0)),
    given="its alpha = 4 sqrt(2) log(s) / sqrt(theta s), at most 1/2, the others' labels all 0 or half of them 1",
    where=lambda size, rate: theorem3_flip(size, rate) <= 1 / 2,
)
@false(
    "The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are left out.",
    lambda size, rate, ones: at_most(_pair(size, rate, ones).delta(rate / math.sqrt(size))[0], 1 / size**2),
)
def many_peers_are_private(size: int, rate: float, ones: int) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / (sqrt(s) log s) + theta**(3/4) / s**(1/4).

    Tried with the bound that precedes the last line of the proof.
    """
    epsilon = theorem3(PeerToPeer(theorem3_flip(size, rate), rate), size)
    return at_most(_pair(size, rate, ones).delta(epsilon)[1], 1 / size**2)


@claim(
    "E22 Theorem 3: last line",
    *(
        grid(size=[size], rate=np.linspace((2 * theorem3_flip(size, 1.0)) ** 2 * (1 + 1e-9), 1.0, 4).tolist())
        for size in (11_700, 20_000, *(10**n for n in (5, 6, 9, 12)))
    ),
    given="alpha = 4 sqrt(2) log(s) / sqrt(theta s) of at most 1/2",
    where=lambda size, rate: theorem3_flip(size, rate) <= 1 / 2,
)
@false("The same with 2**(1/2) for 2**(3/4).", power=1 / 2)
def last_line_is_above(size: int, rate: float, power: float = 3 / 4) -> Comparison:
    """Lemma 9's epsilon is at most theta + 3 theta**(3/2) / (e sqrt(s) log s) + 3 2**(3/4) theta**(3/4) / s**(1/4)."""
    small = 3 * math.pow(rate, 1.5) / (math.e * math.sqrt(size) * math.log(size))
    large = 3 * math.pow(2, power) * math.pow(rate, 0.75) / math.pow(size, 0.25)
    return at_most(theorem3(PeerToPeer(theorem3_flip(size, rate), rate), size), rate + small + large)


Labels = tuple[int, ...]


def mean_copy(labels: Labels, flip: F) -> F:
    """Return the probability that a copy is 1."""
    return total(1 - flip if y else flip for y in labels) / len(labels)


def copies_law(labels: Labels, flip: F, rate: F) -> dict[Labels, F]:
    """Return the law of the messages of one cluster's users in Algorithm 2: 0, 1, or -1 for nothing."""
    n, found = len(labels), {}
    flipped = bit_sums(np.array([1 - flip if y else flip for y in labels]))
    for copies in product((-1, 0, 1), repeat=n):
        sent, ones = n - copies.count(-1), copies.count(1)
        shares = ((F(count, n), mass) for count, mass in enumerate(flipped))
        seen = total(mass * share**ones * (1 - share) ** (sent - ones) for share, mass in shares)
        found[copies] = (1 - rate) ** (n - sent) * rate**sent * seen
    return found


@claim(
    "E22 Lemma 9: number of ones",
    *(
        grid(labels=[(1,) * ones + (0,) * (n - ones) for ones in range(n // 2 + 1)], flip=[F(1, 4), F(0), F(1, 2)])
        for n in range(1, 5)
    ),
    given="every user of the cluster sends a copy",
)
@corrected(
    "The variance of the ones among t copies is t p (1 - p) + t (t - 1) alpha (1 - alpha) / n: some copy the same.",
    chance=lambda _, flip: flip,
)
@false("The same with p (1 - p) for alpha (1 - alpha).", chance=mean_copy)
def copies_are_independent(labels: Labels, flip: F, chance: Any = lambda *_: F(0)) -> Comparison:
    """The ones among t copies are binomial, with the variance t p (1 - p)."""
    n, p, q = len(labels), mean_copy(labels, flip), chance(labels, flip)
    law = copies_law(labels, flip, F(1)).items()
    first, second = (total(mass * sum(copies) ** power for copies, mass in law) for power in (1, 2))
    return equal(second - first**2, n * p * (1 - p) + (n - 1) * q * (1 - q))


def _views(users: int, flip: F) -> list[dict[tuple[int, int], F]]:
    """Return the laws of whom one user queried and which label they received, for either label of the first user."""
    by_distance = {0: (1 - flip) / users, 1: flip / users}
    views = list(product(range(users), (0, 1)))
    return [{(j, seen): by_distance[abs(seen - first * (j == 0))] for j, seen in views} for first in (0, 1)]


VIEWS = grid(users=(1, 2, 3, 10, 50), flip=[F(n, 100) for n in (25, 5, 40, 50, 60, 99, 1)])


@claim("E22 Section 5.1: flips", VIEWS, given="0 < alpha < 1, the knowledge of one user, compared as ratios")
@corrected("Towards each user Algorithm 2 is only private at the absolute value of that.", either=True)
@false("The same with 1 + (ratio - 1) / s for the ratio, as if no user knew whom they ask.", either=True, unseen=True)
def users_see_flips(users: int, flip: F, *, either: bool = False, unseen: bool = False) -> Comparison:
    """Towards each user Algorithm 2 is only private at log((1 - alpha) / alpha)."""
    odds = (1 - flip) / flip
    odds = max(odds, 1 / odds) if either else odds
    return equal(largest_ratio(_views(users, flip)), 1 + (odds - 1) / users if unseen else odds)


@claim("E22 Section 5.1: one of s", VIEWS, given="any alpha")
@false("With 1 / (s + 1).", more=1)
def users_see_one_of_s(users: int, flip: F, more: int = 0) -> Comparison:
    """Towards each user Algorithm 2 is (0, 1/s)-private, in clusters of s users."""
    one, other = _views(users, flip)
    return at_most(total(max(F(0), one[view] - other[view]) for view in one), F(1, users + more))


@claim(
    "E22 Section 5.1: subsampling alone",
    flip=[F(n, 20) for n in (5, 1, 8, 10)],
    rate=[F(n, 20) for n in (5, 1, 8, 10, 20)],
    given="alpha from above 0 to 1/2, theta above 0, every user alone in a cluster, compared as ratios",
)
@false("The ratio is 1 + theta (ratio - 1), as where users leave the data.", amplified=True)
def subsampling_alone_amplifies_nothing(flip: F, rate: F, *, amplified: bool = False) -> Comparison:
    """Flips and subsampling without an exchange are as private as flips: at log((1 - alpha) / alpha)."""
    odds = (1 - flip) / flip
    laws = [copies_law((y,), flip, rate) for y in (0, 1)]
    return equal(largest_ratio(laws), 1 + rate * (odds - 1) if amplified else odds)


def mislead_peers(size: int, rate: float, flip: float, ones: float) -> float:
    """Return the probability that at most half of the copies in one cluster are 1, if labels are with `ones`."""
    n = np.arange(size + 1)
    minorities = binomial(size, rate) @ bdtr(n[:, np.newaxis] // 2, n[:, np.newaxis], n / size)
    return float(minorities @ binomial(size, flip + (1 - 2 * flip) * ones))


@claim(
    "E22 Theorem 4",
    *(
        grid(size=(1, 2, 5, 20, 80), rate=[rate], flip=[flip], gamma=GAMMAS)
        for rate, flip in ((1.0, 0.1), (0.05, 0.1), (1.0, 0.0), (0.2, 0.4))
    ),
    given="any population, class and clusters, two constant hypotheses, all users in one cluster, C = 3",
    undecided=CONSTANT,
)
@false("Without theta.", power=0)
def peers_learn_by_their_copies(size: int, rate: float, flip: float, gamma: float, power: int = 1) -> Comparison:
    """With probability 1 - gamma the excess risk is at most C (sqrt(dim log(1/gamma) / (theta n)) + phi + alpha)."""
    deviation = math.sqrt(math.log(1 / gamma) / (rate**power * size))
    lost = largest_loss_at(partial(mislead_peers, size, rate, flip), gamma)
    return at_most(lost, 3 * (deviation + flip), tolerance=TOLERANCE.proven)


def _tempt(flip: F) -> dict[str, Any]:
    losses = np.array([[[0, flip / (1 - flip)]], [[1, 0]]])
    return {"contest": Contest(np.array([ONE]), np.array([0]), np.array([[0, ONE]]), losses), "flip": flip}


@claim(
    "E22 Theorem 4: bias",
    [_tempt(F(1, n)) for n in (4, 10, 2)],
    draws(100, contest=lambda draw: draw_contest(draw, 2), flip=[F(n, 100) for n in range(51)]),
    given="two hypotheses, as many rows as one likes in every cluster, alpha at most 1/2, constants of ours",
)
@false("With any number of rows, the excess risk among peers is at most phi + alpha.", flips=1)
def bias_is_heterogeneity_and_two_flips(contest: Contest, flip: F, flips: int = 2) -> Comparison:
    """With any number of rows, the excess risk among peers is at most phi + 2 alpha."""
    return at_most(contest.excess(flip + (1 - 2 * flip) * contest.shares), contest.heterogeneity + flips * flip)


@claim(
    "E22 Theorem 4: with Theorem 3",
    epsilon=[F(1, n) for n in (4, 100, 8)],
    heterogeneity=[F(1, 10**n) for n in (6, 5, 7, 9)],
    more=(1, 100),
    given="any number of rows, theta = epsilon / 2, clusters `more` times as large as they must be",
)
@corrected("Clusters of s = 1 / (phi**2 epsilon) users and more have both.", powers=(2, 1))
@false("Clusters of s = 1 / (phi**(3/2) epsilon) users and more have both.", powers=(3 / 2, 1))
def large_clusters_have_both(epsilon: F, heterogeneity: F, more: int, powers: tuple[float, int] = (1, 2)) -> Comparison:
    """Clusters of s = 1 / (phi epsilon**2) users and more have an epsilon and a risk of order phi up to logs."""
    of_phi, of_epsilon = powers
    size = more * math.ceil(math.pow(heterogeneity, -of_phi) * math.pow(epsilon, -of_epsilon))
    rate = float(epsilon / 2)
    mechanism = PeerToPeer(theorem3_flip(size, rate), rate)
    # Loss if the flip just tempts to another hypothesis.
    lost, order = mechanism.flip / (1 - mechanism.flip), 16 * math.log(size) * float(heterogeneity)
    return at_most([theorem3(mechanism, size), lost], [float(epsilon), order])


@claim(
    "E22 Section 6: excess risk",
    *(grid(k=[k], size=[size], epsilon=(1.0, 4.0)) for k, size in ((2, 2), (2, 20), (5, 5), (20, 20), (20, 60))),
    given="20 pure clusters, phi = 0, beta = 0, lambda = 1, tau = 0, sigma = 1 / epsilon",
    undecided=CONSTANT,
)
@false("The same with sqrt(K) for K.", power=1 / 2)
def pure_clusters_cost_labels_over_rows(k: int, size: int, epsilon: float, power: float = 1.0) -> Comparison:
    """Excess risk is at most C (sqrt(d / n) + K / (s epsilon)), up to logarithms."""
    mechanism = ClusterRR(k, threshold=0, noise_scale=1 / epsilon, resampling=1, bias_correction=0)
    release = mechanism.release([0] * (20 * size), Groups.of_ids(np.repeat(range(20), size)), source=SeededEntropy(7))
    wrong = 1 - float(total(q[0] for q in release.distributions)) / 20
    # One hypothesis loses 1 at labels drawn wrong, and the other just enough elsewhere to balance that.
    return at_most(wrong / max(wrong, 1 - wrong), k**power / (size * epsilon))


def find_labels(k: int, size: int, ratio: F, named: int) -> F:
    """Return the largest mean number of a cluster's `size` labels among `named` ones, of any private mechanism.

    Mechanisms may be averaged over permutations of labels: then each label found multiplies the probability of a set,
    and most are found where it does so by ``exp(epsilon)``.
    """
    hits = range(max(0, named - (k - size)), min(size, named) + 1)
    masses = {i: math.comb(size, i) * math.comb(k - size, named - i) * ratio**i for i in hits}
    return total(i * mass for i, mass in masses.items()) / total(masses.values())


@claim(
    "E22 Theorem 5: inequality",
    *(grid(k=[k], size=[size], ratio=RATIOS) for k, size in ((2, 1), (3, 1), (3, 2), (6, 2), (20, 3), (38, 5))),
    given="1 <= s < K",
)
@false("Without exp(epsilon).", power=0)
def precision_times_recall_is_bounded(k: int, size: int, ratio: F, power: int = 1) -> Comparison:
    """Precision times recall is at most exp(epsilon) s / (K - s), for every private mechanism."""
    # By convexity, sets of one size are best.
    best = max(find_labels(k, size, ratio, named) ** 2 / (size * named) for named in range(1, k + 1))
    return at_most(best, ratio**power * size / (k - size))
