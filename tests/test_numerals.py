"""Numerals that are rounded in a stated direction."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from asserting import by_case
from hypothesis import example, given
from hypothesis import strategies as st

from optrand.base._numerals import format_above, format_below, format_closely, format_spent

FINITE = st.floats(allow_nan=False, allow_infinity=False)
DIGITS = st.integers(1, 40)


def _digits(numeral: str) -> int:
    return len(Decimal(numeral).normalize().as_tuple().digits)


def _unit(numeral: str, digits: int) -> Fraction:
    """One in the last place that `digits` digits reach."""
    return Fraction(10) ** (Decimal(numeral).adjusted() - digits + 1)


@given(FINITE, DIGITS)
@example(5e-324, 1)
@example(-5e-324, 20)
@example(1.7976931348623157e308, 2)
@example(0.0999, 2)
@example(-0.0999, 2)
def test_a_numeral_is_on_its_side_and_as_near_as_its_digits_allow(x, digits):
    below, above = format_below(x, digits), format_above(x, digits)
    assert Fraction(below) <= Fraction(x) <= Fraction(above)
    assert not format_below(abs(x), digits).startswith("-")
    assert max(_digits(below), _digits(above)) <= digits
    if Fraction(below) != Fraction(x):
        # One step towards x passes it. At a power of ten the step is that of the side on which x lies.
        assert Fraction(x) < Fraction(below) + _unit(above if x < 0 else below, digits)
        assert Fraction(above) - _unit(above if x < 0 else below, digits) < Fraction(x)
        assert Fraction(below) < Fraction(x) < Fraction(above)


@given(FINITE.filter(bool), st.integers(1, 17))
def test_the_look_is_that_of_format_and_the_nearest_is_one_of_the_two(x, digits):
    assert f"{x:.{digits}g}" in {format_below(x, digits), format_above(x, digits)}


@given(FINITE, DIGITS)
def test_one_direction_is_the_mirror_of_the_other(x, digits):
    mirrored = format_above(-x, digits)
    assert format_below(x, digits) == (mirrored[1:] if mirrored.startswith("-") else f"-{mirrored}" if x else "0")


@given(FINITE)
@example(0.1)
@example(0.3)
@example(9007199254740993.0)
def test_without_digits_a_numeral_reads_back_and_none_shorter_does(x):
    for shown in (format_below, format_above):
        numeral = shown(x)
        assert float(numeral) == x
        assert _digits(numeral) <= 19
        assert all(float(shown(x, fewer)) != x for fewer in range(1, _digits(numeral)))
    assert Fraction(format_below(x)) <= Fraction(x) <= Fraction(format_above(x))


@pytest.mark.parametrize("shown", [format_below, format_above])
@pytest.mark.parametrize("digits", [3, None])
def test_what_is_no_finite_number_is_named(shown, digits):
    assert [shown(x, digits) for x in (math.inf, -math.inf, math.nan, 0.0, -0.0)] == ["inf", "-inf", "nan", "0", "0"]


@by_case(
    "x, digits, below, above",
    # 9.999 has 9.99 below it and 10 above: the exponent is that of the numeral and not of the number.
    (9.999, 3, "9.99", "10"),
    (999.9, 3, "999", "1e+03"),
    (-999.9, 3, "-1e+03", "-999"),
    (0.00012345, 2, "0.00012", "0.00013"),
    (0.000012345, 2, "1.2e-05", "1.3e-05"),
    (1277.8781, 6, "1277.87", "1277.88"),
    (1280.0, 6, "1280", "1280"),
    (1e22, 3, "1e+22", "1e+22"),
)
def test_examples_by_hand(x, digits, below, above):
    assert (format_below(x, digits), format_above(x, digits)) == (below, above)


@given(st.floats(-1e300, 1e300) | st.fractions(), st.integers(1, 6))
@example(0.4, 3)
@example(-0.4, 3)
@example(math.inf, 3)
def test_a_bound_just_above_a_short_numeral_is_shown_just_above_it(x, digits):
    shown = format_closely(x, digits)
    if math.isinf(x):
        assert shown == "inf"
        return
    assert Fraction(x) <= Fraction(shown) <= Fraction(format_above(x, digits))
    # One unit of the last digit is not added for a millionth.
    floor = Fraction(format_below(x, digits))
    if 0 < Fraction(x) - floor <= abs(Fraction(x)) / 10**6:
        assert Fraction(shown) - floor <= abs(Fraction(x)) / 10**5


@given(st.floats(1e-300, 700), st.floats(1e-300, 700))
@example(0.1, 0.1)
@example(0.1, 1.0)
def test_what_is_spent_is_rounded_up_or_named_as_what_was_asked_for(epsilon, asked):
    assert Fraction(format_spent(epsilon, asked)) >= Fraction(epsilon) or epsilon == asked
    assert format_spent(asked, asked) == repr(asked)
    assert float(format_spent(epsilon, asked)) == epsilon


@given(st.fractions())
@example(Fraction(1, 2) - Fraction(1, 10**30))
@example(Fraction(1, 2) + Fraction(1, 10**30))
@example(Fraction(1, 3))
@example(1 + Fraction(1, 2**53))
@example(1 + Fraction(3, 2**53))
@example(Fraction(10**400))
@example(-Fraction(1, 10**400))
def test_a_fraction_without_digits_stays_on_its_side(x):
    below, above = format_below(x), format_above(x)
    assert Fraction(below) <= x <= Fraction(above)
    if abs(x) < 10**300:
        assert float(below) == float(above) == float(x)


def test_a_fraction_next_to_a_short_numeral_is_not_written_as_it():
    tiny = Fraction(1, 10**30)
    assert format_below(Fraction(1, 2) - tiny) == "0.49999999999999999"
    assert format_above(Fraction(1, 2) - tiny) == "0.5"
    assert format_below(Fraction(1, 2) + tiny) == "0.5"
    assert Fraction(1, 2) + tiny <= Fraction(format_above(Fraction(1, 2) + tiny)) < Fraction(1, 2) + Fraction(1, 10**15)
