r"""Labels plus noise, clipped or not: the additive mechanisms of [B23], Appendix F.

The noise :math:`Z` is scaled to the sensitivity, the range of the labels, so that no two labels are further apart than
the noise can hide. Clipping to an interval, and rounding to a finite set of outputs, depend only on the noisy label and
cost no privacy. The distributions are those of :mod:`optrand.baselines._noise`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from optrand.base._arithmetic import decimal_value, noise_scale, quotient
from optrand.base._validation import (
    MAX_INTEGER,
    Floats,
    check_epsilon,
    check_integer,
    check_labels,
    check_real,
    check_values,
    expect,
    freeze_array,
    rectangular,
)
from optrand.baselines._noise import Drawn, LaplaceNoise, Noise, StaircaseNoise, best_gamma, best_rise, compute_mass
from optrand.errors import InvalidInput
from optrand.model._problem import Interval
from optrand.model._randomizer import Moments, Randomizer
from optrand.sampling._draw import check_numbers
from optrand.sampling._entropy import EntropySource, SystemEntropy


@dataclass(frozen=True, init=False)
class Additive(ABC):
    r"""The label plus symmetric noise in floats: a baseline for experiments, not for a release.

    Its privacy holds for real numbers. The gaps between floats can reveal labels, and so can rounded logarithms
    ([M12]). With :math:`R(t) = E[\min(Z^+, t)]` and :math:`Q(t) = E[\min(Z^+, t)^2]`, a label :math:`y` between the
    ends of the interval :math:`[L, U]` to which releases are clipped has

    .. math:: E[M(y)] - y = R(U - y) - R(y - L), \qquad E[(M(y) - y)^2] = Q(U - y) + Q(y - L).

    For a distance :math:`t < 0` (a label outside) put :math:`R(|t|) + t` and :math:`t^2 - Q(|t|)` instead.

    Parameters
    ----------
    labels : Interval or (k,) array
        Interval of the labels, or all labels. No other value is randomized.
    epsilon : float
        In nats. For noise in integers it stands for the float's shortest decimal.
    clip : Interval, optional
        Clip releases to this interval, which lowers the loss and adds a bias.

    Raises
    ------
    InvalidInput
        Invalid arguments, or a variance that leaves the range of floats.
    """

    exact: ClassVar[bool] = False

    labels: Interval
    epsilon: float
    clip: Interval | None
    sensitivity: float

    def __init__(self, labels: Interval | ArrayLike, epsilon: float, *, clip: Interval | None = None) -> None:
        if clip is not None:
            expect(clip, Interval, "clip", "an Interval or None")
        if not isinstance(labels, Interval):
            values = check_labels(labels)
            if values.size < 2:
                raise InvalidInput("there is one label, and so a sensitivity of 0: expected two labels, or an Interval")
            labels = Interval(float(values.min()), float(values.max()))
        # The range of the labels as decimals, and a billionth for their rounding to floats.
        hidden = float(decimal_value(labels.high) - decimal_value(labels.low))
        if Fraction(labels.high) - Fraction(labels.low) > Fraction(hidden) * (1 + Fraction(1, 10**9)):
            raise InvalidInput(
                f"the range of the labels, {hidden:g}, is less than the distance between the floats nearest to its "
                f"ends, {labels.high - labels.low:g}: subtract the lowest label from all labels first"
            )
        budget = check_epsilon(epsilon)
        # Beyond these bounds the variance leaves the range of floats.
        if budget < 1e-100 or hidden / budget > 1e100:
            raise InvalidInput(
                f"epsilon is {budget:g} at a sensitivity of {hidden:g}, and the variance of the noise exceeds floats: "
                "raise epsilon, or rescale the labels"
            )
        vars(self).update(labels=labels, epsilon=budget, clip=clip, sensitivity=hidden)

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """The noise, in its own unit."""

    @property
    def unit(self) -> float:
        """The unit of the noise, in units of the labels."""
        return 1.0

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw one noisy label for every label in `values`, with exactly the stated probabilities if :attr:`exact`.

        Parameters
        ----------
        values : array of integers or floats, any shape
            Between the ends of the labels, and on the lattice if there is one.
        source : EntropySource, optional
            By default the operating system's, the only choice for a release.
        """
        array = check_numbers(values)
        private = self._check_inside(array.astype(np.float64)).reshape(-1)
        noise = self.noise.draw(private.size, SystemEntropy() if source is None else source)
        return self._add(private, noise).reshape(array.shape)

    def _add(self, values: Floats, noise: Drawn) -> Floats:
        noisy: Floats = values + np.asarray(noise, dtype=np.float64)
        return noisy if self.clip is None else noisy.clip(self.clip.low, self.clip.high)

    def positions(self, values: Floats, name: str) -> Floats:  # noqa: ARG002
        """Convert numbers to units of the noise. `name` is the word for them in an error message."""
        return values

    def moments(self, labels: ArrayLike) -> Moments:
        """Compute the moments at some of the declared labels, in closed form."""
        places = self._label_positions(labels)
        if self.clip is None:
            return Moments(np.zeros(places.size), np.full(places.size, self.noise.variance * self.unit * self.unit))
        low, high = self._clip_positions(self.clip)
        # Noise that is clipped at an end counts as the distance to that end.
        reach = np.array([high - places, places - low])
        means, squares = self.noise.cap_moments(np.abs(reach))
        means = np.where(reach >= 0, means, means + reach)
        squares = np.where(reach >= 0, squares, reach**2 - squares)
        biases = means[0] - means[1]
        variances = np.maximum(squares[0] + squares[1] - biases**2, 0.0)
        return Moments(biases * self.unit, variances * self.unit * self.unit)

    def likelihood(self, released: ArrayLike, labels: ArrayLike) -> Floats:
        """Return the density of each released value under each label, or at an end of `clip` the mass."""
        means = self._label_positions(labels)
        places = self.positions(check_values(released, "released values"), "released value")[:, np.newaxis]
        table = self.noise.density(places - means)
        if self.clip is None:
            return table
        low, high = self._clip_positions(self.clip)
        # On a lattice the mass at an end includes that of the end itself.
        half = 0.5 if self.exact else 0.0
        below = compute_mass(self.noise, np.full(means.size, -np.inf), low - means + half)
        above = compute_mass(self.noise, high - means - half, np.full(means.size, np.inf))
        return np.where(places >= high, above, np.where(places <= low, below, table))

    def discretise(self, labels: ArrayLike, outputs: ArrayLike) -> Randomizer:
        """Build the finite channel of releases rounded to the nearest output, the lower one of two.

        It is a function of the release, and as private.

        Parameters
        ----------
        labels : (k,) array
            Strictly increasing, among the declared ones.
        outputs : (n,) array
            Strictly increasing, inside the interval to which releases are clipped.

        Returns
        -------
        Randomizer
            Its probabilities are as exact as the distances between labels and outputs. Cost ``O(k n)``. If
            outputs are far off and epsilon is in the hundreds, probabilities leave the range of floats, and a table
            with such zeros is correctly certified as not private.
        """
        rows, columns = check_values(labels, "labels"), check_values(outputs, "outputs")
        if self.clip is not None and (columns[0] < self.clip.low or columns[-1] > self.clip.high):
            raise InvalidInput(f"outputs from {columns[0]:g} to {columns[-1]:g} reach beyond the interval of clip")
        places, ends = self._label_positions(rows)[:, np.newaxis], self.positions(columns, "output")
        cuts = (ends[:-1] + ends[1:]) / 2
        # Halfway between two integers, so that ties go to the lower output.
        cuts = np.floor(cuts) + 0.5 if self.exact else cuts
        edges = np.concatenate(([-np.inf], cuts, [np.inf]))
        low, high = np.broadcast_arrays(edges[:-1] - places, edges[1:] - places)
        return Randomizer(rows, columns, compute_mass(self.noise, low, high), self.epsilon)

    def _label_positions(self, labels: ArrayLike) -> Floats:
        return self.positions(self._check_inside(check_values(labels, "labels")), "label")

    def _clip_positions(self, clip: Interval) -> list[float]:
        ends: list[float] = self.positions(np.array([clip.low, clip.high]), "end of clip").tolist()
        return ends

    def _check_inside(self, values: Floats) -> Floats:
        # Messages never repeat or count values.
        if not ((values >= self.labels.low) & (values <= self.labels.high)).all():
            raise InvalidInput(
                f"at least one value lies outside the declared labels, from {self.labels.low:g} to "
                f"{self.labels.high:g}: clip the values, or declare a wider range"
            )
        return values


