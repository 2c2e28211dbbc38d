"""Solvers of linear programs behind one interface: HiGHS, and all solvers of cvxpy.

A backend is a frozen record of its options with one method, ``run(form) -> Result``. Forms are minimisations.
:meth:`.Program.solve` converts the signs and scales of a program.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from optrand.base._validation import Floats
from optrand.errors import InvalidInput
from optrand.programs._certificate import Status

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True, eq=False)
class Form:
    """``minimise cost @ x`` subject to ``low <= rows @ x <= high`` and ``0 <= x <= upper``."""

    cost: Floats
    rows: sparse.csr_array
    low: Floats
    high: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class Result:
    """Answer to a form. Multipliers are derivatives of the minimum by the right-hand sides. Arrays may be empty."""

    status: Status
    message: str
    x: Floats
    multipliers: Floats
    iterations: int


NOTHING: Floats = np.zeros(0)


class Backend(Protocol):
    """Solver of linear programs."""

    @property
    def name(self) -> str:
        """Name in answers."""
        ...

    def run(self, form: Form) -> Result:
        """Solve a form."""
        ...


@dataclass(frozen=True)
class Highs:
    """HiGHS through highspy.

    Attributes
    ----------
    method : str
        Option of HiGHS: ``"choose"``, ``"simplex"`` or ``"ipm"``.
    tolerance : float
        Primal and dual feasibility in the scaled program. HiGHS takes 1e-10 at the least.
    time_limit : float
        Seconds.
    """

    method: str = "choose"
    tolerance: float = 1e-10
    time_limit: float = math.inf

    @property
    def name(self) -> str:
        """Name in answers."""
        return "HiGHS" if self.method == "choose" else f"HiGHS {self.method}"

    def run(self, form: Form) -> Result:
        """Solve a form. HiGHS's row duals are derivatives of the minimum already."""
        return self.run_model(highs_model(form.rows, form.low, form.high, form.cost, form.upper))

    def run_model(self, model: highspy.Highs) -> Result:
        """Solve a model of HiGHS."""
        import highspy

        for option, value in (
            ("solver", self.method),
            ("primal_feasibility_tolerance", self.tolerance),
            ("dual_feasibility_tolerance", self.tolerance),
            ("time_limit", self.time_limit),
        ):
            if model.setOptionValue(option, value) != highspy.HighsStatus.kOk:
                raise InvalidInput(f"HiGHS does not take the {option} {value!r}")
        model.run()
        said, solution, info = model.getModelStatus(), model.getSolution(), model.getInfo()
        # Presolve may not decide which of the two it is. A program over distributions is never unbounded.
        statuses = {
            highspy.HighsModelStatus.kOptimal: Status.OPTIMAL,
            highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
            highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
            highspy.HighsModelStatus.kUnboundedOrInfeasible: Status.INFEASIBLE,
            highspy.HighsModelStatus.kTimeLimit: Status.LIMIT,
            highspy.HighsModelStatus.kIterationLimit: Status.LIMIT,
        }
        return Result(
            statuses.get(said, Status.FAILED),
            model.modelStatusToString(said),
            np.array(solution.col_value) if solution.value_valid else NOTHING,
            np.array(solution.row_dual) if solution.dual_valid else NOTHING,
            max(info.simplex_iteration_count, 0) + max(info.ipm_iteration_count, 0),
        )


