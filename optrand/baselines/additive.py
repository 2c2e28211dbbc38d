r"""A label plus noise, clipped or not: what the additive mechanisms of [B23], Appendix F, have in common.

The noise :math:`Z` is scaled to the sensitivity, the range of the labels, so that no two labels are further apart than
the noise can hide. Clipping to an interval, and rounding to a finite set of outputs, look only at the noisy label and
cost no privacy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, real
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import labels as checked_labels
from optrand.base.validation import values as checked_values
from optrand.baselines.noise import Noise
from optrand.errors import InvalidInput
from optrand.model.outputs import Interval, Line, in_words
from optrand.model.protocol import Moments
from optrand.model.randomizer import Randomizer
from optrand.sampling.entropy import EntropySource, SystemEntropy, checked_width, checked_words

__all__ = ["Additive", "ContinuousAdditive", "as_written", "uniforms"]

UNIFORM_BITS = 53
"""As many as a float holds."""

MIN_EPSILON = 1e-300
"""Below it ``1 / epsilon`` or what is made of it leaves the range of floats."""

MAX_SCALE = 1e300
"""A larger ``sensitivity / epsilon``, times a logarithm, may be no float; noise in integers is of any size."""

MISWRITTEN = 1e-9
"""The share of the sensitivity by which labels may be further apart as floats than as they are written."""


@dataclass(frozen=True, init=False)
class Additive(ABC):
    r"""The label plus symmetric noise, and what follows from the noise's closed forms.

    With :math:`R(t) = E[\min(Z^+, t)]` and :math:`Q(t) = E[\min(Z^+, t)^2]`, a label :math:`y` between the ends of the
    interval :math:`[L, U]` that releases are clipped to has

    .. math:: E[M(y)] - y = R(U - y) - R(y - L), \qquad E[(M(y) - y)^2] = Q(U - y) + Q(y - L).

    For a distance :math:`t < 0` (a label outside) put :math:`R(|t|) + t` and :math:`t^2 - Q(|t|)` instead.

    Attributes
    ----------
    labels : Interval
        Where labels lie; no other value is ever randomized.
    epsilon : float
        In nats.
    clip : Interval or None
        Where releases lie.
    sensitivity : float
        The distance that the noise hides, at least the range of the labels.
    """

    exact: ClassVar[bool]
    n: ClassVar[None] = None
    """There is no finite number of outputs."""

    labels: Interval
    epsilon: float
    clip: Interval | None
    sensitivity: float

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        clip: Interval | None = None,
        sensitivity: float | None = None,
    ) -> None:
        declared = _declared(labels)
        spread = float(as_written(declared.high) - as_written(declared.low))
        hidden = spread if sensitivity is None else real(sensitivity, "sensitivity")
        if hidden <= 0:
            raise InvalidInput(f"sensitivity is {hidden:g}, expected a distance above 0")
        if hidden < spread:
            raise InvalidInput(
                f"sensitivity is {hidden:g}, less than the range of the labels, {spread:g}: labels further apart would "
                "not be hidden"
            )
        if Fraction(declared.high) - Fraction(declared.low) > Fraction(hidden) * (1 + Fraction(MISWRITTEN)):
            raise InvalidInput(
                f"the sensitivity, {hidden:g}, is less than the distance between the floats nearest to the ends of the "
                f"labels, {declared.high - declared.low:g}: take the lowest label from all others first"
            )
        if clip is not None and not isinstance(clip, Interval):
            raise InvalidInput(f"clip is of type {type(clip).__name__}, expected an Interval or None")
        budget = checked_epsilon(epsilon)
        if budget < MIN_EPSILON or (hidden / budget > MAX_SCALE and not self.exact):
            raise InvalidInput(
                f"epsilon is {budget:g} at a sensitivity of {hidden:g}, where noise is no float: raise epsilon, or "
                "rescale the labels"
            )
        fields = {"labels": declared, "epsilon": budget, "clip": clip, "sensitivity": hidden}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The noise, in its own unit."""

    @property
    def realised_epsilon(self) -> float:
        """Epsilon: the sensitivity may be attained."""
        return self.epsilon

    @property
    def outputs_in_words(self) -> str:
        """Where releases lie."""
        return in_words(self.clip or Line())

    @property
    def unit(self) -> float:
        """The unit of the noise, in units of the labels."""
        return 1.0

    @abstractmethod
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """One noisy label for every label in `values`."""

    def positions(self, values: Floats, name: str) -> Floats:  # noqa: ARG002
        """Numbers in units of the noise; `name` says what they are where some are refused."""
        return values

    def moments(self, labels: ArrayLike) -> Moments:
        """The moments at some labels, in closed form.

        Parameters
        ----------
        labels : (k,) array
            Among the declared ones, in any order. Public.

        Returns
        -------
        Moments
        """
        places = self.positions(self._within(checked_values(labels, "labels")), "label")
        if self.clip is None:
            return Moments(np.zeros(places.size), np.full(places.size, self.noise.variance * self.unit * self.unit))
        low, high = self.positions(np.array([self.clip.low, self.clip.high]), "end of clip")
        mean_above, square_above = self._towards(high - places)
        mean_below, square_below = self._towards(places - low)
        biases = mean_above - mean_below
        variances = np.maximum(square_above + square_below - biases**2, 0.0)
        return Moments(biases * self.unit, variances * self.unit * self.unit)

    def _towards(self, reach: Floats) -> tuple[Floats, Floats]:
        """The part of the first two moments that one end of the interval is responsible for."""
        mean, square = self.noise.capped(np.abs(reach))
        inside = reach >= 0
        return np.where(inside, mean, mean + reach), np.where(inside, square, reach**2 - square)

    def discretised(self, labels: ArrayLike, outputs: ArrayLike) -> Randomizer:
        """The finite channel of releases moved to the nearest of some outputs, the lower one of two.

        Private as the release is, which is all that it looks at.

        Parameters
        ----------
        labels : (k,) array
            Strictly increasing, among the declared ones.
        outputs : (n,) array
            Strictly increasing, inside the interval that releases are clipped to.

        Returns
        -------
        Randomizer
            Its probabilities are as exact as the distances between labels and outputs are; cost ``O(k n)``. A factor
            of ``exp(-epsilon)`` a sensitivity leaves the range of floats where outputs are far off and epsilon is in
            the hundreds, and a table with such zeros is certified as what it then is: not private.
        """
        rows, columns = checked_values(labels, "labels"), checked_values(outputs, "outputs")
        if self.clip is not None and (columns[0] < self.clip.low or columns[-1] > self.clip.high):
            raise InvalidInput(
                f"outputs from {columns[0]:g} to {columns[-1]:g} reach beyond the interval that releases are clipped to"
            )
        places = self.positions(self._within(rows), "label")[:, np.newaxis]
        edges = np.concatenate(([-np.inf], self.cuts(self.positions(columns, "output")), [np.inf]))
        low, high = np.broadcast_arrays(edges[:-1] - places, edges[1:] - places)
        return Randomizer(rows, columns, self.noise.mass(low, high), self.epsilon)

    def cuts(self, places: Floats) -> Floats:
        """Cuts between outputs in units of the noise: halfway."""
        halfway: Floats = (places[:-1] + places[1:]) / 2
        return halfway

    def _within(self, values: Floats) -> Floats:
        """The values, refused unless all are between the ends of the labels; no message repeats or counts any."""
        if not ((values >= self.labels.low) & (values <= self.labels.high)).all():
            raise InvalidInput(
                f"at least one value lies outside the declared labels, from {self.labels.low:g} to "
                f"{self.labels.high:g}: clip the values, or declare a wider range"
            )
        return values

    def _private(self, values: ArrayLike) -> Floats:
        """Private labels as floats, of any shape."""
        array = np.asarray(values)
        if array.size and (array.dtype.kind not in "iuf" or array.dtype.itemsize > np.float64().itemsize):
            raise InvalidInput(
                f"values are of type {array.dtype.type.__name__}, expected integers or floats of at most 64 bits"
            )
        return self._within(array.astype(np.float64))


