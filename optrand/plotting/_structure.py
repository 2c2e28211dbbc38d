"""Pictures of the structure of a randomizer: its flow, its bins, and its dual certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from optrand import losses
from optrand.base._validation import Floats, suggest_parameters
from optrand.certificates._bound import lowest_price
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.model._problem import Dual, Grid, Problem
from optrand.plotting import _style as style
from optrand.plotting._style import DARK, INK, LIMITS, MIDDLE, Place, canvas, inches, line_edges, write_count
from optrand.plotting._table import (
    Flow,
    Ranks,
    class_names,
    extract_paths,
    extract_table,
    group_edges,
    has_means,
    mechanism_in,
    problem_of,
    wide_gaps,
)
from optrand.solvers.grid._pricing import price
from optrand.studies._paths import Paths


@suggest_parameters
def flow_figure(subject: Flow, *, ax: Place = None) -> FigureBase:
    """Draw the flow on the line of labels: one arc for every column, over the labels that it favours.

    An output is ``exp(epsilon)`` times as likely for the labels under its arc as for all others. Arcs are as wide as
    their mass, the output's probability for the other labels, and as dark as their output is high. All labels are under
    equal mass, which makes the rows sum to one. If there are more than 40 arcs, those between equal groups of labels
    are drawn as one, from where they begin to where they end on average.

    Parameters
    ----------
    subject : Mechanism, release record or Randomizer
        With interval columns (:func:`optrand.studies.decompose_paths`).

    Raises
    ------
    InvalidInput
        A column is not an interval.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> flow_figure(optrand.solve(problem)).get_suptitle()
    'The flow of a randomizer: 6 arcs over 4 labels, ε = 2'
    """
    paths = extract_paths(subject)
    bundles = Bundles.of(paths)
    with canvas(ax, (6.4, 3.6)) as figure:
        axes, width = figure.add_subplot(), inches(figure)[0]
        low, high = float(bundles.outputs.min()), float(bundles.outputs.max())
        norm = Normalize(low, high) if low < high else Normalize(low - 1, high + 1)
        drawn = ScalarMappable(norm, style.OUTPUTS)
        # Long arcs first, as they would hide the short ones under them.
        order = np.argsort(bundles.begins - bundles.ends, kind="stable")
        widest = LIMITS.widest * min(1.0, width / 6.4)
        shares = bundles.masses / bundles.masses.max()
        widths = np.maximum(widest * shares, LIMITS.thinnest)[order]
        curves = bundles.curves()[order]
        for rim, colours, name in ((0.8, "white", "rims"), (0.0, drawn.to_rgba(bundles.outputs[order]), "arcs")):
            # A white rim under each arc separates it from those that it crosses, also in grey.
            lines = LineCollection(list(curves), colors=colours, linewidths=widths + rim, label=name, capstyle="butt")
            axes.add_collection(lines)
        axes.axhline(0, color=INK, linewidth=0.8)
        classes = class_names(subject)
        style.tick_labels(axes.xaxis, paths.labels, width - 1, classes)
        k = paths.flow.k
        axes.set(xlabel="class" if classes else "label", xlim=(-0.5 - 0.02 * k, k - 0.5 + 0.02 * k), yticks=[])
        axes.set_ylim(0, 1.06 * float(curves[:, :, 1].max()))
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(drawn, ax=axes, location="right", aspect=25, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label("output (label units)" if bundles.grouped == 1 else "mean output (label units)")
        style.set_legend(figure, _mass_legend(float(bundles.masses.max()), widest))
        heading = f"The flow of a randomizer: {write_count(bundles.arcs, 'arc')} over "
        heading += f"{write_count(k, 'label')}, ε = {math.log(paths.ratio):g}"
        if bundles.grouped > 1:
            heading += f"\nin {bundles.masses.size:,} bundles, between groups of up to {bundles.grouped:,} labels"
        style.set_title(figure, heading)
    return figure


def _mass_legend(largest: float, widest: float) -> list[Artist]:
    """Return lines of three masses, of one digit each, up to the largest."""
    unit = 10.0 ** math.floor(math.log10(largest))
    top = math.floor(largest / unit) * unit
    return [
        Line2D([], [], color=INK, linewidth=widest * mass / largest, solid_capstyle="butt", label=f"mass {mass:.2g}")
        for mass in (top, top / 2, top / 5)
    ]


@dataclass(frozen=True, eq=False)
class Bundles:
    """Arcs to draw, one by one, or together if they begin and end in the same groups of nodes."""

    begins: Floats  # places on the line of labels, counted from 0, with node i at i - 1/2
    ends: Floats
    outputs: Floats  # means over the masses
    masses: Floats  # probabilities for a label that the arc does not favour
    arcs: int  # in all bundles
    grouped: int  # largest number of nodes that make one end, or 1 if all arcs are drawn

    @classmethod
    def of(cls, paths: Paths) -> Bundles:
        """Gather the arcs of a flow."""
        flow = paths.flow
        masses = (flow.masses * paths.ratio.denominator / flow.total(paths.ratio)).astype(np.float64)
        seen = float(paths.ratio) * masses >= LIMITS.least
        masses = masses[seen]
        outputs = paths.outputs[flow.at[seen]]
        nodes = np.stack((flow.first, flow.last + 1))[:, seen]
        if masses.size <= LIMITS.arcs:
            return cls(nodes[0] - 0.5, nodes[1] - 0.5, outputs, masses, masses.size, 1)
        # The ends of the line are nodes of many arcs, and are not grouped.
        edges = np.concatenate(([0], 1 + group_edges(flow.k - 1, LIMITS.arc_groups - 2), [flow.k + 1]))
        groups = np.searchsorted(edges, nodes, side="right")
        which = np.unique(groups, axis=1, return_inverse=True)[1]
        total = np.bincount(which, masses).astype(np.float64)
        begins, ends, means = (np.bincount(which, masses * each) / total for each in (*nodes, outputs))
        return cls(begins - 0.5, ends - 0.5, means, total, masses.size, int(np.diff(edges).max()))

    def curves(self) -> Floats:
        """Return half ellipses, as high as the square root of their span, shape ``(arcs, points, 2)``."""
        turn = np.linspace(0, np.pi, LIMITS.arc_points)
        half = (self.ends - self.begins)[:, np.newaxis] / 2
        centre = (self.ends + self.begins)[:, np.newaxis] / 2
        return np.stack((centre - half * np.cos(turn), np.sqrt(2 * half) * np.sin(turn)), axis=2)


@suggest_parameters
def phases_figure(subject: Flow, *, ax: Place = None) -> FigureBase:
    """Draw a randomizer as a mixture of randomized responses on bins: bins and outputs against a public random number.

    The public number is drawn uniformly, independently of the label. Each number has a partition of the labels into
    bins, the bands between the lines. Each bin has an output, the bar of its own shade: that of the label's own bin is
    ``exp(epsilon)`` times as likely as each other one. With two bins this is a public threshold, and then a private
    bit. If there are many components, those at evenly spread numbers are drawn, as the title states.

    Parameters
    ----------
    subject : Mechanism, release record or Randomizer
        With interval columns (:func:`optrand.studies.decompose_paths`).

    Raises
    ------
    InvalidInput
        A column is not an interval, or outputs are classes, which have no order.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> phases_figure(optrand.solve(problem)).get_suptitle()
    'A mixture of 3 randomized responses on 2 or 3 bins: 4 labels, ε = 2'
    """
    if not has_means(subject):
        raise InvalidInput("classes have no order, and so no bins: draw a pmf or the matrix")
    paths = extract_paths(subject)
    edges, borders, outputs = _strips(paths)
    with canvas(ax, (6.4, 3.8)) as figure:
        axes = figure.add_subplot()
        bands = borders[:, 1:-1].shape[1] < LIMITS.bordered
        if bands:
            _draw_bands(axes, edges, borders)
        for bin_, heights in enumerate(outputs.T):
            colour = DARK if bin_ % 2 else MIDDLE
            pieces = [((x0, y), (x1, y)) for x0, x1, y in zip(edges[:-1], edges[1:], heights, strict=True) if y == y]
            axes.add_collection(LineCollection(pieces, colors=colour, linewidths=2.0, label="outputs", zorder=3))
        axes.set(xlabel="public random number", ylabel="label, and output (label units)", xlim=(0, 1))
        axes.autoscale_view(scalex=False)
        handles = [Line2D([], [], color=INK, linewidth=0.8, label="border between bins")] * bands
        handles += [
            Line2D([], [], color=MIDDLE, linewidth=2, label="output of bins 1, 3, …"),
            Line2D([], [], color=DARK, linewidth=2, label="output of bins 2, 4, …"),
        ]
        style.set_legend(figure, handles)
        style.set_title(figure, _caption(paths, edges.size - 1))
    return figure


def _strips(paths: Paths) -> tuple[Floats, Floats, Floats]:
    """Return the edges of strips from 0 to 1, and for each the borders of its bins and their outputs, padded with NaN.

    Borders begin with the lower end of the first label and end with the upper end of the last one.
    """
    tops = np.cumsum(np.array(paths.weights, dtype=np.float64))
    edges, numbers = np.concatenate(([0.0], tops)), range(len(paths))
    most = max(LIMITS.fewest_phases, min(LIMITS.phases, LIMITS.pieces // int(paths.bins.max())))
    if len(paths) > most:
        edges = np.linspace(0, 1, most + 1)
        middles = np.searchsorted(tops, (edges[1:] + edges[:-1]) / 2)
        numbers = [min(int(number), len(paths) - 1) for number in middles]  # type: ignore[assignment]
    shown = [paths[number] for number in numbers]
    sides = line_edges(paths.labels)
    borders = np.full((len(shown), int(paths.bins.max()) + 1), np.nan)
    outputs = np.full((len(shown), int(paths.bins.max())), np.nan)
    for strip, path in enumerate(shown):
        borders[strip, : path.bins] = sides[path.first]
        borders[strip, path.bins] = sides[-1]
        outputs[strip, : path.bins] = path.outputs
    return edges, borders, outputs


def _draw_bands(axes: Axes, edges: Floats, borders: Floats) -> None:
    """Shade the bins, every second one darker, and draw the borders between them as steps."""
    for band, (low, high) in enumerate(pairwise(borders.T)):
        shade = style.LIGHT if band % 2 else "#f1f1ee"
        axes.stairs(high, edges, baseline=low, fill=True, color=shade, linewidth=0, label="bin", zorder=0)
    for column in borders[:, 1:-1].T:
        # The upper end of the last label is not a border between two bins.
        heights = np.where(column < np.nanmax(borders), column, np.nan)
        axes.stairs(heights, edges, baseline=None, color=INK, linewidth=0.8, label="border")


def _caption(paths: Paths, drawn: int) -> str:
    few, many = int(paths.bins.min()), int(paths.bins.max())
    between = "or" if many == few + 1 else "to"
    bins = write_count(many, "bin") if few == many else f"{few:,} {between} {many:,} bins"
    mixture = f"A mixture of {len(paths):,} randomized responses" if len(paths) > 1 else "Randomized response"
    title = f"{mixture} on {bins}: {write_count(paths.labels.size, 'label')}, ε = {math.log(paths.ratio):g}"
    return title if drawn == len(paths) else f"{title}\n{drawn} of them drawn, at evenly spread numbers"


@suggest_parameters
def dual_figure(subject: Mechanism | Released, *, ax: Place = None) -> FigureBase:
    r"""Draw the dual certificate: the least reduced cost at each output, which is zero at the outputs in use.

    .. math:: f(v) = \sum_y h_y(v) + (E - 1) \sum_y \min(h_y(v), 0), \qquad
              h_y(v) = p_y g(v, y) - \alpha_y - \beta_y v

    If :math:`f` is nowhere negative, no private randomizer loses less than the bound of the multipliers. One that
    attains it has outputs only where :math:`f = 0` (``docs/mathematics.md``, section 2). The title states how far below
    zero the curve may reach, the bound of the optimum, rounded outward, and the gap, as certified. The curve is drawn
    from floats, around the outputs. If these lie far apart, the axis is broken, and the curve rises out of the picture.

    Parameters
    ----------
    subject : Mechanism or release record
        With a dual.

    Raises
    ------
    InvalidInput
        The subject has no dual, or one whose reduced costs leave the range of floats.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> print(dual_figure(debiased_rr([0, 1], 1.0)).get_suptitle())
    ε = 1, 2 labels: f(v) ≥ 0 everywhere
    so the optimum is at least 0.460336, gap 2.5·10⁻¹⁶
    """
    problem, mechanism = problem_of(subject), mechanism_in(subject)
    if mechanism.dual is None:
        raise InvalidInput("there is no dual, and so no proof to draw: solve the problem again")
    outputs, proof = extract_table(mechanism).outputs, mechanism.certificate
    lowest = lowest_price(problem, mechanism.dual)
    if not math.isfinite(lowest):
        raise InvalidInput("the dual is too large: reduced costs leave the range of floats, solve the problem again")
    with canvas(ax, (6.4, 3.4)) as figure:
        _draw_costs(figure, problem, mechanism.dual, outputs, class_names(subject))
        bound = "no optimum is certified"
        if math.isfinite(proof.gap):
            upward = problem.loss == losses.zero_one
            bound = f"at most {style.above(proof.upper, 6)}" if upward else f"at least {style.below(proof.lower, 6)}"
            bound = f"so the optimum is {bound}, gap {style.above(proof.gap, 2)}"
        heading = f"ε = {problem.epsilon:g}, {write_count(problem.k, 'label')}: f(v) ≥ "
        heading += f"{style.below(min(0.0, lowest), 2)} everywhere\n{bound}"
        style.set_title(figure, heading)
    return figure


def _draw_costs(figure: FigureBase, problem: Problem, dual: Dual, outputs: Floats, classes: Sequence[str] = ()) -> None:
    """Draw the curve, on an axis that is broken between outputs that lie far apart, and the outputs below it."""
    axes, width = figure.add_subplot(), inches(figure)[0]
    grid = problem.outputs.values if isinstance(problem.outputs, Grid) else None
    broken = outputs.size >= LIMITS.unbroken and grid is None and wide_gaps(outputs).size > 0
    margin = (0.01 if broken else 0.15) * float(np.ptp(outputs)) or 1.0
    shown = outputs if grid is None or grid.size > LIMITS.whole_grid else grid
    places = _places(problem, shown, margin)
    # Reduced costs depend neither on the allowed outputs nor on the bias penalty.
    costs = price(replace(problem, outputs=Grid(places), bias_penalty=0.0), dual, places)
    x, marks = places, outputs
    if broken:
        ranks = Ranks.of(outputs, width - 0.7, outputs.size, even=False)
        x, marks = ranks.place(places), ranks.places
        ranks.draw(axes, "output v (label units)")
    else:
        axes.set_xlabel("output v (label units)" if problem.loss != losses.zero_one else "released class v")
        if classes:
            style.tick_labels(axes.xaxis, problem.labels, width - 0.9, classes)
        elif grid is not None:
            axes.locator_params(axis="x", integer=bool((grid == np.rint(grid)).all()))
    look: Any = {"color": "#434e6c", "label": "least reduced cost", "linewidth": 1.0}
    if grid is not None:
        axes.vlines(x, 0, costs, color=MIDDLE, linewidth=0.6, zorder=1)
        look |= {"marker": "o", "markersize": 4.0 if places.size <= 100 else 1.5, "linestyle": ""}
    axes.plot(x, costs, **look)
    size = float(np.clip(72 * width / outputs.size, 2, 4))
    triangles: Any = {"marker": "^", "markerfacecolor": "white", "markersize": size, "linestyle": "", "zorder": 4}
    axes.plot(marks, np.zeros(outputs.size), color=INK, label="output of the randomizer", **triangles)
    axes.axhline(0, color=INK, linewidth=0.6, zorder=1)
    # Where the axis is broken, and beyond its ends, the curve may rise out of the picture.
    inner = costs[_is_within(places, outputs)] if broken else costs
    low, high = min(0.0, float(inner.min())), max(0.0, float(inner.max()))
    if high < LIMITS.cost_noise * float(np.abs(dual.alpha).max()):
        low, high = min(low, -0.08), 1.0
    axes.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    # The marks of a grid reach beyond its ends.
    side = 0.0 if grid is None else 0.03 * float(np.ptp(x))
    axes.set_xlim(x[0] - side, x[-1] + side) if x[0] < x[-1] else None
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_ylabel("reduced cost f(v) (loss)")
    style.set_legend(
        figure, [line for line in axes.lines if line.get_label() in (look["label"], "output of the randomizer")]
    )


def _is_within(places: Floats, outputs: Floats) -> NDArray[np.bool_]:
    """Check which places lie between neighbouring outputs that are not far apart."""
    after = np.searchsorted(outputs, places)
    inside = (after > 0) & (after < outputs.size)
    return inside & ~np.isin(after - 1, wide_gaps(outputs))


def _places(problem: Problem, outputs: Floats, margin: float) -> Floats:
    """Return many allowed outputs at which to draw the curve, with those of the randomizer among them."""
    low = max(problem.outputs.low, float(outputs[0]) - margin)
    high = min(problem.outputs.high, float(outputs[-1]) + margin)
    if isinstance(problem.outputs, Grid):
        values = problem.outputs.values
        return values[(values >= low) & (values <= high)]
    steps = 4 * LIMITS.curve_points // outputs.size
    between = np.linspace(outputs[:-1], outputs[1:], steps, axis=1).ravel() if steps > 3 else outputs
    places = np.union1d(np.linspace(low, high, LIMITS.curve_points), np.union1d(outputs, between))
    return places[places > 0] if problem.loss.positive_outputs else places
