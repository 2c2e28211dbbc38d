"""Price of bias: the least variance at the biases of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from optrand.base.validation import expect
from optrand.errors import InvalidInput
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light, logarithmic, looks
from optrand.plotting.style import INK
from optrand.plotting.subject import counted
from optrand.studies.sweeps import SweepRow

__all__ = ["frontier_figure"]

ENDS: tuple[tuple[float, str, dict[str, Any]], ...] = (
    (0.0, "penalty 0: the least loss", {"marker": "s", "markersize": 7}),
    (math.inf, "penalty ∞: no bias", {"marker": "*", "markersize": 11}),
)


def frontier_figure(
    sweep: Iterable[SweepRow], *, penalties: bool = True, ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    """Standard deviation against bias, and both against the bias penalty, one curve for every epsilon.

    Every mark is proven to have the least variance for its bias. Lines between marks only
    lead the eye. The title counts the rows that are not certified.

    Parameters
    ----------
    sweep : Sweep, or some of its rows
        Over bias penalties; several epsilons make several curves.
    penalties : bool
        Whether a second panel shows both against the penalty.

    Raises
    ------
    InvalidInput
        No row is certified, or there are more epsilons than curves can be told apart.

    Examples
    --------
    >>> import math
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> figure = frontier_figure(optrand.studies.sweep(problem, bias_penalties=[0.0, 1.0, math.inf]))
    >>> figure.get_suptitle()
    'Least variance at the bias of each mark: 3 certified randomizers'
    """
    expect(sweep, Iterable, "sweep", "that of optrand.studies.sweep, or some of its rows")
    rows = list(sweep)
    for row in rows:
        expect(row, SweepRow, "a row of the sweep", "one of optrand.studies.sweep")
    proven = [row for row in rows if row.status == "certified"]
    if not proven:
        raise InvalidInput(f"none of {len(rows)} rows is certified: their reasons say why")
    curves: dict[float, list[SweepRow]] = {}
    for row in sorted(proven, key=lambda row: (row.epsilon, row.bias_penalty)):
        curves.setdefault(row.epsilon, []).append(row)
    compromises = penalties and any(0 < row.bias_penalty < math.inf for row in proven)
    with canvas(CURVES, ax, size, (7.2, 3.8), title=title) as figure:
        panels: list[Axes] = figure.subplots(1, 1 + compromises, squeeze=False)[0].tolist()
        for look, (epsilon, curve) in zip(looks(curves, "epsilons"), curves.items(), strict=True):
            _draw_frontier(panels[0], curve, {**look, "markersize": 3, "label": f"ε = {epsilon:g}"})
            for axes in panels[1:]:
                _draw_penalties(axes, curve, look)
        _name_frontier(panels[0])
        for axes in panels[1:]:
            _name_penalties(axes)
        missing = f", {len(rows) - len(proven):,} left out without a proof" if len(proven) < len(rows) else ""
        figure.suptitle(
            f"Least variance at the bias of each mark: {counted(len(proven), 'certified randomizer')}{missing}"
        )
    return figure


def _draw_frontier(axes: Axes, curve: Sequence[SweepRow], look: dict[str, Any]) -> None:
    axes.plot(_biases(curve), _deviations(curve), **look)
    for penalty, name, end in ENDS:
        here = [row for row in curve if row.bias_penalty == penalty]
        axes.plot(_biases(here), _deviations(here), color=look["color"], linestyle="", label=f"_{name}", **end)


def _draw_penalties(axes: Axes, curve: Sequence[SweepRow], look: dict[str, Any]) -> None:
    inner = [row for row in curve if 0 < row.bias_penalty < math.inf]
    penalties = [row.bias_penalty for row in inner]
    size: dict[str, Any] = {"color": look["color"], "marker": look["marker"], "markersize": 3}
    size["markerfacecolor"] = look["markerfacecolor"]
    axes.plot(penalties, _deviations(inner), linestyle="-", label="_deviation", **size)
    axes.plot(penalties, _biases(inner), linestyle=":", label="_bias", **size)


def _name_frontier(axes: Axes) -> None:
    axes.set(xlabel="root mean squared bias (label units)", ylabel="standard deviation (label units)")
    axes.set_ylim(bottom=0)
    handles = [*axes.get_legend_handles_labels()[0]]
    handles += [Line2D([], [], color=INK, linestyle="", label=name, **end) for _, name, end in ENDS]
    axes.legend(handles=handles, loc="best")
    light(axes)


def _name_penalties(axes: Axes) -> None:
    axes.set(xlabel="bias penalty (loss per squared bias)", ylabel="(label units)")
    axes.set_ylim(bottom=0)
    logarithmic(axes)
    deviation = Line2D([], [], color=INK, linestyle="-", label="standard deviation")
    bias = Line2D([], [], color=INK, linestyle=":", label="root mean squared bias")
    axes.legend(handles=[deviation, bias])
    light(axes)


def _deviations(rows: Sequence[SweepRow]) -> list[float]:
    return [math.sqrt(row.variance) for row in rows]


def _biases(rows: Sequence[SweepRow]) -> list[float]:
    return [math.sqrt(row.squared_bias) for row in rows]
