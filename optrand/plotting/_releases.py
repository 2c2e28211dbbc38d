"""Pictures of releases: labels kept, mechanisms of groups, shares of labels, and many releases together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._arithmetic import privacy_ratio
from optrand.base._numerals import format_above
from optrand.base._validation import Floats, check_integer, check_prior, check_real, expect, suggest_parameters
from optrand.closed_forms._response import kept_labels
from optrand.errors import InvalidInput
from optrand.estimate import Histogram
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._privacy_loss import DominatingPair
from optrand.plotting import _style as style
from optrand.plotting._style import INK, LIMITS, MIDDLE, Place, canvas, check_epsilons, inches, line_edges, looks


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
    budgets = check_epsilons(epsilons)
    styles = looks(budgets, "epsilons")
    with canvas(ax, (7.2, 3.2)) as figure:
        gain, by_epsilon = style.side_by_side(figure, 2)
        grid = np.geomspace(0.05, 16.0, 321)
        # Powers of logarithms, so that the largest share does not vanish.
        with np.errstate(divide="ignore"):
            logarithms = np.log(p / p.max())
        for power, dashes, name in ((1.0, "-", "this prior"), (2.0, "--", "its square"), (0.5, ":", "its square root")):
            raised = np.exp(power * logarithms)
            kept = _count_kept(raised / raised.sum(), grid)
            by_epsilon.plot(grid, kept, drawstyle="steps-mid", color=INK, linestyle=dashes, linewidth=1, label=name)
        for look, epsilon in zip(styles, budgets, strict=True):
            _draw_gain(gain, p, epsilon, look)
            by_epsilon.plot(epsilon, _count_kept(p, [epsilon]), **{**look, "markersize": 7}, label=f"_ε = {epsilon:g}")
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
    best = int(_count_kept(p, [epsilon])[0])
    small = {**look, "markersize": 2.5} if p.size <= LIMITS.kept_marks else {**look, "marker": ""}
    axes.plot(k, gain, label="_w", **small)
    axes.plot(best, gain[best - 1], label=f"ε = {epsilon:g}: k = {best:,}", **{**look, "markersize": 7})


def _count_kept(p: Floats, epsilons: Iterable[float]) -> NDArray[np.intp]:
    return np.array([np.count_nonzero(kept_labels(p[np.newaxis], float(epsilon))) for epsilon in epsilons])


def group_text(name: str) -> str:
    """Write the name of a group as text: the values of a record's JSON list, without its brackets and quotes."""
    try:
        values = json.loads(name)
    except ValueError:
        return name
    if not isinstance(values, list):
        return name
    return ", ".join("missing" if value is None else str(value) for value in values)


def find_distinct(mechanisms: Mapping[str, Mechanism]) -> list[tuple[Mechanism, list[str]]]:
    """Find the distinct mechanisms, each with the names of its groups as text."""
    found: dict[str, tuple[Mechanism, list[str]]] = {}
    for name, mechanism in mechanisms.items():
        found.setdefault(mechanism.digest, (mechanism, []))[1].append(group_text(name))
    return list(found.values())


