"""Prices of the best column at every output, which are zero at the outputs of an optimal randomizer.

The price :math:`f` and its proof: :func:`~optrand.plotting.dual_figure`, :mod:`optrand.certificates.certificate`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator

from optrand.base.validation import Floats
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.solution import Dual
from optrand.plotting.style import INK
from optrand.plotting.subject import counted

__all__ = ["best_prices", "draw_dual"]

POINTS = 800
"""Points at which a curve is evaluated, beside the outputs."""

NEARBY = 24
"""Largest number of outputs in one close look."""

LOOKS = 2
"""Largest number of close looks."""

APART = 6
"""Multiple of the median distance beyond which outputs are in separate clusters."""

BETWEEN = 12
"""Points of the curve of a close look between two neighbouring outputs."""

BLOCK = 1 << 21
"""Entries of the ``k x n`` arrays that are worked on at a time."""

FEW = 12
"""Number of outputs below which there is no close look."""

WHOLE = 60
"""Largest size of a grid that is shown whole."""

NOISE = 1e-13
"""Share of the multipliers below which a price is not shown as a height."""

SHADE = "#575d6d"


def best_prices(problem: Problem, dual: Dual, outputs: Floats) -> Floats:
    """Prices :math:`f` at some allowed outputs, in floats; cost ``O(n k)`` in blocks.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> coin = debiased_rr([0, 1], 1.0)
    >>> prices = best_prices(coin.problem, coin.dual, coin.randomizer.outputs)
    >>> bool(abs(prices).max() < 1e-15)
    True
    """
    step = max(1, BLOCK // problem.k)
    blocks = [outputs[start : start + step] for start in range(0, outputs.size, step)]
    return np.concatenate([_prices(problem, dual, block) for block in blocks])


def _prices(problem: Problem, dual: Dual, outputs: Floats) -> Floats:
    prior, alpha, beta = (array[:, np.newaxis] for array in (problem.prior, dual.alpha, dual.beta))
    reduced = np.where(prior > 0, prior * problem.loss_table(outputs), 0.0) - alpha - beta * (outputs - dual.origin)
    prices: Floats = reduced.sum(axis=0) + math.expm1(problem.epsilon) * np.minimum(reduced, 0).sum(axis=0)
    return prices


def draw_dual(figure: FigureBase, problem: Problem, dual: Dual, outputs: Floats) -> None:
    """Fill a figure with the curve over all outputs, and with close looks at some of them."""
    clusters = _clusters(outputs) if not isinstance(problem.outputs, Grid) else []
    names = [f"close {number}" for number in range(len(clusters))]
    layout: Any = [["all"] * max(1, len(names)), names][: 1 + bool(names)]
    panels = figure.subplot_mosaic(layout)
    margin = 0.15 * float(np.ptp(outputs)) or 1.0
    _draw_curve(panels["all"], problem, dual, outputs, margin)
    # Full-size marks of many outputs would be one black bar.
    _draw_outputs(panels["all"], outputs, 4.0 if outputs.size <= 100 else 2.0)
    for name, cluster in zip(names, clusters, strict=True):
        axes = panels[name]
        _draw_curve(axes, problem, dual, cluster, 0.03 * float(np.ptp(cluster)))
        _draw_outputs(axes, cluster, 4.0)
        axes.set_title(f"Close: {cluster.size:,} of {outputs.size:,} outputs")
        # As high as the curve rises between neighbours: beyond them it climbs on.
        between = np.linspace(cluster[:-1], cluster[1:], BETWEEN, axis=1).ravel()
        prices = best_prices(problem, dual, between)
        low, high = min(0.0, float(prices.min())), max(0.0, float(prices.max()))
        axes.set_ylim(low - 0.08 * (high - low), high + 0.25 * (high - low))
    for axes in panels.values():
        axes.axhline(0, color=INK, linewidth=0.6, zorder=1)
        axes.set_xlabel("output v (label units)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    panels["all"].set_title(counted(outputs.size, "output"))
    for name in ("all", *names[:1]):
        panels[name].set_ylabel("price f(v) (loss)")
    figure.legend(*panels[(names or ["all"])[-1]].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _draw_curve(axes: Axes, problem: Problem, dual: Dual, outputs: Floats, margin: float) -> None:
    """Draw :math:`f` around some outputs, wherever outputs are allowed."""
    if isinstance(problem.outputs, Grid) and problem.outputs.values.size <= WHOLE:
        outputs = problem.outputs.values
    ends = float(outputs[0]) - margin, float(outputs[-1]) + margin
    low, high = max(problem.outputs.low, ends[0]), min(problem.outputs.high, ends[1])
    if isinstance(problem.outputs, Grid):
        values = problem.outputs.values
        places = values[(values >= low) & (values <= high)]
        prices = best_prices(problem, dual, places)
        axes.vlines(places, 0, prices, color=SHADE, linewidth=0.6, zorder=1)
        look: Any = {"marker": "o", "markersize": 4.0 if places.size <= 100 else 1.5, "linestyle": ""}
    else:
        places = np.union1d(np.linspace(low, high, POINTS), outputs)
        if outputs.size <= NEARBY:
            places = np.union1d(places, np.linspace(outputs[:-1], outputs[1:], BETWEEN, axis=1).ravel())
        if problem.loss.positive_outputs:
            places = places[places > 0]
        prices, look = best_prices(problem, dual, places), {"linewidth": 1.1}
    axes.plot(places, prices, color=SHADE, label="price of the best column", **look)
    axes.set_xlim(ends)
    if float(np.abs(prices).max()) < NOISE * float(np.abs(dual.alpha).max()):
        axes.set_ylim(-0.1, 1)


def _draw_outputs(axes: Axes, outputs: Floats, size: float) -> None:
    look: Any = {"color": INK, "marker": "^", "markerfacecolor": "white", "linestyle": "", "zorder": 4}
    axes.plot(outputs, np.zeros(outputs.size), markersize=size, label="output of the randomizer", **look)


def _clusters(outputs: Floats) -> list[Floats]:
    """Clusters of outputs that lie close together, from low to high: those in the middle where they are many."""
    gaps = np.diff(outputs)
    if outputs.size < FEW:
        return []
    parts = np.split(outputs, np.flatnonzero(gaps > APART * np.median(gaps)) + 1)
    largest = sorted(parts, key=len)[-LOOKS:]
    middles = [part[max(0, part.size - NEARBY) // 2 :][:NEARBY] for part in largest if part.size > 1]
    return sorted(middles, key=lambda part: float(part[0]))
