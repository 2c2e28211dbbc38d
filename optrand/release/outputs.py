"""Allowed outputs, as a user declares them: the real line, an interval, or so many evenly spaced values."""

from __future__ import annotations

from dataclasses import dataclass

from optrand.base.validation import Floats, integer
from optrand.errors import InvalidInput
from optrand.model.outputs import Interval, Line, OutputSet, feasible_output_set
from optrand.release.decimals import number, whole

__all__ = ["DeclaredOutputs", "EvenGrid", "allowed_outputs", "parse_outputs"]


@dataclass(frozen=True)
class EvenGrid:
    """So many evenly spaced outputs, from the lowest to the highest of debiased randomized response.

    Which they are depends on the epsilon that they will serve: :func:`optrand.feasible_output_set`.

    Parameters
    ----------
    n : int
        At least 2.

    Raises
    ------
    InvalidInput
    """

    n: int

    def __post_init__(self) -> None:
        """Refuse anything but a whole number of at least 2."""
        integer(self.n, "the size of the mesh", 2, why=": no single output is unbiased for two labels")


DeclaredOutputs = OutputSet | EvenGrid
"""Known before the epsilon is."""


def parse_outputs(text: str) -> DeclaredOutputs:
    """Parse the allowed outputs: ``line``, ``grid:N`` or ``interval:LOW:HIGH``.

    Raises
    ------
    InvalidInput
        Text of another form, a mesh of fewer than 2, or an interval that is empty.

    Examples
    --------
    >>> parse_outputs("line"), parse_outputs("grid:417"), parse_outputs("interval:-10:62.5")
    (Line(low=-inf, high=inf), EvenGrid(n=417), Interval(low=-10.0, high=62.5))
    """
    kind, *parts = text.split(":")
    if kind == "line" and not parts:
        return Line()
    if kind == "grid" and len(parts) == 1 and (n := whole(parts[0])) is not None:
        return EvenGrid(n)
    if kind == "interval" and len(parts) == 2:
        low, high = (number(part, f"an end of the outputs {text!r}", "a number such as -10 or 62.5") for part in parts)
        return Interval(low, high)
    raise InvalidInput(f"outputs are {text!r}, expected line, grid:N such as grid:417, or interval:LOW:HIGH")


def allowed_outputs(declared: DeclaredOutputs, labels: Floats, epsilon: float) -> OutputSet:
    """The outputs that were declared, for a randomizer of `labels` with this epsilon."""
    return feasible_output_set(labels, epsilon, declared.n) if isinstance(declared, EvenGrid) else declared
