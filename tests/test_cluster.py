"""Cluster mechanisms: the privacy that holds and the printed one, decided by enumeration, and debiased losses."""

import itertools
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optrand.base._arithmetic import log_above
from optrand.baselines._cluster import ClusterPriorRR, ClusterPriors, ClusterRR
from optrand.baselines._groups import Groups
from optrand.baselines._randomization import LabelRandomization, UniformRR
from optrand.closed_forms import rr, rr_with_prior, rr_with_prior_batch
from optrand.errors import InvalidInput, MissingExtra
from optrand.model._randomizer import LabelRandomizer
from optrand.sampling._entropy import SeededEntropy, SystemEntropy
from optrand.sampling._priors import BudgetSplit, private_prior, split_at
from optrand.theory.e22.curator import find_ratio
from optrand.theory.e22.losses import histograms, noisy_law

TOLERANCE = 1e-12
"""Error of sums and logarithms in floats."""


def noise_of(mechanism):
    """Ratio of the probabilities of noises that differ by 1."""
    return Fraction(math.exp(1 / mechanism.noise_scale))


def true_epsilon(mechanism, others):
    """Epsilon of the whole release of one cluster, whose rows except one have these counts, by enumeration."""
    return math.log(find_ratio(others, mechanism.threshold, noise_of(mechanism), mechanism.resampling))


@pytest.mark.parametrize(("k", "size"), [(2, 2), (2, 7), (3, 4)])
@pytest.mark.parametrize(
    ("threshold", "noise_scale", "resampling"),
    [(0.2, 2.0, 0.5), (0.05, 1.0, 0.9), (0.3, 8.0, 0.97), (0.125, 0.5, 0.2), (1 / 3, 3.0, 0.6)],
)
def test_the_whole_release_keeps_the_true_epsilon(k, size, threshold, noise_scale, resampling):
    mechanism = ClusterRR(k, threshold=threshold, noise_scale=noise_scale, resampling=resampling)
    for others in histograms(k, size - 1):
        assert true_epsilon(mechanism, others) <= mechanism.epsilon + TOLERANCE


def test_the_sum_of_both_budgets_is_nearly_attained_and_the_printed_one_broken():
    # Both counts of a replaced label matter: the distributions alone take 2 / sigma, but the paper counts 1 / sigma.
    one, other = (noisy_law(counts, Fraction(1, 20), Fraction(3)) for counts in ((7, 0), (6, 1)))
    assert max(mass / other[distribution] for distribution, mass in one.items()) == 3**2
    # Three labels. The row's own count is below the threshold, so that a share just above tau speaks for it and is
    # still small. The other count falls below the threshold. The third makes the sum right.
    mechanism = ClusterRR(3, threshold=Fraction(1, 8), noise_scale=4.0, resampling=0.5)
    whole = true_epsilon(mechanism, (0, 10, 1))
    assert mechanism.printed_epsilon + 0.14 < whole
    assert mechanism.epsilon - 0.11 < whole <= mechanism.epsilon + TOLERANCE


def test_releases_follow_the_law_that_was_enumerated():
    mechanism = ClusterRR(2, threshold=0.2, noise_scale=1.5, resampling=0.4)
    labels, copies = [0, 0, 1], 1_500
    groups = Groups.of_ids(np.repeat(np.arange(copies), 3))
    release = mechanism.release(labels * copies, groups, source=SeededEntropy(11))
    law: Counter[tuple[tuple[Fraction, ...], tuple[int, ...]]] = Counter()
    for distribution, mass in noisy_law((2, 1), mechanism.threshold, noise_of(mechanism)).items():
        matrix = LabelRandomization(distribution, mechanism.resampling).matrix
        for noisy in itertools.product(range(2), repeat=3):
            law[distribution, noisy] += float(mass) * math.prod(
                matrix[v, y] for v, y in zip(noisy, labels, strict=True)
            )
    drawn = Counter(zip(release.distributions, map(tuple, release.labels.reshape(-1, 3).tolist()), strict=True))
    assert drawn.keys() <= law.keys()
    expected = np.array(list(law.values())) * copies
    observed = np.array([drawn[outcome] for outcome in law])
    assert stats.chisquare(observed, expected * copies / expected.sum()).pvalue > 1e-3


