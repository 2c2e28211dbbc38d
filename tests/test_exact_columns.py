"""Figures of interval columns against the table that they make, in fractions, entry by entry."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Feasible, label_sets, priors
from tables import layered_arcs

from optrand import Dual, certify, losses, regression
from optrand.base.arithmetic import float_above, privacy_ratio
from optrand.model.arcs import Arcs, IntegerArcs
from optrand.model.randomizer import Randomizer
from tests.tables import mechanism_of


@st.composite
def arcs_of(draw, k, masses):
    """Up to seven arcs, nested and on shared outputs, too."""
    n = draw(st.integers(1, 7))
    ends = [sorted((draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1)))) for _ in range(n)]
    outputs = sorted(draw(st.sampled_from([-3.0, 0.1, 0.25, 2.0, 7.5, 1000.0])) for _ in range(n))
    given_masses = [draw(masses) for _ in range(n)]
    return Arcs(k, [a for a, _ in ends], [b for _, b in ends], outputs, given_masses)


some_masses = st.sampled_from([0.0, 0.1, 0.3, 1e-9, 5.0])


@st.composite
def channels(draw, masses=some_masses):
    labels = draw(label_sets(1, 6))
    epsilon = draw(st.sampled_from([1e-6, 0.5, 1.0, 8.0, 40.0, 700.0]))
    return Randomizer.of_arcs(labels, draw(arcs_of(labels.size, masses)), epsilon)


def exact_table(channel):
    """Fractions: distinct outputs, and one row of probabilities a label."""
    arcs, ratio = channel.arcs, Fraction(math.exp(channel.epsilon))
    outputs = [Fraction(v) for v in channel.outputs.tolist()]
    table = [[Fraction(0)] * len(outputs) for _ in range(channel.k)]
    for first, last, v, mass in zip(arcs.first, arcs.last, arcs.outputs.tolist(), arcs.masses.tolist(), strict=True):
        for y in range(channel.k):
            table[y][outputs.index(Fraction(v))] += Fraction(mass) * (ratio if first <= y <= last else 1)
    return outputs, table


def nearest(x):
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


@settings(max_examples=200)
@given(channels(), st.data())
def test_figures_are_those_of_the_exact_table_rounded_once(channel, data):
    outputs, table = exact_table(channel)
    labels = [Fraction(y) for y in channel.labels.tolist()]
    means = [sum(p * v for p, v in zip(row, outputs, strict=True)) for row in table]
    variances = [
        sum(p * (v - mean) ** 2 for p, v in zip(row, outputs, strict=True))
        for row, mean in zip(table, means, strict=True)
    ]
    biases = [sum(p * (v - y) for p, v in zip(row, outputs, strict=True)) for row, y in zip(table, labels, strict=True)]
    assert channel.rows.tolist() == [nearest(sum(row)) for row in table]
    assert channel.means.tolist() == [nearest(mean) for mean in means]
    assert channel.variances.tolist() == [nearest(variance) for variance in variances]
    assert channel.biases.tolist() == [nearest(bias) for bias in biases]
    columns = list(zip(*table, strict=True))
    assert [x.tolist() for x in channel.extremes] == [
        [nearest(end(column)) for column in columns] for end in (min, max)
    ]
    prior = data.draw(priors(channel.k))
    error = sum(
        Fraction(p) * q * (v - y) ** 2
        for p, y, row in zip(prior.tolist(), labels, table, strict=True)
        for q, v in zip(row, outputs, strict=True)
    )
    assert channel.intervals.squared_error(prior) == error
    assert regression(channel.labels, prior, 1.0).value(channel) == nearest(error / 2)
    distance = sum(
        Fraction(p) * q * abs(v - y)
        for p, y, row in zip(prior.tolist(), labels, table, strict=True)
        for q, v in zip(row, outputs, strict=True)
    )
    assert channel.intervals.absolute_error(prior) == distance
    assert regression(channel.labels, prior, 1.0, loss=losses.absolute).value(channel) == nearest(distance)


@given(channels(st.sampled_from([0.1, -0.1, -1e-20, 0.0, 0.3])))
def test_the_ratio_is_that_of_the_table_negative_masses_too(channel):
    _, table = exact_table(channel)
    ratio = 1.0
    for column in zip(*table, strict=True):
        if min(column) < 0 or (min(column) == 0 < max(column)):
            ratio = math.inf
        elif max(column) > 0:
            ratio = max(ratio, nearest(max(column) / min(column)))
    assert channel.realised_ratio == pytest.approx(ratio, rel=1e-15)


@given(
    channels().filter(lambda channel: channel.epsilon < 700 and channel.outputs[0] > 0 and channel.labels[0] >= 0),
    st.sampled_from([losses.squared, losses.poisson_log]),
    st.sampled_from([0.0, 2.0]),
)
def test_values_are_those_of_the_dense_channel(channel, loss, penalty):
    prior = np.full(channel.k, 1 / channel.k)
    problem = regression(channel.labels, prior, 1.0, loss=loss, bias_penalty=penalty, outputs=channel.outputs)
    dense = Randomizer(channel.labels, channel.outputs, channel.matrix, channel.epsilon)
    losses_of_rows = channel.matrix @ np.abs(problem.loss_table(channel.outputs)).T
    size = float(losses_of_rows.max()) + penalty * float((channel.matrix @ channel.outputs + channel.labels).max()) ** 2
    assert problem.value(channel) == pytest.approx(problem.value(dense), abs=1e-12 * size)


def test_the_table_is_walked_in_blocks(monkeypatch):
    arcs = Arcs(
        5, [0, 1, 2, 0, 3, 4], [0, 3, 2, 4, 4, 4], [0.5, 1.0, 1.0, 2.0, 3.0, 9.0], [0.1, 0.2, 0.3, 0.1, 0.1, 0.1]
    )
    channel = Randomizer.of_arcs(np.arange(5.0) + 1, arcs, 1.0)
    problem = regression(channel.labels, np.full(5, 0.2), 1.0, loss=losses.poisson_log, outputs=channel.outputs)
    whole = problem.value(channel)
    monkeypatch.setattr("optrand.model.randomizer.BLOCK", 10)
    blocks = list(channel.blocks())
    assert [v.tolist() for v, _ in blocks] == [[0.5, 1.0], [2.0, 3.0], [9.0]]
    assert np.allclose(np.hstack([table for _, table in blocks]), channel.matrix, rtol=1e-15)
    assert problem.value(channel) == pytest.approx(whole, rel=1e-14)


def test_a_small_variance_beside_a_large_range_keeps_its_digits():
    """Debiased randomized response at epsilon 30, far from zero: the variance is ``exp(-30)`` of the range squared."""
    labels, epsilon = 1e6 + np.arange(3.0), 30.0
    ratio = Fraction(math.exp(epsilon))
    masses = np.full(3, float(1 / (ratio + 2)))
    channel = Randomizer.of_arcs(labels, Arcs(3, np.arange(3), np.arange(3), labels, masses), epsilon)
    # Mean square distance of the others, a mass each, less the square of the bias, which is no larger than 3 masses.
    expected = [5 * masses[0], 2 * masses[0], 5 * masses[0]]
    assert channel.variances.tolist() == pytest.approx(expected, rel=1e-12)
    assert channel.biases.tolist() == pytest.approx([3 * masses[0], 0.0, -3 * masses[0]], rel=1e-12, abs=1e-27)


def test_leaving_out_arcs_without_mass_keeps_arcs():
    channel = Randomizer.of_arcs([0.0, 1.0], Arcs(2, [0, 0, 1], [0, 1, 1], [0.0, 0.5, 1.0], [0.3, 0.0, 0.3]), 1.0)
    lean = channel.without_unused_outputs()
    assert lean.arcs is not None
    assert lean.outputs.tolist() == [0.0, 1.0]
    assert lean.rows.tolist() == channel.rows.tolist()


# ------------------------------------------------------------------------------------------------- exact mechanisms


@given(st.randoms(use_true_random=False), st.sampled_from([0.1, 1.0, 8.0, 40.0]), st.data())
def test_the_loss_of_interval_columns_is_that_of_their_rows(rng, epsilon, data):
    labels = data.draw(label_sets(2, 6))
    k, ratio = labels.size, privacy_ratio(epsilon)
    arcs = layered_arcs(rng, k, rng.randint(1, 3), 5, rng.choice([1, 7, 10**30]))
    loss, penalty = rng.choice([(losses.squared, 0.0), (losses.squared, 0.7), (losses.absolute, 0.0)])
    problem = regression(labels, data.draw(priors(k)), epsilon, loss=loss, bias_penalty=penalty)
    outputs, dual = [-3.0, 0.1, 0.25, 2.0, 7.5][: arcs.n], Dual(np.zeros(k), np.zeros(k))
    mechanism = mechanism_of(problem, dual, outputs, arcs, ratio)
    shares = [[Fraction(w, mechanism.total) for w in row] for row in arcs.table(ratio).tolist()]
    value = Feasible(problem, list(map(Fraction, outputs)), shares).value
    assert certify(mechanism).upper == mechanism.value == float_above(value)


def test_many_labels_are_certified_without_their_table():
    """Sizes at which the table would not fit a small machine: the mixture of two partitions of 10,001 labels."""
    k, ratio = 10_001, privacy_ratio(1.0)
    singles, pairs = np.arange(k), np.arange(0, k, 2)
    first = np.concatenate((singles, pairs))
    last = np.concatenate((singles, np.minimum(pairs + 1, k - 1)))
    order = np.lexsort((last, first))
    labels = np.arange(float(k))
    arcs = IntegerArcs(k, first[order], last[order], np.arange(first.size), [3] * first.size)
    problem = regression(labels, np.full(k, 1 / k), 1.0)
    outputs = (first + last)[order] / 2 + 1e-3 * np.arange(first.size)
    mechanism = mechanism_of(problem, Dual(np.zeros(k), np.zeros(k)), outputs, arcs, ratio)
    proof, floats = certify(mechanism), mechanism.randomizer
    assert proof.findings == ()
    assert problem.value(floats) == pytest.approx(proof.upper, rel=1e-14)
    assert "weights" not in vars(mechanism.table)
    assert "matrix" not in vars(floats)
    # Without multipliers of any use: the variance of the prior, halved, over E.
    assert proof.lower == pytest.approx((k**2 - 1) / 24 / math.e, rel=1e-9)
