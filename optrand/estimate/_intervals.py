r"""Estimates of averages with intervals: approximate ones, and bounds that hold at any size.

Released values are independent given the labels, and an estimate is the average of ``N`` of them, or of one number per
value. It estimates the average over the released *table*, whose labels are fixed, and over the *population* from which
the rows are a random sample. Only the noise of the mechanism makes the first uncertain. The spread of the labels adds
to the uncertainty of the second:

.. math:: \mathrm{Var}(w) = E[\mathrm{Var}(w \mid y)] + \mathrm{Var}(E[w \mid y]).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.special import stdtrit

from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import check_real
from optrand.errors import InvalidInput


@dataclass(frozen=True)
class Spread:
    """Sample size, variances and range, from which the width of an interval is computed.

    Attributes
    ----------
    size : int
        Number of independent numbers that were averaged.
    variance : float
        Estimate of the mean of their variances.
    sample_variance : float
        Their sample variance, whose expectation is no smaller.
    width : float
        Width of a range that holds all of them for sure.
    """

    size: int
    variance: float
    sample_variance: float
    width: float


IntervalMethod = Callable[[Spread, float], float]
"""Half the width of an interval, from a spread and the confidence."""


def normal(spread: Spread, confidence: float) -> float:
    """Compute the half-width by the central limit theorem, with Student's quantiles: optimistic for few rows.

    If the outputs are skewed, as at small epsilon, a few hundred rows are not enough.

    Examples
    --------
    >>> round(
    ...     normal(Spread(size=10_000, variance=4.0, sample_variance=5.0, width=8.0), 0.95), 6
    ... )
    0.039204
    """
    quantile = float(stdtrit(spread.size - 1, (1 + confidence) / 2))
    return quantile * math.sqrt(spread.variance / spread.size)


def hoeffding(spread: Spread, confidence: float) -> float:
    r"""Compute the half-width by Hoeffding's bound ([H63]): it holds at any number of rows, whatever the labels.

    .. math:: \mathrm{width} \sqrt{\ln(2 / \delta) / 2 N}, \qquad \delta = 1 - \mathrm{confidence}.

    Examples
    --------
    >>> round(
    ...     hoeffding(Spread(size=10_000, variance=4.0, sample_variance=5.0, width=8.0), 0.95),
    ...     6,
    ... )
    0.108648
    """
    return spread.width * math.sqrt(math.log(2 / (1 - confidence)) / (2 * spread.size))


def empirical_bernstein(spread: Spread, confidence: float) -> float:
    r"""Compute the half-width by the empirical Bernstein bound ([MP09]): valid at any size, narrow at small variance.

    .. math:: \sqrt{2 V \ln(4 / \delta) / N} + \mathrm{width} \cdot 7 \ln(4 / \delta) / 3 (N - 1),
              \qquad \delta = 1 - \mathrm{confidence},

    with the sample variance ``V``; each side holds with probability :math:`1 - \delta / 2`. Stated for values of one
    distribution, it holds for independent ones: Bennett's inequality then has the mean of their variances, and the
    expectation of ``V`` is no smaller.

    Examples
    --------
    >>> round(
    ...     empirical_bernstein(
    ...         Spread(size=10_000, variance=4.0, sample_variance=5.0, width=8.0), 0.95
    ...     ),
    ...     6,
    ... )
    0.074377
    """
    log = math.log(4 / (1 - confidence))
    return math.sqrt(2 * spread.sample_variance * log / spread.size) + 7 * spread.width * log / (3 * (spread.size - 1))


@suggest_attributes(
    {
        "value": "estimate mean",
        "standard_error": "se std stderr",
        "interval(0.95)": "ci conf_int confidence_interval",
    }
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
        Ends of a range that holds each of those numbers for sure.
    bias : float
        Upper bound of the bias of `value`; intervals are widened by it.

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
            :func:`normal`; or :func:`hoeffding` or :func:`empirical_bernstein`, which keep the confidence at any size.
        """
        return self._around(self.sample_variance, confidence, method)

    def table_interval(self, confidence: float, *, method: IntervalMethod = normal) -> tuple[float, float]:
        """Compute an interval for the average over the released rows, with the arguments of :meth:`interval`."""
        return self._around(self.noise_variance, confidence, method)

    def _around(self, variance: float, confidence: float, method: IntervalMethod) -> tuple[float, float]:
        level = check_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidInput(f"confidence is {level:g}, expected a number between 0 and 1, such as 0.95")
        spread = Spread(self.size, variance, self.sample_variance, self.high - self.low)
        reach = method(spread, level) + self.bias
        return self.value - reach, self.value + reach
