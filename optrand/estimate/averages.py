"""Mean of the labels behind a release, or of any function of them, as an estimate with intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, squarable
from optrand.errors import InvalidInput
from optrand.estimate.debiasing import Debiasing
from optrand.estimate.intervals import Estimate
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.released import Released, mechanism_of

__all__ = ["average", "mean", "output_numbers", "tallied"]

UNBIASED = 1e-9
"""Largest share of the labels' range that counts as a rounded zero bias, as for certificates."""


def output_numbers(released: ArrayLike, mechanism: Mechanism | Released) -> NDArray[np.intp]:
    """Indices of released values among the mechanism's outputs, in an array of the same shape.

    They are rows of :func:`optrand.estimate.loss_weights`, for instance.

    Raises
    ------
    InvalidInput
        Values that are no outputs of the mechanism; the message counts them.

    Examples
    --------
    >>> import optrand
    >>> coin = optrand.tabulate(optrand.rr([3, 7], 1.0))
    >>> output_numbers([7, 3, 3], coin)
    array([1, 0, 0])
    """
    given = np.asarray(mechanism.numbers(released) if isinstance(mechanism, Released) else released)
    mechanism = mechanism_of(mechanism)
    if given.dtype.kind not in "iuf":
        raise InvalidInput(f"released values are of type {given.dtype}, expected numbers: outputs of the mechanism")
    values = given.astype(np.float64)
    numbers = np.minimum(np.searchsorted(mechanism.outputs, values), mechanism.outputs.size - 1)
    strangers = int((mechanism.outputs[numbers] != values).sum())
    if strangers:
        raise InvalidInput(
            f"{strangers} of {values.size} released values are no outputs of the mechanism: pass what this very "
            "mechanism drew, not rounded (a column read as 32-bit floats is)"
        )
    return numbers


def tallied(released: ArrayLike, mechanism: Mechanism | Released) -> NDArray[np.intp]:
    """Counts of the mechanism's outputs in a release of at least two values."""
    numbers = output_numbers(released, mechanism)
    mechanism = mechanism_of(mechanism)
    if numbers.size < 2:
        raise InvalidInput(
            f"the release has {numbers.size} value(s), expected at least two: one says nothing of errors"
        )
    return np.bincount(numbers.ravel(), minlength=mechanism.outputs.size)


def mean(released: ArrayLike, mechanism: Mechanism | Released) -> Estimate:
    r"""Mean of the labels behind a release of an unbiased mechanism: the mean of the released values.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        Of a :class:`~optrand.studies.ContinuousMechanism` its ``mechanism``, for which only
        :meth:`~optrand.estimate.Estimate.interval` is right: `noise_variance` leaves out the rounding to knots.

    Raises
    ------
    InvalidInput
        A biased mechanism, values that are no outputs of it, or fewer than two.

    Notes
    -----
    The mean noise variance of the rows, :math:`N^{-1} \sum_j \sigma^2(y_j)`, has the unbiased estimate

    .. math:: N^{-1} \sum_j v_j^2 - u(v_j), \qquad E[u(v) \mid y] = y^2,

    with ``u`` of :func:`optrand.estimate.unbiased_values`; it is kept between the least and the largest variance of a
    label. For a singular mechanism there is no ``u``: the smaller of the sample variance and the largest variance of a
    label is used, and intervals are only too wide.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> weeks = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> mechanism = optrand.tabulate(optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)))
    >>> optrand.certify(mechanism).require(gap=1e-9).bias < 1e-14
    True
    >>> found = mean(mechanism.sample(weeks, source=SeededEntropy(1)), mechanism)
    >>> low, high = found.table_interval(0.95)
    >>> bool(low < weeks.mean() < high), round(found.noise_error, 3), round(found.standard_error, 3)
    (True, 0.02, 0.021)
    """
    tallies = tallied(released, mechanism)
    mechanism = mechanism_of(mechanism)
    bias, reach = mechanism.bias, float(np.ptp(mechanism.labels))
    if bias > UNBIASED * (reach or 1.0):
        raise InvalidInput(
            f"the mechanism is biased by up to {bias:.6g}, so the mean of what it released estimates nothing: use "
            "average(released, mechanism, labels), which undoes the bias, or release with an unbiased mechanism"
        )
    try:
        debiasing = Debiasing.of(mechanism)
    except InvalidInput:
        sample = _sample_variance(tallies, mechanism.outputs)
        noise = min(sample, float(mechanism.randomizer.variances.max()))
    else:
        noise = _noise_variance(debiasing, tallies, mechanism.outputs, mechanism.labels)
    return _estimate(tallies, mechanism.outputs, noise, bias=bias)


