"""Solutions: a randomizer, its dual, and statistics of the solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optrand.base.validation import Floats, frozen, real
from optrand.errors import InvalidInput
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["Dual", "Solution", "Stats"]


@dataclass(frozen=True, eq=False)
class Dual:
    """Multipliers of the two families of constraints, one of each a label.

    Attributes
    ----------
    alpha : (k,) array
        Of ``sum_i M[y, i] = 1``; in units of the loss.
    beta : (k,) array
        Of ``E[M(y)] = y`` (or of the definition of the bias, at a finite penalty); loss per unit of the label. Zero
        where bias is free.
    origin : float
        The output from which `beta` is measured: far from zero, floats hold good multipliers only near the labels.

    Notes
    -----
    The sign is that of a minimisation: ``h_y(v) = p_y g(v, y) - alpha_y - beta_y (v - origin)`` is the reduced cost.
    Any numbers give a true bound (:mod:`optrand.certificates.certificate`).
    """

    alpha: Floats
    beta: Floats
    origin: float = 0.0

    def __post_init__(self) -> None:
        """Freeze, and refuse NaN or two lengths."""
        object.__setattr__(self, "origin", real(self.origin, "origin") + 0.0)
        object.__setattr__(self, "alpha", frozen(self.alpha))
        object.__setattr__(self, "beta", frozen(self.beta))
        if self.alpha.ndim != 1 or self.alpha.shape != self.beta.shape:
            raise InvalidInput("a dual needs two vectors of one length, one entry a label")
        if not (np.isfinite(self.alpha).all() and np.isfinite(self.beta).all()):
            raise InvalidInput("a dual needs finite multipliers")


@dataclass(frozen=True)
class Stats:
    """Statistics of a solve.

    Attributes
    ----------
    solver : str
        Printed so that it can be built again.
    seconds : float
        Wall-clock time.
    iterations : int
        Rounds of the solver's own outermost loop.
    status : str
        Solver status; information, never proof.
    """

    solver: str
    seconds: float = 0.0
    iterations: int = 0
    status: str = "closed form"


@dataclass(frozen=True, eq=False)
class Solution:
    """Claim that a randomizer answers a problem; the dual bounds its distance from the optimum.

    Attributes
    ----------
    problem : Problem
    randomizer : Randomizer
    dual : Dual or None
        Without one only privacy can be certified.
    stats : Stats
    """

    problem: Problem
    randomizer: Randomizer
    dual: Dual | None
    stats: Stats

    def __post_init__(self) -> None:
        """Refuse an answer to another question."""
        if not np.array_equal(self.problem.labels, self.randomizer.labels):
            raise InvalidInput("the randomizer's labels are not those of the problem")
        if self.dual is not None and self.dual.alpha.size != self.problem.k:
            raise InvalidInput("the dual does not have one entry per label of the problem")

    @property
    def value(self) -> float:
        """Objective at the randomizer, in floats."""
        return self.problem.value(self.randomizer)
