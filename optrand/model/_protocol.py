"""Randomizers as a release, an experiment or a picture needs them, whatever they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats, check_prior, frozen

if TYPE_CHECKING:
    from optrand.sampling._entropy import EntropySource


@dataclass(frozen=True, eq=False)
class Moments:
    """The first two moments of the released number less the label, for each label.

    Attributes
    ----------
    biases : (k,) array
        ``E[M(y)] - y``, in units of the labels; for vectors the length of that difference.
    variances : (k,) array
        Variance of the released number. For vectors the sum over the coordinates. Infinite if it does not exist.

    Examples
    --------
    >>> moments = Moments([0.5, -1.0], [2.0, 4.0])
    >>> moments.bias, moments.variance([0.5, 0.5]), moments.loss([0.5, 0.5])
    (1.0, 3.0, 1.8125)
    """

    biases: Floats
    variances: Floats

    def __post_init__(self) -> None:
        """Freeze."""
        object.__setattr__(self, "biases", frozen(self.biases))
        object.__setattr__(self, "variances", frozen(self.variances))

    @property
    def bias(self) -> float:
        """The largest one, whatever its sign."""
        return float(np.abs(self.biases).max())

    def variance(self, prior: ArrayLike) -> float:
        """Return the mean variance under a prior."""
        return self._mean(self.variances, prior)

    def loss(self, prior: ArrayLike) -> float:
        """Return the noisy label loss under a prior: the mean half squared error of a release ([B23], Section 2)."""
        return self._mean((self.variances + self.biases**2) / 2, prior)

    def _mean(self, amounts: Floats, prior: ArrayLike) -> float:
        weights = check_prior(prior, self.biases.size)
        # A label that never occurs costs nothing, however large its error.
        return float(weights @ np.where(weights > 0, amounts, 0.0))


@runtime_checkable
class LabelRandomizer(Protocol):
    """An epsilon-label-DP randomizer of one label."""

    @property
    def exact(self) -> bool:
        """Whether draws have exactly the stated probabilities: only such a randomizer is fit for a release.

        Draws of others are in floats, which leak: their privacy holds for real numbers only.
        """
        ...

    @property
    def epsilon(self) -> float:
        """The privacy budget in nats."""
        ...

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> NDArray[Any]:
        """Draw one output for every label in `values`; of vectors, an axis more."""
        ...

    def moments(self, labels: ArrayLike) -> Moments:
        """Return the moments at some labels."""
        ...
