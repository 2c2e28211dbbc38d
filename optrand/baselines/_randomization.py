"""Labels that are sometimes replaced by draws from a known distribution, and the loss that is right on average."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import log_above, privacy_ratio
from optrand.base._validation import (
    Floats,
    Record,
    check_classes,
    check_epsilon,
    check_integer,
    check_real,
    freeze_array,
)
from optrand.errors import InvalidInput
from optrand.model._randomizer import Moments
from optrand.model._table import Table
from optrand.sampling import Sampler
from optrand.sampling._entropy import EntropySource


@dataclass(frozen=True)
class LabelRandomization(Record):
    r"""Randomizer that keeps a label with probability :math:`1 - \lambda`, and else draws one from a distribution `q`.

    .. math:: Q[y', y] = \Pr[\tilde y = y' | y] = (1 - \lambda) 1[y' = y] + \lambda q_{y'}, \qquad
              Q^{-1} = \frac{I - \lambda q 1^T}{1 - \lambda}

    Parameters
    ----------
    distribution : tuple of Fraction
        `q`, which sums to 1.
    resampling : Fraction
        :math:`\lambda`, from 0 to 1.

    Examples
    --------
    >>> channel = LabelRandomization((Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2))
    >>> channel.matrix.tolist()
    [[0.625, 0.125], [0.375, 0.875]]
    >>> (channel.inverse @ channel.matrix).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> round(channel.epsilon, 6)
    1.609438
    """

    exact: ClassVar[Literal[True]] = True

    distribution: tuple[Fraction, ...]
    resampling: Fraction

    def __post_init__(self) -> None:
        entries = tuple(check_fraction(q, "an entry of the distribution", most=1) for q in self.distribution)
        if sum(entries) != 1:
            raise InvalidInput(
                f"the distribution sums to {float(sum(entries)):.17g}, expected exactly 1: pass fractions, divided by "
                "their sum"
            )
        object.__setattr__(self, "distribution", entries)
        object.__setattr__(self, "resampling", check_fraction(self.resampling, "resampling", most=1))

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.distribution)

    @cached_property
    def matrix(self) -> Floats:
        r"""The label-randomization matrix :math:`Q`: shape ``(k, k)``, a *column* for each true label."""
        drawn = np.array(self.distribution, dtype=np.float64) * float(self.resampling)
        return freeze_array(np.eye(self.k) * float(1 - self.resampling) + drawn[:, np.newaxis])

    @cached_property
    def inverse(self) -> Floats:
        """Inverse of :attr:`matrix`. Raise InvalidInput if floats cannot hold it, as resampling is (nearly) 1."""
        kept = 1 - self.resampling
        if kept * sys.float_info.max < 1:
            raise InvalidInput(
                "the label-randomization matrix is singular since resampling is 1 and no label is kept, or its inverse "
                "leaves the range of floats: use a smaller resampling probability (or bias_correction)"
            )
        drawn = np.array([float(self.resampling * q / kept) for q in self.distribution])
        return freeze_array(np.eye(self.k) * float(1 / kept) - drawn[:, np.newaxis])

    def likelihood(self, noisy: ArrayLike) -> Floats:
        """Return the probability of each noisy label under every label, shape ``(n, k)``."""
        rows: Floats = self.matrix[check_classes(noisy, self.k)]
        return rows

    def loss_weights(self, noisy: ArrayLike) -> Floats:
        r"""Return the column :math:`Q^{-1}[\cdot, \tilde y]` of each noisy label, as rows of shape ``(n, k)``.

        The sum of weight times loss over all labels has, over the noise, the loss at the true label as its mean.
        """
        weights: Floats = self.inverse.T[check_classes(noisy, self.k)]
        return weights

    @cached_property
    def table(self) -> Table:
        """The channel in exact integers, without labels that never occur."""
        drawn = [self.resampling * q for q in self.distribution]
        # With a common denominator the table consists of integers.
        scale = math.lcm(self.resampling.denominator, *(share.denominator for share in drawn))
        weights = np.tile(np.array([int(share * scale) for share in drawn], dtype=object), (self.k, 1))
        weights[np.diag_indices(self.k)] += int((1 - self.resampling) * scale)
        return Table.of_rows(range(self.k), range(self.k), weights.tolist())

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of two probabilities of one output, exactly. None if it is infinite."""
        return self.table.largest_ratio

    @property
    def epsilon(self) -> float:
        """The privacy of one label if the distribution is public, in nats: the log of the ratio, rounded up."""
        return math.inf if self.ratio is None else log_above(self.ratio)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self.table)

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> NDArray[np.int64]:
        """Draw one label for every label in `values`, of any shape, with exactly the stated probabilities.

        Values that are not from 0 to ``k-1`` raise :class:`InvalidInput`, which does not reveal which, or how many.

        Examples
        --------
        >>> from optrand.sampling import SeededEntropy
        >>> channel = LabelRandomization((Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2))
        >>> channel.sample([0, 0, 0, 1, 1, 1], source=SeededEntropy(5)).tolist()
        [1, 0, 0, 1, 1, 1]
        """
        return self._sampler.sample(check_classes(values, self.k), source=source).astype(np.int64)

    def moments(self, labels: ArrayLike) -> Moments:
        """Compute the bias and the variance of the released label, read as a number, at some labels."""
        array = check_classes(labels, self.k).reshape(-1)
        biases = np.array(self.table.biases, dtype=np.float64)
        return Moments(biases[array], self.table.variances[array])


class UniformRR(LabelRandomization):
    r"""Randomized response on `k` labels ([E22], Corollary 1), the cluster mechanism that learns nothing.

    .. math:: \lambda = \frac{k}{k - 1 + e^\epsilon}, \qquad \tilde q(y | c) = \frac{1}{k}, \qquad
              \Pr[\tilde y = y] = \frac{e^\epsilon}{e^\epsilon + k - 1}

    Parameters
    ----------
    k : int
        The number of labels ``0 ... k-1``, at least 2.
    epsilon : float
        Privacy budget in nats.

    Examples
    --------
    >>> UniformRR(3, 1.0).matrix.round(4).tolist()
    [[0.5761, 0.2119, 0.2119], [0.2119, 0.5761, 0.2119], [0.2119, 0.2119, 0.5761]]
    """

    _budget: float

    def __init__(self, k: int, epsilon: float) -> None:
        size, budget = check_integer(k, "k", 2), check_epsilon(epsilon)
        super().__init__((Fraction(1, size),) * size, size / (size - 1 + privacy_ratio(budget)))
        object.__setattr__(self, "_budget", budget)

    @property
    def epsilon(self) -> float:
        """Privacy budget in nats."""
        return self._budget

    def _arguments(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon}

    def __repr__(self) -> str:
        return f"UniformRR(k={self.k}, epsilon={self.epsilon})"


def check_fraction(given: float | Fraction, name: str, *, most: int | None = None) -> Fraction:
    exact = Fraction(given if isinstance(given, Fraction) else check_real(given, name))
    if most is not None and not 0 <= exact <= most:
        raise InvalidInput(f"{name} is {float(exact):g}, expected a probability from 0 to {most}")
    return exact