@st.composite
def channels(draw):
    weights = draw(st.lists(st.integers(1, 40), min_size=2, max_size=6))
    share = draw(st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50))
    return LabelRandomization(tuple(Fraction(w, sum(weights)) for w in weights), share)


@given(channels(), st.integers(0, 2**32))
def test_the_modified_loss_has_the_true_loss_as_its_mean(channel, seed):
    losses = np.random.default_rng(seed).normal(size=channel.k)
    modified = channel.loss_weights(np.arange(channel.k)) @ losses
    np.testing.assert_allclose(modified @ channel.matrix, losses, atol=1e-9)
    np.testing.assert_allclose(channel.inverse, np.linalg.inv(channel.matrix), rtol=1e-9, atol=1e-9)


@given(channels())
def test_a_channel_is_private_at_its_epsilon_and_at_nothing_less(channel):
    ratios = channel.matrix.max(axis=1) / channel.matrix.min(axis=1)
    assert channel.epsilon == pytest.approx(math.log(ratios.max()), abs=1e-9)


@given(channels())
def test_moments_are_those_of_the_matrix(channel):
    labels = np.arange(channel.k)
    moments = channel.moments(labels)
    means = labels @ channel.matrix
    np.testing.assert_allclose(moments.biases, means - labels, atol=1e-9)
    np.testing.assert_allclose(moments.variances, labels**2 @ channel.matrix - means**2, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_uniform_rr_is_randomized_response(k, epsilon):
    uniform = UniformRR(k, epsilon)
    mechanism = rr(range(k), epsilon)
    np.testing.assert_allclose(uniform.matrix.T, mechanism.matrix, rtol=1e-12)
    assert mechanism.certificate.gap < 1e-12
    assert epsilon * (1 - 1e-12) < log_above(uniform.ratio) <= uniform.epsilon == epsilon
    assert isinstance(uniform, LabelRandomizer)


@pytest.mark.parametrize("k", [2, 3, 5, 10, 49])
def test_a_threshold_of_one_over_k_leaves_uniform_rr(k):
    # Corollary 1 of [E22]: for any counts the distributions are uniform. The float 1/k may exceed 1/k.
    uniform = UniformRR(k, 1.0)
    mechanism = ClusterRR(k, threshold=1 / k, noise_scale=1e9, resampling=uniform.resampling)
    release = mechanism.release([0, 0, 1, 1], Groups.of_ids([3, 3, 3, 8]), source=SystemEntropy())
    assert release.channel(0) == release.channel(1) == LabelRandomization(uniform.distribution, uniform.resampling)
    assert mechanism.epsilon == pytest.approx(1.0, abs=1e-8)


def test_a_large_homogeneous_cluster_keeps_more_labels_than_randomized_response():
    mechanism = ClusterRR.for_budget(10, split_at(1.0, 0.1), threshold=0.01)
    groups = Groups.of_ids(np.repeat([0, 1], 2_000))
    release = mechanism.release(np.repeat([4, 7], 2_000), groups, source=SeededEntropy(3))
    assert mechanism.epsilon <= 1.0
    kept = (release.labels == np.repeat([4, 7], 2_000)).mean()
    assert kept > 0.8 > UniformRR(10, 1.0).matrix[0, 0]


def test_a_release_has_the_likelihoods_and_the_loss_weights_of_the_channels_of_its_clusters():
    groups = Groups.of_ids(["a", "b", "b", "a"] * 5)
    for share, correction in ((Fraction(1, 2), None), (Fraction(0), 0)):
        mechanism = ClusterRR(3, threshold=0.1, noise_scale=2, resampling=0.5, bias_correction=correction)
        release = mechanism.release([0, 1, 2, 2] * 5, groups, source=SeededEntropy(6))
        for row, (cluster, label) in enumerate(zip(groups.index, release.labels, strict=True)):
            debiased = LabelRandomization(release.distributions[cluster], share)
            np.testing.assert_array_equal(release.loss_weights()[row], debiased.loss_weights(label))
            np.testing.assert_array_equal(release.likelihood()[row], release.channel(cluster).likelihood(label))
    # Without a correction the weighted loss is that at the noisy label.
    np.testing.assert_array_equal(release.loss_weights(), np.eye(3)[release.labels])


GOOD = {"threshold": 0.1, "noise_scale": 2.0, "resampling": 0.5}


@by_case(
    "wrong, message",
    ({"threshold": 0.34}, r"threshold is 0\.34, expected a number from 0 to 1/k = 0\.333333"),
    ({"threshold": -0.1}, "threshold is -0.1"),
    ({"threshold": 0.0}, "resampling is 0.5 and threshold 0"),
    ({"noise_scale": 0}, "noise_scale is 0"),
    ({"noise_scale": math.inf}, "noise_scale is inf"),
    ({"resampling": 1.5}, "resampling is 1.5, expected a probability from 0 to 1"),
    ({"resampling": 0}, "resampling is 0 and"),
    ({"resampling": -0.5}, "resampling is -0.5"),
    ({"resampling": 1}, "resampling is 1: the label-randomization matrix would be singular"),
    ({"bias_correction": 1}, "bias_correction is 1: the label-randomization matrix would be singular"),
    ({"bias_correction": -1}, "bias_correction is -1, expected a probability"),
    ({"bias_correction": "half"}, "bias_correction is of type str"),
    *[({"k": k}, r"k is .*, expected an integer of at least 2") for k in (1, 0, 2.0, True)],
)
def test_parameters_that_cannot_be_are_refused_by_name(wrong, message):
    assert_error(message, ClusterRR, **{"k": 3, **GOOD, **wrong})
    if "k" in wrong:
        assert_error(message, UniformRR, wrong["k"], 1.0)


def test_budgets_and_distributions_that_cannot_be_are_refused():
    for labels in (0.0, -1.0):
        split = BudgetSplit(1.0, labels)
        assert_error("the budget of the labels is", ClusterRR.for_budget, 2, split, threshold=0.5)
    assert_error("threshold is 0: no label could be kept", ClusterRR.for_budget, 2, BudgetSplit(1.0, 1.0), threshold=0)
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    assert_error(r"sums to 0.75, expected exactly 1", LabelRandomization, (quarter, half), half)
    assert_error(r"entry of the distribution is 1.5", LabelRandomization, (3 * half, -half), half)
    assert LabelRandomization((Fraction(0), Fraction(1)), half).epsilon == math.inf


def test_all_labels_may_be_resampled_when_no_bias_is_removed():
    mechanism = ClusterRR(3, threshold=0, noise_scale=2.0, resampling=1, bias_correction=0)
    assert mechanism.epsilon == mechanism.printed_epsilon * 2 == 1.0
    release = mechanism.release([0, 1, 2], Groups.of_ids([0, 0, 0]), source=SeededEntropy(0))
    assert release.channel(0).epsilon == 0
    with pytest.raises(InvalidInput, match="singular since resampling is 1"):
        _ = release.channel(0).inverse


@pytest.mark.parametrize("short", [Fraction(1, 10**400), Fraction(1, 2**1024)])
def test_an_inverse_beyond_floats_is_refused(short):
    half = Fraction(1, 2)
    with pytest.raises(InvalidInput, match="leaves the range of floats"):
        _ = LabelRandomization((half, half), 1 - short).inverse
    largest = LabelRandomization((half, half), 1 - Fraction(1, 2**1023)).inverse
    assert np.isfinite(largest).all()


INDEX = "expected integers from 0 to 1: use Groups"
SHAPE = "index has shape .* expected a group for each row"
REFUSED_GROUPS = [
    *[
        (lambda ids=ids: Groups.of_ids(ids), "none of them missing: leave rows without")
        for ids in ([1, None, 2], ["a", None], [1.0, math.nan], [1.5, 2.5], pd.Series(["a", pd.NA]))
    ],
    (lambda: Groups.of_ids(np.ma.masked_array([1, 2], [False, True])), "masked cells"),
    (lambda: Groups([0, 2], ["north", "west", "south"]), "1 of 3 groups are empty, the first is 'west'"),
    (lambda: Groups.of_ids([]), "expected one id for every row"),
    (lambda: Groups(np.array([0, 2]), np.array(["a", "b"])), INDEX),
    (lambda: Groups(np.array([-1, 0]), np.array(["a", "b"])), INDEX),
    (lambda: Groups(np.array([0.0, 1.0]), np.array(["a", "b"])), INDEX),
    (lambda: Groups(np.array([[0, 1]]), np.array(["a", "b"])), SHAPE),
    (lambda: Groups(np.array([0, 1]), np.array([["a"], ["b"]])), SHAPE),
    (lambda: Groups.by_k_means([[0.0], [1.0]], 3, seed=0), r"k-means cannot make 3 group\(s\)"),
    (lambda: Groups.by_k_means([[0.0], [1.0]], 0, seed=0), r"k-means cannot make 0 group\(s\)"),
    (lambda: Groups.by_k_means([[0.0], [1.0]], True, seed=0), "an integer is required"),
    (lambda: Groups.by_k_means([[0.0], [None]], 1, seed=0), "k-means cannot make"),
    (lambda: Groups.by_k_means([[0.0], [object()]], 1, seed=0), "k-means cannot make"),
    (lambda: Groups.by_k_means([0.0, 1.0], 1, seed=0), "Expected 2D array"),
    (lambda: Groups.by_k_means([[0.0], [math.nan]], 1, seed=0), "NaN"),
]


class TestGroups:
    @pytest.mark.parametrize(("call", "message"), REFUSED_GROUPS)
    def test_ids_that_make_no_groups_are_refused(self, call, message):
        assert_error(message, call)

    def test_ids_for_some_rows_only_are_refused(self):
        groups = Groups.of_ids([0, 0, 1])
        for release in (ClusterRR(3, **GOOD).release, ClusterPriorRR(3, BudgetSplit(0.1, 0.9)).release):
            assert_error(r"labels have shape \(4,\) and 3 row\(s\) have a group", release, [0, 1, 2, 1], groups)

    def test_a_missing_extra_is_named_with_its_command(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
        with pytest.raises(MissingExtra, match=r"pip install 'optrand\[learning\]'"):
            Groups.by_k_means([[0.0], [1.0]], 2, seed=0)

    def test_k_means_groups_similar_features_the_same_with_each_seed(self):
        features = [[0.0, 1.0], [9.0, 1.0], [0.5, 1.0]]
        groups, again = (Groups.by_k_means(features, 2, seed=7) for _ in range(2))
        assert groups.index[0] == groups.index[2] != groups.index[1]
        assert groups.index.tolist() == again.index.tolist()


class TestClusterPriors:
    def test_a_group_alone_has_the_private_prior_of_its_counts(self):
        labels, groups = np.repeat([0, 1, 2], [20, 5, 1]), Groups.of_ids([7] * 26)
        learned = ClusterPriors.learn(labels, groups, 3, 0.1, source=SeededEntropy(2))
        alone = private_prior([20, 5, 1], 0.1, source=SeededEntropy(2))
        assert learned.probabilities.tolist() == [alone.probabilities.tolist()]
        assert learned.of_rows.tolist() == [alone.probabilities.tolist()] * 26
        assert learned.epsilon == 0.1

    def test_a_group_of_which_nothing_was_learned_is_uniform(self):
        # One row under noise of scale 200: both noisy counts are at most zero about one time in four.
        groups = Groups.of_ids(np.arange(400))
        priors = ClusterPriors.learn(np.zeros(400, dtype=int), groups, 2, 0.01, source=SeededEntropy(8))
        assert 60 < priors.uniform.sum() < 140
        np.testing.assert_array_equal(priors.probabilities[priors.uniform], 0.5)

    def test_noise_of_a_group_does_not_depend_on_the_other_labels(self):
        # Parallel composition: change a label of the second group, and the prior of the first stays, word for word.
        groups = Groups.of_ids([0] * 50 + [1] * 50)
        one, two = (np.array([1] * 50 + [y] * 50) for y in (0, 1))
        first, second = (ClusterPriors.learn(y, groups, 2, 1.0, source=SeededEntropy(2)) for y in (one, two))
        np.testing.assert_array_equal(first.probabilities[0], second.probabilities[0])
        assert (first.probabilities[1] != second.probabilities[1]).any()

    def test_every_row_is_randomized_with_the_best_randomizer_of_its_group(self):
        mechanism = ClusterPriorRR(4, split_at(1.5, 0.5))
        groups = Groups.of_ids(np.repeat([0, 1], 2_000))
        # The first group has one likely label, the second four.
        labels = np.concatenate((np.repeat([3, 1], [1_900, 100]), np.tile(np.arange(4), 500)))
        release = mechanism.release(labels, groups, source=SeededEntropy(9))
        assert mechanism.epsilon <= 1.5
        assert release.batch.k_star[[0, -1]].tolist() == [1, 4]
        assert release.batch[0].certificate.require(gap=1e-12).epsilon <= mechanism.split.labels
        source = SeededEntropy(9)
        priors = ClusterPriors.learn(labels, groups, 4, mechanism.split.prior, source=source)
        drawn = rr_with_prior_batch(priors.of_rows, mechanism.split.labels).sample(labels, source=source)
        np.testing.assert_array_equal(release.labels, drawn)

    @pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
    def test_the_whole_release_keeps_its_epsilon(self, epsilon):
        # One group of three rows and two labels: the prior depends on the noisy counts clipped at 0, and the labels on
        # the prior through the labels kept: the likelier, or both. Enumerate noisy counts as far as their mass counts.
        mechanism = ClusterPriorRR(2, split_at(epsilon, epsilon / 2))
        shrink = math.exp(-mechanism.split.prior / 2)
        worst = 0.0
        for x, z in itertools.product(range(-12, 16), repeat=2):
            clipped = max(x, 0), max(z, 0)
            prior = np.array(clipped) / sum(clipped) if sum(clipped) else np.array([0.5, 0.5])
            table = rr_with_prior(prior, mechanism.split.labels).matrix
            for others in range(3):
                laws = [shrink ** (abs(x - others - (1 - y)) + abs(z - (2 - others) - y)) * table[y] for y in (0, 1)]
                worst = max(worst, np.abs(np.log(laws[0] / laws[1])).max())
        assert worst <= mechanism.epsilon + TOLERANCE
        # The noise alone takes its half entirely: two counts have moved.
        assert worst >= mechanism.split.prior - TOLERANCE

    def test_budgets_are_checked(self):
        assert_error("nothing is left for the labels", split_at, 1.0, 1.0)
        assert_error("budget of the priors is 0", ClusterPriorRR, 3, BudgetSplit(0.0, 1.0))


def test_clusters_that_are_no_groups_are_refused_before_anything_is_drawn():
    for release in (
        ClusterRR(2, threshold=0.3, noise_scale=2.0, resampling=0.98).release,
        lambda labels, ids: ClusterPriors.learn(labels, ids, 2, 1.0),
    ):
        assert_error(r"Groups\.of_ids", release, [0, 1, 1], [0, 0, 1])
