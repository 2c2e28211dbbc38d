"""Algorithms and their options: frozen records, called on a problem.

`ClosedForm`, `BinPath`, `Flow`, `LinearProgram` and `ColumnGeneration`; :func:`~optrand.solvers.dispatch.solve` picks
one by the rule that :func:`~optrand.solvers.dispatch.choose` documents. :func:`~optrand.solvers.bin_path.rr_on_bins`
states a problem without care for bias and solves it; `MinimaxFlow` looks for a worst prior as well.
"""

from optrand.solvers import backends
from optrand.solvers.bin_path import BinPath, rr_on_bins
from optrand.solvers.closed_form import ClosedForm
from optrand.solvers.column_generation import ColumnGeneration
from optrand.solvers.dispatch import Solver, choose, solve
from optrand.solvers.flow import Flow
from optrand.solvers.linear_program import LinearProgram
from optrand.solvers.minimax import MinimaxFlow

__all__ = [
    "BinPath",
    "ClosedForm",
    "ColumnGeneration",
    "Flow",
    "LinearProgram",
    "MinimaxFlow",
    "Solver",
    "backends",
    "choose",
    "rr_on_bins",
    "solve",
]
