"""Noise of many records at once: exactly distributed, and each record's own whatever is drawn with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from optrand.baselines import DiscreteLaplace, DiscreteStaircase
from optrand.sampling.discrete_noise import discrete_laplace
from optrand.sampling.keyed import RecordStreams
from optrand.sampling.record_noise import RecordCoins, fits, record_laplace, record_staircase

GOLDEN = [4246831339479488492, 10423234417116471765]
"""First later words of ids 0 and 1 under a key of zeros; what is drawn under one key never changes."""

KINDS = (DiscreteLaplace, DiscreteStaircase)


def numbered(count, first=0):
    ids = np.zeros((count, 2), dtype=np.uint64)
    ids[:, 0] = np.arange(first, first + count)
    return ids


def streams(key=0):
    return RecordStreams(bytes([key] * 32))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 0.95, 4.0])
def test_noise_has_the_probabilities_of_its_formula(kind, epsilon):
    """Counts against the closed form: of a chi-squared statistic with `df` degrees, the mean is `df`."""
    mechanism, count = kind(np.arange(9), epsilon), 40_000
    noise = (mechanism.sample_records(np.full(count, 4.0), numbered(count), streams()) - 4).astype(int)
    low, high = np.quantile(noise, [0.01, 0.99]).astype(int)
    places = np.arange(low, high + 1)
    share = mechanism.noise.mass(places - 0.5, places + 0.5)
    expected = count * np.append(share, 1 - share.sum())
    inside = np.bincount(noise[(noise >= low) & (noise <= high)] - low, minlength=places.size)
    found = np.append(inside, count - inside.sum())
    df = places.size
    assert abs(((found - expected) ** 2 / expected).sum() - df) < 5 * np.sqrt(2 * df)


def test_coins_are_powers_of_e():
    count = 60_000
    everyone = np.arange(count)
    for numerator, denominator in ((0, 3), (1, 1), (2, 7), (2**60, 2**61)):
        coins = RecordCoins(numbered(count), streams(1))
        heads = coins.bernoulli_exp(np.full(count, numerator), denominator, everyone).mean()
        assert abs(heads - np.exp(-numerator / denominator)) < 5 * 0.5 / np.sqrt(count)
    epsilon = Fraction(5, 2)
    for halves in (0, 1, 2):
        heads = RecordCoins(numbered(count), streams(2)).lower(epsilon, halves, everyone).mean()
        assert abs(heads - 2**halves * np.exp(-2.5)) < 5 * 0.5 / np.sqrt(count)


def test_integers_below_a_bound_are_uniform_and_rejected_words_are_replaced():
    count = 30_000
    coins = RecordCoins(numbered(count), streams())
    found = np.bincount(coins.below(3, np.arange(count)), minlength=3)
    assert (np.abs(found - count / 3) < 5 * np.sqrt(count * 2 / 9)).all()
    # One word in sixteen lies beyond the last multiple of this bound.
    bound = 3 * 2**60
    assert (coins.below(bound, np.arange(count)) < bound).all()
    assert abs(coins._used.mean() - 1 - 16 / 15) < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_has_its_noise_in_any_order_batch_and_company(kind):
    mechanism, ids = kind(np.arange(5), 0.95), numbered(3000)
    values = np.random.default_rng(0).integers(0, 5, 3000).astype(float)
    whole = mechanism.sample_records(values, ids, streams())
    order = np.random.default_rng(1).permutation(3000)
    np.testing.assert_array_equal(mechanism.sample_records(values[order], ids[order], streams()), whole[order])
    parts = [mechanism.sample_records(values[one], ids[one], streams()) for one in np.split(np.arange(3000), [1, 700])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    shifted = mechanism.sample_records(4 - values, ids, streams())
    np.testing.assert_array_equal(shifted - (4 - values), whole - values)
    assert (mechanism.sample_records(values, ids, streams(3)) != whole).any()


def test_later_words_are_neither_each_other_nor_the_first_nor_those_of_the_stream():
    ids, source = numbered(50), streams()
    words = [source.first_words(ids), *(source.later_words(ids, number) for number in range(6))]
    words += [np.concatenate([source.substream(record).words(4) for record in ids])]
    assert np.unique(np.concatenate(words)).size == sum(each.size for each in words)
    np.testing.assert_array_equal(source.later_words(ids[7:9], 3), words[4][7:9])
    assert source.later_words(ids[:2], 0).tolist() == GOLDEN


def test_noise_in_long_fractions_is_drawn_record_by_record():
    scale = 52 / Fraction(0.01)
    assert not fits(scale)
    assert record_laplace(scale, numbered(3), streams()) is None
    assert record_staircase(Fraction(1e-6), numbered(3), streams(), sensitivity=2**50, rise=1) is None
    mechanism = DiscreteLaplace(np.arange(53), 0.01)
    found = mechanism.sample_records(np.zeros(3), numbered(3), streams())
    noise = [discrete_laplace(scale, 1, source=streams().substream(record))[0] for record in numbered(3)]
    assert found.tolist() == noise
