r"""Convex learning from private labels: LP-RR-SGD and LP-Normal-SGD ([G21], Algorithms 5 and 6, Corollary 10).

Both are projected gradient descent on a ball of weights. With a bound :math:`G` of the root mean square of a gradient's
estimate and steps :math:`\eta_t = c / \sqrt t`, the last of :math:`n` iterates, one for each independent row, has an
expected excess risk of at most (Shamir and Zhang, 2013, Theorem 2)

.. math:: \Big(\frac{D^2}{c} + c\, G^2\Big) \frac{2 + \log n}{\sqrt n},

at :math:`c = D / G` at most :math:`2 D G (2 + \log n) / \sqrt n`. Noise enters through :math:`G` alone:

================  ==================================  ============================  ==================================
algorithm         G as printed                        G here, by default            price of a row
================  ==================================  ============================  ==================================
LP-RR-SGD         ``6 K L / epsilon``, epsilon < 1    L + (K-1) Delta / (e**eps-1)  epsilon
LP-Normal-SGD     ``sqrt(L**2 + K sigma**2)``         the same, exact sigma         (epsilon, delta)
================  ==================================  ============================  ==================================

:mod:`optrand.theory` tests the papers' statements (``optrand theory --paper G21``). Corrected there: Proposition 11
needs ``log(1.25 / delta)``, and Theorem 9 is empty for one row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from optrand.accounting._spent import Spent
from optrand.base._validation import Floats
from optrand.closed_forms._response import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning import LabelRelease, PrivateLabels
from optrand.sampling._entropy import EntropySource
from optrand.theory.g21.descent import gaussian_tails


@dataclass(frozen=True)
class LogisticLoss:
    """Multinomial logistic loss ``-log softmax(W x)[y]`` of `k` classes.

    Examples
    --------
    >>> LogisticLoss(3).coefficients(np.zeros(3)).round(3)[0].tolist()
    [-0.667, 0.333, 0.333]
    """

    k: int

    @property
    def width(self) -> int:
        """Number of scores, one for each class."""
        return self.k

    def coefficients(self, scores: Floats) -> Floats:
        """Return the probabilities less the one-hot vector of each label."""
        return np.asarray(softmax(scores) - np.eye(self.k))

    def lipschitz(self, largest: float, radius: float) -> float:  # noqa: ARG002
        """Return ``sqrt(2)`` times the norm of the features."""
        return math.sqrt(2) * largest

    def distance(self, largest: float) -> float:
        """Return the distance of two one-hot vectors, times the norm of the features."""
        return math.sqrt(2) * largest

    def values(self, scores: Floats) -> Floats:
        """Return the losses for every label."""
        return np.asarray(-log_softmax(scores, axis=1))


@dataclass(frozen=True)
class SquaredLoss:
    """Half squared loss ``(w x - y)**2 / 2`` of a prediction, the only score, of labels that are numbers."""

    labels: tuple[float, ...]

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def width(self) -> int:
        """Number of scores: one, the prediction."""
        return 1

    def coefficients(self, scores: Floats) -> Floats:
        """Return the difference of the prediction from each label."""
        return np.asarray((scores - np.array(self.labels))[:, np.newaxis])

    def lipschitz(self, largest: float, radius: float) -> float:
        """Return the norm of the features, times the largest difference of a prediction from a label."""
        return largest * (largest * radius + max(map(abs, self.labels)))

    def distance(self, largest: float) -> float:
        """Return the range of the labels, times the norm of the features."""
        return largest * (max(self.labels) - min(self.labels))

    def values(self, scores: Floats) -> Floats:
        """Return the losses for every label."""
        return np.asarray((scores - np.array(self.labels)) ** 2 / 2)


LinearLoss = LogisticLoss | SquaredLoss
"""Convex loss of scores ``W x``, one for each class, or of a single one.

