"""Problems with an unknown: the smallest epsilon for a given loss, and the worst prior.

The least loss does not rise with epsilon, since a randomizer that keeps a budget keeps every larger one. So a lower
bound at `low` and a mechanism at `high` enclose the smallest epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._validation import check_labels, check_real, expect, suggest_parameters
from optrand.certificates._bound import lower_bound
from optrand.errors import Infeasible, InvalidInput, NotCertified, SolverFailed
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import Grid, OutputSet, Problem, as_output_set, regression
from optrand.solvers import solve
from optrand.solvers._dispatch import check_useful
from optrand.solvers._interface import near_zero
from optrand.solvers._minimax import WorstPrior

SMALLEST, LARGEST = 1e-6, 40.0
"""Range of the search, in epsilon."""


@dataclass(frozen=True, eq=False)
class EpsilonBracket:
    """Proven bracket of the smallest epsilon for a loss, above `low` and at most `high`, in exact arithmetic.

    Attributes
    ----------
    loss : float
        In the problem's own units. For classification the probability of an output that is not the label.
    low : float
        No randomizer with this epsilon, or a smaller one, reaches the loss.
    mechanism : Mechanism
        A mechanism that reaches the loss, with epsilon `high`.
    excluded : Mechanism or None
        Its dual proves the claim about `low` (:func:`optrand.lower_bound`). None if the problem is infeasible at
        `low` (:func:`optrand.unbiased_range`).
    """

    loss: float
    low: float
    mechanism: Mechanism
    excluded: Mechanism | None = field(repr=False)

    @property
    def high(self) -> float:
        """Epsilon of the mechanism."""
        return self.mechanism.epsilon


@suggest_parameters
def smallest_epsilon(problem: Problem, *, loss: float, tolerance: float = 1e-6) -> EpsilonBracket:
    """Find the smallest epsilon at which the optimal value of a problem is at most `loss`.

    Parameters
    ----------
    problem : Problem
        Its epsilon is ignored.
    loss : float
        In the units of the problem's loss. For classification the probability of an output that is not the label, which
        is one minus the value of the problem.
    tolerance : float
        Largest distance between the ends of the bracket, in nats.

    Raises
    ------
    Infeasible
        No epsilon up to 40 reaches the loss. For instance, it is below 0, or below the loss of the grid without
        privacy.
    InvalidInput
        Epsilon 1e-6 already reaches the loss.
    NotCertified
        Nothing could be proven between two epsilons further apart than `tolerance`.

    Notes
    -----
    Bisection takes about 25 certified solves for the default tolerance, of 0.05 s each at 53 labels on the line.

    Examples
    --------
    The least epsilon of three labels for a mean squared error of 1:

    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> bracket = smallest_epsilon(problem, loss=0.5)
    >>> print(f"above {bracket.low:.6f}, at most {bracket.high:.6f}")
    above 1.831616, at most 1.831617
    >>> optrand.certify(bracket.mechanism).upper <= 0.5 < optrand.certify(
    ...     bracket.excluded
    ... ).lower
    True
    """
    expect(problem, Problem, "problem", "one of optrand.regression, unbiased_regression or classification")
    goal, width = check_real(loss, "loss"), check_real(tolerance, "tolerance")
    # Proofs in floats do not distinguish epsilons that are closer.
    if width < 1e-12:
        raise InvalidInput(f"tolerance is {width}, expected at least 1e-12 nats")
    # As a value of the minimisation, in which an output that is the label counts -1.
    target = Fraction(goal) - (1 if problem.sign < 0 else 0)
    low, high = _try(problem, target, SMALLEST), _try(problem, target, LARGEST)
    if low.reached:
        raise InvalidInput(
            f"a loss of {goal:g} is reached at epsilon {SMALLEST:g}, the smallest that is tried: pass a smaller loss"
        )
    if high.reached is False:
        raise Infeasible(
            f"a loss of {goal:g} is out of reach at epsilon {LARGEST:g}, the largest that is tried: pass a larger "
            "loss, or allow other outputs"
        )
    while high.epsilon - low.epsilon > width:
        far = high.epsilon > 2 * low.epsilon
        middle = math.sqrt(low.epsilon * high.epsilon) if far else (low.epsilon + high.epsilon) / 2
        trial = _try(problem, target, middle)
        # Below an epsilon at which nothing can be proven the search goes on.
        low, high = (trial, high) if trial.reached is False else (low, trial)
    if low.reached is None or high.mechanism is None or not high.reached:
        raise NotCertified(
            f"between epsilon {low.epsilon:.9g} and {high.epsilon:.9g} the solver's answers neither reach the loss nor "
            "prove that it is out of reach: pass another loss, or a larger tolerance"
        )
    return EpsilonBracket(goal, low.epsilon, high.mechanism, low.mechanism)


class _Trial(NamedTuple):
    """Whether the loss is reached at an epsilon, None if unproven, and its proof, a mechanism unless infeasible."""

    epsilon: float
    reached: bool | None = None
    mechanism: Mechanism | None = None


def _try(problem: Problem, target: Fraction, epsilon: float) -> _Trial:
    try:
        mechanism = solve(replace(problem, epsilon=epsilon))
    except Infeasible:
        return _Trial(epsilon, False)
    except NotCertified:
        return _Trial(epsilon)
    # Floats are rationals, so that these comparisons are exact.
    if mechanism.dual is not None and lower_bound(mechanism.problem, mechanism.dual) > target:
        return _Trial(epsilon, False, mechanism)
    proof = mechanism.certificate
    cost = -proof.lower if proof.maximised else proof.upper
    return _Trial(epsilon, True if cost <= target else None, mechanism)


@suggest_parameters
def minimax(
    labels: ArrayLike, epsilon: float, *, bias_penalty: float = math.inf, outputs: OutputSet | None = None
) -> Mechanism:
    r"""Find the mechanism with the least largest loss over labels, for unknown priors.

    .. math:: \min_M \max_y \Big( \tfrac12 E[(v - y)^2] + \tfrac{\lambda}{2} (E[v] - y)^2 \Big), \qquad v \sim M(y)

    The value is also :math:`\max_p \min_M` of the average loss, so a worst prior proves it (``docs/mathematics.md``,
    Corollary 4).

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
        Its problem has the worst prior that was found, often with zeros at labels whose loss is below the largest.
        ``certify(mechanism, worst_case=True)`` bounds the largest loss over labels, which is half the variance of the
        output, or half its squared error and the penalty.

    Raises
    ------
    InvalidInput
        Outputs on a grid, or a bias penalty of 0.
    Infeasible
        The interval admits no unbiased epsilon-DP randomizer.
    NotCertified
        The answer is not feasible, or no useful bound was found.

    Notes
    -----
    The solver is :class:`optrand.solvers.WorstPrior`. Neither randomizer nor prior need be unique. 53 labels take a
    tenth of a second, and 401 labels tenths of a second to a few seconds.

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
        raise InvalidInput("minimax has outputs on the line or an interval, not a grid: pass Interval(low, high)")
    # A placeholder for the prior that the solver finds.
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
    # The solver minimised the largest loss, which the certificate of the average does not bound from above.
    check_useful(mechanism, mechanism.certify(worst_case=True))
    return mechanism
