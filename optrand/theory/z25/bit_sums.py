"""How many of some independent bits are 1: in floats, or in fractions if that is what the chances are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["binomials", "bit_sums", "one_bit_more"]

Chances = NDArray[Any]
"""Floats, or fractions in an array of objects."""


def one_bit_more(known: Chances, chance: Any) -> Chances:
    """The probabilities of each number of ones, from those without one bit and the chance of that bit."""
    more: Chances = np.zeros(known.size + 1, dtype=known.dtype)
    more[:-1] = known * (1 - chance)
    more[1:] += known * chance
    return more


def bit_sums(chances: Chances) -> Chances:
    """The probabilities of ``0 ... n`` ones among `n` bits with these chances.

    Examples
    --------
    >>> bit_sums(np.array([0.5, 0.5, 0.5])).tolist()
    [0.125, 0.375, 0.375, 0.125]
    """
    known = np.ones(1, dtype=chances.dtype)
    for chance in chances:
        known = one_bit_more(known, chance)
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
        rows.append(one_bit_more(rows[-1], chance))
    return rows
