"""Randomizers for a continuum of labels: round to a knot without bias, then randomize the knot.

Privacy, unbiasedness and the exact loss are derived in ``docs/mathematics.md``, section 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._validation import (
    SMALLEST_NORMAL,
    Floats,
    check_integer,
    check_real,
    check_squarable,
    check_values,
    expect,
    freeze_array,
    rectangular,
    suggest_parameters,
)
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import unbiased_regression
from optrand.sampling._entropy import EntropySource
from optrand.sampling._rounding import KnotCells, check_knots, unbiased_rounding
from optrand.solvers import solve

Places = NDArray[np.intp]
Cost = Callable[[Places, Places], Floats]


@dataclass(frozen=True, eq=False, init=False)
class ContinuousPrior:
    """Prior on the labels of an interval, as finitely many values and their weights.

    Parameters
    ----------
    values : (m,) array
        A sample, or the middles of a histogram's bins, in any order. Weights of equal values are added up.
    weights : (m,) array, optional
        At least 0, in any unit (counts, probabilities): they are divided by their sum. Equal by default.
    low, high : float, optional
        The ends of the interval, by default those of the values.

    Notes
    -----
    **Public.** Knots are values of the prior and are part of the mechanism. A sample of private labels must not be used
    as a prior: use public values, or private counts of public bins (:func:`optrand.sampling.private_prior`).

    A density ``f`` is passed by quadrature: ``ContinuousPrior(nodes, rule_weights * f(nodes), low=..., high=...)``.

    Examples
    --------
    The uniform density on [0, 1], by 64 Gauss-Legendre nodes:

    >>> nodes, weights = np.polynomial.legendre.leggauss(64)
    >>> prior = ContinuousPrior((nodes + 1) / 2, weights, low=0, high=1)
    >>> prior.low, prior.high, round(float(prior.weights @ prior.values), 12)
    (0.0, 1.0, 0.5)
    """

    values: Floats
    weights: Floats
    low: float
    high: float

    def __init__(
        self,
        values: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        given = check_values(values, "values")
        check_squarable(given, "values")
        shares = np.ones(given.size) if weights is None else check_values(weights, "weights")
        if shares.size != given.size:
            raise InvalidInput(f"there are {shares.size} weights for {given.size} values, expected one per value")
        if (shares < 0).any() or not shares.any():
            raise InvalidInput("weights must be at least 0, and one of them above 0")
        points, where = np.unique(given, return_inverse=True)
        # As shares of the largest weight, so that no sum overflows.
        sums = np.bincount(where, shares / shares.max(), points.size)
        ends = [
            float(points[at]) if end is None else check_real(end, name)
            for end, at, name in ((low, 0, "low"), (high, -1, "high"))
        ]
        check_squarable(np.array(ends), "low and high")
        if not ends[0] < ends[1]:
            raise InvalidInput("low is not below high: an interval of labels needs two ends")
        outside = int(((given < ends[0]) | (given > ends[1])).sum())
        if outside:
            raise InvalidInput(
                f"{outside} of {given.size} value(s) lie outside the interval from {ends[0]:g} to {ends[1]:g}: "
                "clip them or widen it"
            )
        shares = freeze_array(sums / math.fsum(sums))
        vars(self).update(values=freeze_array(points), weights=shares, low=ends[0], high=ends[1])


@dataclass(frozen=True, eq=False)
class Knots:
    r"""Values to which the labels of an interval are rounded, with the loss that rounding adds.

    .. math:: \mathtt{added} = \tfrac12 \sum_x w_x (x - t_i)(t_{i+1} - x), \qquad t_i \leq x \leq t_{i+1}

    Parameters
    ----------
    prior : ContinuousPrior
    values : (n,) array
        Strictly increasing, from ``prior.low`` to ``prior.high``, both included.

    Examples
    --------
    >>> knots = Knots(ContinuousPrior([0, 1, 4]), [0, 4])
    >>> knots.probabilities.round(4).tolist(), knots.added
    ([0.5833, 0.4167], 0.5)
    """

    prior: ContinuousPrior
    values: Floats

    def __post_init__(self) -> None:
        _check_prior(self.prior)
        object.__setattr__(self, "values", check_knots(self.values))
        if (self.values[0], self.values[-1]) != (self.prior.low, self.prior.high):
            raise InvalidInput(
                f"the knots reach from {self.values[0]:g} to {self.values[-1]:g}, expected the ends of the prior's "
                f"interval, {self.prior.low:g} and {self.prior.high:g}"
            )

    @property
    def n(self) -> int:
        """Number of knots."""
        return self.values.size

    @property
    def added(self) -> float:
        """Half the mean variance of rounding, which adds to the half squared error of any unbiased randomizer."""
        variances = KnotCells.of(self.values, self.prior.values).variances(self.prior.values)
        return 0.5 * math.fsum(self.prior.weights * variances)

    @property
    def probabilities(self) -> Floats:
        """Prior of the knots: the probability that a label is rounded to each, shape ``(n,)``."""
        moved = KnotCells.of(self.values, self.prior.values).move_weights(self.prior.weights)
        # A problem refuses a prior below the normal floats.
        return np.where(moved < SMALLEST_NORMAL, 0.0, moved)


def place_knots(prior: ContinuousPrior, n: int) -> Knots:
    r"""Place `n` knots to which unbiased rounding adds the least variance.

    .. math:: \min_{L = t_0 < \dots < t_{n-1} = U} \, \sum_x w_x (x - t_{i(x)})(t_{i(x)+1} - x)

    Parameters
    ----------
    prior : ContinuousPrior
        Public: the knots are among its values.
    n : int
        At least 2: the two ends and values of the prior, fewer if it has fewer values of positive weight.

    Notes
    -----
    A dynamic programme finds the minimum over all real knots, in ``O(n m log m)`` for ``m`` values: 50 knots of 2,000
    values in 0.06 s, of 100,000 in 7 s. The loss of the randomizer depends much less on the knots.

    Examples
    --------
    >>> prior = ContinuousPrior(np.arange(101), np.exp(-np.arange(101) / 10))
    >>> best = place_knots(prior, 6)
    >>> even = Knots(prior, np.linspace(0, 100, 6))
    >>> best.values.tolist(), round(best.added, 3), round(even.added, 3)
    ([0.0, 7.0, 16.0, 28.0, 48.0, 100.0], 8.131, 29.685)
    """
    _check_prior(prior)
    # The ends are knots even if the prior has no weight there.
    points = np.union1d(prior.values, [prior.low, prior.high])
    weights = np.zeros(points.size)
    weights[np.searchsorted(points, prior.values)] = prior.weights
    count = check_integer(n, "the number of knots", 2, why=": the ends of the interval")
    return Knots(prior, points[Placements(points, weights).places(count)])


def _check_prior(prior: object) -> None:
    expect(
        prior, ContinuousPrior, "prior", "numbers with weights: pass optrand.studies.ContinuousPrior(values, weights)"
    )


@dataclass(frozen=True)
class ContinuousMechanism:
    """Epsilon-DP randomizer of all labels from the first to the last label of a mechanism, with the same bias.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism of at least two knots. Its file holds everything: ``ContinuousMechanism(optrand.load(path))``.

    Examples
    --------
    >>> import optrand
    >>> from optrand.sampling import SeededEntropy
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
        expect(self.mechanism, Mechanism, "mechanism", "a Mechanism")
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
        """Draw one output for every label in `values`, in an array of their shape, with exact rational probabilities.

        Parameters
        ----------
        values : array of integers or floats, any shape
            From :attr:`low` to :attr:`high`.
        source : EntropySource, optional
            By default the operating system's, the only choice for a release.

        Raises
        ------
        InvalidInput
            Values outside the interval. The message does not reveal which, or how many.
        """
        # A mixture of two private rows is private (section 10).
        return self.mechanism.sample(unbiased_rounding(values, self.knots, source=source), source=source)

    def loss(self, prior: ContinuousPrior) -> float:
        r"""Compute the mean half squared error in floats: :math:`\tfrac12 \sum_x w_x E[(v - x)^2]`, bias included.

        Raises
        ------
        InvalidInput
            A mechanism for another loss, or a prior beyond the interval.

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
        # A label is rounded to the knot on either side. Its errors are those of that knot's output about the label.
        for knot, share in ((cells.left, 1 - cells.share), (cells.left + 1, cells.share)):
            errors = randomizer.biases[knot] + (self.knots[knot] - prior.values)
            total += math.fsum(prior.weights * share * (randomizer.variances[knot] + errors**2))
        return total / 2

    def __repr__(self) -> str:
        return (
            f"<ContinuousMechanism: labels from {self.low:g} to {self.high:g}, {self.knots.size} knots, "
            f"{self.mechanism.n} outputs, epsilon {self.epsilon:g}>"
        )


@suggest_parameters
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
        The number of knots to place (:func:`optrand.studies.place_knots`), or the knots.

    Examples
    --------
    >>> prior = ContinuousPrior(np.arange(101), np.exp(-np.arange(101) / 10))
    >>> mechanism = continuous_mechanism(prior, 1.0, knots=5)
    >>> mechanism
    <ContinuousMechanism: labels from 0 to 100, 5 knots, 13 outputs, epsilon 1>
    >>> (
    ...     round(mechanism.mechanism.certificate.require(gap=1e-9).upper, 3),
    ...     round(mechanism.loss(prior), 3),
    ... )
    (4778.71, 4791.787)
    """
    if isinstance(knots, (int, np.integer)):
        chosen = place_knots(prior, int(knots))
    else:
        chosen = Knots(prior, knots.values if isinstance(knots, Knots) else rectangular(knots, "knots"))
    return ContinuousMechanism(solve(unbiased_regression(chosen.values, chosen.probabilities, epsilon)))


