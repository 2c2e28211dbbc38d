"""Shared parts of pictures with several curves: looks that can be told apart in grey, and axes with plain numbers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from optrand.errors import InvalidInput
from optrand.plotting.style import STYLE

__all__ = ["CURVES", "light", "logarithmic", "looks"]

CURVES: Any = {**STYLE, "figure.titlesize": 9, "lines.linewidth": 1.2, "lines.markersize": 4.5}

SHADES = ("#00224e", "#8a8678", "#434e6c", "#b9a63f")
"""Shades of cividis, neighbours far apart in lightness, too."""

LINES = ("-", "--", "-.", ":")
MARKERS = "os^DvPX*<>ph"


def looks(names: Collection[object], what: str) -> list[dict[str, Any]]:
    """Looks of some curves, no two with one marker, so that they can be told apart without colour.

    Raises
    ------
    InvalidInput
        No curve, or more than there are markers.

    Examples
    --------
    >>> [(look["marker"], look["linestyle"]) for look in looks(["a", "b", "c"], "randomizers")]
    [('o', '-'), ('s', '--'), ('^', '-.')]
    """
    if not 1 <= len(names) <= len(MARKERS):
        raise InvalidInput(f"{len(names)} {what} for one picture, expected 1 to {len(MARKERS)}: draw several pictures")
    return [
        {
            "color": SHADES[i % len(SHADES)],
            "linestyle": LINES[(i + i // len(SHADES)) % len(LINES)],
            "marker": marker,
            "markerfacecolor": "white" if i % 2 else SHADES[i % len(SHADES)],
        }
        for i, marker in enumerate(MARKERS[: len(names)])
    ]


def logarithmic(axes: Axes, *, y: bool = False) -> None:
    """Make the horizontal axis logarithmic, or the vertical one: plain numbers at 1, 2 and 5 times powers of ten."""
    if y:
        axes.set_yscale("log")
    else:
        axes.set_xscale("log")
    axis: Axis = axes.yaxis if y else axes.xaxis
    low, high = axes.get_ylim() if y else axes.get_xlim()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 500 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}" if 1e-4 < value < 1e7 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)


def light(axes: Axes) -> None:
    """Draw a light grid behind the curves, and no frame."""
    axes.grid(which="major", color="#d9d9d9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
