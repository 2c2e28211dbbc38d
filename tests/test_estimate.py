"""Estimates from a release, against exact inverses, printed formulas, other right inverses, and simulations.

Simulations are seeded. With ``r`` independent repetitions a coverage of 0.95 is measured with a standard deviation of
``sqrt(0.95 * 0.05 / r)``. Bands are four of those wide on either side.
"""

import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import label_sets

import optrand
from optrand import Mechanism, estimate
from optrand.baselines import UniformRR
from optrand.errors import InvalidInput
from optrand.estimate import _debiasing
from optrand.sampling._entropy import SeededEntropy
from optrand.studies._paths import merge_neighbours
from tests.tables import mechanism_of


def optimal(labels, prior, epsilon, **options) -> Mechanism:
    return optrand.solve(optrand.unbiased_regression(labels, prior, epsilon, **options))


@pytest.fixture(scope="module")
def weeks() -> Mechanism:
    """Eight labels, fourteen outputs at most: more outputs than labels, so that there is something to choose."""
    mechanism = optimal(np.arange(8.0), [0.3, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.2], 0.5)
    assert mechanism.outputs.size > mechanism.labels.size
    return mechanism


@pytest.fixture(scope="module")
def three() -> Mechanism:
    return optimal([0.0, 1.0, 2.0], [0.5, 0.3, 0.2], 1.0)


def coverage(intervals, truths) -> float:
    """Share of the intervals that hold their truth."""
    low, high = np.array(list(intervals)).T
    return float(np.mean((low <= truths) & (truths <= high)))


class TestRightInverse:
    @settings(max_examples=25)
    @given(st.data())
    def test_every_function_is_estimated_without_bias_and_the_histogram_is_the_transpose(self, data):
        labels = data.draw(label_sets(1, 6))
        shares = data.draw(st.lists(st.sampled_from([1.0, 2.0, 5.0, 0.1]), min_size=labels.size, max_size=labels.size))
        epsilon = data.draw(st.sampled_from([0.05, 0.5, 1.0, 4.0, 12.0]))
        prior = np.array(shares) / sum(shares)
        mechanism = optimal(labels, prior, epsilon)
        inverse = _debiasing.Debiasing.of(mechanism)
        values = inverse.values(np.eye(labels.size))
        scale = np.abs(mechanism.randomizer.matrix) @ np.abs(values)
        assert np.abs(mechanism.randomizer.matrix @ values - np.eye(labels.size)).max() <= 1e-10 * scale.max()
        assert np.abs(values.sum(axis=1) - 1).max() <= 1e-9 * np.abs(values).max()
        tallies = data.draw(
            st.lists(st.integers(0, 50), min_size=values.shape[0], max_size=values.shape[0]).filter(any)
        )
        expected = np.array(tallies) @ values / sum(tallies)
        assert np.abs(inverse.shares(tallies) - expected).max() <= 1e-9 * np.abs(values).max()
        assert inverse.shares(tallies).sum() == pytest.approx(1, abs=1e-12 * np.abs(values).max())

    def test_no_other_unbiased_values_have_less_variance_under_the_prior(self, weeks):
        rng = np.random.default_rng(1)
        table, function = weeks.randomizer.matrix, rng.normal(size=weeks.labels.size)
        for prior in (None, rng.dirichlet(np.ones(weeks.labels.size))):
            values = estimate.unbiased_values(weeks, function, prior=prior)
            assert np.allclose(table @ values, function, rtol=0, atol=1e-9)
            chances = (weeks.problem.prior if prior is None else prior) @ table
            # Every other choice differs by something that all rows of the table are orthogonal to.
            kernel = np.linalg.svd(table)[2][weeks.labels.size :]
            assert np.abs(table @ kernel.T).max() < 1e-13
            assert np.abs(kernel @ (chances * values)).max() < 1e-9 * np.abs(values).max()

    def test_dense_and_sparse_equations_agree(self, weeks, monkeypatch):
        functions = np.random.default_rng(2).normal(size=(8, 3))
        expected = np.linalg.lstsq(weeks.randomizer.matrix, functions, rcond=None)[0]
        assert np.allclose(weeks.randomizer.matrix @ expected, functions, atol=1e-9)
        from_table = _debiasing.Debiasing.of(weeks)
        monkeypatch.setattr(_debiasing, "OPTIONS", _debiasing.DebiasingOptions(dense=0))
        from_sparse = _debiasing.Debiasing.of(weeks)
        assert isinstance(from_table.factor.rows, np.ndarray)
        assert sparse.issparse(from_sparse.factor.rows)
        assert np.allclose(from_sparse.values(functions), from_table.values(functions), rtol=1e-9, atol=1e-9)
        assert np.allclose(from_sparse.expectations(weeks.outputs), weeks.labels, rtol=0, atol=1e-12)
        tallies = np.arange(weeks.outputs.size)
        assert np.allclose(from_sparse.shares(tallies), from_table.shares(tallies), rtol=0, atol=1e-9)

    def test_thousands_of_labels_need_no_table(self):
        k, epsilon = 4_001, 1.0
        mechanism = optrand.debiased_rr(np.arange(k), epsilon)
        labels = np.random.default_rng(3).integers(0, 100, size=5000)
        noisy = mechanism.sample(labels, source=SeededEntropy(3))
        found = estimate.histogram(noisy, mechanism)
        # An output between two floats is released as either.
        whole = merge_neighbours(mechanism)[0]
        frequencies = np.bincount(np.abs(noisy[:, np.newaxis] - whole).argmin(axis=1), minlength=k) / noisy.size
        # The inverse of randomized response.
        expected = (frequencies * (math.expm1(epsilon) + k) - 1) / math.expm1(epsilon)
        assert np.abs(found.shares - expected).max() < 1e-12
        assert_error(r"4001 labels.* entries.*unbiased_values", estimate.loss_weights, mechanism)
        squares = estimate.unbiased_values(mechanism, mechanism.labels**2)
        inverse = _debiasing.Debiasing.of(mechanism)
        assert np.abs(inverse.expectations(squares) - mechanism.labels**2).max() < 1e-9 * np.abs(squares).max()


