"""A claim as a picture: what is true of each instance against what is claimed of it."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from optrand.plotting.comparisons.curves import CURVES, light, looks
from optrand.theory.claim import Claim
from optrand.theory.finding import Evidence, Finding

__all__ = ["claim_figure"]

SPREAD = 100.0
"""Where the largest side is so many times the smallest one that is not zero, axes are logarithmic."""

DEPTH = 1e-15
"""Beside zeros or negative sides, those below this share of the largest are drawn as zero is."""


def claim_figure(claim: Claim, finding: Finding) -> Figure:
    """One mark an instance: the left side of the claim against the right one, and the line where they are equal.

    The shaded side of the line is where the claim is false. Marks of the printed form, of the corrected one and of the
    false variant have looks of their own.

    Examples
    --------
    >>> from optrand.theory import check, find
    >>> claim = find(number="Proposition 7")[0]
    >>> figure = claim_figure(claim, check(claim))
    >>> figure.axes[0].get_title()
    'B23 Proposition 7: holds'
    """
    forms = {"as printed": finding.printed, "as corrected": finding.corrected, "false variant": finding.false}
    drawn = {name: evidence for name, evidence in forms.items() if evidence is not None}
    with matplotlib.rc_context(CURVES):
        figure = Figure(figsize=(5.2, 4.4), layout="constrained")
        axes = figure.add_subplot()
        for (name, evidence), look in zip(drawn.items(), looks(drawn, "forms"), strict=True):
            axes.plot(*_finite(evidence), **{**look, "linestyle": "none", "label": f"{name} ({evidence.tried})"})
        _scaled(axes, list(drawn.values()))
        _shade(axes, alike=finding.printed.worst.alike)
        light(axes)
        axes.set_xlabel("what is claimed: the right side")
        axes.set_ylabel("what is true: the left side")
        axes.set_title(f"{claim.name}: {finding.verdict.value}")
        axes.legend(loc="best")
    return figure


def _finite(evidence: Evidence) -> tuple[list[float], list[float]]:
    pairs = [(right, left) for left, right in evidence.sides if math.isfinite(left) and math.isfinite(right)]
    return [right for right, _ in pairs], [left for _, left in pairs]


def _scaled(axes: Axes, drawn: list[Evidence]) -> None:
    sides = np.array([side for evidence in drawn for pair in evidence.sides for side in pair])
    sizes = np.abs(sides[np.isfinite(sides) & (sides != 0)])
    if not sizes.size or sizes.max() <= SPREAD * sizes.min():
        return
    least = max(float(sizes.min()), DEPTH * float(sizes.max()))
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        if (sides > 0).all():
            scale("log")
        else:
            scale("symlog", linthresh=least, linscale=1)
        axis.set_minor_locator(NullLocator())
    axes.locator_params(numticks=7)


def _shade(axes: Axes, *, alike: bool) -> None:
    """The line of equality, and the side of it on which the claim is false."""
    low = min(axes.get_xlim()[0], axes.get_ylim()[0])
    high = max(axes.get_xlim()[1], axes.get_ylim()[1])
    axes.plot([low, high], [low, high], color="#1a1a1a", linewidth=0.8, zorder=1)
    if not alike:
        axes.fill_between([low, high], [low, high], high, color="#ececec", linewidth=0, zorder=0)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
