"""Checks of arguments, and records whose pickles and copies are made again by constructors with these checks.

Each check returns the cleaned value or raises :class:`InvalidInput`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from numbers import Integral, Real
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.errors import InvalidInput, UnknownParameter

P = ParamSpec("P")
T = TypeVar("T")

Floats = NDArray[np.float64]

MAX_EPSILON = 700.0
"""Largest epsilon, beyond which ``exp(epsilon)`` leaves the range of floats."""

MAX_INTEGER = 2**53
"""Largest integer up to which floats represent all integers."""

PRIOR_SUM_TOLERANCE = 1e-9
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


def freeze_array(array: ArrayLike) -> Floats:
    """Return a read-only float64 copy. Raise `InvalidInput` if `array` is not numeric."""
    copy = np.array(rectangular(array, "an argument", np.float64))
    copy.flags.writeable = False
    return copy


def expect(given: object, kinds: type | tuple[type, ...], name: str, way: str) -> None:
    """Raise if an argument has another type. `way` describes the expected one and how to make it."""
    if not isinstance(given, kinds):
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected {way}")


def check_real(value: object, name: str) -> float:
    """Return ``value`` as a finite float. Booleans and strings are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, np.floating, np.integer)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected a real number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{name} is {number}, expected a finite number")
    return number