@dataclass(frozen=True, init=False)
class LatticeAdditive(Additive):
    """Labels ``low + i * step`` for integers ``i``, and noise in whole steps, exact since only integers are added.

    A label is represented by its ``i``. Noise is added to ``i``, and only the sum is converted to a float, so that
    rounding does not depend on the label.

    Parameters
    ----------
    labels, epsilon, clip
        As in :class:`Additive`: labels and the ends of `clip` are whole steps from the lowest label.
    step : float
        It stands for its shortest decimal: 0.01 means one hundredth.
    """

    exact: ClassVar[bool] = True
    step: float

    def __init__(
        self, labels: Interval | ArrayLike, epsilon: float, *, step: float = 1.0, clip: Interval | None = None
    ) -> None:
        super().__init__(labels, epsilon, clip=clip)
        object.__setattr__(self, "step", check_real(step, "step"))
        if self.step <= 0:
            raise InvalidInput(f"step is {self.step:g}, expected a distance above 0")
        steps = decimal_value(self.sensitivity) / decimal_value(self.step)
        if steps.denominator != 1:
            raise InvalidInput(
                f"the labels have a range of {self.sensitivity:g} with a step of {self.step:g}, expected a whole "
                "number of steps: declare an Interval that reaches to the next step"
            )
        # A larger range, rounded to a float, may be nearest to a wrong number of steps.
        if steps > 2**50:
            raise InvalidInput(
                f"the labels have a range of {self.sensitivity:g}, more than 2**50 steps: use a longer step"
            )
        declared = [self.labels.low, self.labels.high] if isinstance(labels, Interval) else labels
        places = self.positions(rectangular(declared, "labels", np.float64), "label")
        # If floats are sparser than the lattice, the float of a label may be nearest to a higher lattice point.
        if int(places.max()) > self.steps:
            raise InvalidInput(
                f"the labels are {int(places.max())} steps of {self.step:g} apart as floats, the sensitivity is "
                f"{self.steps}: subtract the lowest label from all labels first, or use a longer step"
            )
        if self.clip is not None:
            self._clip_positions(self.clip)

    @property
    def unit(self) -> float:
        """One step."""
        return self.step

    @property
    def steps(self) -> int:
        """The sensitivity in steps."""
        return int(decimal_value(self.sensitivity) / decimal_value(self.step))

    def _add(self, values: Floats, noise: Drawn) -> Floats:
        places = self.positions(values, "value").astype(np.int64).tolist()
        noisy = [place + int(shift) for place, shift in zip(places, noise, strict=True)]
        if self.clip is not None:
            low, high = map(int, self._clip_positions(self.clip))
            noisy = [min(max(place, low), high) for place in noisy]
        return np.array(self._to_floats(noisy), dtype=np.float64)

    def channel(self, labels: ArrayLike) -> Randomizer:
        """Build the whole finite channel of clipped releases from some labels, which strictly increase."""
        if self.clip is None:
            raise InvalidInput("without clip= there are infinitely many releases: use discretise(labels, outputs)")
        low, high = map(int, self._clip_positions(self.clip))
        return self.discretise(labels, self._to_floats(range(low, high + 1)))

    def positions(self, values: Floats, name: str) -> Floats:
        """Count the steps of each value above the lowest label. Raise InvalidInput if they are not whole."""
        with np.errstate(over="ignore"):
            places = np.rint((values - self.labels.low) / self.step)
        places = np.where(np.abs(places) <= MAX_INTEGER, places, 0.0)
        distinct, where = np.unique(places, return_inverse=True)
        if (np.array(self._to_floats(distinct.astype(np.int64).tolist()))[where] != values).any():
            raise InvalidInput(
                f"at least one {name} is not a whole number of steps of {self.step:g} from {self.labels.low:g}: round "
                "them first, or choose a step that fits"
            )
        return freeze_array(places)

    def _to_floats(self, places: list[int] | range) -> list[float]:
        # Over one denominator, so that each position is one division of integers, correctly rounded.
        low, step = decimal_value(self.labels.low), decimal_value(self.step)
        common = math.lcm(low.denominator, step.denominator)
        start, stride = int(low * common), int(step * common)
        return [quotient(start + place * stride, common) for place in places]


