"""The finite channel: its refusals, and its figures against their definitions."""

import math

import numpy as np
import pytest
from asserting import assert_error, by_case
from flows import arcs_of, forward
from hypothesis import given
from hypothesis import strategies as st
from strategies import label_sets, priors

from optrand import closed_forms, losses, regression
from optrand.model._randomizer import Arcs, Randomizer


@by_case(
    "labels, outputs, matrix, message",
    ([1, 0], [0, 1], [[1, 0], [0, 1]], "labels of a randomizer must strictly increase"),
    ([0, 1], [1, 1], [[1, 0], [0, 1]], "outputs of a randomizer must strictly increase"),
    ([0, 1], [0, 1], [[1, 0]], r"matrix has shape \(1, 2\), expected \(2, 2\): one row per label"),
    ([0, 1], [0, 1, 2], [[1, 0], [0, 1]], r"expected \(2, 3\)"),
    ([0, 1], [0, 1], [1, 0], r"matrix has shape \(2,\)"),
    ([0, 1], [0, 1], [[1, math.nan], [0, 1]], "matrix holds NaN or infinite entries"),
    ([0, 1], [0, 1], [[1, math.inf], [0, 1]], "matrix holds NaN or infinite entries"),
    ([0], [], [[]], "outputs is empty"),
)
def test_what_is_no_table_is_refused(labels, outputs, matrix, message):
    assert_error(message, Randomizer, labels, outputs, matrix, 1.0)


def test_it_cannot_be_changed():
    given_matrix = np.array([[0.5, 0.5], [0.5, 0.5]])
    coin = Randomizer([0, 1], [0, 1], given_matrix, 1.0)
    given_matrix[0, 0] = 1.0
    assert coin.matrix[0, 0] == 0.5
    for array in (coin.labels, coin.outputs, coin.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@st.composite
def tables(draw):
    labels = draw(label_sets(1, 4))
    n = draw(st.integers(1, 4))
    entries = draw(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0, 4.0]), min_size=labels.size * n, max_size=labels.size * n)
    )
    matrix = np.array(entries).reshape(labels.size, n) + 0.0
    matrix[:, 0] += 1e-3
    matrix /= matrix.sum(axis=1, keepdims=True)
    return Randomizer(labels, np.cumsum(np.arange(1.0, n + 1)) - 2, matrix, 1.0)


@given(tables())
def test_figures_are_their_definitions(channel):
    for y, row in enumerate(channel.matrix):
        mean = sum(p * v for p, v in zip(row, channel.outputs, strict=True))
        variance = sum(p * (v - mean) ** 2 for p, v in zip(row, channel.outputs, strict=True))
        assert channel.means[y] == pytest.approx(mean)
        assert channel.variances[y] == pytest.approx(variance, abs=1e-12)
        assert channel.biases[y] == pytest.approx(mean - channel.labels[y], abs=1e-12)
    assert (channel.k, channel.n) == channel.matrix.shape


@given(tables())
def test_leaving_out_unused_outputs_changes_no_figure(channel):
    padded = Randomizer(
        channel.labels,
        np.append(channel.outputs, channel.outputs[-1] + 1),
        np.hstack((channel.matrix, np.zeros((channel.k, 1)))),
        1.0,
    )
    lean = padded.without_unused_outputs()
    assert lean.n == int((channel.matrix > 0).any(axis=0).sum())
    assert lean.means.tolist() == pytest.approx(channel.means.tolist())


def test_biases_of_labels_far_from_zero_keep_their_digits():
    channel = Randomizer([1e9, 1e9 + 1], [1e9 - 1, 1e9 + 2], [[0.7, 0.3], [0.3, 0.7]], 1.0)
    # 0.7 * -1 + 0.3 * 2 and 0.3 * -2 + 0.7 * 1. The means themselves hold seven digits of that at most.
    assert channel.biases.tolist() == pytest.approx([-0.1, 0.1], abs=1e-14)


@st.composite
def channels_of_arcs(draw):
    """Up to seven arcs, nested and on shared outputs, too. Rows are no distributions."""
    labels = draw(label_sets(1, 6))
    n, k = draw(st.integers(1, 7)), labels.size
    ends = [sorted((draw(st.integers(0, k - 1)), draw(st.integers(0, k - 1)))) for _ in range(n)]
    outputs = sorted(draw(st.sampled_from([-3.0, 0.1, 0.25, 2.0, 7.5, 1000.0])) for _ in range(n))
    masses = [draw(st.sampled_from([0.0, 0.1, 0.3, 1e-9, 5.0])) for _ in range(n)]
    arcs = Arcs(k, [a for a, _ in ends], [b for _, b in ends], outputs, masses)
    return Randomizer.of_arcs(labels, arcs, draw(st.sampled_from([1e-6, 0.5, 1.0, 8.0])))


