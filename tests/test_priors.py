"""Noise that is exactly what its formula says, a budget that is never overspent, and a prior that can be used."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optrand.base._validation import check_prior
from optrand.errors import InvalidInput
from optrand.sampling._discrete_noise import discrete_laplace
from optrand.sampling._entropy import SeededEntropy, SystemEntropy
from optrand.sampling._priors import (
    PRIOR_SHARE,
    BudgetSplit,
    private_histogram,
    private_prior,
    split_at,
    split_budget,
)


def probability(x, scale):
    """The mass function: ``(1 - q) / (1 + q) * q**abs(x)`` with ``q = exp(-1 / scale)``, whose sum is 1."""
    q = math.exp(-1 / float(scale))
    return (1 - q) / (1 + q) * q ** abs(x)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_many_draws_fit_the_mass_function(epsilon):
    scale = 2 / Fraction(epsilon)
    draws = np.array(discrete_laplace(scale, 40_000, source=SeededEntropy(11)))
    reach = int(4 * float(scale)) + 1
    inside = np.arange(-reach, reach + 1)
    expected = np.array([probability(x, scale) for x in inside])
    expected = np.append(expected, 1 - expected.sum()) * draws.size
    observed = np.array([(draws == x).sum() for x in inside])
    observed = np.append(observed, draws.size - observed.sum())
    few = expected < 5
    if few.any():
        expected = np.append(expected[~few], expected[few].sum())
        observed = np.append(observed[~few], observed[few].sum())
    # A fixed seed: this either always passes or never does. 1e-3 would be wrong for one seed in a thousand.
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_draws_follow_the_scale_and_the_sign():
    """Mean 0, standard deviation ``sqrt(2 q) / (1 - q)`` with ``q = exp(-1 / scale)``."""
    scale = Fraction(200, 7)
    draws = np.array(discrete_laplace(scale, 40_000, source=SeededEntropy(12)), dtype=float)
    q = math.exp(-1 / float(scale))
    deviation = math.sqrt(2 * q) / (1 - q)
    assert abs(draws.mean()) < 5 * deviation / math.sqrt(draws.size)
    assert draws.std() == pytest.approx(deviation, rel=0.03)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_histogram_is_private_at_epsilon_and_not_below(epsilon):
    """From both sides: the worst outcome of two neighbours has a ratio of exactly ``exp(epsilon)``.

    The mass function is the one that the enumeration above ties to the code.
    """
    scale = 2 / Fraction(epsilon)
    mine, neighbour = np.array([3, 1, 0]), np.array([2, 2, 0])
    worst = 0.0
    for first in range(-12, 13):
        for second in range(-12, 13):
            ratio = probability(first - mine[0], scale) * probability(second - mine[1], scale)
            ratio /= probability(first - neighbour[0], scale) * probability(second - neighbour[1], scale)
            worst = max(worst, abs(math.log(ratio)))
    assert worst <= epsilon + 1e-12
    assert worst > epsilon - 0.01


def test_the_noise_of_a_histogram_has_scale_two_over_epsilon():
    noise = discrete_laplace(2 / Fraction("0.3"), 5, source=SeededEntropy(4))
    assert private_histogram([0] * 5, 0.3, source=SeededEntropy(4)) == noise
    assert private_histogram([7] * 5, 0.3, source=SeededEntropy(4)) == tuple(7 + x for x in noise)


def test_tiny_and_large_budgets_are_no_special_case():
    assert max(abs(x) for x in private_histogram([1, 2, 3], 1e-300)) > 10**290
    assert private_histogram([1, 2, 3], 700.0) == (1, 2, 3)
    check_prior(private_prior([1, 2, 3], 5e-324, source=SeededEntropy(1)).probabilities)


def test_ten_thousand_labels_with_system_entropy():
    noisy = private_histogram(np.full(10_000, 50), 0.1)
    assert len(noisy) == 10_000
    assert all(isinstance(count, int) for count in noisy)
    assert noisy != private_histogram(np.full(10_000, 50), 0.1, source=SystemEntropy())


@pytest.mark.parametrize(
    "counts",
    [[], [1.0, 2.0], [[1, 2]], [True, False], ["1"], [1, -1]],
    ids=["empty", "float", "2d", "bool", "text", "-"],
)
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(InvalidInput):
        private_histogram(counts, 1.0)


def test_a_prior_is_clipped_and_normalised():
    seed = 0  # one where clipping matters
    noisy = private_histogram([100, 0, 0, 40], 1.0, source=SeededEntropy(seed))
    estimate = private_prior([100, 0, 0, 40], 1.0, source=SeededEntropy(seed))
    clipped = np.maximum(noisy, 0)
    assert min(noisy) < 0
    np.testing.assert_allclose(estimate.probabilities, clipped / clipped.sum(), rtol=1e-15)
    assert not estimate.uniform
    assert estimate.epsilon == 1.0
    check_prior(estimate.probabilities)
    with pytest.raises(ValueError, match="read-only"):
        estimate.probabilities[0] = 1.0


def test_a_histogram_of_nothing_but_clipped_counts_gives_the_uniform_prior_and_says_so():
    seed = next(s for s in range(1000) if max(private_histogram([0] * 3, 1.0, source=SeededEntropy(s))) <= 0)
    estimate = private_prior([0] * 3, 1.0, source=SeededEntropy(seed))
    assert estimate.uniform
    assert estimate.probabilities.tolist() == [1 / 3] * 3


def test_the_split_is_that_of_the_paper_up_to_its_ceiling():
    # [B23], Section 4.2: k = 53 labels and 131,903,909 people, rounded there to 0.002.
    assert split_budget(1.0, 53, 131_903_909).prior == pytest.approx(math.sqrt(53 / 131_903_909))
    assert split_budget(1.0, 53, 100).prior == PRIOR_SHARE
    assert split_budget(4.0, 1000, 1) == BudgetSplit(4.0 * PRIOR_SHARE, 3.8)


@given(
    epsilon=st.floats(1e-300, 700.0),
    k=st.integers(1, 10_000),
    n=st.integers(1, 10**9),
)
def test_the_two_parts_never_exceed_the_whole(epsilon, k, n):
    split = split_budget(epsilon, k, n)
    written = lambda x: Fraction(repr(x))  # noqa: E731
    assert written(split.prior) + written(split.labels) <= written(epsilon)
    # And nothing worth having is lost: the next float up for the labels would be too much.
    assert written(split.prior) + written(math.nextafter(split.labels, math.inf)) > written(epsilon)
    assert 0 < split.prior <= PRIOR_SHARE * epsilon < split.labels


@pytest.mark.parametrize("part", [1.0, 2.0, 0.0, -0.1, math.nan, True, "0.1"])
def test_a_part_that_leaves_nothing_or_is_none_is_refused(part):
    with pytest.raises(InvalidInput):
        split_at(1.0, part)


@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 0)])
def test_a_split_needs_labels_and_rows(k, n):
    with pytest.raises(InvalidInput, match="at least one of each"):
        split_budget(1.0, k, n)
