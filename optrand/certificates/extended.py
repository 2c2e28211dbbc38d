"""Sums in extended precision, with bounds of what rounding does to them, for the bounds in floats."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOAT", "UNIT", "Extended", "assembled_below", "excess_above", "running", "sum_above", "sum_below"]

Extended = NDArray[np.longdouble]

UNIT = float(np.finfo(np.longdouble).eps)
"""Twice the largest relative error of an operation."""

FLOAT = float(np.finfo(np.float64).eps)


def running(terms: Extended) -> tuple[Extended, int]:
    """Running sums along the last axis, block by block, and the most additions that a term goes through."""
    size = terms.shape[-1]
    width = math.isqrt(size) + 1
    count = -(-size // width) or 1
    blocks = np.zeros((*terms.shape[:-1], count * width), np.longdouble)
    blocks[..., :size] = terms
    inside = blocks.reshape(*terms.shape[:-1], count, width).cumsum(axis=-1)
    inside[..., 1:, :] += inside[..., :-1, -1].cumsum(axis=-1)[..., np.newaxis]
    return inside.reshape(blocks.shape)[..., :size], width + count + 8


def sum_below(terms: Extended) -> np.longdouble:
    """Lower bound of a sum of at least one term.

    Examples
    --------
    >>> float(sum_below(np.array([0.1, 0.2], np.longdouble))) <= 0.30000000000000004
    True
    """
    sums, count = running(terms)
    below: np.longdouble = sums[-1] - 2 * count * UNIT * abs(terms).sum()
    return below


def sum_above(terms: Extended) -> np.longdouble:
    """Upper bound of a sum of at least one term."""
    above: np.longdouble = -sum_below(-terms)
    return above


def excess_above(epsilon: float) -> np.longdouble:
    """Upper bound of ``exp(epsilon) - 1``."""
    return np.longdouble(math.expm1(epsilon) * (1 + 8 * FLOAT))


def assembled_below(base: np.longdouble, lowest: np.longdouble, k: int, excess: np.longdouble) -> float:
    """Dual bound of lower bounds of its parts: what needs no column, and the least price of a column.

    As :func:`optrand.certificates.bound.assembled`, rounded down.
    """
    share = k / (excess + k) if lowest < 0 else 1 / (excess + 1)
    bound = base + share * lowest - 8 * UNIT * (abs(base) + abs(lowest))
    return math.nextafter(math.nextafter(float(bound), -math.inf), -math.inf)
