"""The cone program of squared loss: its value against a primal written out, its coarse levels, and the kernel."""

import math

import numpy as np
import pytest
from oracle import cone_program

import optrand
from optrand import Interval, Problem
from optrand.model._problem import regression, unbiased_range
from optrand.solvers import ReducedDual
from optrand.solvers._clarabel import Clarabel
from optrand.solvers._cones import ConeOptions, ConeProgram, _build_interpolation, _build_levels, solve_cones
from optrand.solvers._optimality import candidates
from optrand.solvers.reduced_dual._arcs import all_arcs

WITNESS = 1e-7
"""Relative difference of two interior-point solves in different forms."""


def unbiased(k: int, epsilon: float, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    labels = 100.0 + np.cumsum(rng.random(k) + 0.05)
    return optrand.unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon)


def priced(k: int, epsilon: float, seed: int) -> Problem:
    problem = unbiased(k, epsilon, seed)
    return regression(problem.labels, problem.prior, epsilon, bias_penalty=1.7)


def boxed(k: int, epsilon: float, seed: int) -> Problem:
    problem = unbiased(k, epsilon, seed)
    low, high = unbiased_range(problem.labels, epsilon)
    outputs = Interval(low - 0.02 * (high - low), high + 0.01 * (high - low))
    return optrand.unbiased_regression(problem.labels, problem.prior, epsilon, outputs=outputs)


def cramped(k: int, epsilon: float, seed: int) -> Problem:
    problem = priced(k, epsilon, seed)
    inside = Interval(problem.labels[0] + 0.1, problem.labels[-1] - 0.3 * np.ptp(problem.labels))
    return regression(problem.labels, problem.prior, epsilon, bias_penalty=1.7, outputs=inside)


every_kind = pytest.mark.parametrize("make", [unbiased, priced, boxed, cramped], ids=lambda make: make.__name__)


def witness(problem: Problem) -> float:
    """The primal as a program in masses and first moments of all intervals, written row by row, on cvxpy.

    Of a column of mass ``c`` and first moment ``m`` that the labels weigh as ``s`` the loss is the sum of
    ``s_y p_y (m - c y)^2 / (2 c)``: with the mean of the labels it is a square over ``c`` and a term linear in ``c``.
    """
    first, end = all_arcs(problem.k)
    each = np.arange(problem.k)[:, np.newaxis]
    columns = np.where((first <= each) & (each < end), 1.0, math.exp(-problem.epsilon))
    return cone_program(problem, columns)


@every_kind
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_dual_program_has_the_value_of_the_primal(make, epsilon: float) -> None:
    problem = make(4, epsilon, 9)
    solution = next(candidates(*solve_cones(problem)))
    assert solution.value == pytest.approx(witness(problem), rel=WITNESS)


@every_kind
@pytest.mark.parametrize(("k", "epsilon"), [(3, 5.0), (14, 0.3), (30, 2.0)])
def test_the_kernel_and_the_cone_program_agree(make, k: int, epsilon: float) -> None:
    """Two algorithms that share no equation solver, to the last digits after Newton's method."""
    problem = make(k, epsilon, 20)
    kernel, cones = ReducedDual()(problem), next(candidates(*solve_cones(problem)))
    assert kernel.gap <= 1e-9
    assert cones.value == pytest.approx(kernel.value, rel=1e-9)
    if problem.unbiased:
        assert cones.gap <= 1e-9


@every_kind
def test_a_reduced_cost_is_the_least_over_all_outputs(make) -> None:
    """Slacks are those of the column's definition at its best output, and at no output of many is it less."""
    problem = make(5, 1.2, 5)
    program, answer, _ = solve_cones(problem)
    _, dual = program.dual(answer)
    ratio_m1 = math.expm1(problem.epsilon)
    own = program.centre + program.unit * answer.outputs
    ends = (np.clip(end, 60.0, 140.0) for end in (problem.outputs.low, problem.outputs.high))
    outputs = np.union1d(np.linspace(*ends, 5_001), own)
    loss = problem.prior[:, np.newaxis] * (outputs - problem.labels[:, np.newaxis]) ** 2 / 2
    reduced = loss - dual.alpha[:, np.newaxis] - dual.beta[:, np.newaxis] * outputs
    each = np.arange(5)[:, np.newaxis]
    columns = np.where((program.first <= each) & (each < program.end), 1 + ratio_m1, 1.0)
    costs = columns.T @ reduced
    assert costs.min() > -1e-8 * program.unit**2
    used = answer.masses > answer.slacks
    assert costs[used].min(axis=1) == pytest.approx(0.0, abs=1e-7 * program.unit**2)


def test_coarse_programs_stay_feasible() -> None:
    """With sums that are linear between coarse nodes no interval is cheaper than the cheapest of those nodes."""
    for unknown in (False, True):
        problem = unbiased(21, 1.0, 3)
        fine, coarse = _build_levels(problem, ConeOptions(fewest=12))[:2]
        prolongation = _build_interpolation(coarse)
        assert prolongation.sum(axis=1) == pytest.approx(1.0)
        size = coarse.before.size - 1
        assert size < fine.before.size - 1
        program = ConeProgram(problem, *all_arcs(size), prolongation, unknown)
        answer = program.read(Clarabel(1e-9).solve(program.build()))
        whole = program.terms(answer.sums[0])
        first, end = all_arcs(21)
        a, b, c = (side[end] - side[first] + whole.excess * side[-1] for side in answer.sums)
        assert (c - b**2 / (2 * a)).min() > -1e-6
