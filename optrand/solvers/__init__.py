"""Algorithms and their options: frozen records, called on a problem.

`ClosedForm`, `BinPath`, `ReducedDual`, `GridDual` and `ColumnGeneration`.
:func:`~optrand.solvers.solve` picks one by the rule that :func:`~optrand.solvers.choose` documents.
:func:`~optrand.solvers.rr_on_bins` states a problem without a bias penalty and solves it. `WorstPrior` looks
for a worst prior as well.
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.solvers._bins import BinPath, rr_on_bins
from optrand.solvers._dispatch import ClosedForm, choose, design, solve
from optrand.solvers._interface import Solver
from optrand.solvers._minimax import WorstPrior
from optrand.solvers.grid._column_generation import ColumnGeneration
from optrand.solvers.grid._dual import GridDual
from optrand.solvers.reduced_dual._solver import ReducedDual

__all__ = [
    "BinPath",
    "ClosedForm",
    "ColumnGeneration",
    "GridDual",
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
