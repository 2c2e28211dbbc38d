"""Problems: sorted, checked, with the value of the definition, and refused if they are meaningless."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from strategies import label_sets, priors

import optrand
from optrand import Dual, Grid, Interval, classification, losses, regression, unbiased_regression
from optrand.errors import Infeasible, InvalidInput
from optrand.model._problem import Line, Problem, unbiased_range
from optrand.model._randomizer import Randomizer
from optrand.programs import lp1

LOG3 = math.log(3)
HALVES = [0.5, 0.5]


# ------------------------------------------------------------------------------------------------------- construction
@given(st.data())
def test_order_of_labels_and_outputs_makes_no_difference(data):
    labels = data.draw(label_sets(2, 5))
    prior = data.draw(priors(labels.size))
    outputs = np.array([-1.0, 0.25, 7.0])
    table = np.arange(labels.size * 3.0).reshape(-1, 3) ** 1.5
    rows = data.draw(st.permutations(range(labels.size)))
    columns = data.draw(st.permutations(range(3)))
    plain = regression(labels, prior, 1.0, loss=losses.Tabulated(table), outputs=outputs)
    shuffled = regression(
        labels[rows], prior[rows], 1.0, loss=losses.Tabulated(table[rows][:, columns]), outputs=outputs[columns]
    )
    assert shuffled == plain
    assert hash(shuffled) == hash(plain)
    assert regression(labels[rows], prior[rows], 1.0) == regression(labels, prior, 1.0)


def test_classification_is_over_its_own_labels():
    problem = classification([0.5, 0.3, 0.2], 1.0, labels=[7, 3, 5])
    assert (problem.labels.tolist(), problem.prior.tolist()) == ([3.0, 5.0, 7.0], [0.3, 0.2, 0.5])
    assert (problem.outputs, problem.sign) == (Grid([3, 5, 7]), -1.0)
    assert classification([1.0], 1.0).labels.tolist() == [0.0]


def test_equality_looks_at_every_part():
    base = regression([0, 1], HALVES, 1.0, outputs=[0, 1, 2])
    others = [
        *[replace(base, labels=[0, 2]), replace(base, prior=[0.25, 0.75]), replace(base, epsilon=1.5)],
        *[replace(base, loss=losses.absolute), replace(base, bias_penalty=0.5)],
        *[replace(base, outputs=Grid([0, 1, 3])), replace(base, outputs=Line())],
    ]
    assert base == regression([1, 0], HALVES, 1.0, outputs=[2, 1, 0])
    assert all(base != other for other in others)
    assert base != "a problem"


def stated(outputs=None, **options):
    return lambda: regression([0, 1], HALVES, 1.0, outputs=outputs, **options)


@by_case(
    "state, message",
    (lambda: Problem([1, 0], HALVES, 1.0, losses.squared, 0.0, Line()), "use the constructors, which sort them"),
    (lambda: Problem([0, 1], HALVES, 1.0, losses.squared, 0.0, [0.0]), "type list, expected Line or Interval"),
    (stated(bias_penalty=-1.0), "bias_penalty is -1.0, expected a number from 0 to math.inf"),
    (stated(bias_penalty=math.nan), "bias_penalty is nan"),
    (stated(bias_penalty=True), "bias_penalty is of type bool"),
    (stated(bias_penalty="inf"), "bias_penalty is of type str"),
    (stated([0.0, -0.0]), "outputs repeats 1 value"),
    (stated(3.0), "outputs is a single number, expected several"),
    (stated([0, 1e151]), "outputs reach beyond 1e\\+150, where the square of a float overflows"),
    (lambda: Interval(1, 1), "the interval from 1 to 1 is empty"),
    (lambda: Interval(math.nan, 1), "the interval's low end is nan"),
    (lambda: Interval(0, math.inf), "the interval's high end is inf"),
    (lambda: Interval(True, 2), "the interval's low end is of type bool"),
    (lambda: Interval(-1e200, 2), "the interval's ends reach beyond 1e\\+150"),
    (stated(loss="squared"), "loss is the text 'squared', .*: pass optrand.losses.squared"),
    (stated(loss=losses.Tabulated([[0, 1], [1, 0]])), "a tabulated loss needs outputs on a grid"),
    (stated([0, 1], loss=losses.Tabulated([[0, 1]])), r"shape \(1, 2\), expected \(2, 2\)"),
    (stated(loss=losses.zero_one), "use classification"),
    (stated(loss=losses.absolute, bias_penalty=1.0), "absolute with a bias penalty needs outputs on a grid"),
    (stated(loss=losses.poisson_log, bias_penalty=math.inf), "poisson_log with a bias penalty needs outputs"),
    (stated([0, 1], loss=losses.poisson_log), "poisson_log needs outputs above 0"),
    (stated(Interval(-1, 1), loss=losses.poisson_log), "poisson_log needs outputs above 0"),
    (lambda: regression([-1, 1], HALVES, 1.0, loss=losses.poisson_log), "labels of at least 0"),
)
def test_what_has_no_meaning_is_refused(state, message):
    assert_error(message, state)


# ---------------------------------------------------------------------------------------------- feasible if and only if
@by_case(
    "outputs, label",
    # At exp(epsilon) = 3 the labels 0, 1, 2 need outputs from -1 to 3.
    ([-0.9, 1, 3], "lowest label, 0"),
    ([-1, 1, 2.9], "highest label, 2"),
    ([1.0], "lowest label, 0"),
    (Interval(-0.9, 4), "lowest label, 0"),
    (Interval(-2, 2.9), "highest label, 2"),
)
def test_outputs_that_cannot_be_unbiased_name_the_label_and_the_range(outputs, label):
    with pytest.raises(Infeasible, match=f"the {label}, cannot be unbiased") as caught:
        unbiased_regression([0, 1, 2], [0.2, 0.3, 0.5], LOG3, outputs=outputs)
    low, high = unbiased_range([0, 1, 2], LOG3)
    assert f"outputs that reach from {low!r} to {high!r} or further would do" in str(caught.value)
    assert (low, high) == pytest.approx((-1.0, 3.0))
    # And they do.
    unbiased_regression([0, 1, 2], [0.2, 0.3, 0.5], LOG3, outputs=[low, high])
    unbiased_regression([0, 1, 2], [0.2, 0.3, 0.5], LOG3, outputs=Interval(low, high))


@given(label_sets(2, 6), st.floats(0.01, 8.0))
def test_two_ends_are_unbiased_and_private_exactly_from_the_range_on(labels, epsilon):
    low, high = unbiased_range(labels, epsilon)

    def ratio(start, end):
        upper = (labels - start) / (end - start)
        return max(upper.max() / upper.min(), (1 - upper).max() / (1 - upper).min())

    width = high - low
    assert ratio(low, high) == pytest.approx(math.exp(epsilon), rel=1e-9)
    assert ratio(low - 0.1 * width, high + 0.1 * width) < math.exp(epsilon)
    # From an end inside the range the coin needs more, at one label or another.
    assert ratio(low + 0.1 * (labels[0] - low), high) > math.exp(epsilon) * (1 + 1e-6)
    assert ratio(low, high - 0.1 * (high - labels[-1])) > math.exp(epsilon) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_private_table_is_unbiased_within_less(epsilon):
    """A linear program over tables that knows privacy by its definition only: every ratio within a column."""
    labels, n = np.array([0.0, 1.0, 3.0]), 12
    low, high = unbiased_range(labels, epsilon)
    for start, end, feasible in (
        (low - 1e-6, high + 1e-6, True),
        (low + 1e-3, high + 9, False),
        (low - 9, high - 1e-3, False),
    ):
        outputs = np.linspace(start, end, n)
        pairs = np.array(
            [np.eye(3)[i] - math.exp(epsilon) * np.eye(3)[j] for i in range(3) for j in range(3) if i != j]
        )
        means = np.kron(np.eye(3), np.vstack((np.ones(n), outputs)))
        answer = optimize.linprog(
            np.zeros(3 * n),
            A_ub=np.kron(pairs, np.eye(n)),
            b_ub=np.zeros(6 * n),
            A_eq=means,
            b_eq=np.column_stack((np.ones(3), labels)).ravel(),
        )
        # 2 stands for an infeasible program.
        assert answer.status == (0 if feasible else 2)


def test_at_any_budget_the_line_is_feasible():
    for epsilon in (1e-300, 1e-9, 700.0):
        assert unbiased_regression([0, 1e9], HALVES, epsilon).unbiased
    # If the range itself overflows no grid reaches far enough.
    with pytest.raises(Infeasible, match="outputs that reach from -inf to inf"):
        unbiased_regression([0, 1e9], HALVES, 1e-300, outputs=[-1e150, 1e150])


# ---------------------------------------------------------------------------------------------------------------- value
@given(st.data())
def test_the_value_is_the_definition(data):
    labels = data.draw(label_sets(1, 4))
    prior = data.draw(priors(labels.size))
    penalty = data.draw(st.sampled_from([0.0, 0.5, 3.0]))
    outputs = np.array([labels[0] - 1, labels[0] + 0.5, labels[-1] + 2.0])
    matrix = np.array(
        data.draw(st.lists(st.sampled_from([0.1, 0.5, 2.0]), min_size=3 * labels.size, max_size=3 * labels.size))
    )
    matrix = matrix.reshape(-1, 3)
    matrix /= matrix.sum(axis=1, keepdims=True)
    randomizer = Randomizer(labels, outputs, matrix, 1.0)
    problem = regression(labels, prior, 1.0, bias_penalty=penalty, outputs=outputs)
    expected = 0.0
    for y, p, row in zip(labels, prior, matrix, strict=True):
        mean = sum(q * v for q, v in zip(row, outputs, strict=True))
        expected += p * sum(q * (v - y) ** 2 / 2 for q, v in zip(row, outputs, strict=True))
        expected += p * penalty * (mean - y) ** 2 / 2
    assert problem.value(randomizer) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_tabulated_loss_is_known_on_its_grid_only():
    problem = regression([0, 1], HALVES, 1.0, loss=losses.Tabulated([[0, 1, 4], [4, 1, 0]]), outputs=[0, 1, 2])
    assert problem.loss_table(np.array([0.0, 2.0])).tolist() == [[0.0, 4.0], [4.0, 0.0]]
    for outside in ([0.5], [-1.0], [3.0]):
        assert_error("known for the values of its grid only", problem.loss_table, np.array(outside))


def test_bias_weights():
    prior = [0.25, 0.0, 0.75]
    assert regression([0, 1, 2], prior, 1.0).bias_weights.tolist() == [0.0, 0.0, 0.0]
    assert regression([0, 1, 2], prior, 1.0, bias_penalty=4.0).bias_weights.tolist() == [1.0, 0.0, 3.0]
    assert unbiased_regression([0, 1, 2], prior, 1.0).bias_weights.tolist() == [math.inf] * 3


@pytest.mark.parametrize("outputs", [None, Interval(0, 3)])
def test_a_loss_of_the_user_needs_a_grid(outputs):
    quartic = losses.Loss("quartic", lambda v, y: (v - y) ** 4, lambda v, y: ((v - y) ** 4,) * 2)
    with pytest.raises(InvalidInput, match=r"'quartic' is not one of optrand\.losses, .* needs outputs on a grid"):
        regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, loss=quartic, outputs=outputs)
    # Another loss under a known name is the user's own as well.
    renamed = losses.Loss("squared", quartic.evaluate, quartic.bracket)
    assert_error("needs outputs on a grid", regression, [0, 1, 2], [0.5, 0.3, 0.2], 1.0, loss=renamed, outputs=outputs)
    assert regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, loss=quartic, outputs=[0, 1, 2]).loss == quartic


def test_a_problem_and_its_multipliers_have_no_negative_zeros():
    problem = regression([-0.0, 1], [-0.0, 1], 1.0, loss=losses.Tabulated([[-0.0, 1], [1, 0]]), outputs=[-0.0, 1])
    dual = Dual([-0.0, 1.0], [-0.0, 0.0], -0.0)
    arrays = (problem.labels, problem.prior, problem.outputs.values, problem.loss.entries, dual.alpha, dual.beta)
    for array in (*arrays, np.array([dual.origin])):
        assert not np.signbit(array).any()
    same = regression([0.0, 1], [0.0, 1], 1.0, loss=losses.Tabulated([[0.0, 1], [1, 0]]), outputs=[0.0, 1])
    assert hash(problem) == hash(same)
    assert problem == same


def test_a_series_in_another_order_than_the_labels_is_refused():
    """As ``value_counts`` returns it: its numbers would be those of other labels, and the answer proven for these."""
    counted = pd.Series([2] * 5 + [0] * 3 + [1] * 2).value_counts(normalize=True)
    assert counted.index.tolist() == [2, 0, 1]
    calls = (
        lambda prior: unbiased_regression(range(3), prior, 1.0).prior,
        lambda prior: classification(prior, 1.0).prior,
        lambda prior: lp1(prior, 1.0).prior,
        lambda prior: optrand.rr_with_prior(prior, 1.0).prior,
        lambda prior: optrand.debiased_rr(range(3), 1.0, prior=prior).prior,
    )
    for call in calls:
        assert_error("index is not in the order of", call, counted)
        assert call(counted.sort_index()).tolist() == [0.3, 0.2, 0.5]
        assert call(pd.Series([0.3, 0.2, 0.5], index=["low", "high", "none"])).tolist() == [0.3, 0.2, 0.5]
    # Labels in any order: an index that names them in theirs is right.
    assert unbiased_regression([2, 0, 1], counted, 1.0).prior.tolist() == [0.3, 0.2, 0.5]