def check_flag(value: object, name: str) -> bool:
    """Return ``value`` as True or False. Text such as "no", which would count as true, is refused, and numbers are."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} is of type {type(value).__name__}, expected True or False")
    return bool(value)


def check_integer(value: object, name: str, least: int, most: float = math.inf, *, why: str = "") -> int:
    """Return ``value`` as an integer from ``least`` to ``most``. Booleans, floats and strings are refused."""
    given = value.item() if isinstance(value, np.generic) else value
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise InvalidInput(f"{name} is {given!r}, expected an integer {bounds}{why}")
    return given


def check_epsilon(value: object, name: str = "epsilon") -> float:
    """Return a privacy budget in nats: a finite number above 0 and at most 700."""
    number = check_real(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} is {number}, expected a number above 0 (nats)")
    if number > MAX_EPSILON:
        raise InvalidInput(
            f"{name} is {number}, expected at most {MAX_EPSILON:g}: exp(epsilon) overflows beyond it, "
            "and there is practically no privacy"
        )
    return number


def rectangular(given: ArrayLike | Sequence[object], name: str, dtype: type | None = None) -> NDArray[Any]:
    """Return a plain array, of a type if one is named.

    Raises
    ------
    InvalidInput
        A ragged list, cells of another type, or masked cells: numpy would read the values behind the mask.
    """
    try:
        masked = has_masked_cells(given)
        array = np.asarray([] if masked else given, dtype=dtype)
    except MemoryError:
        raise
    except Exception:
        # Columns of other libraries raise errors of their own, such as those of polars for 128-bit integers.
        raise InvalidInput(f"{name} is no array: expected numbers in rows of one length") from None
    if masked:
        raise InvalidInput(f"{name} has masked cells: leave them out, such as by .compressed(), or fill them")
    return array


def has_masked_cells(given: object) -> bool:
    """Return whether an array, an object that becomes one, or a list of such has cells behind a mask."""
    if isinstance(given, (list, tuple)):
        # A list of masked arrays, or of their cells, would lose its masks as well.
        maskless = (int, float, str, bytes, type(None), np.generic)
        return any(not isinstance(each, maskless) and has_masked_cells(each) for each in given)
    if type(given) is np.ndarray or not hasattr(type(given), "__array__"):
        return False
    # Only asanyarray keeps the mask of the array that such an object converts to.
    mask = getattr(np.asanyarray(given), "mask", False)
    return isinstance(mask, (bool, np.bool_, np.ndarray)) and bool(np.any(mask))


def as_doubles(array: NDArray[Any]) -> Floats:
    """Return numbers as float64. Those of fewer digits become the doubles of their shortest decimals.

    A float32 or float16 that is written 0.1 was meant as 0.1, not as the double nearest to it, which is
    0.10000000149011612. Whole numbers stay as they are, even if a shorter decimal reads back as the same float.
    """
    doubles = array.astype(np.float64)
    if array.dtype in (np.float16, np.float32):
        parts = np.isfinite(doubles) & (doubles != np.floor(doubles))
        if parts.any():
            distinct_parts, places = np.unique(array[parts], return_inverse=True)
            doubles[parts] = distinct_parts.astype(str).astype(np.float64)[places]
    return doubles


def as_declared(values: Floats, labels: Floats) -> Floats:
    """Return numbers with each that is a declared one up to the rounding of floats replaced by that.

    ``np.arange(0, 1.01, 0.01)`` holds 0.29000000000000004, although 0.29 is meant, and ``0.1 + 0.2`` is not 0.3. Such
    numbers count as equal if they differ by at most ``2**-36`` (1.5e-11) of the largest declared magnitude, and by at
    most a millionth of the least distance between two declared numbers. Whole declared numbers are matched exactly.

    Parameters
    ----------
    values : array
        Private.
    labels : (k,) array
        The declared numbers, increasing.

    Examples
    --------
    >>> as_declared(
    ...     np.array([0.29, 0.3001]), np.array([0.0, 0.29000000000000004, 0.3])
    ... ).tolist()
    [0.29000000000000004, 0.3001]
    """
    if labels.size < 2 or (labels == np.floor(labels)).all():
        return values
    # Far more than the rounding of np.arange with ten thousand steps, far less than a digit that somebody wrote.
    slack = min(2.0**-36 * float(np.abs(labels).max()), 1e-6 * float(np.diff(labels).min()))
    middles = labels[:-1] + np.diff(labels) / 2
    nearest: Floats = labels[np.searchsorted(middles, values)]
    return np.where(np.abs(values - nearest) <= slack, nearest, values)


def check_values(given: ArrayLike | Sequence[object], name: str) -> Floats:
    """Return a non-empty, one-dimensional array of finite floats, ``-0.0`` turned into ``0.0``."""
    array = rectangular(given, name)
    if array.ndim == 0:
        # A Grid has its numbers there.
        instead = "its .values" if isinstance(getattr(given, "values", None), np.ndarray) else "a list or an array"
        kind = "a single number" if array.dtype.kind in "fiu" else f"of type {type(given).__name__}"
        raise InvalidInput(f"{name} is {kind}, expected several: pass {instead}")
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
        raise InvalidInput(f"{name} holds integers beyond 2**53, which floats cannot distinguish: rescale them")
    floats = as_doubles(array) + 0.0
    if not np.isfinite(floats).all():
        raise InvalidInput(f"{name} holds NaN or infinite values, expected finite numbers")
    return floats


def check_distinct(array: Floats, name: str) -> None:
    """Refuse repeated values in ``array``, which need not be sorted."""
    repeats = array.size - np.unique(array).size
    if repeats:
        raise InvalidInput(f"{name} repeats {repeats} value(s), expected distinct numbers")


def exactly(given: object, kinds: type | tuple[type, ...], name: str) -> None:
    """Refuse an instance of a subclass, whose methods could return different values to a proof and to a draw."""
    every = kinds if isinstance(kinds, tuple) else (kinds,)
    if type(given) not in every:
        names = " or ".join(kind.__name__ for kind in every)
        raise InvalidInput(f"{name} is of type {type(given).__name__}, expected {names} itself and no subclass")


def check_squarable(array: Floats, name: str) -> None:
    """Refuse numbers whose squares overflow."""
    largest = 1e150
    if (np.abs(array) > largest).any():
        raise InvalidInput(f"{name} reach beyond {largest:g}, where the square of a float overflows: rescale them")


def check_labels(given: ArrayLike | Sequence[object]) -> Floats:
    """Return a set of labels: distinct finite numbers with a range that floats can square, in the order given."""
    array = check_values(given, "labels")
    check_distinct(array, "labels")
    check_squarable(array, "labels")
    least = 1e-150
    if array.size > 1 and np.ptp(array) < least:
        raise InvalidInput(f"labels differ by less than {least:g}, whose square vanishes in floats: rescale them")
    return array


def check_order(given: object, labels: Sequence[object] | NDArray[Any] | None, name: str) -> None:
    """Refuse a Series of pandas whose index is the labels, or `0 ... n-1` without them, in another order.

    That is how ``value_counts`` returns its numbers. They would be taken for those of other labels.
    """
    index = getattr(given, "index", None)
    # Lists and tuples have a method of that name.
    if index is None or callable(index):
        return
    found, places = list(index), list(range(len(index)))
    wanted = places if labels is None else list(labels)
    if found != wanted and (len(found) == len(wanted) and set(found) == set(wanted)):
        order = "of 0, 1, 2, ..." if labels is None else "of the labels"
        raise InvalidInput(
            f"{name} is a {type(given).__name__} whose index is not in the order {order}: sort it, such as by "
            f"{name}.{'sort_index()' if labels is None else 'reindex(labels)'}"
        )


def check_prior(
    given: ArrayLike | Sequence[object], labels: Sequence[object] | NDArray[Any] | int | None = None
) -> Floats:
    """Return a probability distribution: no negative, subnormal or NaN entry, summing to 1 within 1e-9.

    An array of float32 or float16 may miss 1 by a thousandth and is divided by its sum. `labels` are those in whose
    order the entries are, or only their number.
    """
    size = labels if labels is None or isinstance(labels, int) else len(labels)
    check_order(given, None if isinstance(labels, int) else labels, "prior")
    array = check_values(given, "prior")
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
    if getattr(given, "dtype", None) in (np.float16, np.float32) and abs(total - 1) <= 1e-3:
        # Narrow floats, such as those of a softmax, cannot sum to 1 more exactly.
        return array / total
    if abs(total - 1) > PRIOR_SUM_TOLERANCE:
        raise InvalidInput(
            f"prior sums to {total:.10g}, expected 1: divide each entry by the sum, np.array(prior) / np.sum(prior)"
        )
    return array


def check_classes(values: ArrayLike, k: int) -> NDArray[np.intp]:
    """Return values as class numbers ``0 ... k-1``, of their shape.

    An error does not reveal which are invalid, or how many.
    """
    array = rectangular(values, "values")
    if array.size and array.dtype.kind not in "iuf":
        raise InvalidInput(f"values are of type {array.dtype.type.__name__}, expected class numbers from 0 to {k - 1}")
    if not ((array >= 0) & (array < k) & (array == np.floor(array))).all():
        raise InvalidInput(
            f"at least one value is not among the classes 0 to {k - 1}: "
            "number the classes from 0, or leave other values out"
        )
    return array.astype(np.intp)


def suggest_parameters(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function answer a keyword that it does not have with the one that it has.

    Raises
    ------
    UnknownParameter
        By the wrapped function: arguments that do not fit its parameters.

    Examples
    --------
    >>> import optrand
    >>> optrand.rr([0, 1], eps=1.0)
    Traceback (most recent call last):
    optrand.errors.UnknownParameter: rr() has no parameter 'eps': did you mean 'epsilon'?
    """

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except TypeError:
            _check_arguments(function, args, options)
            raise

    return call


