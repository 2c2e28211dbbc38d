"""Additive mechanisms: private, exactly drawn, described by their own formulas, and never better than the optimum."""

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from scipy import stats

import optrand
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from optrand.baselines._noise import best_gamma, best_rise, compute_mass, draw_uniforms
from optrand.model._problem import Interval
from optrand.sampling._discrete_noise import discrete_staircase
from optrand.sampling._entropy import SeededEntropy
from tests.oracle import largest_ratio

LABELS = np.arange(7.0)
PRIOR = np.array([0.3, 0.05, 0.05, 0.2, 0.1, 0.0, 0.3])
EPSILONS = (0.25, 4.0)
CLIPS = (None, Interval(-20, 31), Interval(2, 5))
CONTINUOUS = (Laplace, Staircase)
DISCRETE = (DiscreteLaplace, DiscreteStaircase)
KINDS = CONTINUOUS + DISCRETE
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def printed(mechanism, z):
    """The density or the probability of one distance, in the words of [B23], Appendix F, and unscaled."""
    epsilon, length = mechanism.epsilon, mechanism.sensitivity
    if isinstance(mechanism, (Laplace, DiscreteLaplace)):
        return math.exp(-abs(z) * epsilon / length)
    stairs, within = divmod(abs(z), length)
    jump = mechanism.gamma * length if isinstance(mechanism, Staircase) else mechanism.rise
    height = math.exp(-epsilon) if within >= jump else 1.0
    return height * math.exp(-stairs * epsilon)


def support(mechanism, kinks=()):
    """Distances and their probabilities: all integers, or the nodes of a quadrature between the printed steps."""
    reach = (40 / mechanism.epsilon + 8) * mechanism.sensitivity
    if mechanism.exact:
        points = np.arange(-math.ceil(reach), math.ceil(reach) + 1.0)
        weights = np.ones(points.size)
    else:
        stairs = np.arange(math.ceil(reach / mechanism.sensitivity) + 1) * mechanism.sensitivity
        within = [stairs, stairs + getattr(mechanism, "gamma", 0.5) * mechanism.sensitivity]
        # Smooth pieces, but an exponential over many of its scales is too steep for one of them.
        within += [np.geomspace(1e-9, 1, 60) * reach] if isinstance(mechanism, Laplace) else []
        edges = np.concatenate(within)
        edges = np.unique(np.concatenate((edges, -edges, np.clip(kinks, -reach, reach))))
        half = np.diff(edges) / 2
        points = ((edges[:-1] + edges[1:]) / 2)[:, np.newaxis] + half[:, np.newaxis] * NODES
        points, weights = points.ravel(), (half[:, np.newaxis] * WEIGHTS).ravel()
    probabilities = weights * [printed(mechanism, z) for z in points.tolist()]
    return points, probabilities / math.fsum(probabilities)


@pytest.mark.parametrize("clip", CLIPS, ids=str)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_the_printed_definitions(kind, epsilon, clip):
    """Against sums over integers, and quadrature, of the formulas of [B23], Appendix F."""
    mechanism = kind(LABELS, epsilon, clip=clip)
    moments = mechanism.moments(LABELS)
    for y, bias, variance in zip(LABELS, moments.biases, moments.variances, strict=True):
        kinks = () if clip is None else (clip.low - y, clip.high - y)
        z, p = support(mechanism, kinks)
        error = z if clip is None else np.clip(y + z, clip.low, clip.high) - y
        mean = float(p @ error)
        second = float(p @ error**2)
        assert bias == pytest.approx(mean, rel=1e-8, abs=1e-12 * math.sqrt(second))
        assert variance == pytest.approx(float(p @ (error - mean) ** 2), rel=1e-8, abs=1e-13 * max(1.0, second))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_digits_are_lost_at_small_epsilon(kind, epsilon):
    """To first order in epsilon the noise ends at either end with 1/2 each, less the probability in between.

    Between the ends noise is nearly uniform with total mass about ``density * width``, so that from the middle the
    second moment is ``t**2 (1 - c epsilon)`` with ``c`` of order 1, and never above ``t**2``.
    """
    moments = kind(LABELS, epsilon, clip=Interval(0, 6)).moments(LABELS)
    np.testing.assert_allclose(moments.variances + moments.biases**2, (LABELS**2 + (6 - LABELS) ** 2) / 2, rtol=epsilon)
    np.testing.assert_allclose(moments.biases, 3 - LABELS, rtol=epsilon, atol=1e-15)
    # The first-order term itself: half the density at 0 times the integral of t**2 - z**2 from -3 to 3.
    missing = 9 - moments.variances[3]
    mechanism = kind(LABELS, epsilon)
    z = np.arange(-3.0, 4.0)
    widths = (9 - z**2).sum() if mechanism.exact else 36.0
    assert missing == pytest.approx(epsilon / 12 * widths, rel=2 * epsilon + 1e-14 / epsilon)


