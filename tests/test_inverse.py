"""The smallest epsilon for a loss: a bracket whose two ends are proven, for every kind of problem."""

import math
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand.studies._unknowns
from optrand import certify, classification, losses, lower_bound, regression, solve, unbiased_regression
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.model._problem import Interval
from optrand.studies import adaptive_outputs, smallest_epsilon
from optrand.studies._unknowns import LARGEST, SMALLEST

TOLERANCE = 1e-6
"""The default: how far apart the ends may be, in nats."""

LABELS, PRIOR = [0, 1, 2], [0.5, 0.3, 0.2]


def two_labels(epsilon=1.0):
    return unbiased_regression([0, 1], [0.5, 0.5], epsilon)


def two_labels_loss(epsilon):
    """The only unbiased randomizer of two labels is debiased randomized response.

    Its outputs are -1/(E-1) and E/(E-1), each label's own with probability E/(E+1). The variance of either label is
    their distance squared times E/(E+1)^2, which is E/(E-1)^2.
    """
    ratio = math.exp(epsilon)
    return ratio / (ratio - 1) ** 2 / 2


@pytest.mark.parametrize(
    ("epsilon", "stated"), [(1e-3, 1.0), (0.1, 1.0), (1.0, 1.0), (4.0, 1.0), (1.0, 1e-9), (1.0, 700.0)]
)
def test_the_bracket_holds_the_closed_form_of_two_labels(epsilon, stated):
    bracket = smallest_epsilon(two_labels(stated), loss=two_labels_loss(epsilon))
    assert bracket.low <= epsilon * (1 + 1e-12)
    assert epsilon * (1 - 1e-12) <= bracket.high
    assert 0 < bracket.high - bracket.low <= TOLERANCE


