"""Inverse problem: the smallest epsilon for a given loss.

The least loss does not rise with epsilon, since a randomizer that keeps a budget keeps every larger one. So a lower
bound at `low` and a mechanism at `high` enclose the smallest epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

from optrand.base._validation import check_real, expect, suggest_parameters
from optrand.certificates._bound import lower_bound
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem
from optrand.solvers import solve

SMALLEST, LARGEST = 1e-6, 40.0
"""Range of the search, in epsilon."""


@dataclass(frozen=True, eq=False)
class EpsilonBracket:
    """Proven bracket of the smallest epsilon for a loss: above `low` and at most `high`, in exact arithmetic.

    Attributes
    ----------
    loss : float
        In the problem's own units. For classification the probability of an output that is not the label.
    low : float
        No randomizer with this epsilon, or less, reaches the loss.
    mechanism : Mechanism
        A mechanism that reaches the loss, with epsilon `high`.
    excluded : Mechanism or None
        Its dual proves the claim about `low` (:func:`optrand.lower_bound`). None if the problem is infeasible at
        `low` (:func:`optrand.unbiased_range`).

    Raises
    ------
    NotCertified
        The proofs do not hold.
    """

    loss: float
    low: float
    mechanism: Mechanism
    excluded: Mechanism | None = field(repr=False)

    def __post_init__(self) -> None:
        target = _target(self.mechanism.problem, self.loss)
        if not _reaches(self.mechanism, target):
            raise NotCertified(f"the mechanism at epsilon {self.high!r} does not reach a loss of {self.loss:g}")
        # A dual proves something about its own problem alone: this must be the mechanism's, at the lower epsilon.
        question = _at(self.mechanism.problem, self.low)
        if self.excluded is None:
            proven = question is None
        else:
            proven = self.excluded.problem == question and _excludes(self.excluded, target)
        if not proven:
            raise NotCertified(f"nothing proves that a loss of {self.loss:g} is out of reach at epsilon {self.low!r}")

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
        Its epsilon plays no part.
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
        A loss that epsilon 1e-6 reaches already.
    NotCertified
        Between two epsilons further apart than `tolerance` nothing could be proven.

    Notes
    -----
    Bisection over certified solves: some 25 for the default tolerance, each of about 0.05 s at 53 labels on the line.

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
    target = _target(problem, goal)
    low, high = _try(problem, target, SMALLEST), _try(problem, target, LARGEST)
    if low.reached:
        raise InvalidInput(
            f"a loss of {goal:g} is reached at epsilon {SMALLEST:g}, the smallest that is tried: ask for a smaller loss"
        )
    if high.reached is False:
        raise Infeasible(
            f"a loss of {goal:g} is out of reach at epsilon {LARGEST:g}, the largest that is tried: ask for a larger "
            "loss, or allow other outputs"
        )
    # An end may be unproven: later trials replace it.
    while high.epsilon - low.epsilon > width:
        trial = _try_between(problem, target, low.epsilon, high.epsilon)
        low, high = (low, trial) if trial.reached else (trial, high)
    if low.reached is None or high.reached is None or high.mechanism is None:
        raise _unproven(low.epsilon, high.epsilon)
    return EpsilonBracket(goal, low.epsilon, high.mechanism, low.mechanism)


def _target(problem: Problem, loss: float) -> Fraction:
    """Return the loss as a value of the minimisation, in which an output that is the label counts -1."""
    return Fraction(loss) - (1 if problem.sign < 0 else 0)


def _at(problem: Problem, epsilon: float) -> Problem | None:
    """Return the problem at another epsilon, or None if no randomizer meets its constraints there."""
    try:
        return replace(problem, epsilon=epsilon)
    except Infeasible:
        return None


def _reaches(mechanism: Mechanism, target: Fraction) -> bool:
    proof = mechanism.certificate
    # What the mechanism is proven to cost, in the minimisation. Floats are rationals, so the comparison is exact.
    cost = -proof.lower if proof.maximised else proof.upper
    return math.isfinite(cost) and Fraction(cost) <= target


def _excludes(mechanism: Mechanism, target: Fraction) -> bool:
    if mechanism.dual is None:
        return False
    bound = lower_bound(mechanism.problem, mechanism.dual)
    return math.isfinite(bound) and Fraction(bound) > target


@dataclass(frozen=True, eq=False)
class _Trial:
    """Outcome at one epsilon: the loss is reached, or proven to be out of reach, or neither (None).

    The mechanism is the proof. It is None if the problem is infeasible.
    """

    epsilon: float
    reached: bool | None = None
    mechanism: Mechanism | None = None


def _try(problem: Problem, target: Fraction, epsilon: float) -> _Trial:
    """Solve at one epsilon and classify the outcome."""
    question = _at(problem, epsilon)
    if question is None:
        return _Trial(epsilon, False)
    try:
        mechanism = solve(question)
        if _excludes(mechanism, target):
            return _Trial(epsilon, False, mechanism)
        return _Trial(epsilon, True if _reaches(mechanism, target) else None, mechanism)
    except NotCertified:
        return _Trial(epsilon)


def _try_between(problem: Problem, target: Fraction, low: float, high: float) -> _Trial:
    """Return a trial with an outcome: at the middle, else ever nearer to the two ends.

    The middle of a range that is wider than a factor of 2 is the geometric one.
    """
    for part in (0.5, 0.25, 0.75, 0.125, 0.875, 0.0625, 0.9375, 0.03125, 0.96875):
        middle = low * (high / low) ** part if high > 2 * low else low + part * (high - low)
        trial = _try(problem, target, middle)
        if trial.reached is not None:
            return trial
    raise _unproven(low, high)


def _unproven(low: float, high: float) -> NotCertified:
    return NotCertified(
        f"between epsilon {low:.9g} and {high:.9g} the solver's answers neither reach the loss nor prove that it is "
        "out of reach: ask for another loss, or a larger tolerance"
    )