class Placements:
    r"""Best two, three, ... of increasing points with weights, to which rounding adds the least variance.

    Unbiased rounding between two neighbours :math:`a < b` of the chosen points adds :math:`C(a, b) = \sum_{a < x < b}
    w_x (x - a)(b - x)`. The sum over neighbours is minimised for each number of points, the first and the last among
    them. Each further point takes ``O(m log m)`` time and ``O(m)`` memory, when it is first needed.

    *Choosing from the set itself loses nothing.* Fix all chosen points except one, :math:`t`, and move that one between
    two neighbours of the set. Then :math:`C(a, t) + C(t, b)` is a sum of terms :math:`(x - a)(t - x)` and :math:`(x -
    t)(b - x)`, linear in :math:`t`: one of the two neighbours is as good. ∎

    *Monotone choices.* For :math:`a \leq b \leq c \leq d`, with :math:`z_+ = \max(z, 0)`,

    .. math:: C(a, d) + C(b, c) - C(a, c) - C(b, d)
              = \sum_x w_x \big((x - a)_+ - (x - b)_+\big) \big((d - x)_+ - (c - x)_+\big) \geq 0.

    So the best last-but-one point never moves back as the last one moves on, and halving the range of last points finds
    all of them, all ranges of one depth in one pass over arrays.
    """

    def __init__(self, points: Floats, weights: Floats) -> None:
        self._width = float(points[-1] - points[0])
        x = (points - points[0]) / self._width - 0.5
        moments = [np.concatenate(([0.0], np.cumsum(weights * x**power))) for power in range(3)]

        def cost(a: Places, b: Places) -> Floats:
            """Compute `C` from prefix sums. For two points that coincide it is 0."""
            inside, first, second = (moment[np.maximum(b, a + 1)] - moment[a + 1] for moment in moments)
            total: Floats = np.maximum((x[a] + x[b]) * first - second - x[a] * x[b] * inside, 0.0)
            return total

        self._cost = cost
        every = np.arange(points.size)
        # Entry j of the costs: the least variance below each point with that point and at most j + 1 points before it.
        self._costs = [cost(np.zeros_like(every), every)]
        self._choices: list[Places] = []

    def compute_variance(self, n: int) -> float:
        """Return the variance that rounding to the best `n` points adds, times the weights."""
        self._reach(n)
        return float(self._costs[n - 2][-1]) * self._width**2

    def places(self, n: int) -> Places:
        """Return the indices of the best `n` points, or fewer if others would add nothing."""
        self._reach(n)
        places = [self._costs[0].size - 1]
        for choice in reversed(self._choices[: n - 2]):
            places.append(int(choice[places[-1]]))
        return np.unique([0, *places])

    def fewest(self, added: float) -> int:
        """Return the least number of points that adds at most `added`."""
        n = 2
        while self.compute_variance(n) > added and n < self._costs[0].size:
            n += 1
        return n

    def _reach(self, n: int) -> None:
        while len(self._costs) < n - 1:
            costs, choices = _one_more(self._costs[-1], self._cost)
            self._costs.append(costs)
            self._choices.append(choices)


