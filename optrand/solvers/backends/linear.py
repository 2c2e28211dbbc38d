"""A linear program and its answer, with one written convention for the signs of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.programs.backends import Backend, Form

__all__ = ["LP", "LPSolution", "solve_linear"]


@dataclass(frozen=True, eq=False)
class LP:
    """``minimise cost @ x`` subject to ``equal @ x == equal_to``, ``less @ x <= less_than`` and ``x >= 0``."""

    cost: Floats
    equal: sparse.csr_array
    equal_to: Floats
    less: sparse.csr_array
    less_than: Floats

    @property
    def rows(self) -> int:
        """The number of constraints, signs of variables apart."""
        return int(self.equal_to.size + self.less_than.size)


@dataclass(frozen=True, eq=False)
class LPSolution:
    """Answer of a backend to a linear program.

    Attributes
    ----------
    x : (variables,) array
    equal_dual, less_dual : arrays
        One multiplier a constraint: *the derivative of the optimal cost by the right-hand side*. Those of ``<=`` rows
        are therefore at most 0, and ``cost - equal.T @ equal_dual - less.T @ less_dual >= 0``, whatever sign the
        backend uses.
    status : str
        The backend's own word; information, not proof.
    iterations : int
    """

    x: Floats
    equal_dual: Floats
    less_dual: Floats
    status: str
    iterations: int

    def value(self, lp: LP) -> float:
        """Compute the cost of `x`, instead of taking it from the backend."""
        return float(np.dot(lp.cost, self.x))


def solve_linear(lp: LP, backend: Backend) -> LPSolution:
    """Solve a linear program.

    Raises
    ------
    SolverFailed
        The backend has no answer, or one without multipliers.
    """
    none = np.full(lp.less_than.size, -np.inf)
    form = Form(
        lp.cost,
        sparse.csr_array(sparse.vstack((lp.equal, lp.less))),
        np.concatenate((lp.equal_to, none)),
        np.concatenate((lp.equal_to, lp.less_than)),
        np.full(lp.cost.size, np.inf),
    )
    found = backend.run(form)
    if not found.x.size or not found.multipliers.size:
        raise SolverFailed(f"{backend.name} ended with the status {found.message!r} and no answer to read")
    split = lp.equal_to.size
    duals = found.multipliers
    return LPSolution(found.x, duals[:split], duals[split:], found.message, found.iterations)