For features of norm up to `largest` and weights up to `radius`, `lipschitz(largest, radius)` bounds the norm of a
gradient, and `distance(largest)` is the largest distance of the gradients of two labels. `coefficients(scores)` are the
derivatives in the scores for every label, of shape ``(K, width)``, and `values(scores)` the losses for every label, of
shape ``(n, K)``.
"""


@dataclass(frozen=True, eq=False)
class ConvexFit:
    """Weights of a linear model, and the bound of their excess risk.

    Attributes
    ----------
    weights : (m, d) array
        The last iterate.
    spent : Spent
        Charge of each row.
    release : LabelRelease or None
        Noisy labels of LP-RR-SGD.
    gradient_bound : float
        `G`: bound of the root mean square of a gradient's estimate.
    excess_risk : float
        Bound of the expected excess risk over the ball, for independent rows, each used once. With few labels kept, on
        top of ``2 D L Pr[label not kept]`` (Corollary 10).
    """

    weights: Floats
    spent: Spent
    release: LabelRelease | None
    gradient_bound: float
    excess_risk: float

    def scores(self, X: ArrayLike) -> Floats:
        """Return the scores of rows, shape ``(n, m)``."""
        return np.asarray(X, dtype=np.float64) @ self.weights.T


@dataclass(frozen=True)
class LPRRSGD:
    r"""Gradient descent on labels of randomized response, with an unbiased gradient ([G21], Algorithm 5).

    .. math:: \hat g = \frac{e^\epsilon + K - 1}{e^\epsilon - 1} \Big(g_{\tilde y} - \sum_k \frac{g_k}{e^\epsilon + K -
              1}\Big), \qquad w \leftarrow \Pi_W(w - \eta_t \hat g)

    Parameters
    ----------
    epsilon : float
        In nats, the price of a row.
    diameter : float
        `D` of the ball of weights around 0.
    printed : bool
        Steps of [G21], Theorem 9, for epsilon below 1, instead of those by the smaller bound of the gradient.
    seed : int
        Seed of the order of rows. It protects nothing.

    Notes
    -----
    :math:`\hat g = g_{\tilde y} + \sum_k (g_{\tilde y} - g_k) / (e^\epsilon - 1)` has a norm of at most :math:`L + (K -
    1) \Delta / (e^\epsilon - 1)`, where gradients of two labels are at most :math:`\Delta \leq 2 L` apart: below the
    printed :math:`6 K L / \epsilon`, and right at any epsilon. The weights of the gradients are those of
    :func:`~optrand.estimate.top_k_loss_weights`. Cost ``O(n K d)``.

    Examples
    --------
    >>> from optrand.learning import PrivateLabels
    >>> from optrand.sampling import SeededEntropy
    >>> X = np.column_stack([np.linspace(-1, 1, 2000), np.ones(2000)])
    >>> y = (X[:, 0] > 0).astype(int)
    >>> labels = PrivateLabels(y, 1.0, [0, 1], source=SeededEntropy(1))
    >>> found = LPRRSGD(1.0, diameter=4.0).fit(X, labels, LogisticLoss(2))
    >>> bool((found.scores(X).argmax(axis=1) == y).mean() > 0.9), float(found.spent.epsilon)
    (True, 1.0)
    """

    epsilon: float
    diameter: float
    printed: bool = False
    seed: int = 0

    def gradient_bound(self, k: int, lipschitz: float, distance: float) -> float:
        """Return `G`, with `k` labels to respond with.

        Examples
        --------
        >>> round(LPRRSGD(0.5, 1.0, printed=True).gradient_bound(2, 1.0, 2.0), 3)
        24.0
        >>> round(LPRRSGD(0.5, 1.0).gradient_bound(2, 1.0, 2.0), 3)
        4.083
        """
        if self.printed:
            return 6 * k * lipschitz / self.epsilon
        return lipschitz + (k - 1) * distance / math.expm1(self.epsilon)

    def fit(
        self, X: ArrayLike, labels: PrivateLabels, loss: LinearLoss, *, priors: ArrayLike | None = None
    ) -> ConvexFit:
        """Release the labels once, and descend.

        Parameters
        ----------
        X : (n, d) array
            Public features.
        labels : PrivateLabels
        loss : LinearLoss
            Values of the classes, or the numbers, of their domain.
        priors : (n, K) array, optional
            By default uniform. Priors that are uniform on the `k` likeliest labels of each row, public or of earlier
            releases, make RRTop-k of RRWithPrior: a label that is not kept responds with one of these ([G21],
            Corollary 10).

        """
        features, largest = _check(X, labels, loss)
        chosen = np.full((len(labels), loss.k), 1 / loss.k) if priors is None else priors
        batch = RRWithPriorBatch(np.asarray(chosen, dtype=np.float64), self.epsilon)
        release = labels.release(slice(None), batch)
        weights, lipschitz = release.loss_weights, loss.lipschitz(largest, self.diameter / 2)
        bound = self.gradient_bound(int(batch.k_star.max()), lipschitz, loss.distance(largest))
        order = np.random.default_rng(self.seed).permutation(len(features))

        def estimate(place: int, coefficients: Floats) -> Floats:
            return np.asarray(weights[order[place]] @ coefficients)

        last = descend(loss, features[order], self.diameter, bound, estimate)
        return ConvexFit(last, release.spent, release, bound, excess_risk(self.diameter, bound, len(order)))


@dataclass(frozen=True)
class LPNormalSGD:
    r"""Gradient descent with Gaussian noise in the span of the labels' gradients ([G21], Algorithm 6).

    .. math:: w \leftarrow \Pi_W\big(w - \eta_t (g_y + \Pi_{\mathrm{span}(g_1, \dots, g_K)} b)\big), \qquad
              b \sim N(0, \sigma^2 I)

    Parameters
    ----------
    epsilon, delta : float
        Price of a row.
    diameter : float
        `D` of the ball of weights around 0.
    seed : int
        Seed of the order of rows. It protects nothing.

    Notes
    -----
    *Privacy.* A step releases one of `K` points of the span, with Gaussian noise in it. The span is public, as are
    features and earlier iterates. The points are at most :math:`\Delta` apart, exactly for each loss, while [G21] has
    :math:`2 L`. So sigma is the least of the analytic Gaussian mechanism (``least_sigma``), not
    ``C L sqrt(log(1 / delta)) / epsilon``, which no constant makes right. Noise is drawn in floats: the account
    is marked as exact for real numbers only, and the labels must allow it.

    Examples
    --------
    >>> from optrand.learning import PrivateLabels
    >>> from optrand.sampling import SeededEntropy
    >>> X = np.column_stack([np.linspace(-1, 1, 2000), np.ones(2000)])
    >>> y = (X[:, 0] > 0).astype(int)
    >>> labels = PrivateLabels(
    ...     y, 1.0, [0, 1], delta=1e-5, allow_inexact=True, source=SeededEntropy(1)
    ... )
    >>> found = LPNormalSGD(1.0, 1e-5, diameter=4.0).fit(X, labels, LogisticLoss(2))
    >>> print(found.spent)
    epsilon 1, delta 0.00001 (for real numbers only)
    >>> bool((found.scores(X).argmax(axis=1) == y).mean() > 0.7)
    True
    """

    epsilon: float
    delta: float
    diameter: float
    seed: int = 0

    def fit(self, X: ArrayLike, labels: PrivateLabels, loss: LinearLoss) -> ConvexFit:
        """Descend on the labels. The arguments and errors are those of :meth:`LPRRSGD.fit`."""
        features, largest = _check(X, labels, loss)
        price = Spent(self.epsilon, self.delta, exact=False)
        sigma = least_sigma(loss.distance(largest), self.epsilon, self.delta)
        # The span of the gradients has no more dimensions than there are labels, or scores.
        size = math.sqrt(min(loss.k, loss.width))
        bound = math.hypot(loss.lipschitz(largest, self.diameter / 2), size * sigma)
        order = np.random.default_rng(self.seed).permutation(len(features))

        def run(codes: NDArray[np.intp], source: EntropySource) -> Floats:
            estimate = add_projected_noise(features[order], codes, sigma, source)
            return descend(loss, features[order], self.diameter, bound, estimate)

        last = labels.draw(order, price, run)
        return ConvexFit(last, price, None, bound, excess_risk(self.diameter, bound, len(order)))


ROUNDING = 1e-12
"""Rounding error of a float delta, as a share of the two probabilities whose difference it is."""


def least_sigma(distance: float, epsilon: float, delta: float) -> float:
    """Return the least standard deviation of Gaussian noise that hides two points at a distance, rounded up.

    Delta is from 1e-100 to below 1. Rounding of floats is counted against the noise.

    Examples
    --------
    >>> round(least_sigma(1.0, 1.0, 1e-5), 6)
    3.730632
    """
    low, high = distance * 2.0**-100, distance * 2.0**100
    # Delta falls as sigma grows. Eighty halvings of its logarithm leave less than the distance of two floats.
    for _ in range(80):
        middle = math.sqrt(low) * math.sqrt(high)
        near, other = gaussian_tails(distance, middle, epsilon)
        enough = near - other + ROUNDING * (near + other) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


Estimate = Callable[[int, Floats], Floats]
"""Estimate of the gradient's coefficients, by the place of the row and the ``(K, m)`` coefficients of all labels."""


