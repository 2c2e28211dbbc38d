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
from numpy.typing import ArrayLike, NDArray

from optrand.base._arithmetic import privacy_ratio
from optrand.base._suggestions import suggest_parameters
from optrand.base._validation import Floats, check_epsilon, check_integer, check_prior, check_real, expect
from optrand.baselines import LabelRandomizer, Moments
from optrand.closed_forms._response import kept_labels
from optrand.errors import Infeasible, InvalidInput
from optrand.estimate import Histogram
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._privacy_loss import DominatingPair
from optrand.model._randomizer import Randomizer
from optrand.plotting import _style as style
from optrand.plotting._style import (
    INK,
    LIMITS,
    MIDDLE,
    Place,
    above,
    canvas,
    inches,
    line_edges,
    looks,
    spread,
    write_count,
)
from optrand.studies._many import SweepRow

# Bias against variance


@suggest_parameters
def frontier_figure(sweep: Iterable[SweepRow], *, ax: Place = None) -> FigureBase:
    """Draw the standard deviation against the bias, one curve per epsilon, with the bias penalty beside each mark.

    Every mark is proven to have the least variance for its bias. Lines between marks only lead the eye. The title
    counts the rows that are not certified.

    Parameters
    ----------
    sweep : Sweep, or some of its rows
        Over bias penalties; several epsilons make several curves.

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
    curves: dict[float, list[SweepRow]] = {}
    for row in sorted(proven, key=lambda row: (row.epsilon, row.bias_penalty)):
        curves.setdefault(row.epsilon, []).append(row)
    with canvas(ax, (5.0, 3.4)) as figure:
        axes = figure.add_subplot()
        for look, (epsilon, curve) in zip(looks(curves, "epsilons"), curves.items(), strict=True):
            axes.plot(*_frontier(curve), label=f"ε = {epsilon:g}", **look)
        axes.set(xlabel="root mean squared bias (label units)", ylabel="standard deviation (label units)")
        axes.set_ylim(bottom=0)
        axes.margins(x=0.08)
        _write_penalties(axes, list(curves.values()), inches(figure))
        axes.grid()
        style.set_legend(figure, axes.lines)
        heading = "Least variance at the bias of each mark (numbers: bias penalty): "
        heading += write_count(len(proven), "certified randomizer")
        heading += f", {len(rows) - len(proven):,} left out without a proof" if len(proven) < len(rows) else ""
        style.set_title(figure, heading)
    return figure


def _frontier(curve: Sequence[SweepRow]) -> tuple[list[float], list[float]]:
    return [math.sqrt(row.squared_bias) for row in curve], [math.sqrt(row.variance) for row in curve]


def _write_penalties(axes: Axes, curves: list[list[SweepRow]], size: tuple[float, float]) -> None:
    """Write the penalty beside each mark if it overlaps with no other, the largest penalties first."""
    x_unit = 72 * size[0] / float(np.ptp(axes.get_xlim()))
    y_unit = 72 * size[1] / float(np.ptp(axes.get_ylim()))
    taken: list[tuple[float, float]] = []
    for curve, line in zip(curves, axes.lines, strict=True):
        for row, x, y in reversed(list(zip(curve, *_frontier(curve), strict=True))):
            # The smallest penalty stands below its mark: the next one is close to it.
            offset = (-3, -10) if row is curve[0] else (4, 2)
            place = x * x_unit + offset[0], y * y_unit + offset[1]
            if all(abs(place[0] - other[0]) > 20 or abs(place[1] - other[1]) > 9 for other in taken):
                taken.append(place)
                name = "∞" if math.isinf(row.bias_penalty) else style.plain(float(f"{row.bias_penalty:.2g}"))
                axes.annotate(name, (x, y), offset, textcoords="offset points", fontsize=7, color=line.get_color())


# Moments against epsilon


Answer = Moments | Mechanism | Randomizer | LabelRandomizer
"""Randomizers that can be drawn; a mechanism must be feasible for its own problem."""


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

    All are means under one prior. The loss is half the mean squared error, which is the sum of the squares of the
    other two. If no randomizer has a bias, the title states it and there is no third panel.

    Parameters
    ----------
    randomizers : mapping of names to functions of epsilon
        Functions return an :data:`Answer`. The curve has no point if one raises `Infeasible` or a moment is infinite.
    prior : (k,) array
        Probabilities of the labels.
    epsilons : iterable of float
        In nats.
    labels : (k,) array, optional
        Labels at which to ask for the moments of a randomizer such as :class:`optrand.baselines.Laplace`.

    Raises
    ------
    InvalidInput
        An answer is of another kind or for another number of labels, or there are too many curves.
    NotCertified
        A mechanism is biased although its problem allows no bias.

    Examples
    --------
    >>> import optrand
    >>> labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    >>> optimal = lambda epsilon: optrand.solve(
    ...     optrand.unbiased_regression(labels, prior, epsilon)
    ... )
    >>> debiased = lambda epsilon: optrand.debiased_rr(labels, epsilon)
    >>> figure = moments_figure(
    ...     {"optimal unbiased": optimal, "debiased RR": debiased}, prior, epsilons=[0.5, 1, 2]
    ... )
    >>> loss = figure.axes[0]
    >>> [f"{line.get_label()}: {line.get_ydata()[1]:.6f}" for line in loss.lines]
    ['optimal unbiased: 1.945447', 'debiased RR: 2.209143']
    """
    expect(randomizers, Mapping, "randomizers", "a dict of functions of epsilon by name")
    for name, function in randomizers.items():
        if not callable(function):
            raise InvalidInput(f"{name!r} is a {type(function).__name__}, expected a function of epsilon")
    budgets = sorted(_check_epsilons(epsilons))
    styles = looks(randomizers, "randomizers")
    weights = check_prior(prior, np.size(prior))
    means = {name: _means(name, each, budgets, weights, labels) for name, each in randomizers.items()}
    biased = any(np.nanmax(found[2], initial=0.0) > 0 for found in means.values())
    with canvas(ax, (7.2, 2.9)) as figure:
        panels = style.side_by_side(figure, 2 + biased, "ε (nats)")
        # Many curves lie close together: smaller marks keep more of each visible.
        mark = 4.0 if len(randomizers) <= 6 else 3.0
        # Titles go above the panels: beside one they are longer than a low panel is high.
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


