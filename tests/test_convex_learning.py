"""Noisy descent on convex losses: gradients, bounds, and the price of a row."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.learning.sgd import (
    LPRRSGD,
    LogisticLoss,
    LPNormalSGD,
    SquaredLoss,
    add_projected_noise,
    descend,
    excess_risk,
    least_sigma,
)
from optrand.accounting import Spent
from optrand.closed_forms import rr_top_k, rr_with_prior_batch
from optrand.errors import InvalidInput, OverBudget
from optrand.estimate import top_k_loss_weights
from optrand.learning import PrivateLabels
from optrand.sampling._entropy import SeededEntropy
from optrand.theory.g21.descent import gaussian_tails

LOSSES = [LogisticLoss(3), SquaredLoss((-1.0, 0.0, 2.0))]
RANDOM = np.random.default_rng(0)
losses = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)


def data(n: int = 300):
    X = np.column_stack([np.linspace(-1, 1, n), np.ones(n)])
    return X, (X[:, 0] > 0).astype(int)


def holder(y, epsilon: float = 2.0, **options) -> PrivateLabels:
    return PrivateLabels(y, epsilon, [0, 1], source=SeededEntropy(3), **options)


# --------------------------------------------------------------------------------------------------------------- losses
@losses
def test_gradients_are_derivatives_of_the_losses(loss) -> None:
    for _ in range(5):
        scores, step = RANDOM.normal(size=loss.width), 1e-6
        for j, unit in enumerate(np.eye(loss.width)):
            ends = loss.values(np.array([scores + step * unit, scores - step * unit]))
            np.testing.assert_allclose(loss.coefficients(scores)[:, j], (ends[0] - ends[1]) / (2 * step), atol=1e-8)


@losses
def test_gradients_are_as_steep_and_as_far_apart_as_is_said(loss) -> None:
    radius, norms, gaps = 2.5, [], []
    for _ in range(300):
        row = RANDOM.normal(size=2)
        row /= np.linalg.norm(row)
        weights = RANDOM.normal(size=(loss.width, 2))
        weights *= radius / np.linalg.norm(weights)
        table = loss.coefficients(weights @ row)
        norms.append(np.linalg.norm(table, axis=1).max())
        gaps += [np.linalg.norm(a - b) for a, b in itertools.combinations(table, 2)]
    assert max(norms) <= loss.lipschitz(1.0, radius) * (1 + 1e-12)
    assert max(norms) > 0.85 * loss.lipschitz(1.0, radius)
    assert max(gaps) == pytest.approx(loss.distance(1.0))
    assert loss.distance(1.0) <= 2 * loss.lipschitz(1.0, radius)


# -------------------------------------------------------------------------------------------------- randomized response
@pytest.mark.parametrize("epsilon", [0.9, 3.0])
@losses
def test_the_bound_of_the_gradient_holds_and_is_below_the_printed_one(loss, epsilon) -> None:
    bound = LPRRSGD(epsilon, 2.0).gradient_bound(3, loss.lipschitz(1.0, 1.0), loss.distance(1.0))
    weights = top_k_loss_weights(range(3), [True] * 3, epsilon)
    for score in np.linspace(-1, 1, 21):
        table = loss.coefficients(np.full(loss.width, score) * np.linspace(-1, 1, loss.width).clip(0.1))
        assert np.linalg.norm(weights @ table, axis=1).max() <= bound * (1 + 1e-12)
    if epsilon < 1:
        printed = LPRRSGD(epsilon, 2.0, printed=True)
        assert bound < printed.gradient_bound(3, loss.lipschitz(1.0, 1.0), loss.distance(1.0))


def test_without_noise_it_is_projected_descent() -> None:
    X, y = data(50)
    found = LPRRSGD(40.0, 3.0, seed=2).fit(X, holder(y, 40.0), LogisticLoss(2))
    weights = np.zeros((2, 2))
    for t, row in enumerate(np.random.default_rng(2).permutation(50), 1):
        powers = np.exp(weights @ X[row])
        gradient = np.outer(powers / powers.sum() - np.eye(2)[y[row]], X[row])
        weights = weights - 3.0 / found.gradient_bound / math.sqrt(t) * gradient
        weights *= min(1.0, 1.5 / np.linalg.norm(weights))
    np.testing.assert_allclose(found.weights, weights, rtol=1e-9, atol=1e-12)
    assert (found.scores(X) == X @ found.weights.T).all()


def test_labels_are_drawn_once() -> None:
    X, y = data()
    labels = holder(y)
    found = LPRRSGD(2.0, 20.0).fit(X, labels, LogisticLoss(2))
    assert found.spent == labels.spent == Spent(2.0)
    assert (found.scores(X).argmax(axis=1) == y).mean() > 0.9
    with pytest.raises(OverBudget):
        LPRRSGD(0.5, 20.0).fit(X, labels, LogisticLoss(2))


def test_the_excess_risk_is_below_its_bound() -> None:
    """Mean over releases, on independent rows of a known law: at each feature the label is 1 with probability 0.9."""
    loss, found = SquaredLoss((0.0, 1.0)), []
    for seed in range(12):
        y = (np.random.default_rng(seed).random(200) < 0.9).astype(float)
        labels = PrivateLabels(y, 0.9, [0.0, 1.0], source=SeededEntropy(seed))
        fit = LPRRSGD(0.9, 4.0).fit(np.ones((200, 1)), labels, loss)
        found.append((loss.values(fit.weights)[0] @ [0.1, 0.9]) - 0.045)
        assert fit.excess_risk == excess_risk(4.0, fit.gradient_bound, 200)
    assert 0 < np.mean(found) < fit.excess_risk
    assert np.mean(found) < 0.1


def test_corollary_10_responds_with_the_kept_labels() -> None:
    priors = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]])
    uniform = np.array([[0.0, 0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    batch = rr_with_prior_batch(uniform, 0.7)
    assert batch.kept.tolist() == [[False, True, True], [True, True, False], [True, False, True]]
    for row, prior in enumerate(priors):
        np.testing.assert_allclose(batch[row].randomizer.matrix, rr_top_k(prior, 2, 0.7).randomizer.matrix)
    labels = PrivateLabels([0, 1, 2], 0.7, [0, 1, 2], source=SeededEntropy(0))
    found = LPRRSGD(0.7, 1.0).fit(np.eye(3), labels, LogisticLoss(3), priors=uniform)
    assert found.release.randomizer.k_star.tolist() == [2, 2, 2]
    assert found.gradient_bound == LPRRSGD(0.7, 1.0).gradient_bound(2, math.sqrt(2), math.sqrt(2))


# ------------------------------------------------------------------------------------------------------- Gaussian noise
@pytest.mark.parametrize(("distance", "epsilon", "delta"), [(1.0, 1.0, 1e-5), (3.0, 0.1, 1e-9), (0.1, 8.0, 0.3)])
def test_sigma_is_enough_and_no_less_is(distance, epsilon, delta) -> None:
    sigma = least_sigma(distance, epsilon, delta)
    # The mass by which the law about the distance exceeds exp(epsilon) times that about zero.
    start = distance / 2 + epsilon * sigma**2 / distance
    mass, _ = quad(
        lambda x: norm.pdf(x, distance, sigma) - math.exp(epsilon) * norm.pdf(x, 0, sigma),
        *(start, start + 20 * sigma),
        epsabs=1e-14,
    )
    near, far = gaussian_tails(distance, sigma, epsilon)
    assert near - far == pytest.approx(mass, rel=1e-6)
    assert near - far <= delta
    near, far = gaussian_tails(distance, sigma * (1 - 1e-6), epsilon)
    assert near - far > delta


def test_noise_lies_in_the_span_of_the_gradients() -> None:
    loss, row, sigma, n = LogisticLoss(3), np.array([3.0, 4.0]), 2.0, 1500
    steps, source = [], SeededEntropy(1)
    for _ in range(n):
        estimate = add_projected_noise(row[np.newaxis], np.array([1]), sigma, source)
        moved = descend(loss, row[np.newaxis], 1e9, 1e9, estimate)
        steps.append(-moved - np.outer(loss.coefficients(np.zeros(3))[1], row))
    noise = np.array(steps)
    along = noise @ row / 5
    np.testing.assert_allclose(noise, along[:, :, np.newaxis] * row / 5, atol=1e-9)
    np.testing.assert_allclose(along.sum(axis=1), 0, atol=1e-9)
    wanted = sigma**2 * (np.eye(3) - 1 / 3)
    np.testing.assert_allclose(along.T @ along / n, wanted, atol=5 * sigma**2 * math.sqrt(2 / n))


def test_every_row_is_charged_and_noise_needs_a_delta_and_leave_to_be_inexact() -> None:
    X, y = data()
    for options, error in (({"delta": 1e-5}, InvalidInput), ({"allow_inexact": True}, OverBudget)):
        labels = holder(y, **options)
        with pytest.raises(error):
            LPNormalSGD(1.0, 1e-5, 2.0).fit(X, labels, LogisticLoss(2))
        assert labels.spent.epsilon == 0
    labels = holder(y, 3.0, delta=1e-4, allow_inexact=True)
    found = LPNormalSGD(2.0, 2e-5, 4.0).fit(X, labels, LogisticLoss(2))
    assert found.spent == labels.spent == Spent(2, Fraction("2e-5"), exact=False)
    assert (found.scores(X).argmax(axis=1) == y).mean() > 0.7
    with pytest.raises(OverBudget):
        LPNormalSGD(2.0, 1e-5, 20.0).fit(X, labels, LogisticLoss(2))
    assert labels.spent.epsilon == 2


@by_case(
    "X, loss, match",
    (np.full((4, 2), np.nan), LogisticLoss(2), "finite"),
    (np.ones(4), LogisticLoss(2), "X has shape"),
    (np.ones((3, 2)), LogisticLoss(2), "for 4 labels"),
    (np.ones((4, 2)), LogisticLoss(3), "not of the 2 labels"),
    (np.ones((4, 2)), SquaredLoss((1.0, 0.0)), "not of the 2 labels"),
)
def test_bad_input_costs_nothing(X, loss, match) -> None:
    labels = holder([0, 1, 0, 1], delta=0.1, allow_inexact=True)
    for algorithm in (LPRRSGD(1.0, 1.0), LPNormalSGD(1.0, 0.1, 1.0)):
        assert_error(match, algorithm.fit, X, labels, loss)
    assert labels.spent.epsilon == 0
