r"""Estimates with intervals of the mean of the labels behind a release, or of any function of them.

Released values are independent given the labels, and an estimate is the average of ``N`` of them, or of one number per
value. It estimates the average over the released *table*, whose labels are fixed, and over the *population* from which
the rows are a random sample. Only the noise of the mechanism makes the first uncertain. The spread of the labels adds
to the uncertainty of the second:

.. math:: \mathrm{Var}(w) = E[\mathrm{Var}(w \mid y)] + \mathrm{Var}(E[w \mid y]).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import Floats, check_real, check_squarable, rectangular, suggest_parameters
from optrand.errors import InvalidInput
from optrand.estimate._debiasing import Debiasing
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released, mechanism_of, split_by_mechanism

Tallied = tuple[Mechanism, NDArray[np.intp]]
"""Mechanism of a release, or of some of its groups, and its number of draws of each output."""

UNBIASED = 1e-9
"""Largest share of the labels' range that counts as a rounded zero bias, as for certificates."""


@dataclass(frozen=True)
class Spread:
    """Sample size, variances and range, from which the width of an interval is computed.

    Attributes
    ----------
    size : int
        Number of independent numbers that were averaged.
    variance : float
        Estimate of the mean of their variances.
    width : float
        Width of a range that certainly holds all of them.
    """

    size: int
    variance: float
    width: float


IntervalMethod = Callable[[Spread, float], float]
"""Half the width of an interval, from a spread and the confidence."""


def normal(spread: Spread, confidence: float) -> float:
    """Compute the half-width by the central limit theorem, with Student's quantiles.

    If the outputs are skewed, as at small epsilon, it is too small even at a few hundred rows.

    Examples
    --------
    >>> round(normal(Spread(10_000, variance=4.0, width=8.0), 0.95), 6)
    0.039204
    """
    from scipy.special import stdtrit

    quantile = float(stdtrit(spread.size - 1, (1 + confidence) / 2))
    return quantile * math.sqrt(spread.variance / spread.size)


def hoeffding(spread: Spread, confidence: float) -> float:
    r"""Compute the half-width by Hoeffding's bound ([H63]), which holds for any number of rows and any labels.

    .. math:: \mathrm{width} \sqrt{\ln(2 / \delta) / 2 N}, \qquad \delta = 1 - \mathrm{confidence}.

    Examples
    --------
    >>> round(hoeffding(Spread(10_000, variance=4.0, width=8.0), 0.95), 6)
    0.108648
    """
    return spread.width * math.sqrt(math.log(2 / (1 - confidence)) / (2 * spread.size))


@suggest_attributes(
    {"value": "estimate mean", "standard_error": "se std stderr", "interval(0.95)": "ci conf_int confidence_interval"}
)
@dataclass(frozen=True)
class Estimate:
    """Average over a release, with its standard errors and intervals.

    Attributes
    ----------
    value : float
    size : int
        Number of released values.
    sample_variance : float
        Sample variance of the averaged numbers: the spread of the labels and the noise together.
    noise_variance : float
        Variance of the noise alone, averaged over the rows.
    low, high : float
        Ends of a range that certainly holds each of those numbers.
    bias : float
        Upper bound of the bias of `value`. Intervals are widened by it.

    Examples
    --------
    >>> found = Estimate(
    ...     2.0, 10_000, sample_variance=5.0, noise_variance=4.0, low=-3.0, high=5.0, bias=0.0
    ... )
    >>> (
    ...     [round(end, 4) for end in found.interval(0.95)],
    ...     [round(end, 4) for end in found.table_interval(0.95)],
    ... )
    ([1.9562, 2.0438], [1.9608, 2.0392])
    >>> [round(end, 4) for end in found.interval(0.95, method=hoeffding)]
    [1.8914, 2.1086]
    """

    value: float
    size: int
    sample_variance: float
    noise_variance: float
    low: float
    high: float
    bias: float

    def __repr__(self) -> str:
        """Return one line: the value, its errors, and the number of values."""
        errors = f"noise error {self.noise_error:.3g}, standard error {self.standard_error:.3g}"
        return f"<Estimate: {self.value:.6g}, {errors}, {self.size:,} values>"

    @property
    def standard_error(self) -> float:
        """Standard error of the estimate, for the population from which the rows are a random sample."""
        return math.sqrt(self.sample_variance / self.size)

    @property
    def noise_error(self) -> float:
        """Standard error of the estimate, for the table that was released: the mechanism's noise alone."""
        return math.sqrt(self.noise_variance / self.size)

    def interval(self, confidence: float, *, method: IntervalMethod = normal) -> tuple[float, float]:
        """Compute an interval ``(low, high)`` for the average over the population.

        Parameters
        ----------
        confidence : float
            Between 0 and 1.
        method : IntervalMethod
            :func:`normal`, or :func:`hoeffding`, which keeps the confidence at any size.
        """
        return self._around(self.sample_variance, confidence, method)

    def table_interval(self, confidence: float, *, method: IntervalMethod = normal) -> tuple[float, float]:
        """Compute an interval for the average over the released rows, with the arguments of :meth:`interval`."""
        return self._around(self.noise_variance, confidence, method)

    def _around(self, variance: float, confidence: float, method: IntervalMethod) -> tuple[float, float]:
        level = check_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidInput(f"confidence is {level:g}, expected a number between 0 and 1, such as 0.95")
        if not callable(method):
            raise InvalidInput(f"method is {method!r}, expected a function: optrand.estimate.normal or hoeffding")
        reach = method(Spread(self.size, variance, self.high - self.low), level) + self.bias
        return self.value - reach, self.value + reach


