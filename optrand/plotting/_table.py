"""Tables to draw: of a mechanism or of noise, in groups if they are large, on an axis of ranks with breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._validation import Floats, check_values
from optrand.baselines._additive import Additive, LatticeAdditive
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.model._problem import Problem
from optrand.model._randomizer import Randomizer
from optrand.model._table import Table
from optrand.plotting._style import INK, LIMITS, label_texts, number_texts, short_names, spread
from optrand.studies._adaptive import lattice_around
from optrand.studies._paths import Decomposable, Paths, decompose_paths, merge_neighbours

Flow = Decomposable | Released
"""Mechanism, mechanism of a release, or randomizer, whose interval columns can be drawn as a flow."""

Drawable = Flow | Additive
"""All of these, or additive noise of :mod:`optrand.baselines`, which is drawn for some of its labels."""

Indices = NDArray[np.intp]


def mechanism_in(subject: Any) -> Any:
    """Return the mechanism of a release, and any other subject as it is."""
    return subject.mechanism if isinstance(subject, Released) else subject


def class_names(subject: object) -> tuple[str, ...]:
    """Return the declared names of the classes of a release, shortened, or nothing if labels are numbers."""
    if not isinstance(subject, Released) or has_means(subject):
        return ()
    return short_names(getattr(subject, "labels", ()))


def extract_table(subject: Drawable, labels: ArrayLike | None = None) -> Randomizer:
    """Return the table to draw, without outputs of probability below 1e-9 under every label.

    Columns that a mechanism splits between neighbouring floats are drawn as one
    (:func:`optrand.studies._paths.merge_neighbours`). Additive noise is rounded to a fine grid, or to values of its
    lattice, for those `labels`.
    """
    subject = mechanism_in(subject)
    if isinstance(subject, Additive):
        return _round_noise(subject, labels)
    if isinstance(subject, Mechanism) and subject.arcs is not None:
        merged = Table.of_arcs(subject.labels, *merge_neighbours(subject), subject.ratio)
        subject = Mechanism(subject.problem, merged)
    table = subject if isinstance(subject, Randomizer) else getattr(subject, "randomizer", None)
    if not isinstance(table, Randomizer):
        raise InvalidInput(
            f"a picture needs a mechanism, a Randomizer or additive noise, not a {type(subject).__name__}"
        )
    if table.arcs is None:
        used = table.matrix.max(axis=0) >= LIMITS.least
        return Randomizer(table.labels, table.outputs[used], table.matrix[:, used], table.epsilon)
    # Nearly all arcs are alone at their output, of which this is the largest probability.
    highest = np.exp(table.epsilon) * table.arcs.masses
    return Randomizer.of_arcs(table.labels, table.arcs.only(highest >= LIMITS.least), table.epsilon)


def extract_paths(subject: Flow) -> Paths:
    """Return the components to draw, after components with a weight below 1e-9 are merged into neighbours."""
    paths = decompose_paths(mechanism_in(subject))
    kept = [number for number, weight in enumerate(paths.weights) if weight >= LIMITS.least]
    phases = (*(paths.phases[number] for number in kept), paths.phases[-1])
    return replace(paths, phases=phases, bins=paths.bins[kept])


def _round_noise(subject: Additive, labels: ArrayLike | None) -> Randomizer:
    if labels is None:
        raise InvalidInput(f"{type(subject).__name__} has every label of an interval: pass labels, those to draw")
    rows = np.unique(check_values(labels, "labels"))
    if subject.clip is not None:
        low, high = subject.clip.low, subject.clip.high
    else:
        reach = LIMITS.noise_tails * math.sqrt(subject.noise.variance) * subject.unit
        low, high = float(rows[0]) - reach, float(rows[-1]) + reach
    outputs = np.linspace(low, high, LIMITS.noise_outputs)
    if isinstance(subject, LatticeAdditive):
        outputs = lattice_around(outputs, subject.step, subject.labels.low)
        outputs = outputs[(outputs >= low) & (outputs <= high)]
    return subject.discretise(rows, outputs)


def problem_of(subject: object) -> Problem:
    subject = mechanism_in(subject)
    if not isinstance(subject, Mechanism):
        raise InvalidInput(f"this picture shows a prior too: it needs a mechanism, not a {type(subject).__name__}")
    return subject.problem


def has_means(subject: object) -> bool:
    """Decide whether the outputs are numbers, and not the names of classes."""
    problem = getattr(mechanism_in(subject), "problem", None)
    return not (isinstance(problem, Problem) and problem.loss == losses.zero_one)


def choose_ranks(labels: Floats, wanted: ArrayLike | None, most: int) -> Indices:
    """Return the ranks of the wanted labels, all of which must exist, or of `most` labels, evenly spread."""
    if wanted is None:
        return spread(labels.size, most)
    numbers = np.unique(check_values(wanted, "labels"))
    strange = ~np.isin(numbers, labels)
    if strange.any():
        near = labels[np.abs(labels - numbers[strange][0]).argmin()]
        raise InvalidInput(f"labels to show: {numbers[strange][0]:g} is not one of the labels, the nearest is {near:g}")
    return np.searchsorted(labels, numbers).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Cells:
    """Table in groups of neighbouring labels and outputs."""

    rows: Indices  # edges of the groups of labels, the end of the last one included
    columns: Indices  # and of those of outputs
    chances: Floats  # (R, C): mean over a group of the probability of an output, times the weight of its label

    @classmethod
    def of(cls, table: Randomizer, weights: Floats, most: int) -> Cells:
        """Gather a table into at most `most` by `most` cells, at cost ``O((k + n) most)`` for interval columns."""
        rows, columns = group_edges(table.k, most), group_edges(table.n, most)
        totals = np.add.reduceat(sum_rows(table, weights, rows), columns[:-1], axis=1)
        return cls(rows, columns, totals / np.diff(rows)[:, np.newaxis] / np.diff(columns))

    @property
    def middles(self) -> tuple[Indices, Indices]:
        """Ranks of the label and of the output in the middle of each group."""
        return (self.rows[:-1] + self.rows[1:]) // 2, (self.columns[:-1] + self.columns[1:]) // 2

    @property
    def size(self) -> str:
        """Number of labels and outputs in a cell, in words. Empty if it is one of each."""
        rows, columns = int(np.diff(self.rows).max()), int(np.diff(self.columns).max())
        return "" if rows == columns == 1 else f"cells of up to {rows:,} by {columns:,}"


def group_edges(count: int, most: int) -> Indices:
    """Return the edges of at most `most` groups of neighbours, nearly equally large, with the end of the last one."""
    return np.linspace(0, count, min(count, most) + 1).round().astype(np.intp)


def edges_of(groups: Indices) -> Floats:
    """Return the edges of groups on an axis of ranks, on which each rank has the width 1."""
    return groups.astype(np.float64) - 0.5


def sum_rows(table: Randomizer, weights: Floats, edges: Indices) -> Floats:
    """Compute the weighted sum of the rows of each group of labels, shape ``(groups, n)``.

    Interval columns cost ``O(groups n)``, whatever the number of labels.
    """
    if table.arcs is None:
        sums: Floats = np.add.reduceat(weights[:, np.newaxis] * table.matrix, edges[:-1], axis=0)
        return sums
    arcs, gain = table.arcs, math.expm1(table.epsilon)
    at = np.searchsorted(table.outputs, arcs.outputs)
    before = np.concatenate(([0.0], np.cumsum(weights)))
    sums = np.empty((edges.size - 1, table.n))
    for group, (begin, end) in enumerate(pairwise(edges.tolist())):
        favoured = before[np.clip(arcs.last + 1, begin, end)] - before[np.clip(arcs.first, begin, end)]
        amounts = arcs.masses * (before[end] - before[begin] + gain * favoured)
        sums[group] = np.bincount(at, amounts, table.n)
    return sums


def letters_of(table: Randomizer, columns: Indices) -> NDArray[np.str_]:
    """Return the staircase signature of some outputs, without the rest of the table."""
    if table.arcs is None:
        return table.signature()[:, columns]
    kept = np.isin(table.arcs.outputs, table.outputs[columns])
    return Randomizer.of_arcs(table.labels, table.arcs.only(kept), table.epsilon).signature()


def wide_gaps(outputs: Floats) -> Indices:
    """Return the ranks after which outputs lie far apart, at most three, the widest."""
    steps = np.diff(outputs)
    if steps.size < 2:
        return np.array([], dtype=np.intp)
    wide = np.flatnonzero(
        steps > max(LIMITS.gap_steps * float(np.median(steps)), LIMITS.gap_share * float(steps.sum()))
    )
    return np.sort(wide[np.argsort(-steps[wide], kind="stable")][: LIMITS.breaks])


@dataclass(frozen=True, eq=False)
class Ranks:
    """Axis of outputs by rank, broken between neighbouring outputs that lie far apart.

    Neighbours are 1 apart, or in proportion to their distance and 1 apart in the mean, and further apart if the axis
    is broken between them.
    """

    outputs: Floats
    places: Floats  # of the outputs
    breaks: Indices  # ranks before the breaks
    length: float  # inches
    names: Sequence[str] = ()  # of the outputs, if they are classes with names

    @classmethod
    def of(cls, outputs: Floats, length: float, most: int, *, even: bool = True, names: Sequence[str] = ()) -> Ranks:
        """Place outputs on an axis of `length` inches, without breaks if more than `most` are drawn in groups."""
        breaks = wide_gaps(outputs) if outputs.size <= most else np.array([], dtype=np.intp)
        width = LIMITS.break_width * outputs.size / max(length - LIMITS.break_width * breaks.size, 0.3 * length)
        places = np.arange(outputs.size, dtype=np.float64)
        if not even:
            for part in np.split(np.arange(outputs.size), breaks + 1):
                scaled = (outputs[part] - outputs[part[0]]) / (np.ptp(outputs[part]) or 1.0)
                places[part] = part[0] + (part.size - 1) * scaled
        return cls(outputs, places + width * np.searchsorted(breaks, np.arange(outputs.size)), breaks, length, names)

    def place(self, values: Floats) -> Floats:
        """Return the places of numbers: in proportion between two outputs, or a little beyond the first or the last."""
        if self.outputs.size == 1:
            sides: Floats = 0.8 * np.sign(values - self.outputs[0])
            return sides
        step = float(np.ptp(self.outputs)) / (self.outputs.size - 1)
        beyond = np.maximum(self.outputs[0] - values, 0) - np.maximum(values - self.outputs[-1], 0)
        most = 1 + 0.1 * self.outputs.size
        places: Floats = np.interp(values, self.outputs, self.places) - np.clip(beyond / step, -most, most)
        return places

    def cells(self, columns: Indices) -> tuple[Floats, Indices]:
        """Return the edges of cells of groups of outputs, and the group that each shows, -1 in a break."""
        if columns.size <= self.outputs.size:
            return edges_of(columns), np.arange(columns.size - 1)
        parts = np.split(np.arange(self.outputs.size), self.breaks + 1)
        edges: Floats = (
            np.concatenate([np.append(self.places[part], self.places[part[-1]] + 1) for part in parts]) - 0.5
        )
        shown = np.concatenate([np.append(part, -1) for part in parts])[:-1]
        return edges, shown.astype(np.intp)

    def draw(self, axes: Axes, name: str, *, vertical: bool = False) -> None:
        """Label an axis, put ticks at outputs, and mark its breaks."""
        axis: Axis = axes.yaxis if vertical else axes.xaxis
        ticks = self._ticks(vertical=vertical)
        axis.set_ticks(self.places[ticks], self._texts(ticks), parse_math=False)
        axis.set_label_text(name)
        transform = axes.get_yaxis_transform() if vertical else axes.get_xaxis_transform()
        look: Any = {"transform": transform, "clip_on": False, "color": INK, "label": "_break"}
        for rank in self.breaks.tolist():
            ends, ground = [self.places[rank] + 0.5, self.places[rank + 1] - 0.5], [0, 0]
            line = (ground, ends) if vertical else (ends, ground)
            axes.plot(*line, **{**look, "color": "white"}, linewidth=2, zorder=5, solid_capstyle="butt")
            slash = [(-2, -1), (2, 1)] if vertical else [(-1, -2), (1, 2)]
            axes.plot(*line, **look, linestyle="", marker=slash, markersize=6, markeredgewidth=0.7, zorder=6)

    def _texts(self, ticks: Indices) -> list[str]:
        if self.names:
            return label_texts(self.outputs, ticks, self.names)
        return number_texts(self.outputs[ticks], float(np.ptp(self.outputs)) / 100)

    def _ticks(self, *, vertical: bool) -> Indices:
        """Return the ranks that have a tick: the ends of each part between breaks, and others that fit in."""
        longest = max(map(len, self._texts(spread(self.outputs.size, 12))))
        apart = LIMITS.tick_line if vertical else LIMITS.tick_letter * (longest + 1.5)
        unit = self.length / (self.places[-1] + 1)
        ticks: list[int] = []
        for part in np.split(np.arange(self.outputs.size), self.breaks + 1):
            count = 1 + int((part.size - 1) * unit / apart)
            ticks += part[spread(part.size, count)].tolist() if count > 1 else [int(part[part.size // 2])]
        # Places in proportion may be closer than ranks: keep each tick that does not overlap the one before.
        kept = ticks[:1]
        for tick in ticks[1:]:
            if (self.places[tick] - self.places[kept[-1]]) * unit >= 0.9 * apart:
                kept.append(tick)
        return np.array(kept)
