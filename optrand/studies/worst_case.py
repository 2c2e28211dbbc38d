r"""Randomizers for labels of which no prior is known: the largest loss over labels as small as it can be.

.. math:: \min_M \max_y \Big( \tfrac12 E[(v - y)^2] + \tfrac{\lambda}{2} (E[v] - y)^2 \Big), \qquad v \sim M(y)

over epsilon-DP randomizers, unbiased where :math:`\lambda` is infinite: then the loss of a label is half the variance
of its output. The largest loss over labels is the largest average over priors, and both sides are convex, so the value
is also :math:`\max_p \min_M`: some worst prior, which the solver finds along with the randomizer, proves that no other
randomizer does better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats
from optrand.base.validation import labels as checked_labels
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput, NotCertified, SolverFailed
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.tabulation import tabulate
from optrand.model.outputs import Grid, OutputSet, as_output_set
from optrand.model.problem import regression
from optrand.model.solution import Solution
from optrand.solvers.dispatch import accepted, solve
from optrand.solvers.flow.minimax_solver import MinimaxFlow
from optrand.solvers.translation import near_zero

__all__ = ["Minimax", "minimax"]


@dataclass(frozen=True, eq=False)
class Minimax(Solution):
    """A claim: no epsilon-DP randomizer has a smaller largest loss over labels, and this prior shows why.

    Attributes
    ----------
    problem : Problem
        With the worst prior that was found.
    randomizer : Randomizer
    dual : Dual
        Multipliers of the bound.
    stats : Stats
    """

    @property
    def prior(self) -> Floats:
        """The worst prior, often with zeros: at labels whose loss stays below the largest."""
        return self.problem.prior

    @cached_property
    def losses(self) -> Floats:
        """Loss of each label; half the variance of its output where no bias is allowed."""
        return self.randomizer.losses(bias_penalty=self.problem.bias_penalty)

    @cached_property
    def certificate(self) -> Certificate:
        """Certificate of the randomizer, ``certify(self, worst_case=True)``."""
        return certify(self, worst_case=True)

    @property
    def lower(self) -> float:
        """Lower bound on the largest loss of any randomizer, proven at the worst prior."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """The largest loss over labels; infinite if the randomizer is not feasible."""
        return self.certificate.upper

    @property
    def solution(self) -> Solution:
        """The answer itself."""
        return self

    def tabulate(self) -> Mechanism:
        """The exact mechanism; ``certify(mechanism, worst_case=True)`` states what is proven of it."""
        return tabulate(self)


def minimax(
    labels: ArrayLike, epsilon: float, *, bias_penalty: float = math.inf, outputs: OutputSet | None = None
) -> Minimax:
    """The epsilon-DP randomizer whose largest loss over labels is least: for when no prior is known.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.
    bias_penalty : float
        What half a squared bias costs; by default no bias is allowed. Above 0.
    outputs : Line or Interval, optional
        Where outputs may lie; by default the line.

    Returns
    -------
    Minimax
        Its loss is half the variance of the output, or half its squared error and the penalty.

    Raises
    ------
    InvalidInput
        Outputs on a grid, or bias without a price.
    Infeasible
        An interval in which there is no unbiased epsilon-DP randomizer.
    NotCertified
        If the answer is not feasible, or no useful bound was found.

    Notes
    -----
    The largest loss is the largest average over priors; it is convex in the randomizer and linear in the prior, so the
    least largest loss is the largest of the best averages, which is what the cone program of
    :mod:`optrand.solvers.flow.minimax_program` computes. Neither side need be unique. At 53 labels a tenth of a second.

    Examples
    --------
    Three labels, no prior: the middle one weighs as much as both ends.

    >>> import optrand
    >>> answer = optrand.minimax([0, 1, 2], epsilon=1.0)
    >>> mechanism = answer.tabulate()
    >>> proof = optrand.certify(mechanism, worst_case=True).require(gap=1e-12)
    >>> round(proof.upper, 6), answer.prior.round(6).tolist()
    (1.966347, [0.25, 0.5, 0.25])
    """
    array = np.sort(checked_labels(labels))
    allowed = as_output_set(outputs)
    if isinstance(allowed, Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: pass Interval(low, high)")
    problem = regression(
        array, np.full(array.size, 1 / array.size), epsilon, bias_penalty=bias_penalty, outputs=allowed
    )
    if not problem.bias_penalty:
        raise InvalidInput("bias_penalty is 0, expected a number above 0 or math.inf")
    try:
        found = solve(problem) if problem.k == 1 else near_zero(problem, MinimaxFlow())
    except SolverFailed as error:
        raise NotCertified(f"no solution: {error}") from error
    answer = Minimax(found.problem, found.randomizer, found.dual, found.stats)
    return accepted(answer, answer.certificate)
