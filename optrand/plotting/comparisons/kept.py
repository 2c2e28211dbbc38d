"""Number of labels that RRWithPrior keeps, and the gain by it ([G21], Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats, expect
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import prior as checked_prior
from optrand.closed_forms.response import kept_labels
from optrand.errors import InvalidInput
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light, logarithmic, looks

__all__ = ["rr_with_prior_figure"]

SHARPNESS = (0.5, 1.0, 2.0)
"""Powers of the prior that have a curve each."""

RANGE = (1 / 8, 8.0)
"""Ends of the axis of powers of the prior."""

EPSILONS = (0.05, 16.0)
POINTS = 161
SEPARATE = 60
"""Largest number of labels at which each `k` has a point of its own."""


def rr_with_prior_figure(
    prior: ArrayLike, *, epsilons: Iterable[float], ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    r"""Gain of RRWithPrior by the number of labels it keeps, and that number by epsilon and by the prior.

    With :math:`P_k` the sum of the `k` largest priors the first panel shows the probability

    .. math:: w_k = \frac{e^\epsilon P_k}{e^\epsilon + k - 1}

    that randomized response on the `k` likeliest labels returns the label. Its maximum, the large mark, is the `k` of
    RRWithPrior, and optimal (:func:`optrand.rr_with_prior`). The other panels show that `k` against epsilon and against
    the power `s` of a prior in proportion to :math:`p_y^s`.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels.
    epsilons : iterable of float
        In nats, one curve each in the first and last panel.

    Raises
    ------
    InvalidInput
        Too many curves.

    Examples
    --------
    >>> import optrand
    >>> prior = [0.5, 0.3, 0.2]
    >>> gain = rr_with_prior_figure(prior, epsilons=[1.0]).axes[0].lines[0].get_ydata()
    >>> gain.round(6).tolist()
    [0.5, 0.584847, 0.576117]
    >>> f"{optrand.certify(optrand.rr_with_prior(prior, 1.0)).require(gap=1e-12).lower:.6f}"
    '0.584847'
    """
    p = checked_prior(prior, np.size(prior))
    expect(epsilons, Iterable, "epsilons", "a list of numbers")
    budgets = [checked_epsilon(epsilon) for epsilon in epsilons]
    if not budgets:
        raise InvalidInput("epsilons is empty, expected at least one number")
    styles = looks(budgets, "epsilons")
    natural = (7.2, 3.4 + 0.17 * max(len(budgets), len(SHARPNESS)))
    with canvas(CURVES, ax, size, natural, title=title) as figure:
        gain, by_epsilon, by_sharpness = figure.subplots(1, 3)
        for look, epsilon in zip(styles, budgets, strict=True):
            _draw_gain(gain, p, epsilon, look)
            sharpness = np.geomspace(*RANGE, POINTS)
            chosen = _chosen(_sharpened(p, sharpness), epsilon)
            _draw_steps(by_sharpness, sharpness, chosen, {**look, "label": f"ε = {epsilon:g}"})
        _draw_chosen_by_epsilon(by_epsilon, p)
        gain.set(xlabel="k, number of labels kept", title="probability of the label, $w_k$")
        by_epsilon.set(xlabel="ε (nats)", title="chosen k by budget")
        by_sharpness.set(xlabel="sharpness s of the prior", title="chosen k by prior")
        gain.set_ylim(bottom=0)
        for axes in (by_epsilon, by_sharpness):
            axes.set_ylim(0.9, 1.1 * p.size)
            logarithmic(axes, y=True)
        for axes in (gain, by_epsilon, by_sharpness):
            logarithmic(axes)
            light(axes)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
        figure.suptitle(f"RRWithPrior on {p.size:,} labels")
    return figure


def _draw_gain(axes: Axes, p: Floats, epsilon: float, look: dict[str, Any]) -> None:
    k = np.arange(1, p.size + 1)
    gain = np.cumsum(np.sort(p)[::-1]) / (1 + (k - 1) * math.exp(-epsilon))
    best = int(_chosen(p[np.newaxis], epsilon)[0])
    small = {**look, "markersize": 2.5} if p.size <= SEPARATE else {**look, "marker": ""}
    axes.plot(k, gain, label="_w", **small)
    axes.plot(best, gain[best - 1], label=f"ε = {epsilon:g}: k = {best:,}", **{**look, "markersize": 7})


def _draw_chosen_by_epsilon(axes: Axes, p: Floats) -> None:
    epsilons = np.geomspace(*EPSILONS, POINTS)
    priors = _sharpened(p, np.array(SHARPNESS))
    chosen = np.array([_chosen(priors, float(epsilon)) for epsilon in epsilons])
    for look, power, counts in zip(looks(SHARPNESS, "priors"), SHARPNESS, chosen.T, strict=True):
        _draw_steps(axes, epsilons, counts, {**look, "label": f"s = {power:g}"})


def _draw_steps(axes: Axes, x: Floats, counts: NDArray[np.intp], look: dict[str, Any]) -> None:
    axes.plot(x, counts, drawstyle="steps-mid", markevery=POINTS // 8, **look)


def _sharpened(p: Floats, powers: Floats) -> Floats:
    """Powers of the prior, a row each, computed from logarithms so that no row vanishes."""
    logarithms = np.full((powers.size, p.size), -np.inf)
    logarithms[:, p > 0] = powers[:, np.newaxis] * np.log(p[p > 0] / p.max())
    weights = np.exp(logarithms)
    sharpened: Floats = weights / weights.sum(axis=1, keepdims=True)
    return sharpened


def _chosen(priors: Floats, epsilon: float) -> NDArray[np.intp]:
    """Number of labels that RRWithPrior keeps of each row."""
    chosen: NDArray[np.intp] = np.count_nonzero(kept_labels(priors, epsilon), axis=1)
    return chosen
