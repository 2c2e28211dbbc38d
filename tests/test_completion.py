"""Completed tables: rows, means and privacy from their definitions, in fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand import Interval, Mechanism, certify, regression, solve, unbiased_regression
from optrand.base._arithmetic import float_above
from optrand.mechanism._columns import Completion
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Randomizer
from optrand.studies._paths import merge_neighbours
from tests.tables import mechanism_of

LINE = (-math.inf, math.inf)
small = st.fractions(-1, 1, max_denominator=10**6)


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=6, unique=True),
    st.fractions(Fraction(11, 10), 40, max_denominator=100),
    st.integers(3, 40),
    st.data(),
)
def test_a_completed_table_is_feasible(labels, ratio, digits, data) -> None:
    labels = sorted(map(Fraction, labels))
    noise = Fraction(1, 2**digits)
    means = [y + noise * data.draw(small) for y in labels]
    found = Completion.of(LINE, labels, means, ratio)
    assert found is not None
    assert 0 <= found.kept <= 1
    for y, mean, u, w in zip(labels, means, found.at_low, found.at_high, strict=True):
        assert found.kept + Fraction(u + w, found.unit) == 1
        assert found.kept * mean + (u * Fraction(found.low) + w * Fraction(found.high)) / found.unit == y
    for chances in (found.at_low, found.at_high):
        assert min(chances) > 0
        assert max(chances) <= ratio * min(chances)


def test_the_smaller_the_error_the_more_is_kept() -> None:
    labels = [Fraction(y) for y in range(4)]
    for digits in (10, 20, 60, 200):
        means = [y + (-1) ** i * Fraction(1, 2**digits) for i, y in enumerate(labels)]
        found = Completion.of(LINE, labels, means, Fraction(2))
        assert found is not None
        assert 1 - found.kept <= Fraction(64, 2**digits)


def test_ends_without_room_are_not_completed_and_ends_at_the_limit_are_the_whole_answer() -> None:
    labels = [Fraction(0), Fraction(1)]
    off = [Fraction(1, 1000), Fraction(1)]
    assert Completion.of((-0.49, 1.5), labels, off, Fraction(3)) is None
    exact = Completion.of((-0.5, 1.5), labels, off, Fraction(3))
    assert exact is not None
    assert exact.kept == 0
    assert [Fraction(w, exact.unit) for w in exact.at_high] == [Fraction(1, 4), Fraction(3, 4)]


def test_monotone_chances_are_sums_of_intervals() -> None:
    labels = [Fraction(0), Fraction(1, 10**6), Fraction(1)]
    means = [Fraction(0), Fraction(1, 10**6) + Fraction(1, 10**4), Fraction(1)]
    free, bound = (Completion.of(LINE, labels, means, Fraction(3), monotone=flag) for flag in (False, True))
    assert free is not None
    assert bound is not None
    assert not free.is_monotone()
    assert bound.is_monotone()
    assert bound.kept < free.kept


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_rows_and_means_that_are_off_by_rounding_are_repaired_at_no_cost(epsilon: float) -> None:
    """Rows, ratios and means within the tolerance, of an unbiased coin at epsilon 1 and of randomized response."""
    rng, labels, prior = np.random.default_rng(1), np.arange(3.0), np.array([0.5, 0.3, 0.2])
    unbiased = unbiased_regression(labels, prior, 1.0, outputs=Interval(-3, 5))
    low, high = -2.0, 4.0
    for _ in range(10):
        chance = (labels - low) / (high - low)
        table = np.stack([1 - chance, chance], axis=1) * (1 + 1e-11 * rng.normal(size=(3, 2)))
        coin = tabulate(Solution(unbiased, Randomizer(labels, [low, high], table, 1.0)))
        assert coin.bias == 0
        squares = (np.array([low, high]) - labels[:, np.newaxis]) ** 2
        assert coin.value == pytest.approx(float(prior @ (squares * table).sum(axis=1)) / 2, rel=1e-8)
        weights = np.where(np.eye(3, dtype=bool), math.exp(epsilon), 1.0)
        table = weights / weights[0].sum() * (1 + 1e-16 * rng.normal(size=(3, 1)))
        problem, randomizer = regression(labels, prior, epsilon), Randomizer(labels, labels, table, epsilon)
        # Ratios that exceed the budget by rounding cost that much of the budget.
        assert tabulate(Solution(problem, randomizer)).value == pytest.approx(
            problem.value(randomizer), rel=1e-14 / min(1.0, epsilon)
        )


def test_a_mechanism_of_rounded_outputs_is_biased_and_is_not_certified_as_another() -> None:
    """Outputs at the nearest floats miss their means by roundings, and the certificate has no other table to state."""
    problem = unbiased_regression(np.arange(9.0), np.full(9, 1 / 9), 1.0)
    mechanism = solve(problem)
    rounded = mechanism_of(problem, mechanism.dual, *merge_neighbours(mechanism), mechanism.ratio)
    assert 0 < rounded.bias < 1e-14
    proof = certify(rounded)
    assert proof.bias == rounded.bias
    assert proof.findings[0].startswith("biased by up to")
    assert proof.upper == math.inf
    # Tabulated, it is unbiased, and has the loss of the optimum.
    again = certify(tabulate(Solution(problem, rounded.randomizer, mechanism.dual))).require(gap=1e-12)
    assert again.bias == 0
    # If bias is free the same table is certified at its own loss.
    free = regression(problem.labels, problem.prior, 1.0)
    exact = sum(Fraction(p) * x for p, x in zip(free.prior.tolist(), rounded.table.losses(), strict=True))
    assert Mechanism(free, rounded.table).value == float_above(exact)
