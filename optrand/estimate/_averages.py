"""Mean of the labels behind a release, or of any function of them, as an estimate with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base._validation import Floats, check_squarable, rectangular, suggest_parameters
from optrand.errors import InvalidInput
from optrand.estimate._debiasing import Debiasing
from optrand.estimate._intervals import Estimate
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released, drawn_by, mechanism_of

Tallied = tuple[Mechanism, NDArray[np.intp]]
"""Mechanism of a release, or of some of its groups, and how often it drew each of its outputs."""

UNBIASED = 1e-9
"""Largest share of the labels' range that counts as a rounded zero bias, as for certificates."""


def output_numbers(released: ArrayLike, mechanism: Mechanism | Released) -> NDArray[np.intp]:
    """Look up released values among the mechanism's outputs. Return indices in an array of the same shape.

    They are rows of :func:`optrand.estimate.loss_weights`, for instance.

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
            f"{strangers} of {values.size} released values are no outputs of the mechanism: pass the values that this "
            "mechanism drew, not rounded (a column read as 32-bit floats is)"
        )
    return numbers


def tally(released: ArrayLike, mechanism: Mechanism | Released, groups: Any = None) -> list[Tallied]:
    """Count the outputs of each mechanism of a release of at least two values."""
    found = []
    for one, values in drawn_by(released, mechanism, groups):
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

    with ``u`` of :func:`optrand.estimate.unbiased_values`; it is kept between the least and the largest variance of a
    label. For a singular mechanism there is no ``u``: the smaller of the sample variance and the largest variance of a
    label is used, and intervals are only too wide. In a release by groups the variances are those of the rows' own
    mechanisms: the noise of a group is independent of that of all others.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> weeks = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> mechanism = optrand.solve(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0))
    >>> optrand.certify(mechanism).require(gap=1e-9).bias < 1e-14
    True
    >>> found = mean(mechanism.sample(weeks, source=SeededEntropy(1)), mechanism)
    >>> low, high = found.table_interval(0.95)
    >>> (
    ...     bool(low < weeks.mean() < high),
    ...     round(found.noise_error, 3),
    ...     round(found.standard_error, 3),
    ... )
    (True, 0.02, 0.021)
    """
    return _estimate([_unbiased_part(*one) for one in tally(released, mechanism, groups)])


def _unbiased_part(mechanism: Mechanism, tallies: NDArray[np.intp]) -> _Part:
    """Take released values as estimates of the labels. Raise if they are biased."""
    bias, reach = mechanism.bias, float(np.ptp(mechanism.labels))
    if bias > UNBIASED * (reach or 1.0):
        raise InvalidInput(
            f"the mechanism is biased by up to {bias:.6g}, so the mean of released values is no estimate: use "
            "average(released, mechanism, labels), which undoes the bias, or release with an unbiased mechanism"
        )
    try:
        debiasing = Debiasing.of(mechanism)
    except InvalidInput:
        most = float(mechanism.table.variances.max())
        noise = min(_sample_variance(tallies, mechanism.outputs), most) if tallies.sum() > 1 else most
    else:
        noise = _noise_variance(debiasing, tallies, mechanism.outputs, mechanism.labels)
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
        One number for each label: the labels' squares, say, or 1 for those in a class and 0 for the others.
    prior : (k,) array, optional
        Prior under which the variance is minimised; by default that of the mechanism's problem.
    groups : array or frame, optional
        As for :func:`mean`.

    Raises
    ------
    InvalidInput
        A singular mechanism, values that are not outputs of it, or a function whose squares overflow.

    Notes
    -----
    The mean of :func:`optrand.estimate.unbiased_values`. These have the least variance of all unbiased values, so even
    for the labels themselves this may be more precise than :func:`mean` if outputs outnumber labels.

    Examples
    --------
    Share of the second class, released by randomized response, which is biased:

    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> optrand.certify(mechanism).epsilon
    1.0
    >>> classes = np.repeat([0, 1, 2], [5000, 3000, 2000])
    >>> found = average(
    ...     mechanism.sample(classes, source=SeededEntropy(1)), mechanism, [0, 1, 0]
    ... )
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

    tallies: NDArray[np.intp]  # (n,): how often each was drawn
    values: Floats  # (n,)
    noise: float  # mean variance of their noise
    bias: float  # largest remaining one


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
    squares, target = (values - middle) ** 2, (function - middle) ** 2
    variances = debiasing.expectations(squares) - target
    # E[w**2] - f**2, with the unbiased value of f**2: no label need be known.
    found = float(tallies @ (squares - debiasing.values(target))) / float(tallies.sum())
    return float(np.clip(found, max(0.0, variances.min()), max(0.0, variances.max())))