@dataclass(frozen=True, init=False)
class Laplace(Additive):
    r"""The Laplace mechanism ([DMNS06] and [B23], Definition 18), in floats: a baseline, not for a release.

    .. math:: M(y) = y + Z, \qquad h(z) = \frac{\varepsilon}{2 \Delta} e^{-\varepsilon |z| / \Delta}

    *Proof of privacy.* :math:`|v - y|` and :math:`|v - y'|` differ by at most :math:`|y - y'| \leq \Delta`. ∎

    Without clipping the variance is :math:`2 (\Delta / \varepsilon)^2`.

    Examples
    --------
    >>> Laplace([0, 1], 0.5).moments([0, 1]).loss([0.5, 0.5])
    4.0

    Rounded to finitely many outputs it is a channel, which can be compared with the optimum:

    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> clipped = Laplace([0, 1, 2], 1.0, clip=Interval(0, 2)).discretise(
    ...     [0, 1, 2], [0, 0.5, 1, 1.5, 2]
    ... )
    >>> round(optrand.solve(problem).value, 4), round(problem.value(clipped), 4)
    (0.2527, 0.484)
    """

    @property
    def noise(self) -> LaplaceNoise:
        """Noise of scale sensitivity over epsilon, rounded up."""
        return LaplaceNoise(noise_scale(self.sensitivity, self.epsilon))