def average(
    released: ArrayLike, mechanism: Mechanism | Released, function: ArrayLike, *, prior: ArrayLike | None = None
) -> Estimate:
    """Average of any function of the labels behind a release, whether its mechanism is unbiased or not.

    Parameters
    ----------
    released : array of outputs, any shape
        At least two.
    mechanism : Mechanism or ReleaseRecord
        Its table must not be singular.
    function : (k,) array
        One number for each label: the labels' squares, say, or 1 for those in a class and 0 for the others.
    prior : (k,) array, optional
        Under which the variance is least; by default that of the mechanism's problem.

    Raises
    ------
    InvalidInput
        A singular mechanism, values that are no outputs of it, or a function whose squares overflow.

    Notes
    -----
    The mean of :func:`optrand.estimate.unbiased_values`. Of all unbiased values these have the least variance, so even
    for the labels themselves this may be more precise than :func:`mean` where outputs outnumber labels.

    Examples
    --------
    Share of the second class, released by randomized response, which is biased:

    >>> import numpy as np, optrand
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> mechanism = optrand.tabulate(optrand.rr([0, 1, 2], 1.0))
    >>> optrand.certify(mechanism).epsilon
    1.0
    >>> classes = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> found = average(mechanism.sample(classes, source=SeededEntropy(1)), mechanism, [0, 1, 0])
    >>> low, high = found.table_interval(0.99)
    >>> low < 0.3 < high, round(found.noise_error, 4)
    (True, 0.012)
    """
    tallies = tallied(released, mechanism)
    mechanism = mechanism_of(mechanism)
    debiasing = Debiasing.of(mechanism, prior)
    given = np.asarray(function, dtype=np.float64)
    if given.shape != mechanism.labels.shape:
        raise InvalidInput(f"function has shape {given.shape}, expected {mechanism.labels.shape}: a number a label")
    squarable(given, "the numbers of the function")
    values = debiasing.values(given)
    squarable(values, "the unbiased values of the function")
    return _estimate(tallies, values, _noise_variance(debiasing, tallies, values, given), bias=0.0)


def _estimate(tallies: NDArray[np.intp], values: Floats, noise: float, *, bias: float) -> Estimate:
    size = int(tallies.sum())
    return Estimate(
        value=float(tallies @ values) / size,
        size=size,
        sample_variance=_sample_variance(tallies, values),
        noise_variance=noise,
        low=float(values.min()),
        high=float(values.max()),
        bias=bias,
    )


def _sample_variance(tallies: NDArray[np.intp], values: Floats) -> float:
    size = int(tallies.sum())
    return float(tallies @ (values - float(tallies @ values) / size) ** 2) / (size - 1)


def _noise_variance(debiasing: Debiasing, tallies: NDArray[np.intp], values: Floats, function: Floats) -> float:
    """Mean over the rows of the variance of `values`, whose expectation is `function`, given the row's label."""
    # Around the middle, so that a function with large values loses no digits.
    middle = float(function.mean())
    squares, target = (values - middle) ** 2, (function - middle) ** 2
    variances = debiasing.expectations(squares) - target
    found = float(tallies @ (squares - debiasing.values(target))) / float(tallies.sum())
    return float(np.clip(found, max(0.0, variances.min()), max(0.0, variances.max())))
