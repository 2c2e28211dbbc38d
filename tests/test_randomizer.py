"""The finite channel: what it refuses, and its figures against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import label_sets

from optrand import closed_forms
from optrand.errors import InvalidInput
from optrand.model.randomizer import Randomizer


@pytest.mark.parametrize(
    ("labels", "outputs", "matrix", "message"),
    [
        ([1, 0], [0, 1], [[1, 0], [0, 1]], "labels of a randomizer must strictly increase"),
        ([0, 0], [0, 1], [[1, 0], [0, 1]], "labels of a randomizer must strictly increase"),
        ([0, 1], [1, 1], [[1, 0], [0, 1]], "outputs of a randomizer must strictly increase"),
        ([0, 1], [0, 1], [[1, 0]], r"matrix has shape \(1, 2\), expected \(2, 2\): one row per label"),
        ([0, 1], [0, 1, 2], [[1, 0], [0, 1]], r"expected \(2, 3\)"),
        ([0, 1], [0, 1], [1, 0], r"matrix has shape \(2,\)"),
        ([0, 1], [0, 1], [[1, math.nan], [0, 1]], "matrix holds NaN or infinite entries"),
        ([0, 1], [0, 1], [[1, math.inf], [0, 1]], "matrix holds NaN or infinite entries"),
        ([0, math.nan], [0, 1], [[1, 0], [0, 1]], "labels holds NaN"),
        ([], [0], [], "labels is empty"),
        ([0], [], [[]], "outputs is empty"),
    ],
)
def test_what_is_no_table_is_refused(labels, outputs, matrix, message):
    with pytest.raises(InvalidInput, match=message):
        Randomizer(labels, outputs, matrix, 1.0)


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
    ratio = 1.0
    for column in channel.matrix.T:
        for one in column:
            for other in column:
                if one > 0:
                    ratio = max(ratio, math.inf if other == 0 else one / other)
    assert channel.realised_ratio == ratio
    assert channel.realised_epsilon == math.log(ratio)
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
    assert lean.realised_ratio == padded.realised_ratio == channel.realised_ratio


def test_biases_of_labels_far_from_zero_keep_their_digits():
    channel = Randomizer([1e9, 1e9 + 1], [1e9 - 1, 1e9 + 2], [[0.7, 0.3], [0.3, 0.7]], 1.0)
    # 0.7 * -1 + 0.3 * 2 and 0.3 * -2 + 0.7 * 1; the means themselves hold seven digits of that at most.
    assert channel.biases.tolist() == pytest.approx([-0.1, 0.1], abs=1e-14)


@pytest.mark.parametrize(
    ("matrix", "ratio"),
    [
        ([[1.5, -0.5], [0.25, 0.25]], math.inf),
        ([[1.0, 0.0], [0.3, 0.7]], math.inf),
        # Beyond floats, without a warning.
        ([[1.0, 1e-320], [1e-320, 1.0]], math.inf),
        # An output that nobody produces tells nothing.
        ([[1.0, 0.0], [1.0, 0.0]], 1.0),
    ],
)
def test_a_broken_promise_is_a_randomizer_too(matrix, ratio):
    broken = Randomizer([0, 1], [0, 1], matrix, 1.0)
    assert (broken.realised_ratio, broken.realised_epsilon) == (ratio, math.log(ratio))


def test_signature_tells_staircases_from_the_rest_and_empty_columns():
    signature = closed_forms.rr([0, 1, 2], 1.0).randomizer.signature()
    assert ["".join(row) for row in signature] == ["ULL", "LUL", "LLU"]
    matrix = [[0.5, 0.2, 0.3, 0.0], [0.2, 0.5, 0.3, 0.0], [0.3, 0.3, 0.4, 0.0]]
    signature = Randomizer([0, 1, 2], [0, 1, 2, 3], matrix, math.log(2.5)).signature()
    # The first two columns reach the ratio 2.5, their middle entries are in between; the third column stays below it.
    assert ["".join(row) for row in signature] == ["ULS0", "LUS0", "SSS0"]
    own, other = math.e / (math.e + 1), 1 / (math.e + 1)
    matrix = np.array([[own, other], [other, own]]) * (1 + 1e-12 * np.array([[1, 1], [1, -1]]))
    channel = Randomizer([0, 1], [0, 1], matrix, 1.0)
    assert ["".join(row) for row in channel.signature()] == ["UL", "LU"], "rounding is allowed for"
    assert "S" in channel.signature(tolerance=1e-15)
