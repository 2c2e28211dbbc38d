"""Frozen records whose pickles and copies are made again by their constructor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn, TypeVar

import numpy as np

from optrand.errors import InvalidInput

T = TypeVar("T")


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
        """Compare the arguments."""
        if type(other) is not type(self):
            return False
        pairs = zip(self._arguments().values(), other._arguments().values(), strict=True)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __hash__(self) -> int:
        """Hash the arguments."""
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
