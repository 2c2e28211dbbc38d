"""Mixture of randomized responses on bins: one strip a component, over the line of labels."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike

from optrand.base.validation import Floats
from optrand.mechanism.paths import Path, Paths
from optrand.plotting.canvas import chosen
from optrand.plotting.style import INK, number_texts, spread

__all__ = ["draw_paths"]

STRIPS = 400
"""Largest number of strips; of more components those at so many evenly spread heights are shown."""

CELLS = 800
"""Largest number of labels that a strip is drawn with."""

BORDERS = 6000
"""Largest number of bins with lines between them."""

LETTERED = 30
"""Largest number of bins that carry their output."""

LOWEST = 0.05
"""Share below which strips are too low for letters."""

TICKS = 9


def draw_paths(figure: FigureBase, paths: Paths, wanted: ArrayLike | None = None) -> None:
    """Fill a figure with the strips of a mixture."""
    axes = figure.add_subplot()
    edges, shown = _strips(paths)
    columns = spread(paths.labels.size, CELLS)
    picture = np.array([np.repeat(path.outputs, path.last - path.first + 1)[columns] for path in shown])
    sides = np.concatenate(([-0.5], (columns[1:] + columns[:-1]) / 2, [paths.labels.size - 0.5]))
    low, high = float(paths.outputs[0]), float(paths.outputs[-1])
    # Light is low, dark is high, in colour as in grey.
    norm = Normalize(low, high) if low < high else Normalize(low - 1, high + 1)
    mesh = axes.pcolormesh(sides, edges, picture, cmap="cividis_r", norm=norm, rasterized=True)
    if sum(path.bins for path in shown) <= BORDERS:
        _draw_borders(axes, edges, shown)
    if sum(path.bins for path in shown) <= LETTERED:
        _write_outputs(axes, edges, shown, norm)
    rows = chosen(paths.labels, wanted, TICKS)
    axes.set_xticks(rows, number_texts(paths.labels[rows]))
    axes.set_xlabel("label, by rank")
    axes.set_ylabel("share of the mixture")
    axes.set_ylim(0, 1)
    bar = figure.colorbar(mesh, ax=axes, location="right", aspect=25, pad=0.02)
    bar.set_label("output of the label's bin (label units)")


def _strips(paths: Paths) -> tuple[Floats, list[Path]]:
    """Edges of the strips, from 0 to 1, and their components."""
    tops = np.cumsum(np.array(paths.weights, dtype=np.float64))
    if len(paths) <= STRIPS:
        return np.concatenate(([0.0], tops)), list(paths)
    edges = np.linspace(0, 1, STRIPS + 1)
    numbers = np.searchsorted(tops, (edges[1:] + edges[:-1]) / 2)
    return edges, [paths[int(number)] for number in np.minimum(numbers, len(paths) - 1)]


def _draw_borders(axes: Axes, edges: Floats, shown: list[Path]) -> None:
    """Lines between bins, and between strips while there are few; two bins in a row may have nearly one colour."""
    upright = [
        [(begin - 0.5, bottom), (begin - 0.5, top)]
        for path, bottom, top in zip(shown, edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for begin in path.first[1:].tolist()
    ]
    width = 1.2 if len(shown) <= LETTERED else 0.6
    axes.add_collection(LineCollection(upright, colors="white", linewidths=1.8 * width, label="under the borders"))
    axes.add_collection(LineCollection(upright, colors=INK, linewidths=0.6 * width, label="borders of bins"))
    if len(shown) <= LETTERED:
        axes.hlines(edges[1:-1], *axes.get_xlim(), color="white", linewidth=2.5, label="components")


def _write_outputs(axes: Axes, edges: Floats, shown: list[Path], norm: Normalize) -> None:
    """Write the output of each bin in its middle, in whichever of black and white can be read there."""
    values = np.unique(np.concatenate([path.outputs for path in shown]))
    texts = dict(zip(values.tolist(), number_texts(values), strict=True))
    for path, bottom, top in zip(shown, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if top - bottom < LOWEST:
            continue
        for x, output in zip(((path.first + path.last) / 2).tolist(), path.outputs.tolist(), strict=True):
            colour = "white" if norm(output) > 0.5 else INK
            axes.text(x, (bottom + top) / 2, texts[output], ha="center", va="center", color=colour, fontsize=8)
