"""Clarabel through its own interface: the interior-point engine of the cone programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.errors import SolverFailed
from optrand.programs.conic import ConicProgram, ConicSolution

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

        arcs, variables = program.arcs, program.cost.size
        one = sparse.eye_array(arcs, format="csr")
        # s = -A x must lie in the cone: (c + q, 2 m, c - q), interleaved so that each cone's three rows are neighbours.
        tall = sparse.vstack(
            (
                sparse.hstack((one, sparse.csr_array((arcs, arcs)), one)),
                sparse.hstack((sparse.csr_array((arcs, arcs)), 2 * one, sparse.csr_array((arcs, arcs)))),
                sparse.hstack((one, sparse.csr_array((arcs, arcs)), -one)),
            )
        )
        order = np.arange(3 * arcs).reshape(3, arcs).T.ravel()
        cones = sparse.hstack((-sparse.csr_array(tall)[order], sparse.csr_array((3 * arcs, variables - 3 * arcs))))
        rows = sparse.csc_array(sparse.vstack((program.equal, program.less, cones)))
        below = program.less_than.size
        right = np.concatenate((program.equal_to, program.less_than, np.zeros(3 * arcs)))
        kinds = [clarabel.ZeroConeT(program.equal_to.size)]
        if below:
            kinds.append(clarabel.NonnegativeConeT(below))
        kinds += [clarabel.SecondOrderConeT(3)] * arcs
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tolerance
        settings.time_limit = self.time_limit
        settings.max_iter = 300
        answer = clarabel.DefaultSolver(
            sparse.csc_array(program.quadratic), program.cost, rows, right, kinds, settings
        ).solve()
        x, multipliers = np.array(answer.x), np.array(answer.z)
        if not (np.isfinite(x).all() and np.isfinite(multipliers).all()):
            raise SolverFailed(f"Clarabel ended with the status {answer.status} and no answer to read")
        return ConicSolution(x, -multipliers[: program.equal_to.size], str(answer.status), int(answer.iterations))
