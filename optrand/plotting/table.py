"""Table of a randomizer as a heat map, and beside it its staircase signature ([B23], Definition 10)."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats
from optrand.model.randomizer import Randomizer
from optrand.plotting.canvas import chosen
from optrand.plotting.cells import Cells
from optrand.plotting.style import INK, MARKS, log_shades, number_texts, spread

__all__ = ["draw_matrix"]

LETTERED = 14
"""Largest tables with letters in their cells; those half as large have probabilities, too."""

TICKS = 7

APART = 6
"""Multiple of the median distance of neighbouring outputs from which a gap is shown."""

WIDE = 0.1
"""Share of the range of outputs from which it is."""

GAPS = 3
"""Largest number of gaps that are shown."""

LETTERS_BELOW = 36
"""Letters that fit below a table."""


def draw_matrix(figure: FigureBase, table: Randomizer, wanted: ArrayLike | None = None) -> None:
    """Fill a figure with the heat map, to the left, and the signature, to the right, over one axis of labels."""
    heat = figure.add_subplot(1, 2, 1)
    signature = figure.add_subplot(1, 2, 2, sharey=heat)
    cells = Cells.of(table)
    look: Any = {"aspect": "auto", "origin": "lower", "extent": (-0.5, table.n - 0.5, -0.5, table.k - 0.5)}
    _draw_heat(figure, heat, cells, look)
    _draw_signature(figure, signature, cells, look)
    for axes in (heat, signature):
        _name_ticks(axes, table, wanted)
    heat.set_ylabel("label, by rank")
    signature.tick_params(labelleft=False)
    if max(table.k, table.n) <= LETTERED:
        _write_cells(heat, signature, table, cells.letters)


def _draw_heat(figure: FigureBase, axes: Axes, cells: Cells, look: Any) -> None:
    positive = cells.chances[cells.chances > 0]
    norm, ticks = log_shades(float(positive.min()), float(positive.max()))
    # Dark is likely here and in the signature.
    shades = matplotlib.colormaps["cividis_r"].with_extremes(bad="white")
    shown = np.ma.masked_less_equal(cells.chances, 0)
    image = axes.imshow(shown, cmap=shades, norm=norm, **look)
    axes.set_title(f"Mean probability in {cells.grouped}" if cells.grouped else "Probability of each output")
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=25)
    bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
    bar.minorticks_off()
    bar.set_label("probability (log scale)")


def _draw_signature(figure: FigureBase, axes: Axes, cells: Cells, look: Any) -> None:
    letters = cells.letters
    used = [mark for mark in MARKS if (letters == mark.letter).any()]
    codes = np.select([letters == mark.letter for mark in used], range(len(used)))
    shades = ListedColormap([mark.shade for mark in used])
    image = axes.imshow(codes, cmap=shades, vmin=-0.5, vmax=len(used) - 0.5, **look)
    axes.set_title("Staircase signature" + (" in the middle of each cell" if cells.grouped else ""))
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=25)
    bar.set_ticks(list(range(len(used))), labels=[mark.short for mark in used])
    bar.minorticks_off()
    bar.ax.tick_params(length=0)
    bar.set_label("U is exp(ε) times L")


def _write_cells(heat: Axes, signature: Axes, table: Randomizer, letters: NDArray[np.str_]) -> None:
    """Write probabilities and letters in the cells, in whichever of black and white can be read there."""
    positive = table.matrix[table.matrix > 0]
    middle = np.sqrt(positive.min() * positive.max())
    for (y, i), chance in np.ndenumerate(table.matrix):
        letter = str(letters[y, i])
        colours = ["white" if dark else INK for dark in (chance > middle, letter == "U")]
        if max(table.k, table.n) <= LETTERED // 2:
            heat.text(i, y, f"{chance:.3g}", ha="center", va="center", color=colours[0], fontsize=8)
        signature.text(i, y, letter, ha="center", va="center", color=colours[1], fontsize=8)


def _name_ticks(axes: Axes, table: Randomizer, wanted: ArrayLike | None) -> None:
    rows = chosen(table.labels, wanted, TICKS)
    axes.set_yticks(rows, number_texts(table.labels[rows]))
    for most in range(TICKS, 1, -1):
        columns = spread(table.n, most)
        texts = number_texts(table.outputs[columns])
        if max(map(len, texts)) * len(texts) <= LETTERS_BELOW:
            break
    axes.set_xticks(columns, texts)
    axes.tick_params(length=2.5)
    wide = _gaps(table.outputs)
    for place in wide:
        axes.axvline(place, color="white", linewidth=2.5, label="_gap")
        axes.axvline(place, color=INK, linewidth=0.8, linestyle=":", label="_gap")
    axes.set_xlabel("output, by rank; a dotted line is a gap" if wide else "output, by rank")


def _gaps(outputs: Floats) -> list[float]:
    """Places between two ranks whose outputs lie far apart, up to :data:`GAPS` of them, the widest."""
    steps = np.diff(outputs)
    if steps.size < 2:
        return []
    wide = np.flatnonzero(steps > max(APART * float(np.median(steps)), WIDE * float(steps.sum())))
    return sorted((wide[np.argsort(-steps[wide], kind="stable")][:GAPS] + 0.5).tolist())
