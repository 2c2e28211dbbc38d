"""Certified statements about a mechanism, by the package and by the checker, compared with their definitions.

Two numbers of every problem are known without the package's arithmetic (:mod:`oracle`): the bound that some multipliers
prove, by brute force over all sets of labels, and the loss of a mechanism that is certainly feasible. The optimum lies
between them, and every certificate must allow for that.
"""

import decimal
import math
from dataclasses import dataclass
from fractions import Fraction

from asserting import assert_error
from oracle import Channel, exponential, least_float, reference_bound

import optrand
from optrand import Dual, Mechanism, Table, checker, losses
from optrand.base import _strict_json


def written(mechanism: Mechanism) -> str:
    """Return the text of the mechanism's file."""
    return _strict_json.canonical(mechanism._document).decode()


@dataclass(frozen=True)
class Known:
    """A problem, an answer of the package, and two numbers that hold its optimum, computed without it."""

    problem: optrand.Problem
    mechanism: Mechanism
    proven: Fraction
    attained: Fraction

    @classmethod
    def of(cls, problem: optrand.Problem) -> "Known":
        mechanism = optrand.solve(problem)
        channel = Channel.of_table(mechanism.table)
        assert channel.is_feasible(problem)
        proof = reference_bound(problem, mechanism.dual, exponential(problem.epsilon)[1])
        return cls(problem, mechanism, proof, channel.objective(problem)[1])


def examine(truth: Known, table: Table, dual: Dual | None) -> None:
    """Compare all certified and all refused statements with the truth."""
    problem, channel = truth.problem, Channel.of_table(table)
    private = channel.ratio is not None and channel.ratio <= exponential(problem.epsilon)[0]
    if not (private and channel.is_allowed(problem)):
        assert_error(r"would not be private|outside the problem's output set", Mechanism, problem, table, dual)
        return
    mechanism = Mechanism(problem, table, dual)
    proof, report = mechanism.certificate, checker.check(written(mechanism))
    _examine_bounds(truth, channel, proof)
    _examine_checker(truth, channel, mechanism, report)
    for stated in (proof.epsilon, mechanism.realised_epsilon, report.epsilon):
        _examine_privacy(channel, stated)
    bias = channel.largest_bias(problem.labels)
    assert bias == report.bias
    assert bias <= proof.bias
    assert not bias or math.nextafter(proof.bias, 0) < bias
    assert bool(proof.findings) == (problem.unbiased and bias > 0)
    assert not proof.findings or proof.gap == math.inf
    if dual is not None:
        without = Mechanism(problem, table).certificate
        assert (without.lower if proof.maximised else without.upper) == (
            proof.lower if proof.maximised else proof.upper
        )


def _examine_bounds(truth: Known, channel: Channel, proof: optrand.Certificate) -> None:
    low, high = (-proof.upper, -proof.lower) if proof.maximised else (proof.lower, proof.upper)
    assert low <= high
    assert low <= truth.attained
    assert high >= truth.proven
    if not proof.findings:
        least, most = channel.objective(truth.problem)
        assert low <= least
        assert high >= least
        # Above it is at most the cost of rounding up a logarithm and a float.
        assert high <= math.nextafter(float(most), math.inf) * (1 + math.copysign(1e-15, most))
        if least == most:
            assert high == least_float(most)


def _examine_checker(truth: Known, channel: Channel, mechanism: Mechanism, report) -> None:
    (least, most), problem, dual = channel.objective(truth.problem), truth.problem, mechanism.dual
    proof = mechanism.certificate
    sign, low = (-1, -proof.upper) if report.maximised else (1, proof.lower)
    # It rounds logarithms and the charge of a bias up, far beyond the digits of a float.
    assert report.ratio == channel.ratio
    assert least <= sign * report.value <= most + abs(most) * Fraction(1, 10**20)
    rounded = problem.loss == losses.poisson_log or 0 < problem.bias_penalty < math.inf
    assert rounded or sign * report.value == most
    if report.bound is not None:
        bound = sign * report.bound
        assert bound <= least
        # Two proofs of one bound by other arithmetic, of which neither knows the other.
        if math.isfinite(low):
            size = max(abs(bound), abs(least), *map(abs, map(Fraction, dual.alpha.tolist())))
            assert abs(Fraction(low) - bound) <= Fraction(1, 10**9) * size


def _examine_privacy(channel: Channel, epsilon: float) -> None:
    # As the float, and as the decimal that it is printed as. The float below it is too small as one of the two.
    for stated in (epsilon, decimal.Decimal(repr(epsilon))):
        assert channel.ratio <= exponential(stated)[1]
    if epsilon:
        below = math.nextafter(epsilon, 0)
        assert channel.ratio > exponential(min(decimal.Decimal(below), decimal.Decimal(repr(below))))[0]
