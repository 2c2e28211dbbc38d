"""Descriptions of a release that know the mechanisms behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism

__all__ = ["Drawn", "Released", "drawn_by", "mechanism_of"]

Drawn = list[tuple[Mechanism, ArrayLike]]
"""Mechanisms, and which released labels each has drawn, as its outputs."""


class Released(ABC):
    """A release whose labels one mechanism has drawn, or one for each of its groups."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """Mechanism that drew the labels, verified."""

    def numbers(self, released: ArrayLike) -> ArrayLike:
        """Return the released labels as outputs of the mechanism; by default they are."""
        return released

    def by_row(self, released: ArrayLike, groups: Any = None) -> tuple[list[Mechanism], NDArray[np.intp], Floats]:
        """Return the mechanisms, which of them drew each row, and the rows' outputs, NaN for missing labels."""
        _refuse(groups)
        numbers: Floats = rectangular(self.numbers(released), "released values", np.float64).ravel()
        return [self.mechanism], np.zeros(numbers.size, dtype=np.intp), numbers

    def drawn_by(self, released: ArrayLike, groups: Any = None) -> Drawn:
        """Split released labels by the mechanism that drew them. `groups` must be None for a single mechanism."""
        _refuse(groups)
        return [(self.mechanism, self.numbers(released))]


def drawn_by(released: ArrayLike, given: Mechanism | Released, groups: Any = None) -> Drawn:
    """Split released labels by the mechanism that drew them.

    Raises
    ------
    InvalidInput
        Neither a mechanism nor a release; groups for a release without them, or no groups for a release by groups.
    """
    if isinstance(given, Released):
        return given.drawn_by(released, groups)
    _refuse(groups)
    # Masked cells are missing labels, which a release leaves out.
    present = released.compressed() if isinstance(released, np.ma.MaskedArray) else released
    return [(mechanism_of(given), present)]


def _refuse(groups: object) -> None:
    if groups is not None:
        raise InvalidInput("one mechanism has drawn all labels, whatever their group: leave out groups")


def mechanism_of(given: Mechanism | Released) -> Mechanism:
    """Return the mechanism itself, or the one behind a release.

    Raises
    ------
    InvalidInput
        Neither of the two.
    """
    if isinstance(given, Released):
        return given.mechanism
    if not isinstance(given, Mechanism):
        raise InvalidInput(f"mechanism is of type {type(given).__name__}, expected a Mechanism")
    return given
