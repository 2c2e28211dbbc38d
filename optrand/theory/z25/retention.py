"""How often a randomized label is still the label, with more and more classes ([Z25], Appendix B.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import RATIOS, listed

__all__ = ["CLAIMS"]


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


CLAIMS = (
    Claim(
        paper="Z25",
        number="Appendix B.1",
        hypothesis="any epsilon-DP randomizer from K classes to the same classes",
        instances=_channels,
        printed=retention_falls_as_one_over_k,
        false=retention_falls_faster,
    ),
)
