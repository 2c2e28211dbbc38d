"""Bits whose privacy is counted out over all vectors, coins that are exact, and ALIBI against its definition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import softmax
from words import GivenWords

from optrand.base._arithmetic import check_ratio
from optrand.baselines import _vector
from optrand.baselines._vector import Alibi, LatticeAlibi, UnaryBits, coins, octets
from optrand.errors import InvalidInput
from optrand.model._randomizer import Randomizer
from optrand.model._table import Table
from optrand.sampling._entropy import SeededEntropy
from tests.oracle import largest_ratio

budgets = st.one_of(st.sampled_from([1e-140, 1e-9, 1e-3, 0.1, 1.0, 4.0, 40.0, 700.0]), st.floats(1e-6, 40.0))
rates = st.one_of(
    st.sampled_from(
        [Fraction(0), Fraction(1, 2), Fraction(3, 4), Fraction(1, 3), Fraction(1, 2**70), UnaryBits(2, 1.0).flip]
    ),
    st.fractions(0, Fraction(99, 100), max_denominator=10**9),
)


class Constant:
    """Source of one word, repeated."""

    width = 64
    private = False

    def __init__(self, word):
        self.word = word

    def words(self, count):
        return np.full(count, self.word, dtype=np.uint64)


NO_FLIPS = Constant(2**64 - 1)
"""Uniform numbers 0.111... in binary: above every probability."""

ALL_FLIPS = Constant(0)


# Coins
@pytest.mark.parametrize("width", [1, 3, 7, 8, 16, 33, 63, 64])
def test_octets_use_every_bit_of_every_word_once(width):
    count = 21
    words = [int(word) >> (64 - width) for word in SeededEntropy(width).words(-(-8 * count // width))]
    bits = [word >> place & 1 for word in words for place in range(width)]
    drawn = octets(GivenWords(width, words), count)
    assert drawn.dtype == np.uint8
    assert drawn.shape == (count,)
    # The order within an octet of whole words is that of the machine's integers. Within others it is that of packbits.
    order = "little" if width == 64 else "big"
    assert np.unpackbits(drawn, bitorder=order).tolist() == bits[: 8 * count]


@given(rates, st.lists(st.integers(0, 255), min_size=30, max_size=30))
def test_a_coin_is_heads_where_its_uniform_number_is_below_the_probability(rate, start):
    # One octet takes one word per round, so bit `lane` of the words spells the lane's number.
    words = start + SeededEntropy(5).words(300).astype(np.uint8).tolist()
    tape = GivenWords(8, words)
    heads = np.unpackbits(coins(rate, 1, tape))
    read = len(words) - len(tape.left)
    # A source of eight bits is packed with its lowest bit first.
    table = np.unpackbits(np.array(words, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    for lane in range(8):
        number = Fraction(int("".join(map(str, table[:, lane])), 2), 2 ** len(words))
        assert heads[lane] == (number < rate)
    # The first 30 words may follow the digits of the probability. Among random ones a coin needs two on average.
    assert read < 30 + 40


@pytest.mark.parametrize("k", [2, 10, 1_000])
def test_labels_cost_less_than_five_random_octets_for_each_octet_that_is_sent(k):
    """[Z25], Section 4.3: the time of N labels is of the order of N K."""
    tape = GivenWords(8, SeededEntropy(1).words(700_000).astype(np.uint8).tolist())
    UnaryBits(k, 1.0).sample(np.zeros(1_000, dtype=np.intp), source=tape)
    assert 700_000 - len(tape.left) < 5 * 1_000 * math.ceil(k / 8)


# Unary bits: privacy, from both sides
def table(randomizer):
    """All ``2**k`` vectors, and the integer weight of each under every label, from the definition and `flip` alone."""
    k, flip = randomizer.k, randomizer.flip
    vectors = list(itertools.product([0, 1], repeat=k))
    kept, flipped = flip.denominator - flip.numerator, flip.numerator
    weights = [
        [math.prod(kept if bit == (j == y) else flipped for j, bit in enumerate(bits)) for bits in vectors]
        for y in range(k)
    ]
    return np.array(vectors), np.array(weights, dtype=object)


@given(st.integers(2, 5), budgets)
def test_all_vectors_keep_within_the_ratio_and_attain_it(k, epsilon):
    randomizer = UnaryBits(k, epsilon)
    ratio, weights = randomizer.ratio, table(randomizer)[1]
    check_ratio(ratio, epsilon)
    assert Table.of_rows(range(k), range(2**k), weights).total == randomizer.flip.denominator**k
    ratios = {Fraction(max(column), min(column)) for column in weights.T.tolist()}
    # All bits equal: no label is likelier. Otherwise a label with a 1 is ``ratio`` times likelier than one with a 0.
    assert ratios == {Fraction(1), ratio}


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_epsilon_a_coordinate_in_place_of_half_of_it_is_caught(k, epsilon):
    wrong = UnaryBits(k, 2 * epsilon)  # each bit is flipped with probability 1 / (1 + exp(epsilon))
    assert abs(float(wrong.flip) - 1 / (1 + math.exp(epsilon))) < 1e-15
    vectors, weights = table(wrong)
    assert Table.of_rows(range(k), range(2**k), weights).largest_ratio == wrong.ratio
    assert_error("expected at most exp", check_ratio, wrong.ratio, epsilon)
    matrix = (weights / wrong.flip.denominator**k).astype(np.float64)
    channel = Randomizer(np.arange(k), np.arange(len(vectors)), matrix, epsilon)
    assert abs(math.log(largest_ratio(channel.matrix)) - 2 * epsilon) < 1e-9


# Unary bits: the draws have the probabilities of the table
@pytest.mark.parametrize("k", [2, 7, 8, 9, 16, 17, 100])
def test_without_flips_the_vector_is_one_hot_and_with_all_flips_its_complement(k):
    randomizer = UnaryBits(k, 1.0)
    labels = np.arange(k)
    assert np.array_equal(randomizer.sample(labels, source=NO_FLIPS), np.eye(k))
    assert np.array_equal(randomizer.sample(labels, source=ALL_FLIPS), 1 - np.eye(k))


@pytest.mark.parametrize("y", [0, 1, 2])
def test_frequencies_of_all_vectors_are_those_of_the_table_whatever_the_size_of_a_block(monkeypatch, y):
    monkeypatch.setattr(_vector, "BLOCK", 700)
    randomizer = UnaryBits(3, 1.5)
    drawn = randomizer.sample(np.full((1_000, 100), y), source=SeededEntropy(y)) @ [4, 2, 1]
    assert drawn.shape == (1_000, 100)
    expected = (table(randomizer)[1][y] / Fraction(randomizer.flip.denominator**3)).astype(np.float64)
    observed = np.bincount(drawn.reshape(-1), minlength=8)
    assert stats.chisquare(observed, expected * drawn.size).pvalue > 1e-3


# Unary bits: moments and estimates
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0])
def test_moments_are_those_of_the_table(k, epsilon):
    randomizer = UnaryBits(k, epsilon)
    vectors, weights = table(randomizer)
    probabilities = weights / Fraction(randomizer.flip.denominator**k)
    labels = np.arange(k)
    r = randomizer.odds
    debiased = ((1 + r) * vectors - 1) / (r - 1)
    for values, moments in (
        (vectors * Fraction(1), randomizer.moments(labels)),
        (debiased, randomizer.debiased_moments(labels)),
    ):
        means = probabilities @ values
        variances = (probabilities @ values**2 - means**2).sum(axis=1)
        offsets = ((means - np.eye(k, dtype=np.int64)) ** 2).sum(axis=1)
        np.testing.assert_allclose(moments.biases, np.sqrt(offsets.astype(np.float64)), rtol=1e-14)
        np.testing.assert_allclose(moments.variances, variances.astype(np.float64), rtol=1e-14)
    assert all(mean == unit for mean, unit in zip((probabilities @ debiased).flat, np.eye(k).flat, strict=True))


@pytest.mark.parametrize("epsilon", [1e-140, 1e-6, 700.0])
def test_figures_stay_finite_at_the_ends_of_the_range(epsilon):
    for randomizer in (UnaryBits(1000, epsilon), Alibi(1000, epsilon)):
        moments = randomizer.moments([0])
        assert np.isfinite(moments.variances).all()
        assert (moments.variances > 0).all()
        assert np.isfinite(randomizer.sample([1, 2], source=SeededEntropy(0))).all()
    bits = UnaryBits(1000, epsilon)
    assert np.isfinite(bits.debias(bits.sample([1, 2], source=SeededEntropy(0)))).all()
    assert np.isfinite(bits.debiased_moments([0]).variances).all()


# ALIBI
def log_density(noisy, y, scale):
    """Density of independent Laplace noise around the one-hot vector of `y`."""
    return stats.laplace.logpdf(noisy, loc=np.eye(noisy.shape[-1])[y], scale=scale).sum(axis=-1)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_densities_of_alibi_keep_within_epsilon_and_attain_it(k, epsilon):
    randomizer = Alibi(k, epsilon)
    noisy = np.concatenate([randomizer.sample(np.arange(k).repeat(500), source=SeededEntropy(1)), 3 * np.eye(k) - 1])
    densities = np.array([log_density(noisy, y, randomizer.scale) for y in range(k)])
    losses = np.ptp(densities, axis=0)
    assert losses.max() <= epsilon * (1 + 1e-12)
    np.testing.assert_allclose(losses[-k:], epsilon, rtol=1e-12)
    # A scale of 1 / epsilon forgets that two coordinates move.
    wrong = Alibi(k, 2 * epsilon)
    assert wrong.scale == 1 / epsilon
    densities = np.array([log_density(noisy, y, wrong.scale) for y in range(k)])
    np.testing.assert_allclose(np.ptp(densities, axis=0).max(), 2 * epsilon, rtol=1e-12)


def test_moments_of_alibi_are_those_of_laplace_noise():
    moments = Alibi(4, 0.8).moments([0, 3])
    assert (moments.biases == 0).all()
    assert moments.variances == pytest.approx([4 * stats.laplace(scale=2.5).var()] * 2)
    assert np.array_equal(Alibi(4, 700.0).sample(range(4), source=SeededEntropy(6)).round(), np.eye(4))
    noise = Alibi(4, 0.8).sample(np.zeros(40_000, dtype=int), source=SeededEntropy(6)) - np.eye(4)[0]
    assert stats.kstest(noise.ravel(), stats.laplace(scale=2.5).cdf).pvalue > 1e-3


coordinates = st.one_of(
    st.floats(-3, 4), st.sampled_from([0.0, 0.5, 1.0, 1e300, -1e300, math.inf, -math.inf]), st.floats(allow_nan=False)
)


@given(st.data(), st.integers(2, 6), st.sampled_from([1e-3, 0.5, 1.0, 8.0, 40.0]))
def test_soft_labels_are_the_posterior_of_the_definition(data, k, epsilon):
    randomizer = Alibi(k, epsilon)
    noisy = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=k, max_size=k)))
    # [Z25], eq. 29, term by term.
    exponents = np.array([-np.abs(noisy - np.eye(k)[c]).sum() for c in range(k)]) / randomizer.scale
    np.testing.assert_allclose(randomizer.soft_labels(noisy), softmax(exponents), rtol=1e-10)


@given(st.lists(coordinates, min_size=3, max_size=3), budgets)
def test_no_soft_label_is_surer_than_privacy_allows(noisy, epsilon):
    soft = Alibi(3, epsilon).soft_labels(noisy)
    assert abs(soft.sum() - 1) < 1e-12
    assert soft.max() <= (1 / (1 + 2 * math.exp(-epsilon))) * (1 + 1e-12)
    certain = Alibi(3, epsilon).soft_labels([2.0, 0.0, -1.0])
    assert math.isclose(certain[0], 1 / (1 + 2 * math.exp(-epsilon)), rel_tol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0])
def test_bits_are_alibi_on_a_lattice_of_one_step(epsilon):
    bits, lattice = UnaryBits(3, epsilon), LatticeAlibi(3, epsilon, steps=1)
    vectors = table(bits)[0]
    assert (bits._noise, bits.variance, bits.ratio) == (lattice._noise, lattice.variance, lattice.ratio)
    for name in ("likelihood", "soft_labels", "debias", "loss_weights"):
        assert np.array_equal(getattr(bits, name)(vectors), getattr(lattice, name)(vectors))
    # Bayes' rule over the table of all vectors.
    weights = table(bits)[1].astype(np.float64)
    np.testing.assert_allclose(bits.soft_labels(vectors), (weights / weights.sum(axis=0)).T, rtol=1e-12)


# Refusals
@pytest.mark.parametrize("kind", [UnaryBits, Alibi])
@by_case(
    "k, epsilon, match",
    (1, 1.0, "k is 1, expected an integer of at least 2"),
    (2.0, 1.0, "k is 2.0, expected an integer"),
    (3, 0.0, "above 0"),
    (3, 1e-141, "at least 1e-140"),
)
def test_meaningless_sizes_and_budgets_are_refused(kind, k, epsilon, match):
    assert_error(match, kind, k, epsilon)


@pytest.mark.parametrize("randomizer", [UnaryBits(10, 1.0), Alibi(10, 1.0)], ids=["bits", "alibi"])
@pytest.mark.parametrize(
    "values",
    [[0, 47], [0, -47], [0, 4.7], [1, math.nan], [1, math.inf], 47, np.array([2**64 - 1], dtype=np.uint64)],
    ids=str,
)
def test_values_that_are_no_classes_are_refused_and_never_repeated(randomizer, values):
    for call in (randomizer.sample, randomizer.moments):
        with pytest.raises(InvalidInput, match="at least one value") as caught:
            call(values)
        assert all(told not in str(caught.value) for told in ("47", "4.7", "nan", "inf", "184467"))


BITS, NOISE, LATTICE = UnaryBits(10, 1.0), Alibi(3, 1.0), LatticeAlibi(3, 1.0, 4)


@by_case(
    "call, given, words",
    *[
        (randomizer.sample, values, "values are of type")
        for randomizer in (BITS, NOISE)
        for values in (["3"], [True], [3 + 0j], [None])
    ],
    *[(BITS.debias, bits, "expected numbers and 10") for bits in (np.zeros((2, 9), "u1"), 1)],
    *[(BITS.debias, np.full((1, 10), entry), "never drawn") for entry in (2, -1, 0.5, math.nan)],
    (LATTICE.debias, [0.0, 0.25, 0.3], "never drawn"),
    (NOISE.soft_labels, [0.0, 1.0], "expected numbers and 3 along the last axis"),
    (NOISE.soft_labels, [0.0, 1.0, math.nan], "hold NaN"),
    (NOISE.soft_labels, ["a", "b", "c"], "noisy vectors are of type <U1"),
)
def test_values_and_vectors_of_another_shape_or_type_are_refused(call, given, words):
    assert_error(words, call, given)
