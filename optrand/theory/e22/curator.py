"""What a curator's release costs ([E22], Theorem 1).

Everything is exact: `B = exp(1 / sigma)` and the probability of resampling are fractions, and so are all ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.baselines import ClusterRR
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal
from optrand.theory.e22.noise import Distribution, channel, histograms, law_of_distributions

__all__ = ["CLAIMS", "Curator", "largest_ratio"]

STATED = 1e-9
"""What an epsilon in floats is forgiven, as a share."""


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

    @property
    def largest(self) -> Fraction:
        """The largest ratio that is known of either noise."""
        return max(self.corners, self.whole_rows)

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

    @cached_property
    def stated(self) -> float:
        """The epsilon that the package's curator states."""
        scale = 1 / math.log(self.noise)
        return ClusterRR(self.k, noise_scale=scale, threshold=self.threshold, resampling=self.resampling).epsilon

    def __str__(self) -> str:
        return (
            f"one row 0 or 1, others of each label: {listed_counts(self.others)}; tau = {self.threshold}, "
            f"exp(1 / sigma) = {self.noise}, lambda = {self.resampling}"
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
    for _ in range(budget.pick(quick=10, full=400)):
        k, size = random.choice(((2, 8), (2, 12), (3, 6)))
        others = random.choice([*histograms(k, size - 1)])
        share = Fraction(random.randint(1, 999), 1_000)
        yield Curator(others, random.randint(1, (size - 1) // k), 1 + Fraction(random.randint(1, 300), 100), share)


def the_noise_is_paid_once(curator: Curator) -> Comparison:
    """A curator's release is private at 1 / sigma + log(1 + (1 - lambda) / (lambda tau)); compared as ratios."""
    return at_most(curator.corners, curator.noise * curator.labels_alone)


def the_noise_is_paid_twice(curator: Curator) -> Comparison:
    """A curator's release is private at 2 / sigma + log(1 + (1 - lambda) / (lambda tau)); compared as ratios.

    Noise in whole rows, whose releases are finitely many, is tried as well.
    """
    return at_most(curator.largest, curator.noise**2 * curator.labels_alone)


def the_threshold_is_equal_shares(curator: Curator) -> Comparison:
    """The same with 1 / K for tau."""
    ratio = 1 + (1 - curator.resampling) / curator.resampling * curator.k
    return at_most(curator.largest, curator.noise**2 * ratio)


def the_package_states_it(curator: Curator) -> Comparison:
    """The package's curator states an epsilon of 2 / sigma + log(1 + (1 - lambda) / (lambda tau))."""
    return equal(math.log(curator.noise**2 * curator.labels_alone), curator.stated, tolerance=STATED)


def the_package_states_what_is_printed(curator: Curator) -> Comparison:
    """The same with 1 / sigma for 2 / sigma."""
    return equal(math.log(curator.noise * curator.labels_alone), curator.stated, tolerance=STATED)


CLAIMS = (
    Claim(
        paper="E22",
        number="Theorem 1",
        hypothesis="beta above 0, so that the modified loss tells the noisy distribution",
        instances=_curators,
        printed=the_noise_is_paid_once,
        corrected=the_noise_is_paid_twice,
        false=the_threshold_is_equal_shares,
    ),
    Claim(
        paper="E22",
        number="Theorem 1",
        part="as the package has it",
        hypothesis="the same",
        instances=_curators,
        printed=the_package_states_it,
        false=the_package_states_what_is_printed,
    ),
)
