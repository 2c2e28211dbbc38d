"""A claim as a picture: what is true of each instance against what is claimed of it."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.ticker import NullLocator

from optrand.base.validation import Floats
from optrand.plotting._style import Place, add_grid, canvas, looks
from optrand.theory.checking import Finding
from optrand.theory.claim import Claim

__all__ = ["claim_figure"]


WIDTH = 62
"""Letters of the wording on a line above the axes."""

OUTLYING = 10.0
"""Multiple of the largest side of the claim itself beyond which the false variant does not stretch the axes."""


def claim_figure(claim: Claim, finding: Finding, *, ax: Place = None) -> FigureBase:
    """One mark an instance: the left side of the claim against the right one, and the line where they are equal.

    The shaded side of the line is where the claim is false. Marks of the printed form, of the corrected one and of the
    false variant have looks of their own.
    """
    forms = {"as printed": finding.printed, "as corrected": finding.corrected, "false variant": finding.false}
    drawn = {f"{name} ({each.tried})": np.array(each.sides) for name, each in forms.items() if each is not None}
    most = OUTLYING * max(_largest(sides) for name, sides in drawn.items() if not name.startswith("false"))
    drawn = {name: sides[np.isfinite(sides).all(axis=1)] for name, sides in drawn.items()}
    with canvas(ax, (5.2, 4.9)) as figure:
        axes = figure.add_subplot()
        for (name, sides), look in zip(drawn.items(), looks(drawn, "forms"), strict=True):
            near = (np.abs(sides) <= most).all(axis=1) if most else np.ones(len(sides), dtype=np.bool_)
            drawn[name], beyond = sides[near], int((~near).sum())
            shown = f"{name}, {beyond:,} beyond the axes" if beyond else name
            axes.plot(*drawn[name].T[::-1], **{**look, "linestyle": "none", "label": shown})
        _scale(axes, np.concatenate(list(drawn.values())))
        _shade(axes, alike=finding.printed.worst.alike)
        add_grid(axes)
        wording = (finding.corrected or finding.printed).wording
        left, right = (textwrap.fill(side, WIDTH) for side in claim.sides)
        axes.set(xlabel=right, ylabel=left)
        axes.set_title(textwrap.fill(" ".join(wording.split()), WIDTH))
        figure.suptitle(f"{claim.name}: {finding.verdict.value}")
        axes.legend(loc="best")
    return figure


def _largest(sides: Floats) -> float:
    return float(np.abs(sides[np.isfinite(sides)]).max(initial=0.0))


def _scale(axes: Axes, sides: Floats) -> None:
    """Logarithmic axes, for sides of very different sizes; with a part around zero, where not all are above it."""
    sizes = np.abs(sides[np.isfinite(sides) & (sides != 0)])
    if not sizes.size or sizes.max() <= 100 * sizes.min():
        return
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        if (sides > 0).all():
            scale("log")
        else:
            scale("symlog", linthresh=max(sizes.min(), 1e-15 * sizes.max()), linscale=1)
        axis.set_minor_locator(NullLocator())
    axes.locator_params(numticks=7)


def _shade(axes: Axes, *, alike: bool) -> None:
    """The line of equality, and the side of it on which the claim is false."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    ends = min(left, bottom), max(right, top)
    axes.plot(ends, ends, color="#1a1a1a", linewidth=0.8, zorder=1)
    if not alike:
        axes.fill_between(ends, ends, ends[1], color="#ececec", linewidth=0, zorder=0)
    axes.set(xlim=ends, ylim=ends)