@suggest_parameters
def groups_figure(mechanisms: Mapping[str, Mechanism], *, total: float | None = None, ax: Place = None) -> FigureBase:
    """Draw a row for each mechanism of a release by groups: its prior to the left, its noise to the right.

    The noise is the standard deviation of the output of a label, in label units, or, for classes, the probability that
    a label becomes another one.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By their groups, such as :attr:`.ReleaseRecord.mechanisms`. Groups that share one are in one row.
    total : float, optional
        Budget of the whole release, in nats.

    Raises
    ------
    InvalidInput
        There are no groups.

    Examples
    --------
    >>> from optrand import rr
    >>> figure = groups_figure({"a": rr([0, 1], 1.0), "b": rr([0, 1], 1.0)}, total=1.0)
    >>> figure.get_suptitle(), len(figure.axes)
    ('2 groups, 1 mechanism, total ε = 1', 2)
    """
    expect(mechanisms, Mapping, "mechanisms", "a dict of mechanisms by group")
    distinct = find_distinct(mechanisms)
    if not distinct:
        raise InvalidInput("there are no groups to draw, expected a mechanism for each")
    rows = [distinct[place] for place in style.spread(len(distinct), LIMITS.panels)]
    with canvas(ax, (6.4, 0.8 + 1.2 * len(rows))) as figure:
        panels = figure.subplots(len(rows), 2, sharex=True, sharey="col", squeeze=False)
        classes = rows[0][0].problem.loss == losses.zero_one
        for (left, right), (mechanism, names) in zip(panels, rows, strict=True):
            labels, noise = mechanism.labels, _noise(mechanism)
            left.vlines(labels, 0, mechanism.problem.prior, color=INK, linewidth=1.2, label="prior")
            right.vlines(labels, 0, noise, color=style.LIGHT, linewidth=1.2)
            right.plot(labels, noise, color=INK, linestyle="", marker=".", label="noise")
            text, longest = ", ".join(names), int(8 * inches(figure)[0])
            if len(text) > longest:
                text = f"{text[: longest - 1]}… ({style.write_count(len(names), 'group')})"
            left.set_title(text, loc="left", parse_math=False)
            left.set_ylabel("prior")
            right.set_ylabel("P(another class)" if classes else "std. dev.")
        for axes in panels[-1]:
            axes.set_xlabel("class" if classes else "label (label units)")
            # Two calls: the first leaves a margin above the highest mark, the second begins the axis at zero.
            axes.margins(y=0.08)
            axes.set_ylim(bottom=0)
        parts = [style.write_count(len(mechanisms), "group"), style.write_count(len(distinct), "mechanism")]
        parts[-1] += f", {len(rows)} of them shown" if len(rows) < len(distinct) else ""
        parts += [] if total is None else [f"total ε = {format_above(total, 6)}"]
        style.set_title(figure, ", ".join(parts))
    return figure


def _noise(mechanism: Mechanism) -> Floats:
    if mechanism.problem.loss != losses.zero_one:
        return np.sqrt(np.maximum(mechanism.moments(mechanism.labels).variances, 0.0))
    return 1 - np.abs(mechanism.losses(losses.zero_one))


@suggest_parameters
def shares_figure(
    histogram: Histogram, *, truth: ArrayLike | None = None, names: Sequence[object] = (), ax: Place = None
) -> FigureBase:
    """Draw the unbiased share of every label in a release, in a band of two noise errors either way.

    Noise errors are those of the released table. Unbiased shares may be negative. The nearest histogram without
    negative shares is drawn beside them.

    Parameters
    ----------
    histogram : Histogram
        Result of :func:`optrand.estimate.histogram`.
    truth : (k,) array, optional
        Shares of the labels in the table itself, in an experiment.
    names : sequence, optional
        Names of the classes, such as :attr:`.ReleaseRecord.labels`, in place of their numbers.

    Raises
    ------
    InvalidInput
        The true shares are not a histogram of the labels, or names are not one per label.

    Notes
    -----
    Errors are computed for all labels, which takes a second for 2,001 labels.

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
    edges, words = line_edges(labels), style.short_names(names)
    if words and len(words) != labels.size:
        raise InvalidInput(f"there are {len(words)} names for {labels.size} labels, expected one for each")
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
        axes.set(xlabel="class" if words else "label", ylabel="share of the rows", xlim=edges[[0, -1]])
        axes.set_ylim(low.min() - margin, high.max() + margin)
        if words:
            style.tick_labels(axes.xaxis, labels, inches(figure)[0] - 0.9, words)
        else:
            style.set_integer_ticks(axes.xaxis)
        axes.grid()
        style.set_legend(figure, axes.get_legend_handles_labels()[0])
        heading = f"Shares of {style.write_count(labels.size, 'label')} from "
        heading += f"{style.write_count(histogram.size, 'released value')}: noise error at most "
        style.set_title(figure, heading + style.above(float(errors.max()), 2))
    return figure


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
