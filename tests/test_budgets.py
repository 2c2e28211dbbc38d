"""Budgets that are divided, multiplied or added never cost more than the whole, against rational brackets of exp."""

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import given
from hypothesis import strategies as st
from oracle import exponential
from tables import resealed

from optrand import audit, certify, checker, load, unbiased_regression, unbiased_vectors
from optrand.base._arithmetic import decimal_value, divide_budget, noise_scale, privacy_ratio
from optrand.baselines import Alibi, DiscreteLaplace, Laplace, LatticeAlibi, UnaryBits, UniformRR
from optrand.baselines._cluster import ClusterPriorRR, ClusterRR
from optrand.baselines._peer_to_peer import PeerToPeer
from optrand.errors import InvalidFile
from optrand.learning import Peers
from optrand.mechanism._mechanism import Mechanism
from optrand.sampling._priors import split_at, split_budget
from tests.tables import mechanism_of

EPSILONS = [
    *np.arange(1, 100).astype(float) / 10,
    *np.random.default_rng(3).uniform(0.01, 30, 60).tolist(),
    1e-9,
    math.nextafter(1, 0),
    math.nextafter(1, 2),
    math.pi,
    300.1,
    699.9,
]
"""Tenths, as people write them, and others."""


def spends(ratio: Fraction, epsilon: float) -> bool:
    """Whether a largest ratio of probabilities is proven to be at most ``exp(epsilon)`` of a decimal."""
    return ratio <= exponential(decimal.Decimal(repr(float(epsilon))))[0]


@pytest.mark.parametrize("steps", [*range(1, 17), 23, 47, 49, 98, 103, 255, 256])
def test_noise_on_a_lattice_costs_no_more_than_its_budget(steps: int) -> None:
    for epsilon in EPSILONS:
        ratio = LatticeAlibi(3, epsilon, steps=steps).ratio
        assert spends(ratio, epsilon), (epsilon, steps)
        # And hardly less: 2**-50 of each of the parts, and a rounding of each.
        assert ratio >= 1 + (exponential(epsilon * (1 - 2.0**-40))[0] - 1) * (1 - Fraction(1, 2**40))


def between(low: Fraction, high: Fraction) -> Fraction:
    """Return the simplest rational between two others."""
    whole = math.floor(low) + 1
    return Fraction(whole) if whole < high else whole - 1 + 1 / between(1 / (high - whole + 1), 1 / (low - whole + 1))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 8.9])
def test_what_costs_more_than_the_decimal_or_the_float_is_refused(epsilon: float, tmp_path) -> None:
    """A ratio between the exponentials of the two is above one of them: 0.1 is written, and its float is above it."""
    decimals = sorted((decimal.Decimal(epsilon), decimal.Decimal(repr(epsilon))))
    low, high = (exponential(x) for x in decimals)
    ratio = between(low[1], high[0])
    assert low[1] < ratio < high[0]
    problem = unbiased_regression([0, 1], [0.5, 0.5], epsilon)
    weights = [[ratio.numerator, ratio.denominator], [ratio.denominator, ratio.numerator]]
    assert_error("expected at most exp", mechanism_of, problem, None, [0, 1], weights, ratio)
    mechanism = mechanism_of(unbiased_regression([0, 1], [0.5, 0.5], epsilon + 1), None, [0, 1], weights, ratio)
    assert_error("would not be private", Mechanism, problem, mechanism.table)
    assert not audit(weights_over(weights), epsilon).private
    # The stated epsilon holds as a float, and as the decimal that it is printed as.
    for stated in (mechanism.realised_epsilon, certify(mechanism).epsilon, audit(weights_over(weights), 9.0).epsilon):
        assert ratio <= exponential(stated)[0]
        assert spends(ratio, stated)
    content = mechanism._document | {"problem": mechanism._document["problem"] | {"epsilon": epsilon}}
    (tmp_path / "close.json").write_text(resealed(content))
    assert_error(None, load, tmp_path / "close.json", error=InvalidFile)
    assert_error("not private", checker.check, resealed(content), error=checker.Refused)
    assert spends(ratio, checker.check(resealed(mechanism._document)).epsilon)


def weights_over(weights: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(weight, sum(row)) for weight in row] for row in weights]


