"""Exact moments: means that are right to the last bit, whatever the masses, and columns split between two floats."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flows import arcs_of, forward, mixed
from hypothesis import given
from hypothesis import strategies as st

import optrand
from optrand import Interval
from optrand.base.arithmetic import privacy_ratio
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.exact_means import along_a_tree, columns_near, with_exact_means
from optrand.mechanism.flow_tabulation import exact_flow, rounded_flow
from optrand.mechanism.paths import merge_neighbours
from optrand.mechanism.tabulation import tabulate
from optrand.model.arcs import Arcs, IntegerArcs
from optrand.model.exact_columns import ExactColumns
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.solvers import design
from tests.tables import mechanism_of


def rows_of(flow: ExactColumns) -> list[list[Fraction]]:
    """The table of probabilities, a column for each interval column, from the definition."""
    weights = [
        [
            mass * (flow.ratio if a <= y <= b else 1)
            for a, b, mass in zip(flow.first, flow.last, flow.masses, strict=True)
        ]
        for y in range(flow.k)
    ]
    return [[weight / sum(row) for weight in row] for row in weights]


def means_of(flow: ExactColumns) -> list[Fraction]:
    return [sum(p * v for p, v in zip(row, flow.outputs, strict=True)) for row in rows_of(flow)]


def rough(problem: Problem, arcs: Arcs) -> ExactColumns:
    """Integer masses, and outputs as biased as they are."""
    outputs, flow = rounded_flow(problem.epsilon, arcs)
    ends = flow.first.tolist(), flow.last.tolist(), flow.masses.tolist()
    return columns_near(problem, *ends, outputs[flow.at], privacy_ratio(problem.epsilon))


@pytest.mark.parametrize("columns", [forward, mixed], ids=["forward", "nested"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0, 20.0])
def test_moments_along_a_tree_make_all_means_right(columns, epsilon) -> None:
    rng = np.random.default_rng(3)
    for k in (1, 2, 3, 7, 20):
        labels = np.cumsum(rng.exponential(size=k)) - 2
        problem = optrand.unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon)
        shape = columns(rng, k) if columns is forward else columns(rng, k, 4)
        near = rough(problem, arcs_of(problem, shape))
        assert k == 1 or any(near.biases)
        everything = along_a_tree(problem, near, [True] * len(near.first))
        if columns is forward:
            assert everything is not None
        for flow in filter(None, (everything, with_exact_means(problem, near))):
            assert means_of(flow) == [Fraction(y) for y in labels.tolist()]
            assert not any(flow.biases)
            assert all(mass > 0 for mass in flow.masses)
            assert len({sum(row) for row in rows_of(flow)}) == 1


def test_biases_that_are_rounding_cost_nothing_to_speak_of() -> None:
    problem = optrand.unbiased_regression(np.arange(53.0), np.full(53, 1 / 53), 1.0)
    solution = design(problem)
    assert solution.randomizer.arcs is not None
    flow = exact_flow(problem, solution.randomizer.arcs)
    assert float(flow.squared_error(problem.prior) / 2) == pytest.approx(solution.value, rel=1e-14)


@pytest.mark.parametrize("room", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_ends_of_an_interval_stay_and_means_are_right(epsilon: float, room: float) -> None:
    rng = np.random.default_rng(8)
    labels = np.cumsum(rng.exponential(size=9))
    low, high = optrand.unbiased_range(labels, epsilon)
    box = Interval(low - room * (high - low), high + room * (high - low))
    problem = optrand.unbiased_regression(labels, rng.dirichlet(np.ones(9)), epsilon, outputs=box)
    mechanism = optrand.solve(problem)
    assert not any(mechanism.exact_biases)
    assert box.low <= mechanism.outputs[0] <= mechanism.outputs[-1] <= box.high


def test_outputs_that_leave_no_room_are_refused() -> None:
    low, high = optrand.unbiased_range([0, 1, 2], 1.0)
    short = Interval(math.nextafter(low, 0), math.nextafter(high, 0))
    problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=short)
    with pytest.raises(NotCertified, match="leave no room"):
        optrand.solve(problem)
    ends = Arcs(
        3, [0, 0, 1, 2], [0, 1, 2, 2], [short.low, short.low, short.high, short.high], np.full(4, 1 / (2 + 2 * math.e))
    )
    with pytest.raises(NotCertified, match="leave no room to take it out; let them reach a little further"):
        tabulate(problem, Randomizer.of_arcs([0, 1, 2], ends, 1.0))


outputs_of_columns = st.lists(
    st.fractions(-(10**6), 10**6, max_denominator=10**12), min_size=2, max_size=5, unique=True
)


@given(outputs_of_columns, st.sampled_from([Fraction(3), Fraction(3, 2), Fraction(10**9 + 1, 10**9)]))
def test_a_split_column_keeps_privacy_and_means(values, ratio) -> None:
    """Columns [0], [1], [0, 1] ... of any rational outputs, from the definition of Proposition 17."""
    k, n = 2, len(values)
    first, last = [j % 2 for j in range(n)], [1 - (j % 3 == 0 and j % 2 == 0) for j in range(n)]
    last = [max(a, b) for a, b in zip(first, last, strict=True)]
    digits = 80
    masses = [v.denominator for v in values]
    moments = [v.numerator << digits for v in values]
    flow = ExactColumns([0, 1 << digits], first, last, masses, moments, ratio, digits, 0.0)
    assert flow.outputs == values
    outputs, arcs = flow.in_floats()
    assert (np.diff(outputs) > 0).all()
    table = arcs.table(ratio).tolist()
    # Without equal coverage rows have totals of their own; column by column the split is the same for all labels.
    for y in range(k):
        weights = [mass * (ratio if a <= y <= b else 1) for a, b, mass in zip(first, last, masses, strict=True)]
        total = Fraction(sum(table[y])) / ratio.denominator
        scale = total / sum(weights)
        assert sum(w * Fraction(v) for w, v in zip(table[y], outputs.tolist(), strict=True)) == scale * (
            ratio.denominator * sum(w * v for w, v in zip(weights, values, strict=True))
        )
    for column in zip(*table, strict=True):
        assert max(column) <= ratio * min(column)
    for v in values:
        nearest = float(v)
        other = math.nextafter(nearest, math.inf if v > Fraction(nearest) else -math.inf)
        assert {nearest, other if Fraction(nearest) != v else nearest} <= set(outputs.tolist())


def test_pairs_of_neighbouring_floats_are_merged_and_nothing_else() -> None:
    problem = optrand.regression([0.0], [1.0], 1.0)
    ones = [0.0, math.nextafter(1, 0), 1.0, math.nextafter(1, 2), 1 + 2**-51, 1 + 2**-50]
    arcs = IntegerArcs(1, [0] * 6, [0] * 6, [0, 1, 2, 3, 4, 5], [1, 1, 2, 3, 3, 4])
    outputs, merged = merge_neighbours(mechanism_of(problem, None, ones, arcs, Fraction(2)))
    assert outputs.tolist() == [0.0, 1.0, math.nextafter(1, 2), 1 + 2**-50], "chains are not"
    assert merged.masses.tolist() == [1, 3, 6, 4]
    pair = [1.0, math.nextafter(1, 2)]
    line, grid = (optrand.regression([0.0, 1.0], [0.5, 0.5], 1.0, outputs=outputs) for outputs in (None, pair))
    for asked, arcs in (
        (line, IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])),
        (grid, IntegerArcs(2, [0, 0], [1, 1], [0, 1], [1, 1])),
    ):
        kept = merge_neighbours(mechanism_of(asked, None, pair, arcs, Fraction(2)))[0]
        assert kept.tolist() == pair, "columns of other intervals, and values of grids"
    # Of no intervals at a ratio below 4.
    three = optrand.regression([0.0, 1.0, 2.0], [0.5, 0.25, 0.25], 1.0)
    table = mechanism_of(three, None, [0.0, 1.0], [[5, 2], [2, 5], [5, 2]])
    with pytest.raises(InvalidInput, match="is a table"):
        merge_neighbours(table)


def test_squares_are_rounded_up_by_next_to_nothing() -> None:
    flow = ExactColumns([0], [0, 0], [0, 0], [3, 1], [1, 0], Fraction(2), 0, 0.0)
    exact = Fraction(3, 4) * Fraction(1, 9)
    assert exact < flow.squared_error(np.ones(1)) <= exact + Fraction(1, 2**120)
    assert flow.squared_errors() == [flow.squared_error(np.ones(1))]
