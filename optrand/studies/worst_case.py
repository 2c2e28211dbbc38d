r"""Randomizers for labels without a known prior, with the least largest loss over labels.

.. math:: \min_M \max_y \Big( \tfrac12 E[(v - y)^2] + \tfrac{\lambda}{2} (E[v] - y)^2 \Big), \qquad v \sim M(y)

over epsilon-DP randomizers, unbiased where :math:`\lambda` is infinite. The value is also :math:`\max_p \min_M` of the
average loss, so a worst prior proves it (``docs/mathematics.md``, Corollary 4).
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
from optrand.solvers.translation import near_zero
from optrand.solvers.worst_prior.solver import WorstPrior

__all__ = ["Minimax", "minimax"]


@dataclass(frozen=True, eq=False)
class Minimax(Solution):
    """Minimax randomizer: a solution under the worst prior that proves it.

    Attributes
    ----------
    problem : Problem
        Under the worst prior that was found.
    randomizer : Randomizer
    dual : Dual
    stats : Stats
    """

    def __repr__(self) -> str:
        """One line, without table and prior."""
        size = f"{self.problem.k} labels, {self.randomizer.n} outputs, epsilon {self.problem.epsilon:g}"
        return f"<Minimax: {size}, largest loss {self.losses.max():.7g}>"

    @property
    def prior(self) -> Floats:
        """Worst prior, often with zeros: at labels whose loss stays below the largest."""
        return self.problem.prior

    @cached_property
    def losses(self) -> Floats:
        """Loss of each label; half the variance of its output where no bias is allowed."""
        return self.randomizer.losses(bias_penalty=self.problem.bias_penalty)

    @cached_property
    def certificate(self) -> Certificate:
        """Certificate of the largest loss, ``certify(self, worst_case=True)``."""
        return certify(self, worst_case=True)

    @property
    def lower(self) -> float:
        """Lower bound on the largest loss of any randomizer, proven at the worst prior."""
        return self.certificate.lower

    @property
    def upper(self) -> float:
        """Largest loss over labels; infinite if the randomizer is not feasible."""
        return self.certificate.upper

    @property
    def solution(self) -> Solution:
        """The answer itself."""
        return self

    def tabulate(self) -> Mechanism:
        """Exact mechanism, to be certified by ``certify(mechanism, worst_case=True)``."""
        return tabulate(self)


def minimax(
    labels: ArrayLike, epsilon: float, *, bias_penalty: float = math.inf, outputs: OutputSet | None = None
) -> Minimax:
    """Epsilon-DP randomizer whose largest loss over labels is least: for when no prior is known.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.
    bias_penalty : float
        Factor of half the squared bias, above 0; by default no bias is allowed.
    outputs : Line or Interval, optional
        By default the line.

    Returns
    -------
    Minimax
        Its loss is half the variance of the output, or half its squared error and the penalty.

    Raises
    ------
    InvalidInput
        Outputs on a grid, or a bias penalty of 0.
    Infeasible
        An interval in which there is no unbiased epsilon-DP randomizer.
    NotCertified
        The answer is not feasible, or no useful bound was found.

    Notes
    -----
    By :class:`optrand.solvers.WorstPrior`. Neither the randomizer nor the prior need be unique. At 53 labels it takes a
    tenth of a second, at 401 from some tenths to some seconds.

    Examples
    --------
    Three labels; in the worst prior the middle one weighs as much as both ends.

    >>> import optrand
    >>> answer = optrand.studies.minimax([0, 1, 2], epsilon=1.0)
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
        found = solve(problem) if problem.k == 1 else near_zero(problem, WorstPrior())
    except SolverFailed as error:
        raise NotCertified(f"no solution: {error}") from error
    answer = Minimax(found.problem, found.randomizer, found.dual, found.stats)
    return accepted(answer, answer.certificate)
