"""Randomizers of a continuum of labels: privacy, means and the identity of their loss, in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from optrand.base._arithmetic import exp_bracket
from optrand.certificates._certificate import certify
from optrand.errors import InvalidInput
from optrand.model._problem import classification, regression, unbiased_regression
from optrand.sampling._entropy import SeededEntropy
from optrand.solvers import solve
from optrand.studies._continuous import ContinuousMechanism, ContinuousPrior, Knots, continuous_mechanism, place_knots

PRIOR = ContinuousPrior([0, 0.5, 1.25, 2, 3.5, 7.75, 8], [4, 3, 2, 1, 1, 2, 1])


@pytest.fixture(scope="module")
def mechanism():
    return continuous_mechanism(PRIOR, 1.0, knots=[0, 1, 3, 8])


def exact_row(mechanism, x):
    """The output probabilities at a label, from the integer table, in fractions."""
    knots = [Fraction(t) for t in mechanism.knots.tolist()]
    i = min(max(i for i, t in enumerate(knots) if t <= x), len(knots) - 2)
    share = (x - knots[i]) / (knots[i + 1] - knots[i])
    low, high = mechanism.mechanism.weights[[i, i + 1]]
    total = mechanism.mechanism.total
    return [((1 - share) * a + share * b) / total for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def exact_loss(mechanism, prior):
    """Half the mean squared error, in fractions, from the rows at the labels."""
    outputs = [Fraction(v) for v in mechanism.mechanism.outputs.tolist()]
    weights = [Fraction(w) for w in prior.weights.tolist()]
    loss = Fraction(0)
    for x, weight in zip(map(Fraction, prior.values.tolist()), weights, strict=True):
        loss += weight * sum(q * (v - x) ** 2 for q, v in zip(exact_row(mechanism, x), outputs, strict=True))
    return loss / 2


labels_within = st.fractions(0, 8, max_denominator=1000)


@given(labels_within, labels_within)
def test_any_two_labels_are_as_private_as_the_knots(mechanism, x, other):
    ratio, most = mechanism.mechanism.realised_ratio, exp_bracket(1.0)[0]
    for p, q in zip(exact_row(mechanism, x), exact_row(mechanism, other), strict=True):
        assert p <= ratio * q
    assert ratio <= most
    # And from the other side: the budget is used.
    assert ratio > exp_bracket(0.99)[1]


@given(labels_within)
def test_the_bias_at_any_label_is_that_of_the_knots_at_most(mechanism, x):
    row, outputs = exact_row(mechanism, x), map(Fraction, mechanism.mechanism.outputs.tolist())
    assert sum(row) == 1
    assert abs(sum(q * v for q, v in zip(row, outputs, strict=True)) - x) <= Fraction(mechanism.bias) < 1e-14


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 64), min_size=2, max_size=12, unique=True),
    st.sets(st.integers(1, 63), max_size=4),
    st.sampled_from([0.2, 1.0, 4.0]),
)
def test_total_loss_is_the_knots_loss_and_the_added_one(values, inner, epsilon):
    # The identity of the module in fractions. The two sides may differ by the errors of exact means alone, about 1e-17.
    prior = ContinuousPrior(values, np.arange(1, len(values) + 1), low=0, high=64)
    knots = Knots(prior, sorted({0, 64} | inner))
    mechanism = continuous_mechanism(prior, epsilon, knots=knots)
    outputs = [Fraction(v) for v in mechanism.mechanism.outputs.tolist()]
    moved, added = [Fraction(0)] * knots.n, Fraction(0)
    for x, weight in zip(map(Fraction, prior.values.tolist()), map(Fraction, prior.weights.tolist()), strict=True):
        ends = [Fraction(t) for t in knots.values.tolist()]
        i = min(max(i for i, t in enumerate(ends) if t <= x), knots.n - 2)
        share = (x - ends[i]) / (ends[i + 1] - ends[i])
        moved[i] += weight * (1 - share)
        moved[i + 1] += weight * share
        added += weight * (x - ends[i]) * (ends[i + 1] - x) / 2
    at_knots = sum(
        q * sum(p * (v - t) ** 2 for p, v in zip(exact_row(mechanism, t), outputs, strict=True)) / 2
        for q, t in zip(moved, map(Fraction, knots.values.tolist()), strict=True)
    )
    whole = exact_loss(mechanism, prior)
    slack = Fraction(mechanism.bias) * 64
    assert abs(whole - at_knots - added) <= slack
    # The same numbers from the package, in floats.
    assert float(added) == pytest.approx(knots.added, rel=1e-12, abs=1e-12)
    assert [float(q) for q in moved] == pytest.approx(knots.probabilities.tolist(), abs=1e-12)
    assert float(at_knots) == pytest.approx(certify(mechanism.mechanism).upper, rel=1e-9)
    assert float(whole) == pytest.approx(mechanism.loss(prior), rel=1e-9)


def test_the_loss_of_a_biased_mechanism_is_right_too():
    # If bias is free outputs are pulled to the middle, and the cross term of the identity does not vanish.
    pulled = ContinuousMechanism(solve(regression([0, 3, 8], [0.2, 0.3, 0.5], 0.5)))
    assert pulled.bias > 0.5
    assert pulled.loss(PRIOR) == pytest.approx(float(exact_loss(pulled, PRIOR)), rel=1e-12)


def test_draws_follow_the_mixed_row(mechanism):
    # A chi-square test at 1e-6 at three labels: within a cell, near a knot, at a knot.
    count, outputs = 100_000, mechanism.mechanism.outputs
    for x in (0.3, 2.99, 8.0):
        drawn = mechanism.sample(np.full(count, x), source=SeededEntropy(9))
        seen = [int((drawn == v).sum()) for v in outputs]
        expected = count * np.array([float(q) for q in exact_row(mechanism, Fraction(x))])
        assert sum(seen) == count
        assert stats.chisquare(seen, expected).pvalue > 1e-6
        assert abs(drawn.mean() - x) < 5 * drawn.std() / math.sqrt(count)


def test_labels_outside_are_neither_counted_nor_repeated(mechanism):
    with pytest.raises(InvalidInput, match="at least one value does not lie between 0 and 8") as caught:
        mechanism.sample([1.0, 8.7654321])
    assert "765" not in str(caught.value)


def test_more_knots_end_where_every_value_is_one():
    prior = ContinuousPrior(np.arange(12), 0.8 ** np.arange(12))
    everything = certify(solve(unbiased_regression(prior.values, prior.weights, 1.0)))
    added = []
    for n in range(2, 13):
        knots = place_knots(prior, n)
        made = continuous_mechanism(prior, 1.0, knots=knots)
        proof = made.mechanism.certificate.require(gap=1e-8)
        added.append(knots.added)
        assert made.loss(prior) == pytest.approx(knots.added + proof.upper, rel=1e-8)
        # Knots are labels that the optimum for all values could mix: nothing is better than all of them.
        assert made.loss(prior) >= everything.lower * (1 - 1e-9)
    assert knots.values.tolist() == prior.values.tolist()
    assert (added[-1], added) == (0, sorted(added, reverse=True))
    assert made.loss(prior) == pytest.approx(everything.upper, rel=1e-9)


def test_knots_may_be_given_in_three_ways():
    placed = continuous_mechanism(PRIOR, 1.0, knots=3)
    named = continuous_mechanism(PRIOR, 1.0, knots=placed.knots)
    carried = continuous_mechanism(PRIOR, 1.0, knots=Knots(PRIOR, placed.knots))
    assert placed == named == carried


def test_what_is_no_randomizer_of_an_interval_is_refused(mechanism):
    assert_error("one label", ContinuousMechanism, solve(unbiased_regression([3], [1], 1.0)))
    assert_error("type Randomizer", ContinuousMechanism, mechanism.mechanism.randomizer)
    with pytest.raises(InvalidInput, match="loss is zero_one"):
        ContinuousMechanism(solve(classification([0.5, 0.5], 1.0))).loss(ContinuousPrior([0, 1]))
    assert_error("outside the interval", mechanism.loss, ContinuousPrior([0, 9]))
    for knots in (1, 2.0, [0, 7], True):
        assert_error(None, continuous_mechanism, PRIOR, 1.0, knots=knots)
    assert_error("epsilon", continuous_mechanism, PRIOR, 0.0, knots=3)


def test_randomized_response_of_two_knots_by_hand():
    # Labels 0 and 1, epsilon log 3, outputs -1/2 and 3/2: at x the loss is (3/2 - x)(x + 1/2) / 2, 1/2 at the middle.
    coin = ContinuousMechanism(solve(unbiased_regression([0, 1], [0.5, 0.5], math.log(3))))
    assert coin.loss(ContinuousPrior([0.5], low=0, high=1)) == pytest.approx(0.5)
    assert coin.loss(ContinuousPrior([0, 1])) == pytest.approx(3 / 8)


@pytest.mark.parametrize("wrong", [[0.5, 0.5], None, 3])
def test_a_prior_of_another_type_is_refused_in_words(wrong):
    for call in (
        lambda: place_knots(wrong, 3),
        lambda: Knots(wrong, [0, 1]),
        lambda: continuous_mechanism(wrong, 1.0, knots=3),
        lambda: continuous_mechanism(wrong, 1.0, knots=[0, 1]),
    ):
        with pytest.raises(
            InvalidInput, match=r"^prior is of type \w+, expected numbers with weights: pass optrand.studies"
        ):
            call()
