"""Solve times against a size, from rows of a benchmark."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from optrand.base.validation import expect
from optrand.errors import InvalidInput
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light, logarithmic, looks
from optrand.plotting.style import INK

__all__ = ["times_figure"]

NAMES = {"k": "labels", "mesh": "mesh size"}
"""Names of the columns of sizes on an axis."""

WIDTH = 100
"""Letters of a title that fit on a line."""

RISE = 1.6
"""Factor by which an arrow stands above all times, and above another arrow of its size."""

ARROW: Any = {"linestyle": "", "marker": r"$\uparrow$", "markersize": 10}

Row = Mapping[str, Any]


def times_figure(
    rows: Iterable[Row], *, by: str, series: str, title: str = "", ax: Place = None, size: Size = None
) -> FigureBase:
    """Seconds against a size, on logarithmic axes, one curve a series.

    Parameters
    ----------
    rows : iterable of mappings
        With `seconds`, and the two columns below. Without `seconds` (None) the solve was given up: an arrow above all
        times, and no lower than the row's `limit` if it has one, stands at the first such size. Without a size (None) a
        method needs none: a horizontal line.
    by : str
        Column of sizes, such as ``"mesh"`` or ``"k"``.
    series : str
        Column of the curves, such as ``"method"`` or ``"prior"``.
    title : str
        Problem and machine; none by default.

    Raises
    ------
    InvalidInput
        A row without one of the columns, times or sizes that are not positive, or too many series.

    Examples
    --------
    >>> rows = [{"method": "LP", "mesh": mesh, "seconds": mesh**2 * 1e-4} for mesh in (50, 100, 200)]
    >>> rows += [{"method": "LP", "mesh": 400, "seconds": None}, {"method": "flow", "mesh": None, "seconds": 0.03}]
    >>> figure = times_figure(rows, by="mesh", series="method")
    >>> [line.get_label() for line in figure.axes[0].lines if line.get_label()[0] != "_"]
    ['LP', 'flow']
    """
    curves: dict[str, list[Row]] = {}
    for row in rows:
        _check(row, (by, series, "seconds"), by)
        curves.setdefault(str(row[series]), []).append(row)
    top = max((row["seconds"] for curve in curves.values() for row in curve if row["seconds"] is not None), default=1.0)
    with canvas(CURVES, ax, size, (6.4, 3.8)) as figure:
        axes = figure.subplots()
        arrows = Counter[float]()
        for look, (name, curve) in zip(looks(curves, "series"), curves.items(), strict=True):
            _draw(axes, name, curve, by, look)
            if any(_given_up(row, by) for row in curve):
                first = min((row for row in curve if _given_up(row, by)), key=lambda row: row[by])
                # One above the other: several may have been given up at one size.
                height = max(RISE * top, first.get("limit", 0.0)) * RISE ** arrows[first[by]]
                arrows[first[by]] += 1
                _draw_given_up(axes, curve, by, (first[by], height), look)
        axes.set(xlabel=NAMES.get(by, by), ylabel="time to solve (seconds)")
        logarithmic(axes)
        logarithmic(axes, y=True)
        light(axes)
        handles = axes.get_legend_handles_labels()[0]
        if any(_given_up(row, by) for curve in curves.values() for row in curve):
            handles.append(Line2D([], [], color=INK, label="given up: took longer", **ARROW))
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1, 0.5))
        if title:
            figure.suptitle(textwrap.fill(title, WIDTH))
    return figure


def _draw(axes: Axes, name: str, curve: Sequence[Row], size: str, look: dict[str, Any]) -> None:
    free = [row["seconds"] for row in curve if row[size] is None and row["seconds"] is not None]
    if free:
        axes.axhline(free[0], label=name, color=look["color"], linestyle=look["linestyle"], linewidth=2.2, alpha=0.6)
    # Drawn even without a point, so that the legend names the series of an arrow.
    axes.plot(*_points(curve, size), label="_sizes" if free else name, **look)


def _draw_given_up(
    axes: Axes, curve: Sequence[Row], size: str, place: tuple[float, float], look: dict[str, Any]
) -> None:
    """Draw an arrow at the first size without a time, and a dotted line to it from the last time before."""
    missed, height = place
    sizes, seconds = _points([row for row in curve if row[size] is not None and row[size] < missed], size)
    line: Any = {"color": look["color"], "linestyle": ":", "linewidth": 0.8}
    axes.plot([*sizes[-1:], missed], [*seconds[-1:], height], label="_to the limit", **line)
    axes.plot(missed, height, label="_given up", color=look["color"], **ARROW)


def _points(curve: Sequence[Row], size: str) -> tuple[list[float], list[float]]:
    """Sizes in increasing order, and the seconds of each."""
    ended = sorted((row[size], row["seconds"]) for row in curve if row[size] is not None and row["seconds"] is not None)
    return [point[0] for point in ended], [point[1] for point in ended]


def _given_up(row: Row, size: str) -> bool:
    return row["seconds"] is None and row[size] is not None


def _check(row: Row, columns: Sequence[str], size: str) -> None:
    expect(row, Mapping, "a row", "a dict by column")
    missing = [column for column in columns if column not in row]
    if missing:
        raise InvalidInput(f"a row has no {' and no '.join(missing)}: expected the rows of one benchmark")
    for column in (size, "seconds"):
        amount = row[column]
        if amount is not None and not (isinstance(amount, (int, float)) and 0 < amount < float("inf")):
            raise InvalidInput(f"a row has {column} {amount!r}, expected a positive number or None")
