"""Completed tables: rows, means and privacy from their definitions, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand import Interval, Mechanism, Randomizer, certify, regression, solve, tabulate, unbiased_regression
from optrand.certificates.exact_loss import _evened
from optrand.mechanism.completion import Completion

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
        assert found.kept + u + w == 1
        assert found.kept * mean + u * Fraction(found.low) + w * Fraction(found.high) == y
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
    assert exact.at_high == [Fraction(1, 4), Fraction(3, 4)]


def test_monotone_chances_are_sums_of_intervals() -> None:
    labels = [Fraction(0), Fraction(1, 10**6), Fraction(1)]
    means = [Fraction(0), Fraction(1, 10**6) + Fraction(1, 10**4), Fraction(1)]
    free, bound = (Completion.of(LINE, labels, means, Fraction(3), monotone=flag) for flag in (False, True))
    assert free is not None
    assert bound is not None
    assert not free.is_monotone()
    assert bound.is_monotone()
    assert bound.kept < free.kept


def test_tables_in_floats_are_repaired_and_their_dual_has_no_say() -> None:
    """Rows off by rounding, a ratio beyond the budget by less than the tolerance, means off by less than it."""
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=Interval(-3, 5))
    rng = np.random.default_rng(1)
    labels, low, high = np.arange(3.0), -2.0, 4.0
    for _ in range(20):
        chance = (labels - low) / (high - low)
        table = np.stack([1 - chance, chance], axis=1) * (1 + 1e-11 * rng.normal(size=(3, 2)))
        proof = certify(problem, Randomizer(labels, [low, high], table, 1.0))
        assert proof.findings == ()
        exact = float(
            sum(
                p * ((v - y) ** 2) * t
                for p, y, row in zip(problem.prior, labels, table, strict=True)
                for v, t in zip((low, high), row, strict=True)
            )
            / 2
        )
        assert proof.upper == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_rows_that_miss_one_are_evened_at_no_cost(epsilon: float) -> None:
    problem = regression([0, 1, 2], [0.5, 0.3, 0.2], epsilon)
    rng = np.random.default_rng(6)
    for _ in range(20):
        weights = np.where(np.eye(3, dtype=bool), math.exp(epsilon), 1.0)
        table = weights / weights[0].sum() * (1 + 1e-16 * rng.normal(size=(3, 1)))
        randomizer = Randomizer([0, 1, 2], [0, 1, 2], table, epsilon)
        proof = certify(problem, randomizer)
        assert proof.findings == ()
        # Ratios that exceed the budget by rounding cost that much of what the budget allows.
        assert proof.upper == pytest.approx(problem.value(randomizer), rel=1e-14 / min(1.0, epsilon))


def test_evened_rows_keep_every_ratio_and_the_largest_total() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        weights = rng.integers(1, 9, size=(4, 3)).astype(object)
        even = _evened(weights)
        assert set(even.sum(axis=1)) == {max(weights.sum(axis=1))}
        assert (even >= weights).all()
        assert (even.max(axis=0) == weights.max(axis=0)).all()


def test_a_mechanism_whose_outputs_were_rounded_to_floats_is_repaired_and_stays_proven() -> None:
    """As files hold them that were written before columns were split between floats."""
    problem = unbiased_regression(np.arange(9.0), np.full(9, 1 / 9), 1.0)
    mechanism = tabulate(solve(problem))
    before = Mechanism(problem, mechanism.dual, *mechanism.unsplit.rounded(), mechanism.ratio)
    assert 0 < before.bias < 1e-14
    proof = certify(before).require(gap=1e-12)
    assert proof.bias == before.bias
    assert proof.upper >= certify(mechanism).lower
    # What is off by more than outputs in floats can be is no rounding.
    moved = Mechanism(problem, mechanism.dual, before.outputs * (1 + 1e-11), before.table, before.ratio)
    assert certify(moved).findings[0].startswith("biased by up to")