def output_numbers(released: ArrayLike, mechanism: Mechanism | Released) -> NDArray[np.intp]:
    """Return the indices of released values among the mechanism's outputs, in an array of the same shape.

    They index rows of :func:`optrand.estimate.loss_weights`, for instance.

    Raises
    ------
    InvalidInput
        Values that are not outputs of the mechanism. The message counts them.

    Examples
    --------
    >>> import optrand
    >>> coin = optrand.rr([3, 7], 1.0)
    >>> output_numbers([7, 3, 3], coin)
    array([1, 0, 0])
    """
    given = rectangular(mechanism.numbers(released) if isinstance(mechanism, Released) else released, "released values")
    mechanism = mechanism_of(mechanism)
    if given.dtype.kind not in "iuf":
        raise InvalidInput(f"released values are of type {given.dtype}, expected numbers: outputs of the mechanism")
    values = given.astype(np.float64)
    numbers = np.minimum(np.searchsorted(mechanism.outputs, values), mechanism.outputs.size - 1)
    strangers = int((mechanism.outputs[numbers] != values).sum())
    if strangers:
        raise InvalidInput(
            f"{strangers} of {values.size} released values are not outputs of the mechanism: pass the values that this "
            "mechanism drew, not rounded (a column read as 32-bit floats is)"
        )
    return numbers


def tally(released: ArrayLike, mechanism: Mechanism | Released, groups: Any = None) -> list[Tallied]:
    """Count the outputs of each mechanism of a release of at least two values."""
    found = []
    for one, values in split_by_mechanism(released, mechanism, groups):
        numbers = output_numbers(values, one)
        found.append((one, np.bincount(numbers.ravel(), minlength=one.outputs.size)))
    size = sum(int(tallies.sum()) for _, tallies in found)
    if size < 2:
        raise InvalidInput(f"the release has {size} value(s), expected at least two to estimate errors")
    return found


@suggest_parameters
def mean(released: ArrayLike, mechanism: Mechanism | Released, *, groups: Any = None) -> Estimate:
    r"""Estimate the mean of the labels behind a release of an unbiased mechanism by that of the released values.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        For a :class:`~optrand.studies.ContinuousMechanism` pass its ``mechanism``. Only
        :meth:`~optrand.estimate.Estimate.interval` is then valid, since `noise_variance` omits the rounding to knots.
    groups : array or frame, optional
        For a release by groups: the column that defined them, or a frame with such columns.

    Raises
    ------
    InvalidInput
        A biased mechanism, values that are not outputs of it, or fewer than two.

    Notes
    -----
    The mean noise variance of the rows, :math:`N^{-1} \sum_j \sigma^2(y_j)`, has the unbiased estimate

    .. math:: N^{-1} \sum_j v_j^2 - u(v_j), \qquad E[u(v) \mid y] = y^2,

    with ``u`` from :func:`optrand.estimate.unbiased_values`. It is clipped to the least and the largest variance of a
    label. For a singular mechanism there is no ``u``: the smaller of the sample variance and the largest variance of a
    label is used, and intervals are only too wide. In a release by groups the variances are those of the rows' own
    mechanisms: the noise of a group is independent of that of all others.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> weeks = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> mechanism = optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> found = mean(mechanism.sample(weeks, source=SeededEntropy(1)), mechanism)
    >>> low, high = found.table_interval(0.95)
    >>> bool(low < weeks.mean() < high), round(found.noise_error, 3)
    (True, 0.02)
    """
    return _estimate([_unbiased_part(*one) for one in tally(released, mechanism, groups)])


