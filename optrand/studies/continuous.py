"""A randomizer for a continuum of labels: round to a knot without bias, then randomize the knot.

Privacy, unbiasedness and the exact loss: ``docs/mathematics.md``, section 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, rectangular
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.problem import unbiased_regression
from optrand.sampling.entropy import EntropySource
from optrand.sampling.rounding import KnotCells, unbiased_rounding
from optrand.solvers import solve
from optrand.studies.knots import ContinuousPrior, Knots, place_knots

__all__ = ["ContinuousMechanism", "KnotCount", "continuous_mechanism", "knot_sweep"]


@dataclass(frozen=True)
class ContinuousMechanism:
    """Epsilon-DP randomizer of all labels from the first label of a mechanism to its last, as unbiased as that one.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of the knots, of which there are at least two. Its file holds everything:
        ``ContinuousMechanism(optrand.load(path))``.

    Examples
    --------
    >>> import optrand
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> prior = ContinuousPrior(np.arange(101) / 10)
    >>> wages = continuous_mechanism(prior, 1.0, knots=4)
    >>> optrand.certify(wages.mechanism).require(gap=1e-9).epsilon <= 1.0, wages.bias < 1e-13
    (True, True)
    >>> noisy = wages.sample([0, 3.14, 10], source=SeededEntropy(1))
    >>> np.isin(noisy, wages.mechanism.outputs).all()
    np.True_
    """

    mechanism: Mechanism

    def __post_init__(self) -> None:
        """Raise unless the mechanism has an interval between its labels."""
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"mechanism is of type {type(self.mechanism).__name__}, expected a Mechanism")
        if self.mechanism.labels.size < 2:
            raise InvalidInput("the mechanism has one label, expected at least two: the ends of an interval")

    @property
    def knots(self) -> Floats:
        """Labels of the mechanism, to which values are rounded."""
        return self.mechanism.labels

    @property
    def low(self) -> float:
        """Lowest label."""
        return float(self.knots[0])

    @property
    def high(self) -> float:
        """Highest label."""
        return float(self.knots[-1])

    @property
    def epsilon(self) -> float:
        """Privacy budget, in nats."""
        return self.mechanism.epsilon

    @property
    def bias(self) -> float:
        """Upper bound of ``|E[output] - label|`` over the whole interval: the largest at a knot, rounded up."""
        return self.mechanism.bias

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw one output for every label in `values`, in an array of their shape.

        Parameters
        ----------
        values : array of integers or floats, any shape
            From :attr:`low` to :attr:`high`.
        source : EntropySource, optional
            By default the operating system, the only choice for a release.

        Raises
        ------
        InvalidInput
            Values outside the interval; the message does not reveal which, or how many.

        Notes
        -----
        Two independent words per value, one to round and one to randomize; both draws have exact rational
        probabilities.
        """
        return self.mechanism.sample(unbiased_rounding(values, self.knots, source=source), source=source)

    def loss(self, prior: ContinuousPrior) -> float:
        r"""Compute the mean half squared error in floats: :math:`\tfrac12 \sum_x w_x E[(v - x)^2]`, bias included.

        Raises
        ------
        InvalidInput
            A mechanism for another loss, or a prior that leaves the interval.

        Examples
        --------
        >>> prior = ContinuousPrior([0, 1, 2, 3, 4])
        >>> ends = continuous_mechanism(prior, 1.0, knots=2)
        >>> parts = ends.mechanism.certificate.require().upper, Knots(prior, [0, 4]).added
        >>> round(ends.loss(prior), 9) == round(sum(parts), 9), round(sum(parts), 6)
        (True, 8.365389)
        """
        if self.mechanism.problem.loss != losses.squared:
            raise InvalidInput(f"the mechanism's loss is {self.mechanism.problem.loss.name}, expected squared")
        if prior.values[0] < self.low or prior.values[-1] > self.high:
            raise InvalidInput(f"the prior has values outside the interval from {self.low:g} to {self.high:g}")
        randomizer = self.mechanism.randomizer
        cells, total = KnotCells.of(self.knots, prior.values), 0.0
        for knot, share in ((cells.left, 1 - cells.share), (cells.left + 1, cells.share)):
            errors = randomizer.biases[knot] + (self.knots[knot] - prior.values)
            total += math.fsum(prior.weights * share * (randomizer.variances[knot] + errors**2))
        return total / 2

    def __repr__(self) -> str:
        """Return one line, without the tables."""
        return (
            f"<ContinuousMechanism: labels from {self.low:g} to {self.high:g}, {self.knots.size} knots, "
            f"{self.mechanism.n} outputs, epsilon {self.epsilon:g}>"
        )