@dataclass(frozen=True)
class Cvxpy:
    """Any installed solver of cvxpy, through cvxpy's own canonicalisation.

    Attributes
    ----------
    solver : str
        cvxpy's name for it, such as ``"CLARABEL"``, ``"ECOS"`` or ``"SCS"``.
    options : tuple of (str, value)
        Options passed to the solver.
    """

    solver: str = "CLARABEL"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name in answers."""
        return f"cvxpy {self.solver}"

    def run(self, form: Form) -> Result:
        """Solve a form. Cvxpy's dual values are minus the derivatives for rows ``==`` and ``<=``."""
        import cvxpy

        x = cvxpy.Variable(form.cost.size, nonneg=True)
        # No form here has a row with two different limits, which would be of another kind.
        kinds = form.low == form.high, ~np.isfinite(form.low), ~np.isfinite(form.high)
        equal, less, more = map(np.flatnonzero, kinds)
        # Rows with the sign of their dual value. Early versions of cvxpy take no rows that are empty.
        rows = []
        if equal.size:
            rows.append((equal, -1.0, form.rows[equal] @ x == form.low[equal]))
        if less.size:
            rows.append((less, -1.0, form.rows[less] @ x <= form.high[less]))
        if more.size:
            rows.append((more, 1.0, form.rows[more] @ x >= form.low[more]))
        constraints = [row for _, _, row in rows]
        bounded = np.flatnonzero(np.isfinite(form.upper))
        if bounded.size:
            constraints.append(x[bounded] <= form.upper[bounded])
        problem = cvxpy.Problem(cvxpy.Minimize(form.cost @ x), constraints)
        try:
            with warnings.catch_warnings():
                # An inaccurate solution is measured by its certificate.
                warnings.simplefilter("ignore")
                problem.solve(solver=self.solver, **dict(self.options))
        except cvxpy.SolverError as error:
            return Result(Status.FAILED, str(error).splitlines()[0], NOTHING, NOTHING, 0)
        statuses = {**{each.value: each for each in Status}, "user_limit": Status.LIMIT}
        status = statuses.get(problem.status.removesuffix("_inaccurate"), Status.FAILED)
        iterations = int(getattr(problem.solver_stats, "num_iters", None) or 0)
        if x.value is None:
            return Result(status, problem.status, NOTHING, NOTHING, iterations)
        multipliers = np.zeros(form.low.size)
        for places, sign, row in rows:
            multipliers[places] = sign * np.ravel(row.dual_value)
        return Result(status, problem.status, np.asarray(x.value), multipliers, iterations)


def find(backend: str | Backend) -> Backend:
    """Return the backend with a name, or check a backend object.

    Raises
    ------
    InvalidInput
        An unknown name, or a solver that is not installed.

    Examples
    --------
    >>> find("highs-ipm")
    Highs(method='ipm', tolerance=1e-10, time_limit=inf)
    """
    if not isinstance(backend, str):
        if not hasattr(backend, "run") or isinstance(backend, type):
            raise InvalidInput(
                f"backend is of type {type(backend).__name__}, expected a name or an object such as Highs()"
            )
        return backend
    ours: dict[str, Backend] = {"highs": Highs(), "highs-simplex": Highs("simplex"), "highs-ipm": Highs("ipm")}
    if backend.lower() in ours:
        return ours[backend.lower()]
    import cvxpy

    installed = cvxpy.installed_solvers()
    if backend.upper() in installed:
        return Cvxpy(backend.upper())
    known = ", ".join([*ours, *installed])
    raise InvalidInput(f"no backend is called {backend!r}: the ones that are installed are {known}")


def row_scales(rows: sparse.csr_array) -> Floats:
    """Return for each row the power of two, which changes no digit, that brings its largest entry near 1."""
    sizes = abs(rows).max(axis=1).toarray().ravel()
    scales: Floats = np.exp2(-np.round(np.log2(np.where(sizes > 0, sizes, 1.0))))
    return scales


def highs_model(
    rows: sparse.csr_array,
    low: Floats,
    high: Floats,
    cost: Floats,
    upper: Floats,
    *,
    lower: Floats | None = None,
    maximize: bool = False,
    names: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> highspy.Highs:
    """Make a model of HiGHS, silent, with names of rows and columns if they are given."""
    import highspy

    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = cost.size, low.size
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = np.zeros(cost.size) if lower is None else lower, upper
    program.row_lower_, program.row_upper_ = low, high
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = rows.indptr, rows.indices
    program.a_matrix_.value_ = rows.data
    program.sense_ = highspy.ObjSense.kMaximize if maximize else highspy.ObjSense.kMinimize
    program.row_names_, program.col_names_ = map(list, names)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.passModel(program)
    return model
