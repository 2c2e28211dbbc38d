"""Probability mass functions of labels: stems on the line of outputs, as in [B23], Figure 2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from optrand.model.randomizer import Randomizer
from optrand.plotting.cells import row_chances
from optrand.plotting.style import INK, MARKS, number_texts

__all__ = ["PANELS", "draw_pmfs"]

PANELS = 6
"""Largest number of labels whose probability mass functions are shown."""

STEMS = 1000
"""Largest number of outputs that have a stem each; more are counted in bins."""

BINS = 120

SPARSE = 60
"""Number of outputs up to which stems are as wide as their marks allow; of more they are hair lines."""

LABEL: Any = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 1}
MEAN: Any = {"color": INK, "marker": "^", "markerfacecolor": "white", "markersize": 5, "linestyle": ""}


def draw_pmfs(figure: FigureBase, table: Randomizer, shown: NDArray[np.intp], *, means: bool) -> str:
    """Fill a figure with stems for some of the labels, in panels that share both axes; returns the labels in words."""
    names = number_texts(table.labels[shown])
    binned = table.n > STEMS
    centres = table.means if means else np.zeros(table.k)
    panels = figure.subplots(len(shown), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, row, name in zip(panels, shown.tolist(), names, strict=True):
        axes.axvline(table.labels[row], label="the label", **LABEL)
        if means:
            axes.plot(centres[row], 0, label="mean output", clip_on=False, zorder=4, **MEAN)
        axes.set_ylabel(f"{'label' if means else 'class'} {name}", rotation="horizontal", ha="right", va="center")
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.spines[["top", "right"]].set_visible(False)
    if binned:
        highest = _draw_bins(panels, table, shown)
        letters = set[str]()
    else:
        highest = float(table.matrix[shown].max())
        letters = _draw_all_stems(panels, table, shown)
    every = np.concatenate((table.outputs, table.labels))
    margin = 0.04 * float(np.ptp(every)) or 0.5
    panels[0].set_xlim(every.min() - margin, every.max() + margin)
    panels[0].set_ylim(0, 1.12 * highest)
    panels[-1].set_xlabel("output (label units)" if means else "class that is released")
    if not means:
        panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.supylabel(f"probability of the output{'s of a bin' if binned else ''}", fontsize=9)
    _name_the_marks(figure, letters, means)
    listed = ("Label " if len(shown) == 1 else "Labels ") + ", ".join(names)
    listed += f" of {table.k:,}" if len(shown) < table.k else ""
    return listed + (f"; {table.n:,} outputs in {BINS} bins" if binned else "")


def _draw_bins(panels: NDArray[Any], table: Randomizer, shown: NDArray[np.intp]) -> float:
    """Draw the probability of all outputs in each of :data:`BINS` bins of one width; returns the highest."""
    edges = np.linspace(table.outputs[0], table.outputs[-1], BINS + 1)
    where = np.clip(np.searchsorted(edges, table.outputs, side="right") - 1, 0, BINS - 1)
    heights = [np.bincount(where, row_chances(table, row), BINS) for row in shown.tolist()]
    for axes, chances in zip(panels, heights, strict=True):
        axes.stairs(chances, edges, fill=True, color="#707070", label="bins", zorder=2)
    return float(np.max(heights))


def _draw_all_stems(panels: NDArray[Any], table: Randomizer, shown: NDArray[np.intp]) -> set[str]:
    """Draw a stem for every output of every panel; returns the letters that occur."""
    signature = table.signature()[shown]
    for axes, row, letters in zip(panels, shown.tolist(), signature, strict=True):
        _draw_stems(axes, table, row, letters)
    return set(signature.ravel().tolist())


def _draw_stems(axes: Axes, table: Randomizer, row: int, letters: NDArray[np.str_]) -> None:
    # A thousand stems with full-size markers would be one black bar.
    size = float(np.clip(25 / math.sqrt(table.n), 1.2, 4.5))
    width = 0.25 * size if table.n <= SPARSE else 0.3
    for mark in MARKS:
        at = letters == mark.letter
        # An empty line that is not clipped would count as a point in the corner of the picture.
        if at.any():
            outputs, chances = table.outputs[at], table.matrix[row, at]
            axes.vlines(outputs, 0, chances, color=mark.stem, linewidth=width, label=mark.letter)
            ends: Any = {
                "marker": mark.marker,
                "markerfacecolor": mark.fill,
                "markersize": size,
                "markeredgewidth": 0.6,
            }
            axes.plot(outputs, chances, linestyle="", color=INK, clip_on=False, label=mark.letter, **ends)


def _name_the_marks(figure: FigureBase, letters: set[str], means: bool) -> None:
    handles = [Line2D([], [], label="the label", **LABEL)]
    if means:
        handles.append(Line2D([], [], label="mean output", **MEAN))
    handles += [
        Line2D([], [], color=INK, marker=m.marker, markerfacecolor=m.fill, linestyle="", markersize=4, label=m.meaning)
        for m in reversed(MARKS)
        if m.letter in letters
    ]
    columns = 2 if len(handles) == 4 else 3
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, handletextpad=0.4, columnspacing=1.5)
