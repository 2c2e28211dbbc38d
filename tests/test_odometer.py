"""Spent budgets: exact sums, maxima, and the account of every row."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st

from optrand.accounting import Odometer, Spent
from optrand.errors import OverBudget

amounts = st.fractions(min_value=0, max_value=50, max_denominator=10**6)
everything = st.builds(Spent, amounts, amounts, exact=st.booleans())


# ------------------------------------------------------------------------------------------------------------- amounts
@given(st.lists(everything, max_size=6))
def test_sums_and_maxima_are_those_of_fractions(parts):
    total, most = Spent.total(parts), Spent.most(parts)
    assert total.epsilon == sum(part.epsilon for part in parts)
    assert total.delta == sum(part.delta for part in parts)
    assert most.epsilon == max((part.epsilon for part in parts), default=0)
    assert most.delta == max((part.delta for part in parts), default=0)
    assert total.exact == most.exact == all(part.exact for part in parts)
    assert most.within(total)


@given(st.fractions(min_value=0, max_value=10**6))
def test_what_is_shown_is_at_least_what_was_spent(epsilon):
    shown = Fraction(str(Spent(epsilon)).removeprefix("epsilon "))
    assert epsilon <= shown <= epsilon * (1 + Fraction(1, 10**16))


@by_case(
    "spent, words",
    (Spent(), "epsilon 0"),
    (Spent(0.95), "epsilon 0.95"),
    (Spent(Fraction(19, 20)), "epsilon 0.95"),
    (Spent(0.1), "epsilon 0.1"),
    (Spent(0.9) + Spent(0.1), "epsilon 1"),
    (Spent(0.95) + Spent(0.05), "epsilon 1"),
    (Spent(700.0), "epsilon 700"),
    (Spent(1, 1e-9), "epsilon 1, delta 1e-9"),
    (Spent(Fraction(0.1)), "epsilon 0.10000000000000001"),
    (Spent(2, exact=False), "epsilon 2 (for real numbers only)"),
)
def test_words(spent, words):
    assert str(spent) == words


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "1", None, True, -Fraction(1, 10**9)])
def test_amounts_are_numbers_of_at_least_0(wrong):
    for use in (lambda: Spent(wrong), lambda: Spent(1, wrong)):
        assert_error(r"epsilon|delta", use)


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_exact_is_a_flag(wrong):
    assert_error("exact", Spent, 1, exact=wrong)


# ---------------------------------------------------------------------------------------------------------------- rows
@given(st.lists(st.tuples(st.sets(st.integers(0, 7)), amounts), max_size=12))
def test_each_row_pays_the_sum_of_its_charges(charges):
    odometer, expected = Odometer(8), [Fraction(0)] * 8
    for rows, amount in charges:
        odometer.charge(np.array(sorted(rows), dtype=np.int64), Spent(amount))
        for row in rows:
            expected[row] += amount
    assert [spent.epsilon for spent in odometer.of_rows(range(8))] == expected
    assert odometer.cost.epsilon == max(expected)


def test_a_budget_is_exact_and_a_refused_charge_changes_nothing():
    odometer = Odometer(3, budget=Spent(1))
    for _ in range(3):
        odometer.charge([0, 2], Spent(Fraction(1, 3)))
    before = odometer.of_rows([0, 1, 2])
    with pytest.raises(OverBudget, match="over the budget of epsilon 1: nothing was charged"):
        odometer.charge([1, 2], Spent(Fraction(1, 10**40)))
    assert_error("delta", odometer.charge, [1], Spent(0, Fraction(1, 10**40)), error=OverBudget)
    assert odometer.of_rows([0, 1, 2]) == before
    odometer.charge([1], Spent(1))
    assert odometer.cost == Spent(1)


@by_case("rows", [0, 0], [2, 1, 2], [-1], [3], [0.0], [[0]], 0, ["0"], [True], np.array([2**63], dtype=np.uint64))
def test_rows_are_distinct_places(rows):
    odometer = Odometer(3)
    assert_error("row", odometer.charge, rows, Spent(1))
    assert odometer.cost == Spent()


def test_threads_together_do_not_exceed_a_budget():
    odometer = Odometer(1, budget=Spent(5))

    def charged(_):
        try:
            odometer.charge([0], Spent(1))
        except OverBudget:
            return 0
        return 1

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(charged, range(50))) == 5


def test_memory_does_not_grow_with_the_number_of_charges():
    odometer = Odometer(3)
    for i in range(200):
        odometer.charge([i % 3], Spent(Fraction(1, i + 1)))
    assert len(odometer._known) <= 3
    assert odometer.of_rows([1])[0].epsilon == sum(Fraction(1, i + 1) for i in range(1, 200, 3))
