"""Losses in floats and as rational brackets: each against its formula, and one against the other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import example, given
from hypothesis import strategies as st

from optrand import losses

NAMED = [losses.squared, losses.absolute, losses.poisson_log, losses.zero_one]

positive = st.floats(1e-6, 1e6)


def formula(loss, v, y):
    if loss == losses.squared:
        return (v - y) * (v - y) / 2
    if loss == losses.absolute:
        return max(v - y, y - v)
    if loss == losses.poisson_log:
        return v - y * math.log(v)
    return -1.0 if v == y else 0.0


@pytest.mark.parametrize("loss", NAMED, ids=lambda loss: loss.name)
@given(v=positive, y=st.one_of(positive, st.just(0.0)))
@example(v=3.0, y=3.0)
@example(v=1.0, y=5.0)
def test_floats_and_brackets_agree_with_the_formula(loss, v, y):
    value = float(loss.table(np.array([y]), np.array([v]))[0, 0])
    scale = v + y * (1 + abs(math.log(v)))
    if loss == losses.squared:
        scale = scale**2
    assert value == pytest.approx(formula(loss, v, y), abs=1e-15 * scale)
    low, high = loss.bracket(Fraction(v), Fraction(y))
    assert low <= high
    assert float(high - low) <= 1e-50 * scale
    assert float(low) - 1e-15 * scale <= value <= float(high) + 1e-15 * scale
    assert (low == high) == (loss != losses.poisson_log or v == 1.0 or y == 0.0)


def test_tables_have_a_row_per_label():
    labels, outputs = np.array([0.0, 2.0]), np.array([1.0, 2.0, 4.0])
    assert losses.squared.table(labels, outputs).tolist() == [[0.5, 2.0, 8.0], [0.5, 0.0, 2.0]]
    assert losses.absolute.table(labels, outputs).tolist() == [[1.0, 2.0, 4.0], [1.0, 0.0, 2.0]]
    assert losses.zero_one.table(labels, outputs).tolist() == [[0.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
    # The label 0 costs v itself, however close v is to 0.
    assert losses.poisson_log.table(np.array([0.0]), np.array([1e-300])).tolist() == [[1e-300]]


@pytest.mark.parametrize("entries", [[0.0, 1.0], [[0.0, math.nan]], [[math.inf]], [[[0.0]]]])
def test_a_table_must_be_a_finite_matrix(entries):
    assert_error("finite matrix", losses.Tabulated, entries)


def test_a_table_is_a_value():
    given_entries = np.array([[0.0, 1.0], [1.0, 0.0]])
    table = losses.Tabulated(given_entries)
    given_entries[0, 0] = 9.0
    assert table == losses.Tabulated([[0, 1], [1, 0]])
    assert hash(table) == hash(losses.Tabulated([[0, 1], [1, 0]]))
    assert table != losses.Tabulated([[0, 1], [1, 2]])
    assert table != losses.squared
    with pytest.raises(ValueError, match="read-only"):
        table.entries[0, 0] = 1.0
    assert_error(r"shape \(2, 2\), expected \(2, 3\)", table.table, np.zeros(2), np.zeros(3))
