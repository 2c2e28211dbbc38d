r"""Unbiased randomized rounding (URR in [B23]): a number becomes one of the two knots around it, right on average.

The mean is the value :math:`x`, the variance :math:`(x - t_i)(t_{i+1} - x)` between the knots :math:`t_i \leq x \leq
t_{i+1}` ([B23], Section 3.1, and ``docs/mathematics.md``, Proposition 18).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import MAX_INTEGER, Floats, check_labels, freeze_array, suggest_parameters
from optrand.errors import InvalidInput
from optrand.sampling._draw import check_numbers, settle, split_blocks
from optrand.sampling._entropy import EntropySource, SystemEntropy, check_width, check_words


@dataclass(frozen=True, eq=False)
class KnotCells:
    """Cells between neighbouring knots that hold given values.

    Attributes
    ----------
    knots : (n,) array
    left : array of int
        Index of the knot at or below each value, or the one before last for the last knot itself.
    share : array
        Probability of the knot above, in floats.
    """

    knots: Floats
    left: NDArray[np.intp]
    share: Floats

    @classmethod
    def of(cls, knots: Floats, values: Floats) -> KnotCells:
        """Find the cells of values that lie between the ends of the knots."""
        left = np.minimum(np.searchsorted(knots, values, side="right") - 1, knots.size - 2)
        return cls(knots, left, (values - knots[left]) / (knots[left + 1] - knots[left]))

    def move_weights(self, weights: Floats) -> Floats:
        """Return the weights of the knots after rounding values of these weights, shape ``(n,)``."""
        below = np.bincount(self.left, weights * (1 - self.share), self.knots.size)
        above = np.bincount(self.left + 1, weights * self.share, self.knots.size)
        return (below + above).astype(np.float64)

    def variances(self, values: Floats) -> Floats:
        """Return the variance ``(x - low) * (high - x)`` that rounding adds to each value."""
        variances: Floats = (values - self.knots[self.left]) * (self.knots[self.left + 1] - values)
        return variances


def check_knots(given: ArrayLike) -> Floats:
    """Return at least two knots, strictly increasing."""
    knots = freeze_array(check_labels(given))
    if knots.size < 2:
        raise InvalidInput("there is one knot, expected at least two: nothing lies between the ends of one")
    if (np.diff(knots) <= 0).any():
        raise InvalidInput("knots must strictly increase: pass np.unique(knots)")
    return knots


@suggest_parameters
def unbiased_rounding(values: ArrayLike, knots: ArrayLike, *, source: EntropySource | None = None) -> Floats:
    r"""Round every value to one of the two knots around it, right on average (URR in [B23], Section 3.1).

    .. math:: \Pr[\tilde x = t_{i+1}] = \frac{x - t_i}{t_{i+1} - t_i}, \qquad t_i \leq x \leq t_{i+1}

    Parameters
    ----------
    values : array of integers or floats, any shape, or one number
        Between the first knot and the last. The knots that are returned have this shape.
    knots : (n,) array
        Strictly increasing, at least two.
    source : EntropySource, optional
        By default the operating system, the only choice for a release.

    Raises
    ------
    InvalidInput
        Knots out of order, or values that are not numbers or lie outside the knots. The message does not reveal which,
        or how many.

    Notes
    -----
    The probability is exactly that of the floats as rational numbers: a random word is compared in floats if it is
    further from the probability than any rounding error, otherwise (once in about ``2**49`` values) in integers of any
    size. Cost ``O(log n)`` per value. Temporary memory does not grow with their number.

    Rounding alone is not private: it is the first half of a :class:`~optrand.studies.ContinuousMechanism`.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> unbiased_rounding([0, 2.5, 2.5, 2.5, 4], [0, 1, 4], source=SeededEntropy(1)).tolist()
    [0.0, 4.0, 1.0, 1.0, 4.0]
    """
    ends = check_knots(knots)
    words = SystemEntropy() if source is None else source
    array = check_numbers(values)
    flat = _check_inside(array, ends).reshape(-1)
    rounded = np.empty(flat.size)
    for block in split_blocks(flat.size):
        rounded[block] = _round(flat[block], ends, words)
    return rounded.reshape(array.shape)


def _check_inside(array: NDArray[Any], knots: Floats) -> Floats:
    """Return values as floats, all of them between the ends. Messages never repeat or count values."""
    # Beyond 2**53 an integer may become another one as a float.
    if array.dtype.kind in "iu" and ((array > MAX_INTEGER) | (array < -MAX_INTEGER)).any():
        raise InvalidInput("at least one value is an integer beyond 2**53: rescale the values")
    floats = array.astype(np.float64)
    if not ((floats >= knots[0]) & (floats <= knots[-1])).all():
        raise InvalidInput(
            f"at least one value does not lie between {knots[0]:g} and {knots[-1]:g}, the ends of the knots: clip the "
            "values, or choose knots that reach further"
        )
    return floats


def _round(values: Floats, knots: Floats, source: EntropySource) -> Floats:
    width = check_width(source)
    cells = KnotCells.of(knots, values)
    words = check_words(source, values.size)
    edge, drawn = np.ldexp(cells.share, width), words.astype(np.float64)
    up = drawn < edge
    # A word is known to within one unit of its last place. Probabilities and words in floats have a relative error of a
    # few units of 2**-53, less than this one. Only words that near to the edge are decided exactly.
    relative = 2.0**-50
    for at in np.flatnonzero(np.abs(drawn - edge) <= relative * (drawn + edge) + 2).tolist():
        low, high = map(Fraction, knots[cells.left[at] : cells.left[at] + 2].tolist())
        share = (Fraction(float(values[at])) - low) / (high - low)
        up[at] = settle([share.numerator], share.denominator, (int(words[at]), width), source) == 0
    rounded: Floats = knots[cells.left + up]
    return rounded
