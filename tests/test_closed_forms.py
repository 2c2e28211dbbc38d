"""The closed forms: their identities, their privacy from both sides, and their duals in exact arithmetic."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import example, given
from hypothesis import strategies as st
from words import GivenWords, enumerated

import optrand
from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.base._validation import Floats
from optrand.certificates._certificate import certify
from optrand.closed_forms import debiased_rr, rr, rr_top_k, rr_with_prior, rr_with_prior_batch
from optrand.closed_forms._regression import design_debiased_rr
from optrand.errors import InvalidInput
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Randomizer
from optrand.sampling._entropy import draw_integers

CLOSED = 1e-12
"""The gap to which a closed form is certified."""

EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 2.5, 8.0, 20.0, 40.0)

counts = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)
"""Priors with many ties and zeros, once divided by their sum."""

ratios = st.fractions(Fraction(1_000_001, 1_000_000), 10**6)
epsilons = st.one_of(st.sampled_from(EPSILONS), st.floats(1e-6, 40))


def prior_of(weights: Sequence[int]) -> Floats:
    return np.array(weights) / sum(weights)


def random_prior(generator: np.random.Generator, size: int) -> Floats:
    """A prior that may be flat, spiky, tied or with zeros."""
    weights = generator.gamma(10 ** generator.uniform(-1.5, 2), size=size)
    if generator.random() < 0.3:
        weights = np.ceil(3 * weights / weights.max())
    if generator.random() < 0.3:
        weights *= generator.random(size) < 0.5
    return weights / weights.sum() if weights.sum() > 0 else np.full(size, 1 / size)


# [G21], Theorem 3, in exact rationals: an implementation that shares nothing with the package's.
def exact_objective(prior: Sequence[Fraction], ratio: Fraction) -> tuple[Fraction, int]:
    """The largest ``w_k``, and the smallest `k` that attains it, straight from [G21] Algorithm 2."""
    falling = sorted(prior, reverse=True)
    scores = [ratio * sum(falling[:k]) / (ratio + k - 1) for k in range(1, len(falling) + 1)]
    return max(scores), scores.index(max(scores)) + 1


def exact_multipliers(prior: Sequence[Fraction], ratio: Fraction) -> list[Fraction]:
    best, _ = exact_objective(prior, ratio)
    return [max(Fraction(0), (ratio * p - best) / (ratio - 1)) for p in prior]


@given(counts, ratios)
@example([1, 1, 1], Fraction(2))
@example([0, 0, 5], Fraction(2))
@example([7], Fraction(2))
def test_the_exact_dual_is_feasible_for_lp1_and_meets_the_objective(weights: list[int], ratio: Fraction) -> None:
    prior = [Fraction(w, sum(weights)) for w in weights]
    best, _ = exact_objective(prior, ratio)
    mu = exact_multipliers(prior, ratio)
    assert sum(mu) == best
    # LP1 in the columns c * s, s in {1, R}^K: its dual requires sum_y s_y (mu_y - p_y [v = y]) >= 0 for every v and s.
    for v, chosen in itertools.product(range(len(prior)), itertools.product((1, ratio), repeat=len(prior))):
        assert (
            sum(s * (m - (p if y == v else 0)) for y, (s, m, p) in enumerate(zip(chosen, mu, prior, strict=True))) >= 0
        )


@given(counts, epsilons)
@example([3, 2, 2], 1e-6)
@example([1, 1, 1, 1, 0], 1e-6)
def test_rr_with_prior_is_the_exact_optimum(weights: list[int], epsilon: float) -> None:
    solution = rr_with_prior(prior_of(weights), epsilon)
    prior = [Fraction(float(p)) for p in solution.problem.prior]
    ratio = exp_bracket(epsilon)[0]
    best, _ = exact_objective(prior, ratio)
    assert solution.value == pytest.approx(float(best), rel=1e-14)
    assert solution.dual is not None
    np.testing.assert_allclose(-solution.dual.alpha, [float(m) for m in exact_multipliers(prior, ratio)], atol=1e-14)


def test_nearly_tied_priors_lose_nothing_at_a_tiny_epsilon() -> None:
    # Priors closer to each other than epsilon: as a float, E p - S would be off by 1e-16 / epsilon of its size.
    generator = np.random.default_rng(5)
    for epsilon in (1e-12, 1e-9, 1e-6):
        weights = 1 + epsilon * generator.random(50)
        prior = weights / weights.sum()
        solution = rr_with_prior(prior, epsilon)
        best, k = exact_objective([Fraction(p) for p in prior.tolist()], exp_bracket(epsilon)[0])
        assert 1 < k == solution.n
        assert solution.value == pytest.approx(float(best), rel=1e-14)
        assert certify(solution).gap <= CLOSED


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 40.0, 700.0])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_rr_with_prior_is_certified(size: int, epsilon: float) -> None:
    generator = np.random.default_rng([size, int(epsilon * 1e6)])
    for _ in range(4):
        proof = certify(rr_with_prior(random_prior(generator, size), epsilon))
        assert proof.require(gap=CLOSED).bias >= 0


def test_rr_is_as_printed_and_sorts_its_labels() -> None:
    # [G21], Section 2: e^epsilon / (e^epsilon + K - 1) on the diagonal, at e^epsilon = 3 and K = 3.
    solution = rr([7, -2, 0.5], math.log(3))
    assert solution.labels.tolist() == solution.outputs.tolist() == [-2, 0.5, 7]
    np.testing.assert_allclose(solution.matrix, (np.ones((3, 3)) + 2 * np.eye(3)) / 5, rtol=1e-15)


def test_rr_top_k_is_as_printed() -> None:
    # [G21], Algorithm 1, with e^epsilon = 4 and k = 2: kept labels 3 and 1, the other rows uniform over them.
    for k in (0, 5, 2.0):
        assert_error("k is", rr_top_k, [0.1, 0.3, 0.2, 0.4], k, math.log(4))
    solution = rr_top_k([0.1, 0.3, 0.2, 0.4], 2, math.log(4))
    assert solution.outputs.tolist() == [1, 3]
    np.testing.assert_allclose(solution.matrix, [[0.5, 0.5], [0.8, 0.2], [0.5, 0.5], [0.2, 0.8]], rtol=1e-15)


@given(counts, epsilons)
def test_the_gap_of_rr_top_k_is_its_true_distance_from_the_best(weights: list[int], epsilon: float) -> None:
    prior = prior_of(weights)
    best = rr_with_prior(prior, epsilon)
    for k in range(1, prior.size + 1):
        solution = rr_top_k(prior, k, epsilon)
        proof = certify(solution)
        assert proof.findings == ()
        assert proof.gap == pytest.approx((best.value - solution.value) / solution.value, abs=1e-12)
    assert rr_top_k(prior, best.n, epsilon).value == pytest.approx(best.value, rel=1e-15)


# Batches.
def test_a_batch_says_what_its_rows_say() -> None:
    generator = np.random.default_rng(8)
    priors = np.array([random_prior(generator, 9) for _ in range(60)])
    for epsilon in (1e-6, 2.0, 40.0):
        batch = rr_with_prior_batch(priors, epsilon)
        assert (len(batch), batch.k) == (60, 9)
        for i, prior in enumerate(priors):
            single = rr_with_prior(prior, epsilon)
            assert batch[i].problem == single.problem
            assert np.array_equal(batch[i].matrix, single.matrix)
            assert np.array_equal(np.flatnonzero(batch.kept[i]), single.outputs)
            assert batch.k_star[i] == single.n
            assert batch.objective[i] == pytest.approx(single.value, rel=1e-15)
    with pytest.raises(IndexError):
        batch[60]


@pytest.mark.parametrize(("epsilon", "label"), [(1.0, 0), (1.0, 4), (0.01, 1), (30.0, 1), (700.0, 0)])
def test_every_string_of_bits_is_drawn_as_the_ratio_says(epsilon: float, label: int) -> None:
    batch = rr_with_prior_batch([[0.25, 0.25, 0.24, 0.2, 0.06]], epsilon)
    kept, ratio = np.flatnonzero(batch.kept[0]).tolist(), privacy_ratio(epsilon)
    masses, open_mass = enumerated(lambda source: int(batch.sample([label], source=source)[0]), 16)
    assert open_mass < Fraction(1, 50)
    for output in kept:
        chance = Fraction(1, len(kept))
        if label in kept:
            chance = (ratio if output == label else 1) / (ratio + len(kept) - 1)
        drawn = masses.pop(output, Fraction(0))
        assert drawn <= chance <= drawn + open_mass
    assert masses == {}


@pytest.mark.parametrize("width", [33, 40, 60, 63, 64])
def test_sizes_of_63_bits_are_drawn_from_words_of_any_width(width: int) -> None:
    """Two words make 64 bits, or fewer if they have fewer. Numbers beyond the last multiple are drawn again."""
    rng, sizes = np.random.default_rng(width), [2**62 + 1, 3 * 2**61, 2**63 - 1, 2**61]
    words = [int(word) for word in rng.integers(0, 2**width, 400, dtype=np.uint64, endpoint=False)]
    parts = 1 if width >= 63 else 2
    bits = min(64, parts * width)
    for size in sizes:
        source = GivenWords(width, words)
        drawn = int(draw_integers(np.array([size]), source)[0])
        accepted = []
        for at in range(0, 400 - parts, parts):
            number = sum(word << width * (parts - 1 - i) for i, word in enumerate(words[at : at + parts]))
            number >>= parts * width - bits
            if number < (1 << bits) // size * size:
                accepted.append(number % size)
        assert drawn == accepted[0]


def test_the_words_used_do_not_depend_on_the_labels() -> None:
    priors = np.random.default_rng(1).dirichlet(np.ones(6), 50)
    batch = rr_with_prior_batch(priors, 1.0)
    used = set()
    for label in range(6):
        source = GivenWords(8, np.random.default_rng(2).integers(0, 256, 4000).tolist())
        batch.sample(np.full(50, label), source=source)
        used.add(len(source.left))
    assert len(used) == 1


@by_case(
    "labels, message",
    ([0], "shape"),
    ([0, 1, 2], "shape"),
    ([0.5, 1.0], "at least one value is not among the classes"),
    ([True, False], "type"),
    ([0, 87], "at least one value is not among the classes"),
    ([-1, 87], "at least one value is not among the classes"),
)
def test_a_batch_refuses_labels_that_do_not_fit_and_repeats_none(labels: list[object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as error:
        rr_with_prior_batch([[0.5, 0.5], [0.5, 0.5]], 1.0).sample(labels)  # type: ignore[arg-type]
    assert "87" not in str(error.value)


@by_case(
    "priors",
    *[[0.5, 0.5], [[]], np.empty((0, 3)), [["0.5", "0.5"]], [[0.5, 0.5], [0.5, 0.4]], [[0.5, 0.5], [1.5, -0.5]]],
    *[[[0.5, 0.5], [math.nan, 1.0]], [[0.5, 0.5], [math.inf, -math.inf]], [[0.5, 0.5], [1.0, 5e-324]]],
)
def test_a_batch_refuses_priors_that_are_no_matrix_of_probabilities(priors: object) -> None:
    assert_error("priors", rr_with_prior_batch, priors, 1.0)


# Debiased randomized response.

label_sets = st.lists(st.integers(-40, 40), min_size=1, max_size=8, unique=True)


@given(label_sets, st.floats(0.01, 40))
def test_debiased_rr_is_as_printed(labels: list[int], epsilon: float) -> None:
    # [B23], Definition 23, in rationals at R = exp(epsilon) to 60 digits.
    ratio, k = exp_bracket(epsilon)[0], len(labels)
    expected = [((ratio + k - 1) * y - sum(labels)) / (ratio - 1) for y in sorted(labels)]
    solution = design_debiased_rr(labels, epsilon)
    scale = max(map(abs, expected)) or 1
    assert [float(v) for v in expected] == pytest.approx(solution.randomizer.outputs.tolist(), abs=1e-13 * float(scale))
    assert solution.randomizer.matrix == pytest.approx(rr(labels, epsilon).matrix, rel=1e-15)
    assert not any(debiased_rr(labels, epsilon).exact_biases)


@given(label_sets, st.floats(0.01, 40))
def test_the_value_of_debiased_rr_and_its_dual_are_formulas(labels: list[int], epsilon: float) -> None:
    solution = debiased_rr(labels, epsilon)
    x, spread = len(labels) / math.expm1(epsilon), float(np.var(labels))
    assert solution.value == pytest.approx(x * (x + 2) * spread / 2, rel=1e-9)
    assert solution.dual is not None
    met = solution.dual.alpha.sum() + solution.dual.beta @ solution.problem.labels
    assert met == pytest.approx(solution.value, rel=1e-9)


@by_case("labels, epsilon", (range(3), 2.0), (range(10), 8.0), (range(53), 20.0), ([0, 1, 5], 8.0))
def test_debiased_rr_is_proved_optimal_at_a_large_epsilon(labels: Sequence[float], epsilon: float) -> None:
    assert certify(debiased_rr(labels, epsilon)).gap <= 1e-12


@pytest.mark.parametrize("prior", [[0.01, 0.49, 0.5], [0.9, 0.09, 0.01], [0.3, 0.4, 0.3]])
def test_debiased_rr_becomes_optimal_if_every_label_occurs(prior: list[float]) -> None:
    assert certify(debiased_rr([0, 1, 100], 20.0, prior=prior)).gap <= 1e-9


@pytest.mark.parametrize(
    ("labels", "prior", "ratio"),
    # The first two never become optimal: a label between the ends that never occurs, and an end far from the others.
    [([0, 1, 2], [0.5, 0, 0.5], 1.25), ([0, 1, 100], [0, 0.5, 0.5], 1.474), ([0, 99, 100], [0, 0.5, 0.5], 1.0)],
)
@pytest.mark.parametrize("epsilon", [12.0, 15.0])
def test_debiased_rr_may_lose_if_a_label_never_occurs(
    labels: list[float], prior: list[float], ratio: float, epsilon: float
) -> None:
    best = certify(optrand.solve(optrand.unbiased_regression(labels, prior, epsilon))).require(gap=1e-8)
    assert debiased_rr(labels, epsilon, prior=prior).value / best.upper == pytest.approx(ratio, rel=5e-4)


@pytest.mark.parametrize("labels", [range(3), range(10), [0, 1, 9], [-5, 0.5, 2, 30]])
@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0])
def test_where_debiased_rr_is_not_optimal_its_dual_does_not_say_so(labels: Sequence[float], epsilon: float) -> None:
    # The two ends alone are an unbiased mechanism and better. A true bound lies below both.
    solution = debiased_rr(labels, epsilon)
    low, high = solution.problem.labels[[0, -1]]
    reach = (high - low) / math.expm1(epsilon)
    ends = np.array([low - reach, high + reach])
    upper = (solution.problem.labels - ends[0]) / (ends[1] - ends[0])
    floats = Randomizer(solution.problem.labels, ends, np.stack([1 - upper, upper], axis=1), epsilon)
    better = tabulate(Solution(solution.problem, floats, solution.dual))
    assert better.certificate.findings == ()
    assert better.certificate.lower <= better.value < solution.value


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 20.0])
def test_labels_far_from_zero_keep_their_digits(epsilon: float) -> None:
    near, far = (design_debiased_rr([at, at + 1, at + 5], epsilon) for at in (0, 1e9))
    np.testing.assert_allclose(far.randomizer.outputs - 1e9, near.randomizer.outputs, atol=3e-7, rtol=1e-14)
    assert far.value == pytest.approx(near.value, rel=1e-5)


@pytest.mark.parametrize(
    ("labels", "epsilon", "message"),
    [([0, 1e-17, 1], 0.1, "coincide"), ([-1e308, 1e308], 1.0, "overflow"), ([0, 1e305], 1e-9, "overflow")],
)
def test_debiased_rr_refuses_outputs_that_floats_cannot_hold(labels: list[float], epsilon: float, message: str) -> None:
    assert_error(message, debiased_rr, labels, epsilon)


def test_a_dual_that_floats_cannot_hold_is_left_out() -> None:
    solution = debiased_rr([0, 1e150], 1e-9)
    assert solution.dual is None
    assert solution.outputs[-1] > 1e150