def descend(loss: LinearLoss, features: Floats, diameter: float, bound: float, estimate: Estimate) -> Floats:
    """Step at every row against the estimated gradient, by ``diameter / bound / sqrt(t)``, and back to the ball."""
    weights: Floats = np.zeros((loss.width, features.shape[1]))
    for place, row in enumerate(features):
        coefficient = estimate(place, loss.coefficients(weights @ row))
        weights = weights - diameter / bound / math.sqrt(place + 1) * np.outer(coefficient, row)
        norm = float(np.linalg.norm(weights))
        if norm > diameter / 2:
            weights *= diameter / 2 / norm
    return weights


def add_projected_noise(features: Floats, codes: NDArray[np.intp], sigma: float, source: EntropySource) -> Estimate:
    """Estimate by the true label, with Gaussian noise in the span of all labels' gradients."""
    rng = np.random.default_rng(source.words(8))

    def estimate(place: int, coefficients: Floats) -> Floats:
        # Noise on all weights is, along the features, noise on the scores.
        noise = rng.normal(0, sigma, coefficients.shape[1]) @ np.linalg.pinv(coefficients) @ coefficients
        norm = float(np.linalg.norm(features[place]))
        return np.asarray(coefficients[codes[place]] + (noise / norm if norm else 0.0))

    return estimate


def excess_risk(diameter: float, bound: float, n: int) -> float:
    """Bound the expected excess risk of the last of `n` iterates by ``2 D G (2 + log(n)) / sqrt(n)``.

    Examples
    --------
    >>> round(excess_risk(1.0, 1.0, 10_000), 6)
    0.224207
    """
    return 2 * diameter * bound * (2 + math.log(n)) / math.sqrt(n)


def _check(X: ArrayLike, labels: PrivateLabels, loss: LinearLoss) -> tuple[Floats, float]:
    """Return the features, and their largest norm."""
    features, domain = np.asarray(X, dtype=np.float64), labels.domain.labels
    if features.ndim != 2 or len(features) != len(labels) or not np.isfinite(features).all():
        raise InvalidInput(f"X has shape {features.shape}, expected (n, d) finite numbers for {len(labels)} labels")
    if loss.k != len(domain) or getattr(loss, "labels", domain) != domain:
        raise InvalidInput(f"the loss is not of the {len(domain)} labels of the domain, in their order")
    return features, float(np.linalg.norm(features, axis=1).max())
