"""Certificates without a prior: the largest loss over labels, and its distance from the least one.

The dual bound at *any* prior bounds the largest loss of every epsilon-DP randomizer from below, and at a worst prior
closes the gap (``docs/mathematics.md``, Corollary 4). This module does not import a solver.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import overload

import numpy as np

from optrand.base.arithmetic import float_above, float_below
from optrand.base.validation import Floats
from optrand.certificates import exact_loss
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution

__all__ = ["certify_largest_loss", "label_losses"]


def label_losses(problem: Problem, answer: Randomizer | Mechanism) -> Floats:
    r"""Loss of each label, :math:`E[(v - y)^2] / 2 + \lambda (E[v] - y)^2 / 2`, the last term for a finite penalty.

    The loss of the problem must be squared; its prior is not used. Losses of a mechanism are exact and rounded up.

    Examples
    --------
    >>> import optrand
    >>> coin = optrand.debiased_rr([0, 1], math.log(3))
    >>> label_losses(coin.problem, coin.randomizer).round(12).tolist()
    [0.375, 0.375]
    """
    _check_squared(problem)
    penalty = 0.0 if problem.unbiased else problem.bias_penalty
    if isinstance(answer, Mechanism):
        return np.array([float_above(loss) for loss in exact_loss.as_it_is(problem, answer)])
    if answer.intervals is not None:
        errors = np.array([float(error) for error in answer.intervals.squared_errors()])
    else:
        errors = np.einsum("ki,ki->k", answer.matrix, (answer.outputs - answer.labels[:, np.newaxis]) ** 2)
    found: Floats = errors / 2 + penalty * answer.biases**2 / 2
    return found


def _check_squared(problem: Problem) -> None:
    if problem.loss != losses.squared:
        raise InvalidInput(f"{problem.loss.name} is no loss of this function, expected squared loss")


@overload
def certify_largest_loss(subject: Solution | Mechanism, /) -> Certificate: ...
@overload
def certify_largest_loss(
    subject: Problem, answer: Randomizer | Mechanism, /, dual: Dual | None = ...
) -> Certificate: ...
def certify_largest_loss(
    subject: Solution | Mechanism | Problem, answer: Randomizer | Mechanism | None = None, /, dual: Dual | None = None
) -> Certificate:
    """Certify privacy, unbiasedness, and the distance of the largest loss over labels from the least one.

    `upper` is the largest loss over labels (of a mechanism computed in integers and rounded up), infinite if the answer
    is not feasible; `lower`, the bound of :func:`optrand.certify` over the sum of the prior, bounds that of every
    epsilon-DP randomizer that the problem allows. Cost ``O(k log k)`` for the bound and ``O(k + n)`` for arcs.

    Parameters
    ----------
    subject : Solution, Mechanism or Problem
        Its prior is the one that proves the bound; a solution or a mechanism brings it and the dual.
    answer : Randomizer or Mechanism
        Only with a problem.
    dual : Dual, optional
        Only with a problem: the multipliers of the bound.

    Raises
    ------
    InvalidInput
        A loss that is not squared.

    Examples
    --------
    Debiased randomized response is best for two labels, whatever the prior:

    >>> import optrand
    >>> proof = certify_largest_loss(optrand.debiased_rr([0, 1], math.log(3)))
    >>> proof.gap < 1e-12, round(proof.upper, 9)
    (True, 0.375)
    """
    if isinstance(subject, Problem):
        if answer is None:
            raise InvalidInput("certify_largest_loss(problem, answer) needs a randomizer or a mechanism")
        problem, proof = subject, certify(subject, answer, dual)
    else:
        if answer is not None or dual is not None:
            raise InvalidInput("this brings its own problem and dual: pass a problem, a randomizer and a dual instead")
        problem, proof = subject.problem, certify(subject)
        answer = subject.randomizer if isinstance(subject, Solution) else subject
    _check_squared(problem)
    found = None if proof.findings else exact_loss.of_each_label(problem, answer)
    lower = proof.lower
    if math.isfinite(lower):
        lower = float_below(Fraction(lower) / sum(map(Fraction, problem.prior.tolist())))
    upper = math.inf if found is None else float_above(max(found))
    return replace(proof, lower=lower, upper=upper)