RATIOS: dict[str, Callable[[float], Fraction]] = {
    "a mechanism": privacy_ratio,
    "bits": lambda epsilon: UnaryBits(3, epsilon).ratio,
    "uniform response": lambda epsilon: UniformRR(5, epsilon).ratio or Fraction(0),
    "vectors": lambda epsilon: unbiased_vectors([0.5, 0.3, 0.2], epsilon).ratio,
    "peers": lambda epsilon: (
        (1 - Fraction(Peers().mechanism(epsilon).flip)) / Fraction(Peers().mechanism(epsilon).flip)
    ),
}


@pytest.mark.parametrize("name", RATIOS)
def test_exact_channels_cost_no_more_than_their_budget(name: str) -> None:
    for epsilon in EPSILONS[::4]:
        if epsilon < 36:
            assert spends(RATIOS[name](epsilon), epsilon), epsilon


@given(st.floats(1e-100, 700), st.integers(1, 2**20))
def test_parts_of_a_budget_sum_to_at_most_all_of_it(epsilon: float, parts: int) -> None:
    part = divide_budget(epsilon, parts)
    whole = decimal_value(epsilon)
    assert decimal_value(part) * parts <= whole < decimal_value(math.nextafter(part, math.inf)) * parts


@given(st.floats(1e-9, 700), st.floats(1e-100, 1e100))
def test_the_scale_of_noise_is_the_least_float_that_is_enough(epsilon: float, sensitivity: float) -> None:
    scale = noise_scale(sensitivity, epsilon)
    assert Fraction(sensitivity) / Fraction(scale) <= decimal_value(epsilon)
    assert Fraction(sensitivity) / Fraction(math.nextafter(scale, 0)) > decimal_value(epsilon)


def test_noise_in_floats_has_a_scale_that_is_enough_for_real_numbers() -> None:
    for epsilon in EPSILONS:
        assert Fraction(2) / Fraction(Alibi(3, epsilon).scale) <= decimal_value(epsilon)
        for sensitivity in (3, 7, 11):
            scale = Laplace(range(sensitivity + 1), epsilon).noise.scale
            assert sensitivity / Fraction(scale) <= decimal_value(epsilon)
            noise = DiscreteLaplace(range(sensitivity + 1), epsilon).noise
            assert sensitivity * Fraction(noise.rate) <= sensitivity * Fraction(noise.epsilon) <= decimal_value(epsilon)


def test_two_parts_of_a_budget_cost_at_most_the_whole() -> None:
    for epsilon in EPSILONS:
        for share in (0.05, 0.1, 0.3, 1 / 3, 0.7):
            splits = [split_at(epsilon, share * epsilon)]
            if epsilon > 1e-8:
                splits += [split_budget(epsilon, k, n) for k in (3, 53) for n in (10, 1000, 10**7)]
            for split in splits:
                assert decimal_value(split.prior) + decimal_value(split.labels) <= decimal_value(epsilon)
            if epsilon < 100:
                both = ClusterPriorRR(3, split_at(epsilon, share * epsilon))
                assert decimal_value(both.epsilon) <= decimal_value(epsilon)


@pytest.mark.parametrize("share", [0.1, 1 / 3])
def test_clusters_cost_at_most_both_of_their_parts(share: float) -> None:
    for epsilon in EPSILONS[::3]:
        if not 1e-6 < epsilon < 30:
            continue
        split = split_at(epsilon, share * epsilon)
        for threshold in (0.01, Fraction(1, 7), 0.3):
            made = ClusterRR.for_budget(3, split, threshold=threshold)
            # The histogram changes by exp(1 / scale) twice, the label by the ratio of the worst distribution.
            kept = 1 - made.resampling
            ratio = 1 + kept / (made.resampling * made.threshold)
            assert spends(ratio, split.labels)
            assert 2 / made.noise_scale <= decimal_value(split.prior)


def test_the_delta_of_a_peer_is_rounded_up() -> None:
    for flip in np.random.default_rng(1).uniform(0, 1, 50).tolist():
        for size in (3, 7, 100):
            delta = PeerToPeer(flip, 1.0).peer_delta(size)
            assert Fraction(delta) >= abs(1 - 2 * Fraction(flip)) / size
            assert Fraction(math.nextafter(delta, 0)) < abs(1 - 2 * Fraction(flip)) / size
