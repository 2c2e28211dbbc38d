"""Pictures of one randomizer, or of one per group: probabilities, table, joint distribution, noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._numerals import format_above
from optrand.base._validation import Floats, suggest_parameters
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.model._randomizer import Randomizer
from optrand.plotting import _style as style
from optrand.plotting import _table as tables
from optrand.plotting._style import INK, LIMITS, MARKS, Place, canvas, inches, label_texts, write_count
from optrand.plotting._table import Cells, Drawable, Indices, Ranks, choose_ranks, class_names, extract_table, has_means

LABEL: Any = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 2)), "zorder": 1}
# Above the white line of a break.
MEAN: Any = {"color": INK, "marker": "^", "markerfacecolor": "white", "markersize": 5, "linestyle": "", "zorder": 7}


@suggest_parameters
def pmf_figure(subject: Drawable, *, labels: ArrayLike | None = None, ax: Place = None) -> FigureBase:
    """Draw the probability mass functions of up to six labels, one below the other ([B23], Figure 2).

    The dotted line stands at the label, the triangle at the mean output (not for classes). A stem ends in a filled
    circle if its label makes the output likeliest, in an empty one if it makes it least likely, with a ratio of
    ``exp(epsilon)`` between the two, and in a diamond otherwise. Outputs that lie close together are drawn by rank, on
    an axis that is broken between outputs that lie far apart. More than 250 outputs are drawn as a density.

    Parameters
    ----------
    subject : Mechanism, release record, Randomizer, or additive noise of optrand.baselines with `labels`
    labels : array-like, optional
        Labels that have a panel, by default at most six, evenly spread, and no more than fit into the height.
        Classes are numbered from 0. A record shows the names of its classes.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> figure = pmf_figure(debiased_rr(range(53), 1.0))
    >>> figure.get_suptitle()
    'Labels 0, 13, 26, 39, 52 of 53, ε = 1'
    >>> len(figure.axes)
    5
    """
    table, means = extract_table(subject, labels), has_means(subject)
    wanted = choose_ranks(table.labels, labels, LIMITS.panels).size
    with canvas(ax, (6.4, 1.0 + 0.85 * wanted)) as figure:
        width, height = inches(figure)
        free = height - (1.0 if width >= LIMITS.narrow else 1.5)
        most = min(LIMITS.panels, max(1, int(free / LIMITS.panel_height + 1e-9)))
        shown = choose_ranks(table.labels, labels, most)
        classes = class_names(subject)
        names = label_texts(table.labels, shown, classes)
        panels = figure.subplots(shown.size, 1, sharex=True, sharey=True, squeeze=False)[:, 0].tolist()
        for axes, name in zip(panels, names, strict=True):
            axes.set_title(f"{'label' if means else 'class'} {name}", loc="left", pad=2, parse_math=False)
            axes.yaxis.set_major_locator(MaxNLocator(2 if free >= LIMITS.low_panel * shown.size else 1))
        draw = _draw_density if table.n > LIMITS.stems else _draw_stems
        marks = draw(figure, panels, table, shown, means)
        if classes and table.n <= LIMITS.stems:
            style.tick_labels(panels[-1].xaxis, table.labels, width - 0.9, classes)
        elif not means:
            style.set_integer_ticks(panels[-1].xaxis)
        handles: list[Artist] = [Line2D([], [], label="the label", **LABEL)]
        if means:
            handles.append(Line2D([], [], label="mean output", **MEAN))
        style.set_legend(figure, handles + marks)
        listed = ("Class", "Classes") if classes else ("Label", "Labels")
        heading = f"{listed[shown.size > 1]} {', '.join(names)}"
        heading += f" of {table.k:,}" if len(shown) < table.k else ""
        style.set_title(figure, f"{heading}, ε = {table.epsilon:g}")
    return figure


def _draw_stems(figure: FigureBase, panels: list[Axes], table: Randomizer, shown: Indices, means: bool) -> list[Artist]:
    """Draw a stem per output and panel, on the line or by rank, and return the marks for the legend."""
    length = inches(figure)[0] - 0.9
    places, rows, centres = table.outputs, table.labels[shown], table.means[shown]
    every = np.concatenate((table.outputs, table.labels))
    closest = float(np.diff(table.outputs).min(initial=math.inf)) / (float(np.ptp(every)) or 1.0)
    if 72 * length * closest < LIMITS.crowded:
        ranks = Ranks.of(table.outputs, length, LIMITS.stems)
        places, rows, centres = ranks.places, ranks.place(rows), ranks.place(centres)
        ranks.draw(panels[-1], "output (label units), by rank")
        every = np.concatenate((places, ranks.place(table.labels)))
    else:
        panels[-1].set_xlabel("output (label units)" if means else "released class")
    margin = 0.03 * float(np.ptp(every)) or 0.5
    panels[0].set_xlim(every.min() - margin, every.max() + margin)
    panels[0].set_ylim(0, 1.15 * float(table.matrix[shown].max()))
    signature = table.signature()[shown]
    size = float(np.clip(72 * length / table.n / 1.6, 1.0, 4.0))
    for axes, row, letters, label, mean in zip(panels, shown.tolist(), signature, rows, centres, strict=True):
        axes.axvline(label, label="the label", **LABEL)
        if means:
            axes.plot(mean, 0, label="mean output", clip_on=False, **MEAN)
        _draw_letters(axes, places, table.matrix[row], letters, size)
    figure.supylabel("probability of the output")
    return [
        Line2D([], [], color=INK, marker=m.marker, markerfacecolor=m.fill, linestyle="", label=m.meaning)
        for m in MARKS
        if (signature == m.letter).any()
    ]


def _draw_letters(axes: Axes, places: Floats, chances: Floats, letters: NDArray[np.str_], size: float) -> None:
    for mark in MARKS:
        at = letters == mark.letter
        # An empty line that is not clipped would count as a point in the corner of the picture.
        if at.any():
            axes.vlines(places[at], 0, chances[at], color=mark.stem, linewidth=0.25 * size, label=mark.letter)
            ends: Any = {"marker": mark.marker, "markerfacecolor": mark.fill, "markersize": size}
            axes.plot(places[at], chances[at], linestyle="", color=INK, markeredgewidth=0.5, clip_on=False, **ends)


def _draw_density(
    figure: FigureBase, panels: list[Axes], table: Randomizer, shown: Indices, means: bool
) -> list[Artist]:
    """Draw the density of every panel, the probability of a group of outputs over its width."""
    groups = tables.group_edges(table.n, LIMITS.density_bins)
    edges = style.line_edges(table.outputs)[groups]
    chances = [tables.sum_rows(table, np.eye(1, table.k, row)[0], np.array([0, table.k]))[0] for row in shown]
    heights = np.add.reduceat(chances, groups[:-1], axis=1) / np.diff(edges)
    seen = np.flatnonzero(heights.max(axis=0) >= LIMITS.faint * heights.max())
    low, high = edges[seen[0]], edges[seen[-1] + 1]
    panels[0].set_xlim(min(low, *table.labels[shown]), max(high, *table.labels[shown]))
    panels[0].set_ylim(0, 1.1 * float(heights.max()))
    for axes, row, density in zip(panels, shown.tolist(), heights, strict=True):
        axes.stairs(density, edges, fill=True, color=style.LIGHT, zorder=1)
        axes.stairs(density, edges, color=style.DARK, linewidth=0.8, label="density", zorder=2)
        axes.axvline(table.labels[row], label="the label", **LABEL)
        if means:
            axes.plot(table.means[row], 0, label="mean output", clip_on=False, **MEAN)
    panels[-1].set_xlabel("output (label units)")
    figure.supylabel("density of the output (per label unit)" if len(panels) > 2 else "density")
    return []


@suggest_parameters
def matrix_figure(subject: Drawable, *, labels: ArrayLike | None = None, ax: Place = None) -> FigureBase:
    """Draw the table as a heat map, with the highest entries of every output outlined ([B23], Definition 10).

    Rows are labels, and columns the outputs that occur, by rank. Shades are logarithmic, and dark if likely. The
    outline is the staircase signature: the entries inside are ``exp(epsilon)`` times those outside. Entries that are
    neither have a mark of their own, as have zeros, which are white. Shades range over five powers of ten at most:
    any smaller one has the lightest.

    Parameters
    ----------
    subject : Mechanism, release record, Randomizer, or additive noise of optrand.baselines with `labels`
    labels : array-like, optional
        Labels that have a tick, and the rows of additive noise.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> matrix_figure(debiased_rr([0, 1, 2], 1.0)).get_suptitle()
    'ε = 1, 3 labels, 3 outputs'
    """
    table = extract_table(subject, labels)
    cells = Cells.of(table, np.ones(table.k), LIMITS.matrix)
    with canvas(ax, (6.4, 4.4)) as figure:
        width, height = inches(figure)
        axes = figure.subplots()
        classes = class_names(subject)
        released = [classes[int(number)] for number in table.outputs] if classes else ()
        ranks = Ranks.of(table.outputs, width - 0.7, LIMITS.matrix, names=released)
        edges, shown = ranks.cells(cells.columns)
        rows = tables.edges_of(cells.rows)
        mesh = _draw_heat(axes, edges, rows, _with_breaks(cells.chances, shown))
        signature = tables.letters_of(table, cells.middles[1])[cells.middles[0]]
        letters = np.where(shown >= 0, signature[:, shown], "")
        handles = _draw_signature(axes, edges, rows, letters)
        if table.n <= LIMITS.written and width * 8 > 10 * table.n and height * 4 > table.k:
            _write_chances(axes, mesh, ranks, table)
        ranks.draw(axes, "output (label units), by rank" if has_means(subject) else "released class")
        if labels is None:
            style.tick_labels(axes.yaxis, table.labels, height - 1.5, classes)
        else:
            ticks = choose_ranks(table.labels, labels, table.k)
            axes.set_yticks(ticks, label_texts(table.labels, ticks, classes), parse_math=False)
        axes.set_ylabel("label" if has_means(subject) else "class")
        style.add_log_scale(figure, mesh, axes, f"mean probability in {cells.size}" if cells.size else "probability")
        if handles:
            style.set_legend(figure, handles)
        style.set_title(
            figure, f"ε = {table.epsilon:g}, {write_count(table.k, 'label')}, {write_count(table.n, 'output')}"
        )
    return figure


def _with_breaks(chances: Floats, shown: Indices) -> np.ma.MaskedArray[Any, Any]:
    """Return the columns to show, with zeros and the breaks of the axis masked."""
    hidden = (chances[:, shown] <= 0) | (shown < 0)
    masked: np.ma.MaskedArray[Any, Any] = np.ma.masked_array(chances[:, shown], hidden)
    return masked


def _draw_heat(axes: Axes, x: Floats, y: Floats, chances: np.ma.MaskedArray[Any, Any]) -> QuadMesh:
    norm = style.log_shades(np.ma.filled(chances, 0))
    # Only zeros are white. Entries below the range of shades have the lightest.
    shades = style.PROBABILITIES.with_extremes(bad="white")
    axes.spines[:].set_visible(False)
    axes.set(xlim=x[[0, -1]], ylim=y[[0, -1]])
    return axes.pcolormesh(x, y, chances, cmap=shades, norm=norm, rasterized=True, label="probabilities")


def _draw_signature(axes: Axes, x: Floats, y: Floats, letters: NDArray[np.str_]) -> list[Artist]:
    """Outline the highest entries, mark those that are neither highest nor lowest, and return the legend's handles."""
    inside = np.pad(letters == "U", 1)
    upright = np.argwhere(inside[1:-1, 1:] != inside[1:-1, :-1])
    level = np.argwhere(inside[1:, 1:-1] != inside[:-1, 1:-1])
    lines = [[(x[i], y[row]), (x[i], y[row + 1])] for row, i in upright]
    lines += [[(x[i], y[row]), (x[i + 1], y[row])] for row, i in level]
    width = 1.0 if letters.size <= 1000 else 0.5
    axes.add_collection(LineCollection(lines, colors="white", linewidths=2.2 * width, label="under the outline"))
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=width, label="U", clip_on=False))
    handles: list[Artist] = [Line2D([], [], color=INK, linewidth=width, label="inside: highest, exp(ε) times outside")]
    middles = (x[:-1] + x[1:]) / 2, (y[:-1] + y[1:]) / 2
    for mark in MARKS:
        rows, columns = np.nonzero(letters == mark.letter)
        if mark.letter in "S0" and rows.size:
            look: Any = {"marker": mark.marker, "color": INK, "markerfacecolor": "white", "linestyle": ""}
            size = float(np.clip(60 / math.sqrt(letters.size), 0.5, 4))
            axes.plot(middles[0][columns], middles[1][rows], markersize=size, label=mark.letter, **look)
            handles.append(Line2D([], [], label=mark.meaning, **look))
    return handles


