"""Algorithms and their options: frozen records, called on a problem.

`ClosedForm`, `LinearProgram`, `ColumnGeneration` and `Flow`; :func:`~optrand.solvers.dispatch.solve` picks one by the
rule that :func:`~optrand.solvers.dispatch.choose` documents.
"""

from optrand.solvers import backends
from optrand.solvers.closed_form import ClosedForm
from optrand.solvers.column_generation import ColumnGeneration
from optrand.solvers.dispatch import Solver, choose, solve
from optrand.solvers.flow import Flow
from optrand.solvers.linear_program import LinearProgram

__all__ = [
    "ClosedForm",
    "ColumnGeneration",
    "Flow",
    "LinearProgram",
    "Solver",
    "backends",
    "choose",
    "solve",
]
