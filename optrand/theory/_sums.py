"""Sums and laws that several claims share, in fractions or, where chances are floats, in floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import ne
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from optrand.base._validation import Floats

Key = TypeVar("Key", bound=Hashable)
Image = TypeVar("Image", bound=Hashable)

Chances = NDArray[Any]
"""Floats, or fractions in an array of objects."""


def total(numbers: Iterable[Fraction]) -> Fraction:
    """Return the sum of fractions, a fraction even of no numbers."""
    return _sum_quotients([number.as_integer_ratio() for number in numbers])


def dot(first: Iterable[Fraction | int], second: Iterable[Fraction | int]) -> Fraction:
    """Return the sum of products."""
    pairs = zip(first, second, strict=True)
    return _sum_quotients([(a.numerator * b.numerator, a.denominator * b.denominator) for a, b in pairs])


def _sum_quotients(quotients: Sequence[tuple[int, int]]) -> Fraction:
    """Sum over one common denominator, several times faster than fraction by fraction."""
    whole = math.lcm(*(denominator for _, denominator in quotients))
    return Fraction(sum(numerator * (whole // denominator) for numerator, denominator in quotients), whole)


def times(numbers: Iterable[Fraction]) -> Fraction:
    """Return the product of fractions, a fraction even of no numbers."""
    pairs = [number.as_integer_ratio() for number in numbers]
    return Fraction(math.prod(numerator for numerator, _ in pairs), math.prod(denominator for _, denominator in pairs))


def largest_ratio(laws: Sequence[Mapping[Key, Fraction]] | Sequence[Sequence[Fraction]]) -> Fraction | float:
    """Return the largest ratio of the probabilities of one outcome under two laws; infinite if one of them is 0."""
    tables: list[Mapping[Any, Fraction]] = [law if isinstance(law, Mapping) else dict(enumerate(law)) for law in laws]
    rows = ([table.get(outcome, Fraction(0)) for table in tables] for outcome in set().union(*tables))
    ends = [(min(chances), max(chances)) for chances in rows]
    return max((high / low if low else math.inf for low, high in ends if high), default=Fraction(1))


def ratio_of_neighbours(laws: Mapping[tuple[int, ...], Mapping[Key, Fraction]]) -> Fraction | float:
    """Return the largest ratio of two laws of data sets that differ in one label, by the labels of each data set."""
    pairs = combinations(laws, 2)
    return max(largest_ratio([laws[a], laws[b]]) for a, b in pairs if sum(map(ne, a, b)) == 1)


def push_forward(law: Iterable[tuple[Key, Fraction]], image: Callable[[Key], Image]) -> dict[Image, Fraction]:
    """Compute the law of a function of an outcome; outcomes may come more than once."""
    found: dict[Image, Fraction] = {}
    for outcome, chance in law:
        seen = image(outcome)
        found[seen] = found.get(seen, Fraction(0)) + chance
    return found


def binomial(n: int, chance: float) -> Floats:
    """Return the probabilities of ``0 ... n`` successes, in floats."""
    found: Floats = stats.binom.pmf(np.arange(n + 1), n, chance)
    return found


def bit_sums(chances: Chances) -> Chances:
    """Return the probabilities of ``0 ... n`` ones among `n` independent bits, whose chances are the last axis."""
    none: Chances = np.ones((*chances.shape[:-1], 1), dtype=chances.dtype)
    return reduce(_one_more, np.moveaxis(chances, -1, 0)[..., np.newaxis], none)


def _one_more(known: Chances, chance: Any) -> Chances:
    more: Chances = np.zeros((*known.shape[:-1], known.shape[-1] + 1), dtype=known.dtype)
    more[..., :-1] = known * (1 - chance)
    more[..., 1:] += known * chance
    return more
