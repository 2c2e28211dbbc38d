"""Engines that solve a :class:`~optrand.solvers.backends.linear.LP`: one convention of signs, however they differ.

A backend is a frozen record of its options with one method, ``solve(lp) -> LPSolution``.
"""

from optrand.solvers.backends.base import Backend
from optrand.solvers.backends.cvxpy import Cvxpy
from optrand.solvers.backends.highs import Highs
from optrand.solvers.backends.scipy import Scipy

__all__ = ["Backend", "Cvxpy", "Highs", "Scipy"]