def _check_epsilons(epsilons: Iterable[float]) -> list[float]:
    expect(epsilons, Iterable, "epsilons", "a list of numbers")
    budgets = [check_epsilon(epsilon) for epsilon in epsilons]
    if not budgets:
        raise InvalidInput("epsilons is empty, expected at least one number")
    return budgets


def _means(
    name: str, function: Callable[[float], Answer], budgets: Sequence[float], weights: Floats, labels: ArrayLike | None
) -> Floats:
    """Return loss, deviation and bias at each epsilon, shape ``(3, number of epsilons)``, NaN if there is no point.

    A deviation or a loss of zero has no place on a logarithmic axis, and is left out too.
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
                f"{name!r} gave a {type(answer).__name__}, whose moments depend on the label: pass labels"
            )
        answer = answer.moments(labels)
    if not isinstance(answer, Moments):
        raise InvalidInput(
            f"{name!r} gave a {type(answer).__name__}, expected moments, a mechanism "
            "or another randomizer with moments for each epsilon"
        )
    if answer.biases.size != k:
        raise InvalidInput(f"{name!r} has {answer.biases.size} labels, expected {k}, as many as the prior")
    return answer


# The number of labels that RRWithPrior keeps


@suggest_parameters
def rr_with_prior_figure(prior: ArrayLike, *, epsilons: Iterable[float], ax: Place = None) -> FigureBase:
    r"""Draw the gain of RRWithPrior by the number of labels it keeps, and that number by epsilon ([G21], Algorithm 2).

    With :math:`P_k` the sum of the `k` largest priors the first panel shows the probability

    .. math:: w_k = \frac{e^\epsilon P_k}{e^\epsilon + k - 1}

    that randomized response on the `k` likeliest labels returns the label. Its maximum, the large mark, is the `k` of
    RRWithPrior, and optimal (:func:`optrand.rr_with_prior`). The second panel shows that `k` against epsilon, also for
    priors in proportion to the square and to the square root of this one.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the labels.
    epsilons : iterable of float
        In nats, one curve each in the first panel.

    Raises
    ------
    InvalidInput
        There are too many curves.

    Examples
    --------
    >>> import optrand
    >>> prior = [0.5, 0.3, 0.2]
    >>> gain = rr_with_prior_figure(prior, epsilons=[1.0]).axes[0].lines[0].get_ydata()
    >>> gain.round(6).tolist()
    [0.5, 0.584847, 0.576117]
    >>> f"{optrand.certify(optrand.rr_with_prior(prior, 1.0)).require(gap=1e-12).lower:.6f}"
    '0.584847'
    """
    p = check_prior(prior, np.size(prior))
    budgets = _check_epsilons(epsilons)
    styles = looks(budgets, "epsilons")
    with canvas(ax, (7.2, 3.2)) as figure:
        gain, by_epsilon = style.side_by_side(figure, 2)
        grid = np.geomspace(0.05, 16.0, 321)
        for power, dashes, name in ((1.0, "-", "this prior"), (2.0, "--", "its square"), (0.5, ":", "its square root")):
            kept = _kept(_raise_to(p, power), grid)
            by_epsilon.plot(grid, kept, drawstyle="steps-mid", color=INK, linestyle=dashes, linewidth=1, label=name)
        for look, epsilon in zip(styles, budgets, strict=True):
            _draw_gain(gain, p, epsilon, look)
            by_epsilon.plot(epsilon, _kept(p, [epsilon]), **{**look, "markersize": 7}, label=f"_ε = {epsilon:g}")
        gain.set_title("probability of the label, $w_k$", loc="left")
        gain.set_xlabel("k, number of labels kept")
        gain.set_ylim(bottom=0)
        by_epsilon.set_title("best number of labels kept", loc="left")
        by_epsilon.set_xlabel("ε (nats)")
        style.set_logarithmic(by_epsilon.xaxis)
        for axes, axis in ((gain, gain.xaxis), (by_epsilon, by_epsilon.yaxis)):
            if p.size > LIMITS.kept_marks:
                style.set_logarithmic(axis)
            else:
                style.set_integer_ticks(axis)
            axes.grid()
        named = [line for line in (*gain.lines, *by_epsilon.lines) if not str(line.get_label()).startswith("_")]
        style.set_legend(figure, named)
        style.set_title(figure, f"RRWithPrior on {p.size:,} labels")
    return figure


def _draw_gain(axes: Axes, p: Floats, epsilon: float, look: dict[str, Any]) -> None:
    k = np.arange(1, p.size + 1)
    gain = np.cumsum(np.sort(p)[::-1]) / (1 + (k - 1) * math.exp(-epsilon))
    best = int(_kept(p, [epsilon])[0])
    small = {**look, "markersize": 2.5} if p.size <= LIMITS.kept_marks else {**look, "marker": ""}
    axes.plot(k, gain, label="_w", **small)
    axes.plot(best, gain[best - 1], label=f"ε = {epsilon:g}: k = {best:,}", **{**look, "markersize": 7})


def _raise_to(p: Floats, power: float) -> Floats:
    """Raise a prior to a power and normalize it, from logarithms so that it does not vanish."""
    logarithms = np.full(p.size, -np.inf)
    logarithms[p > 0] = power * np.log(p[p > 0] / p.max())
    weights = np.exp(logarithms)
    raised: Floats = weights / weights.sum()
    return raised


def _kept(p: Floats, epsilons: Iterable[float]) -> NDArray[np.intp]:
    return np.array([np.count_nonzero(kept_labels(p[np.newaxis], float(epsilon))) for epsilon in epsilons])


# Composition


@suggest_parameters
def composition_figure(
    mechanisms: dict[str, Mechanism], *, releases: int = 100, delta: float = 1e-6, ax: Place = None
) -> FigureBase:
    """Draw the epsilon of 1 to `releases` releases of each mechanism, beside basic and advanced composition.

    Parameters
    ----------
    mechanisms : dict
        From 1 to 9 by name, all of one epsilon.
    releases : int
    delta : float
        Above 0 and below 1.

    Notes
    -----
    Basic composition is ``n epsilon`` with delta 0, advanced composition ``epsilon sqrt(2 n log(1 / delta)) + n epsilon
    (e^epsilon - 1)`` [DRV10]_. The bound for any mechanism of that epsilon is the composition of a randomized bit
    [KOV17]_. Mechanisms are composed by :attr:`Mechanism.dominating_pair`.

    Examples
    --------
    >>> import optrand
    >>> classes = optrand.rr_with_prior([0.1] * 10, 0.1)
    >>> print(composition_figure({"10 classes": classes}, releases=20).get_suptitle())
    Releases of ε = 0.1 each, together at δ = 10⁻⁶
    """
    expect(mechanisms, dict, "mechanisms", "a dict of mechanisms by name")
    for mechanism in mechanisms.values():
        expect(mechanism, Mechanism, "an entry of mechanisms", "a Mechanism, such as solve(problem)")
    count, small = check_integer(releases, "releases", 2), check_real(delta, "delta")
    if not 0 < small < 1:
        raise InvalidInput(f"delta is {small}, expected a number above 0 and below 1")
    budgets = {mechanism.epsilon for mechanism in mechanisms.values()}
    if len(budgets) != 1:
        raise InvalidInput(f"there are mechanisms of {len(budgets)} epsilons, expected one: draw several pictures")
    epsilon = budgets.pop()
    ratio = privacy_ratio(epsilon)
    pairs = {"any mechanism, exactly": DominatingPair(ratio, 1 / (ratio + 1))}
    pairs |= {name: mechanism.dominating_pair for name, mechanism in mechanisms.items()}
    n = np.unique(np.linspace(1, count, min(count, LIMITS.releases)).round().astype(int))
    advanced = epsilon * np.sqrt(2 * n * math.log(1 / small)) + n * epsilon * math.expm1(epsilon)
    curves = {"basic composition": n * epsilon, "advanced composition": advanced}
    for name, pair in pairs.items():
        curves[name] = np.array([pair.epsilon(small, releases=i) for i in n.tolist()])
    with canvas(ax, (5.6, 3.6)) as figure:
        axes = figure.add_subplot()
        for (name, values), look in zip(curves.items(), looks(list(curves), "curves"), strict=True):
            axes.plot(n, values, label=name, **look)
        delta_text = f"δ = {style.plain(small)}"
        axes.set(xlabel="releases of one label", ylabel=f"ε at {delta_text} (nats)", xlim=(0, None))
        axes.set_ylim(0, max(n * epsilon) * 1.05)
        axes.grid()
        style.set_legend(figure, axes.lines)
        style.set_title(figure, f"Releases of ε = {epsilon:g} each, together at {delta_text}")
    return figure


# Shares of labels


@suggest_parameters
def shares_figure(histogram: Histogram, *, truth: ArrayLike | None = None, ax: Place = None) -> FigureBase:
    """Draw the unbiased share of every label in a release, in a band of two noise errors either way.

    Noise errors are those of the released table. Unbiased shares may be negative; the nearest histogram without
    negative shares is drawn beside them.

    Parameters
    ----------
    histogram : Histogram
        Result of :func:`optrand.estimate.histogram`.
    truth : (k,) array, optional
        Shares of the labels in the table itself, in an experiment.

    Raises
    ------
    InvalidInput
        The true shares are not a histogram of the labels.

    Notes
    -----
    Errors are computed for all labels: at 2,001 labels a second.

    Examples
    --------
    >>> import numpy as np, optrand
    >>> from optrand.sampling import SeededEntropy
    >>> mechanism = optrand.rr([0, 1, 2], 1.0)
    >>> released = mechanism.sample(
    ...     np.repeat([0, 1, 2], [5000, 3000, 2000]), source=SeededEntropy(1)
    ... )
    >>> figure = shares_figure(
    ...     optrand.estimate.histogram(released, mechanism), truth=[0.5, 0.3, 0.2]
    ... )
    >>> figure.get_suptitle()
    'Shares of 3 labels from 10,000 released values: noise error at most 0.013'
    """
    expect(histogram, Histogram, "histogram", "that of optrand.estimate")
    labels, shares, errors = histogram.labels, histogram.shares, histogram.noise_errors
    edges = line_edges(labels)
    low, high = shares - LIMITS.errors * errors, shares + LIMITS.errors * errors
    with canvas(ax, (6.4, 3.4)) as figure:
        axes = figure.subplots()
        mark = float(np.clip(5 * inches(figure)[0] / np.sqrt(labels.size), 1.0, 4.5))
        axes.stairs(high, edges, baseline=low, fill=True, color=style.LIGHT, label=f"± {LIMITS.errors} noise errors")
        axes.stairs(shares, edges, baseline=None, color=INK, linewidth=0.9, label="unbiased")
        nearest: Any = {"color": MIDDLE, "marker": "s", "markerfacecolor": "white", "linestyle": ""}
        axes.plot(labels, histogram.projected, markersize=mark, label="nearest without negative shares", **nearest)
        if truth is not None:
            true = check_prior(truth, labels.size)
            axes.plot(labels, true, color=INK, marker="o", linestyle="", markersize=0.7 * mark, label="true shares")
        axes.axhline(0, color=INK, linewidth=0.6)
        margin = 0.04 * float(high.max() - low.min())
        axes.set(xlabel="label", ylabel="share of the rows", xlim=edges[[0, -1]])
        axes.set_ylim(low.min() - margin, high.max() + margin)
        style.set_integer_ticks(axes.xaxis)
        axes.grid()
        style.set_legend(figure, axes.get_legend_handles_labels()[0])
        released = f"Shares of {write_count(labels.size, 'label')} from {write_count(histogram.size, 'released value')}"
        style.set_title(figure, f"{released}: noise error at most {above(float(errors.max()), 2)}")
    return figure


# Solve times


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
        row without a size (None) is of a method that needs none: a horizontal line.
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
    >>> rows = [
    ...     {"method": "LP", "mesh": mesh, "seconds": mesh**2 * 1e-4} for mesh in (50, 100, 200)
    ... ]
    >>> rows += [
    ...     {"method": "LP", "mesh": 400, "seconds": None},
    ...     {"method": "flow", "mesh": None, "seconds": 0.03},
    ... ]
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
                # One above the other: several may have been given up at one size.
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
            handles.append(Line2D([], [], color=INK, label="given up: took longer", **ARROW))
        style.set_legend(figure, handles)
    return figure


def _draw_times(
    axes: Axes, name: str, curve: Sequence[Row], size: str, look: dict[str, Any]
) -> list[tuple[float, float]]:
    """Draw a line at the time of a method without sizes, and the others against their sizes, which are returned."""
    free = [row["seconds"] for row in curve if row[size] is None and row["seconds"] is not None]
    if free:
        axes.axhline(free[0], label=name, color=look["color"], linestyle=look["linestyle"], linewidth=2.2, alpha=0.6)
    points = sorted((row[size], row["seconds"]) for row in curve if None not in (row[size], row["seconds"]))
    # Drawn even without a point, so that the legend names the series of an arrow.
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
