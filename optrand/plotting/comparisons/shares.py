"""Shares of labels estimated from a release: the unbiased histogram, its errors, and its projection."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike

from optrand.base.validation import prior as checked_prior
from optrand.errors import InvalidInput
from optrand.estimate import Histogram
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.comparisons.curves import CURVES, light
from optrand.plotting.style import INK, above, line_edges
from optrand.plotting.subject import counted

__all__ = ["shares_figure"]

ERRORS = 2
"""Noise errors that the band reaches either way: some nineteen times in twenty the truth is inside."""

BAND = "#d3d6de"
NEAREST = "#a08c2c"

LARGEST_MARK = 4.5


def shares_figure(
    histogram: Histogram, *, truth: ArrayLike | None = None, ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    """Unbiased share of every label in a release, in a band of two noise errors either way.

    Noise errors are those of the released table. Unbiased shares may be negative; the nearest histogram without
    negative shares is drawn beside them.

    Parameters
    ----------
    histogram : Histogram
        Of :func:`optrand.estimate.histogram`.
    truth : (k,) array, optional
        The table's own shares, in an experiment.

    Raises
    ------
    InvalidInput
        True shares that are no histogram of the labels.

    Notes
    -----
    Errors are computed for all labels: at 2,001 labels a second.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> optrand.certify(mechanism).epsilon
    1.0
    >>> released = mechanism.sample(np.repeat([0, 1, 2], [5000, 3000, 2000]), source=SeededEntropy(1))
    >>> figure = shares_figure(optrand.estimate.histogram(released, mechanism), truth=[0.5, 0.3, 0.2])
    >>> figure.get_suptitle()
    'Shares of 3 labels from 10,000 released values, ε = 1: noise error at most 0.013'
    """
    if not isinstance(histogram, Histogram):
        raise InvalidInput(f"histogram is of type {type(histogram).__name__}, expected that of optrand.estimate")
    labels, shares, errors = histogram.labels, histogram.shares, histogram.noise_errors
    mechanism = histogram.debiasing.mechanism
    mark = float(np.clip(32 / np.sqrt(labels.size), 1.0, LARGEST_MARK))
    with canvas(CURVES, ax, size, (7.2, 3.8), title=title) as figure:
        axes, edges = figure.subplots(), line_edges(labels)
        low, high = shares - ERRORS * errors, shares + ERRORS * errors
        axes.stairs(high, edges, baseline=low, fill=True, color=BAND, label=f"± {ERRORS} noise errors")
        axes.stairs(shares, edges, baseline=None, color=INK, linewidth=0.9, label="unbiased")
        nearest: Any = {"color": NEAREST, "marker": "s", "markerfacecolor": "white", "linestyle": ""}
        axes.plot(labels, histogram.projected, markersize=mark, label="nearest without negative shares", **nearest)
        if truth is not None:
            true = checked_prior(truth, labels.size)
            axes.plot(labels, true, color=INK, marker="o", linestyle="", markersize=0.7 * mark, label="the table's own")
        axes.axhline(0, color=INK, linewidth=0.6)
        margin = 0.04 * float(high.max() - low.min())
        axes.set(
            xlabel="label",
            ylabel="share of the rows",
            xlim=edges[[0, -1]],
            ylim=(low.min() - margin, high.max() + margin),
        )
        light(axes)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.suptitle(
            f"Shares of {counted(labels.size, 'label')} from {counted(histogram.size, 'released value')}, "
            f"ε = {mechanism.epsilon:g}: noise error at most {above(float(errors.max()), 2)}"
        )
    return figure
