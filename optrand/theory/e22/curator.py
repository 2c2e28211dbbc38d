"""What a curator's release costs, and that it is well defined ([E22]_, Theorems 1 and 6).

Everything is exact: `B = exp(1 / sigma)` and the probability of resampling are fractions, and so are all ratios.

References
----------
.. [E22] Esfandiari et al., *Label differential privacy via clustering*, 2022.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.baselines import ClusterRR, LabelRandomization
from optrand.baselines.cluster import cluster_distribution
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.e22.noise import Distribution, channel, histograms, law_of_distributions
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS", "Curator", "largest_ratio"]

TOLERANCE = 1e-9
"""Of logarithms in floats."""


@dataclass(frozen=True)
class Curator:
    """Algorithm 1 on one cluster, of which one row has the label 0 or 1.

    Attributes
    ----------
    others : tuple of int
        How many of the other rows have each label.
    low : int
        The threshold in rows: `tau` times the size of the cluster.
    noise : Fraction
        `B = exp(1 / sigma)`.
    resampling : Fraction
        `lambda`.
    """

    others: tuple[int, ...]
    low: int
    noise: Fraction
    resampling: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.others)

    @property
    def size(self) -> int:
        """Rows of the cluster."""
        return sum(self.others) + 1

    @property
    def threshold(self) -> Fraction:
        """`tau`."""
        return Fraction(self.low, self.size)

    @cached_property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The histograms of two neighbours."""
        zero, one, *rest = self.others
        return (zero + 1, one, *rest), (zero, one + 1, *rest)

    @cached_property
    def whole_rows(self) -> Fraction:
        """The largest ratio over all that can be released, with noise in whole rows."""
        laws = [law_of_distributions(counts, self.threshold, self.noise) for counts in self.pair]
        return largest_ratio(laws[0], laws[1], self.resampling)

    @cached_property
    def corners(self) -> Fraction:
        """The largest ratio over releases in which all labels but one are at the threshold, with Laplace noise.

        Algorithm 1 ends there when the noisy shares of those labels are at most `tau`, and that of the last one at
        least what they leave: tails of Laplace noise that begin a whole number of rows from the counts.
        """
        laws = [{self._corner(top): self._mass(counts, top) for top in range(self.k)} for counts in self.pair]
        return largest_ratio(laws[0], laws[1], self.resampling)

    def _corner(self, top: int) -> Distribution:
        rest = 1 - (self.k - 1) * self.threshold
        return tuple(rest if y == top else self.threshold for y in range(self.k))

    def _mass(self, counts: tuple[int, ...], top: int) -> Fraction:
        rest = self.size - (self.k - 1) * self.low
        gaps = [rest - count if y == top else count - self.low for y, count in enumerate(counts)]
        return math.prod((self._beyond(gap) for gap in gaps), start=Fraction(1))

    def _beyond(self, rows: int) -> Fraction:
        """The probability that Laplace noise is at least so many rows."""
        return self.noise**-rows / 2 if rows >= 0 else 1 - self.noise**rows / 2

    @property
    def labels_alone(self) -> Fraction:
        """What the noisy labels cost where the distribution is public, as a ratio."""
        return 1 + (1 - self.resampling) / (self.resampling * self.threshold)

    def __str__(self) -> str:
        return (
            f"other rows {listed_counts(self.others)}, tau = {self.threshold}, exp(1 / sigma) = {self.noise}, lambda = "
            f"{self.resampling}"
        )


def listed_counts(counts: tuple[int, ...]) -> str:
    """Counts in a row."""
    return ", ".join(map(str, counts))


def largest_ratio(
    one: dict[Distribution, Fraction], two: dict[Distribution, Fraction], resampling: Fraction
) -> Fraction:
    """The largest ratio, either way, of the probabilities of a noisy distribution with the noisy label of one row.

    Parameters
    ----------
    one, two : dict
        The laws of the noisy distribution where the row's label is 0, and where it is 1.
    resampling : Fraction
    """
    largest = Fraction(1)
    for q, mass in one.items():
        for out in range(len(q)):
            ratio = mass / two[q] * channel(out, 0, q, resampling) / channel(out, 1, q, resampling)
            largest = max(largest, ratio, 1 / ratio)
    return largest


