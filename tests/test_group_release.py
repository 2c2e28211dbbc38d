"""A randomizer for each public group: pools by sizes alone, histograms shrunk towards their mixture, one epsilon."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from optrand import certify, regression, solve, tabulate, unbiased_regression
from optrand.errors import InvalidInput
from optrand.release.groups import GroupPriors, Pools, group_mechanisms, noise_variance, relative_loss
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import private_histogram


def shares_of(rows: int, seed: int, k: int = 12) -> tuple[np.ndarray, GroupPriors]:
    """Counts of three unlike groups of so many rows, and what is learned of them."""
    rng = np.random.default_rng(seed)
    counts = np.array([rng.multinomial(rows, rng.dirichlet(np.full(k, 0.5))) for _ in range(3)])
    return counts, GroupPriors.learn(counts, 0.1, source=SeededEntropy(seed))


def test_the_variance_is_that_of_the_noise() -> None:
    noise = np.array(private_histogram(np.zeros(20_000, dtype=int), 1.0, source=SeededEntropy(1)))
    # The fourth moment of Laplace noise is 6 variances squared: five deviations of the mean square.
    assert abs((noise**2).mean() / noise_variance(1.0) - 1) < 5 * math.sqrt(5 / 20_000)


@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 40.0, 700.0])
def test_the_variance_is_its_formula_everywhere(epsilon: float) -> None:
    ratio = math.exp(-epsilon / 2)
    assert noise_variance(epsilon) == pytest.approx(2 * ratio / math.expm1(-epsilon / 2) ** 2, rel=1e-9)


def test_pools_depend_on_sizes_and_keep_every_row() -> None:
    sizes = [5_000, 10, 2_121, 2_119, 700]
    pools = Pools.of_sizes(sizes, k=53, prior_epsilon=0.05)
    assert pools.pool.tolist() == [0, 2, 1, 2, 2]
    assert pools.rows.tolist() == [5_000, 2_121, 2_829]
    counts = np.arange(15).reshape(5, 3)
    assert pools.counts(counts).sum(axis=0).tolist() == counts.sum(axis=0).tolist()
    assert len(Pools.of_sizes([3, 2], k=53, prior_epsilon=0.05)) == 1


@pytest.mark.parametrize("sizes", [[], [0, 4], [[1, 2]], [1.5]])
def test_sizes_without_meaning_are_refused(sizes: list[object]) -> None:
    with pytest.raises(InvalidInput, match="sizes of groups"):
        Pools.of_sizes(sizes, k=3, prior_epsilon=0.05)


def test_neighbouring_tables_differ_in_one_histogram() -> None:
    counts = np.array([[600, 300, 100], [100, 300, 600]])
    changed = counts + np.array([[1, -1, 0], [0, 0, 0]])
    one, other = (GroupPriors.learn(table, 0.2, source=SeededEntropy(7)) for table in (counts, changed))
    assert (one.counts[1] == other.counts[1]).all()
    assert np.abs(one.counts[0] - other.counts[0]).tolist() == [1, 1, 0]
    assert one.epsilon == other.epsilon == 0.2


def test_large_groups_keep_their_own_and_small_ones_share_the_mixture() -> None:
    counts, large = shares_of(10_000_000, 3)
    assert (large.shares > 0.999).all()
    assert np.abs(large.probabilities - counts / 10_000_000).max() < 1e-4
    _, small = shares_of(20, 3)
    alike = small.shares == 0
    assert alike.any()
    assert (small.probabilities[alike] == small.mixture).all()


@pytest.mark.parametrize("rows", [20, 500, 5_000, 500_000])
def test_priors_are_distributions_above_zero(rows: int) -> None:
    _, priors = shares_of(rows, 5)
    assert (priors.probabilities > 0).all()
    assert np.allclose(priors.probabilities.sum(axis=1), 1, rtol=0, atol=1e-14)
    assert ((priors.shares >= 0) & (priors.shares <= 1)).all()


def test_shrinking_is_nearer_to_the_truth_than_either_end() -> None:
    errors = np.zeros(3)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        common, *others = rng.dirichlet(np.full(53, 0.5), 6)
        counts = np.array([rng.multinomial(1_500, 0.7 * common + 0.3 * other) for other in others])
        priors = GroupPriors.learn(counts, 0.1, source=SeededEntropy(seed))
        own = np.maximum(priors.counts, 0)
        for i, guess in enumerate((priors.probabilities, own / own.sum(axis=1, keepdims=True), priors.mixture)):
            errors[i] += ((guess - counts / 1_500) ** 2).sum()
    assert errors[0] < 0.7 * errors[1]
    assert errors[0] < errors[2]


def test_each_group_has_the_optimum_of_its_prior_and_loses_less_than_one_for_all() -> None:
    priors = GroupPriors([[9_000, 500, 500], [500, 500, 9_000]], [10_000, 10_000], 0.05)
    question = regression([0, 1, 2], [0.3, 0.3, 0.4], 2.0, bias_penalty=3.0)
    mechanisms = group_mechanisms(question, priors)
    for mechanism, prior in zip(mechanisms, priors.probabilities, strict=True):
        assert (mechanism.problem.prior == prior).all()
        assert certify(mechanism).gap < 1e-9
        assert certify(mechanism).epsilon <= 2.0
    single = tabulate(solve(replace(question, prior=priors.mixture)))
    assert relative_loss(mechanisms, single, priors) < 0.6
    assert relative_loss([single, single], single, priors) == pytest.approx(1, abs=0.2)


def test_groups_that_are_alike_are_solved_once() -> None:
    priors = GroupPriors([[5, 6, 7], [7, 6, 5], [6, 6, 6]], [18, 18, 18], 0.05)
    assert not priors.shares.any()
    mechanisms = group_mechanisms(unbiased_regression([0, 1, 2], [0.3, 0.3, 0.4], 1.0), priors)
    assert mechanisms[0] is mechanisms[1] is mechanisms[2]


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a row for each group"):
        GroupPriors([[1, 2]], [1, 2], 0.05)
    with pytest.raises(InvalidInput, match="a row for each group"):
        GroupPriors.learn([1, 2], 0.05)
