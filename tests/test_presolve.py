"""Labels of prior zero, or next to nothing: left out of the solve, given rows that cost nothing afterwards."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import label_sets, priors, solved_epsilons

from optrand import Interval, certify, losses, regression, solve, unbiased_regression
from optrand.errors import NotCertified
from optrand.mechanism._tabulation import tabulate
from optrand.solvers import ReducedDual, choose, design
from optrand.solvers._interface import Reduction
from tests.oracle import largest_ratio

GAP = 1e-6
PENALTIES = (0.0, 2.0, math.inf)


@st.composite
def idle_problems(draw):
    """A problem on the line some of whose labels have no prior."""
    labels = draw(label_sets(2, 6))
    return regression(
        labels, draw(priors(labels.size)), draw(solved_epsilons), bias_penalty=draw(st.sampled_from(PENALTIES))
    )


@settings(max_examples=25)
@given(idle_problems())
def test_the_way_back_keeps_value_privacy_and_unbiasedness(problem):
    reduction = Reduction(problem)
    reduced = reduction.apply()
    found = choose(reduced)(reduced)
    whole = reduction.invert(found)
    assert whole.problem is problem
    # A label without prior adds nothing, and its row is a mixture of rows that were there.
    assert whole.value == pytest.approx(found.value, rel=1e-12, abs=1e-12 * float(np.ptp(problem.labels)) ** 2)
    assert largest_ratio(whole.randomizer.matrix) <= largest_ratio(found.randomizer.matrix) * (1 + 1e-12)
    if problem.unbiased:
        scale = np.abs(whole.randomizer.outputs - problem.labels[0]).max()
        assert np.abs(whole.randomizer.biases).max() <= np.abs(found.randomizer.biases).max() + 1e-14 * scale
    proof = certify(tabulate(whole))
    assert proof.findings == ()
    assert whole.dual.alpha[~reduction.kept].tolist() == [0.0] * int((~reduction.kept).sum())
    assert proof.lower <= proof.upper * (1 + 1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_idle_labels_leave_the_optimum_where_it_was(penalty):
    """Over all labels the optimum is no lower, since each row more is a constraint more. The extension attains it."""
    labels, prior = [0.0, 1.0, 2.0, 5.0, 7.0], [0.4, 0.0, 0.35, 0.0, 0.25]
    kept = regression([0.0, 2.0, 7.0], [0.4, 0.35, 0.25], 1.0, bias_penalty=penalty)
    whole = certify(solve(regression(labels, prior, 1.0, bias_penalty=penalty))).require(gap=GAP)
    assert whole.upper == pytest.approx(certify(solve(kept)).require(gap=GAP).upper, rel=GAP)


def test_unbiased_idle_labels_are_rounded_between_their_neighbours():
    problem = unbiased_regression([0.0, 1.0, 3.0, 4.0], [0.5, 0.0, 0.0, 0.5], 1.0)
    first, second, third, last = design(problem).randomizer.matrix
    assert second == pytest.approx(0.75 * first + 0.25 * last)
    assert third == pytest.approx(0.25 * first + 0.75 * last)


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_rows_of_dropped_labels_mix_those_of_their_neighbours(seed):
    rng = np.random.default_rng(seed)
    k, epsilon = 40, rng.uniform(0.2, 4.0)
    labels, prior = np.cumsum(rng.exponential(size=k)), np.zeros(k)
    places = np.sort(np.append(rng.choice(np.arange(1, k - 1), seed, replace=False), [0, k - 1]))
    prior[places] = rng.dirichlet(np.ones(places.size))
    reduction = Reduction(unbiased_regression(labels, prior, epsilon))
    found = ReducedDual()(reduction.apply())
    whole = reduction.invert(found).randomizer
    outputs, rows = whole.arcs.table(math.exp(epsilon))
    kept, table = found.randomizer.arcs.table(math.exp(epsilon))
    assert outputs.tolist() == kept.tolist()
    mixed = np.column_stack([np.interp(labels, labels[places], column) for column in table.T])
    np.testing.assert_allclose(rows, mixed, atol=1e-12)


def test_idle_ends_beyond_all_kept_labels_copy_the_nearest():
    problem = regression([-9.0, 0.0, 1.0, 50.0], [0.0, 0.5, 0.5, 0.0], 2.0, bias_penalty=1.0)
    rows = solve(problem).randomizer.matrix
    assert (rows[0].tolist(), rows[3].tolist()) == (rows[1].tolist(), rows[2].tolist())


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_prior_that_knows_the_label(penalty, place):
    labels = np.array([0.0, 1.0, 2.0, 4.0])
    problem = regression(labels, np.eye(4)[place], 1.0, bias_penalty=penalty)
    proof = certify(solve(problem)).require(gap=GAP)
    if penalty < math.inf:
        assert proof.upper == 0
        return
    # The kept labels are the ends and the known one. If that is an end, two labels are left: debiased randomized
    # response is best, and its variance for either label is E / (E - 1)^2 times the range squared.
    if place in (0, 3):
        assert proof.upper == pytest.approx(16 * math.e / (math.e - 1) ** 2 / 2, rel=1e-6)


def test_rows_of_a_tabulated_loss_are_left_out_with_their_labels():
    table = np.arange(12.0).reshape(4, 3) % 5
    problem = regression([0, 1, 2, 3], [0.5, 0.0, 0.0, 0.5], 1.0, loss=losses.Tabulated(table), outputs=[0.0, 1.0, 2.0])
    reduced = Reduction(problem).apply()
    assert reduced.loss == losses.Tabulated(table[[0, 3]])
    proof = certify(solve(problem)).require(gap=GAP)
    alone = regression([0, 3], [0.5, 0.5], 1.0, loss=losses.Tabulated(table[[0, 3]]), outputs=[0.0, 1.0, 2.0])
    assert proof.upper == pytest.approx(solve(alone).value, rel=GAP)


@pytest.mark.parametrize("penalty", [1e160, 1e308])
def test_penalties_next_to_the_largest_float_overflow_without_a_warning(penalty):
    """Warnings are errors here. An infinite or NaN cost is not negligible."""
    problem = regression([0, 10, 30, 52], [0.5, 0.0, 0.3, 0.2], 1.0, bias_penalty=penalty)
    assert Reduction(problem).kept.tolist() == [True, False, True, True]
    solve(problem)


def test_a_square_that_overflows_is_no_error_of_python():
    labels, prior = [-1e150, -1e-40, 1e150], [0.0, 1 - 2.3e-8, 2.3e-8]
    assert solve(regression(labels, prior, 1e-4, bias_penalty=1.0)).certificate.gap < 1e-9
    with pytest.raises(NotCertified, match="Less extreme numbers"):
        solve(unbiased_regression([0.1, 1e150], [0.0, 1.0], 1e-6))


def test_negligible_tails_are_dropped_at_a_price_too():
    """With them the charges of their biases, up to 1e19, leave nothing of the other terms in floats."""
    labels = np.arange(1132.0)
    prior = np.maximum(np.exp(-(((labels - 102) / 119) ** 2) / 2), 1e-20)
    problem = regression(labels, prior / prior.sum(), 1.5, bias_penalty=45.0, outputs=Interval(102.0, 1415.0))
    gone = ~Reduction(problem).kept
    assert gone.sum() > 100
    mechanism = solve(problem)
    proof = certify(mechanism).require(gap=1e-9)
    # With any rows, they add almost nothing.
    assert problem.prior[gone] @ mechanism.losses(bias_penalty=45.0)[gone] <= 1e-11 * proof.upper


@pytest.mark.parametrize("penalty", [0.1, 1000.0])
@pytest.mark.parametrize("epsilon", [0.2, 4.0])
def test_labels_beyond_the_outputs_are_solved_as_they_are(penalty, epsilon):
    prior = np.arange(1.0, 10.0) / 45
    problem = regression(np.arange(9.0), prior, epsilon, bias_penalty=penalty, outputs=Interval(2.5, 6.0))
    assert certify(solve(problem)).gap <= 1e-9
