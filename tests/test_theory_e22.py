"""Checks of [E22], against counts by hand, simulations and other programs."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import by_case
from scipy.optimize import linprog
from scipy.stats import laplace

from optrand.baselines import LabelRandomization
from optrand.theory.e22.curator import coins_deviate, mean_largest_sum, spend_alone
from optrand.theory.e22.losses import Population, distort, inverse_columns, label_laws, noisy_law
from optrand.theory.e22.peers import copies_law, find_labels, mislead_peers

HALF = Fraction(1, 2)


def settle(noisy, threshold):
    """Lines 9 to 19: clip, and bring the sum back to 1."""
    clipped = np.clip(noisy, threshold, 1)
    missing = 1 - clipped.sum(axis=1, keepdims=True)
    room = np.where(missing < 0, clipped - threshold, 1 - clipped)
    return clipped + room / np.maximum(room.sum(axis=1, keepdims=True), 1e-300) * missing


def within_five_errors(hits, expected):
    return abs(hits.mean() - expected) <= 5 * hits.std() / math.sqrt(hits.size)


class TestCurator:
    def test_laws_of_noisy_shares_are_those_of_draws(self):
        # Differences of geometric numbers are noise in whole rows.
        random, law = np.random.default_rng(22), noisy_law((3, 2, 1), Fraction(1, 6), Fraction(2))
        assert sum(law.values()) == 1
        noise = random.geometric(0.5, (200_000, 3)) - random.geometric(0.5, (200_000, 3))
        drawn = settle((np.array([3, 2, 1]) + noise) / 6, 1 / 6)
        for corner in ((4, 1, 1), (2, 2, 2), (1, 4, 1)):
            hits = np.isclose(drawn, np.array(corner) / 6).all(axis=1)
            assert within_five_errors(hits, float(law[tuple(Fraction(n, 6) for n in corner)]))

    def test_labels_alone_spend_epsilon_if_their_distribution_is_known(self):
        # With tau = 1/2 it is (1/2, 1/2), and half of the labels are drawn anew: 3/4 against 1/4.
        assert spend_alone(4, Fraction(3), HALF) == pytest.approx(1, rel=1e-15)

    @by_case(
        "size, threshold, whole, least",
        (8, "1/4", 2.20, 2.13),
        (12, "2/5", 2.30, 2.24),
        (30, "2/5", 2.65, 2.58),
        (2, "0", 1.33, 1.28),
        (12, "0", 2.00, 1.93),
    )
    def test_figures_of_the_errata_for_noise_in_whole_rows_and_continuous_noise(self, size, threshold, whole, least):
        ratio, threshold = Fraction(101, 100), Fraction(threshold)
        assert spend_alone(size, ratio, threshold) == pytest.approx(whole, abs=0.005)
        # Means over quantiles of the noise of both shares, for two neighbours near the middle.
        noise, floor = laplace(scale=1 / (math.log(1.01) * size)).ppf((np.arange(400) + 0.5) / 400), float(threshold)
        share, zeros = 1 / (1 + 0.01 * floor), []
        for ones in (size // 2, size // 2 + 1):
            noisy = np.stack(np.meshgrid(1 - ones / size + noise, ones / size + noise), axis=-1).reshape(-1, 2)
            q = settle(noisy, floor)[:, 0]
            zeros.append(((1 - share + share * q) ** (size - ones) * (share * q) ** ones).mean())
        spent = math.log(zeros[0] / zeros[1]) / math.log(1.01)
        assert least < spent == pytest.approx(whole, abs=0.02)


class TestLosses:
    def test_singular_values_of_a_sure_distribution(self):
        # Two of them are not 1 - beta. Their product is, and their squares sum to 2 (1 - beta) + beta**2 K.
        q, beta = (Fraction(1), *[Fraction(0)] * 4), Fraction("999/1000")
        total = 2 * float(1 - beta) + 5 * float(beta) ** 2
        smallest = math.sqrt((total - math.sqrt(total**2 - 4 * float(1 - beta) ** 2)) / 2)
        known = LabelRandomization(q, beta)
        assert np.linalg.svd(known.matrix, compute_uv=False)[-1] == pytest.approx(smallest, rel=1e-6)
        np.testing.assert_allclose(known.matrix, np.array(label_laws(q, beta), dtype=float).T)
        np.testing.assert_allclose(known.inverse, np.array(inverse_columns(q, beta), dtype=float).T, rtol=1e-9)

    def test_modified_losses_are_those_of_the_package(self):
        third = Fraction(1, 3)
        losses, labels = np.array([[Fraction(1), third, Fraction(0)]]), np.array([[third, third, third]])
        one = np.array([Fraction(1)])
        population = Population(one, np.array([0]), labels, losses, 1, third / 2, Fraction(2), HALF, HALF)
        q = (HALF, third, HALF - third)
        weights = LabelRandomization(q, HALF).loss_weights([0, 1, 2])
        expected = weights @ np.array(losses[0], dtype=float)
        assert population.modified_losses(0, q).astype(float) == pytest.approx(expected)

    def test_distortion_almost_without_noise(self):
        # One label has all: the others rise to tau and the first falls by as much.
        assert float(distort((1, 0, 0), Fraction(1, 5), Fraction(10**9))) == pytest.approx(0.8, rel=1e-6)

    def test_largest_sums_by_all_signs(self):
        walks = itertools.product((-1, 1), repeat=7)
        longest = [max(0, *itertools.accumulate(signs)) for signs in walks]
        assert mean_largest_sum(7) == pytest.approx(sum(longest) / 2**7)

    def test_deviations_are_quantiles(self):
        # Four coins: 0, 1/4, 1/2 from their mean with probabilities 6/16, 8/16, 2/16.
        assert [coins_deviate(4, gamma) for gamma in (0.7, 0.625, 0.6, 0.125, 0.1)] == [0, 0, 0.25, 0.25, 0.5]


class TestPeers:
    def test_peers_mislead_as_often_as_their_releases(self):
        # Three users, labels 1 with probability 3/5: all labels and releases, ties for "always 0".
        ones, often = Fraction(3, 5), Fraction(0)
        for labels in itertools.product((0, 1), repeat=3):
            mass = math.prod(ones if y else 1 - ones for y in labels)
            law = copies_law(labels, Fraction(1, 10), HALF)
            often += mass * sum(p for copies, p in law.items() if copies.count(1) <= copies.count(0))
        assert mislead_peers(3, 0.5, 0.1, 0.6) == pytest.approx(float(often))


@pytest.mark.parametrize(("k", "size"), [(3, 1), (4, 2)])
def test_no_mechanism_finds_more_labels(k, size):
    # All mechanisms, from sets of labels to sets of named labels, as one linear program: the most of found labels less
    # a price for each that is named. It is attained by sets of one size.
    ratio, tables = 3, list(itertools.combinations(range(k), size))
    named = [s for count in range(k + 1) for s in itertools.combinations(range(k), count)]
    columns = {(d, s): i for i, (d, s) in enumerate(itertools.product(tables, named))}
    rows = []
    for one, two in itertools.permutations(tables, 2):
        if len(set(one) & set(two)) == size - 1:
            for s in named:
                row = np.zeros(len(columns))
                row[columns[one, s]], row[columns[two, s]] = 1, -ratio
                rows.append(row)
    sums = np.array([[float(d == table) for d, _ in columns] for table in tables])
    for price in (0.1, 0.4, 0.6, 0.9):
        gains = [(len(set(d) & set(s)) - price * len(s)) / len(tables) for d, s in columns]
        answer = linprog(
            -np.array(gains), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(len(tables))
        )
        best = max(float(find_labels(k, size, Fraction(ratio), count)) - price * count for count in range(k + 1))
        assert -answer.fun == pytest.approx(best, abs=1e-8)
