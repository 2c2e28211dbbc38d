"""What the benchmarks' pictures share: a look for each series that can be told apart in grey, and axes of powers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from optrand.plotting import save_figure
from optrand.plotting.style import INK, STYLE

__all__ = ["FAINT", "LOOKS", "drawing", "light", "log_log", "log_x"]

LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#00224e", "linestyle": "-", "marker": "o"},
    {"color": "#575d6d", "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": "#8a8678", "linestyle": "-.", "marker": "^"},
    {"color": "#b9a63f", "linestyle": ":", "marker": "D", "markerfacecolor": "white"},
)
"""From dark to light in cividis; line and marker differ as well."""

FAINT: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 3)), "zorder": 1}
"""A line that others are compared with."""


@contextmanager
def drawing(results: Path, name: str, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of some inches that is saved as a picture once it is drawn."""
    with matplotlib.rc_context({**STYLE, "lines.linewidth": 1.2, "lines.markersize": 4.5}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        results.mkdir(parents=True, exist_ok=True)
        path = results / f"{name}.png"
        save_figure(figure, path, overwrite=True)
    print(f"picture written to {path}")


def log_log(axes: Axes, x: str, y: str, ticks: Sequence[float] = ()) -> None:
    """Logarithmic axes with names and a light grid; numbers at 1, 2 and 5 times each power of ten, or where told to."""
    log_x(axes, ticks)
    axes.set_yscale("log")
    axes.set(xlabel=x, ylabel=y)
    _numbered(axes.yaxis)
    axes.minorticks_off()
    light(axes)


def log_x(axes: Axes, ticks: Sequence[float] = ()) -> None:
    """A logarithmic horizontal axis with plain numbers."""
    axes.set_xscale("log")
    _numbered(axes.xaxis)
    if ticks:
        axes.set_xticks(list(ticks))
    axes.xaxis.minorticks_off()


def light(axes: Axes) -> None:
    """A light grid behind what is drawn, and no frame."""
    axes.grid(which="major", color="#d9d9d9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _numbered(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