def _one_more(before: Floats, cost: Cost) -> tuple[Floats, Places]:
    """Minimise ``before[a] + C(a, b)`` over ``a <= b`` for every `b`. Return the minima and their first `a`.

    Every pass solves the middle of each open range of `b`, whose `a` then bounds those of both halves.
    """
    size = before.size
    least, choice = np.empty(size), np.empty(size, dtype=np.intp)
    # Columns: the first and the last b of a range, and the lowest and the highest a that may be its best.
    ranges = np.array([[0, size - 1, 0, size - 1]], dtype=np.intp)
    while ranges.size:
        first, last, low, high = ranges.T
        middle = (first + last) // 2
        # All candidates of all open ranges in one array, range after range.
        counts = np.minimum(high, middle) - low + 1
        starts = np.cumsum(counts) - counts
        options = np.arange(counts.sum()) - np.repeat(starts - low, counts)
        totals = before[options] + cost(options, np.repeat(middle, counts))
        least[middle] = np.minimum.reduceat(totals, starts)
        # Take the first of equal minima, so that choices stay monotone.
        hits = np.flatnonzero(totals == np.repeat(least[middle], counts))
        _, earliest = np.unique(np.searchsorted(starts, hits, side="right"), return_index=True)
        best = options[hits[earliest]]
        choice[middle] = best
        below = np.stack((first, middle - 1, low, best), axis=1)[first < middle]
        above = np.stack((middle + 1, last, best, high), axis=1)[middle < last]
        ranges = np.concatenate((below, above))
    return least, choice
