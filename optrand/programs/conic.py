"""A second-order cone program of one shape, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from optrand.validation import Floats

__all__ = ["ConicProgram", "ConicSolution"]


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """``minimise x' Q x / 2 + cost @ x`` subject to equations, inequalities and rotated cones.

    The first ``3 arcs`` variables are masses ``c``, moments ``m`` and quotients ``q``; the cones say ``m^2 <= c q``,
    ``c >= 0`` and ``q >= 0``, one an arc.

    Attributes
    ----------
    quadratic : sparse (variables, variables) array
        Diagonal.
    cost : (variables,) array
    equal, equal_to
        Rows ``equal @ x == equal_to``.
    less, less_than
        Rows ``less @ x <= less_than``.
    arcs : int
        0 makes it a linear (or quadratic) program.
    """

    quadratic: sparse.csc_array
    cost: Floats
    equal: sparse.csc_array
    equal_to: Floats
    less: sparse.csc_array
    less_than: Floats
    arcs: int


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """What the engine answered.

    Attributes
    ----------
    x : (variables,) array
    equal_dual : array
        The derivative of the minimum by the right-hand side of each equation.
    status : str
        The engine's own word; information, not proof.
    iterations : int
    """

    x: Floats
    equal_dual: Floats
    status: str
    iterations: int
