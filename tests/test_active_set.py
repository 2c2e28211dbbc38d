"""The active-set method in integers: optima on grids that floats leave open, and repairs of their tables."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from optrand import Grid, Solution, certify, losses, regression, solve, solvers, tabulate, unbiased_range
from optrand.errors import SolverFailed
from optrand.model.losses import Loss
from optrand.model.problem import Problem
from optrand.model.solution import Stats
from optrand.model.staircase import Staircase, decompose
from optrand.solvers.dual_repair import randomizer_of
from optrand.solvers.grid.active_set import active_set
from optrand.solvers.grid.finish import finished

PENALTIES = (math.inf, 1000.0, 0.001, 0.0)
ALTERNATING = np.where(np.arange(5) % 2, 0.1, 1e-12)


def posed(k: int, epsilon: float, penalty: float, loss: Loss = losses.squared) -> Problem:
    """Labels of prior 1e-12 and 0.1 in turn, on the narrowest grid that unbiased answers need."""
    labels = np.arange(float(k))
    prior = ALTERNATING[:k] / ALTERNATING[:k].sum()
    grid = Grid(np.linspace(*unbiased_range(labels, epsilon), 12))
    return regression(labels, prior, epsilon, bias_penalty=penalty, outputs=grid, loss=loss)


def nothing(k: int) -> Staircase:
    """No columns to start from."""
    return Staircase(np.zeros((k, 0), dtype=bool), np.zeros(0), np.zeros(0))


def answer(problem: Problem, start: Staircase | None = None) -> Solution:
    """The optimum in integers, as a solution."""
    found = active_set(problem, start or nothing(problem.k))
    assert found is not None
    return Solution(problem, randomizer_of(problem, found.columns), found.dual, Stats("active set"))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0, 40.0])
def test_the_optimum_is_proven_whatever_the_prior(epsilon: float, loss: Loss, penalty: float) -> None:
    solution = answer(posed(5, epsilon, penalty, loss))
    certify(solution).require(gap=1e-9)
    certify(tabulate(solution)).require(gap=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_start_does_not_change_the_value(penalty: float) -> None:
    problem = posed(5, 2.0, penalty)
    cold = answer(problem)
    start = decompose(cold.randomizer, math.exp(2.0))
    warm = answer(problem, start)
    assert warm.value == pytest.approx(cold.value, rel=1e-9)
    found = active_set(problem, nothing(5)), active_set(problem, start)
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].steps <= found[0].steps


def test_a_larger_penalty_costs_no_less() -> None:
    values = [answer(posed(4, 1.0, penalty)).value for penalty in (0.0, 0.001, 1.0, 1000.0, math.inf)]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(values))
    assert values[0] < values[-1]


def test_two_labels_at_the_narrowest_outputs_are_randomized_response() -> None:
    # With outputs -1/(E-1) and 1 + 1/(E-1) the loss of debiased randomized response is E / (2 (E - 1)**2) each.
    labels, epsilon = np.array([0.0, 1.0]), 1.0
    grid = Grid([*unbiased_range(labels, epsilon)])
    problem = regression(labels, [0.5, 0.5], epsilon, bias_penalty=math.inf, outputs=grid)
    assert answer(problem).value == pytest.approx(math.e / (2 * (math.e - 1) ** 2), rel=1e-12)


def test_no_room_for_unbiased_answers_is_no_answer() -> None:
    # At epsilon 1 unbiased answers to 0 and 1 need outputs from -0.58 to 1.58; the problem itself refuses the others.
    problem = posed(2, 1.0, 1.0)
    narrow = replace(problem, outputs=Grid([0.0, 0.5, 1.0]))
    object.__setattr__(narrow, "bias_penalty", math.inf)
    assert active_set(narrow, nothing(2)) is None


@pytest.mark.parametrize("epsilon", [28.0, 40.0, 100.0])
def test_two_labels_on_a_grid_at_large_epsilon(epsilon: float) -> None:
    grid = Grid(np.linspace(-0.3, 1.3, 12))
    problem = regression([0, 1], [0.7, 0.3], epsilon, bias_penalty=math.inf, outputs=grid)
    certify(tabulate(solve(problem))).require(gap=1e-9)


def test_both_solvers_on_a_grid_finish_what_floats_leave_open() -> None:
    problem = posed(5, 16.0, math.inf)
    for solver in (solvers.LinearProgram(), solvers.ColumnGeneration()):
        certify(solver(problem)).require(gap=1e-9)


def test_an_answer_that_is_proven_is_left_as_it_is() -> None:
    problem = posed(3, 1.0, math.inf)
    proven = answer(problem)
    assert finished(problem, lambda _: proven) is proven


def test_without_an_answer_in_floats_integers_find_one() -> None:
    def fails(problem: Problem) -> Solution:
        raise SolverFailed(f"{problem.k} labels are too many")

    certify(finished(posed(3, 1.0, 1.0), fails)).require(gap=1e-9)
    large = regression(range(120), np.full(120, 1 / 120), 1.0, bias_penalty=1.0, outputs=Grid(np.arange(120.0)))
    with pytest.raises(SolverFailed, match="120 labels"):
        finished(large, fails)


def test_free_bias_on_a_grid_is_proven_where_the_first_columns_are_already_optimal() -> None:
    # Many labels, few bins: the randomizer is optimal at once, and its multipliers are what is looked for.
    prior = np.random.default_rng(0).dirichlet(np.full(160, 0.5))
    problem = regression(range(160), prior, 1.0, bias_penalty=0.0, outputs=Grid(np.linspace(0, 159, 40)))
    certify(solvers.ColumnGeneration()(problem)).require(gap=1e-9)
