r"""Noise on a label's one-hot vector: the random bits of [Z25], and ALIBI ([MEMP21])."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import divide_budget, noise_scale, privacy_ratio
from optrand.base._validation import Floats, Record, check_classes, check_epsilon, check_integer, rectangular
from optrand.baselines._noise import LaplaceNoise
from optrand.errors import InvalidInput
from optrand.model._randomizer import Moments
from optrand.model._table import Table
from optrand.sampling import Sampler
from optrand.sampling._entropy import MAX_WIDTH, EntropySource, SystemEntropy, check_width, check_words

Octets = NDArray[np.uint8]

BLOCK = 1 << 18
"""Octets or coordinates drawn at a time."""


@dataclass(frozen=True)
class OneHot(Record, ABC):
    """Noise on the one-hot vector of a class, the same on every coordinate.

    Parameters
    ----------
    k : int
        The number of classes, at least 2. Labels are ``0 ... k-1``.
    epsilon : float
        Privacy budget in nats, at least 1e-140.
    """

    k: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_integer(self.k, "k", 2))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        # Below this the variance of an estimate leaves the range of floats.
        if self.epsilon < 1e-140:
            raise InvalidInput(f"epsilon is {self.epsilon:g}, expected at least 1e-140")

    @property
    @abstractmethod
    def _noise(self) -> tuple[Fraction | float, Fraction | float]:
        """Bias of a coordinate 0, which is minus that of a coordinate 1, and the variance of both."""

    @property
    def variance(self) -> float:
        """Variance of one debiased coordinate, whatever the label. A mean of `n` has 1 / `n` of it."""
        bias, variance = self._noise
        return float(variance / (1 - 2 * bias) ** 2)

    @property
    def _entries(self) -> NDArray[Any] | None:
        """All entries that a drawn vector may have. None if any number may be drawn."""
        return None

    def _check_drawn(self, drawn: ArrayLike) -> Floats:
        vectors = rectangular(drawn, "noisy vectors")
        if vectors.dtype.kind not in "biuf" or vectors.ndim == 0 or vectors.shape[-1] != self.k:
            raise InvalidInput(
                f"noisy vectors are of type {vectors.dtype} and shape {vectors.shape}, expected numbers and {self.k} "
                "along the last axis"
            )
        possible = ~np.isnan(vectors) if self._entries is None else np.isin(vectors, self._entries)
        if not possible.all():
            raise InvalidInput("noisy vectors hold NaN, or entries that are never drawn")
        return vectors.astype(np.float64)

    def likelihood(self, drawn: ArrayLike) -> Floats:
        """Return the probability of each vector, of shape (..., k), under every class, up to a factor per vector.

        It is ``exp(epsilon * o_c)`` with ``o_c`` clipped to ``[0, 1]``, as noise beyond either end has no information.
        """
        inside = np.clip(self._check_drawn(drawn), 0, 1)
        return np.exp((inside - 1) * self.epsilon)

    def soft_labels(self, drawn: ArrayLike) -> Floats:
        r"""Compute the probability of each class given its vector, of shape (..., k), under a uniform prior.

        .. math:: \Pr[c \mid o] \propto \exp\bigl((|o_c| - |o_c - 1|) \, \epsilon / 2\bigr)

        Under another prior, multiply by it and divide by the sum.
        """
        likelihood = self.likelihood(drawn)
        soft: Floats = likelihood / likelihood.sum(axis=-1, keepdims=True)
        return soft

    def debias(self, drawn: ArrayLike) -> Floats:
        """Estimate the one-hot vector behind each drawn vector without bias, shape ``(..., k)``.

        Entries below 0 and sums other than 1 are unavoidable. Vectors that are never drawn raise :class:`InvalidInput`.
        """
        return self.estimate(self._check_drawn(drawn))

    def estimate(self, means: Floats) -> Floats:
        """Solve for the coordinates with these means over the noise."""
        bias, _ = self._noise
        return (means - float(bias)) / float(1 - 2 * bias)

    def loss_weights(self, drawn: ArrayLike) -> Floats:
        """Return weights of losses, one per class: debiased vectors, projected to the vectors of sum 1.

        Their expectation has sum 1, so they stay unbiased, and the variance does not rise.
        """
        estimates = self.debias(drawn)
        weights: Floats = estimates + (1 - estimates.sum(axis=-1, keepdims=True)) / self.k
        return weights

    def moments(self, labels: ArrayLike) -> Moments:
        """Return the moments of the drawn vectors about the one-hot vectors, the same for every label."""
        bias, variance = self._noise
        return self._repeat(labels, self.k**0.5 * float(bias), float(self.k * variance))

    def debiased_moments(self, labels: ArrayLike) -> Moments:
        """Return the moments of the debiased vectors: their bias is 0, and each coordinate has :attr:`variance`."""
        return self._repeat(labels, 0.0, self.k * self.variance)

    def _repeat(self, labels: ArrayLike, bias: float, variance: float) -> Moments:
        size = check_classes(labels, self.k).size
        return Moments(np.full(size, bias), np.full(size, variance))


@dataclass(frozen=True)
class UnaryBits(OneHot):
    r"""The bits of a one-hot vector, each flipped on its own with probability ``1 / (1 + r)``.

    .. math:: \Pr[Z_j = 1 \mid y] = \frac{r}{1 + r} \quad (j = y), \qquad \frac{1}{1 + r} \quad (j \neq y),
              \qquad r \leq e^{\epsilon / 2}

    Notes
    -----
    *Privacy* ([Z25], Theorem 1). The probabilities of any vector ``z`` under labels ``y`` and ``y'`` differ in the
    factors of the bits ``y`` and ``y'`` alone. If these two bits are equal, the ratio is 1. Otherwise it is ``r**2`` or
    its inverse. Here ``r`` is a rational at or just below ``exp(epsilon / 2)``, and the coins have that probability
    exactly: privacy holds in integers, and :attr:`ratio` is attained.

    *Estimate.* Averaged over any distribution ``eta`` of the label, bit ``j`` has the mean ``1 / (1 + r) + (r - 1) /
    (r + 1) * eta_j`` ([Z25], eq. 24), so ``((1 + r) Z_j - 1) / (r - 1)`` is an unbiased estimate of ``eta_j``. Its
    variance ``r / (r - 1)**2 = 1 / (4 sinh(epsilon / 4)**2)`` is the same for every bit and every label: half of
    ALIBI's ``8 / epsilon**2``, or less.

    Cost ``O(k)`` per label: about five nanoseconds per bit.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> import math
    >>> randomizer = UnaryBits(5, 2.0)
    >>> math.log(randomizer.ratio)
    2.0
    >>> bits = randomizer.sample([3, 0], source=SeededEntropy(3))
    >>> bits.tolist()
    [[0, 0, 0, 1, 0], [1, 0, 0, 0, 1]]
    >>> randomizer.debias(bits)[1].round(3).tolist()
    [1.582, -0.582, -0.582, -0.582, 1.582]
    """

    exact: ClassVar[Literal[True]] = True

    @property
    def odds(self) -> Fraction:
        """The rational ``r``, the ratio of the probabilities that a bit is right and that it is flipped."""
        return privacy_ratio(divide_budget(self.epsilon, 2))

    @property
    def flip(self) -> Fraction:
        """The probability ``1 / (1 + r)`` that a bit is flipped."""
        return 1 / (1 + self.odds)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio ``r**2`` of the probabilities of a vector under two labels, at most ``exp(epsilon)``."""
        return self.odds**2

    @property
    def _noise(self) -> tuple[Fraction, Fraction]:
        return self.flip, self.flip * (1 - self.flip)

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Octets:
        """Draw a vector of `k` bits for every label. Values have any shape, and the bits one more axis, of length k.

        Values that are not classes raise :class:`InvalidInput`, which does not reveal which, or how many.
        """
        classes = check_classes(values, self.k)
        words = SystemEntropy() if source is None else source
        # Noise on every bit, eight to an octet, and then the one-hot vector by an exclusive or.
        width = -(-self.k // 8)
        packed = np.empty((classes.size, width), dtype=np.uint8)
        rows = max(1, BLOCK // width)
        for start in range(0, classes.size, rows):
            part = packed[start : start + rows]
            part[:] = coins(self.flip, part.size, words).reshape(part.shape)
        bits = np.unpackbits(packed, axis=1, count=self.k)
        bits[np.arange(classes.size), classes.reshape(-1)] ^= 1
        return bits.reshape(*classes.shape, self.k)

    @property
    def _entries(self) -> Octets:
        return np.arange(2, dtype=np.uint8)


@dataclass(frozen=True)
class Alibi(OneHot):
    r"""The one-hot vector of a label plus Laplace noise of scale ``2 / epsilon`` on every coordinate.

    .. math:: o = e_y + W, \qquad W_c \sim \mathrm{Lap}(\lambda), \qquad \lambda = 2 / \epsilon

    Notes
    -----
    *Privacy.* Two one-hot vectors are 2 apart in the sum of absolute differences, so the densities of any ``o`` under
    two labels have a ratio of at most ``exp(2 / lambda)``, attained if ``o_y >= 1`` and ``o_y' <= 0``. This holds for
    real numbers: *the noise is drawn in floats*, whose last bits may reveal labels, so this is no release.
    :class:`UnaryBits` is exact, costs less than this, and has half the variance or less.

    *Soft label* ([Z25], eq. 29). In ``f(c) = -sum_k abs(o_k - [k = c])`` only two terms depend on the class:
    ``f(c) = abs(o_c) - abs(o_c - 1) + const``, and ``abs(x) - abs(x - 1)`` is ``2 x - 1`` clipped to ``[-1, 1]``. So it
    takes ``O(k)`` time, as a draw does, and noise beyond ``[0, 1]`` changes nothing.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> randomizer = Alibi(3, 8.0)
    >>> noisy = randomizer.sample([2], source=SeededEntropy(1))
    >>> noisy.round(3).tolist()
    [[-0.096, -0.188, 1.262]]
    >>> randomizer.soft_labels(noisy).round(3).tolist()
    [[0.0, 0.0, 0.999]]
    >>> randomizer.moments([0]).variances.tolist()
    [0.375]
    """

    exact: ClassVar[Literal[False]] = False

    @property
    def scale(self) -> float:
        """The ``lambda`` of the noise: the distance of two one-hot vectors, which is 2, over epsilon."""
        return noise_scale(2, self.epsilon)

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw a noisy one-hot vector for every label, with the parameters and errors of :meth:`UnaryBits.sample`."""
        classes = check_classes(values, self.k)
        words = SystemEntropy() if source is None else source
        noisy, noise = np.empty(classes.size * self.k), LaplaceNoise(self.scale)
        for start in range(0, noisy.size, BLOCK):
            block = noisy[start : start + BLOCK]
            block[:] = noise.draw(block.size, words)
        noisy[np.arange(classes.size) * self.k + classes.reshape(-1)] += 1
        return noisy.reshape(*classes.shape, self.k)

    @property
    def _noise(self) -> tuple[float, float]:
        return 0.0, 2 * self.scale**2


@dataclass(frozen=True)
class LatticeAlibi(OneHot):
    r"""One-hot vector plus discrete Laplace noise on the multiples of ``1 / steps``, clipped to ``[0, 1]``.

    .. math:: \Pr[W = i / m] \propto R^{-|i|}, \qquad o_c = \min(\max([c = y] + W_c, 0), 1), \qquad
              R^{2 m} \leq e^\epsilon

    Parameters
    ----------
    steps : int
        Steps `m` of the lattice between 0 and 1, from 1 to 256.

    Notes
    -----
    *Privacy.* With the rational ``R <= exp(epsilon / (2 m))`` the two coordinates in which two labels differ each
    change the probability of an output by a factor of at most ``R**m``, and draws have exactly these probabilities.
    Clipping loses nothing: the likelihood of a label is constant beyond either end. With one step it is
    :class:`UnaryBits`.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> randomizer = LatticeAlibi(3, 8.0, steps=4)
    >>> noisy = randomizer.sample([2], source=SeededEntropy(1))
    >>> noisy.tolist(), randomizer.soft_labels(noisy).round(3).tolist()
    ([[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.999]])
    """

    exact: ClassVar[Literal[True]] = True

    steps: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer(self.steps, "steps", 1, 256)

    @property
    def step_ratio(self) -> Fraction:
        """The rational ``R``, the ratio of the probabilities of a noise and of one that is larger by a step."""
        return privacy_ratio(divide_budget(self.epsilon, 2 * self.steps))

    @cached_property
    def coordinate(self) -> Table:
        """The channel of one coordinate, from 0 and 1 to ``0, 1 / m, ..., 1``."""
        high, low = self.step_ratio.as_integer_ratio()
        m = self.steps
        # Proportional to 1, then (1 - 1 / R) / R**i, then 1 / R**m.
        within = [(high - low) * low**i * high ** (m - i - 1) for i in range(1, m)]
        zero = [high**m, *within, low**m]
        return Table.of_rows([0, 1], np.arange(m + 1) / m, [zero, zero[::-1]])

    @property
    def ratio(self) -> Fraction:
        """Largest ratio ``R**(2 m)`` of the probabilities of a vector under two labels, at most ``exp(epsilon)``."""
        return self.step_ratio ** (2 * self.steps)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.coordinate)

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw a noisy vector for every label, with the parameters and errors of :meth:`UnaryBits.sample`."""
        classes = check_classes(values, self.k)
        coordinates = (classes[..., np.newaxis] == np.arange(self.k)).astype(np.int64)
        noisy: Floats = self._sampler.sample(coordinates, source=source)
        return noisy

    @property
    def _entries(self) -> Floats:
        return self.coordinate.outputs

    @property
    def _noise(self) -> tuple[Fraction, Fraction]:
        bias = self.coordinate.biases[0]
        return bias, self.coordinate.squared_errors[0] - bias**2


def octets(source: EntropySource, count: int) -> Octets:
    """Draw `count` uniform octets from the words of a source, of any width. Drop the rest of the last word."""
    width = check_width(source)
    words = check_words(source, -(-8 * count // width))
    # A fixed order of bytes, so that a seed has the same draws on every machine.
    drawn = words.astype("<u8", copy=False).view(np.uint8)
    if width < MAX_WIDTH:
        bits = np.unpackbits(drawn.reshape(-1, 8), axis=1, count=width, bitorder="little")
        drawn = np.packbits(bits.reshape(-1))
    return drawn[:count]


def coins(probability: Fraction, count: int, source: EntropySource) -> Octets:
    """Draw `count` octets of eight independent coins: each bit is 1 with exactly the given probability, below 1.

    A coin shows heads if a uniform number in ``[0, 1)`` lies below the probability `q`: at the first binary digit in
    which the two differ, the number must have the 0. The digits of `q` come from long division in integers. An octet is
    open after ``t`` rounds with probability ``1 - (1 - 2**-t)**8``, whose sum over ``t`` is 4.4: the mean number of
    random octets for eight coins.
    """
    heads = np.zeros(count, dtype=np.uint8)
    at, undecided = np.arange(count), np.full(count, 255, dtype=np.uint8)
    remainder = probability.numerator
    while at.size:
        digit, remainder = divmod(2 * remainder, probability.denominator)
        drawn = octets(source, at.size)
        if digit:
            heads[at] |= undecided & ~drawn
            undecided = undecided & drawn
        else:
            undecided = undecided & ~drawn
        still = undecided != 0
        at, undecided = at[still], undecided[still]
    return heads
