"""Descriptions of a release that know the mechanism behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.typing import ArrayLike

from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism

__all__ = ["Released", "mechanism_of"]


class Released(ABC):
    """A release whose labels one mechanism has drawn."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """Mechanism that drew the labels, verified."""

    def numbers(self, released: ArrayLike) -> ArrayLike:
        """Released labels as outputs of the mechanism; by default they are."""
        return released


def mechanism_of(given: Mechanism | Released) -> Mechanism:
    """Mechanism itself, or the one behind a release.

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
