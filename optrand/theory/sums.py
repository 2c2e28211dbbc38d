"""Sums and laws that several claims share, in fractions or, where chances are floats, in floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["binomials", "bit_sums", "largest_ratio", "pushed", "times", "total"]

Key = TypeVar("Key", bound=Hashable)
Image = TypeVar("Image", bound=Hashable)

Chances = NDArray[Any]
"""Floats, or fractions in an array of objects."""


def total(numbers: Iterable[Fraction]) -> Fraction:
    """Sum of fractions, a fraction even of none."""
    return sum(numbers, Fraction(0))


def times(numbers: Iterable[Fraction]) -> Fraction:
    """Product of fractions, a fraction even of none."""
    return math.prod(numbers, start=Fraction(1))


def largest_ratio(laws: Sequence[Mapping[Key, Fraction]] | Sequence[Sequence[Fraction]]) -> Fraction | float:
    """Largest ratio of the probabilities of one outcome under two laws, or two rows; infinite if one of them is 0.

    Examples
    --------
    >>> largest_ratio([{"a": Fraction(1, 3), "b": Fraction(2, 3)}, {"a": Fraction(1, 2), "b": Fraction(1, 2)}])
    Fraction(3, 2)
    """
    ratios: list[Fraction | float] = [Fraction(1)]
    tables: list[Mapping[Any, Fraction]] = [law if isinstance(law, Mapping) else dict(enumerate(law)) for law in laws]
    for outcome in set().union(*tables):
        chances = [law.get(outcome, Fraction(0)) for law in tables]
        if max(chances):
            ratios.append(max(chances) / min(chances) if min(chances) else math.inf)
    return max(ratios)


def pushed(law: Iterable[tuple[Key, Fraction]], image: Callable[[Key], Image]) -> dict[Image, Fraction]:
    """Law of a function of an outcome; outcomes may come more than once.

    Examples
    --------
    >>> {size: str(chance) for size, chance in pushed([(-1, Fraction(1, 4)), (1, Fraction(3, 4))], abs).items()}
    {1: '1'}
    """
    found: dict[Image, Fraction] = {}
    for outcome, chance in law:
        seen = image(outcome)
        found[seen] = found.get(seen, Fraction(0)) + chance
    return found


def bit_sums(chances: Chances) -> Chances:
    """The probabilities of ``0 ... n`` ones among `n` independent bits with these chances, along the last axis.

    Examples
    --------
    >>> bit_sums(np.array([0.5, 0.5, 0.5])).tolist()
    [0.125, 0.375, 0.375, 0.125]
    """
    known: Chances = np.ones((*chances.shape[:-1], 1), dtype=chances.dtype)
    for chance in np.moveaxis(chances, -1, 0)[..., np.newaxis]:
        known = _one_more(known, chance)
    return known


def binomials(count: int, chance: float) -> list[Chances]:
    """The probabilities of each number of ones among ``0 ... count`` bits with one chance.

    Examples
    --------
    >>> [row.tolist() for row in binomials(2, 0.5)]
    [[1.0], [0.5, 0.5], [0.25, 0.5, 0.25]]
    """
    rows = [np.ones(1)]
    for _ in range(count):
        rows.append(_one_more(rows[-1], chance))
    return rows


def _one_more(known: Chances, chance: Any) -> Chances:
    more: Chances = np.zeros((*known.shape[:-1], known.shape[-1] + 1), dtype=known.dtype)
    more[..., :-1] = known * (1 - chance)
    more[..., 1:] += known * chance
    return more
