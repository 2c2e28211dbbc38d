"""HiGHS through its own interface (highspy)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.errors import SolverFailed
from optrand.solvers.backends.linear import LP, LPSolution

__all__ = ["Highs"]


@dataclass(frozen=True)
class Highs:
    """HiGHS, the default backend.

    Attributes
    ----------
    method : str
        HiGHS's own word: ``"choose"``, ``"simplex"`` or ``"ipm"``.
    tolerance : float
        Primal and dual feasibility tolerance, relative to the scaled program; HiGHS takes 1e-10 at the least.
    time_limit : float
        Seconds.
    """

    method: str = "choose"
    tolerance: float = 1e-10
    time_limit: float = 3600.0

    def solve(self, lp: LP) -> LPSolution:
        """Answer `lp`; HiGHS's row duals already are derivatives of a minimum by the right-hand side."""
        import highspy

        rows = sparse.csc_array(sparse.vstack((lp.equal, lp.less)))
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = rows.shape[1], rows.shape[0]
        model.col_cost_ = lp.cost
        model.col_lower_, model.col_upper_ = np.zeros(rows.shape[1]), np.full(rows.shape[1], np.inf)
        model.row_lower_ = np.concatenate((lp.equal_to, np.full(lp.less_than.size, -np.inf)))
        model.row_upper_ = np.concatenate((lp.equal_to, lp.less_than))
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = rows.indptr, rows.indices
        model.a_matrix_.value_ = rows.data
        engine = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("solver", self.method),
            ("primal_feasibility_tolerance", self.tolerance),
            ("dual_feasibility_tolerance", self.tolerance),
            ("time_limit", self.time_limit),
        ):
            engine.setOptionValue(option, value)
        engine.passModel(model)
        engine.run()
        status = engine.modelStatusToString(engine.getModelStatus())
        answer = engine.getSolution()
        if not answer.value_valid or not answer.dual_valid:
            raise SolverFailed(f"HiGHS ended with the status {status!r} and no answer to read")
        duals = np.array(answer.row_dual)
        split = lp.equal_to.size
        info = engine.getInfo()
        iterations = max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0)
        return LPSolution(np.array(answer.col_value), duals[:split], duals[split:], status, iterations)
