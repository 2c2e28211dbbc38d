"""HiGHS as scipy ships it: another build of the engine, behind another interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optrand.errors import SolverFailed
from optrand.solvers.backends.linear import LP, LPSolution

__all__ = ["Scipy"]


@dataclass(frozen=True)
class Scipy:
    """``scipy.optimize.linprog``.

    Attributes
    ----------
    method : str
        ``"highs"``, ``"highs-ds"`` or ``"highs-ipm"``.
    time_limit : float
        Seconds.
    """

    method: Literal["highs", "highs-ds", "highs-ipm"] = "highs"
    time_limit: float = 3600.0

    def solve(self, lp: LP) -> LPSolution:
        """Answer `lp`; scipy's marginals are derivatives of the minimum by the right-hand side."""
        from scipy.optimize import linprog

        answer = linprog(  # type: ignore[call-overload,misc]  # the stubs know no None beside a sparse matrix
            lp.cost,
            A_ub=lp.less if lp.less_than.size else None,
            b_ub=lp.less_than if lp.less_than.size else None,
            A_eq=lp.equal if lp.equal_to.size else None,
            b_eq=lp.equal_to if lp.equal_to.size else None,
            bounds=(0, None),
            method=self.method,
            options={
                "time_limit": self.time_limit,
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            },
        )
        if answer.x is None or answer.eqlin.marginals is None:
            raise SolverFailed(f"scipy ended without an answer to read: {answer.message}")
        return LPSolution(
            answer.x, answer.eqlin.marginals, answer.ineqlin.marginals, str(answer.message), int(answer.nit)
        )
