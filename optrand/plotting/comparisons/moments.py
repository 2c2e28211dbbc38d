"""Loss, variance and bias of randomizers against epsilon, as in [B23], Figure 4(a)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from optrand.base.validation import Floats
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import prior as checked_prior
from optrand.baselines import Moments
from optrand.certificates.certificate import certify
from optrand.errors import Infeasible, InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.solution import Solution
from optrand.plotting.comparisons.curves import CURVES, light, logarithmic, looks

__all__ = ["Answer", "moments_figure"]

Answer = Moments | Solution | Mechanism
"""Randomizers that can be drawn; a solution or a mechanism must be feasible for its own problem."""

PANELS = ("noisy label loss", "standard deviation", "root mean squared bias")


def moments_figure(
    randomizers: Mapping[str, Callable[[float], Answer]], prior: ArrayLike, *, epsilons: Iterable[float]
) -> Figure:
    """Noisy label loss, standard deviation and bias against epsilon, one curve a randomizer.

    All are means under one prior; the loss is half the mean squared error, the sum of the squares in the other panels.

    Parameters
    ----------
    randomizers : mapping of names to functions of epsilon
        Functions return an :data:`Answer`. Where one raises `Infeasible`, or a moment is infinite, the curve has no
        point.
    prior : (k,) array
        Probabilities of the labels.
    epsilons : iterable of float
        In nats.

    Raises
    ------
    InvalidInput
        An answer of another kind or for another number of labels, or too many curves.
    NotCertified
        A solution or mechanism that is not private, or not feasible in another way.

    Examples
    --------
    >>> import optrand
    >>> labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    >>> optimal = lambda epsilon: optrand.solve(optrand.unbiased_regression(labels, prior, epsilon))
    >>> debiased = lambda epsilon: optrand.debiased_rr(labels, epsilon)
    >>> figure = moments_figure({"optimal unbiased": optimal, "debiased RR": debiased}, prior, epsilons=[0.5, 1, 2])
    >>> loss = figure.axes[0]
    >>> [f"{line.get_label()}: {line.get_ydata()[1]:.6f}" for line in loss.lines]
    ['optimal unbiased: 1.945447', 'debiased RR: 2.209143']
    """
    budgets = sorted(checked_epsilon(epsilon) for epsilon in epsilons)
    if not budgets:
        raise InvalidInput("epsilons is empty, expected at least one number")
    styles = looks(randomizers, "randomizers")
    weights = checked_prior(prior, np.size(prior))
    with matplotlib.rc_context(CURVES):
        figure = Figure(figsize=(7.2, 3.0 + 0.17 * math.ceil(len(randomizers) / 3)), layout="constrained")
        panels = figure.subplots(1, 3)
        # Of many curves some lie close together: smaller marks leave more of each to be seen.
        size = 4.5 if len(randomizers) <= 6 else 3.3
        for look, (name, function) in zip(styles, randomizers.items(), strict=True):
            means = _means(name, function, budgets, weights)
            for axes, amounts in zip(panels, means, strict=True):
                axes.plot(budgets, amounts, label=name, clip_on=False, markersize=size, **look)
        for axes, title in zip(panels, PANELS, strict=True):
            axes.set_title(title)
            axes.set_xlabel("ε")
            logarithmic(axes)
            light(axes)
        for axes in panels[:2]:
            logarithmic(axes, y=True)
        panels[2].set_ylim(0, 1.05 * _highest([line.get_ydata() for line in panels[2].lines]))
        figure.legend(handles=panels[0].lines, loc="outside lower center", ncols=min(3, len(randomizers)))
        figure.suptitle("What privacy costs, by randomizer: means under the prior")
    return figure


def _means(name: str, function: Callable[[float], Answer], budgets: Sequence[float], weights: Floats) -> Floats:
    """Loss, deviation and bias at each epsilon, shape ``(3, number of epsilons)``; NaN where there is nothing to draw.

    A deviation or a loss of zero, which has no place on a logarithmic axis, is left out, too.
    """
    found = np.full((3, len(budgets)), math.nan)
    for place, epsilon in enumerate(budgets):
        try:
            answer = function(epsilon)
        except Infeasible:
            continue
        moments = _moments(name, answer, weights.size)
        squared = float(weights @ np.where(weights > 0, moments.biases**2, 0.0))
        found[:, place] = moments.loss(weights), math.sqrt(moments.variance(weights)), math.sqrt(squared)
    found[~np.isfinite(found)] = math.nan
    found[:2][found[:2] <= 0] = math.nan
    return found


def _moments(name: str, answer: Answer, k: int) -> Moments:
    if isinstance(answer, (Solution, Mechanism)):
        certify(answer).require(gap=math.inf)
        if isinstance(answer, Mechanism):
            answer = answer.moments(answer.labels)
        else:
            answer = Moments(answer.randomizer.biases, answer.randomizer.variances)
    if not isinstance(answer, Moments):
        raise InvalidInput(
            f"{name!r} gave a {type(answer).__name__}, expected moments, a solution or a mechanism for each epsilon"
        )
    if answer.biases.size != k:
        raise InvalidInput(f"{name!r} has {answer.biases.size} labels, expected {k}, as many as the prior")
    return answer


def _highest(curves: Sequence[object]) -> float:
    """Top of an axis; biases that are only rounding lie at its bottom."""
    amounts = np.concatenate([np.asarray(curve, dtype=np.float64) for curve in curves])
    return max(float(np.nanmax(amounts, initial=0.0)), 1e-6)