@dataclass(frozen=True, init=False)
class ContinuousAdditive(Additive):
    """Noise in floating-point numbers: a baseline for experiments, not for a release.

    Its privacy holds for real numbers. Floats have gaps that tell labels apart, and rounded logarithms do so too
    ([M12]).
    """

    exact: ClassVar[Literal[False]] = False

    @abstractmethod
    def _draw(self, count: int, source: EntropySource) -> Floats:
        """Noise, shape ``(count,)``."""

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """One noisy label for every label in `values`.

        Parameters
        ----------
        values : array of integers or floats, any shape
            Between the ends of the labels.
        source : EntropySource, optional
            The operating system by default.

        Returns
        -------
        array of floats, of the shape of `values`
        """
        array = self._private(values)
        noisy = array + self._draw(array.size, SystemEntropy() if source is None else source).reshape(array.shape)
        return noisy if self.clip is None else np.clip(noisy, self.clip.low, self.clip.high)


def uniforms(source: EntropySource, count: int) -> Floats:
    """Floats strictly between 0 and 1, from 53 bits each or a few more.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> uniforms(SeededEntropy(0), 3).round(3).tolist()
    [0.85, 0.555, 0.076]
    """
    width = checked_width(source)
    each = -(-UNIFORM_BITS // width)
    words = checked_words(source, each * count).reshape(count, each).astype(np.float64)
    drawn = np.ldexp(words, -width * np.arange(1, each + 1)).sum(axis=1)
    inside: Floats = np.clip(drawn, 2.0 ** -(UNIFORM_BITS + 1), 1 - 2.0**-UNIFORM_BITS)
    return inside


def as_written(number: float) -> Fraction:
    """The decimal that a float is written as.

    Examples
    --------
    >>> as_written(0.3) - as_written(0.1)
    Fraction(1, 5)
    """
    return Fraction(repr(number))


def _declared(labels: Interval | ArrayLike) -> Interval:
    if isinstance(labels, Interval):
        return labels
    values = checked_labels(labels)
    if values.size < 2:
        raise InvalidInput("there is one label and so a sensitivity of 0: expected two labels, or the Interval of them")
    return Interval(float(values.min()), float(values.max()))