class TestSingular:
    @by_case(
        "mechanism, message",
        (optrand.rr_on_bins(range(8), np.ones(8) / 8, 1.0), "2 outputs for 8 labels"),
        (optrand.rr_top_k([0.4, 0.3, 0.2, 0.1], 2, 1.0), "2 outputs for 4 labels"),
        (optimal(range(6), [0.5, 0, 0, 0.2, 0.1, 0.2], 1.0), "rank 4 for 6 labels"),
    )
    def test_it_is_refused_with_what_to_do(self, mechanism, message):
        released = mechanism.outputs[[0, 1]]
        for ask in (
            lambda: estimate.loss_weights(mechanism),
            lambda: estimate.histogram(released, mechanism),
            lambda: estimate.average(released, mechanism, mechanism.labels),
        ):
            with pytest.raises(InvalidInput, match=message) as caught:
                ask()
            assert "debiased_rr" in str(caught.value)

    @pytest.mark.parametrize("limit", [0, _debiasing.OPTIONS.dense])
    def test_neighbours_with_one_row_are_named(self, limit, monkeypatch):
        monkeypatch.setattr(_debiasing, "OPTIONS", _debiasing.DebiasingOptions(dense=limit))
        arcs = optrand.model._table.IntegerArcs(4, [0, 0, 3, 3], [2, 2, 3, 3], [0, 1, 2, 3], [1, 2, 1, 2])
        problem = optrand.regression(range(4), np.ones(4) / 4, math.log(3))
        mechanism = mechanism_of(problem, None, [0, 1, 2, 3], arcs, Fraction(2))
        assert_error(r"numbered 0 and 1 \(from 0\) have the same row.*1 more pairs", estimate.loss_weights, mechanism)

    def test_sparse_equations_tell_dependent_rows(self, monkeypatch):
        monkeypatch.setattr(_debiasing, "OPTIONS", _debiasing.DebiasingOptions(dense=0))
        assert_error("rank below 6", estimate.loss_weights, optimal(range(6), [0.5, 0, 0, 0.2, 0.1, 0.2], 1.0))

    def test_large_tables_are_refused_before_they_are_factored(self, weeks, monkeypatch):
        monkeypatch.setattr(_debiasing, "OPTIONS", _debiasing.DebiasingOptions(dense=0, factored=10))
        assert_error(r"table of 8 labels .* many steps", estimate.loss_weights, weeks)


