"""The protocol of linear programming backends."""

from __future__ import annotations

from typing import Protocol

from optrand.solvers.backends.linear import LP, LPSolution

__all__ = ["Backend"]


class Backend(Protocol):
    """Solves linear programs; see :class:`~optrand.solvers.backends.linear.LPSolution` for the signs of multipliers."""

    def solve(self, lp: LP) -> LPSolution:
        """Answer `lp`, or raise :class:`~optrand.errors.SolverFailed` if there is no answer to read."""
        ...
