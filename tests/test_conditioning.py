"""Histograms of a default release: always there, as precise as stated; mixtures of mechanisms are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand.data import weeks_worked_path
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.mixture import mixture
from optrand.release.baseline_job import BaselineJob
from optrand.release.conditioning import CLASS_COST, CLASS_MULTIPLE, COST, MULTIPLE, Conditioning, conditioned
from optrand.release.job import LabelJob
from optrand.release.named import named_randomizer
from optrand.release.table import read_labels
from optrand.sampling.entropy import SeededEntropy

LABELS = np.arange(53.0)


def optimum(prior, epsilon, **options):
    prior = np.asarray(prior, float)
    labels = np.arange(prior.size)
    options = {"bias_penalty": math.inf} | options
    return optrand.tabulate(optrand.solve(optrand.regression(labels, prior / prior.sum(), epsilon, **options)))


def response(k, epsilon):
    return optrand.tabulate(optrand.debiased_rr(range(k), epsilon))


def test_a_mixture_is_the_mixture_of_the_tables_in_integers():
    first, second = optimum([5, 0, 1, 4], 2.0), response(4, 2.0)
    mixed = mixture(first, second, 0.3)
    share = Fraction(0)
    for at, column in zip(second.outputs, second.weights.T, strict=True):
        place = int(np.flatnonzero(mixed.outputs == at)[0])
        ratio = Fraction(int(mixed.weights[0, place]), mixed.total) / Fraction(int(column[0]), second.total)
        if at not in first.outputs:
            share = ratio
            assert all(
                Fraction(int(a), mixed.total) == share * Fraction(int(b), second.total)
                for a, b in zip(mixed.weights[:, place], column, strict=True)
            )
    assert float(share) == pytest.approx(0.3, abs=2e-3)
    for at, column in zip(first.outputs, first.weights.T, strict=True):
        if at not in second.outputs:
            place = int(np.flatnonzero(mixed.outputs == at)[0])
            assert Fraction(int(mixed.weights[1, place]), mixed.total) == (1 - share) * Fraction(
                int(column[1]), first.total
            )
    losses = [float(one.problem.prior @ one.losses()) for one in (first, mixed)]
    other = float(first.problem.prior @ second.losses())
    assert losses[1] == pytest.approx((1 - float(share)) * losses[0] + float(share) * other, rel=1e-12)
    assert optrand.certify(mixed).epsilon <= 2.0
    assert mixed.bias <= 1e-14
    assert set(mixed.sample([0.0, 3.0] * 50, source=SeededEntropy(1))) <= set(mixed.outputs)


def test_mechanisms_of_other_problems_are_not_mixed():
    coin = response(2, 1.0)
    for other, words in ((response(3, 1.0), "other labels"), (response(2, 1.5), "another ratio")):
        with pytest.raises(InvalidInput, match=words):
            mixture(coin, other, 0.5)
    for weight in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidInput, match="expected a probability between 0 and 1"):
            mixture(coin, response(2, 1.0), weight)


def test_tables_mix_as_arcs_do():
    first, second = optimum([5, 0, 1, 4], 2.0), response(4, 2.0)
    table = Mechanism(first.problem, first.dual, first.outputs, first.weights, first.ratio)
    mixed, same = mixture(table, second, 0.25), mixture(first, second, 0.25)
    assert mixed.arcs is None
    assert mixed.outputs.tolist() == same.outputs.tolist()
    assert mixed.weights.tolist() == same.weights.tolist()


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_classes_that_the_optimum_leaves_out_are_told_from_others(epsilon):
    prior = np.array([0.93, 0.04, 0.02, 0.01])
    best = optrand.tabulate(optrand.solve(optrand.classification(prior, epsilon)))
    fit = conditioned(best)
    assert fit.possible
    assert optrand.certify(fit.mechanism).epsilon <= epsilon
    if Conditioning(best).multiple <= CLASS_MULTIPLE:
        assert fit.mechanism is best
        return
    assert fit.cost == pytest.approx(CLASS_COST, rel=0.01)
    assert optrand.certify(fit.mechanism).gap == pytest.approx(CLASS_COST / (1 - CLASS_COST), rel=0.02)
    # One class is told by the others alone, so that their errors add up.
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
    mechanism = optrand.tabulate(optrand.debiased_rr(range(4), epsilon, prior=prior))
    fit = Conditioning(mechanism)
    assert fit.count_errors == pytest.approx(fit.response_errors, rel=1e-9)
    assert fit.multiple == pytest.approx(1.0, rel=1e-9)


def test_errors_of_counts_are_those_of_many_releases():
    release = LabelJob(labels=np.arange(4), epsilon=2.0).run([0, 3, 3, 1, 0, 0] * 50, source=SeededEntropy(1))
    mechanism, fit = release.mechanism, release.conditioning
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
    fit = conditioned(best)
    assert fit.possible
    assert fit.multiple <= MULTIPLE * 1.01 or fit.cost == pytest.approx(COST, rel=0.05)
    assert 0 < fit.cost <= COST * 1.05
    assert optrand.certify(fit.mechanism).gap <= COST * 1.05
    released = fit.mechanism.sample([0.0, 8.0] * 500, source=SeededEntropy(5))
    assert optrand.estimate.histogram(released, fit.mechanism).shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"bias_penalty": 1.0}, {"outputs": optrand.Interval(-40, 48)}])
def test_what_was_asked_for_is_left_as_it_is(options):
    prior = np.zeros(9)
    prior[[0, 8]] = 0.5
    best = optimum(prior, 2.0, **options)
    assert conditioned(best).mechanism == best


def test_default_releases_all_answer_histograms():
    labels = read_labels(weeks_worked_path(), "weeks")
    true = np.bincount(labels.astype(int), minlength=53) / labels.size
    for number in range(20):
        epsilon = 0.5 * 16 ** (number / 19)
        release = LabelJob(labels=LABELS, epsilon=epsilon).run(labels, source=SeededEntropy(number))
        found = optrand.estimate.histogram(release.values, release.mechanism)
        fit = release.conditioning
        assert fit.possible
        assert fit.multiple <= MULTIPLE * 1.01 or fit.cost == pytest.approx(COST, rel=0.01)
        assert fit.multiple < 36
        # Nothing but what was mixed in separates the mechanism from the optimum, and the record says so.
        assert release.summary.gap <= fit.cost + 1e-6
        assert (release.summary.gap > 1e-6) == (fit.weight > 0)
        assert (f"{fit.cost:.2%} of the loss" in release.summary.histograms) == (fit.weight > 0)
        assert (np.abs(found.shares - true) <= 6 * fit.count_errors / math.sqrt(labels.size)).all()


def test_what_cannot_be_estimated_is_said_before_anything_is_drawn():
    class Stop(Exception):
        pass

    def stop(words):
        said.append(words)
        raise Stop

    said = []
    noise = BaselineJob(labels=np.arange(4), randomizer=named_randomizer("discrete-laplace", np.arange(4.0), epsilon=1))
    grid = LabelJob(labels=np.arange(9), epsilon=1.0, bias_penalty=0.0)
    for job in (noise, grid):
        with pytest.raises(Stop):
            job.run([0, 1, 2, 3] * 20, warn=stop)
    assert all(words.startswith("no histogram, no loss of a label") for words in said)
    assert (
        LabelJob(labels=np.arange(4), epsilon=1.0)
        .run([0, 3] * 20, warn=stop)
        .summary.histograms.startswith("histogram and losses")
    )
