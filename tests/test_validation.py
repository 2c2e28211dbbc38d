"""Bad arguments: the refusals of each constructor, and their messages."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import given
from hypothesis import strategies as st

from optrand import Grid, classification, regression, unbiased_regression
from optrand.base import _validation

BAD_EPSILONS = [
    (math.nan, "epsilon is nan, expected a finite number"),
    (math.inf, "epsilon is inf, expected a finite number"),
    (-math.inf, "epsilon is -inf, expected a finite number"),
    (0, "epsilon is 0.0, expected a number above 0"),
    (0.0, "epsilon is 0.0, expected a number above 0"),
    (-0.0, "expected a number above 0"),
    (-1.0, "epsilon is -1.0, expected a number above 0"),
    (True, "epsilon is of type bool, expected a real number"),
    (np.True_, "epsilon is of type bool, expected a real number"),
    ("1", "epsilon is of type str, expected a real number"),
    (None, "epsilon is of type NoneType, expected a real number"),
    (1j, "epsilon is of type complex, expected a real number"),
    ([1.0], "epsilon is of type list, expected a real number"),
    (Decimal(1), "epsilon is of type Decimal, expected a real number"),
    (700.0000001, "epsilon is 700.0000001, expected at most 700"),
    (10**400, "epsilon is inf, expected a finite number"),
    (Fraction(10) ** 400, "epsilon is inf, expected a finite number"),
]

BAD_PRIORS = [
    ([0.5, math.nan], "prior holds NaN or infinite values"),
    ([0.5, math.inf], "prior holds NaN or infinite values"),
    ([1.5, -0.5], "prior has 1 negative entries"),
    ([1.0, 5e-324], "prior has entries too small for a normal float: set them to zero"),
    ([0.5, 0.3, 0.2], "prior has 3 entries for 2 labels, expected one per label"),
    ([1.0], "prior has 1 entries for 2 labels"),
    ([], "prior is empty"),
    ([0.0, 0.0], "prior is all zeros"),
    ([0.5, 0.48], "prior sums to 0.98, expected 1: divide each entry by the sum"),
    ([0.5, 0.5 + 2e-9], "expected 1: divide each entry"),
    ([[0.5, 0.5]], "prior has 2 dimensions, expected one"),
    ([True, False], "prior holds values of type bool, expected numbers"),
    (["0.5", "0.5"], "prior holds values of type str_, expected numbers"),
    (0.5, "prior is a single number, expected several: pass a list or an array"),
]

BAD_LABELS = [
    ([0, 0], "labels repeats 1 value"),
    ([3.0, 1.0, 3.0, 3.0], "labels repeats 2 value"),
    ([0.0, -0.0], "labels repeats 1 value"),
    ([], "labels is empty, expected at least one value"),
    ([0, math.inf], "labels holds NaN or infinite values"),
    ([0, math.nan], "labels holds NaN or infinite values"),
    (np.array([2**64 - 1], dtype=np.uint64), "labels holds integers beyond 2\\*\\*53"),
    ([0, 2**53 + 1], "labels holds integers beyond 2\\*\\*53, which floats cannot distinguish"),
    ([0, -(2**53) - 1], "labels holds integers beyond 2\\*\\*53"),
    ([0, 10**30], "labels holds integers beyond 2\\*\\*53"),
    ([0.5, 2**60], "labels holds integers beyond 2\\*\\*53"),
    ([[0, 1]], "labels has 2 dimensions, expected one"),
    (3.0, "labels is a single number, expected several: pass a list or an array"),
    (Grid(np.array([0.0, 1.0])), "labels is of type Grid, expected several: pass its .values"),
    (["a", "b"], "labels holds values of type"),
    ([False, True], "labels holds values of type bool"),
    ([0.5, True], "labels holds values of type"),
    ([0, 10**400], "labels holds integers beyond 2\\*\\*53"),
    ([0, True, 2.5, None], "labels holds values of type object"),
    ([0, 1j], "labels holds values of type complex"),
    ([-1e308, 1e308], "labels reach beyond 1e\\+150, where the square of a float overflows: rescale them"),
    ([0, 1.1e150], "labels reach beyond 1e\\+150"),
    ([0, 1e-151], "labels differ by less than 1e-150, whose square vanishes in floats: rescale them"),
    ([0.0, 5e-324], "labels differ by less than 1e-150"),
]


def constructors(epsilon):
    yield lambda: classification([0.5, 0.5], epsilon)
    yield lambda: regression([0, 1], [0.5, 0.5], epsilon)
    yield lambda: unbiased_regression([0, 1], [0.5, 0.5], epsilon)


@pytest.mark.parametrize(("epsilon", "message"), BAD_EPSILONS)
def test_a_budget_without_meaning_is_refused(epsilon, message):
    for construct in constructors(epsilon):
        assert_error(message, construct)


@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, 1, np.float32(0.5), np.int64(2), Fraction(1, 3), 700, 700.0])
def test_any_real_number_above_zero_is_a_budget(epsilon):
    cleaned = _validation.check_epsilon(epsilon)
    assert type(cleaned) is float
    assert cleaned == float(epsilon)


@pytest.mark.parametrize(("prior", "message"), BAD_PRIORS)
def test_a_prior_that_is_none_is_refused(prior, message):
    for construct in (regression, unbiased_regression):
        assert_error(message, construct, [0, 1], prior, 1.0)


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS)
def test_labels_that_are_none_are_refused(labels, message):
    prior = np.full(max(1, np.size(labels)), 1 / max(1, np.size(labels)))
    for construct in (regression, unbiased_regression):
        assert_error(message, construct, labels, prior, 1.0)
    assert_error(message, classification, prior, 1.0, labels=labels)


def test_the_last_integers_that_are_floats_are_labels():
    assert _validation.check_labels([2**53, -(2**53)]).tolist() == [2.0**53, -(2.0**53)]
    assert _validation.check_labels(np.array([2**53 - 1, 3], dtype=np.uint64)).tolist() == [2.0**53 - 1, 3.0]


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float16, np.float32, np.longdouble, object])
def test_numeric_arrays_are_taken_whatever_their_type(kind):
    cleaned = _validation.check_labels(np.array([0, 1, 100], dtype=kind))
    assert (cleaned.dtype, cleaned.tolist()) == (np.float64, [0.0, 1.0, 100.0])


def test_the_largest_and_closest_labels():
    assert _validation.check_labels([-1e150, 1e150]).size == 2
    assert _validation.check_labels([0.0, 1e-150]).size == 2
    assert _validation.check_labels([1e-300]).size == 1


def test_arrays_are_copied_and_read_only():
    labels, prior = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    problem = regression(labels, prior, 1.0)
    labels[0], prior[0] = 7.0, 0.0
    assert (problem.labels.tolist(), problem.prior.tolist()) == ([0.0, 1.0], [0.5, 0.5])
    for array in (problem.labels, problem.prior):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5))
def test_a_prior_is_accepted_if_and_only_if_it_is_one(entries):
    fine = (
        len(entries) > 0
        and all(math.isfinite(x) and (x == 0 or x >= 2.0**-1022) for x in entries)
        and abs(sum(map(Fraction, entries)) - 1) <= 1e-9
    )
    if fine:
        assert _validation.check_prior(entries).tolist() == entries
    else:
        assert_error(None, _validation.check_prior, entries)
