"""Problems whose answer is a formula: classification, and a single label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optrand.closed_forms import rr_with_prior
from optrand.errors import Infeasible
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.solvers.failures import GuardedSolver

__all__ = ["ClosedForm"]


@dataclass(frozen=True)
class ClosedForm(GuardedSolver):
    """RRWithPrior for classification; for one label with outputs on the line, its best output.

    Examples
    --------
    >>> import optrand
    >>> solution = ClosedForm()(optrand.classification([0.5, 0.3, 0.2], 1.0))
    >>> optrand.certify(solution).gap < 1e-12
    True
    """

    refusal = "ClosedForm() takes classification, or one label with outputs that are not a grid"

    def accepts(self, problem: Problem) -> bool:
        """Classification over the labels themselves, or one label with outputs that are not a grid."""
        if problem.loss == losses.zero_one:
            return isinstance(problem.outputs, Grid) and np.array_equal(problem.outputs.values, problem.labels)
        return problem.k == 1 and not isinstance(problem.outputs, Grid)

    def _solution(self, problem: Problem) -> Solution:
        if problem.loss == losses.zero_one:
            found = rr_with_prior(problem.prior, problem.epsilon)
            outputs = problem.labels[found.randomizer.outputs.astype(np.intp)]
            randomizer = Randomizer(problem.labels, outputs, found.randomizer.matrix, problem.epsilon)
            dual = found.dual
        else:
            randomizer, dual = _one_label(problem)
        return Solution(problem, randomizer, dual, Stats(repr(self)))


def _one_label(problem: Problem) -> tuple[Randomizer, Dual]:
    """The allowed output nearest to the label; ``alpha`` is what it costs, and ``beta`` pulls towards it."""
    label = float(problem.labels[0])
    output = float(np.clip(label, problem.outputs.low, problem.outputs.high))
    if problem.loss.positive_outputs and output <= 0:
        raise Infeasible("the label 0 alone has no best output above 0 under Poisson log loss: pass outputs=")
    randomizer = Randomizer(problem.labels, [output], [[1.0]], problem.epsilon)
    beta = 0.0 if problem.unbiased else -problem.bias_penalty * float(problem.prior[0]) * (output - label)
    cost = float(problem.prior[0]) * float(problem.loss_table(randomizer.outputs)[0, 0]) - beta * output
    return randomizer, Dual(np.array([cost]), np.array([beta]))
