"""Loss, variance and bias of randomizers against epsilon, as in [B23], Figure 4(a)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, expect
from optrand.base.validation import epsilon as checked_epsilon
from optrand.base.validation import prior as checked_prior
from optrand.baselines import Moments
from optrand.errors import Infeasible, InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.randomizer import Randomizer
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light, logarithmic, looks
from optrand.plotting.style import spread

__all__ = ["Answer", "moments_figure"]


class HasMoments(Protocol):
    """Randomizer of any kind, such as additive noise, with moments at labels."""

    def moments(self, labels: ArrayLike, /) -> Moments:
        """Bias and variance at each label."""
        ...


Answer = Moments | Mechanism | Randomizer | HasMoments
"""Randomizers that can be drawn; a mechanism must be feasible for its own problem."""

PANELS = {
    "noisy label loss": "(label units, squared)",
    "standard deviation": "(label units)",
    "root mean squared bias": "(label units)",
}
"""Headings of the panels, and their units."""

ROUNDING = 1e-7
"""Share of the deviation below which a bias is rounding, and drawn as zero."""

TICKS = 6
"""Largest number of epsilons that have a tick."""


def moments_figure(
    randomizers: Mapping[str, Callable[[float], Answer]],
    prior: ArrayLike,
    *,
    epsilons: Iterable[float],
    labels: ArrayLike | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
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
    labels : (k,) array, optional
        At which moments are asked of a randomizer that has them, such as :class:`optrand.baselines.Laplace`.

    Raises
    ------
    InvalidInput
        An answer of another kind or for another number of labels, or too many curves.
    NotCertified
        A mechanism that is biased where its problem allows no bias.

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
    expect(randomizers, Mapping, "randomizers", "a dict of functions of epsilon by name")
    for name, function in randomizers.items():
        if not callable(function):
            raise InvalidInput(f"{name!r} is a {type(function).__name__}, expected a function of epsilon")
    expect(epsilons, Iterable, "epsilons", "a list of numbers")
    budgets = sorted(checked_epsilon(epsilon) for epsilon in epsilons)
    if not budgets:
        raise InvalidInput("epsilons is empty, expected at least one number")
    styles = looks(randomizers, "randomizers")
    weights = checked_prior(prior, np.size(prior))
    natural = (7.2, 3.0 + 0.17 * math.ceil(len(randomizers) / 3))
    with canvas(CURVES, ax, size, natural, title=title) as figure:
        panels = figure.subplots(1, 3)
        # Of many curves some lie close together: smaller marks leave more of each to be seen.
        mark = 4.5 if len(randomizers) <= 6 else 3.3
        for look, (name, function) in zip(styles, randomizers.items(), strict=True):
            means = _means(name, function, budgets, (weights, labels))
            for axes, amounts in zip(panels, means, strict=True):
                axes.plot(budgets, amounts, label=name, clip_on=False, markersize=mark, **look)
        for axes, (heading, unit) in zip(panels, PANELS.items(), strict=True):
            axes.set(title=heading, xlabel="ε (nats)", ylabel=unit)
            logarithmic(axes)
            _tick_budgets(axes, budgets)
            light(axes)
        for axes in panels[:2]:
            logarithmic(axes, y=True)
        panels[2].set_ylim(0, _top([line.get_ydata() for line in panels[2].lines]))
        figure.legend(handles=panels[0].lines, loc="outside lower center", ncols=min(3, len(randomizers)))
        figure.suptitle("What privacy costs, by randomizer: means under the prior")
    return figure


def _means(
    name: str, function: Callable[[float], Answer], budgets: Sequence[float], asked: tuple[Floats, ArrayLike | None]
) -> Floats:
    """Loss, deviation and bias at each epsilon, shape ``(3, number of epsilons)``; NaN where there is nothing to draw.

    A deviation or a loss of zero, which has no place on a logarithmic axis, is left out, too.
    """
    weights, labels = asked
    found = np.full((3, len(budgets)), math.nan)
    for place, epsilon in enumerate(budgets):
        try:
            answer = function(epsilon)
        except Infeasible:
            continue
        moments = _moments(name, answer, weights.size, labels)
        squared = float(weights @ np.where(weights > 0, moments.biases**2, 0.0))
        deviation, bias = math.sqrt(moments.variance(weights)), math.sqrt(squared)
        found[:, place] = moments.loss(weights), deviation, bias if bias > ROUNDING * deviation else 0.0
    found[~np.isfinite(found)] = math.nan
    found[:2][found[:2] <= 0] = math.nan
    return found


def _moments(name: str, answer: Answer, k: int, labels: ArrayLike | None) -> Moments:
    if isinstance(answer, Mechanism):
        answer.certificate.require(gap=math.inf)
        answer = answer.moments(answer.labels)
    elif isinstance(answer, Randomizer):
        answer = Moments(answer.biases, answer.variances)
    elif hasattr(answer, "moments") and not isinstance(answer, Moments):
        if labels is None:
            raise InvalidInput(
                f"{name!r} gave a {type(answer).__name__}, whose moments depend on the label: pass labels"
            )
        answer = answer.moments(labels)
    if not isinstance(answer, Moments):
        raise InvalidInput(
            f"{name!r} gave a {type(answer).__name__}, expected moments, a mechanism "
            "or another randomizer with moments for each epsilon"
        )
    if answer.biases.size != k:
        raise InvalidInput(f"{name!r} has {answer.biases.size} labels, expected {k}, as many as the prior")
    return answer


def _tick_budgets(axes: Axes, budgets: Sequence[float]) -> None:
    """Ticks at the epsilons that are drawn, or at some of them where they are many."""
    axes.set_xticks([budgets[place] for place in spread(len(budgets), TICKS)])
    axes.xaxis.set_minor_locator(NullLocator())


def _top(curves: Sequence[object]) -> float:
    """Top of an axis that begins at zero; 1 where all biases are zero."""
    amounts = np.concatenate([np.asarray(curve, dtype=np.float64) for curve in curves])
    return 1.05 * float(np.nanmax(amounts, initial=0.0)) or 1.0
