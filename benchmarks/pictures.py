"""What the benchmarks' pictures share, beside what all pictures that compare do: a faint line, and where they go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from optrand.plotting import save_figure
from optrand.plotting._style import INK, STYLE, add_grid, looks, set_logarithmic

__all__ = ["FAINT", "add_grid", "drawing", "left", "log_log", "log_x", "log_y", "looks"]

FAINT: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (1, 3)), "zorder": 1}
"""A line that others are compared with."""


@contextmanager
def drawing(results: Path, name: str, size: tuple[float, float]) -> Iterator[Figure]:
    """Yield a figure of the given size in inches, and save it as a picture afterwards."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        left(figure, results, name)


def left(figure: FigureBase, results: Path, name: str) -> None:
    """Leave a figure as a picture among the results."""
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{name}.png"
    save_figure(figure, path, overwrite=True)
    print(f"picture written to {path}")


def log_log(axes: Axes, x: str, y: str, ticks: Sequence[float] = ()) -> None:
    """Logarithmic axes with names and a light grid, and numbers where told to."""
    log_x(axes, ticks)
    log_y(axes)
    axes.set(xlabel=x, ylabel=y)
    add_grid(axes)


def log_x(axes: Axes, ticks: Sequence[float] = ()) -> None:
    """Make the horizontal axis logarithmic, with plain numbers."""
    set_logarithmic(axes.xaxis, ticks)


def log_y(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers."""
    set_logarithmic(axes.yaxis)
