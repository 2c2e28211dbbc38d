"""Programs: their sizes, one optimum for all of them, and tables that are private however the answer came out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import priors
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand import (
    Interval,
    Randomizer,
    certify,
    classification,
    losses,
    regression,
    rr_with_prior,
    unbiased_range,
    unbiased_regression,
)
from optrand.errors import InvalidInput
from optrand.solvers import Flow, LinearProgram, backends, solve
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.flow.levels import all_arcs
from optrand.solvers.flow.program import FlowProgram
from optrand.solvers.grid import LP2, Floor, LPSolution, Pairwise
from optrand.solvers.grid.master import Master, all_intervals, undifferenced
from optrand.solvers.grid.program import GridScale, read_table
from optrand.solvers.scales import attainable_loss, reach, typical_loss

GAP = 1e-6
"""Of the least accurate backend."""

LABELS = np.array([0.0, 1.0, 2.5])
PRIOR = np.array([0.5, 0.2, 0.3])

BACKENDS = [backends.Highs(), backends.Scipy(), backends.Cvxpy()]


def mesh(epsilon, size=7):
    low, high = unbiased_range(LABELS, epsilon)
    return np.linspace(low - 0.5, high + 0.5, size)


# ------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 3), (4, 6)])
def test_sizes_on_a_grid(k, n, unbiased):
    labels = np.arange(k)
    low, high = unbiased_range(labels, 1.0) if k > 1 else (-1.0, 1.0)
    make = unbiased_regression if unbiased else regression
    problem = make(labels, np.full(k, 1 / k), 1.0, outputs=np.linspace(low - 1, high + 1, n))
    pairwise, floor = Pairwise().build(problem), Floor().build(problem)
    # As printed: a row for every output and ordered pair of labels. With floors: one for every entry of the table.
    assert pairwise.less.shape == (n * k * (k - 1), n * k)
    assert floor.less.shape == (n * k, n + n * k)
    for program in (pairwise, floor):
        assert program.equal.shape[0] == (2 * k if unbiased else k)
        assert program.cost.shape == (program.less.shape[1],)
        assert program.rows == program.equal_to.size + program.less_than.size


def test_sizes_of_lp2():
    program = LP2().build(classification(np.full(5, 0.2), 1.0))
    assert program.less.shape == (5, 5)
    assert program.equal.shape == (0, 5)
    rows = program.less.toarray()
    assert np.diag(rows).tolist() == [1.0] * 5
    assert rows[0, 1] == math.exp(-1.0)


def test_sizes_of_flows():
    problem = unbiased_regression(np.arange(5), np.full(5, 0.2), 1.0)
    conic = FlowProgram(problem, *all_arcs(5)).build()
    # Two potentials a label; a cone of three rows for each of the fifteen intervals.
    assert (conic.cost.size, conic.cones.right.size, conic.equal.shape, conic.less.shape) == (10, 45, (0, 10), (0, 10))
    assert conic.quadratic.nnz == 0
    boxed = unbiased_regression(np.arange(5), np.full(5, 0.2), 1.0, outputs=Interval(-9, 9))
    # A multiplier of each arc for each end, kept above 0.
    conic = FlowProgram(boxed, *all_arcs(5)).build()
    assert (conic.cost.size, conic.cones.right.size, conic.less.shape) == (40, 45, (30, 40))
    priced = FlowProgram(regression(np.arange(5), np.full(5, 0.2), 1.0, bias_penalty=2.0), *all_arcs(5)).build()
    # Beside the potentials what each label's bias is charged, which an equation ties to them.
    assert (priced.cost.size, priced.equal.shape, priced.quadratic.nnz) == (15, (5, 15), 5)


def test_all_intervals_are_each_one_run_of_labels():
    members = all_intervals(5)
    assert members.shape == (5, 15)
    assert np.unique(members, axis=1).shape == (5, 15)
    assert ((np.diff(members.astype(int), axis=0) == 1).sum(axis=0) <= 1).all()


def test_multipliers_of_rows_from_those_of_differences():
    """Whatever the rows, ``multipliers @ differences(rows)`` is ``undifferenced(multipliers) @ rows``."""
    rng = np.random.default_rng(8)
    table, multipliers = rng.normal(size=(6, 4)), rng.normal(size=6)
    assert undifferenced(multipliers) @ table == pytest.approx(multipliers @ np.diff(table, axis=0, prepend=0.0))


def test_the_master_holds_the_columns_that_it_is_given():
    problem = regression(LABELS, PRIOR, 1.0, bias_penalty=3.0, outputs=mesh(1.0))
    members, outputs = np.array([[True, False], [True, True], [False, True]]), problem.outputs.values[[2, 4]]
    master = Master(problem, members, outputs)
    conic = master.conic()
    assert (conic.cost.size, conic.cones) == (2 + 3, None)
    assert master.linear().cost.tolist() == conic.cost[:2].tolist()
    # The cost of a column, over E and in the unit of the program, from the definition.
    for j in range(2):
        s = np.where(members[:, j], math.e, 1.0)
        cost = float(s @ (PRIOR * (outputs[j] - LABELS) ** 2 / 2)) / math.e
        assert conic.cost[j] * master.unit == pytest.approx(cost)


# ------------------------------------------------------------------------------------------------ one optimum for all


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
@given(st.data())
@settings(max_examples=10)
def test_four_ways_to_classify(backend, data):
    prior = data.draw(st.integers(1, 5).flatmap(priors))
    epsilon = data.draw(st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0]))
    problem = classification(prior, epsilon)
    closed = rr_with_prior(prior, epsilon)
    best = certify(closed).require(gap=1e-12).lower
    for program in (Pairwise(), Floor(), LP2()):
        proof = certify(LinearProgram(program, backend)(problem)).require(gap=GAP)
        assert proof.lower == pytest.approx(best, rel=GAP)
        assert proof.upper == pytest.approx(best, rel=GAP)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("loss", [losses.squared, losses.absolute, losses.poisson_log])
@pytest.mark.parametrize("penalty", [0.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_two_ways_to_regress(backend, loss, penalty, epsilon):
    labels, grid = LABELS, mesh(epsilon)
    if loss == losses.poisson_log:
        labels = LABELS - 2 * min(0.0, grid[0])
        grid = grid - 2 * min(0.0, grid[0])
    problem = regression(labels, PRIOR, epsilon, loss=loss, bias_penalty=penalty, outputs=grid)
    proofs = [certify(LinearProgram(program, backend)(problem)).require(gap=GAP) for program in (Pairwise(), Floor())]
    assert proofs[0].upper == pytest.approx(proofs[1].upper, rel=GAP)
    slack = 1e-9 * abs(proofs[0].upper)
    assert max(proof.lower for proof in proofs) <= min(proof.upper for proof in proofs) + slack


@pytest.mark.parametrize("penalty", [2.0, math.inf])
def test_all_sets_of_labels_do_no_better_than_intervals(penalty):
    """[B23], Claims 11 to 14: for squared loss the columns of an optimal randomizer favour intervals of labels.

    All sets at all values of a fine grid: no better than intervals on the line, and worse by no more than unbiased
    rounding to the grid costs, an eighth of the mesh width squared.
    """
    labels, prior, epsilon = [0.0, 0.3, 2.0, 2.5], [0.3, 0.2, 0.1, 0.4], 0.8
    line = Flow()(regression(labels, prior, epsilon, bias_penalty=penalty)).value
    grid = np.linspace(-3.0, 5.0, 401)
    problem = regression(labels, prior, epsilon, bias_penalty=penalty, outputs=grid)
    every = np.array([[bool(code >> y & 1) for code in range(1, 16)] for y in range(4)])
    master = Master(problem, np.repeat(every, grid.size, axis=1), np.tile(grid, 15))
    answer = Clarabel().solve(master.conic())
    arcs, _ = master.read(answer.x, answer.equal_dual)
    outputs, table = arcs.table(math.exp(epsilon))
    value = problem.value(Randomizer(problem.labels, outputs, table, epsilon))
    assert line * (1 - 1e-8) <= value <= line + 0.02**2 / 8 + 1e-8 * line


# ------------------------------------------------------------------------------------------------- reading answers


# In the printed form the coefficients are powers of e themselves, too large for any backend from an epsilon of 20 on.
@pytest.mark.parametrize(
    ("program", "epsilon"),
    [(Floor(), epsilon) for epsilon in (0.1, 1.0, 8.0, 17.0, 40.0)]
    + [(Pairwise(), epsilon) for epsilon in (0.1, 1.0, 8.0, 17.0)],
    ids=repr,
)
def test_what_is_read_is_private_to_the_last_digit(program, epsilon):
    for problem in (
        regression(LABELS, PRIOR, epsilon, outputs=mesh(epsilon)),
        classification(PRIOR, epsilon),
    ):
        randomizer = LinearProgram(program)(problem).randomizer
        assert randomizer.realised_ratio <= math.exp(epsilon) * (1 + 1e-12)
        assert np.abs(randomizer.matrix.sum(axis=1) - 1).max() <= 1e-9


def test_an_answer_with_zeros_and_negative_entries_is_lifted():
    problem = regression([0, 1], [0.5, 0.5], 1.0, outputs=[0, 1, 2, 3])
    table = np.array([[1.0 - 1e-9, 1e-9, -1e-12, 0.0], [0.5, 0.5, 1e-14, -1e-16]])
    found = read_table(problem, table)
    # The last two outputs are noise; zeros and what is too small become max / E.
    assert found.outputs.tolist() == [0.0, 1.0]
    assert found.matrix[0, 1] == 0.5 * math.exp(-1.0)
    assert found.matrix[1, 0] == 0.5
    assert found.realised_ratio <= math.e * (1 + 1e-15)


def test_rows_and_duals_are_in_the_units_of_the_problem():
    """Scaling labels by c scales a squared loss by c^2: alpha with it, and beta, which is loss per label, by c."""
    base = unbiased_regression(LABELS, PRIOR, 1.0, outputs=mesh(1.0))
    one = LinearProgram()(base)
    for factor, shift in ((1e-6, 0.0), (1e4, 0.0), (1.0, 50.0)):
        moved = unbiased_regression(factor * LABELS + shift, PRIOR, 1.0, outputs=factor * mesh(1.0) + shift)
        other = LinearProgram()(moved)
        assert other.value == pytest.approx(factor**2 * one.value, rel=GAP)
        assert other.dual.beta == pytest.approx(factor * one.dual.beta, rel=1e-4, abs=1e-6 * factor)
        certify(other).require(gap=GAP)


def test_the_scale_knows_its_problem():
    problem = unbiased_regression(LABELS, PRIOR, 1.0, outputs=mesh(1.0))
    scale = GridScale.of(problem)
    assert (scale.outputs.min(), scale.outputs.max()) == pytest.approx((-1.0, 1.0))
    assert scale.labels * scale.width + scale.centre == pytest.approx(LABELS)
    assert scale.costs * scale.unit == pytest.approx(PRIOR[:, np.newaxis] * problem.loss_table(mesh(1.0)))
    alone = GridScale.of(regression([1, 2], [0.5, 0.5], 1.0, outputs=[3.0]))
    assert alone.outputs.tolist() == [0.0]


def test_units_of_programs():
    # Unbiased outputs overhang the labels by 1 / (E - 1) of their range; without any care for bias they stay inside.
    assert reach(unbiased_regression([0, 2], [0.5, 0.5], math.log(3))) == pytest.approx(2.0)
    assert reach(regression([0, 2], [0.5, 0.5], math.log(3))) == pytest.approx(1.0)
    assert reach(regression([5], [1.0], math.log(3), bias_penalty=1.0)) > 0
    # The mean of (v - y)^2 / 2 at v = -1 and v = 3, for labels 0 and 2, even odds: (1 + 9) / 4 at either.
    assert typical_loss(unbiased_regression([0, 2], [0.5, 0.5], math.log(3)), np.array([-1.0, 3.0])) == 2.5
    assert typical_loss(classification([0.7, 0.3], 1.0), np.array([0.0, 1.0])) == 0.7


def test_the_unit_of_flows_is_within_reach():
    """At two labels all candidates are one randomizer, the only unbiased one there is: outputs -1 and 3 at E = 3.

    Each label has them with 3/4 and 1/4: its variance is 3, half of that the loss.
    """
    assert attainable_loss(unbiased_regression([0, 2], [0.5, 0.5], math.log(3))) == pytest.approx(1.5)
    # A price of bias makes the constant output an offer: (1 + 0.1) times half the variance of the prior, 1.
    assert attainable_loss(regression([0, 2], [0.5, 0.5], math.log(3), bias_penalty=0.1)) == pytest.approx(0.55)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 100.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0, 10.0])
def test_the_unit_of_flows_is_attained(penalty, epsilon):
    """It is the loss of a randomizer, and so no less than the optimum; nor is it of another order."""
    rng = np.random.default_rng(17)
    for k in (2, 5, 12):
        labels, prior = np.cumsum(rng.random(k)) + 5, rng.dirichlet(np.ones(k))
        problem = regression(labels, prior, epsilon, bias_penalty=penalty)
        best = solve(problem, Flow()).value
        assert best * (1 - 1e-9) <= attainable_loss(problem) <= 10 * best


# -------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("program", [Pairwise(), Floor()], ids=repr)
def test_programs_on_a_grid_refuse_anything_else(program):
    with pytest.raises(InvalidInput, match="needs outputs on a grid"):
        program.build(regression(LABELS, PRIOR, 1.0))
    with pytest.raises(InvalidInput, match=r"takes a bias penalty of 0 or math\.inf"):
        program.build(regression(LABELS, PRIOR, 1.0, bias_penalty=1.0, outputs=mesh(1.0)))


def test_lp2_is_a_program_of_classification():
    with pytest.raises(InvalidInput, match="of classification only"):
        LP2().build(regression(LABELS, PRIOR, 1.0, outputs=mesh(1.0)))


def test_a_value_is_derived_from_the_answer_and_not_taken_from_the_backend():
    program = LP2().build(classification([0.5, 0.5], 1.0))
    answer = LPSolution(np.array([0.25, 0.5]), np.zeros(0), np.zeros(2), "whatever", 0)
    assert answer.value(program) == -0.375
