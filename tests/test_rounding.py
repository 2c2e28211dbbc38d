"""Unbiased randomized rounding: exact probabilities for all words, and errors that reveal nobody's label."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import example, given
from hypothesis import strategies as st
from words import ExhaustedError, GivenWords

from optrand.errors import InvalidInput
from optrand.sampling._draw import BLOCK
from optrand.sampling._entropy import SeededEntropy
from optrand.sampling._rounding import KnotCells, unbiased_rounding


def share(value, low, high):
    """The exact probability of the upper knot."""
    return (Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low))


def reference(value, low, high, width, words):
    """Read the words as digits of a uniform number until it is surely below the share or surely not, or return None."""
    edge, below, size = share(value, low, high), Fraction(0), Fraction(1)
    for used, word in enumerate(words, start=1):
        size /= 2**width
        below += word * size
        if below + size <= edge:
            return high, used
        if below >= edge:
            return low, used
    return None


ends = st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).filter(lambda pair: pair[1] - pair[0] > 1e-100)


@given(
    ends,
    st.floats(0, 1),
    st.sampled_from([1, 3, 8, 53, 64]),
    st.lists(st.integers(0, 2**64 - 1), min_size=40, max_size=40),
)
@example((0.0, 1.0), 0.5, 64, [2**63] * 40)
@example((0.0, 1.0), 0.5, 64, [2**63 - 1] * 40)
@example((0.0, 1.0), 5e-324, 64, [0] * 40)
@example((0.0, 3.0), 1 / 3, 1, [0, 1] * 20)
@example((-1e6, 1e6), 1.0, 64, [2**64 - 1] * 40)
def test_any_words_give_what_exact_fractions_give(pair, at, width, words):
    low, high = pair
    value = min(max(low + at * (high - low), low), high)
    words = [word % 2**width for word in words]
    expected = reference(value, low, high, width, words)
    source = GivenWords(width, words)
    if expected is None:
        assert_error(None, unbiased_rounding, [value], [low, high], source=source, error=ExhaustedError)
    else:
        knot, used = expected
        assert unbiased_rounding([value], [low, high], source=source).tolist() == [knot]
        assert len(words) - len(source.left) == used


@given(ends, st.floats(0, 1), st.integers(-3, 3), st.integers(0, 2**64 - 1))
def test_words_at_the_very_edge_are_settled_exactly(pair, at, shift, second):
    # The word whose digits are those of the probability itself, and its neighbours, which floats cannot decide.
    low, high = pair
    value = min(max(low + at * (high - low), low), high)
    word = min(max(int(share(value, low, high) * 2**64) + shift, 0), 2**64 - 1)
    words = [word, second, 1, 1]
    expected = reference(value, low, high, 64, words)
    assert expected is not None
    assert unbiased_rounding([value], [low, high], source=GivenWords(64, words)).tolist() == [expected[0]]


@pytest.mark.parametrize("numerator", [0, 1, 37, 128, 255, 256])
def test_of_all_words_the_right_number_goes_up(numerator):
    # All 256 words of eight bits once: a probability of numerator / 256 is met exactly.
    values = np.full(256, 2 + 3 * numerator / 256)
    rounded = unbiased_rounding(values, [0, 2, 5], source=GivenWords(8, range(256)))
    assert (rounded == 5).sum() == numerator
    assert np.isin(rounded, [2, 5]).all()


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_a_knot_stays_itself_whatever_the_word(word):
    knots = [-3.5, 0.1, 0.3, 1e6]
    assert unbiased_rounding(knots, knots, source=GivenWords(64, [word] * 4)).tolist() == knots


def test_blocks_do_not_show():
    values = np.linspace(0, 10, 2 * BLOCK + 7)
    whole = unbiased_rounding(values, [0, 3, 10], source=SeededEntropy(2))
    source = SeededEntropy(2)
    parts = [
        unbiased_rounding(values[at : at + BLOCK], [0, 3, 10], source=source) for at in range(0, values.size, BLOCK)
    ]
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("values", [3, 2.5, [], [[1, 2], [3, 4]], np.arange(6, dtype=np.uint8).reshape(1, 2, 3)])
def test_any_shape_and_the_operating_system_by_default(values):
    rounded = unbiased_rounding(values, [0, 2, 5])
    assert (rounded.shape, rounded.dtype) == (np.shape(values), np.float64)
    assert np.isin(rounded, [0, 2, 5]).all()


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8, unique=True), st.integers(0, 10**6))
def test_rounding_moves_weight_and_keeps_the_mean(knots, seed):
    rng = np.random.default_rng(seed)
    ordered = np.sort(knots)
    values = rng.uniform(ordered[0], ordered[-1], 20).clip(ordered[0], ordered[-1])
    weights = rng.uniform(0, 1, 20)
    cells = KnotCells.of(ordered, values)
    moved = cells.move_weights(weights)
    assert math.isclose(moved.sum(), weights.sum(), rel_tol=1e-12)
    assert moved @ ordered == pytest.approx(weights @ values, abs=1e-11)
    second = weights @ (values**2 + cells.variances(values))
    assert moved @ ordered**2 == pytest.approx(second, rel=1e-10, abs=1e-9)


@by_case(
    "values, knots, message",
    *[([1.0, x], [0, 5], "at least one value does not lie between 0 and 5") for x in (math.nan, math.inf, -0.01)],
    (["1"], [0, 5], "type str_"),
    ([True], [0, 5], "type bool"),
    ([None], [0, 5], "type object"),
    (np.array([1j]), [0, 5], "type complex"),
    ([2**53 + 1], [0, 5], r"at least one value is an integer beyond 2\*\*53"),
    ([0.5], [1], "one knot"),
    ([0.5], [1, 0], "increase"),
    ([0.5], ["0", "1"], "numbers"),
)
def test_values_and_knots_without_meaning_are_refused(values, knots, message):
    assert_error(message, unbiased_rounding, values, knots)


def test_a_source_that_breaks_its_promise_is_refused():
    assert_error("more than its 8 bits", unbiased_rounding, [0.5], [0, 1], source=GivenWords(8, [256]))
    with pytest.raises(InvalidInput, match="words is 65, expected an integer from 1 to 64"):
        unbiased_rounding([0.5], [0, 1], source=GivenWords(65, [1]))