# --- privacy, from both sides -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_densities_differ_by_a_factor_of_exp_epsilon_and_no_more(kind, epsilon):
    mechanism = kind(LABELS, epsilon)
    outputs = np.arange(-30.0, 37.0) if mechanism.exact else np.arange(-30.0, 37.0, 1 / 64)
    table = mechanism.noise.density(outputs - LABELS[:, np.newaxis])
    loss = np.log(table.max(axis=0) / table.min(axis=0))
    assert loss.max() <= epsilon * (1 + 1e-12)
    assert loss.max() > epsilon * (1 - 1e-12)
    assert compute_mass(mechanism.noise, np.array([-np.inf]), np.array([np.inf]))[0] == pytest.approx(1, rel=1e-12)
    # And the densities are those of the paper, up to one factor.
    shape = np.array([[printed(mechanism, z) for z in row] for row in (outputs - LABELS[:, np.newaxis]).tolist()])
    np.testing.assert_allclose(table / mechanism.noise.density(np.zeros(1)), shape, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_for_a_larger_range_is_more_private(kind):
    mechanism = kind(Interval(0, 12), 2.0, clip=Interval(0, 6))
    channel = mechanism.discretise(LABELS, LABELS)
    assert math.log(largest_ratio(channel.matrix)) <= 2 + 1e-13
    assert mechanism.moments(LABELS).loss(PRIOR) > kind(LABELS, 2.0, clip=Interval(0, 6)).moments(LABELS).loss(PRIOR)
    if kind is DiscreteLaplace:
        # It hides the range of the labels twice as well as requested.
        assert math.log(largest_ratio(channel.matrix)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 8.0])
@pytest.mark.parametrize("kind", KINDS)
def test_discretisations_are_private_whatever_the_outputs(kind, epsilon):
    outputs = [-9, -3, -2, 0, 1, 2, 5, 6, 7, 40] if kind in DISCRETE else [-9.5, -0.1, 0, 0.001, 0.002, 3, 5.9, 6, 30]
    channel = kind(LABELS, epsilon).discretise(LABELS, outputs)
    proof = optrand.audit(channel.matrix, epsilon)
    assert not proof.findings
    # Outputs a thousandth apart: the distances to labels have lost three digits.
    assert proof.epsilon <= epsilon * (1 + 1e-10)


@pytest.mark.parametrize("kind", DISCRETE)
def test_a_release_halfway_between_two_outputs_goes_to_the_lower_one_whatever_the_label(kind):
    mechanism, outputs = kind(LABELS, 1.0), np.array([-2.0, 0.0, 2.0, 3.0, 7.0])
    releases = np.arange(-400.0, 401.0)
    nearest = np.argmin(np.abs(releases[:, np.newaxis] - outputs), axis=1)  # of equals the first
    expected = [np.bincount(nearest, mechanism.noise.density(releases - y), minlength=outputs.size) for y in LABELS]
    np.testing.assert_allclose(mechanism.discretise(LABELS, outputs).matrix, expected, rtol=1e-13)


# --- the best staircases ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 10.0])
def test_the_best_gamma_is_the_one_that_is_printed_and_the_least(epsilon):
    b, gamma = math.exp(-epsilon), best_gamma(epsilon)
    radicand = b - 2 * b**2 + 2 * b**4 - b**5
    assert gamma == pytest.approx(-b / (1 - b) + radicand ** (1 / 3) / (2 ** (1 / 3) * (1 - b) ** 2), rel=1e-6)
    least = Staircase([0, 1], epsilon).noise.variance
    for other in (gamma * 0.98, gamma * 1.02, 0.05, 0.5, 0.95):
        assert Staircase([0, 1], epsilon, gamma=other).noise.variance >= least
    assert least <= Laplace([0, 1], epsilon).noise.variance


@pytest.mark.parametrize("length", [1, 3, 52])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 12.0])
def test_the_best_rise_is_the_least_of_all(epsilon, length):
    variances = [DiscreteStaircase([0, length], epsilon, rise=r).noise.variance for r in range(1, length + 1)]
    chosen = DiscreteStaircase([0, length], epsilon)
    assert (chosen.rise, chosen.noise.variance) == (best_rise(epsilon, length), min(variances))
    assert chosen.noise.variance <= DiscreteLaplace([0, length], epsilon).noise.variance * (1 + 1e-14)


@pytest.mark.parametrize("kind", DISCRETE)
def test_stairs_of_one_integer_have_the_density_of_discrete_laplace_noise(kind):
    steps, rate = np.arange(-30.0, 31), 0.7
    noise = kind([0, 1], rate).noise
    np.testing.assert_allclose(noise.density(steps), math.tanh(rate / 2) * np.exp(-rate * np.abs(steps)), rtol=1e-12)
    assert noise.variance == pytest.approx(1 / (2 * math.sinh(rate / 2) ** 2), rel=1e-14)


