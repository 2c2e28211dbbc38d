"""Integer noise on labels that are evenly spaced: exact, because nothing but integers is added."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.arithmetic import quotient
from optrand.base.validation import MAX_INTEGER, Floats, frozen, real
from optrand.baselines.additive import Additive, as_written
from optrand.errors import InvalidInput
from optrand.model.outputs import Interval
from optrand.model.randomizer import Randomizer
from optrand.sampling.entropy import EntropySource, SystemEntropy

__all__ = ["LatticeAdditive"]

MAX_STEPS = 2**50
"""A range of that many steps, rounded to a float, is still nearest to the right number of them."""


@dataclass(frozen=True, init=False)
class LatticeAdditive(Additive):
    """Labels ``low + i * step`` for integers ``i``, and noise in whole steps.

    A label is known by its ``i``, noise is added to that, and only the sum is turned into a float: a function of the
    sum alone, so that the rounding of floats can tell nobody which label it was.

    Attributes
    ----------
    step : float
        The decimal that it is written as: 0.01 means one hundredth.
    """

    exact: ClassVar[Literal[True]] = True
    step: float

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        clip: Interval | None = None,
        sensitivity: float | None = None,
        step: float = 1.0,
    ) -> None:
        super().__init__(labels, epsilon, clip=clip, sensitivity=sensitivity)
        object.__setattr__(self, "step", real(step, "step"))
        if self.step <= 0:
            raise InvalidInput(f"step is {self.step:g}, expected a distance above 0")
        steps = as_written(self.sensitivity) / as_written(self.step)
        if steps.denominator != 1:
            raise InvalidInput(
                f"sensitivity is {self.sensitivity:g} with a step of {self.step:g}, expected a whole number of steps: "
                "take the next larger one"
            )
        if steps > MAX_STEPS:
            raise InvalidInput(f"sensitivity is {self.sensitivity:g} and more than 2**50 steps: take a longer step")
        declared = [self.labels.low, self.labels.high] if isinstance(labels, Interval) else labels
        places = self.positions(np.asarray(declared, dtype=np.float64), "label")
        # Where floats are sparser than the lattice a label may stand for a place further up than it is written.
        if int(places.max()) > self.steps:
            raise InvalidInput(
                f"the labels are {int(places.max())} steps of {self.step:g} apart as floats, the sensitivity is "
                f"{self.steps}: take the lowest label from all others first, or choose a longer step"
            )
        if clip is not None:
            self.positions(np.array([clip.low, clip.high]), "end of clip")

    @property
    def outputs_in_words(self) -> str:
        """Where releases lie, and how far apart."""
        return f"{super().outputs_in_words}, in steps of {self.step!r}"

    @property
    def unit(self) -> float:
        """One step."""
        return self.step

    @property
    def steps(self) -> int:
        """The sensitivity in steps."""
        return int(as_written(self.sensitivity) / as_written(self.step))

    @abstractmethod
    def _draw(self, count: int, source: EntropySource) -> tuple[int, ...]:
        """Exact noise, in steps."""

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """One noisy label for every label in `values`, with exactly the stated probabilities.

        Parameters
        ----------
        values : array of integers or floats, any shape
            Labels.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.

        Returns
        -------
        array of floats on the lattice, of the shape of `values`
        """
        array = self._private(values)
        places = self.positions(array.reshape(-1), "value").astype(np.int64).tolist()
        noise = self._draw(array.size, SystemEntropy() if source is None else source)
        noisy = [place + shift for place, shift in zip(places, noise, strict=True)]
        if self.clip is not None:
            low, high = (int(end) for end in self.positions(np.array([self.clip.low, self.clip.high]), "end of clip"))
            noisy = [min(max(place, low), high) for place in noisy]
        return np.array(self._named(noisy), dtype=np.float64).reshape(array.shape)

    def channel(self, labels: ArrayLike) -> Randomizer:
        """The whole finite channel of a clipped mechanism: each value of the lattice that can be released.

        Parameters
        ----------
        labels : (k,) array
            Strictly increasing.

        Returns
        -------
        Randomizer

        Raises
        ------
        InvalidInput
            Releases are not clipped, so that there are infinitely many of them.
        """
        if self.clip is None:
            raise InvalidInput("without clip= there are infinitely many releases: use discretised(labels, outputs)")
        low, high = (int(end) for end in self.positions(np.array([self.clip.low, self.clip.high]), "end of clip"))
        return self.discretised(labels, self._named(range(low, high + 1)))

    def positions(self, values: Floats, name: str) -> Floats:
        """Steps of each value above the lowest label; refused unless it is a whole number of them."""
        with np.errstate(over="ignore"):
            places = np.rint((values - self.labels.low) / self.step)
        places = np.where(np.abs(places) <= MAX_INTEGER, places, 0.0)
        distinct, where = np.unique(places, return_inverse=True)
        if (np.array(self._named(distinct.astype(np.int64).tolist()))[where] != values).any():
            raise InvalidInput(
                f"at least one {name} is no whole number of steps of {self.step:g} from {self.labels.low:g}: round "
                "them first, or choose a step that fits"
            )
        return frozen(places)

    def cuts(self, places: Floats) -> Floats:
        """Halfway between integers; what is as far from one output as from the next goes to the lower one."""
        cuts: Floats = np.floor(super().cuts(places)) + 0.5
        return cuts

    def _named(self, places: list[int] | range) -> list[float]:
        """The floats nearest to the values of the lattice."""
        low, step = as_written(self.labels.low), as_written(self.step)
        common = math.lcm(low.denominator, step.denominator)
        start, stride = int(low * common), int(step * common)
        return [quotient(start + place * stride, common) for place in places]