@dataclass(frozen=True, init=False)
class DiscreteLaplace(LatticeAdditive):
    r"""The discrete Laplace, or geometric, mechanism ([GRS12] and [B23], Definition 17), drawn exactly.

    .. math:: M(y) = y + s Z, \qquad \Pr[Z = i] = \frac{1 - q}{1 + q} q^{|i|}, \quad q = e^{-\varepsilon s / \Delta}

    with the step :math:`s` of the lattice of the labels. It is private like :class:`Laplace`. Without clipping the
    variance is :math:`s^2 \cdot 2 q / (1 - q)^2`. A draw takes ten to thirty microseconds.

    Examples
    --------
    >>> from optrand.sampling import SeededEntropy
    >>> mechanism = DiscreteLaplace([0, 1, 2, 3], 1.0, clip=Interval(0, 3))
    >>> mechanism.sample([0, 0, 3, 3], source=SeededEntropy(4)).tolist()
    [0.0, 3.0, 0.0, 2.0]
    >>> mechanism.channel([0, 3]).matrix.round(3).tolist()
    [[0.583, 0.118, 0.085, 0.214], [0.214, 0.085, 0.118, 0.583]]
    """

    @property
    def noise(self) -> StaircaseNoise:
        """Stairs of one step, with the rate epsilon over sensitivity."""
        return StaircaseNoise(decimal_value(self.epsilon) / self.steps, 1, 1, 1)


