"""Bins and outputs of a mechanism against its public phase."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.phases import Phases, phases_of
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.style import INK, STYLE, line_edges, spread
from optrand.plotting.subject import counted, has_means

__all__ = ["phases_figure"]

FEWEST, MOST = 8, 400
"""Phases with bins of their own are all shown up to some number between these; of more, so many evenly spread ones."""

PIECES = 20_000
"""Largest number of bins of all phases, which sets that number where bins are many."""

SHADES = "cividis_r"

BORDERED = 60
"""Largest number of bins with lines between them."""

WIDE = 16
"""Largest number of bins whose lines are of full width; of more they are thinner in proportion."""

PHASE = "public phase, as a share of the delay"

ROWS = 800
"""Largest number of labels that bins are drawn with."""


def phases_figure(subject: Mechanism, *, ax: Place = None, title: bool = True, size: Size = None) -> FigureBase:
    """Bins of a mechanism and their outputs against the public phase; above, the density of the phase.

    At a phase, a number from 0 to 1 that is drawn whatever the label is, the labels from bottom to top are in bins, one
    shade each. Beside them are the outputs of these bins, on the axis of the labels and in the same shades: the output
    of the label's own bin is ``exp(epsilon)`` times as likely as each other one. A border that leaves at phase 1 comes
    back at phase 0 (``docs/mathematics.md``, Proposition 20). The density is that of the phase, and 1 where all phases
    are equally likely.

    Parameters
    ----------
    subject : Mechanism
        With interval columns on a monotone path (:func:`optrand.mechanism.phases.phases_of`).

    Raises
    ------
    InvalidInput
        A mechanism of classes, one that is a table, or one whose columns are on no monotone path.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> phases_figure(optrand.solve(problem)).get_suptitle()
    'Randomized response on 2 or 3 bins at a public phase: 4 labels, ε = 2'
    """
    if not isinstance(subject, Mechanism):
        raise InvalidInput(f"phases need a mechanism, in integers, not a {type(subject).__name__}: solve(problem)")
    if not has_means(subject):
        raise InvalidInput("classes have no order, and so no phases: draw a pmf or the matrix")
    found = _Cells.of(phases_of(subject))
    low, high = float(np.nanmin(found.answers)), float(np.nanmax(found.answers))
    norm = Normalize(low, high) if low < high else Normalize(low - 1, high + 1)
    with canvas(STYLE, ax, size, (7.2, 4.6), title=title) as figure:
        grid = figure.add_gridspec(2, 2, height_ratios=(1, 7))
        _draw_density(figure.add_subplot(grid[0, 0]), found)
        _draw_bins(figure.add_subplot(grid[1, 0]), found, norm)
        _draw_outputs(figure.add_subplot(grid[:, 1]), found, norm)
        figure.legend(
            handles=[
                Line2D([], [], color=INK, linewidth=1.1, label="border of bins, whose shades are their outputs"),
                Line2D([], [], color=INK, linewidth=0.8, linestyle=":", label="uniform density; first and last label"),
            ],
            loc="outside lower center",
            ncols=2,
        )
        figure.suptitle(_caption(found), fontsize=9)
    return figure


@dataclass(frozen=True, eq=False)
class _Cells:
    """Bins at the phases that are shown.

    `edges` are phases from 0 to 1. At each cell between two of them the bins of a phase are shown: `first` labels and
    `outputs` of the bins in a row each, filled up with the number of labels and with nan; `density` is that of the
    phase.
    """

    phases: Phases
    edges: Floats
    first: NDArray[np.intp]
    answers: Floats
    density: Floats
    exact: bool

    @classmethod
    def of(cls, phases: Phases) -> _Cells:
        delay = phases.delay
        shown = sorted({time % delay for time in phases.times})
        edges = np.array([*(start / delay for start in shown), 1.0])
        most = max(FEWEST, min(MOST, PIECES * delay // phases.total))
        exact = len(shown) <= most
        if not exact:
            edges = np.linspace(0, 1, most + 1)
            shown = [(2 * cell + 1) * delay // (2 * most) for cell in range(most)]
        bins = [phases.bins(theta) for theta in shown]
        first = np.full((len(bins), max(map(len, bins))), phases.labels.size)
        answers = np.full(first.shape, np.nan)
        for cell, each in enumerate(bins):
            first[cell, : len(each)], answers[cell, : len(each)] = each.first, each.outputs
        density = [phases.weight(theta) * delay / phases.row_total for theta in shown]
        return cls(phases, edges, first, answers, np.array(density), exact)

    @property
    def thinned(self) -> float:
        """Width of lines, as a share of that where bins are few."""
        return min(1.0, WIDE / len(self.first.T))

    @cached_property
    def sides(self) -> Floats:
        """Borders between labels, halfway, and as far beyond both ends."""
        return line_edges(self.phases.labels)


def _draw_density(axes: Axes, cells: _Cells) -> None:
    axes.stairs(cells.density, cells.edges, fill=True, color="#c8c8c8", label="density of the phase")
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1.2 * float(cells.density.max())), yticks=[0, 1], ylabel="density")
    axes.tick_params(labelbottom=False)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_bins(axes: Axes, cells: _Cells, norm: Normalize) -> None:
    k = cells.phases.labels.size
    rows = spread(k, ROWS)
    own = np.array([np.searchsorted(first, rows, side="right") - 1 for first in cells.first])
    picture = np.take_along_axis(cells.answers, own, axis=1).T
    sides = cells.sides[np.concatenate(([0], (rows[1:] + rows[:-1] + 1) // 2, [k]))]
    axes.pcolormesh(cells.edges, sides, picture, cmap=SHADES, norm=norm, rasterized=True)
    borders = cells.sides[cells.first]
    if cells.first.shape[1] <= BORDERED:
        lines = _steps(cells.edges, borders[:, 1:], np.ones(len(borders) - 1, dtype=np.bool_))
        axes.add_collection(
            LineCollection(lines, colors="white", linewidths=2.2 * cells.thinned, label="under the borders")
        )
        axes.add_collection(LineCollection(lines, colors=INK, linewidths=1.1 * cells.thinned, label="borders of bins"))
    axes.set(xlim=(0, 1), ylim=cells.sides[[0, -1]], xlabel=PHASE, ylabel="label (label units)")


def _draw_outputs(axes: Axes, cells: _Cells, norm: Normalize) -> None:
    lines = _steps(cells.edges, cells.answers, np.diff(cells.density) == 0)
    axes.add_collection(
        LineCollection(lines, colors=INK, linewidths=3.0 * cells.thinned, capstyle="round", label="under the outputs")
    )
    pieces = np.concatenate([np.stack((line[:-1], line[1:]), axis=1) for line in lines])
    drawn = LineCollection(
        list(pieces), cmap=SHADES, norm=norm, linewidths=1.8 * cells.thinned, capstyle="round", label="outputs"
    )
    drawn.set_array(pieces[:, :, 1].mean(axis=1))
    axes.add_collection(drawn)
    for end in cells.phases.labels[[0, -1]]:
        axes.axhline(end, color=INK, linewidth=0.8, linestyle=":", zorder=0)
    axes.set(xlim=(0, 1), xlabel=PHASE, ylabel="output (label units)")
    axes.margins(y=0.03)
    axes.autoscale_view(scalex=False)
    axes.spines[["top", "right"]].set_visible(False)


def _steps(edges: Floats, heights: Floats, joined: NDArray[np.bool_]) -> list[Floats]:
    """Lines that are level between edges, one or more a column; cut where cells are not joined, none where nan."""
    cuts = [0, *(np.flatnonzero(~joined) + 1).tolist(), len(heights)]
    lines = []
    for start, end in pairwise(cuts):
        x = np.repeat(edges[start : end + 1], 2)[1:-1]
        lines += [np.stack((x, np.repeat(column, 2)), axis=1) for column in heights[start:end].T]
    return [line for line in lines if not np.isnan(line).any()]


def _caption(cells: _Cells) -> str:
    phases = cells.phases
    few, many = -(-phases.total // phases.delay) - (phases.total % phases.delay > 0), -(-phases.total // phases.delay)
    bins = counted(many, "bin") if few == many else f"{few:,} or {many:,} bins"
    title = f"Randomized response on {bins} at a public phase: {counted(phases.labels.size, 'label')}, "
    title += f"ε = {math.log(phases.ratio):g}"
    return title if cells.exact else f"{title}\ndrawn at {cells.density.size} phases, evenly spread"