def _curators(budget: Budget) -> Iterator[Curator]:
    """All clusters of up to five rows at a few noises, then larger ones, then random ones."""
    noises = [Fraction(3, 2), Fraction(101, 100), Fraction(5)]
    for k, size in ((2, 3), (2, 4), (2, 5), (3, 4)):
        for others in histograms(k, size - 1):
            for low in range(1, -(-size // k)):
                for noise, share in zip(noises, (Fraction(99, 100), Fraction(9, 10), Fraction(1, 2)), strict=True):
                    yield Curator(others, low, noise, share)
    # A count just below the threshold, one above it and a large one come near to all that can be spent.
    yield Curator((0, 5, 6), 1, Fraction(11, 10), Fraction(1, 2))
    random = Random(3)  # noqa: S311
    for _ in range(budget.pick(quick=20, full=400)):
        k, size = random.choice(((2, 8), (2, 12), (3, 6)))
        others = random.choice([*histograms(k, size - 1)])
        share = Fraction(random.randint(1, 999), 1_000)
        yield Curator(others, random.randint(1, (size - 1) // k), 1 + Fraction(random.randint(1, 300), 100), share)


def the_noise_is_paid_once(curator: Curator) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau)); compared as ratios."""
    return at_most(curator.corners, curator.noise * curator.labels_alone)


def the_noise_is_paid_twice(curator: Curator) -> Comparison:
    """A curator's release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)); compared as ratios."""
    return at_most(curator.corners, curator.noise**2 * curator.labels_alone)


def a_drawn_label_is_sure(curator: Curator) -> Comparison:
    """The same with 1 for tau, as if a label that is drawn anew were sure to be the one that is released."""
    return at_most(curator.corners, curator.noise**2 / curator.resampling)


def whole_rows_are_paid_once(curator: Curator) -> Comparison:
    """With noise in whole rows the release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(math.log(curator.whole_rows), _drawn(curator).printed_epsilon, tolerance=TOLERANCE)


def whole_rows_are_paid_twice(curator: Curator) -> Comparison:
    """With noise in whole rows the release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return at_most(math.log(curator.whole_rows), _drawn(curator).epsilon, tolerance=TOLERANCE)


def whole_rows_are_paid_with_equal_shares(curator: Curator) -> Comparison:
    """The same with 1 / K for tau."""
    ratio = 1 + (1 - curator.resampling) / curator.resampling * curator.k
    return at_most(curator.whole_rows, curator.noise**2 * ratio)


def _drawn(curator: Curator) -> ClusterRR:
    return ClusterRR(
        curator.k,
        threshold=curator.threshold,
        noise_scale=1 / math.log(curator.noise),
        resampling=curator.resampling,
    )


@dataclass(frozen=True)
class _Rows:
    """All labels of a cluster of so many rows."""

    k: int
    size: int

    @cached_property
    def farthest(self) -> Fraction:
        """How far the shares of the labels of two neighbours are apart, summed over labels, at most."""
        tables = list(product(range(self.k), repeat=self.size))
        counted = {table: Counter(table) for table in tables}
        return max(
            Fraction(sum(abs(counted[one][y] - counted[two][y]) for y in range(self.k)), self.size)
            for one, two in product(tables, repeat=2)
            if sum(a != b for a, b in zip(one, two, strict=True)) == 1
        )

    def __str__(self) -> str:
        return f"K = {self.k}, {self.size} row(s)"


def _rows(budget: Budget) -> Iterator[_Rows]:
    pairs = [(2, 1), (2, 2), (3, 1), (2, 4), (3, 3), (4, 2)]
    return (_Rows(*pair) for pair in pairs + budget.pick(quick=[], full=[(2, 8), (3, 5), (5, 3)]))


def one_share_moves(rows: _Rows) -> Comparison:
    """A label that is replaced moves the shares of its cluster by 1 / n, all labels together."""
    return at_most(rows.farthest, Fraction(1, rows.size))


def two_shares_move(rows: _Rows) -> Comparison:
    """A label that is replaced moves the shares of its cluster by 2 / n, all labels together."""
    return at_most(rows.farthest, Fraction(2, rows.size))


def shares_move_with_the_number_of_labels(rows: _Rows) -> Comparison:
    """The same with (K - 1) / n."""
    return at_most(rows.farthest, Fraction(rows.k - 1, rows.size))


@dataclass(frozen=True)
class _Resampling:
    """A public distribution, and how often labels are drawn from it."""

    distribution: Distribution
    resampling: Fraction

    @property
    def threshold(self) -> Fraction:
        """The least probability, above 0."""
        return min(self.distribution)

    @cached_property
    def ratio(self) -> Fraction:
        """The largest of two probabilities of one noisy label, label by label."""
        labels = range(len(self.distribution))
        law = [[channel(out, true, self.distribution, self.resampling) for out in labels] for true in labels]
        return max(law[a][out] / law[b][out] for a, b, out in product(labels, repeat=3))

    def __str__(self) -> str:
        return f"q = {listed(self.distribution)}, lambda = {self.resampling}"


def _resamplings(budget: Budget) -> Iterator[_Resampling]:
    random = Random(5)  # noqa: S311
    third = Fraction(1, 3)
    yield _Resampling((Fraction(1, 2),) * 2, Fraction(1, 2))
    yield _Resampling((third, 2 * third), Fraction(1, 2))
    yield _Resampling((third, 2 * third), Fraction(1))
    for _ in range(budget.pick(quick=200, full=5_000)):
        shares = prior(random, random.randint(2, 6))
        threshold = Fraction(random.randint(1, 99), 100 * len(shares))
        yield _Resampling(cluster_distribution(shares, threshold), Fraction(random.randint(1, 100), 100))


def labels_cost_their_rarest(each: _Resampling) -> Comparison:
    """With no share below tau the noisy labels cost at most log(1 + (1 - lambda) / (lambda tau)); as ratios."""
    bound = 1 + (1 - each.resampling) / (each.resampling * each.threshold)
    known = LabelRandomization(each.distribution, each.resampling).ratio
    return worst(at_most(each.ratio, bound), none(int(each.ratio != known)))


def labels_cost_the_average(each: _Resampling) -> Comparison:
    """The same with 1 / K for tau."""
    bound = 1 + (1 - each.resampling) / each.resampling * len(each.distribution)
    return at_most(each.ratio, bound)


@dataclass(frozen=True)
class _Shares:
    """Noisy shares, a threshold and a bias correction."""

    shares: tuple[Fraction, ...]
    threshold: Fraction
    beta: Fraction

    def __str__(self) -> str:
        return f"noisy shares {listed(self.shares)}, tau = {self.threshold}, beta = {self.beta}"


def _shares(budget: Budget) -> Iterator[_Shares]:
    """Shares on a coarse grid with the thresholds 0 and 1/K, then random ones."""
    for k in (2, 3):
        for halves in product((-1, 0, 1, 2, 3), repeat=k):
            for threshold in (Fraction(0), Fraction(1, 2 * k), Fraction(1, k)):
                yield _Shares(tuple(Fraction(x, 2) for x in halves), threshold, Fraction(9, 10))
    random = Random(6)  # noqa: S311
    for _ in range(budget.pick(quick=500, full=20_000)):
        k = random.randint(2, 8)
        shares = tuple(p + Fraction(random.randint(-1_000, 1_000), 1_000) for p in prior(random, k))
        yield _Shares(shares, Fraction(random.randint(0, 100), 100 * k), Fraction(random.randint(0, 999), 1_000))


def distributions_are_well_defined(given: _Shares) -> Comparison:
    """With tau at most 1/K the noisy shares become a distribution with no share below tau, and matrices that invert.

    The determinant of the matrix is ``(1 - beta)**(K - 1)``. With one label, `K = 1`, a noisy share of 1 or more makes
    line 18 of Algorithm 1 divide zero by zero.
    """
    return _well_defined(given, cluster_distribution(given.shares, given.threshold))


def dividing_by_the_sum_is_well_defined(given: _Shares) -> Comparison:
    """The same where clipped shares are divided by their sum."""
    clipped = [max(given.threshold, min(Fraction(1), share)) for share in given.shares]
    total = sum(clipped, Fraction(0))
    return _well_defined(given, tuple(q / total for q in clipped) if total else tuple(clipped))


def _well_defined(given: _Shares, distribution: Distribution) -> Comparison:
    return worst(
        at_most(given.threshold, min(distribution)),
        at_most(max(distribution), 1),
        equal(sum(distribution, Fraction(0)), 1),
        none(int(_determinant(distribution, given.beta) == 0)),
    )


def _determinant(distribution: Distribution, beta: Fraction) -> Fraction:
    """Of ``(1 - beta) I + beta q 1'``, by elimination."""
    labels = range(len(distribution))
    rows = [[channel(out, true, distribution, beta) for true in labels] for out in labels]
    product_of_pivots = Fraction(1)
    for pivot in labels:
        # Of a positive multiple of the identity plus non-negative columns every pivot is positive.
        product_of_pivots *= rows[pivot][pivot]
        for row in rows[pivot + 1 :]:
            share = row[pivot] / rows[pivot][pivot]
            row[:] = [a - share * b for a, b in zip(row, rows[pivot], strict=True)]
    return product_of_pivots


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 1",
        hypothesis="continuous noise; one cluster, of which the noisy distribution and the labels are released",
        instances=_curators,
        printed=the_noise_is_paid_once,
        corrected=the_noise_is_paid_twice,
        false=a_drawn_label_is_sure,
    ),
    Claim(
        paper="E22",
        number="Theorem 1",
        part="noise in whole rows",
        hypothesis="geometric noise; one cluster, of which the noisy distribution and the labels are released",
        instances=_curators,
        printed=whole_rows_are_paid_once,
        corrected=whole_rows_are_paid_twice,
        false=whole_rows_are_paid_with_equal_shares,
    ),
    Claim(
        paper="E22",
        number="Theorem 1",
        part="sensitivity",
        hypothesis="two tables of one cluster that differ in one label",
        instances=_rows,
        printed=one_share_moves,
        corrected=two_shares_move,
        false=shares_move_with_the_number_of_labels,
    ),
    Claim(
        paper="E22",
        number="Theorem 1",
        part="resampling",
        hypothesis="a public distribution with no share below tau",
        instances=_resamplings,
        printed=labels_cost_their_rarest,
        false=labels_cost_the_average,
    ),
    Claim(
        paper="E22",
        number="Theorem 6",
        hypothesis="at least two labels, tau from 0 to 1/K, beta below 1, any noise",
        instances=_shares,
        printed=distributions_are_well_defined,
        false=dividing_by_the_sum_is_well_defined,
    ),
)
