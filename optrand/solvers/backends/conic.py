"""A second-order cone program of one shape, and its answer."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from optrand.base.validation import Floats

__all__ = ["Cones", "ConicProgram", "ConicSolution"]


@dataclass(frozen=True, eq=False)
class Cones:
    """Second-order cones of three rows each: ``right - rows @ x`` is ``(a, b, c)`` with ``a >= hypot(b, c)``.

    Attributes
    ----------
    rows : sparse (3 n, variables) array
        The three rows of a cone are neighbours.
    right : (3 n,) array
    """

    rows: sparse.csc_array
    right: Floats


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """``minimise x' Q x / 2 + cost @ x`` subject to equations, inequalities and cones.

    Attributes
    ----------
    quadratic : sparse (variables, variables) array
        The upper triangle of a positive semidefinite matrix.
    cost : (variables,) array
    equal, equal_to
        Rows ``equal @ x == equal_to``.
    less, less_than
        Rows ``less @ x <= less_than``.
    cones : Cones or None
        None makes it a linear (or quadratic) program.
    """

    quadratic: sparse.csc_array
    cost: Floats
    equal: sparse.csc_array
    equal_to: Floats
    less: sparse.csc_array
    less_than: Floats
    cones: Cones | None = None


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """Answer of the engine to a cone program.

    Attributes
    ----------
    x : (variables,) array
    equal_dual : array
        The derivative of the minimum by the right-hand side of each equation.
    cone_slack, cone_dual : (n, 3) arrays
        What lies in the cones, and the multipliers, which lie in them too.
    status : str
        The engine's own word; information, not proof.
    iterations : int
    """

    x: Floats
    equal_dual: Floats
    cone_slack: Floats
    cone_dual: Floats
    status: str
    iterations: int
