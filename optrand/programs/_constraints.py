"""Constraints on the table of a randomizer, as linear rows.

==========================  ====================================================
:class:`Unbiased`           the mean output of each label is the label
:class:`BiasAtMost`         ``abs(mean output - label) <= bound``
:class:`ProbabilityAtMost`  probabilities of outputs are capped
==========================  ====================================================

Any other linear rows are added by :meth:`optrand.programs.Program.add`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.programs._rows import CellNames, Rows, Sense


class Constraint(Protocol):
    """Linear rows that depend on labels and outputs alone."""

    def rows(self, labels: Floats, outputs: Floats) -> list[Rows]:
        """Build the rows. The variable ``y * n + o`` is ``M[y, o]``."""
        ...


def _names(numbers: Floats) -> tuple[str, ...]:
    return tuple(format(number, ".12g") for number in numbers)


def _mean_rows(name: str, sense: Sense, labels: Floats, outputs: Floats, bound: Floats) -> Rows:
    k, n = labels.size, outputs.size
    cells = np.arange(k * n)
    entries = [(cells // n, cells, outputs[cells % n], 0.0)]
    return Rows.of(name, sense, entries, bound, shape=(k,), label=_names(labels).__getitem__)


@dataclass(frozen=True)
class Unbiased:
    """``sum_o M[y, o] v_o = y`` for every label ([B23], Algorithm 1)."""

    def rows(self, labels: Floats, outputs: Floats) -> list[Rows]:
        """Build one row per label."""
        return [_mean_rows("mean", Sense.EQUAL, labels, outputs, labels)]


@dataclass(frozen=True, eq=False)
class BiasAtMost:
    """``abs(sum_o M[y, o] v_o - y) <= bound`` for every label.

    Parameters
    ----------
    bound : float or (k,) array
        At least 0, in units of the labels.
    """

    bound: Floats

    def __post_init__(self) -> None:
        """Check the bound and keep a read-only copy."""
        array = np.array(rectangular(self.bound, "bound", float))
        if array.ndim > 1 or not np.isfinite(array).all() or (array < 0).any():
            raise InvalidInput("bound of a bias must be a number of at least 0, or one number per label")
        array.flags.writeable = False
        object.__setattr__(self, "bound", array)

    def rows(self, labels: Floats, outputs: Floats) -> list[Rows]:
        """Build two rows per label."""
        if self.bound.ndim and self.bound.size != labels.size:
            raise InvalidInput(f"there are {self.bound.size} bounds of biases for {labels.size} labels")
        return [
            _mean_rows("bias above", Sense.LESS, labels, outputs, labels + self.bound),
            _mean_rows("bias below", Sense.GREATER, labels, outputs, labels - self.bound),
        ]


@dataclass(frozen=True, eq=False)
class ProbabilityAtMost:
    """``M[y, o] <= bound`` for every label, or for some outputs only.

    Parameters
    ----------
    bound : float or (n,) array
        From 0 to 1; 1 imposes nothing.
    """

    bound: Floats

    def __post_init__(self) -> None:
        """Check the bound and keep a read-only copy."""
        array = np.array(rectangular(self.bound, "bound", float))
        if array.ndim > 1 or not ((array >= 0) & (array <= 1)).all():
            raise InvalidInput("bound of a probability must be a number from 0 to 1, or one number per output")
        array.flags.writeable = False
        object.__setattr__(self, "bound", array)

    def rows(self, labels: Floats, outputs: Floats) -> list[Rows]:
        """Build one row per label and output."""
        k, n = labels.size, outputs.size
        if self.bound.ndim and self.bound.size != n:
            raise InvalidInput(f"there are {self.bound.size} bounds of probabilities for {n} outputs")
        cells = np.arange(k * n)
        label = CellNames(_names(labels), _names(outputs))
        bound: ArrayLike = np.broadcast_to(self.bound, (k, n))
        return [Rows.of("cap", Sense.LESS, [(cells, cells, 1.0, 0.0)], bound, shape=(k, n), label=label)]
