"""Mixture of two mechanisms by a public coin: columns of both, with masses that are still exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism


def mixture(first: Mechanism, second: Mechanism, weight: float) -> Mechanism:
    r"""Draw from `second` with a probability near `weight`, else from `first`.

    Masses are :math:`A C_j` and :math:`B C'_j` with :math:`B T' / (A T + B T') \approx w` for small integers ``A, B``
    and the totals :math:`T, T'` of the two.

    Parameters
    ----------
    first : Mechanism
        Its problem and its dual are those of the mixture.
    second : Mechanism
        For the same labels, with outputs that the first one's problem allows.
    weight : float
        Between 0 and 1, both excluded.

    Raises
    ------
    InvalidInput
        Other labels, or a weight out of range.

    Notes
    -----
    Privacy and unbiasedness are linear: no column gains a ratio above the larger of the two, and rows of equal totals
    add up to rows of equal totals. The constructor proves it again.
    """
    if not np.array_equal(first.labels, second.labels):
        raise InvalidInput("the two mechanisms have other labels: make them for the same problem")
    if not 0 < weight < 1:
        raise InvalidInput(f"weight is {weight:g}, expected a probability between 0 and 1")
    # From A T / (B T') = (1 - w) / w.
    odds = Fraction(second.total, first.total) * (1 / Fraction(weight) - 1)
    own, others = _small(odds)
    table = first.table.combine(second.table, Fraction(own, others))
    return Mechanism(first.problem, table, first.dual)


def _small(odds: Fraction) -> tuple[int, int]:
    """Return two integers above 0 in a ratio near `odds`, the smaller at most 1,024.

    Masses are multiplied by them, and gain as many digits as they have.
    """
    if odds < 1:
        return _small(1 / odds)[::-1]
    near = odds.limit_denominator(1 << 10)
    return near.numerator, near.denominator
