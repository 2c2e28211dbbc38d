"""Histograms of a default release: always there, and as precise as stated. Mixtures of mechanisms are exact."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error

import optrand
from optrand.data import weeks_worked_path
from optrand.mechanism._columns import mixture
from optrand.release._plan import LIMITS, Conditioning, condition, draw_histograms, find_mechanisms
from optrand.release._question import Question
from optrand.release._record import ReleaseRecord
from optrand.release._rows import Groups
from optrand.sampling._entropy import SeededEntropy
from optrand.sampling._priors import noise_variance, private_histogram, shrink_histograms


def planned(counts, epsilon, seed):
    question, table = Question(labels=range(len(counts)), epsilon=epsilon), np.array([counts])
    given = (question, Groups(), table.sum(axis=1), draw_histograms(question, table, SeededEntropy(seed)))
    fits, _ = find_mechanisms(*given)
    return fits[0], ReleaseRecord.of(*given, fits, None, release="0" * 32, dataset=None)


def optimum(prior, epsilon, **options):
    prior = np.asarray(prior, float)
    labels = np.arange(prior.size)
    options = {"bias_penalty": math.inf} | options
    return optrand.solve(optrand.regression(labels, prior / prior.sum(), epsilon, **options))


def response(k, epsilon):
    return optrand.debiased_rr(range(k), epsilon)


def test_a_mixture_is_the_mixture_of_the_tables_in_integers():
    first, second = optimum([5, 0, 1, 4], 2.0), response(4, 2.0)
    mixed = mixture(first, second, 0.3)
    rows = [dict(zip(one.outputs, one.weights.T / Fraction(one.total), strict=True)) for one in (first, second, mixed)]
    before, other, after = (np.array([row.get(v, [0] * 4) for v in mixed.outputs]) for row in rows)
    (share,) = {
        change / apart for change, apart in zip((after - before).flat, (other - before).flat, strict=True) if apart
    }
    assert float(share) == pytest.approx(0.3, abs=2e-3)
    losses = [float(one.problem.prior @ one.losses()) for one in (first, mixed)]
    other = float(first.problem.prior @ second.losses())
    assert losses[1] == pytest.approx((1 - float(share)) * losses[0] + float(share) * other, rel=1e-12)
    assert optrand.certify(mixed).epsilon <= 2.0
    assert mixed.bias <= 1e-14
    assert set(mixed.sample([0.0, 3.0] * 50, source=SeededEntropy(1))) <= set(mixed.outputs)


def test_mechanisms_of_other_problems_are_not_mixed():
    coin = response(2, 1.0)
    for other, words in ((response(3, 1.0), "different labels"), (response(2, 1.5), "would not be private")):
        assert_error(words, mixture, coin, other, 0.5)
    for weight in (0.0, 1.0, math.nan):
        assert_error("expected a probability between 0 and 1", mixture, coin, response(2, 1.0), weight)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_classes_that_the_optimum_leaves_out_are_told_from_others(epsilon):
    prior = np.array([0.93, 0.04, 0.02, 0.01])
    best = optrand.solve(optrand.classification(prior, epsilon))
    fit = condition(best)
    assert not fit.obstacle
    assert optrand.certify(fit.mechanism).epsilon <= epsilon
    if Conditioning(best).multiple <= LIMITS.multiple:
        assert fit.mechanism is best
        return
    assert fit.cost == pytest.approx(LIMITS.class_cost, rel=0.01)
    assert optrand.certify(fit.mechanism).gap == pytest.approx(LIMITS.class_cost / (1 - LIMITS.class_cost), rel=0.02)
    # One class is inferred from the others alone, so that their errors add up.
    assert fit.multiple < 2 / math.sqrt(fit.weight)
    rng = np.random.default_rng(1)
    labels = rng.choice(4, 200_000, p=prior).astype(float)
    found = optrand.estimate.histogram(fit.mechanism.sample(labels, source=SeededEntropy(2)), fit.mechanism)
    true = np.bincount(labels.astype(int), minlength=4) / labels.size
    assert (np.abs(found.shares - true) <= 5 * fit.count_errors / math.sqrt(labels.size)).all()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_errors_of_debiased_randomized_response_are_those_of_its_table(epsilon):
    """The closed form against the factored table: two ways to the same number."""
    prior = np.array([0.6, 0.3, 0.1, 0.0])
    mechanism = optrand.debiased_rr(range(4), epsilon, prior=prior)
    fit = Conditioning(mechanism)
    assert fit.count_errors == pytest.approx(fit.response_errors, rel=1e-9)
    assert fit.multiple == pytest.approx(1.0, rel=1e-9)


def test_errors_of_counts_are_those_of_many_releases():
    fit, _ = planned([150, 50, 0, 100], 2.0, 1)
    mechanism = fit.mechanism
    prior = mechanism.problem.prior
    rng = np.random.default_rng(3)
    labels = rng.choice(4, size=40_000, p=prior).astype(float)
    noisy = mechanism.sample(labels, source=SeededEntropy(2))
    values = optrand.estimate.loss_weights(mechanism)[optrand.estimate.output_numbers(noisy, mechanism)]
    noise = values - np.eye(4)[labels.astype(int)]
    assert np.sqrt((noise**2).mean(axis=0)) == pytest.approx(fit.count_errors, rel=0.05)


def test_a_singular_optimum_is_mended_within_its_cost():
    prior = np.zeros(9)
    prior[[0, 8]] = 0.5
    best = optimum(prior, 2.0)
    assert Conditioning(best).multiple == math.inf
    fit = condition(best)
    assert not fit.obstacle
    assert fit.multiple <= LIMITS.multiple * 1.01 or fit.cost == pytest.approx(LIMITS.cost, rel=0.05)
    assert 0 < fit.cost <= LIMITS.cost * 1.05
    assert optrand.certify(fit.mechanism).gap <= LIMITS.cost * 1.05
    released = fit.mechanism.sample([0.0, 8.0] * 500, source=SeededEntropy(5))
    assert optrand.estimate.histogram(released, fit.mechanism).shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"bias_penalty": 1.0}, {"outputs": optrand.Interval(-40, 48)}])
def test_what_was_asked_for_is_left_as_it_is(options):
    prior = np.zeros(9)
    prior[[0, 8]] = 0.5
    best = optimum(prior, 2.0, **options)
    assert condition(best).mechanism == best


def test_default_releases_all_answer_histograms():
    labels = np.loadtxt(weeks_worked_path(), delimiter=",", skiprows=1, usecols=4)
    true = np.bincount(labels.astype(int), minlength=53) / labels.size
    for number in range(20):
        epsilon = 0.5 * 16 ** (number / 19)
        fit, record = planned(np.bincount(labels.astype(int), minlength=53), epsilon, number)
        found = optrand.estimate.histogram(fit.mechanism.sample(labels, source=SeededEntropy(number)), fit.mechanism)
        assert record.estimates.histogram
        assert fit.multiple <= LIMITS.multiple * 1.01 or fit.cost == pytest.approx(LIMITS.cost, rel=0.01)
        assert fit.multiple < 36
        # Only the mixed-in part separates the mechanism from the optimum, and the record states it.
        assert record.gap <= fit.cost + 1e-6
        assert (record.gap > 1e-6) == (fit.weight > 0)
        assert (f"{fit.cost:.2%} of the loss" in record.estimates.words) == (fit.weight > 0)
        assert (np.abs(found.shares - true) <= 6 * fit.count_errors / math.sqrt(labels.size)).all()


def test_pools_share_their_noisy_histogram_and_shrink_towards_the_mixture():
    """Groups that are like each other share the mixture bit for bit. Others keep most of their own."""
    alike, other = np.array([[400, 300, 300]] * 3), np.array([[980, 10, 10], [10, 10, 980]])
    rows = np.array([1000] * 3)
    same = shrink_histograms(alike, rows, 0.2)
    assert (same == same[0]).all()
    assert np.abs(shrink_histograms(other, rows[:2], 1.0) - other / 1000).max() < 0.02
    assert (shrink_histograms(np.array([[-5, 0, 9], [0, -1, 3]]), np.array([4, 3]), 0.1) > 0).all()
    # Simulated from discrete Laplace noise of scale 2 / epsilon.
    draws = [private_histogram([50], 0.5, source=SeededEntropy(i))[0] for i in range(4000)]
    assert np.var(draws) == pytest.approx(noise_variance(0.5), rel=0.1)
