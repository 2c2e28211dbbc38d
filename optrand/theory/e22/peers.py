"""Privacy of labels that peers exchange ([E22], Lemmas 8 and 9, Theorem 3, Section 5.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.baselines import PeerToPeer
from optrand.baselines.groups import Groups
from optrand.baselines.peer_accounting import PeerPair
from optrand.baselines.peer_to_peer import lemma9_at, theorem3, theorem3_flip
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.e22.noise import TOLERANCE, as_often
from optrand.theory.instances import Instance, seeded
from optrand.theory.sums import bit_sums, largest_ratio, total

__all__ = ["Accounted", "Cluster", "Peers", "package_accounts_for_releases", "released_as_printed"]


class Power(Instance, power="x**a", sign="s"):
    """A number `x` of at least 2 by its power `x**a`, a fraction; `a` is 1 or 1/2."""

    power: Fraction
    a: Fraction
    sign: int


def _powers(budget: Budget) -> Iterator[Power]:
    random, half = seeded(2), Fraction(1, 2)
    found = [Fraction(n) for n in (*range(2, 30), 100, 500)]
    for q, _ in product((2, 3, 5, 7), range(budget.pick(quick=10, full=200))):
        found.append(Fraction(random.randint(2 * q, 60 * q), q))
    yield from (Power(*case) for case in product(found, (Fraction(1), half), (-1, 1)))
    yield from (Power(Fraction(3, 2), half, sign) for sign in (-1, 1))


@claim(
    "E22 Lemma 8",
    on=_powers,
    given="s of -1 or 1, a of 1/2 or 1",
    sides=("left side, to a whole power", "right side, to the same power"),
    false=Variant("With 5/2 for 3.", halves=5),
)
def powers_are_within_three(power: Power, halves: int = 6) -> Comparison:
    """(1 + s/x)**(s x**a) is at most e**(2a - 1) + 3 / x**a, for x of 2 and more; compared in whole powers."""
    r, sign = power.power, power.sign
    base, limit = (1 + sign / r, exp_bracket(1.0)[0]) if power.a == 1 else (1 + sign / r**2, Fraction(1))
    return at_most(base ** (sign * r.numerator), (limit + halves / (2 * r)) ** r.denominator)


class Peers(Instance, size="s", flip="alpha", rate="theta", reach="xi as a share of its limit", users="users"):
    """Algorithm 2 in one cluster of so many users, where all clusters have at least `s`."""

    size: int
    flip: Fraction
    rate: Fraction
    reach: Fraction
    users: int

    def bounds(self, flip: Fraction) -> tuple[float, float]:
        """Epsilon and delta that the lemma promises at a flip."""
        xi = 3 * float(self.reach * flip) * math.sqrt(float(self.rate * self.size * (1 - flip)))
        return lemma9_at(PeerToPeer(float(flip), float(self.rate)), xi, self.size)

    @property
    def lesser(self) -> Fraction:
        """The lesser of `alpha` and `1 - alpha`."""
        return min(self.flip, 1 - self.flip)

    def delta(self, epsilon: float) -> float:
        """The exact delta for the worst labels of the others; of more than 128 users, for the worst that are tried."""
        return PeerToPeer(float(self.flip), float(self.rate)).delta(epsilon, self.users).delta


def _peers(budget: Budget) -> Iterator[Peers]:
    """Small clusters with all flips that the lemma allows, then larger ones."""
    reaches = (Fraction(1, 2), Fraction(1), Fraction(1, 10))
    flips = ("2/5", "1/2", "1/5", "1/3", "9/20", "3/5", "4/5", "99/100")
    cases = [*product((3, 4, 5, 10, 20), flips, ("1", "1/10"), reaches)]
    sizes = [(60, "1/10"), (60, "9/10"), (100, "1/5"), (400, "1/50")]
    sizes += budget.pick(quick=[], full=[(128, "1/2"), (1_000, "3/10"), (2_000, "1/5")])
    rates = budget.pick(quick=("1",), full=("1", "1/3"))
    cases += [(*each, rate, reach) for each, rate, reach in product(sizes, rates, (Fraction(3, 10), Fraction(1)))]
    for size, flip, rate, reach in cases:
        peers = Peers(size, Fraction(flip), Fraction(rate), reach, size)
        # What binomial sums leave out would begin to count below.
        if size * peers.flip >= 2 and min(peers.bounds(each)[1] for each in (peers.flip, peers.lesser)) >= 1e-20:
            yield peers
            if size <= budget.pick(quick=5, full=20):
                yield replace(peers, users=2 * size + 1)


@claim(
    "E22 Lemma 9",
    on=_peers,
    given="alpha >= 2 / s, clusters of s users and more, any xi that the lemma allows",
    sides=("delta at the stated epsilon", "stated delta"),
)
def peers_are_private(peers: Peers) -> Comparison:
    """Delta is at most exp(-alpha xi**2 / (4 (alpha + 1/s) (1 - alpha))) at Lemma 9's epsilon.

    This epsilon is theta log(e + 3 / (s alpha)) + sqrt(theta) xi log(1 + 3 / sqrt(s alpha)).
    """
    epsilon, delta = peers.bounds(peers.flip)
    return at_most(peers.delta(epsilon), delta)


@peers_are_private.corrected
def _(peers: Peers) -> Comparison:
    """The same with the lesser of alpha and 1 - alpha for alpha, where it is at least 2 / s."""
    epsilon, delta = peers.bounds(peers.lesser)
    return at_most(peers.delta(epsilon), delta) if peers.size * peers.lesser >= 2 else none(0)


@peers_are_private.false
def _(peers: Peers) -> Comparison:
    """The same, alpha being at most 1/2, where users send their own flipped label: the exchange is left out."""
    epsilon, delta = peers.bounds(peers.lesser)
    flips = float(peers.rate) * max(0.0, float(1 - peers.flip) - math.exp(epsilon) * float(peers.flip))
    return at_most(flips, delta) if peers.flip <= Fraction(1, 2) else none(0)


class Draws(Instance, p="p", low="alpha n", square="xi**2"):
    """The proof's model: `t` independent draws, and one of `n` labels that changes from 0 to 1."""

    n: int
    t: int
    p: Fraction
    low: int
    square: Fraction

    def beyond(self, centre: Fraction) -> Fraction:
        """The probability, after the change, of more than the centre plus `xi sqrt(t p)` ones."""
        p, reach = self.p + Fraction(1, self.n), self.square * self.t * self.p
        counts = (k for k in range(self.t + 1) if k > centre and (k - centre) ** 2 > reach)
        return total(math.comb(self.t, k) * p**k * (1 - p) ** (self.t - k) for k in counts)