# --- draws ------------------------------------------------------------------------------------------------------------
def assert_fit(observed, shares):
    """Assert that counts fit their shares. A fixed seed always passes or never: 1e-3 fails for one in a thousand."""
    expected = shares * observed.sum()
    # Rare cells are one cell.
    few = expected < 5
    observed, expected = (np.append(cells[~few], cells[few].sum()) for cells in (observed, expected))
    kept = expected > 0
    assert observed[~kept].sum() == 0
    assert stats.chisquare(observed[kept], expected[kept] * (observed.sum() / expected.sum())).pvalue > 1e-3


@pytest.mark.parametrize(("kind", "epsilon"), [(DiscreteLaplace, 0.3), (DiscreteStaircase, 6.5)])
def test_many_draws_fit_the_channel(kind, epsilon):
    mechanism = kind(LABELS, epsilon, clip=Interval(-2, 9))
    channel = mechanism.channel(LABELS)
    for row in (0, 3):
        draws = mechanism.sample(np.full(20_000, row), source=SeededEntropy(8))
        assert_fit((draws[:, np.newaxis] == channel.outputs).sum(axis=0), channel.matrix[row])


@pytest.mark.parametrize("epsilon", [0.3, 6.5])
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_many_draws_in_floats_fit_the_distribution_function(kind, epsilon):
    mechanism = kind([0, 3], epsilon)

    def distribution(z):
        return compute_mass(mechanism.noise, np.full(np.shape(z), -np.inf), np.asarray(z, dtype=float))

    draws = mechanism.sample(np.ones(20_000), source=SeededEntropy(3)) - 1
    assert stats.kstest(draws, distribution).pvalue > 1e-3
    clipped = kind([0, 3], epsilon, clip=Interval(0, 3)).sample(np.ones(20_000), source=SeededEntropy(3))
    np.testing.assert_array_equal(clipped, np.clip(draws + 1, 0, 3))


@pytest.mark.parametrize("width", [1, 31, 64])
def test_uniform_floats_from_words_of_any_width(width):
    class Narrow:
        private = False

        def __init__(self):
            self.width = width
            self.inner = SeededEntropy(1)

        def words(self, count):
            return self.inner.words(count) >> np.uint64(64 - width)

    drawn = draw_uniforms(Narrow(), 5000)
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert np.unique(drawn).size == drawn.size


def test_releases_on_a_lattice_are_the_decimals_that_they_are_written_as():
    """Adding noise to floats would give 0.1 + 0.2 another last digit than 0.3 and so distinguish two labels."""
    labels = np.array([0.1, 0.2, 0.3])
    mechanism = DiscreteLaplace(labels, 0.5, step=0.1)
    assert mechanism.steps == 2
    drawn = mechanism.sample(np.repeat(labels, 500), source=SeededEntropy(2))
    assert set(drawn.tolist()) <= {float(f"{i / 10:.1f}") for i in range(-200, 200)}
    assert float(drawn[drawn > 0.25].min()) == 0.3


def test_draws_keep_the_shape_and_take_any_type_of_number():
    mechanism = DiscreteStaircase([0, 1, 2], 1.0, clip=Interval(0, 2))
    for values in ([[0, 1], [2, 2]], np.zeros((2, 2), dtype=np.float32), np.ones((2, 2), dtype=np.uint8)):
        drawn = mechanism.sample(values)
        assert drawn.shape == (2, 2)
        assert drawn.dtype == np.float64
        assert set(drawn.ravel().tolist()) <= {0.0, 1.0, 2.0}
    assert mechanism.sample(1, source=SeededEntropy(5)).shape == ()
    assert mechanism.sample([]).shape == (0,)
    assert Staircase([0, 1], 1.0).sample([]).shape == (0,)


def test_noise_beyond_the_integers_of_floats_is_drawn_and_clipped():
    assert set(DiscreteStaircase([0, 3], 1e-90, clip=Interval(0, 3)).sample(np.ones(50)).tolist()) == {0.0, 3.0}


def test_long_stairs_at_large_budgets_are_drawn_without_many_rounds():
    """A uniform place on the stair would be on its upper level, and kept, once in 3e8 rounds."""
    mechanism = DiscreteStaircase([0, 340_000_001], 700.0)
    assert mechanism.rise == 1
    assert mechanism.sample([0, 340_000_001] * 50).tolist() == [0, 340_000_001] * 50