def _unbiased_part(mechanism: Mechanism, tallies: NDArray[np.intp]) -> _Part:
    """Use released values as estimates of the labels. Raise InvalidInput if they are biased."""
    bias, reach = mechanism.bias, float(np.ptp(mechanism.labels))
    if bias > UNBIASED * (reach or 1.0):
        raise InvalidInput(
            f"the mechanism is biased by up to {bias:.6g}, so the mean of released values is not an estimate: "
            "use average(released, mechanism, labels), which undoes the bias, or release with an unbiased mechanism"
        )
    try:
        noise = _noise_variance(Debiasing.of(mechanism), tallies, mechanism.outputs, mechanism.labels)
    except InvalidInput:
        noise = float(mechanism.table.variances.max())
        if tallies.sum() > 1:
            noise = min(noise, _sample_variance(tallies, mechanism.outputs))
    return _Part(tallies, mechanism.outputs, noise, bias)


@suggest_parameters
def average(
    released: ArrayLike,
    mechanism: Mechanism | Released,
    function: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    groups: Any = None,
) -> Estimate:
    """Estimate the average of any function of the labels behind a release, whether its mechanism is unbiased or not.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    function : (k,) array
        One number for each label, such as the labels' squares, or 1 for those in a class and 0 for the others.
    prior : (k,) array, optional
        Prior under which the variance is minimised, by default that of the mechanism's problem.
    groups : array or frame, optional
        As for :func:`mean`.

    Raises
    ------
    InvalidInput
        A singular mechanism, values that are not outputs of it, or a function whose squares overflow.

    Notes
    -----
    It is the mean of :func:`optrand.estimate.unbiased_values`, which have the least variance of all unbiased values, so
    even for the labels themselves it may be more precise than :func:`mean` if outputs outnumber labels.

    Examples
    --------
    Share of the second class, released by randomized response, which is biased:

    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> noisy = mechanism.sample(
    ...     np.repeat([0, 1, 2], [5000, 3000, 2000]), source=SeededEntropy(1)
    ... )
    >>> found = average(noisy, mechanism, [0, 1, 0])
    >>> low, high = found.table_interval(0.99)
    >>> low < 0.3 < high, round(found.noise_error, 4)
    (True, 0.012)
    """
    given = rectangular(function, "function", np.float64)
    parts = []
    for one, tallies in tally(released, mechanism, groups):
        if given.shape != one.labels.shape:
            raise InvalidInput(f"function has shape {given.shape}, expected {one.labels.shape}: one per label")
        check_squarable(given, "the numbers of the function")
        debiasing = Debiasing.of(one, prior)
        values = debiasing.values(given)
        check_squarable(values, "the unbiased values of the function")
        parts.append(_Part(tallies, values, _noise_variance(debiasing, tallies, values, given), 0.0))
    return _estimate(parts)


class _Part(NamedTuple):
    """Unbiased values of the outputs of one mechanism."""

    tallies: NDArray[np.intp]  # (n,): number of draws of each
    values: Floats  # (n,)
    noise: float  # mean variance of their noise
    bias: float  # upper bound of the remaining bias


def _estimate(parts: Sequence[_Part]) -> Estimate:
    tallies = np.concatenate([part.tallies for part in parts])
    values = np.concatenate([part.values for part in parts])
    size = int(tallies.sum())
    return Estimate(
        value=float(tallies @ values) / size,
        size=size,
        sample_variance=_sample_variance(tallies, values),
        noise_variance=sum(float(part.tallies.sum()) / size * part.noise for part in parts),
        low=float(values.min()),
        high=float(values.max()),
        bias=max(part.bias for part in parts),
    )


def _sample_variance(tallies: NDArray[np.intp], values: Floats) -> float:
    size = int(tallies.sum())
    return float(tallies @ (values - float(tallies @ values) / size) ** 2) / (size - 1)


def _noise_variance(debiasing: Debiasing, tallies: NDArray[np.intp], values: Floats, function: Floats) -> float:
    """Estimate the mean over the rows of the variance of `values`, whose expectation is `function`, given the label."""
    # Subtract the middle, so that a function with large values loses no digits.
    middle = float(function.mean())
    # Unbiased values of the squared function, since the labels are not known.
    squares = tallies @ debiasing.values((function - middle) ** 2) / tallies.sum()
    return float(debiasing.moments(tallies, values - middle, function - middle, squares)[1])
