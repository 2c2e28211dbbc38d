"""Evenly spaced outputs in decimal steps: integers, cents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.validation import Floats, real
from optrand.errors import InvalidInput

__all__ = ["Lattice"]


@dataclass(frozen=True)
class Lattice:
    """All ``origin + i * step`` for integers ``i``, each the float nearest to its decimal.

    Parameters
    ----------
    step : float
        Above 0; 0.01 means one hundredth, not the float next to it.
    origin : float

    Examples
    --------
    >>> Lattice(0.01).around(np.array([0.347, 2.0])).tolist()
    [0.34, 0.35, 2.0, 2.01]
    """

    step: float
    origin: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a step without meaning."""
        object.__setattr__(self, "step", real(self.step, "step"))
        object.__setattr__(self, "origin", real(self.origin, "origin"))
        if self.step <= 0:
            raise InvalidInput(f"step is {self.step:g}, expected a distance above 0")

    def around(self, positions: Floats) -> Floats:
        """Lattice values next to each position: at or below it, and above it."""
        step, origin = Fraction(repr(self.step)), Fraction(repr(self.origin))
        # Positions, too, are the decimals that they are written as: the float 0.35 is a hair below 35 hundredths.
        below = {math.floor((Fraction(repr(position)) - origin) / step) for position in positions.tolist()}
        return np.unique([float(origin + i * step) for i in below | {i + 1 for i in below}])
