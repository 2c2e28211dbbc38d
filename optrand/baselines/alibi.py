r"""ALIBI ([MEMP21]): Laplace noise on a label's one-hot vector, and the soft label that Bayes' rule makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import PRIOR_SUM_TOLERANCE, Floats, integer
from optrand.base.validation import epsilon as checked_epsilon
from optrand.baselines.coins import octets
from optrand.baselines.vector import MIN_EPSILON, checked_classes
from optrand.errors import InvalidInput
from optrand.model.protocol import Moments
from optrand.sampling.entropy import EntropySource, SystemEntropy

__all__ = ["Alibi"]

BLOCK = 1 << 16
"""Coordinates drawn at a time."""


@dataclass(frozen=True)
class Alibi:
    r"""The one-hot vector of a label plus Laplace noise of scale ``2 / epsilon`` on every coordinate.

    .. math:: o = e_y + W, \qquad W_c \sim \mathrm{Lap}(\lambda), \qquad \lambda = 2 / \epsilon

    Parameters
    ----------
    k : int
        The number of classes, at least 2; labels are ``0 ... k-1``.
    epsilon : float
        Privacy budget in nats, at least 1e-140.

    Raises
    ------
    InvalidInput
        Fewer than two classes, or a budget without meaning.

    Notes
    -----
    *Privacy.* Two one-hot vectors are 2 apart in the sum of absolute differences, so the densities of any ``o`` under
    two labels have a ratio of at most ``exp(2 / lambda)``, attained where ``o_y >= 1`` and ``o_y' <= 0``. [Z25]
    (Appendix B.2) leaves ``lambda`` open; at ``1 / epsilon`` the mechanism would spend ``2 * epsilon``. All this holds
    for real numbers: *the noise is drawn in floats*, whose last bits may tell labels apart, so this is a baseline to
    compare with and not to release (``exact`` is False). :class:`~optrand.baselines.vector.UnaryBits` is exact, costs
    less, and has half the variance or less.

    *Soft label* ([Z25], eq. 29). Of ``f(c) = -sum_k abs(o_k - [k = c])`` all but two terms are common to every class:
    ``f(c) = abs(o_c) - abs(o_c - 1) + const``, and ``abs(x) - abs(x - 1)`` is ``2 x - 1`` clipped to ``[-1, 1]``. The
    ``O(k^2)`` time of which the paper complains (Section 2) is a matter of the program: it takes ``O(k)``, and
    noise beyond ``[0, 1]`` changes nothing. Nor is it a fault of this mechanism that the soft label of the truth falls
    as ``1 / k`` (Appendix B.2): under a uniform prior no epsilon-DP randomizer has a posterior above ``exp(epsilon) /
    (exp(epsilon) + k - 1)``. The bound of eq. 30 says nothing, a division by zero, where no other class is as high.

    Cost ``O(k)`` time and memory a label.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> randomizer = Alibi(3, 8.0)
    >>> noisy = randomizer.sample([2], source=SeededEntropy(0))
    >>> noisy.round(3).tolist()
    [[0.041, -0.147, 1.646]]
    >>> randomizer.soft_labels(noisy).round(3).tolist()
    [[0.0, 0.0, 0.999]]
    >>> randomizer.moments([0]).variances.tolist()
    [0.375]
    """

    k: int
    epsilon: float

    exact: ClassVar[Literal[False]] = False

    def __post_init__(self) -> None:
        """Check both numbers."""
        object.__setattr__(self, "k", integer(self.k, "k", 2))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if self.epsilon < MIN_EPSILON:
            raise InvalidInput(f"epsilon is {self.epsilon:g}, expected at least {MIN_EPSILON:g}")

    @property
    def scale(self) -> float:
        """The ``lambda`` of the noise: the distance of two one-hot vectors, which is 2, over epsilon."""
        return 2 / self.epsilon

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """A noisy one-hot vector for every label.

        Parameters
        ----------
        values : array of class numbers, any shape, or one number
        source : EntropySource, optional
            Where random words come from; by default the operating system.

        Returns
        -------
        array of floats, an axis of length k more than `values`

        Raises
        ------
        InvalidInput
            Values that are no classes; the message tells neither which nor how many.
        """
        classes = checked_classes(values, self.k)
        words = SystemEntropy() if source is None else source
        noisy = np.empty(classes.size * self.k)
        for start in range(0, noisy.size, BLOCK):
            block = noisy[start : start + BLOCK]
            block[:] = _laplace(self.scale, block.size, words)
        noisy[np.arange(classes.size) * self.k + classes.reshape(-1)] += 1
        return noisy.reshape(*classes.shape, self.k)

    def soft_labels(self, noisy: ArrayLike, *, prior: ArrayLike | None = None) -> Floats:
        r"""The probability of each class once its noisy vector is known.

        .. math:: \Pr[c \mid o] \propto p_c \exp\bigl((|o_c| - |o_c - 1|) / \lambda\bigr)

        Parameters
        ----------
        noisy : (..., k) array
        prior : (k,) or (..., k) array, optional
            One for all vectors or one each, for instance what a model believes; uniform if not given. It costs no
            privacy as long as it is made without the labels that it is applied to, or from their release.

        Returns
        -------
        (..., k) array
            Each vector sums to 1.

        Raises
        ------
        InvalidInput
            Shapes that do not fit, NaN, or a prior that is no probability distribution.
        """
        given = _numbers(noisy, "noisy vectors")
        if given.ndim == 0 or given.shape[-1] != self.k:
            raise InvalidInput(f"noisy vectors have shape {given.shape}, expected {self.k} along the last axis")
        if np.isnan(given).any():
            raise InvalidInput("noisy vectors hold NaN, expected numbers")
        soft: Floats = np.clip(given, 0, 1)
        soft -= 0.5
        soft *= self.epsilon
        if prior is not None:
            soft += self._log_prior(prior, given.shape)
        soft -= soft.max(axis=-1, keepdims=True)
        np.exp(soft, out=soft)
        soft /= soft.sum(axis=-1, keepdims=True)
        return soft

    def _log_prior(self, prior: ArrayLike, shape: tuple[int, ...]) -> Floats:
        given = _numbers(prior, "probabilities of a prior")
        if given.shape not in ((self.k,), shape):
            raise InvalidInput(f"prior has shape {given.shape}, expected ({self.k},) or {shape}, as the noisy vectors")
        if not (given >= 0).all() or not (np.abs(given.sum(axis=-1) - 1) <= PRIOR_SUM_TOLERANCE).all():
            raise InvalidInput(
                "prior has entries that are negative or NaN, or does not sum to 1: "
                "pass prior / prior.sum(axis=-1, keepdims=True)"
            )
        logarithms: Floats = np.log(given, out=np.full(given.shape, -np.inf), where=given > 0)
        return logarithms

    def moments(self, labels: ArrayLike) -> Moments:
        """Moments of the noisy vectors against the one-hot vectors: no bias, the variance ``8 k / epsilon**2``."""
        size = checked_classes(labels, self.k).size
        return Moments(np.zeros(size), np.full(size, 2 * self.k * self.scale**2))


def _numbers(given: ArrayLike, name: str) -> Floats:
    array = np.asarray(given)
    if array.dtype.kind not in "iuf":
        raise InvalidInput(f"{name} are of type {array.dtype}, expected numbers")
    return array.astype(np.float64)


def _laplace(scale: float, count: int, source: EntropySource) -> Floats:
    """Laplace noise by inversion: 53 bits of a word make its size, another one its sign."""
    words: NDArray[np.uint64] = octets(source, 8 * count).view("<u8").astype(np.uint64, copy=False)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    sizes = -scale * np.log(uniform)
    noise: Floats = np.where(words & np.uint64(1), -sizes, sizes)
    return noise
