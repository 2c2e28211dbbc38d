r"""Losses ``g(v, y)`` of an output ``v`` for a label ``y``, in floats and with rational bounds for certificates.

=================  ==========================  ============================
``squared``        :math:`(v - y)^2 / 2`       [B23], Section 2
``absolute``       :math:`|v - y|`
``poisson_log``    :math:`v - y \log v`        [B23], Section 2, ``v > 0``
``zero_one``       ``-1`` if ``v == y``        [G21], LP1, with the opposite sign
``Tabulated``      a table, one row per label  any loss on a grid
=================  ==========================  ============================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optrand.base._arithmetic import log_bracket
from optrand.base._suggestions import nearby, public_names
from optrand.base._validation import Floats, Value, freeze_array
from optrand.errors import InvalidInput

__all__ = ["Loss", "Tabulated", "absolute", "poisson_log", "squared", "zero_one"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)


@dataclass(frozen=True)
class Loss:
    """Named loss with a float form over arrays and rational bounds.

    Attributes
    ----------
    name : str
        Name in files.
    evaluate : callable
        ``evaluate(outputs, labels)`` in floats, broadcasting.
    bracket : callable
        ``bracket(output, label)`` in rationals: a lower and an upper bound of the loss, equal if it is rational.
    positive_outputs : bool
        Whether the loss is defined for outputs above 0 only (and labels of at least 0).
    """

    name: str
    evaluate: Callable[[Floats, Floats], Floats] = field(repr=False)
    bracket: Callable[[Fraction, Fraction], tuple[Fraction, Fraction]] = field(repr=False)
    positive_outputs: bool = False

    def table(self, labels: Floats, outputs: Floats) -> Floats:
        """Return the loss of every output for every label, shape ``(k, n)``."""
        return self.evaluate(outputs[np.newaxis, :], labels[:, np.newaxis])


@dataclass(frozen=True, eq=False)
class Tabulated(Value):
    """Tabulated loss on a grid: ``entries[y, i]`` is the loss of output ``i`` for label ``y``.

    Rows and columns follow increasing labels and outputs, or in a call of :func:`optrand.regression` its arguments.

    Examples
    --------
    >>> Tabulated([[0, 1], [3, 0]]).name
    'tabulated'
    """

    entries: Floats
    name: str = field(default="tabulated", init=False)
    positive_outputs: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", freeze_array(freeze_array(self.entries) + 0.0))
        if self.entries.ndim != 2 or not np.isfinite(self.entries).all():
            raise InvalidInput("a tabulated loss needs a finite matrix, one row per label and one column per output")

    def table(self, labels: Floats, outputs: Floats) -> Floats:
        """Return the entries, after checking their shape."""
        if self.entries.shape != (labels.size, outputs.size):
            raise InvalidInput(
                f"the loss table has shape {self.entries.shape}, expected ({labels.size}, {outputs.size}): "
                "one row per label and one column per output"
            )
        return self.entries


def _squared(v: Floats, y: Floats) -> Floats:
    return 0.5 * (v - y) ** 2


def _squared_bracket(v: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    loss = (v - y) ** 2 / 2
    return loss, loss


def _absolute(v: Floats, y: Floats) -> Floats:
    return np.abs(v - y)


def _absolute_bracket(v: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    return abs(v - y), abs(v - y)


def _poisson(v: Floats, y: Floats) -> Floats:
    return np.where(y == 0, v, v - y * np.log(v))


def _poisson_bracket(v: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    low, high = log_bracket(v)
    return v - y * high, v - y * low


def _zero_one(v: Floats, y: Floats) -> Floats:
    return np.where(v == y, -1.0, 0.0)


def _zero_one_bracket(v: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    loss = Fraction(-1 if v == y else 0)
    return loss, loss


squared = Loss("squared", _squared, _squared_bracket)
absolute = Loss("absolute", _absolute, _absolute_bracket)
poisson_log = Loss("poisson_log", _poisson, _poisson_bracket, positive_outputs=True)
zero_one = Loss("zero_one", _zero_one, _zero_one_bracket)

by_name = {loss.name: loss for loss in (squared, absolute, poisson_log, zero_one)}
"""Losses that a name alone can rebuild."""


def unknown(given: object) -> str:
    """Return the error text for an argument that is not a loss. If it is the name of one, the text has the object."""
    if isinstance(given, str):
        if given in by_name:
            return f"loss is the text {given!r}, expected the loss itself: pass optrand.losses.{given}"
        return f"loss is the text {given!r}, expected a loss such as optrand.losses.squared: {nearby(given, by_name)}"
    return f"loss is of type {type(given).__name__}, expected one of optrand.losses, such as optrand.losses.absolute"
