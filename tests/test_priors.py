"""A noisy histogram, a budget that is never overspent, and a prior without zeros, the posterior mean under noise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st

from optrand.base._validation import check_prior
from optrand.sampling import _priors
from optrand.sampling._discrete_noise import discrete_laplace
from optrand.sampling._entropy import SeededEntropy, SystemEntropy
from optrand.sampling._priors import (
    FLOOR,
    PRIOR_SHARE,
    BudgetSplit,
    EstimatedPrior,
    private_histogram,
    private_prior,
    smoothed_prior,
    split_at,
    split_budget,
)


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


@by_case(
    "words, call, arguments",
    *[(".", private_histogram, (counts, 1.0)) for counts in ([], [1.0, 2.0], [[1, 2]], [True, False], ["1"], [1, -1])],
    *[(".", split_at, (1.0, part)) for part in (1.0, 2.0, 0.0, -0.1, math.nan, True, "0.1")],
    ("at least one of each", split_budget, (1.0, 0, 5)),
    ("at least one of each", split_budget, (1.0, 5, 0)),
    (r"0 row\(s\)", smoothed_prior, (EstimatedPrior((1, 2), 1.0), 0)),
)
def test_counts_and_budgets_without_meaning_are_refused(words, call, arguments):
    assert_error(words, call, *arguments)


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


@given(epsilon=st.floats(1e-300, 700.0), k=st.integers(1, 10_000), n=st.integers(1, 10**9))
def test_the_two_parts_never_exceed_the_whole(epsilon, k, n):
    split = split_budget(epsilon, k, n)
    written = lambda x: Fraction(repr(x))  # noqa: E731
    assert written(split.prior) + written(split.labels) <= written(epsilon)
    # And nothing worth having is lost: the next float up for the labels would be too much.
    assert written(split.prior) + written(math.nextafter(split.labels, math.inf)) > written(epsilon)
    assert 0 < split.prior <= PRIOR_SHARE * epsilon < split.labels


# A prior without zeros
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 100, 1000])
@pytest.mark.parametrize("rate", [1e-9, 1e-7, 1e-3, 0.1, 3.0, 300.0])
def test_sums_over_a_bin_are_the_sums(rows, rate):
    """Against the sums themselves, term by term."""
    low, high = _priors._list_bins(rows)
    covered = np.concatenate([np.arange(a, b + 1) for a, b in zip(low, high, strict=True)])
    assert covered.tolist() == list(range(rows + 1))
    for noisy in {0, 1, rows // 2, rows}:
        weights, means = _priors._average_bins(np.array([[float(noisy)]]), low, high, rate)
        for j, (first, last) in enumerate(zip(low, high, strict=True)):
            counts = np.arange(first, last + 1)
            likelihood = np.exp(-rate * np.abs(noisy - counts))
            assert weights[0, j] == pytest.approx(likelihood.mean(), rel=1e-9, abs=1e-300)
            if likelihood.sum() > 0:
                assert means[0, j] == pytest.approx(likelihood @ counts / likelihood.sum(), rel=1e-6, abs=1e-6)


def by_enumeration(noisy, rows, epsilon):
    """Fit with every count written out, and the likelihood of counts that are not clipped."""
    counts = np.arange(rows + 1)
    bins = np.array([count.bit_length() for count in range(rows + 1)])
    sizes = np.bincount(bins)
    likelihood = np.exp(-epsilon / 2 * np.abs(np.array(noisy)[:, np.newaxis] - counts))
    likelihood /= likelihood.max(axis=1, keepdims=True)
    masses = np.full(sizes.size, 1 / sizes.size)
    rounds = 100
    for step in range(rounds + 1):
        posterior = likelihood * (masses / sizes)[bins]
        posterior /= posterior.sum(axis=1, keepdims=True)
        if step < rounds:
            held = np.array([posterior[:, bins == b].sum() for b in range(sizes.size)])
            masses = (held + 1 / sizes.size) / (len(noisy) + 1)
    means = posterior @ counts
    return (1 - FLOOR) * means / means.sum() + FLOOR / len(noisy)


@given(st.lists(st.integers(-40, 120), min_size=2, max_size=6), st.integers(1, 80), st.floats(0.05, 3.0))
def test_clipping_loses_nothing_and_bins_are_summed_in_closed_form(noisy, rows, epsilon):
    clipped = EstimatedPrior(tuple(max(count, 0) for count in noisy), epsilon)
    expected = by_enumeration(noisy, rows, epsilon)
    assert smoothed_prior(clipped, rows) == pytest.approx(expected, rel=1e-6)


@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=8),
    st.integers(1, 10**12),
    st.one_of(st.floats(1e-12, 700.0), st.sampled_from([5e-324, 1e-300])),
)
def test_every_label_has_a_probability_and_equal_counts_have_equal_ones(counts, rows, epsilon):
    prior = smoothed_prior(EstimatedPrior(tuple(counts), epsilon), rows)
    check_prior(prior)
    assert (prior >= FLOOR / len(counts) * 0.999).all()
    assert math.fsum(prior) == pytest.approx(1.0, abs=1e-12)
    order = np.argsort(counts)
    clipped = np.minimum(np.array(counts, dtype=object), rows)[order]
    steps = np.diff(prior[order])
    assert (steps[np.diff(clipped) == 0] == 0).all()
    assert (steps >= -1e-9).all()


def test_where_noise_is_small_it_is_the_table_and_where_all_is_noise_it_is_uniform():
    counts = np.array([600_000, 399_000, 1_000, 0])
    exact = smoothed_prior(EstimatedPrior(tuple(counts.tolist()), 100.0), 1_000_000)
    assert exact == pytest.approx(counts / counts.sum(), abs=2e-6)
    assert smoothed_prior(EstimatedPrior((0, 0, 0), 0.1), 10) == pytest.approx(1 / 3, rel=1e-12)


def test_it_is_nearer_to_the_truth_than_clipping_where_most_labels_are_empty():
    """Mean squared distance of 200 seeded estimates. A flat posterior mean is further off than either."""
    counts = np.zeros(53, dtype=int)
    counts[[0, 52]] = 700, 300
    shares = counts / counts.sum()
    estimates = [private_prior(counts, 0.05, source=SeededEntropy(seed)) for seed in range(200)]
    clipped = np.mean([((one.probabilities - shares) ** 2).sum() for one in estimates])
    smoothed = np.mean([((smoothed_prior(one, 1_000) - shares) ** 2).sum() for one in estimates])
    assert smoothed < 0.5 * clipped
