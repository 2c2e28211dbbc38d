"""The likelihood of a release is the exact table's, for every randomizer, and debiased weights undo it on average."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand.accounting import Spent
from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.baselines import (
    Alibi,
    ClusterPriorRR,
    ClusterRR,
    DiscreteLaplace,
    DiscreteStaircase,
    Groups,
    Laplace,
    LatticeAlibi,
    PeerToPeer,
    Staircase,
    UnaryBits,
    UniformRR,
)
from optrand.closed_forms import rr_with_prior_batch
from optrand.errors import InvalidInput
from optrand.learning import Domain, LabelRelease, PrivateLabels
from optrand.sampling._entropy import SeededEntropy

EPSILON, PRIOR = 1.3, [0.8, 0.15, 0.05]
R = privacy_ratio(EPSILON)


def same(table, exact) -> None:
    """Rows of a likelihood are those of exact probabilities, divided by their largest."""
    expected = np.array([[float(share / max(row)) for share in row] for row in exact])
    np.testing.assert_allclose(table, expected, rtol=1e-12, atol=0)
    assert (table.max(axis=1) == 1).all()


def released(values, randomizer, domain=(0, 1, 2)) -> LabelRelease:
    return LabelRelease(np.arange(len(values)), np.asarray(values), randomizer, Domain(tuple(domain)), Spent())


@pytest.mark.parametrize("domain", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize(
    "mechanism",
    [optrand.rr_with_prior(PRIOR, EPSILON), optrand.solve(optrand.unbiased_regression([0, 1, 2], PRIOR, EPSILON))],
    ids=["classes", "unbiased"],
)
def test_mechanisms(mechanism, domain) -> None:
    table = released(mechanism.outputs, mechanism, domain).likelihood
    columns = mechanism.weights[list(domain)].T.tolist()
    same(table, [[Fraction(weight) for weight in column] for column in columns])


def test_batches_of_rr_with_prior() -> None:
    priors = np.array([[0.5, 0.4, 0.1], [0.8, 0.15, 0.05], [0.34, 0.33, 0.33]])
    batch = rr_with_prior_batch(priors, EPSILON)
    assert sorted(batch.k_star.tolist()) == [1, 2, 3]
    for values in itertools.product(*(np.flatnonzero(kept) for kept in batch.kept)):
        exact = []
        for value, kept in zip(values, batch.kept, strict=True):
            k = int(kept.sum())
            own, other = R / (R + k - 1), 1 / (R + k - 1)
            exact.append([Fraction(1, k) if not kept[y] else own if y == value else other for y in range(3)])
        same(released(values, batch).likelihood, exact)


def vectors(randomizer):
    """All vectors of a randomizer of bits or of steps, and the exact chances of each label to get them."""
    bits = isinstance(randomizer, UnaryBits)
    if bits:
        zero, one = (1 - randomizer.flip, randomizer.flip), (randomizer.flip, 1 - randomizer.flip)
    else:
        zero, one = randomizer.coordinate.weights / Fraction(randomizer.coordinate.total)
    places = list(itertools.product(range(len(zero)), repeat=3))
    chances = [
        [math.prod((one if j == y else zero)[at] for j, at in enumerate(each)) for y in range(3)] for each in places
    ]
    return np.array(places) if bits else np.array(places) / randomizer.steps, chances


@by_case("randomizer", UnaryBits(3, EPSILON), LatticeAlibi(3, EPSILON, steps=3), LatticeAlibi(3, 0.3, steps=7))
def test_vectors_are_private_and_have_the_likelihood_of_their_table(randomizer) -> None:
    values, exact = vectors(randomizer)
    assert [sum(column) for column in zip(*exact, strict=True)] == [1, 1, 1]
    largest = max(max(row) / min(row) for row in exact)
    assert largest == randomizer.ratio <= exp_bracket(randomizer.epsilon)[1]
    assert largest > exp_bracket(randomizer.epsilon - 1e-9)[1]
    same(released(values, randomizer).likelihood, exact)


def test_lattice_alibi_is_clipped_discrete_laplace_noise_and_with_one_step_bits() -> None:
    """Each coordinate is a label in {0, 1} with noise of half the budget, clipped."""
    randomizer = LatticeAlibi(2, EPSILON, steps=4)
    channel = DiscreteLaplace([0, 1], EPSILON / 2, step=0.25, clip=optrand.Interval(0, 1)).channel([0, 1])
    np.testing.assert_allclose(randomizer.coordinate.matrix, channel.matrix, rtol=1e-12)
    assert_error(None, LatticeAlibi, 2, 1.0, steps=0)
    assert_error(None, randomizer.soft_labels, [[0.3, 0.0]])


def test_lattice_alibi_draws_its_table() -> None:
    randomizer = LatticeAlibi(2, EPSILON, steps=2)
    noisy = randomizer.sample(np.zeros(40_000, dtype=int), source=SeededEntropy(5))
    for coordinate, row in ((0, 1), (1, 0)):
        shares = np.array([(noisy[:, coordinate] == place).mean() for place in (0, 0.5, 1)])
        chances = randomizer.coordinate.matrix[row]
        assert (np.abs(shares - chances) < 5 * np.sqrt(chances * (1 - chances) / 40_000)).all()


def test_alibi() -> None:
    randomizer = Alibi(3, EPSILON)
    noisy = np.array([[0.3, -2.0, 5.0], [0.9, 0.1, 0.5]])
    log = np.array([[-sum(abs(o - (j == y)) for j, o in enumerate(row)) for y in range(3)] for row in noisy])
    expected = np.exp(log / randomizer.scale)
    np.testing.assert_allclose(
        released(noisy, randomizer).likelihood, expected / expected.max(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("clip", [None, optrand.Interval(-1, 2)])
@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteStaircase])
def test_noise_on_a_lattice(kind, clip) -> None:
    randomizer = kind([0, 2], EPSILON, clip=clip)
    outputs = np.arange(-4.0, 7.0) if clip is None else np.arange(clip.low, clip.high + 1)
    matrix = (
        randomizer.channel([0, 1, 2]).matrix
        if clip
        else np.array([[float(randomizer.noise.density(np.array(z - y))) for z in outputs] for y in range(3)])
    )
    table = released(outputs, randomizer).likelihood
    np.testing.assert_allclose(table, (matrix / matrix.max(axis=0)).T, rtol=1e-10)


@pytest.mark.parametrize("kind", [Laplace, Staircase])
def test_noise_of_real_numbers(kind) -> None:
    """Beyond an end the mass, within the density: a channel on a fine grid has both."""
    randomizer = kind([0, 2], EPSILON, clip=optrand.Interval(-1, 3))
    outputs = np.linspace(-1, 3, 4 * 997 + 1)
    matrix = randomizer.discretise([0, 1, 2], outputs).matrix
    at = [0, 500, 1777, 3333, 3988]
    table = released(outputs[at], randomizer).likelihood
    np.testing.assert_allclose(table, (matrix[:, at] / matrix[:, at].max(axis=0)).T, rtol=2e-3)


def test_peers() -> None:
    """The label that was copied, through its flip."""
    mechanism = PeerToPeer(0.2, 0.5)
    flip = Fraction(mechanism.flip)
    exact = [[flip if y != z else 1 - flip for y in range(2)] for z in (0, 1)]
    given = released([0, 1], mechanism, (0, 1))
    same(given.likelihood, exact)
    np.testing.assert_allclose(np.array(exact, dtype=float) @ given.loss_weights, np.eye(2), atol=1e-12)
    with pytest.raises(InvalidInput, match="no label is kept"):
        _ = released([0, 1], PeerToPeer(0.5, 0.5), (0, 1)).loss_weights
    labels = PrivateLabels([0, 1, 1, 0], 2.0, [0, 1], source=SeededEntropy(0))
    assert_error("groups=", labels.release, slice(None), mechanism)
    sent = labels[1:].release([2, 0, 1], PeerToPeer(0.2, 1.0), groups=Groups.of_ids([0, 0, 1]))
    assert sent.rows.tolist() == [2, 0, 1]
    assert [each.epsilon for each in labels.of_rows(range(4))] == [0, *[mechanism.exact_epsilon] * 3]


def test_cluster_randomizers() -> None:
    groups = Groups.of_ids([0, 0, 0, 1, 1, 1])
    labels = PrivateLabels([0, 1, 2, 2, 2, 2], 9.0, [0, 1, 2], source=SeededEntropy(1))
    randomizer = ClusterRR(3, threshold=0.1, noise_scale=2, resampling=0.7)
    release = labels.release(slice(None), randomizer, groups=groups)
    keep = 1 - randomizer.resampling
    exact = [
        [keep * (y == z) + randomizer.resampling * release.randomizer.distributions[group][z] for y in range(3)]
        for z, group in zip(release.values.tolist(), groups.index.tolist(), strict=True)
    ]
    same(release.likelihood, exact)
    learned = ClusterPriorRR(3, optrand.sampling._priors.split_at(2.0, 0.5))
    release = labels.release(slice(None), learned, groups=groups)
    for row in range(6):
        mechanism = release.randomizer.batch[row]
        single = released(release.values[[row]].astype(float), mechanism).likelihood
        np.testing.assert_allclose(release.likelihood[[row]], single, rtol=1e-12)


def test_a_randomizer_of_a_users_own_brings_its_likelihood_and_its_weights() -> None:
    class Erasure:
        """Return the label in 2 of 3 cases, and 2 in the others. It is private at no epsilon, and for tests only."""

        k, epsilon, exact = 2, 5.0, True

        def sample(self, values, *, source):
            return np.where(source.words(len(values)) % np.uint64(3) == 0, 2, values)

        def likelihood(self, values):
            return np.array([[2 / 3, 0], [0, 2 / 3], [1 / 3, 1 / 3]])[values]

        def loss_weights(self, values):
            return np.array([[1.5, 0], [0, 1.5], [0, 0]])[values]

    labels = PrivateLabels(["no", "yes"] * 20, 5.0, ["no", "yes"], source=SeededEntropy(0))
    release = labels.release(slice(None), Erasure())
    assert sorted(set(release.values.tolist())) == [0, 1, 2]
    expected = np.array([[1, 0], [0, 1], [1, 1]])[release.values]
    assert release.likelihood.tolist() == expected.tolist()
    assert release.loss_weights.tolist() == (1.5 * expected * (release.values < 2)[:, np.newaxis]).tolist()
    assert labels.spent.epsilon == 5


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is not known"):
        _ = released([0], object(), (0, 1)).likelihood
    with pytest.raises(InvalidInput):
        _ = released([0.5], optrand.rr([0, 1], 1.0), (0, 1)).likelihood


@by_case(
    "randomizer",
    UniformRR(3, EPSILON),
    rr_with_prior_batch([[1 / 3] * 3], EPSILON),
    optrand.rr([0, 1, 2], EPSILON),
    UnaryBits(3, EPSILON),
    LatticeAlibi(3, EPSILON, steps=2),
    ids=lambda randomizer: type(randomizer).__name__,
)
def test_debiased_weights_are_one_hot_on_average(randomizer) -> None:
    """The mean over all outputs, with the probabilities of each label, is the one-hot vector."""
    if isinstance(randomizer, UnaryBits | LatticeAlibi):
        outputs, exact = vectors(randomizer)
        chances = np.array(exact, dtype=float).T
    else:
        outputs = np.arange(3)
        chances = np.where(np.eye(3) > 0, float(R), 1.0) / (float(R) + 2)
    each = [released([output], randomizer).loss_weights[0] for output in outputs]
    np.testing.assert_allclose(chances @ np.array(each), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.sum(each, axis=1), 1, atol=1e-12)