@dataclass(frozen=True, init=False)
class Staircase(Additive):
    r"""The staircase mechanism ([GV14] and [B23], Definition 20), in floats: a baseline, not for a release.

    .. math:: M(y) = y + Z, \qquad h(z) = a e^{-\varepsilon (\lfloor |z| / \Delta \rfloor
              + [|z| \bmod \Delta \geq \gamma \Delta])},
              \quad a = \frac{1 - e^{-\varepsilon}}{2 \Delta (\gamma + e^{-\varepsilon} (1 - \gamma))}

    *Proof of privacy.* The exponent counts jumps at the distances :math:`(j + \gamma) \Delta` and :math:`(j + 1)
    \Delta`, :math:`j \geq 0`, of which the latter undo the former: it rises by one over each :math:`\Delta`. On one
    side of 0 two points at most :math:`\Delta` apart differ by at most one. On both sides their distances from 0 add up
    to at most :math:`\Delta`, and both exponents are 0 or 1. ∎

    Parameters
    ----------
    gamma : float, optional
        Share of the upper level in a stair, strictly between 0 and 1, by default :func:`best_gamma`.

    Examples
    --------
    It is never worse than Laplace noise, and much better than that at large epsilon:

    >>> variances = [
    ...     kind([0, 1], 6.0).moments([0]).variance([1.0]) for kind in (Staircase, Laplace)
    ... ]
    >>> [round(variance, 5) for variance in variances]
    [0.01411, 0.05556]
    """

    gamma: float

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        gamma: float | None = None,
        clip: Interval | None = None,
    ) -> None:
        super().__init__(labels, epsilon, clip=clip)
        share = best_gamma(self.epsilon) if gamma is None else check_real(gamma, "gamma")
        if not 0 < share < 1:
            raise InvalidInput(f"gamma is {share:g}, expected a share strictly between 0 and 1")
        object.__setattr__(self, "gamma", share)

    @property
    def noise(self) -> StaircaseNoise:
        """Stairs as long as the sensitivity."""
        return StaircaseNoise(self.epsilon, self.sensitivity, self.gamma * self.sensitivity, 0)


@dataclass(frozen=True, init=False)
class DiscreteStaircase(LatticeAdditive):
    r"""The discrete staircase mechanism ([GV14] and [B23], Definition 19), drawn exactly.

    .. math:: M(y) = y + s Z, \qquad \Pr[Z = i] = a e^{-\varepsilon (\lfloor |i| / D \rfloor + [|i| \bmod D \geq r])},
              \quad a = \frac{1 - e^{-\varepsilon}}{2 r + 2 e^{-\varepsilon} (D - r) - (1 - e^{-\varepsilon})}

    with the step :math:`s` of the lattice of the labels and :math:`D = \Delta / s`. It is private like
    :class:`Staircase`. At ``D = 1`` it is the discrete Laplace mechanism.

    Parameters
    ----------
    rise : int, optional
        Number of integers of a stair on its upper level, :math:`r`, from 1 to ``D``, by default :func:`best_rise`.

    Examples
    --------
    >>> mechanism = DiscreteStaircase([0, 1, 2, 3], 3.0, clip=Interval(0, 3))
    >>> mechanism.rise, mechanism.channel([0, 3]).matrix.round(3).tolist()
    (1, [[0.88, 0.038, 0.038, 0.044], [0.044, 0.038, 0.038, 0.88]])
    """

    rise: int

    def __init__(
        self,
        labels: Interval | ArrayLike,
        epsilon: float,
        *,
        step: float = 1.0,
        rise: int | None = None,
        clip: Interval | None = None,
    ) -> None:
        super().__init__(labels, epsilon, step=step, clip=clip)
        if rise is None:
            rise = best_rise(self.epsilon, self.steps)
        object.__setattr__(self, "rise", check_integer(rise, "rise", 1, self.steps, why=", the steps of a stair"))

    @property
    def noise(self) -> StaircaseNoise:
        """Stairs as long as the sensitivity, in steps."""
        return StaircaseNoise(self.epsilon, self.steps, self.rise, 1)
