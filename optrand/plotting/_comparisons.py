"""Pictures that compare randomizers, problems or runs, drawn from computed records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from optrand.base._validation import Floats, check_prior, expect, suggest_parameters
from optrand.baselines import LabelRandomizer, Moments
from optrand.errors import Infeasible, InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.model._randomizer import Randomizer
from optrand.plotting import _style as style
from optrand.plotting._style import INK, LIMITS, Place, canvas, check_epsilons, inches, looks, spread, write_count
from optrand.studies._many import SweepRow


@suggest_parameters
def frontier_figure(sweep: Iterable[SweepRow], *, ax: Place = None) -> FigureBase:
    """Draw the standard deviation against the bias, one curve per epsilon, with the bias penalty beside each mark.

    Every mark is proven to have the least variance for its bias. Lines between marks only lead the eye. The title
    counts the rows that are not certified. If no row has a bias, the deviation is drawn against epsilon.

    Parameters
    ----------
    sweep : Sweep, or some of its rows
        Rows over bias penalties, with one curve per epsilon.

    Raises
    ------
    InvalidInput
        No row is certified, or there are more epsilons than distinguishable curves.

    Examples
    --------
    >>> import math
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> figure = frontier_figure(
    ...     optrand.studies.sweep(problem, bias_penalties=[0.0, 1.0, math.inf])
    ... )
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['∞', '1', '0']
    """
    expect(sweep, Iterable, "sweep", "that of optrand.studies.sweep, or some of its rows")
    rows = list(sweep)
    for row in rows:
        expect(row, SweepRow, "a row of the sweep", "one of optrand.studies.sweep")
    proven = [row for row in rows if row.status == "certified"]
    if not proven:
        raise InvalidInput(f"none of {len(rows)} rows is certified: see their reasons")
    unbiased = all(row.squared_bias <= LIMITS.bias_noise**2 * row.variance for row in proven)
    curves: dict[float, list[SweepRow]] = {}
    for row in sorted(proven, key=lambda row: (row.epsilon, row.bias_penalty)):
        curves.setdefault(row.bias_penalty if unbiased else row.epsilon, []).append(row)
    with canvas(ax, (5.0, 3.4)) as figure:
        axes = figure.add_subplot()
        kind = "bias penalties" if unbiased else "epsilons"
        for look, (number, curve) in zip(looks(curves, kind), curves.items(), strict=True):
            deviations = [math.sqrt(row.variance) for row in curve]
            if unbiased:
                name = "without bias" if math.isinf(number) else f"bias penalty {number:g}"
                axes.plot([row.epsilon for row in curve], deviations, label=name, **look)
            else:
                axes.plot([math.sqrt(row.squared_bias) for row in curve], deviations, label=f"ε = {number:g}", **look)
        axes.set_ylabel("standard deviation (label units)")
        axes.set_ylim(bottom=0)
        axes.margins(x=0.08)
        if unbiased:
            budgets = sorted({row.epsilon for row in proven})
            axes.set_xlabel("ε (nats)")
            style.set_logarithmic(axes.xaxis, [budgets[place] for place in spread(len(budgets), LIMITS.budget_ticks)])
            heading = "Least standard deviation without bias: "
        else:
            axes.set_xlabel("root mean squared bias (label units)")
            _write_penalties(axes, list(curves.values()), inches(figure))
            heading = "Least variance at the bias of each mark (numbers: bias penalty): "
        axes.grid()
        style.set_legend(figure, axes.lines)
        heading += write_count(len(proven), "certified randomizer")
        heading += f", {len(rows) - len(proven):,} left out without a proof" if len(proven) < len(rows) else ""
        style.set_title(figure, heading)
    return figure


def _write_penalties(axes: Axes, curves: list[list[SweepRow]], size: tuple[float, float]) -> None:
    """Write the penalty beside each mark if it overlaps no other, the largest penalties first."""
    x_unit = 72 * size[0] / float(np.ptp(axes.get_xlim()))
    y_unit = 72 * size[1] / float(np.ptp(axes.get_ylim()))
    taken: list[tuple[float, float]] = []
    for curve, line in zip(curves, axes.lines, strict=True):
        for row, (x, y) in reversed(list(zip(curve, np.asarray(line.get_xydata()).tolist(), strict=True))):
            # The smallest penalty stands below its mark, as the next one is close to it.
            offset = (-3, -10) if row is curve[0] else (4, 2)
            place = x * x_unit + offset[0], y * y_unit + offset[1]
            if all(abs(place[0] - other[0]) > 20 or abs(place[1] - other[1]) > 9 for other in taken):
                taken.append(place)
                name = "∞" if math.isinf(row.bias_penalty) else style.plain(float(f"{row.bias_penalty:.2g}"))
                axes.annotate(name, (x, y), offset, textcoords="offset points", fontsize=7, color=line.get_color())


Answer = Moments | Mechanism | Randomizer | LabelRandomizer
"""Randomizers that can be drawn. A mechanism must be feasible for its own problem."""


@suggest_parameters
def moments_figure(
    randomizers: Mapping[str, Callable[[float], Answer]],
    prior: ArrayLike,
    *,
    epsilons: Iterable[float],
    labels: ArrayLike | None = None,
    ax: Place = None,
) -> FigureBase:
    """Draw loss, standard deviation and bias against epsilon, one curve per randomizer ([B23], Figure 4(a)).

    All are means under one prior. The loss is half the mean squared error, of which the paper plots the whole: the sum
    of the squares of the other two. If no randomizer has a bias, the title states it and there is no third panel.

    Parameters
    ----------
    randomizers : mapping of names to functions of epsilon
        Functions return an :data:`Answer`. A point is left out if one raises `Infeasible` or a moment is infinite.
    prior : (k,) array
        Probabilities of the labels.
    epsilons : iterable of float
        In nats.
    labels : (k,) array, optional
        Labels at which to compute the moments of a randomizer such as :class:`optrand.baselines.Laplace`.

    Raises
    ------
    InvalidInput
        An answer is of another kind or for another number of labels, or there are too many curves.
    NotCertified
        A mechanism is biased although its problem allows no bias.

    Examples
    --------
    >>> import optrand
    >>> debiased = lambda epsilon: optrand.debiased_rr([0, 1, 2], epsilon)
    >>> figure = moments_figure({"debiased RR": debiased}, [0.5, 0.3, 0.2], epsilons=[0.5, 1])
    >>> [f"{line.get_label()}: {line.get_ydata()[1]:.6f}" for line in figure.axes[0].lines]
    ['debiased RR: 2.209143']
    """
    expect(randomizers, Mapping, "randomizers", "a dict of functions of epsilon by name")
    for name, function in randomizers.items():
        if not callable(function):
            raise InvalidInput(f"{name!r} is a {type(function).__name__}, expected a function of epsilon")
    budgets = sorted(check_epsilons(epsilons))
    styles = looks(randomizers, "randomizers")
    weights = check_prior(prior, np.size(prior))
    means = {name: _means(name, each, budgets, weights, labels) for name, each in randomizers.items()}
    biased = any(np.nanmax(found[2], initial=0.0) > 0 for found in means.values())
    with canvas(ax, (7.2, 2.9)) as figure:
        panels = style.side_by_side(figure, 2 + biased, "ε (nats)")
        # Many curves lie close together, and smaller marks hide less of them.
        mark = 4.0 if len(randomizers) <= 6 else 3.0
        # Titles go above the panels, since they are longer than a low panel is high.
        moments = ("noisy label loss", "standard deviation", "root mean squared bias")
        for row, (axes, moment) in enumerate(zip(panels, moments, strict=False)):
            for look, (name, found) in zip(styles, means.items(), strict=True):
                axes.plot(budgets, found[row], label=name, clip_on=False, **{**look, "markersize": mark})
            axes.set_title(moment, loc="left")
            style.set_logarithmic(axes.xaxis, [budgets[place] for place in spread(len(budgets), LIMITS.budget_ticks)])
            if row < 2:
                style.set_logarithmic(axes.yaxis)
            else:
                axes.set_ylim(bottom=0)
            axes.grid()
        style.set_legend(figure, panels[0].lines)
        heading = "Means under the prior, in label units (loss: squared)"
        style.set_title(figure, heading + ("" if biased else ", all without bias"))
    return figure


def _means(
    name: str, function: Callable[[float], Answer], budgets: Sequence[float], weights: Floats, labels: ArrayLike | None
) -> Floats:
    """Return loss, deviation and bias at each epsilon, shape ``(3, number of epsilons)``, NaN if there is no point.

    A deviation or a loss of zero has no position on a logarithmic axis, and is left out, too.
    """
    found = np.full((3, len(budgets)), math.nan)
    for place, epsilon in enumerate(budgets):
        try:
            answer = function(epsilon)
        except Infeasible:
            continue
        moments = _moments(name, answer, weights.size, labels)
        squared = float(weights @ np.where(weights > 0, moments.biases**2, 0.0))
        deviation, bias = math.sqrt(moments.variance(weights)), math.sqrt(squared)
        found[:, place] = moments.loss(weights), deviation, bias if bias > LIMITS.bias_noise * deviation else 0.0
    found[~np.isfinite(found)] = math.nan
    found[:2][found[:2] <= 0] = math.nan
    return found


def _moments(name: str, answer: Answer, k: int, labels: ArrayLike | None) -> Moments:
    if isinstance(answer, Mechanism):
        answer.certificate.require(gap=math.inf)
        answer = answer.moments(answer.labels)
    elif isinstance(answer, Randomizer):
        answer = Moments(answer.biases, answer.variances)
    elif hasattr(answer, "moments") and not isinstance(answer, Moments):
        if labels is None:
            raise InvalidInput(
                f"{name!r} returned a {type(answer).__name__}, whose moments depend on the label: pass labels"
            )
        answer = answer.moments(labels)
    if not isinstance(answer, Moments):
        raise InvalidInput(
            f"{name!r} returned a {type(answer).__name__}, expected moments, a mechanism "
            "or another randomizer with moments for each epsilon"
        )
    if answer.biases.size != k:
        raise InvalidInput(f"{name!r} has {answer.biases.size} labels, expected {k} as in the prior")
    return answer


ARROW: Any = {"linestyle": "", "marker": r"$\uparrow$", "markersize": 9}

Row = Mapping[str, Any]


@suggest_parameters
def times_figure(rows: Iterable[Row], *, by: str, series: str, ax: Place = None) -> FigureBase:
    """Draw seconds against a size, on logarithmic axes, one curve per series.

    Parameters
    ----------
    rows : iterable of mappings
        With `seconds`, and the two columns below. A row without `seconds` (None) is of a solve that was aborted. It is
        drawn as an arrow at the first such size, above all times and at least at the row's `limit`, if it has one. A
        row without a size (None) is of a method that needs none, drawn as a horizontal line.
    by : str
        Column of sizes, such as ``"mesh"`` or ``"k"``.
    series : str
        Column of the curves, such as ``"method"`` or ``"prior"``.

    Raises
    ------
    InvalidInput
        A row lacks one of the columns, times or sizes are not positive, or there are too many series.

    Examples
    --------
    >>> rows = [{"method": "LP", "mesh": 200, "seconds": 4.0}]
    >>> rows += [{"method": "LP", "mesh": 400, "seconds": None}]
    >>> rows += [{"method": "flow", "mesh": None, "seconds": 0.03}]
    >>> figure = times_figure(rows, by="mesh", series="method")
    >>> [line.get_label() for line in figure.axes[0].lines if line.get_label()[0] != "_"]
    ['LP', 'flow']
    """
    curves: dict[str, list[Row]] = {}
    for row in rows:
        _check_row(row, (by, series, "seconds"), by)
        curves.setdefault(str(row[series]), []).append(row)
    every = [row for curve in curves.values() for row in curve]
    top = max((row["seconds"] for row in every if row["seconds"] is not None), default=1.0)
    with canvas(ax, (6.4, 3.8)) as figure:
        axes = figure.subplots()
        arrows = Counter[float]()
        for look, (name, curve) in zip(looks(curves, "series"), curves.items(), strict=True):
            points = _draw_times(axes, name, curve, by, look)
            given_up = [row for row in curve if row["seconds"] is None and row[by] is not None]
            if given_up:
                first = min(given_up, key=lambda row: row[by])
                # One above the other, as several may have been aborted at one size.
                height = max(LIMITS.arrow_rise * top, first.get("limit", 0.0)) * LIMITS.arrow_rise ** arrows[first[by]]
                arrows[first[by]] += 1
                place, colour = (first[by], height), look["color"]
                line = [*[point for point in points if point < place[:1]][-1:], place]
                axes.plot(*zip(*line, strict=True), label="_to the limit", color=colour, linestyle=":", linewidth=0.8)
                axes.plot(*place, label="_given up", color=colour, clip_on=False, **ARROW)
        sizes = sorted({row[by] for row in every if row[by] is not None})
        axes.set(xlabel={"k": "labels", "mesh": "mesh size"}.get(by, by), ylabel="time to solve (seconds)")
        axes.margins(0.08)
        style.set_logarithmic(axes.xaxis, sizes if len(sizes) <= LIMITS.size_ticks else ())
        style.set_logarithmic(axes.yaxis)
        axes.grid()
        handles = axes.get_legend_handles_labels()[0]
        if arrows:
            handles.append(Line2D([], [], color=INK, label="aborted: took longer", **ARROW))
        style.set_legend(figure, handles)
    return figure


def _draw_times(
    axes: Axes, name: str, curve: Sequence[Row], size: str, look: dict[str, Any]
) -> list[tuple[float, float]]:
    """Draw times against sizes, which are returned, or a line at the time of a method without sizes."""
    free = [row["seconds"] for row in curve if row[size] is None and row["seconds"] is not None]
    if free:
        axes.axhline(free[0], label=name, color=look["color"], linestyle=look["linestyle"], linewidth=2.2, alpha=0.6)
    points = sorted((row[size], row["seconds"]) for row in curve if None not in (row[size], row["seconds"]))
    # Draw a curve without points, too, so that the legend names the series of an arrow.
    axes.plot(*np.reshape(points, (-1, 2)).T, label="_sizes" if free else name, **look)
    return points


def _check_row(row: Row, columns: Sequence[str], size: str) -> None:
    expect(row, Mapping, "a row", "a dict by column")
    missing = [column for column in columns if column not in row]
    if missing:
        raise InvalidInput(f"a row has no {' and no '.join(missing)}: expected the rows of one benchmark")
    for column in (size, "seconds"):
        amount = row[column]
        if amount is not None and not (isinstance(amount, (int, float)) and 0 < amount < float("inf")):
            raise InvalidInput(f"a row has {column} {amount!r}, expected a positive number or None")
