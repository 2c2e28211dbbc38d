"""Flow of a randomizer: one arc for every column, over the labels that it favours, as wide as its mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats
from optrand.mechanism.paths import Paths
from optrand.plotting.canvas import chosen
from optrand.plotting.cells import group_edges
from optrand.plotting.style import INK, LINE_SHADES, number_texts

__all__ = ["Bundles", "draw_flow"]

SEPARATE = 400
"""Largest number of arcs that are drawn one by one; of more, those between equal groups of nodes are drawn as one."""

GROUPS = 60
"""Number of groups then."""

POINTS = 60
"""Points of which an arc is made."""

WIDEST = 6.0
"""Width of the arc with the largest mass, in points of print, where arcs are few."""

INK_SHARE = 120.0
"""Points that all arcs together may have if all are as wide as the widest, which is thinner where they are many."""

RIMMED = 24
"""Largest number of arcs with white rims: of more, crossings would make dashes of the arcs below."""

THINNEST = 0.2

TICKS = 9


@dataclass(frozen=True, eq=False)
class Bundles:
    """Arcs as they are drawn: one by one, or together where they begin and end in the same groups of nodes.

    Attributes
    ----------
    begins, ends : (arcs,) arrays
        Places on the line of labels, counted from 0; node ``i`` is at ``i - 1/2``.
    outputs, masses : (arcs,) arrays
        Mean output over the masses, and probability for a label that the arc does not favour.
    grouped : int
        Largest number of nodes that make one end; 1 where all arcs are drawn.
    """

    begins: Floats
    ends: Floats
    outputs: Floats
    masses: Floats
    grouped: int

    @classmethod
    def of(cls, paths: Paths) -> Bundles:
        """Gather the arcs of a flow."""
        flow = paths.flow
        masses = (flow.masses * paths.ratio.denominator / flow.total(paths.ratio)).astype(np.float64)
        edges = group_edges(flow.k + 1, flow.k + 1 if flow.masses.size <= SEPARATE else GROUPS)
        middles = (edges[:-1] + edges[1:] - 1) / 2 - 0.5
        ends = [np.searchsorted(edges, nodes, side="right") - 1 for nodes in (flow.first, flow.last + 1)]
        keys, which = np.unique(np.stack(ends), axis=1, return_inverse=True)
        if flow.masses.size <= SEPARATE:
            keys, which = np.stack(ends), np.arange(flow.masses.size)
        total = np.bincount(which, masses).astype(np.float64)
        outputs = (np.bincount(which, masses * paths.outputs[flow.at]) / total).astype(np.float64)
        return cls(middles[keys[0]], middles[keys[1]], outputs, total, int(np.diff(edges).max()))

    def curves(self) -> Floats:
        """Half ellipses, as high as the square root of what they span; shape ``(arcs, POINTS, 2)``."""
        turn = np.linspace(0, np.pi, POINTS)
        half = (self.ends - self.begins)[:, np.newaxis] / 2
        centre = (self.ends + self.begins)[:, np.newaxis] / 2
        # An arc within one group begins where it ends: a needle, as low as the shortest arc there is.
        height = np.sqrt(np.maximum(2 * half, self.grouped / 2))
        return np.stack((centre - half * np.cos(turn), height * np.sin(turn)), axis=2)

    @property
    def widest(self) -> float:
        """Width of the largest mass, in points."""
        return float(np.clip(INK_SHARE / self.masses.size, 0.8, WIDEST))

    @property
    def widths(self) -> Floats:
        """Widths in points: proportional to the mass, but at least :data:`THINNEST`."""
        widths: Floats = np.maximum(self.widest * self.masses / self.masses.max(), THINNEST)
        return widths


def draw_flow(figure: FigureBase, paths: Paths, wanted: ArrayLike | None = None) -> Bundles:
    """Fill a figure with the arcs of a flow over the line of its labels."""
    bundles = Bundles.of(paths)
    axes = figure.add_subplot()
    k, low, high = paths.flow.k, float(paths.outputs[0]), float(paths.outputs[-1])
    shades = LinearSegmentedColormap.from_list("lines", LINE_SHADES)
    norm = Normalize(low, high) if low < high else Normalize(low - 1, high + 1)
    # The long ones first: short arcs lie under them, and would be hidden.
    order: NDArray[np.intp] = np.argsort(bundles.begins - bundles.ends, kind="stable")
    curves, widths, outputs = bundles.curves()[order], bundles.widths[order], bundles.outputs[order]
    drawn = ScalarMappable(norm, shades)
    colours: Floats = drawn.to_rgba(outputs)
    if outputs.size <= RIMMED:
        # A white rim under each arc tells it from those that it crosses, in grey too.
        colours = np.stack((np.ones((outputs.size, 4)), colours), axis=1).reshape(-1, 4)
        widths = np.stack((widths + np.minimum(0.8, 0.6 * widths), widths), axis=1).ravel()
        curves = np.repeat(curves, 2, axis=0)
    axes.add_collection(LineCollection(list(curves), colors=colours, linewidths=widths, label="rims and arcs"))
    axes.axhline(0, color=INK, linewidth=1.0)
    rows = chosen(paths.labels, wanted, TICKS)
    axes.set_xticks(rows, number_texts(paths.labels[rows]))
    if k <= 2 * TICKS:
        axes.plot(np.arange(k), np.zeros(k), linestyle="", marker="o", markersize=4, color=INK, clip_on=False)
    axes.set(xlabel="label, by rank", xlim=(-0.5 - 0.02 * k, k - 0.5 + 0.02 * k), yticks=[])
    axes.set_ylim(0, 1.06 * float(curves[:, :, 1].max()))
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    bar = figure.colorbar(drawn, ax=axes, location="right", aspect=25, pad=0.02)
    bar.set_label("output (label units)" if bundles.grouped == 1 else "mean output of the arcs")
    largest = float(bundles.masses.max())
    sample = [
        Line2D([], [], color=INK, linewidth=bundles.widest * share, label=f"mass {largest * share:.3g}")
        for share in (1, 0.25)
    ]
    figure.legend(handles=sample, loc="outside lower center", ncols=2, handlelength=3)
    return bundles
