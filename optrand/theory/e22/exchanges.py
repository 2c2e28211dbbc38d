"""Algorithm 2 of [E22] on small clusters, all flips and copies summed, and what each user learns (Section 5.1)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.baselines import PeerToPeer
from optrand.baselines.groups import Groups
from optrand.sampling.entropy import SeededEntropy
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.e22.noise import as_often
from optrand.theory.instances import Instance
from optrand.theory.sums import largest_ratio, times, total

__all__ = ["Accounted", "Cluster", "released_as_counted"]

TOLERANCE = 1e-9
"""Of binomial sums in floats."""

Copies = tuple[int, ...]
"""What each user of a cluster sends: 0, 1 or nothing, which is -1."""


class Cluster(Instance, flip="alpha", rate="theta"):
    """Algorithm 2 among the users of one cluster, whose labels are given."""

    labels: tuple[int, ...]
    flip: Fraction
    rate: Fraction

    @property
    def mechanism(self) -> PeerToPeer:
        """The package's."""
        return PeerToPeer(float(self.flip), float(self.rate))

    @property
    def mean(self) -> Fraction:
        """The probability that a copy is 1."""
        return total(1 - self.flip if y else self.flip for y in self.labels) / len(self.labels)

    def law(self, *, anew: bool = False) -> dict[Copies, Fraction]:
        """Law of what the users send; if `anew`, as if each copy were flipped by itself."""
        n, found = len(self.labels), dict[Copies, Fraction]()
        shares = {self.mean: Fraction(1)} if anew else self._shares
        for copies in product((-1, 0, 1), repeat=n):
            sent, ones = n - copies.count(-1), copies.count(1)
            of_shares = (mass * share**ones * (1 - share) ** (sent - ones) for share, mass in shares.items())
            found[copies] = (1 - self.rate) ** (n - sent) * self.rate**sent * total(of_shares)
        return found

    @cached_property
    def _shares(self) -> dict[Fraction, Fraction]:
        """Law of the share of ones after the flips."""
        found: dict[Fraction, Fraction] = {}
        for flips in product((0, 1), repeat=len(self.labels)):
            share = Fraction(sum(y ^ f for y, f in zip(self.labels, flips, strict=True)), len(flips))
            mass = times(self.flip if f else 1 - self.flip for f in flips)
            found[share] = found.get(share, Fraction(0)) + mass
        return found


class Accounted(Instance, users="users", flip="alpha", rate="theta"):
    """A small cluster with any labels, and an epsilon."""

    users: int
    flip: Fraction
    rate: Fraction
    epsilon: float

    def delta(self, *, anew: bool) -> float:
        """The least delta by all releases, for the worst labels of the others and either label of the first user."""
        ratio, deltas = Fraction(math.exp(self.epsilon)), []
        for ones in range(self.users):
            others = (1,) * ones + (0,) * (self.users - 1 - ones)
            laws = [Cluster((first, *others), self.flip, self.rate).law(anew=anew) for first in (0, 1)]
            for p, q in (laws, laws[::-1]):
                deltas.append(total(max(Fraction(0), mass - ratio * q[copies]) for copies, mass in p.items()))
        return float(max(deltas))


def _accounted(budget: Budget) -> Iterator[Accounted]:
    flips = [Fraction(text) for text in ("1/4", "1/10", "2/5", "9/10", "0")]
    for users, flip in product((2, 3, *budget.pick(quick=(), full=(4, 5))), flips):
        yield from (Accounted(users, flip, rate, eps) for rate in (Fraction(1), Fraction(1, 3)) for eps in (0.05, 0.3))
    yield Accounted(4, Fraction(1, 4), Fraction(1, 2), 0.1)


@claim(
    "E22",
    "Lemma 9: as the package has it",
    kind="ours",
    on=_accounted,
    given="all labels of small clusters, all flips, choices and subsamples",
    false=Variant("The same where every copy is flipped by itself, as the lemma's proof has it.", anew=True),
)
def package_accounts_for_releases(accounted: Accounted, *, anew: bool = False) -> Comparison:
    """The delta that the package sums is that of Algorithm 2, over all that the users of a cluster can send."""
    stated = PeerToPeer(float(accounted.flip), float(accounted.rate)).delta(accounted.epsilon, accounted.users).delta
    return equal(accounted.delta(anew=anew), stated, tolerance=TOLERANCE, scale=1e-3)


def _released(budget: Budget) -> Iterator[Cluster]:
    yield Cluster((0, 0, 1), Fraction(1, 4), Fraction(1, 2))
    yield Cluster((0, 0), Fraction(1, 10), Fraction(1))
    yield from budget.pick(quick=(), full=(Cluster((0, 0, 1, 0), Fraction(2, 5), Fraction(4, 5)),))


@claim(
    "E22",
    "Lemma 9: draws",
    kind="ours",
    on=_released,
    given="many equal clusters released by the package, with the words of a seed",
    false=Variant(
        "The same where every copy is flipped by itself.",
        lambda cluster: released_as_counted(cluster, cluster, anew=True),
    ),
)
def released_as_printed(cluster: Cluster) -> Comparison:
    """Users send what Algorithm 2 says as often as it says, up to five standard errors."""
    return released_as_counted(cluster, cluster)


def released_as_counted(
    released: Cluster, counted: Cluster, *, clusters: int = 20_000, anew: bool = False
) -> Comparison:
    """Compare how often users send what with the law of another cluster, over as many clusters."""
    n = len(released.labels)
    groups = Groups.of_ids(np.repeat(np.arange(clusters), n))
    release = released.mechanism.release(released.labels * clusters, groups, source=SeededEntropy(6))
    copies = np.full(n * clusters, -1)
    copies[release.rows] = release.labels
    return as_often(Counter(map(tuple, copies.reshape(-1, n).tolist())), counted.law(anew=anew), key=sorted)


