"""Second-order cone programs of one shape, and Clarabel through its own interface as their engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.base._validation import Floats
from optrand.errors import SolverFailed


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
    cones : sparse (3 n, variables) array, optional
        Rows of second-order cones, three neighbours for each: of ``-cones @ x`` the first bounds the length of the
        other two. Without any it is a linear (or quadratic) program.
    """

    quadratic: sparse.csc_array
    cost: Floats
    equal: sparse.csc_array
    equal_to: Floats
    less: sparse.csc_array
    less_than: Floats
    cones: sparse.csc_array | None = None


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """Answer of the engine to a cone program.

    Attributes
    ----------
    x : (variables,) array
    equal_dual : array
        The derivative of the minimum by the right-hand side of each equation.
    cone_slack, cone_dual : (n, 3) arrays
        Slacks in the cones, and the multipliers, which lie in them too.
    status : str
        The engine's own word, which proves nothing.
    """

    x: Floats
    equal_dual: Floats
    cone_slack: Floats
    cone_dual: Floats
    status: str


@dataclass(frozen=True)
class Clarabel:
    """Clarabel with its options.

    Attributes
    ----------
    tolerance : float
        Relative gap and feasibility at which it stops.
    """

    tolerance: float = 1e-13

    def solve(self, program: ConicProgram) -> ConicSolution:
        """Answer `program`. Clarabel's multipliers are minus the derivatives by the right-hand side."""
        import clarabel

        # Clarabel takes one matrix, whose rows are in the order of the cones.
        equations, below = program.equal_to.size, program.equal_to.size + program.less_than.size
        rows, right = [program.equal, program.less], np.concatenate((program.equal_to, program.less_than))
        kinds = [clarabel.ZeroConeT(equations)]
        if below > equations:
            kinds.append(clarabel.NonnegativeConeT(below - equations))
        if program.cones is not None:
            rows.append(program.cones)
            right = np.append(right, np.zeros(program.cones.shape[0]))
            kinds += [clarabel.SecondOrderConeT(3)] * (program.cones.shape[0] // 3)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        settings.max_iter = 300
        matrix = sparse.csc_array(sparse.vstack(rows))
        if not all(np.isfinite(part).all() for part in (program.quadratic.data, program.cost, matrix.data, right)):
            raise SolverFailed("a cone program with coefficients beyond floats was not handed to Clarabel")
        quadratic = sparse.csc_array(program.quadratic)
        answer = clarabel.DefaultSolver(quadratic, program.cost, matrix, right, kinds, settings).solve()
        # An answer that stopped early is returned with its status: callers judge it by its gap.
        x, multipliers = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
            raise SolverFailed(f"Clarabel ended with the status {answer.status} and no answer to read")
        slack, cone_dual = np.array(answer.s)[below:].reshape(-1, 3), multipliers[below:].reshape(-1, 3)
        return ConicSolution(x, -multipliers[:equations], slack, cone_dual, str(answer.status))