@given(channels_of_arcs(), st.data())
def test_figures_of_arcs_are_those_of_their_table(channel, data):
    dense = Randomizer(channel.labels, channel.outputs, channel.matrix, channel.epsilon)
    reach = float(np.abs(channel.outputs - channel.labels[:, np.newaxis]).max()) * float(
        channel.matrix.sum(axis=1).max()
    )
    assert channel.biases == pytest.approx(dense.biases, rel=1e-12, abs=1e-13 * reach)
    assert channel.means == pytest.approx(dense.means, rel=1e-12, abs=1e-12 * reach)
    square = reach**2 + reach
    assert channel.squared_errors == pytest.approx(dense.squared_errors, rel=1e-12, abs=1e-13 * square)
    prior = data.draw(priors(channel.k))
    for loss in (losses.squared, losses.absolute):
        problem = regression(channel.labels, prior, 1.0, loss=loss)
        assert problem.value(channel) == pytest.approx(problem.value(dense), rel=1e-12, abs=1e-13 * square)
        assert channel.losses(loss) @ prior == pytest.approx(problem.value(channel), rel=1e-12, abs=1e-13 * square)
    assert channel.losses(bias_penalty=2.0) == pytest.approx(
        dense.losses(bias_penalty=2.0), rel=1e-9, abs=1e-9 * square
    )


def test_variances_of_flows_are_those_of_their_table():
    rng = np.random.default_rng(2)
    for k in (1, 5, 30):
        problem = regression(np.cumsum(rng.exponential(size=k)), rng.dirichlet(np.ones(k)), 2.0)
        channel = Randomizer.of_arcs(problem.labels, arcs_of(problem, forward(rng, k)), 2.0)
        dense = Randomizer(channel.labels, channel.outputs, channel.matrix, 2.0)
        assert channel.variances == pytest.approx(dense.variances, rel=1e-12, abs=1e-15)


def test_a_small_variance_beside_a_large_range_keeps_its_digits():
    """Debiased randomized response at epsilon 15, far from zero: the variance is ``exp(-15)`` of the range squared."""
    labels, epsilon = 1e6 + np.arange(3.0), 15.0
    masses = np.full(3, 1 / (math.exp(epsilon) + 2))
    channel = Randomizer.of_arcs(labels, Arcs(3, np.arange(3), np.arange(3), labels, masses), epsilon)
    # Mean square distance of the others, a mass each, less the square of the bias, which is at most 3 masses.
    expected = [5 * masses[0] - 9 * masses[0] ** 2, 2 * masses[0], 5 * masses[0] - 9 * masses[0] ** 2]
    assert channel.variances.tolist() == pytest.approx(expected, rel=1e-12)
    assert channel.biases.tolist() == pytest.approx([3 * masses[0], 0.0, -3 * masses[0]], rel=1e-12, abs=1e-18)


def test_the_table_is_walked_in_blocks(monkeypatch):
    arcs = Arcs(
        5, [0, 1, 2, 0, 3, 4], [0, 3, 2, 4, 4, 4], [0.5, 1.0, 1.0, 2.0, 3.0, 9.0], [0.1, 0.2, 0.3, 0.1, 0.1, 0.1]
    )
    channel = Randomizer.of_arcs(np.arange(5.0) + 1, arcs, 1.0)
    problem = regression(channel.labels, np.full(5, 0.2), 1.0, loss=losses.poisson_log, outputs=channel.outputs)
    whole = problem.value(channel)
    monkeypatch.setattr("optrand.model._randomizer.BLOCK", 10)
    blocks = list(channel.blocks())
    assert [v.tolist() for v, _ in blocks] == [[0.5, 1.0], [2.0, 3.0], [9.0]]
    assert np.allclose(np.hstack([table for _, table in blocks]), channel.matrix, rtol=1e-15)
    assert problem.value(channel) == pytest.approx(whole, rel=1e-14)


def test_signature_tells_staircases_from_the_rest_and_empty_columns():
    signature = closed_forms.rr([0, 1, 2], 1.0).randomizer.signature()
    assert ["".join(row) for row in signature] == ["ULL", "LUL", "LLU"]
    matrix = [[0.5, 0.2, 0.3, 0.0], [0.2, 0.5, 0.3, 0.0], [0.3, 0.3, 0.4, 0.0]]
    signature = Randomizer([0, 1, 2], [0, 1, 2, 3], matrix, math.log(2.5)).signature()
    # The first two columns reach the ratio 2.5, their middle entries are in between. The third column stays below it.
    assert ["".join(row) for row in signature] == ["ULS0", "LUS0", "SSS0"]
    own, other = math.e / (math.e + 1), 1 / (math.e + 1)
    matrix = np.array([[own, other], [other, own]]) * (1 + 1e-12 * np.array([[1, 1], [1, -1]]))
    channel = Randomizer([0, 1], [0, 1], matrix, 1.0)
    assert ["".join(row) for row in channel.signature()] == ["UL", "LU"], "rounding is allowed for"
    assert "S" in channel.signature(tolerance=1e-15)
