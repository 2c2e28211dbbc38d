"""Descriptions of a release, with the mechanisms that drew its labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism

Drawn = list[tuple[Mechanism, ArrayLike]]
"""Mechanisms, each with the released labels that it has drawn, as its outputs."""


class Released(ABC):
    """A release whose labels one mechanism has drawn, or one for each of its groups."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """Mechanism that drew the labels, verified."""

    @abstractmethod
    def numbers(self, released: ArrayLike) -> ArrayLike:
        """Return the released labels as outputs of the mechanism, NaN for missing ones."""

    @abstractmethod
    def by_row(self, released: ArrayLike, groups: Any = None) -> tuple[list[Mechanism], NDArray[np.intp], Floats]:
        """Return the mechanisms, the index of each row's mechanism, and the rows' outputs, NaN for missing labels.

        `released` holds values of all rows of the release, or of some. For a release by groups, `groups` is their
        column, or an object that has their columns by name. Unknown groups, or groups of a release without them, are
        refused.
        """


def split_by_mechanism(released: ArrayLike, given: Mechanism | Released, groups: Any = None) -> Drawn:
    """Split released labels by the mechanism that drew them, without missing ones."""
    if isinstance(given, Released):
        mechanisms, places, values = given.by_row(released, groups)
        known = ~np.isnan(values)
        found = [(one, values[known & (places == place)]) for place, one in enumerate(mechanisms)]
        return [(one, labels) for one, labels in found if labels.size or len(mechanisms) == 1]
    refuse_groups(groups)
    # Masked cells are missing labels, which a release leaves out.
    present = released.compressed() if isinstance(released, np.ma.MaskedArray) else released
    return [(mechanism_of(given), present)]


def refuse_groups(groups: object) -> None:
    """Refuse groups of labels that one mechanism has drawn."""
    if groups is not None:
        raise InvalidInput("one mechanism has drawn all labels, whatever their group: leave out groups")


def mechanism_of(given: Mechanism | Released) -> Mechanism:
    """Return the mechanism itself, or the one behind a release."""
    if isinstance(given, Released):
        return given.mechanism
    if isinstance(getattr(given, "columns", None), Mapping):
        raise InvalidInput("mechanism is the record of several columns: pass that of one, record[column]")
    if not isinstance(given, Mechanism):
        raise InvalidInput(f"mechanism is of type {type(given).__name__}, expected a Mechanism")
    return given
