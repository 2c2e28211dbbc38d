"""Laws of samplers, exactly: what they make of every sequence of random bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar, TypeVar

import numpy as np

from optrand.sampling.entropy import EntropySource, Words
from optrand.theory.comparison import Comparison, Number, at_most, worst

__all__ = ["agrees", "drawn"]

Outcome = TypeVar("Outcome", bound=Hashable)


class _OutOfBits(Exception):
    """More bits are asked for than there are."""


@dataclass
class _Bits:
    """A source of words of so many bits that has written-down bits only."""

    left: Sequence[int]
    width: int
    missing: int = 0
    private: ClassVar[bool] = False

    def words(self, count: int) -> Words:
        """The next words, their first bits first."""
        needed = count * self.width
        if needed > len(self.left):
            self.missing = needed - len(self.left)
            raise _OutOfBits
        given, self.left = self.left[:needed], self.left[needed:]
        places = 2 ** np.arange(self.width, dtype=np.uint64)[::-1]
        words: Words = np.array(given, dtype=np.uint64).reshape(count, self.width) @ places
        return words


def drawn(
    draw: Callable[[EntropySource], Outcome], most: int, *, width: int = 1
) -> tuple[dict[Outcome, Fraction], Fraction]:
    """Law of a draw as far as `most` random bits decide it, in words of `width`, and the probability that they do not.

    Examples
    --------
    >>> from optrand.sampling.rounding import unbiased_rounding
    >>> law, rest = drawn(lambda bits: float(unbiased_rounding(1, [0, 4], source=bits)), 10)
    >>> {knot: str(law[knot]) for knot in sorted(law)}, rest
    ({0.0: '3/4', 4.0: '1/4'}, Fraction(0, 1))
    """
    law: dict[Outcome, Fraction] = {}
    rest, waiting = Fraction(0), [()]  # type: tuple[Fraction, list[tuple[int, ...]]]
    while waiting:
        bits = waiting.pop()
        source = _Bits(bits, width)
        try:
            outcome = draw(source)
        except _OutOfBits:
            if len(bits) + source.missing > most:
                rest += Fraction(1, 2 ** len(bits))
            else:
                waiting += [(*bits, *more) for more in product((1, 0), repeat=source.missing)]
            continue
        law[outcome] = law.get(outcome, Fraction(0)) + Fraction(1, 2 ** len(bits))
    return law, rest


def agrees(draw: Callable[[EntropySource], Outcome], chance: Callable[[Outcome], Number], most: int) -> Comparison:
    """Comparison of a draw with the probabilities of its outcomes, as far as `most` random bits decide them."""
    law, rest = drawn(draw, most)
    chances = ((low, chance(outcome)) for outcome, low in law.items())
    return worst(*(worst(at_most(low, p), at_most(p, low + rest)) for low, p in chances))
