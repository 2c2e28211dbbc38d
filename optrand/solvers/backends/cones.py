"""Clarabel through its own interface: the interior-point engine of the cone programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.errors import SolverFailed
from optrand.solvers.backends.conic import ConicProgram, ConicSolution

__all__ = ["Clarabel"]


@dataclass(frozen=True)
class Clarabel:
    """Clarabel.

    Attributes
    ----------
    tolerance : float
        Relative gap and feasibility at which it stops.
    time_limit : float
        Seconds.
    """

    tolerance: float = 1e-13
    time_limit: float = 3600.0

    def solve(self, program: ConicProgram) -> ConicSolution:
        """Answer `program`; Clarabel's multipliers are minus the derivatives by the right-hand side."""
        import clarabel

        equations, inequalities = program.equal_to.size, program.less_than.size
        rows, right = [program.equal, program.less], [program.equal_to, program.less_than]
        kinds = [clarabel.ZeroConeT(equations)]
        if inequalities:
            kinds.append(clarabel.NonnegativeConeT(inequalities))
        if program.cones:
            rows.append(program.cones.rows)
            right.append(program.cones.right)
            kinds += [clarabel.SecondOrderConeT(3)] * (program.cones.right.size // 3)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        settings.time_limit = self.time_limit
        settings.max_iter = 300
        parts = sparse.csc_array(sparse.vstack(rows)), np.concatenate(right)
        numbers = program.quadratic.data, program.cost, parts[0].data, parts[1]
        if not all(np.isfinite(some).all() for some in numbers):
            raise SolverFailed("a cone program with coefficients beyond floats was not handed to Clarabel")
        answer = clarabel.DefaultSolver(
            sparse.csc_array(program.quadratic), program.cost, *parts, kinds, settings
        ).solve()
        x, multipliers = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
            raise SolverFailed(f"Clarabel ended with the status {answer.status} and no answer to read")
        slack, below = np.array(answer.s), equations + inequalities
        return ConicSolution(
            x,
            -multipliers[:equations],
            slack[below:].reshape(-1, 3),
            multipliers[below:].reshape(-1, 3),
            str(answer.status),
            int(answer.iterations),
        )
