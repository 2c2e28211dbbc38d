"""Inverse problem: the smallest epsilon for a given loss.

The least loss does not rise with epsilon, since a randomizer that keeps a budget keeps every larger one. So a lower
bound at `low` and a mechanism at `high` enclose the smallest epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

from optrand.base.validation import check_real
from optrand.certificates.certificate import lower_bound
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.model.problem import Problem
from optrand.solvers import solve

__all__ = ["LARGEST", "SMALLEST", "EpsilonBracket", "smallest_epsilon"]

SMALLEST, LARGEST = 1e-6, 40.0
"""Range of the search, in epsilon."""

MIN_TOLERANCE = 1e-12
"""Least distance of two epsilons that proofs in floats can distinguish."""


@dataclass(frozen=True, eq=False)
class EpsilonBracket:
    """Proven bracket of the smallest epsilon for a loss: above `low` and at most `high`, in exact arithmetic.

    Attributes
    ----------
    loss : float
        In the problem's own units; for classification the probability of an output that is not the label.
    low : float
        No randomizer with this epsilon, or less, reaches the loss.
    mechanism : Mechanism
        A mechanism that reaches the loss, with epsilon `high`.
    excluded : Solution or None
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
        """Verify both ends."""
        target = _target(self.mechanism.problem, self.loss)
        if not _reaches(self.mechanism, target):
            raise NotCertified(f"the mechanism at epsilon {self.high!r} does not reach a loss of {self.loss:g}")
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


def smallest_epsilon(problem: Problem, *, loss: float, tolerance: float = 1e-6) -> EpsilonBracket:
    """Find the smallest epsilon at which the optimal value of a problem is at most `loss`.

    Parameters
    ----------
    problem : Problem
        The search begins at its epsilon.
    loss : float
        In the units of the problem's loss; for classification the probability of an output that is not the label, which
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
    >>> optrand.certify(bracket.mechanism).upper <= 0.5 < optrand.certify(bracket.excluded).lower
    True
    """
    goal, width = check_real(loss, "loss"), check_real(tolerance, "tolerance")
    if width < MIN_TOLERANCE:
        raise InvalidInput(f"tolerance is {width}, expected at least {MIN_TOLERANCE:g} nats")
    target = _target(problem, goal)
    search = _Search(problem, target, width)
    low, high = search.bracket()
    while high.epsilon - low.epsilon > width:
        low, high = search.narrow(low, high)
    return EpsilonBracket(goal, low.epsilon, cast(Mechanism, high.mechanism), low.mechanism)


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

    The mechanism is the proof; it is None if the problem is infeasible.
    """

    epsilon: float
    reached: bool | None
    mechanism: Mechanism | None = None


@dataclass(frozen=True, eq=False)
class _Search:
    """Bisection for the least epsilon whose optimum is at most the target."""

    problem: Problem
    target: Fraction
    tolerance: float

    def ask(self, epsilon: float) -> _Trial:
        """Solve at one epsilon and classify the outcome."""
        question = _at(self.problem, epsilon)
        if question is None:
            return _Trial(epsilon, False)
        try:
            mechanism = solve(question)
            if _excludes(mechanism, self.target):
                return _Trial(epsilon, False, mechanism)
            return _Trial(epsilon, True if _reaches(mechanism, self.target) else None, mechanism)
        except NotCertified:
            return _Trial(epsilon, None)

    def bracket(self) -> tuple[_Trial, _Trial]:
        """Find a trial at which the loss is out of reach, and one at which it is reached."""
        start = min(max(self.problem.epsilon, SMALLEST), LARGEST)
        trials = (self.ask(epsilon) for epsilon in (start, *_doublings(start, SMALLEST)))
        first = next((trial for trial in trials if trial.reached is not None), None)
        if first is None:
            raise self._unproven(SMALLEST, start)
        limit = SMALLEST if first.reached else LARGEST
        last, unknown = first, None
        for epsilon in _doublings(first.epsilon, limit):
            trial = self.ask(epsilon)
            if trial.reached is None:
                unknown = unknown or epsilon
            elif trial.reached is first.reached:
                last, unknown = trial, None
            else:
                return _order(last, trial)
        if unknown is None:
            raise self._out_of_range(limit)
        # Beyond some epsilon nothing can be proven: bisect between it and the last verdict.
        while abs(unknown - last.epsilon) > self.tolerance:
            trial = self.ask((unknown + last.epsilon) / 2)
            if trial.reached is None:
                unknown = trial.epsilon
            elif trial.reached is first.reached:
                last = trial
            else:
                return _order(last, trial)
        raise self._unproven(last.epsilon, unknown)

    def narrow(self, low: _Trial, high: _Trial) -> tuple[_Trial, _Trial]:
        """Return a bracket of half the width, or of three quarters of it if nothing is proven at the middle."""
        for share in (0.5, 0.25, 0.75):
            trial = self.ask(low.epsilon + share * (high.epsilon - low.epsilon))
            if trial.reached is not None:
                return (low, trial) if trial.reached else (trial, high)
        raise self._unproven(low.epsilon, high.epsilon)

    def _unproven(self, one: float, other: float) -> NotCertified:
        low, high = sorted((one, other))
        return NotCertified(
            f"between epsilon {low:.9g} and {high:.9g} the solver's answers neither reach the loss nor prove that it "
            "is out of reach: ask for another loss, or a larger tolerance"
        )

    def _out_of_range(self, limit: float) -> InvalidInput:
        loss = float(self.target + (self.problem.sign < 0))
        if limit == LARGEST:
            return Infeasible(
                f"a loss of {loss:g} is out of reach at epsilon {LARGEST:g}, the largest that is tried: ask for a "
                "larger loss, or allow other outputs"
            )
        return InvalidInput(
            f"a loss of {loss:g} is reached at epsilon {SMALLEST:g}, the smallest that is tried: ask for a smaller loss"
        )


def _doublings(start: float, limit: float) -> Iterator[float]:
    """Yield epsilons from `start`, doubled or halved, up to the limit."""
    epsilon = start
    while epsilon != limit:
        epsilon = min(2 * epsilon, limit) if limit > start else max(epsilon / 2, limit)
        yield epsilon


def _order(one: _Trial, other: _Trial) -> tuple[_Trial, _Trial]:
    return (other, one) if one.reached else (one, other)
