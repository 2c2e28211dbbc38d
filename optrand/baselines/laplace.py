"""The Laplace mechanism, with noise in real numbers and in integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.validation import Floats
from optrand.baselines.additive import ContinuousAdditive, uniforms
from optrand.baselines.lattice_additive import LatticeAdditive
from optrand.baselines.noise import DiscreteLaplaceNoise, LaplaceNoise
from optrand.sampling.discrete_noise import discrete_laplace
from optrand.sampling.entropy import EntropySource

__all__ = ["DiscreteLaplace", "Laplace"]


@dataclass(frozen=True, init=False)
class Laplace(ContinuousAdditive):
    r"""The Laplace mechanism ([DMNS06]; [B23], Definition 18), in floats: a baseline, not for a release.

    .. math:: M(y) = y + Z, \qquad h(z) = \frac{\varepsilon}{2 \Delta} e^{-\varepsilon |z| / \Delta}

    *Proof of privacy.* :math:`|v - y|` and :math:`|v - y'|` differ by at most :math:`|y - y'| \leq \Delta`. ∎

    Parameters
    ----------
    labels : Interval or (k,) array
        Where labels lie, or all of them.
    epsilon : float
        In nats.
    clip : Interval, optional
        Clip releases to it: less loss, and a bias.
    sensitivity : float, optional
        By default the range of the labels.

    Raises
    ------
    InvalidInput
        Arguments without meaning, or a sensitivity below the range of the labels.

    Notes
    -----
    Without clipping the variance is :math:`2 (\Delta / \varepsilon)^2`.

    Examples
    --------
    >>> from optrand.model.outputs import Interval
    >>> Laplace([0, 1], 0.5).moments([0, 1]).loss([0.5, 0.5])
    4.0

    Rounded to finitely many outputs it is a channel, which can be compared with the best there is:

    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> clipped = Laplace([0, 1, 2], 1.0, clip=Interval(0, 2)).discretised([0, 1, 2], [0, 0.5, 1, 1.5, 2])
    >>> proof = optrand.certify(problem, clipped, optrand.solve(problem).dual)
    >>> round(proof.lower, 4), round(proof.upper, 4), proof.epsilon <= 1 + 1e-12
    (0.2527, 0.484, True)
    """

    @property
    def noise(self) -> LaplaceNoise:
        """Noise of scale sensitivity over epsilon."""
        return LaplaceNoise(self.sensitivity / self.epsilon)

    def _draw(self, count: int, source: EntropySource) -> Floats:
        sign = np.where(uniforms(source, count) < 0.5, -1.0, 1.0)
        noise: Floats = -sign * self.noise.scale * np.log(uniforms(source, count))
        return noise


@dataclass(frozen=True, init=False)
class DiscreteLaplace(LatticeAdditive):
    r"""The discrete Laplace, or geometric, mechanism ([GRS12]; [B23], Definition 17), drawn exactly.

    .. math:: M(y) = y + s Z, \qquad \Pr[Z = i] = \frac{1 - q}{1 + q} q^{|i|}, \quad q = e^{-\varepsilon s / \Delta}

    with the step :math:`s` of the lattice that the labels are on. Private as :class:`Laplace` is.

    Parameters
    ----------
    labels : Interval or (k,) array
        Where labels lie, or all of them: whole steps from the lowest one.
    epsilon : float
        In nats; taken as the rational number that the float is.
    clip : Interval, optional
        Clip releases to it; its ends are on the lattice.
    sensitivity : float, optional
        By default the range of the labels; a whole number of steps.
    step : float

    Raises
    ------
    InvalidInput
        Arguments without meaning, a sensitivity that is no whole number of steps, or labels off the lattice.

    Notes
    -----
    Without clipping the variance is :math:`s^2 \cdot 2 q / (1 - q)^2`. Ten to thirty microseconds a draw.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> from optrand.model.outputs import Interval
    >>> mechanism = DiscreteLaplace([0, 1, 2, 3], 1.0, clip=Interval(0, 3))
    >>> mechanism.sample([0, 0, 3, 3], source=SeededEntropy(4)).tolist()
    [1.0, 1.0, 3.0, 0.0]

    The whole channel is finite. It can be compared with the best there is:

    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2, 3], [0.4, 0.3, 0.2, 0.1], 1.0)
    >>> proof = optrand.certify(problem, mechanism.channel(problem.labels), optrand.solve(problem).dual)
    >>> round(proof.lower, 4), round(proof.upper, 4), proof.epsilon <= 1 + 1e-12
    (0.4292, 1.0296, True)
    """

    @property
    def noise(self) -> DiscreteLaplaceNoise:
        """Noise of rate epsilon over sensitivity, in steps."""
        return DiscreteLaplaceNoise(self.epsilon / self.steps)

    def _draw(self, count: int, source: EntropySource) -> tuple[int, ...]:
        return discrete_laplace(self.steps / Fraction(self.epsilon), count, source=source)