class TestMean:
    def test_intervals_cover_the_table_and_the_population_as_often_as_they_say(self, three):
        rng, runs, size = np.random.default_rng(4), 1200, 400
        labels = rng.choice(3, size=(runs, size), p=[0.2, 0.2, 0.6])
        noisy = three.sample(labels, source=SeededEntropy(4))
        found = [estimate.mean(row, three) for row in noisy]
        band = pytest.approx(0.95, abs=0.026)
        assert coverage([e.table_interval(0.95) for e in found], labels.mean(axis=1)) == band
        assert coverage([e.interval(0.95) for e in found], 1.4) == band
        # The stated errors are those that occur.
        errors = np.array([e.value for e in found]) - labels.mean(axis=1)
        assert np.mean([e.noise_error for e in found]) == pytest.approx(errors.std(), rel=0.08)
        assert abs(errors.mean()) < 4 * errors.std() / math.sqrt(runs)

    def test_hoeffding_shares_what_may_fail_between_two_sides(self):
        # Each of two sides fails with probability exp(-2 N t^2) for values in [0, 1]: at N = 2 and t = 1, exp(-4).
        one = estimate.Spread(size=2, variance=1.0, width=1.0)
        assert estimate.hoeffding(one, 1 - 2 * math.exp(-4)) == pytest.approx(1, rel=1e-12)

    def test_honest_intervals_hold_where_the_normal_one_does_not(self):
        # Ten rows of one label at epsilon 6: nearly all releases hold ten times the same output.
        mechanism = optrand.debiased_rr([0, 1], 6.0)
        labels = np.zeros((400, 10))
        found = [estimate.mean(row, mechanism) for row in mechanism.sample(labels, source=SeededEntropy(6))]
        assert coverage([e.interval(0.95) for e in found], 0.0) < 0.5
        assert coverage([e.interval(0.95, method=estimate.hoeffding) for e in found], 0.0) >= 0.95
        assert coverage([e.table_interval(0.95, method=estimate.hoeffding) for e in found], 0.0) >= 0.95

    def test_labels_far_from_zero_lose_nothing(self, three):
        far = optimal(np.array([0.0, 1.0, 2.0]) + 1e6, [0.5, 0.3, 0.2], 1.0)
        labels = np.repeat([0, 1, 2], 200)
        near_by = estimate.mean(three.sample(labels, source=SeededEntropy(8)), three)
        far_off = estimate.mean(far.sample(labels + 1e6, source=SeededEntropy(8)), far)
        assert far_off.value - 1e6 == pytest.approx(near_by.value, abs=1e-6)
        assert far_off.noise_variance == pytest.approx(near_by.noise_variance, rel=1e-6)
        assert far_off.sample_variance == pytest.approx(near_by.sample_variance, rel=1e-6)

    def test_a_singular_mechanism_has_intervals_that_are_only_too_wide(self):
        mechanism = optimal(range(6), [0.5, 0, 0, 0.2, 0.1, 0.2], 1.0)
        labels = np.tile([0.0, 1.0, 2.0, 5.0], (400, 50))
        found = [estimate.mean(row, mechanism) for row in mechanism.sample(labels, source=SeededEntropy(9))]
        assert coverage([e.table_interval(0.9) for e in found], 2.0) >= 0.9 - 0.03
        assert all(e.noise_variance <= e.sample_variance for e in found)

    def test_a_continuum_of_labels(self):
        rng = np.random.default_rng(10)
        wages = optrand.studies.continuous_mechanism(
            optrand.studies.ContinuousPrior(rng.gamma(2, size=500)), 1.0, knots=5
        )
        values = rng.uniform(wages.low, wages.high, size=(600, 200))
        noisy = wages.sample(values, source=SeededEntropy(10))
        middle = (wages.low + wages.high) / 2
        found = [estimate.mean(row, wages.mechanism) for row in noisy]
        assert coverage([e.interval(0.95) for e in found], middle) == pytest.approx(0.95, abs=0.036)

    def test_a_biased_mechanism_is_refused_and_the_way_out_works(self):
        mechanism = optrand.rr(range(3), 1.0)
        labels = np.repeat([0, 1, 2], [3000, 500, 500])
        noisy = mechanism.sample(labels, source=SeededEntropy(11))
        assert_error(r"biased by up to 0\.6.*average\(released", estimate.mean, noisy, mechanism)
        found = estimate.average(noisy, mechanism, mechanism.labels)
        assert abs(found.value - labels.mean()) < 4 * found.noise_error
        assert abs(noisy.mean() - labels.mean()) > 4 * found.noise_error


class TestAverage:
    def test_intervals_cover_as_often_as_they_say(self):
        mechanism = optrand.rr(range(4), 1.5)
        rng, runs, size = np.random.default_rng(12), 1000, 400
        labels = rng.choice(4, size=(runs, size), p=[0.7, 0.1, 0.1, 0.1])
        noisy = mechanism.sample(labels, source=SeededEntropy(12))
        function = np.array([1.0, 0.0, 0.0, -2.0])
        found = [estimate.average(row, mechanism, function) for row in noisy]
        band = pytest.approx(0.95, abs=0.028)
        assert coverage([e.table_interval(0.95) for e in found], function[labels].mean(axis=1)) == band
        assert coverage([e.interval(0.95) for e in found], 0.5) == band