def _draws(budget: Budget) -> Iterator[Draws]:
    for n in (*range(5, 15), 20, 30, *budget.pick(quick=(), full=(40, 60, 100, 150))):
        for t, low in product(sorted({n // 2, n}), sorted({2, n // 4, n // 2} - {0, 1})):
            for ones in sorted({low, n // 2, n - low - 1} & {*range(low, n - low)}):
                most = Fraction(9 * low**2 * t * (n - low), n**3)
                yield from (Draws(n, t, Fraction(ones, n), low, most * part) for part in (Fraction(1, 9), Fraction(1)))


@claim(
    "E22 Lemma 9: upper tail",
    kind="text",
    on=_draws,
    given="n = s, alpha <= p < p' <= 1 - alpha, xi up to its limit",
    sides=("probability beyond the threshold, after the change", "probability before the change, or bound"),
    corrected=Variant(
        "After the change, counts beyond t p + xi sqrt(t p) are no likelier than Lemma 9's delta.", power=1
    ),
    false=Variant("The same with the square of that delta, as if binomial tails were as thin as normal ones.", power=2),
)
def counts_are_centred_where_they_were(draws: Draws, power: int = 0) -> Comparison:
    """After the change, counts beyond t p + xi sqrt(t p) are no likelier than counts beyond t p' + xi sqrt(t p)."""
    n, t, beyond = draws.n, draws.t, draws.beyond(draws.t * draws.p)
    delta = lemma9_at(PeerToPeer(draws.low / n, t / n), math.sqrt(draws.square), n)[1]
    return (
        at_most(float(beyond), delta**power) if power else at_most(beyond, draws.beyond(t * draws.p + Fraction(t, n)))
    )


class ManyPeers(Instance, size="s", rate="theta"):
    """A cluster whose flip follows from its size and its rate: `alpha = 4 sqrt(2) log(s) / sqrt(theta s)`."""

    size: int
    rate: float

    @property
    def epsilon(self) -> float:
        """What the proof has before its last line."""
        return theorem3(PeerToPeer(theorem3_flip(self.size, self.rate), self.rate), self.size)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Bounds of delta, from below and above, where all other users have the label 0, or half of them."""
        flip, others = theorem3_flip(self.size, self.rate), (0, (self.size - 1) // 2)
        pairs = [PeerPair.of(self.size, flip, self.rate, ones=ones) for ones in others]
        lows, highs = zip(*(pair.delta(epsilon) for pair in pairs), strict=True)
        return max(lows), max(highs)


def _many(budget: Budget) -> Iterator[ManyPeers]:
    """Clusters in which the flip is at most 1/2, where all users send copies, and where about as few as that allows."""
    more = ((50_000, 1.0), (50_000, 0.3), (100_000, 1.0), (100_000, 0.18))
    cases = *((size, 1.0) for size in (11_700, 12_000, 13_000, 15_000, 17_000, 20_000, 30_000)), (11_700, 0.97)
    return (ManyPeers(size, rate) for size, rate in (*cases, *budget.pick(quick=(), full=more)))


@claim(
    "E22 Theorem 3",
    on=_many,
    given="its alpha, at most 1/2; of the others' labels none is 1, or half",
    sides=("delta at the stated epsilon", "1 / s**2"),
)
def many_peers_are_private(peers: ManyPeers) -> Comparison:
    """Delta is at most 1/s**2 at an epsilon of order theta + theta**(3/2) / (sqrt(s) log s) + theta**(3/4) / s**(1/4).

    Tried with what the proof has before its last line.
    """
    return at_most(peers.delta(peers.epsilon)[1], 1 / peers.size**2)


@many_peers_are_private.false
def _(peers: ManyPeers) -> Comparison:
    """The same at an epsilon of theta / sqrt(s): the deviations that delta leaves to epsilon are forgotten."""
    return at_most(peers.delta(peers.rate / math.sqrt(peers.size))[0], 1 / peers.size**2)


def _all_many(budget: Budget) -> Iterator[ManyPeers]:
    powers = (5, 6, 9, 12, *budget.pick(quick=(), full=tuple(range(13, 40))))
    for size, part in product((11_700, 20_000, *(10**n for n in powers)), (0.0, 0.2, 0.6, 1.0)):
        least = (2 * theorem3_flip(size, 1.0)) ** 2
        yield ManyPeers(size, min(1.0, least * (1 + 1e-9) + part * (1 - least)))


@claim(
    "E22 Theorem 3: last line",
    kind="text",
    on=_all_many,
    given="alpha = 4 sqrt(2) log(s) / sqrt(theta s) of at most 1/2",
    sides=("epsilon of Lemma 9", "bound"),
    false=Variant("The same with 2**(1/2) for 2**(3/4).", power=1 / 2),
)
def last_line_is_above(peers: ManyPeers, power: float = 3 / 4) -> Comparison:
    """Lemma 9's epsilon is at most theta + 3 theta**(3/2) / (e sqrt(s) log s) + 3 2**(3/4) theta**(3/4) / s**(1/4)."""
    s, rate = peers.size, peers.rate
    small = 3 * math.pow(rate, 1.5) / (math.e * math.sqrt(s) * math.log(s))
    return at_most(peers.epsilon, rate + small + 3 * math.pow(2, power) * math.pow(rate, 0.75) / math.pow(s, 0.25))


class Cluster(Instance, flip="alpha", rate="theta"):
    """Algorithm 2 among the users of one cluster, whose labels are given."""

    labels: tuple[int, ...]
    flip: Fraction
    rate: Fraction

    @property
    def mean(self) -> Fraction:
        """The probability that a copy is 1."""
        return total(1 - self.flip if y else self.flip for y in self.labels) / len(self.labels)

    def law(self, *, anew: bool = False) -> dict[tuple[int, ...], Fraction]:
        """Law of what the users send, 0, 1 or -1 for nothing; if `anew`, as if each copy were flipped by itself."""
        n, found = len(self.labels), {}
        flipped = bit_sums(np.array([1 - self.flip if y else self.flip for y in self.labels]))
        shares = {self.mean: Fraction(1)} if anew else {Fraction(ones, n): mass for ones, mass in enumerate(flipped)}
        for copies in product((-1, 0, 1), repeat=n):
            sent, ones = n - copies.count(-1), copies.count(1)
            of_shares = (mass * share**ones * (1 - share) ** (sent - ones) for share, mass in shares.items())
            found[copies] = (1 - self.rate) ** (n - sent) * self.rate**sent * total(of_shares)
        return found


class Accounted(Instance, users="users", flip="alpha", rate="theta"):
    """A small cluster with any labels, and an epsilon."""

    users: int
    flip: Fraction
    rate: Fraction
    epsilon: float


def _accounted(budget: Budget) -> Iterator[Accounted]:
    flips = [Fraction(text) for text in ("1/4", "1/10", "2/5", "9/10", "0")]
    users = (2, 3, *budget.pick(quick=(), full=(4, 5)))
    yield from (Accounted(*case) for case in product(users, flips, (Fraction(1), Fraction(1, 3)), (0.05, 0.3)))
    yield Accounted(4, Fraction(1, 4), Fraction(1, 2), 0.1)


@claim(
    "E22 Lemma 9: as the package has it",
    kind="ours",
    on=_accounted,
    given="all labels of small clusters, all flips, choices and subsamples",
    sides=("delta over all that users can send", "delta that the package states"),
    false=Variant("The same where every copy is flipped by itself, as the lemma's proof has it.", anew=True),
)
def package_accounts_for_releases(accounted: Accounted, *, anew: bool = False) -> Comparison:
    """The delta that the package sums is that of Algorithm 2, over all that the users of a cluster can send."""
    ratio, deltas = Fraction(math.exp(accounted.epsilon)), []
    for ones in range(accounted.users):
        others = (1,) * ones + (0,) * (accounted.users - 1 - ones)
        laws = [Cluster((y, *others), accounted.flip, accounted.rate).law(anew=anew) for y in (0, 1)]
        for p, q in (laws, laws[::-1]):
            deltas.append(total(max(Fraction(0), mass - ratio * q[copies]) for copies, mass in p.items()))
    stated = PeerToPeer(float(accounted.flip), float(accounted.rate)).delta(accounted.epsilon, accounted.users).delta
    return equal(float(max(deltas)), stated, tolerance=TOLERANCE, scale=1e-3)


def _released(budget: Budget) -> Iterator[Cluster]:
    yield Cluster((0, 0, 1), Fraction(1, 4), Fraction(1, 2))
    yield Cluster((0, 0), Fraction(1, 10), Fraction(1))
    yield from budget.pick(quick=(), full=(Cluster((0, 0, 1, 0), Fraction(2, 5), Fraction(4, 5)),))


@claim(
    "E22 Lemma 9: draws",
    kind="ours",
    on=_released,
    given="many equal clusters released by the package, with the words of a seed",
    sides=("distance of a frequency from its probability", "five standard errors"),
    false=Variant("The same where every copy is flipped by itself.", anew=True),
)
def released_as_printed(cluster: Cluster, counted: Cluster | None = None, *, anew: bool = False) -> Comparison:
    """Users send what Algorithm 2 says as often as it says, up to five standard errors."""
    n = len(cluster.labels)
    groups = Groups.of_ids(np.repeat(np.arange(20_000), n))
    mechanism = PeerToPeer(float(cluster.flip), float(cluster.rate))
    release = mechanism.release(cluster.labels * 20_000, groups, source=SeededEntropy(6))
    copies = np.full(n * 20_000, -1)
    copies[release.rows] = release.labels
    law = (counted or cluster).law(anew=anew)
    return as_often(Counter(map(tuple, copies.reshape(-1, n).tolist())), law, key=sorted)


def _copied(budget: Budget) -> Iterator[Cluster]:
    for n in range(1, budget.pick(quick=5, full=7)):
        for ones, flip in product(range(n // 2 + 1), ("1/4", "1/10", "0", "1/2")):
            yield Cluster((1,) * ones + (0,) * (n - ones), Fraction(flip), Fraction(1))


@claim(
    "E22 Lemma 9: number of ones",
    kind="text",
    on=_copied,
    given="every user of the cluster sends a copy",
    sides=("variance of the number of ones", "variance as claimed"),
    corrected=Variant(
        "The variance of the ones among t copies is t p (1 - p) + t (t - 1) alpha (1 - alpha) / n: some copy the same.",
        chance=lambda each: each.flip,
    ),
    false=Variant("The same with p (1 - p) for alpha (1 - alpha).", chance=lambda each: each.mean),
)
def copies_are_independent(cluster: Cluster, chance: Callable[[Cluster], Fraction | int] = lambda _: 0) -> Comparison:
    """The ones among t copies are binomial, with the variance t p (1 - p)."""
    n, p, q, law = len(cluster.labels), cluster.mean, Fraction(chance(cluster)), cluster.law()
    first, second = (total(mass * sum(copies) ** power for copies, mass in law.items()) for power in (1, 2))
    return equal(second - first**2, n * p * (1 - p) + (n - 1) * q * (1 - q))


class View(Instance, users="s", flip="alpha"):
    """What one user of a cluster learns: whom they asked, and the flipped label that they were told."""

    users: int
    flip: Fraction

    @cached_property
    def laws(self) -> list[dict[tuple[int, int], Fraction]]:
        """Two laws, for either label of the first user; all others have the label 0."""
        views = list(product(range(self.users), (0, 1)))
        told = {0: (1 - self.flip) / self.users, 1: self.flip / self.users}
        return [{(j, seen): told[abs(seen - first * (j == 0))] for j, seen in views} for first in (0, 1)]

    @property
    def apart(self) -> Fraction:
        """Total variation distance of both laws: delta at an epsilon of 0."""
        return total(max(Fraction(0), mass - self.laws[1][view]) for view, mass in self.laws[0].items())


def _views(budget: Budget) -> Iterator[View]:
    flips = [Fraction(n, 100) for n in (25, 5, 40, 50, 60, 99, 1, *budget.pick(quick=(), full=(10, 20, 30, 45, 75)))]
    return (View(users, flip) for users, flip in product((1, 2, 3, 10, 50), flips))


@claim(
    "E22 Section 5.1: flips",
    on=_views,
    given="any alpha above 0 and below 1; what one user learns",
    sides=("largest ratio of probabilities", "odds of a flip, or as the form has it"),
    corrected=Variant(
        "Towards each user Algorithm 2 is only private at the absolute value of that; compared as ratios.", either=True
    ),
    false=Variant("The same with 1 + (ratio - 1) / s for the ratio, as if no user knew whom they ask.", unseen=True),
)
def users_see_flips(view: View, *, either: bool = False, unseen: bool = False) -> Comparison:
    """Towards each user Algorithm 2 is only private at log((1 - alpha) / alpha); compared as ratios."""
    odds = (1 - view.flip) / view.flip
    odds = max(odds, 1 / odds) if either or unseen else odds
    return equal(largest_ratio(view.laws), 1 + (odds - 1) / view.users if unseen else odds)


@claim(
    "E22 Section 5.1: one of s",
    on=_views,
    given="any alpha",
    sides=("largest distance of two probabilities (delta)", "bound"),
    false=Variant("With 1 / (s + 1).", more=1),
)
def users_see_one_of_s(view: View, more: int = 0) -> Comparison:
    """Towards each user Algorithm 2 is (0, 1/s)-private, in clusters of s users."""
    return at_most(view.apart, Fraction(1, view.users + more))


@claim(
    "E22 Section 5.1: as the package has it",
    kind="ours",
    on=_views,
    given="any alpha above 0 and below 1",
    sides=("epsilon or delta that the package states", "epsilon or delta by enumeration"),
    false=Variant("The same with (1 - alpha) / s for the delta.", share=1),
)
def package_states_what_users_see(view: View, share: int = 2) -> Comparison:
    """The package states abs(log((1 - alpha) / alpha)), and a delta of abs(1 - 2 alpha) / s at an epsilon of 0."""
    mechanism, known = PeerToPeer(float(view.flip), 1.0), abs(1 - share * view.flip) / view.users
    return worst(
        equal(mechanism.epsilon, math.log(largest_ratio(view.laws)), tolerance=TOLERANCE, scale=1),
        equal(mechanism.peer_delta(view.users), float(known), tolerance=TOLERANCE),
        equal(float(view.apart), float(known), tolerance=TOLERANCE),
    )


@claim(
    "E22 Section 5.1: subsampling alone",
    on=lambda _: (Cluster((0,), Fraction(a, 20), Fraction(t, 20)) for a in (5, 1, 8, 10) for t in (5, 1, 8, 10, 20)),
    given="alpha from above 0 to 1/2, theta above 0; every user alone in a cluster",
    sides=("largest ratio of probabilities", "odds of a flip, or as the form has it"),
    false=Variant("The ratio is 1 + theta (ratio - 1), as where users leave the data.", amplified=True),
)
def subsampling_alone_amplifies_nothing(cluster: Cluster, *, amplified: bool = False) -> Comparison:
    """Flips and subsampling without an exchange are as private as flips: at log((1 - alpha) / alpha), as ratios."""
    odds = (1 - cluster.flip) / cluster.flip
    laws = [cluster.law(), replace(cluster, labels=(1,)).law()]
    return equal(largest_ratio(laws), 1 + cluster.rate * (odds - 1) if amplified else odds)
