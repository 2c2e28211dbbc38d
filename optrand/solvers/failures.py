"""Failures of a solve, raised as `SolverFailed`: no error of a library, and none of arithmetic, leaves a solver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from optrand.errors import Infeasible, InvalidInput, OptrandError, SolverFailed

__all__ = ["solver_failures"]


@contextmanager
def solver_failures(solver: object) -> Iterator[None]:
    """Around the work on a problem that a solver accepts.

    A number that leaves the range of floats becomes an infinity or a NaN, in silence: of such an answer there is no
    proof, and where it reaches a randomizer or its multipliers these refuse it, which is no fault of the problem.

    Raises
    ------
    SolverFailed
        In the place of numpy's, scipy's or Python's errors of arithmetic and of shape, and of `InvalidInput`.

    Examples
    --------
    >>> import numpy as np
    >>> with solver_failures("Flow()"):
    ...     np.linalg.solve(np.zeros((2, 2)), np.ones(2))
    Traceback (most recent call last):
    optrand.errors.SolverFailed: Flow() gave up in floats: LinAlgError, Singular matrix
    """
    try:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            yield
    except Infeasible:
        raise
    except (InvalidInput, ArithmeticError, LookupError, RuntimeError, ValueError) as error:
        if isinstance(error, OptrandError) and not isinstance(error, InvalidInput):
            raise
        name = type(solver).__name__ + "()" if not isinstance(solver, str) else solver
        raise SolverFailed(f"{name} gave up in floats: {type(error).__name__}, {error}") from error