def _check_arguments(function: Callable[..., object], args: Any, options: Any) -> None:
    """Raise `UnknownParameter`, with the parameters of a function, if these arguments do not fit them."""
    signature, where = inspect.signature(function), function.__qualname__.removesuffix(".__init__")
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        from optrand.base._suggestions import advise

        parameters = {name: each for name, each in signature.parameters.items() if name != "self"}
        for name in options:
            if name not in parameters:
                advice = advise(name, list(parameters))
                raise UnknownParameter(f"{where}() has no parameter {name!r}: {advice}") from None
        shown = [each.replace(annotation=each.empty) for each in parameters.values()]
        raise UnknownParameter(f"{where}{inspect.Signature(shown)}: {error}") from None


class Record:
    """Base of dataclasses that hold proofs, or cached results, beside their fields.

    A pickle or a copy holds only the arguments of the constructor. So it is checked again, and derived values are
    computed again.

    Examples
    --------
    >>> import copy
    >>> from optrand.model._problem import Dual
    >>> dual = Dual([1.0], [0.0])
    >>> vars(dual)["forged"] = True
    >>> "forged" in vars(copy.copy(dual)), copy.copy(dual) == dual
    (False, True)
    """

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments that make an equal record."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts of a pickle: class and arguments."""
        return _construct, (type(self), self._arguments())

    def __setstate__(self, state: object) -> NoReturn:
        """Refuse a state that bypasses the constructor."""
        raise InvalidInput(f"a {type(self).__name__} is made by its constructor only: this pickle was altered")


class Value(Record):
    """Base of records that are equal where all their arguments are, arrays entry by entry."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        pairs = zip(self._arguments().values(), other._arguments().values(), strict=True)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __hash__(self) -> int:
        parts = self._arguments().values()
        return hash(tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in parts))


def freeze(record: object, *names: str) -> None:
    """Replace arrays of a frozen dataclass by read-only copies: the caller's own stay as they are."""
    for name in names:
        copy = np.array(getattr(record, name))
        copy.flags.writeable = False
        object.__setattr__(record, name, copy)


def _construct(kind: type[T], arguments: Mapping[str, Any]) -> T:
    return kind(**arguments)