def continuous_mechanism(
    prior: ContinuousPrior, epsilon: float, *, knots: int | Knots | ArrayLike
) -> ContinuousMechanism:
    """Find the optimal unbiased randomizer between knots, for all labels of an interval.

    Parameters
    ----------
    prior : ContinuousPrior
        Public.
    epsilon : float
        Privacy budget in nats.
    knots : int, Knots or (n,) array
        The number to place (:func:`optrand.studies.place_knots`), or the knots. :func:`knot_sweep` helps to choose.

    Raises
    ------
    NotCertified
        As :func:`optrand.solve`.

    Examples
    --------
    >>> prior = ContinuousPrior(np.arange(101), np.exp(-np.arange(101) / 10))
    >>> mechanism = continuous_mechanism(prior, 1.0, knots=5)
    >>> mechanism
    <ContinuousMechanism: labels from 0 to 100, 5 knots, 13 outputs, epsilon 1>
    >>> round(mechanism.mechanism.certificate.require(gap=1e-9).upper, 3), round(mechanism.loss(prior), 3)
    (4778.71, 4791.787)
    """
    chosen = _knots(prior, knots)
    problem = unbiased_regression(chosen.values, chosen.probabilities, epsilon)
    return ContinuousMechanism(solve(problem))


@dataclass(frozen=True)
class KnotCount:
    """Cost of a number of knots, in half squared errors.

    Attributes
    ----------
    knots : int
    added : float
        Loss of rounding to the knots.
    randomizer : float
        Certified loss of the optimal unbiased randomizer of the knots, under their prior.
    gap : float
        Certified relative gap of that optimum.
    """

    knots: int
    added: float
    randomizer: float
    gap: float

    @property
    def total(self) -> float:
        """Total loss of a label, exactly the sum of the two."""
        return self.added + self.randomizer


def knot_sweep(prior: ContinuousPrior, epsilon: float, *, counts: Iterable[int]) -> tuple[KnotCount, ...]:
    """Compute the added and total loss of each number of knots in `counts`, placed by :func:`place_knots`.

    Knots added to others never raise the total; sets that are not nested may, by a little. `epsilon` is in nats.

    Raises
    ------
    NotCertified
        As :func:`optrand.solve`.

    Examples
    --------
    >>> prior = ContinuousPrior(np.arange(101), np.exp(-np.arange(101) / 10))
    >>> for row in knot_sweep(prior, 1.0, counts=[2, 3, 5, 9, 17]):
    ...     print(f"{row.knots:2d} {row.added:7.3f} {row.randomizer:8.3f} {row.total:8.3f} {row.gap < 1e-9}")
     2 380.296 4603.368 4983.664 True
     3  61.871 4796.858 4858.730 True
     5  13.077 4778.710 4791.787 True
     9   3.036 4765.143 4768.178 True
    17   0.691 4764.350 4765.041 True
    """
    placed = [place_knots(prior, count) for count in counts]
    problems = [unbiased_regression(knots.values, knots.probabilities, epsilon) for knots in placed]
    proofs = [mechanism.certificate for mechanism in map(solve, problems)]
    return tuple(
        KnotCount(knots.n, knots.added, proof.upper, proof.gap) for knots, proof in zip(placed, proofs, strict=True)
    )


def _knots(prior: ContinuousPrior, given: int | Knots | ArrayLike) -> Knots:
    if isinstance(given, Knots):
        return Knots(prior, given.values)
    return (
        place_knots(prior, int(given))
        if isinstance(given, (int, np.integer))
        else Knots(prior, rectangular(given, "knots"))
    )