def _write_chances(axes: Axes, mesh: QuadMesh, ranks: Ranks, table: Randomizer) -> None:
    """Write probabilities in their cells, in black or white by the shade."""
    dark = np.asarray(mesh.norm(np.maximum(table.matrix, 1e-300))) > 0.45
    for y, i in np.argwhere(table.matrix > 0).tolist():
        colour, text = "white" if dark[y, i] else INK, f"{table.matrix[y, i]:.3g}"
        axes.text(float(ranks.places[i]), y - 0.25, text, ha="center", va="center", color=colour, fontsize=7)


@suggest_parameters
def joint_figure(subject: Mechanism | Released, *, ax: Place = None) -> FigureBase:
    """Draw the joint distribution of label and noisy label as a heat map, with both margins ([B23], Figure 3).

    Labels and outputs stand by rank, one per row and column, or in groups if there are more than 150. The title states
    the mean squared error of the exact table, rounded up. Shades are those of :func:`matrix_figure`.

    Parameters
    ----------
    subject : Mechanism or release record
        Its problem defines the prior.

    Raises
    ------
    InvalidInput
        The subject has no problem, or its outputs are classes, which have no distance.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> print(joint_figure(debiased_rr([0, 1, 2], 1.0)).get_suptitle())
    ε = 1, 3 labels, 3 outputs: mean squared error 4.36009
    """
    problem, table = tables.problem_of(subject), extract_table(subject)
    if problem.loss == losses.zero_one:
        raise InvalidInput("classes have no distance, and so no mean squared error: draw a pmf or the matrix")
    cells = Cells.of(table, problem.prior, LIMITS.joint)
    with canvas(ax, (5.6, 5.6)) as figure:
        width, height = inches(figure)
        panels: Any = figure.subplot_mosaic(
            [["prior", "."], ["joint", "noisy"]], width_ratios=[5, 1], height_ratios=[1, 5], empty_sentinel="."
        )
        heat, top, right = panels["joint"], panels["prior"], panels["noisy"]
        ranks = Ranks.of(table.outputs, 0.6 * height, LIMITS.joint)
        y, shown = ranks.cells(cells.columns)
        x = tables.edges_of(cells.rows)
        mesh = _draw_heat(heat, x, y, _with_breaks(cells.chances, shown).T)
        diagonal = np.arange(table.k), ranks.place(table.labels)
        heat.plot(*diagonal, color="white", linewidth=2.2, label="under the diagonal")
        heat.plot(*diagonal, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label="noisy label = label")
        low, high = diagonal[1][[0, -1]]
        heat.set_ylim(min(y[0], low - 0.5), max(y[-1], high + 0.5))
        _draw_margins(top, right, table, problem.prior, ranks)
        line = " " if height >= LIMITS.narrow else "\n"
        ranks.draw(heat, f"noisy label{line}(label units), by rank", vertical=True)
        style.tick_labels(heat.xaxis, table.labels, 0.6 * width)
        heat.set_xlabel("label")
        top.set_xlim(heat.get_xlim())
        right.set_ylim(heat.get_ylim())
        name = f"mean over the pairs in {cells.size}" if cells.size else "probability of both"
        style.add_log_scale(figure, mesh, list(panels.values()), name)
        style.set_legend(figure, [heat.lines[1]])
        size = f"{write_count(table.k, 'label')}, {write_count(table.n, 'output')}"
        # The error of the exact table, whatever the loss of the problem.
        error = format_above(tables.mechanism_in(subject).table.mean_squared_error(problem.prior), 6)
        style.set_title(figure, f"ε = {problem.epsilon:g}, {size}: mean squared error {error}")
    return figure


