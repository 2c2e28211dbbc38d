"""Brackets of exp and log, which decimal computes, against balls of Arb, and the ratio built on them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from flint import arb, ctx, fmpq
from hypothesis import example, given
from hypothesis import strategies as st

from optrand.base._arithmetic import (
    DIGITS,
    decimal_value,
    exp_bracket,
    float_above,
    float_below,
    log_above,
    log_bracket,
    places,
    privacy_ratio,
    quotient,
    scale_to_integers,
)

EPSILONS = [1e-300, 1e-100, 1e-20, 1e-16, 1e-9, 1.0000001e-9, 1e-6, 0.01, 0.1, math.log(2), 1.0, 2.5, 8.0]
EPSILONS += [17.0, 36.7, 40.0, 100.0, 345.6, 699.99, 700.0]

budgets = st.one_of(st.floats(1e-12, 700.0), st.floats(-300, 2.8).map(lambda x: 10.0**x))
positive_rationals = st.one_of(
    st.fractions(Fraction(1, 10**6), 10**6).filter(bool),
    st.tuples(st.integers(1, 2**70), st.integers(1, 2**70)).map(lambda pair: Fraction(*pair)),
    st.integers(1, 2**80).map(lambda n: 1 + Fraction(1, n)),
    st.integers(2, 2**80).map(lambda n: 1 - Fraction(1, n)),
)


def exp_around(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around ``exp(x)``: the ends of a ball of Arb, of far more digits than the 60 of the brackets."""
    with ctx.workprec(2000):
        ball = arb(fmpq(*x.as_integer_ratio())).exp()
        low, high = (end.man_exp() for end in (ball.lower(), ball.upper()))
    return Fraction(int(low[0])) * Fraction(2) ** int(low[1]), Fraction(int(high[0])) * Fraction(2) ** int(high[1])


def test_the_balls_agree_with_known_digits():
    low, high = exp_around(Fraction(1))
    e = Fraction("2.71828182845904523536028747135266249775724709369995957496696762772407663035354759457138217")
    assert low - Fraction(1, 10**89) < e < high + Fraction(1, 10**89)
    assert high - low < Fraction(1, 10**300)


@pytest.mark.parametrize("x", [*EPSILONS, 0.0, -1e-300, -0.5, -1.0, -40.0, -700.0])
@pytest.mark.parametrize("digits", [DIGITS, 2 * DIGITS])
def test_exp_bracket_holds_exp_strictly_and_tightly(x, digits):
    low, high = exp_bracket(x, digits)
    below, above = exp_around(Fraction(x))
    assert low < below
    assert above < high
    assert high - low <= Fraction(1, 10 ** (digits - 2)) * low


@given(positive_rationals)
@example(Fraction(1))
@example(Fraction(2))
@example(1 + Fraction(1, 2**200))
@example(Fraction(10**400 + 1, 3))
def test_log_bracket_holds_log_tightly(x):
    low, high = log_bracket(x)
    assert low <= high
    if x == 1:
        assert low == high == 0
        return
    assert exp_around(low)[1] < x < exp_around(high)[0]
    # Relative to the logarithm itself, also if x is next to 1 and its logarithm next to 0.
    assert high - low <= Fraction(1, 10**50) * max(abs(low), abs(high))


@pytest.mark.parametrize("x", [Fraction(0), Fraction(-1), Fraction(-1, 10**9)])
def test_there_is_no_logarithm_of_what_is_not_positive(x):
    assert_error("positive", log_bracket, x)


@given(budgets)
@example(1e-300)
@example(700.0)
@example(math.log(2))
def test_the_ratio_is_below_exp_and_hardly_below(epsilon):
    ratio = privacy_ratio(epsilon)
    low, high = exp_around(min(Fraction(epsilon), decimal_value(epsilon)))
    assert 1 < ratio <= low
    assert (high - ratio) * 2**50 <= low - 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ratio_is_a_short_number_and_rises_with_the_budget(epsilon):
    excess = privacy_ratio(epsilon) - 1
    denominator, numerator = excess.denominator, excess.numerator
    assert denominator & (denominator - 1) == 0
    assert (numerator // (numerator & -numerator)).bit_length() <= 54
    assert excess + 1 <= privacy_ratio(min(700.0, epsilon * (1 + 1e-14)))
    assert excess + 1 < privacy_ratio(epsilon * 1.01)


@given(budgets)
@example(1e-300)
@example(700.0)
def test_the_realised_budget_of_the_ratio_is_never_above_the_one_asked(epsilon):
    realised = log_above(privacy_ratio(epsilon))
    assert epsilon * (1 - 1e-12) <= realised <= epsilon


@given(st.fractions(1, 10**9))
@example(Fraction(1))
@example(Fraction(10**303))
def test_log_above_is_the_least_float_above_that_is_so_as_a_decimal_too(x):
    y = log_above(x)
    assert exp_around(Fraction(y))[1] >= x
    assert exp_around(decimal_value(y))[1] >= x
    if x > 1:
        below = math.nextafter(y, -math.inf)
        assert exp_around(min(Fraction(below), decimal_value(below)))[0] < x


@given(st.fractions())
@example(Fraction(1, 3))
@example(Fraction(-1, 3))
@example(Fraction(10**400))
@example(Fraction(-(10**400)))
@example(Fraction(1, 10**400))
@example(Fraction(-1, 10**400))
@example(Fraction(0.1))
def test_floats_on_either_side(x):
    assert math.copysign(1.0, float_above(Fraction(0))) == 1.0
    # That above is the mirror of that below.
    for number, below in ((x, float_below(x)), (-x, -float_above(x))):
        if math.isfinite(below):
            larger = math.nextafter(below, math.inf)
            assert Fraction(below) <= number
            assert larger == math.inf or Fraction(larger) > number
        else:
            assert number < -Fraction(math.nextafter(math.inf, 0))


@given(st.lists(st.floats(-1e6, 1e6), max_size=6))
@example([])
@example([0.1, 0.5])
@example([5e-324])
def test_the_scale_of_places_is_the_least_that_makes_integers(numbers):
    scale = 1 << places(np.array(numbers, dtype=float))
    assert scale & (scale - 1) == 0
    assert all((Fraction(x) * scale).denominator == 1 for x in numbers)
    assert scale == 1 or any((Fraction(x) * scale / 2).denominator == 2 for x in numbers)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.integers(0, 70))
@example([5e-324, -1.7e308, 0.0, -0.0, 2.0**53 - 1, 0.1, 2.2250738585072014e-308], 0)
def test_scaled_floats_are_integers_without_a_rounding(numbers, more):
    digits = places(np.array(numbers)) + more
    found = scale_to_integers(np.array(numbers), digits)
    assert [Fraction(n, 2**digits) for n in found] == [Fraction(x) for x in numbers]
    assert all(type(n) is int for n in found)


def test_quotients_beyond_floats_are_infinite():
    assert (quotient(1, 3), quotient(-(10**400), 3)) == (1 / 3, -math.inf)
    assert (quotient(10**400, 3), quotient(-(10**400), -3)) == (math.inf, math.inf)
    assert quotient(1, 10**400) == 0.0
