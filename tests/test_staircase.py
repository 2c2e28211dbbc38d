"""Staircase columns: every private table is a sum of them, and every sum of them is a private table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand.model._randomizer import Arcs, Randomizer, Staircase, decompose

ROUNDING = 1e-12
"""Error of an entry in floats, as a share of it."""

ratios = st.one_of(st.sampled_from([1.0 + 1e-6, 1.1, math.e, 50.0, 1e8, 1e17]), st.floats(1.01, 100.0))


@st.composite
def private_tables(draw):
    """A table whose columns stay within a ratio: not always staircases, and its rows need not sum to 1."""
    ratio = draw(ratios)
    k, n = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    height = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.9, 1.0, 1.0])
    scale = st.sampled_from([1.0, 0.3, 1e-9])
    heights = np.array(draw(st.lists(height, min_size=k * n, max_size=k * n))).reshape(k, n)
    scales = np.array(draw(st.lists(scale, min_size=n, max_size=n)))
    matrix = scales * (1 + (ratio - 1) * heights) / ratio
    return Randomizer(np.arange(k), np.arange(n), matrix, math.log(ratio)), ratio


@given(private_tables())
def test_a_private_table_is_the_sum_of_its_staircases(case):
    channel, ratio = case
    arcs = decompose(channel, ratio)
    assert (arcs.masses > 0).all()
    assert arcs.members.any(axis=0).all()
    outputs, table = arcs.table(ratio)
    assert outputs.tolist() == channel.outputs.tolist()
    loss_of_digits = ROUNDING * max(1.0, 1 / (ratio - 1))
    assert (np.abs(table - channel.matrix) <= loss_of_digits * channel.matrix.max(axis=0)).all()


def test_arcs_favour_their_labels_and_both_of_their_ends():
    arcs = Arcs(4, np.array([0, 1, 3]), np.array([3, 2, 3]), np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.3]))
    columns = Staircase.of_arcs(arcs)
    assert columns.members.T.astype(int).tolist() == [[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert np.array_equal(columns.table(2.0)[1], arcs.table(2.0)[1])
    again = columns.arcs
    assert again is not None
    assert (again.first.tolist(), again.last.tolist()) == ([0, 1, 3], [3, 2, 3])


@given(private_tables())
def test_no_column_needs_more_arcs_than_labels(case):
    channel, ratio = case
    arcs = decompose(channel, ratio)
    for output, column in zip(channel.outputs, channel.matrix.T, strict=True):
        levels = np.unique(column).size
        assert 1 <= (arcs.outputs == output).sum() <= levels


@given(
    st.integers(1, 5).flatmap(
        lambda k: st.lists(
            st.tuples(
                st.lists(st.booleans(), min_size=k, max_size=k),
                st.integers(0, 3),
                st.sampled_from([0.0, 1e-9, 0.2, 3.0]),
            ),
            min_size=1,
            max_size=6,
        )
    ),
    ratios,
)
def test_any_masses_at_all_make_a_private_table(arcs, ratio):
    members, outputs, masses = zip(*arcs, strict=True)
    staircase = Staircase(np.array(members).T, np.array(outputs, dtype=float), np.array(masses))
    values, table = staircase.table(ratio)
    assert values.tolist() == sorted(set(outputs))
    assert (table.max(axis=0) <= ratio * table.min(axis=0) * (1 + ROUNDING)).all()
    # Column by column, from the definition.
    for i, value in enumerate(values):
        for y in range(table.shape[0]):
            expected = sum(c * (ratio if s[y] else 1.0) for s, v, c in arcs if v == value)
            assert table[y, i] == pytest.approx(expected)


def test_a_column_that_breaks_the_ratio_is_lifted():
    broken = Randomizer([0, 1], [0, 1], [[1.0, 0.0], [0.4, 0.6]], 1.0)
    ratio = 3.0
    _, table = decompose(broken, ratio).table(ratio)
    # The small entries become a third of the large ones. Entries within the ratio stay.
    assert table == pytest.approx(np.array([[1.0, 0.2], [0.4, 0.6]]))


def test_levels_that_only_rounding_tells_apart_are_one():
    column = np.array([[1.0], [1.0 - 1e-15], [1 / math.e], [1 / math.e + 1e-16]])
    channel = Randomizer([0, 1, 2, 3], [0], column, 1.0)
    assert decompose(channel, math.e).masses.size > 1
    arcs = decompose(channel, math.e, negligible=1e-12)
    assert arcs.members.T.tolist() == [[True, True, False, False]]
    assert arcs.masses == pytest.approx([1 / math.e])