def _draw_margins(top: Axes, right: Axes, table: Randomizer, prior: Floats, ranks: Ranks) -> None:
    """Draw the prior above the heat map and the probabilities of outputs beside it, as means over its groups."""
    rows, columns = tables.group_edges(table.k, LIMITS.joint), tables.group_edges(table.n, LIMITS.joint)
    shares = np.add.reduceat(prior, rows[:-1]) / np.diff(rows)
    top.stairs(shares, tables.edges_of(rows), color=style.DARK, fill=True, label="prior")
    edges, shown = ranks.cells(columns)
    everybody = tables.sum_rows(table, prior, np.array([0, table.k]))[0]
    chances = np.add.reduceat(everybody, columns[:-1]) / np.diff(columns)
    heights = np.where(shown >= 0, chances[shown], 0)
    right.stairs(heights, edges, color=style.DARK, fill=True, orientation="horizontal", label="probability")
    top.set_ylabel("prior")
    right.set_xlabel("probability")
    top.tick_params(labelbottom=False, bottom=False)
    right.tick_params(labelleft=False, left=False)
    top.yaxis.set_major_locator(MaxNLocator(2))
    # On a short axis zero and the number beside it overlap.
    narrow = inches(right.figure)[0] < LIMITS.narrow
    right.xaxis.set_major_locator(MaxNLocator(1, prune="lower" if narrow else None))