CASES = {
    "line": (unbiased_regression(LABELS, PRIOR, 1.0), 0.5),
    "prior zeros": (unbiased_regression([0, 1, 2, 3], [0.5, 0.0, 0.3, 0.2], 1.0), 1.0),
    "interval": (unbiased_regression(LABELS, PRIOR, 1.0, outputs=Interval(-2, 4)), 0.8),
    "grid": (unbiased_regression(LABELS, PRIOR, 1.0, outputs=np.linspace(-2, 4, 13)), 0.8),
    "penalty": (regression(LABELS, PRIOR, 1.0, bias_penalty=2.0), 0.3),
    "no bias penalty": (regression(LABELS, PRIOR, 1.0), 0.2),
    "absolute": (regression(LABELS, PRIOR, 1.0, loss=losses.absolute), 0.3),
    # Without privacy, output = label, it is the mean of y - y log y: 0.375.
    "poisson": (regression([1, 2, 4], PRIOR, 1.0, loss=losses.poisson_log), 0.5),
    "classification": (classification(PRIOR, 1.0), 0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_one_end_is_reached_and_the_other_is_out_of_reach(name):
    problem, loss = CASES[name]
    bracket = smallest_epsilon(problem, loss=loss)
    assert 0 < bracket.high - bracket.low <= TOLERANCE
    reached = certify(bracket.mechanism)
    assert reached.findings == ()
    assert reached.epsilon <= bracket.high
    assert bracket.mechanism.problem == replace(problem, epsilon=bracket.high)
    assert bracket.excluded is not None
    assert bracket.excluded.problem == replace(problem, epsilon=bracket.low)
    bound = lower_bound(bracket.excluded.problem, bracket.excluded.dual)
    if name == "classification":
        assert 1 - reached.lower <= loss < 1 + bound
    else:
        assert reached.upper <= loss < bound


def test_where_outputs_and_not_the_loss_are_what_is_short_there_is_no_dual():
    """Outputs from -1 to 3 are unbiased for 0 and 2 from E - 1 = 2 on, for any loss: at epsilon log(3)."""
    problem = unbiased_regression([0, 2], [0.5, 0.5], 2.0, outputs=Interval(-1, 3))
    bracket = smallest_epsilon(problem, loss=100.0)
    assert bracket.excluded is None
    assert bracket.low < math.log(3) <= bracket.high
    assert bracket.high - bracket.low <= TOLERANCE
    assert_error(None, replace, problem, epsilon=bracket.low, error=Infeasible)


@pytest.mark.parametrize("tolerance", [0.5, 1e-3, 1e-9])
def test_the_ends_are_as_close_as_was_asked_for(tolerance):
    bracket = smallest_epsilon(two_labels(), loss=0.3, tolerance=tolerance)
    assert 0 < bracket.high - bracket.low <= tolerance


@by_case(
    "problem, loss",
    (CASES["line"][0], -1.0),
    (CASES["absolute"][0], -1e-9),
    (CASES["classification"][0], -0.1),
    # Without bias 0.5 is 0 or 1, each with probability 1/2: a variance of 1/4.
    (unbiased_regression([0, 0.5, 1], PRIOR, 1.0, outputs=np.arange(-9, 11)), 0.999 * PRIOR[1] / 8),
    # With bias it is either: a squared error of 1/4, half of which counts.
    (regression([0, 0.5, 1], PRIOR, 1.0, outputs=[0, 1]), 0.999 * PRIOR[1] / 8),
    (regression([0, 0.5, 3], PRIOR, 1.0, outputs=Interval(0, 1)), 0.999 * PRIOR[2] * 2),
    ids=["squared", "absolute", "classification", "unbiased grid", "grid", "interval"],
)
def test_a_loss_below_what_no_privacy_costs_is_out_of_reach(problem, loss):
    assert_error(f"out of reach at epsilon {LARGEST:g}", smallest_epsilon, problem, loss=loss, error=Infeasible)


def test_a_loss_beyond_the_range_of_the_search_is_refused():
    with pytest.raises(Infeasible, match=f"out of reach at epsilon {LARGEST:g}"):
        smallest_epsilon(two_labels(), loss=0.5 * two_labels_loss(LARGEST))
    for problem in (two_labels(), classification([0.5, 0.5], 1.0)):
        with pytest.raises(InvalidInput, match=f"is reached at epsilon {SMALLEST:g}") as caught:
            smallest_epsilon(problem, loss=1e30)
        assert not isinstance(caught.value, Infeasible)
    # A single label is free.
    assert_error("is reached at epsilon 1e-06", smallest_epsilon, unbiased_regression([3], [1.0], 1.0), loss=0.0)


@by_case(
    "options, message",
    ({"loss": math.nan}, "loss is nan"),
    ({"loss": 1.0, "tolerance": 0.0}, "tolerance is 0.0, expected at least 1e-12"),
    ({"loss": 1.0, "tolerance": math.nan}, "tolerance is nan"),
    ids=str,
)
def test_arguments_without_meaning_are_refused(options, message):
    assert_error(message, smallest_epsilon, two_labels(), **options)


def failing_between(low, high):
    def fails(problem):
        if low < problem.epsilon < high:
            raise NotCertified("no useful bound")
        return solve(problem)

    return fails


@pytest.mark.parametrize(("low", "high"), [(1.49, 1.51), (1.3, math.inf)])
def test_beyond_what_can_be_told_the_answer_is_looked_for_on_this_side(monkeypatch, low, high):
    """The middle of a bracket may be too close to call, or nothing is decided above an epsilon, its end included."""
    monkeypatch.setattr(optrand.studies._unknowns, "solve", failing_between(low, high))
    bracket = smallest_epsilon(two_labels(0.4), loss=two_labels_loss(1.0))
    assert bracket.high - bracket.low <= TOLERANCE
    assert bracket.low <= 1 + 1e-12 <= bracket.high + 1e-11


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.2), (0.5, math.inf), (0.0, math.inf), (0.0, 2.0)])
def test_where_nothing_is_proven_around_the_answer_it_is_said(monkeypatch, low, high):
    monkeypatch.setattr(optrand.studies._unknowns, "solve", failing_between(low, high))
    with pytest.raises(NotCertified, match="neither reach the loss nor prove"):
        smallest_epsilon(two_labels(), loss=two_labels_loss(1.0))


def test_mechanisms_alone_do_not_exclude_anything(monkeypatch):
    """Answers without multipliers reach losses, but nothing is ever out of reach."""
    monkeypatch.setattr(optrand.studies._unknowns, "solve", lambda problem: replace(solve(problem), dual=None))
    assert_error("neither reach the loss nor prove", smallest_epsilon, two_labels(), loss=0.3, error=NotCertified)


@pytest.mark.parametrize("wrong", [None, [0.5, 0.5], "p"])
def test_no_problem_is_refused_in_words(wrong):
    assert_error(r"^problem is of type \w+, expected one of optrand.regression", smallest_epsilon, wrong, loss=1.0)
    assert_error(r"^problem is of type \w+, expected one of optrand.regression", adaptive_outputs, wrong, n=3)
