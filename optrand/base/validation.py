"""Checks of arguments, shared by every constructor: each returns the cleaned value or raises :class:`InvalidInput`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.errors import InvalidInput

__all__ = [
    "Floats",
    "classes",
    "epsilon",
    "expect",
    "flag",
    "frozen",
    "integer",
    "labels",
    "prior",
    "real",
    "rectangular",
    "values",
]

Floats = NDArray[np.float64]

MAX_EPSILON = 700.0
"""Largest epsilon, beyond which ``exp(epsilon)`` leaves the range of floats."""

MAX_INTEGER = 2**53
"""Largest integer up to which all integers are floats."""

MAX_MAGNITUDE = 1e150
"""Largest magnitude, beyond which squares leave the range of floats."""

MIN_SPREAD = 1e-150
"""Least difference, below which squares vanish in floats."""

PRIOR_SUM_TOLERANCE = 1e-9
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


def frozen(array: ArrayLike) -> Floats:
    """Read-only float copy of ``array``; what is none is refused."""
    copy = np.array(rectangular(array, "an argument", np.float64))
    copy.flags.writeable = False
    return copy


def expect(given: object, kinds: type | tuple[type, ...], name: str, way: str) -> None:
    """Refuse an argument of another type; `way` says what was expected, and how one comes by it.

    Examples
    --------
    >>> expect([0.5], dict, "randomizers", "a dict of functions by name")
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: randomizers is of type list, expected a dict of functions by name
    """
    if not isinstance(given, kinds):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected {way}")


def real(value: object, name: str) -> float:
    """Return ``value`` as a finite float; booleans and strings are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, np.floating, np.integer)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected a real number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{name} is {number}, expected a finite number")
    return number


def flag(value: object, name: str) -> bool:
    """Return ``value`` as True or False; text such as "no", which would count as true, is refused, and numbers are."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected True or False")
    return bool(value)


def integer(value: object, name: str, least: int, most: float = math.inf, *, why: str = "") -> int:
    """``value`` as an integer from ``least`` to ``most``; booleans, floats and strings are refused."""
    given = value.item() if isinstance(value, np.generic) else value
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise InvalidInput(f"{name} is {given!r}, expected an integer {bounds}{why}")
    return given


def epsilon(value: object, name: str = "epsilon") -> float:
    """Return a privacy budget in nats: a finite number above 0 and at most 700."""
    number = real(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} is {number}, expected a number above 0 (nats)")
    if number > MAX_EPSILON:
        raise InvalidInput(
            f"{name} is {number}, expected at most {MAX_EPSILON:g}: exp(epsilon) overflows beyond it, "
            "and there is no privacy left to speak of"
        )
    return number


def rectangular(given: ArrayLike | Sequence[object], name: str, dtype: type | None = None) -> NDArray[Any]:
    """Return an array, of a type if one is named; ragged lists, and cells of another type, are refused."""
    try:
        return np.asarray(given, dtype=dtype)
    except (ValueError, TypeError, OverflowError):
        raise InvalidInput(f"{name} is no array: expected numbers in rows of one length") from None


def values(given: ArrayLike | Sequence[object], name: str) -> Floats:
    """Return a non-empty, one-dimensional array of finite floats, ``-0.0`` turned into ``0.0``."""
    array = rectangular(given, name)
    if array.ndim != 1:
        raise InvalidInput(f"{name} has {array.ndim} dimensions, expected one")
    if array.size == 0:
        raise InvalidInput(f"{name} is empty, expected at least one value")
    if isinstance(given, (list, tuple)) or array.dtype.kind not in "fiu":
        # The elements of a list are checked themselves: numpy would turn booleans and large integers into floats.
        elements = list(given) if isinstance(given, (list, tuple)) else array.tolist()
        if not all(isinstance(x, Real) and not isinstance(x, bool) for x in elements):
            raise InvalidInput(f"{name} holds values of type {array.dtype.type.__name__}, expected numbers")
        large = any(isinstance(x, Integral) and abs(int(x)) > MAX_INTEGER for x in elements)
    else:
        large = array.dtype.kind in "iu" and bool(((array > MAX_INTEGER) | (array < -MAX_INTEGER)).any())
    if large:
        raise InvalidInput(f"{name} holds integers beyond 2**53, which floats cannot tell apart: rescale them")
    floats = array.astype(np.float64) + 0.0
    if not np.isfinite(floats).all():
        raise InvalidInput(f"{name} holds NaN or infinite values, expected finite numbers")
    return floats


def distinct(array: Floats, name: str) -> None:
    """Refuse repeated values in ``array``, which need not be sorted."""
    repeats = array.size - np.unique(array).size
    if repeats:
        raise InvalidInput(f"{name} repeats {repeats} value(s), expected distinct numbers")


def squarable(array: Floats, name: str) -> None:
    """Refuse numbers whose squares are no floats."""
    if (np.abs(array) > MAX_MAGNITUDE).any():
        raise InvalidInput(
            f"{name} reach beyond {MAX_MAGNITUDE:g}, where the square of a float overflows: rescale them"
        )


def labels(given: ArrayLike | Sequence[object]) -> Floats:
    """Return a set of labels: distinct finite numbers with a range that floats can square, in the order given."""
    array = values(given, "labels")
    distinct(array, "labels")
    squarable(array, "labels")
    if array.size > 1 and np.ptp(array) < MIN_SPREAD:
        raise InvalidInput(f"labels differ by less than {MIN_SPREAD:g}, whose square vanishes in floats: rescale them")
    return array


def prior(given: ArrayLike | Sequence[object], size: int | None = None) -> Floats:
    """Return a probability distribution: no negative, subnormal or NaN entry, summing to 1 within 1e-9."""
    array = values(given, "prior")
    if size is not None and array.size != size:
        raise InvalidInput(f"prior has {array.size} entries for {size} labels, expected one per label")
    if (array < 0).any():
        raise InvalidInput(f"prior has {int((array < 0).sum())} negative entries, expected probabilities")
    if not array.any():
        raise InvalidInput("prior is all zeros, expected probabilities that sum to 1")
    if ((array > 0) & (array < SMALLEST_NORMAL)).any():
        raise InvalidInput("prior has entries too small for a normal float: set them to zero")
    try:
        total = math.fsum(array)
    except OverflowError:
        raise InvalidInput(
            "prior sums to more than any float, expected 1: divide it by its largest entry, then by its sum"
        ) from None
    if abs(total - 1) > PRIOR_SUM_TOLERANCE:
        raise InvalidInput(f"prior sums to {total:.10g}, expected 1: pass prior / prior.sum()")
    return array


def classes(values: ArrayLike, k: int) -> NDArray[np.intp]:
    """Values as class numbers ``0 ... k-1``, of their shape; a refusal tells neither which are none nor how many.

    Examples
    --------
    >>> classes([[0.0, 2.0]], 3).tolist()
    [[0, 2]]
    >>> classes([0, 1, 3], 3)
    Traceback (most recent call last):
        ...
    optrand.errors.InvalidInput: at least one value is not among the classes 0 to 2: number the classes from 0, or
    leave the strangers out
    """
    array = rectangular(values, "values")
    if array.size and array.dtype.kind not in "iuf":
        raise InvalidInput(f"values are of type {array.dtype.type.__name__}, expected class numbers from 0 to {k - 1}")
    if not ((array >= 0) & (array < k) & (array == np.floor(array))).all():
        raise InvalidInput(
            f"at least one value is not among the classes 0 to {k - 1}: "
            "number the classes from 0, or leave the strangers out"
        )
    return array.astype(np.intp)
