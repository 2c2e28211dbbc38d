"""The grid of [B23] Algorithm 2: its formula, and Proposition 7 in exact arithmetic."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import example, given
from hypothesis import strategies as st

import optrand
from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.closed_forms import debiased_rr
from optrand.errors import Infeasible
from optrand.mechanism._mechanism import Mechanism
from optrand.model._meshes import feasible_output_set
from optrand.model._problem import Grid, unbiased_regression
from optrand.model._table import Table

label_sets = st.one_of(
    st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique=True),
    # Labels that are too close together are refused.
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=8, unique=True).filter(
        lambda labels: np.ptp(labels) > 1e-100
    ),
)
epsilons = st.one_of(st.sampled_from([1e-6, 0.01, 0.5, 1.0, 8.0, 40.0]), st.floats(1e-6, 40))


def two_point_chances(labels: Sequence[float], low: float, high: float) -> list[Fraction]:
    """The only probabilities of `high` that make the two ends unbiased, one per label."""
    bottom, top = Fraction(low), Fraction(high)
    return [(Fraction(float(y)) - bottom) / (top - bottom) for y in labels]


@given(label_sets, epsilons)
@example([0, 1], 1e-6)
@example([0, 1], 40.0)
@example([0.1, 0.3], 1.0)
@example([1e9, 1e9 + 1], 0.5)
def test_the_two_ends_alone_are_enough(labels: list[float], epsilon: float) -> None:
    # [B23], Proposition 7, for the rational ratio that a mechanism keeps. At two labels rounding may lose nothing.
    ratio, grid = privacy_ratio(epsilon), feasible_output_set(labels, epsilon, 2)
    chances = two_point_chances(labels, grid.low, grid.high)
    for column in (chances, [1 - c for c in chances]):
        assert min(column) > 0
        assert max(column) <= ratio * min(column)


@given(label_sets, st.floats(0.001, 40), st.integers(2, 50))
def test_the_values_are_as_printed_and_rounded_outward(labels: list[float], epsilon: float, n: int) -> None:
    # [B23], Algorithm 2, with exp(epsilon) to 60 digits.
    ratio, k = exp_bracket(epsilon)[1], len(labels)
    exact = [Fraction(float(y)) for y in labels]
    low, high = (((ratio + k - 1) * y - sum(exact)) / (ratio - 1) for y in (min(exact), max(exact)))
    grid = feasible_output_set(labels, epsilon, n)
    assert Fraction(grid.low) <= low < high <= Fraction(grid.high)
    assert grid.values.size == n
    expected = [float(low + i * (high - low) / (n - 1)) for i in range(n)]
    np.testing.assert_allclose(grid.values, expected, rtol=0, atol=1e-14 * float(max(abs(low), abs(high))))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("labels", [[0, 1], range(5), [-3, 0.1, 7, 1000]])
def test_a_problem_takes_the_grid_and_would_not_take_a_shorter_one(labels: Sequence[float], epsilon: float) -> None:
    grid = feasible_output_set(labels, epsilon, 2)
    prior = np.full(len(labels), 1 / len(labels))
    problem = unbiased_regression(labels, prior, epsilon, outputs=grid)
    chances = two_point_chances(labels, grid.low, grid.high)
    unit = math.lcm(*(c.denominator for c in chances))
    ends = Table.of_rows(labels, grid.values, [[int(unit * (1 - c)), int(unit * c)] for c in chances])
    assert Mechanism(problem, ends).certificate.findings == ()
    if len(labels) == 2:
        shorter = grid.values - 1e-3 * np.array([-1, 1]) * (grid.high - problem.labels[-1])
        assert_error(None, unbiased_regression, labels, prior, epsilon, outputs=Grid(shorter), error=Infeasible)


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=30, unique=True), st.floats(0.01, 20))
def test_the_ends_are_those_of_debiased_rr(labels: list[int], epsilon: float) -> None:
    grid, outputs = feasible_output_set(labels, epsilon, 2), debiased_rr(labels, epsilon).outputs
    scale = 1e-13 * float(np.abs(outputs).max())
    assert grid.values.tolist() == pytest.approx(outputs[[0, -1]].tolist(), abs=scale)


def test_one_label_is_its_own_grid() -> None:
    assert feasible_output_set([3.5], 1.0, 7) == Grid([3.5])  # type: ignore[arg-type]


@by_case(
    "labels, epsilon, n, message",
    ([], 1.0, 4, "labels is empty"),
    ([0, 1], 0.0, 4, "epsilon"),
    ([-1e308, 1e308], 1.0, 4, "overflows"),
    ([0, 1e305], 1e-9, 4, "overflows"),
    ([1.0, 1.0 + 2**-50], 1.0, 100, "choose fewer"),
    *(([0, 1], 1.0, n, "n is") for n in (1, 0, -3, 2.0, True, "3", math.nan)),
)
def test_arguments_without_meaning_are_refused(labels: list[float], epsilon: float, n: object, message: str) -> None:
    assert_error(message, feasible_output_set, labels, epsilon, n)


@pytest.mark.parametrize("scale", [1e-275, 1e-12, 1.0, 1e12])
@pytest.mark.parametrize("rows", [[[0, 1]], [[0, 1], [0, 1]], [[1, 0, 1], [2, 0, 1]]])
def test_an_output_that_loses_nothing_is_found_whatever_the_unit_of_the_loss(rows, scale):
    entries = scale * np.array(rows, dtype=float)
    k, n = entries.shape
    loss, grid = optrand.losses.Tabulated(entries), optrand.Grid(np.arange(n))
    mechanism = optrand.solve(optrand.regression(range(k), np.full(k, 1 / k), 0.01, loss=loss, outputs=grid))
    assert (mechanism.value, mechanism.certificate.upper) == (0, 0)
