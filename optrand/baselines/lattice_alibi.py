r"""ALIBI with exact noise: Laplace on a lattice, released as far as it tells labels apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import divide_budget, privacy_ratio
from optrand.base.validation import Floats, integer, rectangular
from optrand.base.validation import classes as checked_classes
from optrand.baselines.vector import Alibi, OneHot
from optrand.errors import InvalidInput
from optrand.model.protocol import Moments
from optrand.model.table import Table
from optrand.sampling import Sampler
from optrand.sampling.entropy import EntropySource

__all__ = ["LatticeAlibi"]


@dataclass(frozen=True)
class LatticeAlibi(OneHot):
    r"""One-hot vector plus discrete Laplace noise on the multiples of ``1 / steps``, clipped to ``[0, 1]``.

    .. math:: \Pr[W = i / m] \propto R^{-|i|}, \qquad o_c = \min(\max([c = y] + W_c, 0), 1), \qquad
              R^{2 m} \leq e^\epsilon

    Parameters
    ----------
    k, epsilon
        As in :class:`~optrand.baselines.vector.OneHot`.
    steps : int
        The `m` of the lattice, from 1 to 256.

    Notes
    -----
    *Privacy.* With the rational ``R <= exp(epsilon / (2 m))`` the two coordinates in which two labels differ
    each change the probability of an output by a factor of at most ``R**m``, and draws have exactly these
    probabilities.

    *Clipping loses nothing.* The likelihood of a label depends on ``abs(o_c) - abs(o_c - 1)``, which is constant beyond
    either end ([Z25], eq. 29), so that the soft labels are those of the noise unclipped. With one step it is
    :class:`~optrand.baselines.vector.UnaryBits`.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> randomizer = LatticeAlibi(3, 8.0, steps=4)
    >>> noisy = randomizer.sample([2], source=SeededEntropy(1))
    >>> noisy.tolist(), randomizer.soft_labels(noisy).round(3).tolist()
    ([[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.999]])
    """

    exact: ClassVar[Literal[True]] = True

    steps: int = 16

    def __post_init__(self) -> None:
        """Check all three."""
        super().__post_init__()
        integer(self.steps, "steps", 1, 256)

    @property
    def step_ratio(self) -> Fraction:
        """The rational ``R``: how much likelier one step less of noise is."""
        return privacy_ratio(divide_budget(self.epsilon, 2 * self.steps))

    @property
    def ratio(self) -> Fraction:
        """Largest ratio ``R**(2 m)`` of the probabilities of a vector under two labels, at most ``exp(epsilon)``."""
        return self.step_ratio ** (2 * self.steps)

    @cached_property
    def table(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """Probabilities of the values ``0, 1 / m, ..., 1`` of a coordinate that is 0, and of one that is 1."""
        inverse = 1 / self.step_ratio
        within = [(1 - inverse) * inverse**step for step in range(1, self.steps)]
        zero = [Fraction(1), *within, inverse**self.steps]
        zero = [share / (1 + inverse) for share in zero]
        return tuple(zero), tuple(reversed(zero))

    @cached_property
    def _sampler(self) -> Sampler:
        total = int(np.lcm.reduce([share.denominator for share in self.table[0]], dtype=object))
        rows = [[int(share * total) for share in row] for row in self.table]
        outputs = np.arange(self.steps + 1) / self.steps
        return Sampler(Table.of_rows([0, 1], outputs.tolist(), rows))

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """A noisy vector for every label; shapes, source and errors are those of ``UnaryBits.sample``."""
        classes = checked_classes(values, self.k)
        coordinates = (classes[..., np.newaxis] == np.arange(self.k)).astype(np.int64)
        noisy: Floats = self._sampler.sample(coordinates, source=source)
        return noisy

    def soft_labels(self, noisy: ArrayLike, *, prior: ArrayLike | None = None) -> Floats:
        """Probability of each class once its noisy vector is known, as ``Alibi.soft_labels``.

        Raises
        ------
        InvalidInput
            Vectors of another length, or entries off the lattice.
        """
        given = rectangular(noisy, "noisy values", np.float64)
        places = np.rint(given * self.steps)
        if not (places / self.steps == given).all() or not ((given >= 0) & (given <= 1)).all():
            raise InvalidInput(f"noisy vectors hold entries that are no multiples of 1/{self.steps} from 0 to 1")
        return Alibi(self.k, self.epsilon).soft_labels(given, prior=prior)

    def moments(self, labels: ArrayLike) -> Moments:
        """Moments of the clipped vectors about the one-hot vectors, the same for every label.

        Examples
        --------
        >>> LatticeAlibi(3, 2.0, steps=1).moments([0]).variances.round(6).tolist()
        [0.589836]
        """
        low, _ = self.means
        square = sum((share * place**2 for share, place in zip(self.table[0], self._places, strict=True)), Fraction(0))
        return self._moments(labels, self.k**0.5 * float(low), float(self.k * (square - low**2)))

    @property
    def means(self) -> tuple[Fraction, Fraction]:
        """Mean of a coordinate that is 0, and of one that is 1: ``(o - low) / (high - low)`` is unbiased.

        Examples
        --------
        >>> [round(float(mean), 6) for mean in LatticeAlibi(3, 2.0, steps=1).means]
        [0.268941, 0.731059]
        """
        low = sum((share * place for share, place in zip(self.table[0], self._places, strict=True)), Fraction(0))
        return low, 1 - low

    @property
    def _places(self) -> list[Fraction]:
        return [Fraction(step, self.steps) for step in range(self.steps + 1)]
