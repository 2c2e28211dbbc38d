"""Algorithms and their options: frozen records, called on a problem.

`ClosedForm`, `BinPath`, `ReducedDual`, `GridDual`, `LinearProgram` and `ColumnGeneration`;
:func:`~optrand.solvers.dispatch.solve` picks one by the rule that :func:`~optrand.solvers.dispatch.choose` documents.
:func:`~optrand.solvers.bins.path.rr_on_bins` states a problem without a bias penalty and solves it; `WorstPrior` looks
for a worst prior as well.
"""

from typing import TYPE_CHECKING

from optrand.base.suggestions import public_names
from optrand.solvers.bins.path import BinPath, rr_on_bins
from optrand.solvers.closed_form import ClosedForm
from optrand.solvers.dispatch import Solver, choose, design, solve
from optrand.solvers.grid.column_generation import ColumnGeneration
from optrand.solvers.grid.dual import GridDual
from optrand.solvers.grid.linear_program import LinearProgram
from optrand.solvers.minimax import WorstPrior
from optrand.solvers.reduced_dual.solver import ReducedDual

__all__ = [
    "BinPath",
    "ClosedForm",
    "ColumnGeneration",
    "GridDual",
    "LinearProgram",
    "ReducedDual",
    "Solver",
    "WorstPrior",
    "choose",
    "design",
    "rr_on_bins",
    "solve",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
