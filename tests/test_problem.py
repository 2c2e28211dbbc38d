"""What a problem is: sorted, checked, its value by the definition, and refused where it cannot mean anything."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import label_sets, priors
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from optrand import Grid, Interval, Randomizer, classification, losses, regression, unbiased_regression
from optrand.errors import Infeasible, InvalidInput
from optrand.model.outputs import Line
from optrand.model.problem import Problem, unbiased_range

LOG3 = math.log(3)
HALVES = [0.5, 0.5]


# ------------------------------------------------------------------------------------------------------- construction


def test_labels_are_sorted_and_the_prior_with_them():
    problem = regression([3, -1, 2], [0.5, 0.3, 0.2], 1.0)
    assert problem.labels.tolist() == [-1.0, 2.0, 3.0]
    assert problem.prior.tolist() == [0.3, 0.2, 0.5]
    assert problem.k == 3


def test_the_constructor_itself_does_not_sort():
    with pytest.raises(InvalidInput, match="use the constructors, which sort them with the prior"):
        Problem([1, 0], HALVES, 1.0, losses.squared, 0.0, Line())


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
        labels[rows],
        prior[rows],
        1.0,
        loss=losses.Tabulated(table[rows][:, columns]),
        outputs=outputs[columns],
    )
    assert shuffled == plain
    assert hash(shuffled) == hash(plain)
    assert regression(labels[rows], prior[rows], 1.0) == regression(labels, prior, 1.0)


def test_columns_of_a_tabulated_loss_follow_a_grid_in_its_own_order():
    table = [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]
    as_grid = regression([0, 1], HALVES, 1.0, loss=losses.Tabulated(table), outputs=Grid([2, 0, 1]))
    as_list = regression([0, 1], HALVES, 1.0, loss=losses.Tabulated(table), outputs=[2, 0, 1])
    assert as_grid.loss_table(np.array([0.0, 1.0, 2.0])).tolist() == table
    assert as_list.loss_table(np.array([2.0, 0.0, 1.0])).tolist() == table


def test_outputs_default_to_the_line_and_an_array_is_a_grid():
    assert regression([0, 1], HALVES, 1.0).outputs == Line()
    assert regression([0, 1], HALVES, 1.0, outputs=[3, 1]).outputs == Grid([1, 3])
    box = Interval(-3, 4)
    assert regression([0, 1], HALVES, 1.0, outputs=box).outputs is box


def test_classification_is_over_its_own_labels():
    problem = classification([0.5, 0.3, 0.2], 1.0, labels=[7, 3, 5])
    assert problem.labels.tolist() == [3.0, 5.0, 7.0]
    assert problem.prior.tolist() == [0.3, 0.2, 0.5]
    assert problem.outputs == Grid([3, 5, 7])
    assert problem.sign == -1.0
    assert classification([1.0], 1.0).labels.tolist() == [0.0]


def test_equality_looks_at_every_part():
    base = regression([0, 1], HALVES, 1.0, outputs=[0, 1, 2])
    others = [
        replace(base, labels=[0, 2]),
        replace(base, prior=[0.25, 0.75]),
        replace(base, epsilon=1.5),
        replace(base, loss=losses.absolute),
        replace(base, bias_penalty=0.5),
        replace(base, outputs=Grid([0, 1, 3])),
        replace(base, outputs=Line()),
    ]
    assert base == regression([1, 0], HALVES, 1.0, outputs=[2, 1, 0])
    assert all(base != other for other in others)
    assert base != "a problem"


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (-1.0, "bias_penalty is -1.0, expected a number from 0 to math.inf"),
        (math.nan, "bias_penalty is nan"),
        (-math.inf, "bias_penalty is -inf"),
        (True, "bias_penalty is of type bool"),
        ("inf", "bias_penalty is of type str"),
    ],
)
def test_a_penalty_without_meaning_is_refused(penalty, message):
    with pytest.raises(InvalidInput, match=message):
        regression([0, 1], HALVES, 1.0, bias_penalty=penalty)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([0, 1, 1], "outputs repeats 1 value"),
        ([0.0, -0.0], "outputs repeats 1 value"),
        ([], "outputs is empty"),
        ([0, math.inf], "outputs holds NaN or infinite values"),
        ([math.nan], "outputs holds NaN or infinite values"),
        ([[0, 1]], "outputs has 2 dimensions"),
        (["0", "1"], "outputs holds values of type"),
        (3.0, "outputs has 0 dimensions"),
        ([0, 1e151], "outputs reach beyond 1e\\+150, where the square of a float overflows"),
    ],
)
def test_a_grid_without_meaning_is_refused(outputs, message):
    with pytest.raises(InvalidInput, match=message):
        regression([0, 1], HALVES, 1.0, outputs=outputs)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ((1, 1), "the interval from 1 to 1 is empty"),
        ((2, 1), "the interval from 2 to 1 is empty: its low end must be lower"),
        ((math.nan, 1), "the interval's low end is nan"),
        ((0, math.inf), "the interval's high end is inf"),
        ((True, 2), "the interval's low end is of type bool"),
        (("0", 2), "the interval's low end is of type str"),
        ((-1e200, 2), "the interval's ends reach beyond 1e\\+150"),
    ],
)
def test_an_interval_without_meaning_is_refused(ends, message):
    with pytest.raises(InvalidInput, match=message):
        Interval(*ends)


def test_a_line_has_no_ends():
    with pytest.raises(InvalidInput, match="use Interval"):
        Line(0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "squared"}, "loss is the text 'squared', .*: pass optrand.losses.squared"),
        ({"loss": losses.Tabulated([[0, 1], [1, 0]])}, "a tabulated loss needs outputs on a grid"),
        ({"loss": losses.Tabulated([[0, 1]]), "outputs": [0, 1]}, r"shape \(1, 2\), expected \(2, 2\)"),
        ({"loss": losses.Tabulated([[0], [1]]), "outputs": [0, 1]}, r"shape \(2, 1\), expected \(2, 2\)"),
        ({"loss": losses.zero_one}, "use classification"),
        ({"loss": losses.zero_one, "outputs": [0, 1], "bias_penalty": 1.0}, "use classification"),
        ({"loss": losses.absolute, "bias_penalty": 1.0}, "absolute with a bias penalty needs outputs on a grid"),
        ({"loss": losses.poisson_log, "bias_penalty": math.inf}, "poisson_log with a bias penalty needs outputs"),
        ({"loss": losses.poisson_log, "outputs": [0, 1]}, "poisson_log needs outputs above 0"),
        ({"loss": losses.poisson_log, "outputs": Interval(-1, 1)}, "poisson_log needs outputs above 0"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        regression([0, 1], HALVES, 1.0, **arguments)


def test_poisson_log_loss_needs_labels_of_at_least_zero():
    with pytest.raises(InvalidInput, match="labels of at least 0"):
        regression([-1, 1], HALVES, 1.0, loss=losses.poisson_log)


def test_the_constructor_refuses_what_is_no_output_set():
    with pytest.raises(InvalidInput, match="outputs is of type list, expected Line, Interval or Grid"):
        Problem([0, 1], HALVES, 1.0, losses.squared, 0.0, [0.0, 1.0])


# ---------------------------------------------------------------------------------------------- feasible if and only if


@pytest.mark.parametrize(
    ("outputs", "label"),
    [
        # At exp(epsilon) = 3 the labels 0, 1, 2 need outputs from -1 to 3.
        ([-0.9, 1, 3], "lowest label, 0"),
        ([-1, 1, 2.9], "highest label, 2"),
        ([1.0], "lowest label, 0"),
        (Interval(-0.9, 4), "lowest label, 0"),
        (Interval(-2, 2.9), "highest label, 2"),
    ],
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


def test_one_label_is_unbiased_wherever_the_outputs_are_around_it():
    unbiased_regression([3], [1.0], 1.0, outputs=[3.0])
    unbiased_regression([3], [1.0], 1.0, outputs=[2.0, 5.0])
    with pytest.raises(Infeasible, match="the highest label, 3, cannot be unbiased"):
        unbiased_regression([3], [1.0], 1.0, outputs=[1.0, 2.0])


def test_at_any_budget_the_line_is_feasible():
    for epsilon in (1e-300, 1e-9, 700.0):
        assert unbiased_regression([0, 1e9], HALVES, epsilon).unbiased
    # Where the range itself overflows no grid reaches far enough.
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


def test_the_value_of_a_classification_is_the_probability_of_a_correct_output():
    problem = classification([0.5, 0.3, 0.2], 1.0)
    matrix = [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    value = problem.value(Randomizer([0, 1, 2], [0, 1, 2], matrix, 5.0))
    assert value == pytest.approx(0.5 * 0.6 + 0.3 * 0.8 + 0.2 * 0.4)


def test_a_tabulated_loss_is_known_on_its_grid_only():
    problem = regression([0, 1], HALVES, 1.0, loss=losses.Tabulated([[0, 1, 4], [4, 1, 0]]), outputs=[0, 1, 2])
    assert problem.loss_table(np.array([0.0, 2.0])).tolist() == [[0.0, 4.0], [4.0, 0.0]]
    for outside in ([0.5], [-1.0], [3.0]):
        with pytest.raises(InvalidInput, match="known for the values of its grid only"):
            problem.loss_table(np.array(outside))


def test_bias_weights():
    prior = [0.25, 0.0, 0.75]
    assert regression([0, 1, 2], prior, 1.0).bias_weights.tolist() == [0.0, 0.0, 0.0]
    assert regression([0, 1, 2], prior, 1.0, bias_penalty=4.0).bias_weights.tolist() == [1.0, 0.0, 3.0]
    assert unbiased_regression([0, 1, 2], prior, 1.0).bias_weights.tolist() == [math.inf] * 3