class TestHistogram:
    def test_errors_are_those_that_occur(self, weeks):
        rng, runs, size = np.random.default_rng(13), 400, 500
        population = np.array([0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2])
        labels = rng.choice(8, size=(runs, size), p=population)
        found = [estimate.histogram(row, weeks) for row in weeks.sample(labels, source=SeededEntropy(13))]
        true = np.array([np.bincount(row, minlength=8) / size for row in labels])
        shares = np.array([h.shares for h in found])
        assert np.allclose(shares.sum(axis=1), 1, rtol=0, atol=1e-10)
        from_table, from_population = (shares - true).std(axis=0), (shares - population).std(axis=0)
        # A standard deviation of 400 values is known to one part in 28. The bands are four of those.
        assert np.allclose(np.mean([h.noise_errors for h in found], axis=0), from_table, rtol=0.15)
        assert np.allclose(np.mean([h.standard_errors for h in found], axis=0), from_population, rtol=0.15)
        assert (np.abs((shares - true).mean(axis=0)) < 4.5 * from_table / math.sqrt(runs)).all()
        before = np.linalg.norm(shares - true, axis=1)
        after = np.linalg.norm(np.array([h.projected for h in found]) - true, axis=1)
        assert (after <= before * (1 + 1e-12)).all()

    def test_blocks_of_labels_make_no_difference(self, weeks, monkeypatch):
        noisy = weeks.sample(np.tile(np.arange(8), 30), source=SeededEntropy(14))
        whole = estimate.histogram(noisy, weeks)
        monkeypatch.setattr(_debiasing, "OPTIONS", replace(_debiasing.OPTIONS, block=3 * weeks.outputs.size))
        parts = estimate.histogram(noisy, weeks)
        assert np.allclose(whole.standard_errors, parts.standard_errors, rtol=1e-9)
        assert whole.size == 240
        assert np.array_equal(whole.labels, np.arange(8))

    @pytest.mark.parametrize("dense", [1 << 18, 0])
    def test_a_histogram_can_be_pickled(self, weeks, dense, monkeypatch):
        monkeypatch.setattr(_debiasing, "OPTIONS", _debiasing.DebiasingOptions(dense=dense))
        found = estimate.histogram(weeks.sample([0, 3, 7] * 500, source=SeededEntropy(1)), weeks)
        again = pickle.loads(pickle.dumps(found))  # noqa: S301
        assert again.shares == pytest.approx(found.shares, rel=1e-12)
        assert again.noise_errors == pytest.approx(found.noise_errors, rel=1e-9)

    def test_shares_agree_with_averages_of_indicators(self, weeks):
        noisy = weeks.sample(np.tile(np.arange(8), 30), source=SeededEntropy(15))
        found = estimate.histogram(noisy, weeks)
        for label in range(8):
            one = estimate.average(noisy, weeks, np.arange(8) == label)
            assert one.value == pytest.approx(found.shares[label], abs=1e-9)
            assert one.standard_error == pytest.approx(found.standard_errors[label], rel=1e-9)
            assert one.noise_error == pytest.approx(found.noise_errors[label], rel=1e-9)

    @pytest.mark.parametrize(
        ("vector", "nearest"),
        [([1e17, 0.0, 0.0], [1.0, 0.0, 0.0]), ([-1e20, -1e20], [0.5, 0.5]), ([1e308, -1e308, 1e308], [0.5, 0.0, 0.5])],
    )
    def test_projection_of_numbers_beside_which_1_is_nothing(self, vector, nearest):
        assert estimate.project_to_simplex(vector).tolist() == nearest

    @given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
    def test_projection_is_the_nearest_distribution(self, vector):
        given_ = np.array(vector)
        nearest = estimate.project_to_simplex(given_)
        assert (nearest >= 0).all()
        assert nearest.sum() == pytest.approx(1, abs=1e-12)
        # The angle to every corner of the simplex is obtuse: the variational inequality of a projection.
        assert ((given_ - nearest) @ (np.eye(given_.size) - nearest).T <= 1e-12 * (1 + np.abs(given_).max())).all()


