"""Small corrections: from nearly feasible to feasible in the last digit, without changing what is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand import Interval, Randomizer, regression, solve, unbiased_range, unbiased_regression
from optrand.model.feasibility import mass_equations, mend_masses, movable_outputs, moved_outputs
from optrand.model.staircase import Staircase, decompose

LABELS = np.array([0.0, 1.0, 2.0, 4.0])
PRIOR = np.array([0.4, 0.1, 0.3, 0.2])
EPSILONS = [0.01, 0.5, 2.0, 8.0]


def design(problem):
    """The columns of an optimal answer."""
    return decompose(solve(problem).randomizer, math.exp(problem.epsilon), negligible=1e-9)


def randomizer(problem, arcs):
    outputs, table = arcs.table(math.exp(problem.epsilon))
    return Randomizer(problem.labels, outputs, table, problem.epsilon)


def disturbed(arcs, share, seed):
    noise = 1 + share * np.random.default_rng(seed).uniform(-1, 1, arcs.masses.size)
    return Staircase(arcs.members, arcs.outputs, arcs.masses * noise)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_feasible_set_of_columns_satisfies_the_equations(epsilon):
    problem = unbiased_regression(LABELS, PRIOR, epsilon)
    arcs, ratio = design(problem), math.exp(epsilon)
    matrix, right = mass_equations(problem, arcs, ratio, means=True)
    coverage = (arcs.members @ arcs.masses).mean()
    amounts = np.append(arcs.masses, coverage)
    assert matrix.shape == (2 * problem.k + 1, arcs.masses.size + 1)
    assert matrix @ amounts == pytest.approx(right, abs=1e-9)
    # Without the rows of the means they are the first ones.
    short, short_right = mass_equations(problem, arcs, ratio, means=False)
    assert short.tolist() == matrix[: problem.k + 1].tolist()
    assert short_right.tolist() == right[: problem.k + 1].tolist()


@pytest.mark.parametrize("epsilon", EPSILONS)
@given(share=st.sampled_from([1e-12, 1e-9, 1e-6, 1e-3]), seed=st.integers(0, 9))
@settings(max_examples=15)
def test_mended_masses_make_rows_that_sum_to_one(epsilon, share, seed):
    problem = unbiased_regression(LABELS, PRIOR, epsilon)
    before = disturbed(design(problem), share, seed)
    after = mend_masses(problem, before, means=False)
    table = randomizer(problem, after)
    assert np.abs(table.matrix.sum(axis=1) - 1).max() <= 1e-15 * 8
    assert table.realised_ratio <= math.exp(epsilon) * (1 + 1e-12)
    assert (after.masses >= 0).all()
    # The change is of the size of what was wrong.
    moved = after.masses[: before.masses.size] / before.masses - 1
    assert np.abs(moved).max() <= 100 * share + 1e-9


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@given(share=st.sampled_from([1e-12, 1e-9, 1e-6]), seed=st.integers(0, 9))
@settings(max_examples=10)
def test_masses_on_a_grid_are_mended_with_the_means(epsilon, share, seed):
    low, high = unbiased_range(LABELS, epsilon)
    problem = unbiased_regression(LABELS, PRIOR, epsilon, outputs=np.linspace(low - 1, high + 1, 15))
    after = mend_masses(problem, disturbed(design(problem), share, seed), means=True)
    table = randomizer(problem, after)
    scale = np.abs(table.outputs).max()
    assert np.abs(table.matrix.sum(axis=1) - 1).max() <= 1e-14
    assert np.abs(table.biases).max() <= 1e-12 * scale
    assert set(after.outputs) <= set(problem.outputs.values)


def test_mending_costs_the_least():
    """Of all ways to restore the means the one taken has the least cost: any other that does costs more."""
    problem = unbiased_regression(LABELS, PRIOR, 1.0)
    table = design(problem)
    columns = np.where(table.members, math.e, 1.0) * table.masses
    residual = np.array([1e-3, -2e-3, 0.0, 1e-3])
    everywhere = np.ones(table.outputs.size, dtype=bool)
    after = moved_outputs(problem, columns, table.outputs, residual, everywhere)
    step = after - table.outputs
    assert columns @ step == pytest.approx(residual, abs=1e-15)
    curvature = columns.T @ PRIOR
    null = np.linalg.svd(columns)[2][np.linalg.matrix_rank(columns) :]
    assert null.shape[0] == table.outputs.size - 4
    assert null @ (curvature * step) == pytest.approx(np.zeros(null.shape[0]), abs=1e-12)


def test_outputs_at_the_ends_of_an_interval_stay():
    outputs = np.array([-2.0, 0.0, 3.0, 6.0])
    boxed = unbiased_regression(LABELS, PRIOR, 1.0, outputs=Interval(-3.0, 7.0))
    assert movable_outputs(boxed, outputs).all()
    tight = regression(LABELS, PRIOR, 1.0, outputs=Interval(-2.0, 6.0))
    assert movable_outputs(tight, outputs).tolist() == [False, True, True, False]
    columns = np.full((4, 4), 0.25)
    after = moved_outputs(tight, columns, outputs, np.full(4, 0.01), movable_outputs(tight, outputs))
    assert after[[0, 3]].tolist() == [-2.0, 6.0]
    assert 0.25 * (after - outputs).sum() == pytest.approx(0.01)
    # A move that does not fit into the interval ends at its end.
    far = moved_outputs(tight, columns, outputs, np.full(4, 99.0), movable_outputs(tight, outputs))
    assert far.max() == 6.0
