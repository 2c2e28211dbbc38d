"""Floats as integers over a power of two: nothing is lost, from the smallest float to the largest."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from optrand.base._arithmetic import places, quotient, scale_to_integers


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.integers(0, 70))
@example([5e-324, -1.7e308, 0.0, -0.0, 2.0**53 - 1, 0.1, 2.2250738585072014e-308], 0)
def test_scaled_floats_are_integers_without_a_rounding(numbers, more):
    digits = places(np.array(numbers)) + more
    found = scale_to_integers(np.array(numbers), digits)
    assert [Fraction(n, 2**digits) for n in found] == [Fraction(x) for x in numbers]
    assert all(type(n) is int for n in found)


def test_quotients_beyond_floats_are_infinite():
    assert quotient(1, 3) == 1 / 3
    assert quotient(-(10**400), 3) == -math.inf
    assert quotient(10**400, 3) == math.inf
    assert quotient(-(10**400), -3) == math.inf
    assert quotient(1, 10**400) == 0.0
