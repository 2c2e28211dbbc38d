"""Small corrections: from nearly feasible to feasible in the last digit, at the least cost, of flows and of tables."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from optrand import Interval, certify, regression, unbiased_range, unbiased_regression
from optrand.mechanism._columns import least_change, node_equations
from optrand.mechanism._tabulation import tabulate
from optrand.model._randomizer import Arcs, Randomizer, Staircase, decompose
from optrand.solvers import design
from optrand.solvers._feasibility import balance_arcs, column_weights
from optrand.solvers.grid._column_generation import restore_rows
from tests.oracle import largest_ratio

LABELS = np.array([0.0, 1.0, 2.0, 4.0])
PRIOR = np.array([0.4, 0.1, 0.3, 0.2])


def optimal_columns(problem):
    return decompose(design(problem).randomizer, math.exp(problem.epsilon), negligible=1e-9)


def randomizer(problem, arcs):
    outputs, table = arcs.table(math.exp(problem.epsilon))
    return Randomizer(problem.labels, outputs, table, problem.epsilon)


def disturbed(arcs, share, seed):
    noise = 1 + share * np.random.default_rng(seed).uniform(-1, 1, arcs.masses.size)
    return Staircase(arcs.members, arcs.outputs, arcs.masses * noise)


@pytest.mark.parametrize("epsilon", [0.01, 2.0, 8.0])
@given(share=st.sampled_from([1e-12, 1e-9, 1e-6]), seed=st.integers(0, 9))
@settings(max_examples=10)
def test_restored_rows_are_private_and_sum_to_one(epsilon, share, seed):
    problem = unbiased_regression(LABELS, PRIOR, epsilon)
    before = disturbed(optimal_columns(problem), share, seed)
    after = restore_rows(before, math.exp(epsilon))
    table = randomizer(problem, after)
    assert np.abs(table.matrix.sum(axis=1) - 1).max() <= 1e-14
    assert largest_ratio(table.matrix) <= math.exp(epsilon) * (1 + 1e-12)
    assert (after.masses >= 0).all()
    # The change is of the size of the error.
    assert np.abs(after.masses / before.masses - 1).max() <= 100 * share + 1e-9


def some_arcs(rng, k, n):
    ends = np.sort(rng.integers(0, k, size=(n, 2)), axis=1)
    return Arcs(k, ends[:, 0], ends[:, 1], np.sort(rng.normal(size=n)), rng.random(n))


@given(st.integers(0, 2**32), st.sampled_from([1e-3, 0.5, 3.0, 30.0]))
def test_the_equations_are_differences_of_the_rows_of_the_table(seed, epsilon):
    rng = np.random.default_rng(seed)
    arcs = some_arcs(rng, int(rng.integers(1, 9)), int(rng.integers(1, 20)))
    ratio = math.exp(epsilon)
    labels = np.arange(arcs.k)[:, np.newaxis]
    favoured = (arcs.first <= labels) & (labels <= arcs.last)
    dense = np.where(favoured, 1.0, 1 / ratio) / (1 - 1 / ratio)
    equations = node_equations(arcs.k, arcs.first, arcs.last, epsilon).toarray()
    assert equations == pytest.approx(np.diff(dense, axis=0, prepend=0.0), rel=1e-12, abs=1e-12 * dense.max())


@given(st.integers(0, 2**32))
def test_column_weights_are_the_mean_steepness(seed):
    rng = np.random.default_rng(seed)
    arcs, prior = some_arcs(rng, 7, 12), rng.dirichlet(np.ones(7))
    labels = np.arange(7)[:, np.newaxis]
    steep = np.where((arcs.first <= labels) & (labels <= arcs.last), 1.0, math.exp(-1.5))
    assert column_weights(prior, arcs.first, arcs.last, 1.5) == pytest.approx(prior @ steep, rel=1e-13)


def test_the_least_change_is_that_of_the_normal_equations():
    rng = np.random.default_rng(0)
    system, reach, wanted = rng.normal(size=(4, 9)), rng.random(9) + 0.1, rng.normal(size=4)
    change = least_change(sparse.csr_array(system), reach, wanted)
    assert system @ change == pytest.approx(wanted, rel=1e-10)
    # Stationary: x / reach is a combination of the rows.
    assert np.linalg.lstsq(system.T, change / reach, rcond=None)[1] == pytest.approx([0.0], abs=1e-20)
    # Few unknowns that touch all equations are found, too.
    few = change[:3]
    assert least_change(sparse.csr_array(system[:, :3]), reach[:3], system[:, :3] @ few) == pytest.approx(
        few, rel=1e-10
    )


def test_an_equation_without_any_arc_changes_nothing():
    assert least_change(sparse.csr_array((2, 3)), np.ones(3), np.array([1.0, 0.0])).tolist() == [0.0] * 3


@pytest.mark.parametrize("epsilon", [0.1, 12.0])
@pytest.mark.parametrize("noise", [1e-4, 1e-6])
def test_a_shaken_optimum_is_feasible_again_and_hardly_worse(epsilon, noise):
    rng = np.random.default_rng(7)
    prior = rng.dirichlet(np.full(30, 0.5)) + 1e-4
    problem = unbiased_regression(np.arange(30.0), prior / prior.sum(), epsilon)
    best = design(problem)
    arcs = best.randomizer.arcs
    shaken = Arcs(
        arcs.k,
        arcs.first,
        arcs.last,
        np.sort(arcs.outputs * (1 + noise * rng.normal(size=arcs.n))),
        arcs.masses * (1 + noise * rng.normal(size=arcs.n)),
    )
    assert np.abs(Randomizer.of_arcs(problem.labels, shaken, epsilon).matrix.sum(axis=1) - 1).max() > noise / 100
    again = Randomizer.of_arcs(problem.labels, balance_arcs(problem, shaken), epsilon)
    assert np.abs(again.matrix.sum(axis=1) - 1).max() < 1e-13
    assert np.abs(again.biases).max() < 1e-11
    # Reduced costs vanish at an optimum, so the loss grows with the square of the noise.
    excess = problem.value(again) / certify(tabulate(best)).lower - 1
    assert excess <= 1e-13 + 1e3 * noise**2 * math.exp(epsilon / 2)


def test_outputs_stay_inside_and_those_on_an_end_stay_there():
    labels = np.arange(12.0)
    low, high = unbiased_range(labels, 1.0)
    problem = unbiased_regression(labels, np.full(12, 1 / 12), 1.0, outputs=Interval(low - 0.1, high + 0.1))
    arcs = design(problem).randomizer.arcs
    assert (arcs.outputs == problem.outputs.low).sum() >= 1
    shaken = Arcs(arcs.k, arcs.first, arcs.last, arcs.outputs, arcs.masses * (1 + 1e-8 * np.arange(arcs.n)))
    found = balance_arcs(problem, shaken)
    assert ((found.outputs >= problem.outputs.low) & (found.outputs <= problem.outputs.high)).all()
    again = Randomizer.of_arcs(labels, found, 1.0)
    assert max(np.abs(again.matrix.sum(axis=1) - 1).max(), np.abs(again.biases).max()) < 1e-11


def test_means_are_left_alone_where_bias_is_allowed():
    problem = regression([0.0, 1.0, 2.0], [0.2, 0.5, 0.3], 1.0, bias_penalty=2.0)
    arcs = design(problem).randomizer.arcs
    shaken = Arcs(arcs.k, arcs.first, arcs.last, arcs.outputs, 1.001 * arcs.masses)
    found = balance_arcs(problem, shaken)
    assert (found.outputs == arcs.outputs).all()
    assert Randomizer.of_arcs(problem.labels, found, 1.0).matrix.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-14)
