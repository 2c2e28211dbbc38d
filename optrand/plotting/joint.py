"""Joint distribution of label and noisy label, as in [B23], Figure 3, with both margins."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats
from optrand.model.randomizer import Randomizer
from optrand.plotting.canvas import chosen
from optrand.plotting.cells import group_edges, grouped_rows
from optrand.plotting.style import INK, line_edges, log_shades, number_texts

__all__ = ["draw_joint"]

GROUPS = 120
"""Largest number of columns: groups of neighbouring labels."""

BINS = 90
"""Number of rows: bins of one width for noisy labels."""

FEW = 20
"""Number of evenly spaced outputs above which bins are as wide as their distance, or a multiple of it."""

DECADES = 5
"""Powers of ten from the likeliest cell down to the lightest shade."""


def draw_joint(figure: FigureBase, table: Randomizer, prior: Floats, wanted: ArrayLike | None = None) -> str:
    """Fill a figure with the heat map and its margins; returns the sizes of its cells in words."""
    groups = group_edges(table.k, GROUPS)
    sides = line_edges(table.labels)[groups]
    levels = _bin_edges(table)
    joint = _binned(table, grouped_rows(table, prior, groups), levels)
    axes = figure.subplot_mosaic(
        [["prior", "."], ["joint", "noisy"]], width_ratios=[5, 1], height_ratios=[1, 4.6], empty_sentinel="."
    )
    heat, top, right = axes["joint"], axes["prior"], axes["noisy"]
    for margin, shared in ((top, heat.xaxis), (right, heat.yaxis)):
        margin.spines[["top", "right"]].set_visible(False)
        (margin.sharex if shared is heat.xaxis else margin.sharey)(heat)
    shades = matplotlib.colormaps["cividis_r"].with_extremes(bad="white", under="white")
    high = float(joint.max())
    low = max(float(joint[joint > 0].min()), high / 10**DECADES)
    norm, ticks = log_shades(low, high)
    mesh = heat.pcolormesh(sides, levels, np.ma.masked_less_equal(joint.T, 0), cmap=shades, norm=norm, rasterized=True)
    ends = [table.labels[0], table.labels[-1]]
    heat.plot(ends, ends, color="white", linewidth=2.2, label="under the diagonal")
    heat.plot(ends, ends, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label="noisy label = label")
    heat.set(xlabel="label", ylabel="noisy label (label units)", xlim=sides[[0, -1]], ylim=levels[[0, -1]])
    if wanted is not None:
        rows = chosen(table.labels, wanted, table.k)
        heat.set_xticks(table.labels[rows], number_texts(table.labels[rows]))
    top.stairs(joint.sum(axis=1), sides, color=INK, fill=True)
    top.set_ylabel("prior")
    right.stairs(joint.sum(axis=0), levels, color=INK, fill=True, orientation="horizontal")
    right.set_xlabel("probability")
    top.tick_params(labelbottom=False)
    right.tick_params(labelleft=False)
    top.yaxis.set_major_locator(MaxNLocator(2))
    right.xaxis.set_major_locator(MaxNLocator(2))
    bar = figure.colorbar(mesh, ax=list(axes.values()), location="bottom", aspect=45, pad=0.02)
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.minorticks_off()
    bar.set_label("probability of a cell (logarithmic shades)")
    grouped = f", labels in groups of up to {np.diff(groups).max():,}" if groups.size <= table.k else ""
    return f"noisy labels in {levels.size - 1} bins{grouped}; dashed: noisy label = label"


def _bin_edges(table: Randomizer) -> Floats:
    """Bins of one width around all outputs, and the labels too, so that the diagonal can be seen."""
    low = min(float(table.outputs[0]), float(table.labels[0]))
    high = max(float(table.outputs[-1]), float(table.labels[-1]))
    step = float(table.outputs[-1] - table.outputs[0]) / max(1, table.n - 1)
    if table.n > FEW and np.allclose(np.diff(table.outputs), step, rtol=1e-6):
        # Bins of another width would hold now one output more, now one less: stripes that no distribution has.
        width = step * math.ceil(table.n / BINS)
        before = math.ceil((float(table.outputs[0]) - step / 2 - low) / width) + 1
        count = before + math.ceil((high - float(table.outputs[0]) + step / 2) / width) + 1
        return np.asarray(table.outputs[0] - step / 2 + width * np.arange(-before, count - before + 1), np.float64)
    # The outermost two on each side stay empty, so that no line lies on the frame.
    width = (high - low) / (BINS - 5) or 1.0
    return np.linspace(low - 2.5 * width, high + 2.5 * width, BINS + 1)


def _binned(table: Randomizer, rows: Floats, levels: Floats) -> Floats:
    """Sums of the columns of each bin of outputs, shape ``(groups, bins)``."""
    where: NDArray[np.intp] = np.clip(np.searchsorted(levels, table.outputs, side="right") - 1, 0, levels.size - 2)
    return np.array([np.bincount(where, row, levels.size - 1) for row in rows])
