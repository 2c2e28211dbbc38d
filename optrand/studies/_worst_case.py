r"""Randomizers for labels without a known prior, with the least largest loss over labels.

.. math:: \min_M \max_y \Big( \tfrac12 E[(v - y)^2] + \tfrac{\lambda}{2} (E[v] - y)^2 \Big), \qquad v \sim M(y)

over epsilon-DP randomizers, unbiased if :math:`\lambda` is infinite. The value is also :math:`\max_p \min_M` of the
average loss, so a worst prior proves it (``docs/mathematics.md``, Corollary 4).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import check_labels, suggest_parameters
from optrand.errors import InvalidInput, NotCertified, SolverFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Grid, OutputSet, as_output_set, regression
from optrand.solvers._dispatch import check_useful, solve
from optrand.solvers._minimax import WorstPrior
from optrand.solvers._reductions import near_zero


@suggest_parameters
def minimax(
    labels: ArrayLike, epsilon: float, *, bias_penalty: float = math.inf, outputs: OutputSet | None = None
) -> Mechanism:
    """Find the mechanism whose largest loss over labels is least: for when no prior is known.

    Parameters
    ----------
    labels : (k,) array
        Distinct numbers in any order.
    epsilon : float
        Privacy budget in nats.
    bias_penalty : float
        Factor of half the squared bias, above 0. By default no bias is allowed.
    outputs : Line or Interval, optional
        By default the line.

    Returns
    -------
    Mechanism
        Its problem has the worst prior that was found, often with zeros, at labels whose loss stays below the largest.
        ``certify(mechanism, worst_case=True)`` bounds the largest loss over labels, which is half the variance of the
        output, or half its squared error and the penalty.

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
    Three labels. In the worst prior the middle one weighs as much as both ends.

    >>> import optrand
    >>> mechanism = optrand.studies.minimax([0, 1, 2], epsilon=1.0)
    >>> proof = optrand.certify(mechanism, worst_case=True).require(gap=1e-12)
    >>> round(proof.upper, 6), mechanism.prior.round(6).tolist()
    (1.966347, [0.25, 0.5, 0.25])
    """
    array = np.sort(check_labels(labels))
    allowed = as_output_set(outputs)
    if isinstance(allowed, Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: pass Interval(low, high)")
    # The prior stands for the one that the solver finds.
    problem = regression(
        array, np.full(array.size, 1 / array.size), epsilon, bias_penalty=bias_penalty, outputs=allowed
    )
    if not problem.bias_penalty:
        raise InvalidInput("bias_penalty is 0, expected a number above 0 or math.inf")
    # A single label has one prior.
    if problem.k == 1:
        return solve(problem)
    try:
        found = near_zero(problem, WorstPrior())
    except SolverFailed as error:
        raise NotCertified(f"no solution: {error}") from error
    mechanism = tabulate(found)
    # What was minimised is the largest loss, which the certificate of the average does not bound from above.
    check_useful(mechanism, mechanism.certify(worst_case=True))
    return mechanism