def _copied(budget: Budget) -> Iterator[Cluster]:
    for n in budget.pick(quick=(1, 2, 3, 4), full=(1, 2, 3, 4, 5, 6)):
        for ones, flip in product(range(n // 2 + 1), ("1/4", "1/10", "0", "1/2")):
            yield Cluster((1,) * ones + (0,) * (n - ones), Fraction(flip), Fraction(1))


@claim("E22", "Lemma 9: number of ones", kind="text", on=_copied, given="every user of the cluster sends a copy")
def copies_are_independent(cluster: Cluster) -> Comparison:
    """The ones among t copies are binomial, with the variance t p (1 - p)."""
    return _varies(cluster, Fraction(0))


@copies_are_independent.corrected
def _(cluster: Cluster) -> Comparison:
    """The variance of the ones among t copies is t p (1 - p) + t (t - 1) alpha (1 - alpha) / n: some copy the same."""
    return _varies(cluster, cluster.flip * (1 - cluster.flip))


@copies_are_independent.false
def _(cluster: Cluster) -> Comparison:
    """The variance of the ones among t copies is t p (1 - p) (1 + (t - 1) / n), what it is where all labels agree."""
    return _varies(cluster, cluster.mean * (1 - cluster.mean))


def _varies(cluster: Cluster, shared: Fraction) -> Comparison:
    n, law = len(cluster.labels), cluster.law()
    first, second = (total(mass * sum(copies) ** power for copies, mass in law.items()) for power in (1, 2))
    return equal(second - first**2, n * cluster.mean * (1 - cluster.mean) + (n - 1) * shared)


class View(Instance, users="s", flip="alpha"):
    """What one user of a cluster learns: whom they asked, and the flipped label that they were told."""

    users: int
    flip: Fraction

    @cached_property
    def laws(self) -> list[dict[tuple[int, int], Fraction]]:
        """Two laws, for either label of the first user; all others have the label 0."""
        asked = product(range(self.users), (0, 1))
        views = [(j, told) for j, told in asked]
        return [
            {
                (j, told): (1 - self.flip if told == (first if j == 0 else 0) else self.flip) / self.users
                for j, told in views
            }
            for first in (0, 1)
        ]

    @property
    def apart(self) -> Fraction:
        """Delta at an epsilon of 0: the total variation distance of both."""
        return total(max(Fraction(0), mass - self.laws[1][view]) for view, mass in self.laws[0].items())

    @property
    def odds(self) -> Fraction:
        """`(1 - alpha) / alpha`."""
        return (1 - self.flip) / self.flip


def _views(budget: Budget) -> Iterator[View]:
    flips = [Fraction(n, 100) for n in (25, 5, 40, 50, 60, 99, 1, *budget.pick(quick=(), full=(10, 20, 30, 45, 75)))]
    return (View(users, flip) for users, flip in product((1, 2, 3, 10, 50), flips))


@claim("E22", "Section 5.1: flips", on=_views, given="any alpha above 0 and below 1; what one user learns")
def users_see_flips(view: View) -> Comparison:
    """Towards each user Algorithm 2 is only private at log((1 - alpha) / alpha); compared as ratios."""
    return equal(largest_ratio(view.laws), view.odds)


@users_see_flips.corrected
def _(view: View) -> Comparison:
    """Towards each user Algorithm 2 is only private at the absolute value of that; compared as ratios."""
    return equal(largest_ratio(view.laws), max(view.odds, 1 / view.odds))


@users_see_flips.false
def _(view: View) -> Comparison:
    """The same with 1 + (ratio - 1) / s for the ratio, as if no user knew whom they ask."""
    return at_most(largest_ratio(view.laws), 1 + (max(view.odds, 1 / view.odds) - 1) / view.users)


@claim("E22", "Section 5.1: one of s", on=_views, given="any alpha", false=Variant("With 1 / (s + 1).", more=1))
def users_see_one_of_s(view: View, more: int = 0) -> Comparison:
    """Towards each user Algorithm 2 is (0, 1/s)-private, in clusters of s users."""
    return at_most(view.apart, Fraction(1, view.users + more))


@claim(
    "E22",
    "Section 5.1: as the package has it",
    kind="ours",
    on=_views,
    given="any alpha above 0 and below 1",
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


def _alone(_: Budget) -> Iterator[Cluster]:
    parts = [Fraction(n, 20) for n in (5, 1, 8, 10)]
    return (Cluster((0,), flip, rate) for flip, rate in product(parts, (*parts, Fraction(1))))


@claim(
    "E22",
    "Section 5.1: subsampling alone",
    on=_alone,
    given="alpha from above 0 to 1/2, theta above 0; every user alone in a cluster",
    false=Variant("The ratio is 1 + theta (ratio - 1), as where users leave the data.", amplified=True),
)
def subsampling_alone_amplifies_nothing(cluster: Cluster, *, amplified: bool = False) -> Comparison:
    """Flips and subsampling without an exchange are as private as flips: at log((1 - alpha) / alpha), as ratios."""
    odds = (1 - cluster.flip) / cluster.flip
    laws = [cluster.law(), replace(cluster, labels=(1,)).law()]
    return equal(largest_ratio(laws), 1 + cluster.rate * (odds - 1) if amplified else odds)
