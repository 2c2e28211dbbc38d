"""How often a randomized label is still the label, with more and more classes ([Z25]_, Section 2 and Appendix B.1).

References
----------
.. [Z25] Zhao et al., *Enhancing Learning with Label Local Differential Privacy by Vector Approximation*, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.certificate import Certificate, certify
from optrand.closed_forms import rr_with_prior
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none
from optrand.theory.instances import RATIOS, listed, prior

__all__ = ["CLAIMS"]

CLOSED = 1e-12
"""How near the two ends of a certificate are, of closed forms in floats."""


@dataclass(frozen=True)
class Channel:
    """A randomizer from classes to classes.

    Attributes
    ----------
    rows : tuple of tuple of Fraction
        The probabilities of the outputs, a row for each label.
    ratio : Fraction
        ``exp(epsilon)``: the largest ratio of two probabilities of one output.
    """

    rows: tuple[tuple[Fraction, ...], ...]
    ratio: Fraction

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.rows)

    @property
    def retained(self) -> Fraction:
        """The probability that the output is the label, averaged over all labels alike."""
        return sum((row[y] for y, row in enumerate(self.rows)), Fraction(0)) / self.k

    def __str__(self) -> str:
        return f"exp(epsilon) = {self.ratio}, rows {'; '.join(map(listed, self.rows))}"


def _channels(budget: Budget) -> Iterator[Channel]:
    for k in (2, 3, 10, 30):
        for ratio in RATIOS:
            for kept in sorted({1, 2, k}):
                yield _response(k, kept, ratio)
    random = Random(1)  # noqa: S311
    for _ in range(budget.pick(quick=300, full=5_000)):
        yield _random_channel(random, random.randint(2, 8))


def _response(k: int, kept: int, ratio: Fraction) -> Channel:
    """Randomized response on the first classes; all others give one of these."""
    total = ratio + kept - 1
    own = [[(ratio if v == y else 1) / total if v < kept else Fraction(0) for v in range(k)] for y in range(kept)]
    other = [[Fraction(int(v < kept), kept) for v in range(k)]] * (k - kept)
    return Channel(tuple(map(tuple, own + other)), ratio)


def _random_channel(random: Random, k: int) -> Channel:
    """Any rows, likelier at their own label; the ratio is read off."""
    weights = [[random.randint(1, 9) + (v == y) * random.randint(0, 60) for v in range(k)] for y in range(k)]
    rows = tuple(tuple(Fraction(weight, sum(row)) for weight in row) for row in weights)
    return Channel(rows, max(max(column) / min(column) for column in zip(*rows, strict=True)))


def retention_falls_as_one_over_k(channel: Channel) -> Comparison:
    """Averaged over all labels alike, a label is kept with probability at most ``exp(epsilon) / K``."""
    return at_most(channel.retained, channel.ratio / channel.k)


def retention_falls_faster(channel: Channel) -> Comparison:
    """The same with ``exp(epsilon) / (exp(epsilon) + K)``, hardly below what randomized response attains."""
    return at_most(channel.retained, channel.ratio / (channel.ratio + channel.k))


@dataclass(frozen=True)
class Split:
    """A prior, and the same with one class split in two.

    Attributes
    ----------
    before : tuple of Fraction
        The prior.
    share : Fraction
        Of the last class, what becomes a class of its own.
    epsilon : float
    """

    before: tuple[Fraction, ...]
    share: Fraction
    epsilon: float

    @property
    def after(self) -> tuple[Fraction, ...]:
        """The prior with one class more."""
        *others, last = self.before
        return *others, last * (1 - self.share), last * self.share

    @cached_property
    def best(self) -> tuple[Certificate, Certificate]:
        """The largest probability of keeping the label that any randomizer has, before and after, with its proof."""
        before, after = (certify(rr_with_prior(_floats(p), self.epsilon)) for p in (self.before, self.after))
        before.require(gap=CLOSED), after.require(gap=CLOSED)
        return before, after

    def __str__(self) -> str:
        return f"prior {listed(self.before)}, then {listed(self.after)}, epsilon = {self.epsilon}"


def _floats(shares: tuple[Fraction, ...]) -> list[float]:
    return list(map(float, shares))


def _splits(budget: Budget) -> Iterator[Split]:
    half = Fraction(1, 2)
    for first in (half, Fraction(9, 10)):
        for epsilon in (1.0, 0.1, 4.0):
            yield Split((first, 1 - first), half, epsilon)
    random = Random(4)  # noqa: S311
    for _ in range(budget.pick(quick=120, full=2_000)):
        shares = prior(random, random.randint(2, 12))
        yield Split(shares, Fraction(random.randint(1, 9), 10), random.choice((0.1, 0.5, 1.0, 2.0, math.log(3), 5.0)))


def more_classes_keep_less(split: Split) -> Comparison:
    """With one class more, the best randomizer keeps the label less often.

    Under the prior of the labels, which is what the paper's Section 2 speaks of.
    """
    before, after = split.best
    return none(int(after.lower >= before.upper * (1 - CLOSED)))


def more_classes_keep_no_more(split: Split) -> Comparison:
    """With one class more, the best randomizer keeps the label no more often.

    For whoever keeps two halves of a class apart keeps the class.
    """
    before, after = split.best
    return at_most(after.lower, before.upper, tolerance=CLOSED)


def more_classes_keep_in_proportion(split: Split) -> Comparison:
    """With one class more, the best randomizer keeps the label less often by the factor ``K / (K + 1)`` at least."""
    before, after = split.best
    k = len(split.before)
    return at_most(after.lower, before.upper * k / (k + 1), tolerance=CLOSED)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Section 2",
        part="retention",
        hypothesis="any prior, the best epsilon-DP randomizer for it; a class is split in two",
        instances=_splits,
        printed=more_classes_keep_less,
        corrected=more_classes_keep_no_more,
        false=more_classes_keep_in_proportion,
    ),
    Claim(
        paper="Z25",
        number="Appendix B.1",
        hypothesis="any epsilon-DP randomizer from K classes to the same classes",
        instances=_channels,
        printed=retention_falls_as_one_over_k,
        false=retention_falls_faster,
    ),
)
