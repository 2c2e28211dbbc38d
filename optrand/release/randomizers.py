"""Mechanisms of a release, made and read in one place."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from optrand.base import strict_json
from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats
from optrand.certificates.certificate import Certificate
from optrand.closed_forms import debiased_rr, gap_response, rr, rr_top_k
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.table import Table
from optrand.solvers import solve
from optrand.studies import minimax

__all__ = [
    "mechanism_for",
    "mechanism_of_document",
    "mechanism_without_prior",
    "noisy_label_loss",
    "objective",
]


def mechanism_for(problem: Problem, randomizer: str = "") -> Mechanism:
    """Return the mechanism of a problem: the optimum, or a randomizer for its prior by name.

    Raises
    ------
    InvalidInput
        Outputs on which the randomizer has none.

    Examples
    --------
    >>> import optrand
    >>> mechanism_for(optrand.classification([0.5, 0.3, 0.2], 1.0), "rr-top-k:2").outputs.tolist()
    [0.0, 1.0]
    """
    name, _, size = randomizer.partition(":")
    if size:
        found = rr_top_k(problem.prior, int(size), problem.epsilon)
        outputs = problem.labels[found.outputs.astype(np.intp)]
        return Mechanism(problem, Table(problem.labels, outputs, found.table.columns), found.dual)
    if name == "gap-response" and problem.k > 1:
        found = gap_response(problem.labels, problem.prior, problem.epsilon)
        low, high = found.outputs[[0, -1]].tolist()
        if low < problem.outputs.low or high > problem.outputs.high:
            raise InvalidInput(f"gap-response has outputs from {low:g} to {high:g}: leave the outputs out")
        return Mechanism(problem, found.table, found.dual)
    return solve(problem)


def mechanism_without_prior(name: str, problem: Problem) -> Mechanism:
    """Return the mechanism of a name that needs no prior, for the labels, epsilon and outputs of a problem.

    Raises
    ------
    InvalidInput
        A grid of outputs for ``"minimax"``.
    """
    if name == "rr":
        return rr(problem.labels, problem.epsilon)
    if name == "debiased-rr":
        return debiased_rr(problem.labels, problem.epsilon)
    if isinstance(problem.outputs, Grid):
        raise InvalidInput("minimax takes outputs on the line or an interval, not a grid: leave the grid out")
    return minimax(problem.labels, problem.epsilon, bias_penalty=problem.bias_penalty, outputs=problem.outputs)


def mechanism_of_document(document: object) -> Mechanism:
    """Read a mechanism that is part of another document, verified as :func:`optrand.load` does.

    Raises
    ------
    InvalidFile
        It is damaged, or not private.
    """
    if not isinstance(document, dict):
        raise InvalidFile("a mechanism of the file is no object")
    return Mechanism.from_bytes(strict_json.canonical(document))


def noisy_label_loss(mechanism: Mechanism, proof: Certificate) -> float:
    """Return the expected loss under the prior, rounded up; of classes the probability that a label changes."""
    problem = mechanism.problem
    if problem.loss == losses.zero_one:
        return float_above(1 - Fraction(proof.lower))
    if problem.bias_penalty == 0:
        return proof.upper
    return Mechanism(replace(problem, bias_penalty=0.0), mechanism.table).certificate.upper


def objective(mechanism: Mechanism, prior: Floats) -> float:
    """Return the expected loss and bias penalty under a prior; of classes the probability that a label changes."""
    proof = Mechanism(replace(mechanism.problem, prior=prior), mechanism.table).certificate
    return 1 - proof.lower if proof.maximised else proof.upper