@pytest.mark.parametrize("rise", [1, 40])
@pytest.mark.parametrize("epsilon", [0.7, 6.0])
def test_draws_from_long_stairs_fit_the_probabilities(epsilon, rise):
    noise = DiscreteStaircase([0, 50], epsilon, rise=rise).noise
    draws = discrete_staircase(Fraction(epsilon), 20_000, sensitivity=50, rise=rise, source=SeededEntropy(11))
    edges = np.unique([-50, -25, -rise, -1, 0, rise - 1, 25, 49]) + 0.5
    seen = np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)
    assert_fit(seen, compute_mass(noise, np.r_[-np.inf, edges], np.r_[edges, np.inf]))


def test_exactness_is_said_by_the_type():
    for kind in KINDS:
        mechanism = kind(LABELS, 1.0)
        assert mechanism.exact is (kind in DISCRETE)
        assert mechanism == kind(Interval(0, 6), 1.0)
        assert mechanism != kind(Interval(0, 6), 1.5)


def test_noise_for_a_smaller_range_than_that_of_the_labels_is_caught():
    small = DiscreteStaircase([0, 3], 1.0)
    table = compute_mass(
        small.noise, *np.broadcast_arrays(LABELS - 0.5 - LABELS[:, np.newaxis], LABELS + 0.5 - LABELS[:, None])
    )
    table[:, 0] += 1 - table.sum(axis=1)
    assert optrand.audit(table, 1.0).epsilon > 1.9


# --- refusals ---------------------------------------------------------------------------------------------------------
@by_case(
    "kinds, labels, options, message",
    (KINDS, [3], {}, "one label"),
    (KINDS, [0, 0], {}, "distinct"),
    (KINDS, [0, 6], {"clip": (0, 6)}, "expected an Interval"),
    (DISCRETE, [0, 6], {"step": 4.0}, "whole number of steps"),
    (DISCRETE, [0, 2.5, 6], {}, "at least one label is not a whole number"),
    (DISCRETE, Interval(0, 6.5), {}, "whole number of steps"),
    (DISCRETE, [0, 6], {"step": 0.0}, "step is 0"),
    (DISCRETE, [0, 6], {"step": -1.0}, "step is -1"),
    (DISCRETE, [0, 6], {"clip": Interval(0, 5.5)}, "at least one end of clip"),
    (DISCRETE, [0, 6], {"step": 1e-16}, "longer step"),
    *[([Staircase], LABELS, {"gamma": gamma}, "gamma") for gamma in (0.0, 1.0, -0.1, math.nan)],
    *[([DiscreteStaircase], LABELS, {"rise": rise}, "rise") for rise in (0, 7, 2.0, True)],
)
def test_labels_and_options_without_meaning_are_refused(kinds, labels, options, message):
    for kind in kinds:
        assert_error(message, kind, labels, 1.0, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_whose_variance_is_no_float_are_refused(kind):
    for labels, epsilon, options in (
        (LABELS, 1e-101, {}),
        ([0, 1e90], 1e-20, {"step": 1e90} if kind in DISCRETE else {}),
    ):
        assert_error("the variance of the noise exceeds floats", kind, labels, epsilon, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_further_apart_as_floats_than_as_they_are_written_are_refused(kind):
    """These neighbouring floats are 16384 apart and written as if they were 10000: noise for that is too small."""
    low = 1e20 + 16384
    high = math.nextafter(low, math.inf)
    assert_error("labels, 10000, is less than the distance between the floats", kind, [low, high], 1.0)


@pytest.mark.parametrize("kind", DISCRETE)
def test_no_label_is_more_steps_away_than_the_noise_hides(kind):
    """If the step is finer than floats are, a label may be a few steps further up than it is written."""
    low, high = 80000000000000.42, 80000004693940.7
    assert_error("steps of 1e-06 apart as floats, the sensitivity is", kind, [low, high], 1.0, step=1e-6)
    # Labels of which each is the float nearest to its own place are that many steps apart.
    mechanism = kind([low, high], 1.0, step=0.01)
    assert mechanism.positions(np.array([low, high]), "label").tolist() == [0, mechanism.steps]


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_no_labels_are_refused(kind):
    for values in ([math.nan, 1], *([[1, 2.5]] if kind in DISCRETE else [])):
        assert_error("at least one value", kind(LABELS, 1.0).sample, values)
    for values in (["1"], [True], [1 + 0j]):
        assert_error("expected integers or floats", kind(LABELS, 1.0).sample, values)


@pytest.mark.parametrize("kind", DISCRETE)
def test_channels_need_finitely_many_releases(kind):
    assert_error("infinitely many", kind(LABELS, 1.0).channel, LABELS)
    clipped = kind(LABELS, 1.0, clip=Interval(0, 6))
    assert_error("reach beyond", clipped.discretise, LABELS, [0, 7])
    assert_error("at least one output", clipped.discretise, LABELS, [0, 5.5])
