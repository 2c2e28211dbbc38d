"""Problems on grids by column generation and as programs: one optimum, and units."""

import math

import numpy as np
import pytest

from optrand import certify, losses, regression, unbiased_range, unbiased_regression
from optrand.mechanism._tabulation import tabulate
from optrand.programs import Program, Pure, Unbiased
from optrand.solvers import ColumnGeneration, ReducedDual, solve
from optrand.solvers._feasibility import attainable_loss

GAP = 1e-6
"""Accuracy of the least accurate backend."""

LABELS = np.array([0.0, 1.0, 2.5])
PRIOR = np.array([0.5, 0.2, 0.3])


def mesh(epsilon, size=7):
    low, high = unbiased_range(LABELS, epsilon)
    return np.linspace(low - 0.5, high + 0.5, size)


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute, losses.poisson_log])
@pytest.mark.parametrize("penalty", [0.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_two_ways_to_regress(loss, penalty, epsilon):
    labels, grid = LABELS, mesh(epsilon)
    if loss == losses.poisson_log:
        labels = LABELS - 2 * min(0.0, grid[0])
        grid = grid - 2 * min(0.0, grid[0])
    problem = regression(labels, PRIOR, epsilon, loss=loss, bias_penalty=penalty, outputs=grid)
    proof = certify(solve(problem, ColumnGeneration())).require(gap=GAP)
    constraints = [Unbiased()] if penalty else []
    program = Program(labels, PRIOR, grid, loss=loss, privacy=Pure(epsilon), constraints=constraints)
    mechanism = solve(program)
    assert mechanism.certificate.upper == pytest.approx(proof.upper, rel=GAP)
    slack = 1e-9 * abs(proof.upper)
    assert proof.lower <= mechanism.certificate.upper + slack
    assert mechanism.certificate.lower <= proof.upper + slack


def test_rows_and_duals_are_in_the_units_of_the_problem():
    """Scaling labels by c scales a squared loss by c^2: alpha with it, and beta, which is loss per label, by c."""
    base = unbiased_regression(LABELS, PRIOR, 1.0, outputs=mesh(1.0))
    one = ColumnGeneration()(base)
    for factor, shift in ((1e-6, 0.0), (1e4, 0.0), (1.0, 50.0)):
        moved = unbiased_regression(factor * LABELS + shift, PRIOR, 1.0, outputs=factor * mesh(1.0) + shift)
        other = ColumnGeneration()(moved)
        assert other.value == pytest.approx(factor**2 * one.value, rel=GAP)
        assert other.dual.beta == pytest.approx(factor * one.dual.beta, rel=1e-4, abs=1e-6 * factor)
        tabulate(other).certificate.require(gap=GAP)


def test_the_unit_of_flows_is_within_reach():
    """At two labels all candidates are one randomizer, the only unbiased one there is: outputs -1 and 3 at E = 3.

    Each label has them with 3/4 and 1/4: its variance is 3, half of that the loss.
    """
    assert attainable_loss(unbiased_regression([0, 2], [0.5, 0.5], math.log(3))) == pytest.approx(1.5)
    # A price of bias makes the constant output an offer: (1 + 0.1) times half the variance of the prior, 1.
    assert attainable_loss(regression([0, 2], [0.5, 0.5], math.log(3), bias_penalty=0.1)) == pytest.approx(0.55)


@pytest.mark.parametrize("penalty", [0.01, math.inf])
@pytest.mark.parametrize("epsilon", [0.05, 3.0, 10.0])
def test_the_unit_of_flows_is_attained(penalty, epsilon):
    """It is the loss of a randomizer, and so no less than the optimum, nor of another order."""
    rng = np.random.default_rng(17)
    for k in (2, 5, 12):
        labels, prior = np.cumsum(rng.random(k)) + 5, rng.dirichlet(np.ones(k))
        problem = regression(labels, prior, epsilon, bias_penalty=penalty)
        best = solve(problem, ReducedDual()).value
        assert best * (1 - 1e-9) <= attainable_loss(problem) <= 10 * best
