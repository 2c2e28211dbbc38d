"""cvxpy, an independent witness: its own canonicalisation, and by default its own interior-point engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optrand.errors import MissingExtra, SolverFailed
from optrand.solvers.backends.linear import LP, LPSolution

__all__ = ["Cvxpy"]


@dataclass(frozen=True)
class Cvxpy:
    """Any solver that cvxpy knows.

    Attributes
    ----------
    solver : str
        cvxpy's own name for it.
    time_limit : float
        Seconds; passed on to the solvers that take one.
    """

    solver: str = "CLARABEL"
    time_limit: float = 3600.0

    def solve(self, lp: LP) -> LPSolution:
        """Answer `lp`; cvxpy's multipliers are minus the derivatives by the right-hand side, for both kinds of row."""
        try:
            import cvxpy
        except ImportError as error:
            raise MissingExtra("backends.Cvxpy needs cvxpy: pip install 'optrand[cvxpy]'") from error
        x = cvxpy.Variable(lp.cost.size, nonneg=True)
        constraints = []
        if lp.equal_to.size:
            constraints.append(lp.equal @ x == lp.equal_to)
        if lp.less_than.size:
            constraints.append(lp.less @ x <= lp.less_than)
        problem = cvxpy.Problem(cvxpy.Minimize(lp.cost @ x), constraints)
        options = {"time_limit": self.time_limit} if self.solver in ("CLARABEL", "HIGHS") else {}
        try:
            problem.solve(solver=self.solver, **options)
        except cvxpy.SolverError as error:
            raise SolverFailed(f"cvxpy's {self.solver} ended without an answer to read") from error
        if x.value is None:
            raise SolverFailed(f"cvxpy's {self.solver} ended with the status {problem.status!r} and no answer to read")
        duals = [-np.atleast_1d(np.asarray(c.dual_value)) for c in constraints]
        equal = duals[0] if lp.equal_to.size else np.zeros(0)
        less = duals[-1] if lp.less_than.size else np.zeros(0)
        iterations = problem.solver_stats.num_iters or 0
        return LPSolution(np.asarray(x.value), equal, less, str(problem.status), int(iterations))