class TestLossWeights:
    @pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 1.0, 5.0, 17.0, 40.0])
    def test_randomized_response_as_printed(self, epsilon):
        # [G21], eq. (7): (E + K - 1) / (E - 1) * (g_v - sum of all g / (E + K - 1)).
        k, gain = 4, math.expm1(epsilon)
        printed = ((gain + k) * np.eye(k) - 1) / gain
        mechanism = optrand.rr(range(k), epsilon)
        found = estimate.top_k_loss_weights(np.arange(k), np.ones(k, dtype=bool), epsilon)
        assert np.allclose(found, printed, rtol=1e-13)
        rtol = 1e-11 if 0.1 < epsilon < 10 else 1e-9
        assert np.allclose(estimate.loss_weights(mechanism), printed, rtol=rtol, atol=1e-12)
        channel = UniformRR(k, epsilon)
        assert np.allclose(channel.loss_weights(np.arange(k)), printed, rtol=1e-12)

    def test_top_k_as_printed_and_as_proven(self):
        # [G21], eq. (17), and the randomizer itself: unbiased for kept labels, the mean of the kept for the others.
        prior, k, epsilon = np.array([0.1, 0.4, 0.2, 0.3]), 2, 1.0
        p = 1 / (math.exp(epsilon) + k - 1)
        randomizer = optrand.rr_top_k(prior, k, epsilon).randomizer
        kept = np.isin(randomizer.labels, randomizer.outputs)
        assert kept.tolist() == [False, True, False, True]
        released = np.flatnonzero(kept)
        found = estimate.top_k_loss_weights(released, kept, epsilon)
        assert np.allclose(found, (np.eye(4)[released] - p * kept) / (1 - k * p), rtol=1e-13)
        expected = randomizer.matrix @ found
        assert np.allclose(expected[kept], np.eye(4)[kept], atol=1e-14)
        assert np.allclose(expected[~kept], kept / 2, atol=1e-14)


class TestBadInput:
    def test_values_that_are_no_outputs_are_counted_and_not_repeated(self, three):
        with pytest.raises(InvalidInput, match="2 of 3 released values") as caught:
            estimate.mean([three.outputs[0], 1234.5, math.nan], three)
        assert "1234" not in str(caught.value)
        assert_error("32-bit", estimate.mean, three.outputs.astype(np.float32), three)

    @by_case(
        "words, call",
        *[("at least two", lambda three, n=n: estimate.histogram(three.outputs[:n], three)) for n in (0, 1)],
        ("expected a Mechanism", lambda three: estimate.mean([0, 1], three.randomizer)),
        ("expected a Mechanism", lambda three: estimate.loss_weights(three.randomizer)),
        ("expected numbers", lambda three: estimate.mean(["a", "b"], three)),
        ("shape", lambda three: estimate.unbiased_values(three, [1.0, 2.0])),
        ("infinite", lambda three: estimate.unbiased_values(three, [1, 2, math.inf])),
        ("shape", lambda three: estimate.unbiased_values(three, np.ones((3, 1, 1)))),
        (r"function has shape \(2,\)", lambda three: estimate.average(three.outputs, three, [1, 2])),
        *[
            ("numbers of the function reach beyond 1e", lambda x, s=s: estimate.average(x.outputs, x, [s, 0.0, -s]))
            for s in (1e200, 1e308)
        ],
        (
            "unbiased values of the function reach beyond 1e",
            lambda _: estimate.average([0, 1], optrand.rr([0, 1], 1e-6), [0.0, 1e149]),
        ),
        ("prior has 2 entries for 3", lambda three: estimate.unbiased_values(three, [1, 2, 3], prior=[0.5, 0.5])),
        *[
            (
                r"method is 'hoeffding', expected a function: optrand\.estimate",
                lambda x, name=name: getattr(estimate.mean(x.outputs, x), name)(0.95, method="hoeffding"),
            )
            for name in ("interval", "table_interval")
        ],
        *[
            ("between 0 and 1", lambda x, share=share: estimate.mean(x.outputs, x).interval(share))
            for share in (0.0, 1.0, 95, -0.1)
        ],
    )
    def test_arguments_without_meaning(self, three, words, call):
        assert_error(words, call, three)

    @by_case(
        "released, kept, message",
        ([0, 1], [True, False], r"1 released label\(s\) are not among those kept"),
        ([0], [[False, False]], "hold no label"),
        ([0], [0.5, 0.5], "expected booleans"),
        ([0, 2], [True, True], "not among the classes 0 to 1"),
        ([0, -1], [True, True], "not among the classes 0 to 1"),
        ([0.0, 1.0], [True, True], "vector of integers"),
        ([0, 1], [[True, True]], "1 rows were given for 2"),
        ([0, 1], [[[True, True]]], "shape"),
    )
    def test_top_k(self, released, kept, message):
        assert_error(message, estimate.top_k_loss_weights, released, kept, 1.0)
        assert_error("weights of 2 classes overflow", estimate.top_k_loss_weights, [0], [True, True], 5e-324)
