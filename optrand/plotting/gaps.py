"""Pictures of the closed form for small epsilon: the chord that decides whether it is optimal; a gap, then a bit."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import FigureBase

from optrand.closed_forms.gap import design_gap_response, gap_response_is_optimal
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.style import INK, LINE_SHADES, STYLE, above
from optrand.plotting.subject import counted, problem_of

__all__ = ["chord_figure", "gap_figure"]

POINTS = 400
"""Points of which a half circle is made."""

FEW = 100
"""Number of points up to which marks are of full size."""

LIGHT, DARK = LINE_SHADES[1], LINE_SHADES[-1]


def chord_figure(
    subject: Problem | Mechanism, *, ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    """Half circle with a point for every gap between labels, and the chord from the first point to the last one.

    The points are ``(P_j, r_j)`` of :func:`optrand.closed_forms.gap_response`. It is optimal on the line if and only if
    the chord is no longer than 1 (``docs/mathematics.md``, Proposition 19), which the scale shows and the title states
    as :func:`optrand.closed_forms.gap_response_is_optimal` decides it.

    Parameters
    ----------
    subject : Problem or Mechanism
        Of which only the problem counts.

    Raises
    ------
    InvalidInput
        A problem other than unbiased regression of squared error on two labels or more.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 0.5)
    >>> print(chord_figure(problem).get_suptitle())
    ε = 0.5, 4 labels: a chord of at most 0.326
    so a gap and a bit are optimal
    """
    problem = _problem(subject)
    gain = math.expm1(problem.epsilon)
    across = 1 + gain * np.cumsum(problem.prior / problem.prior.sum())[:-1]
    heights = np.sqrt(across * (gain + 2 - across))
    best = gap_response_is_optimal(problem.labels, problem.prior, problem.epsilon)
    length = math.hypot(across[-1] - across[0], heights[-1] - heights[0])
    with canvas(STYLE, ax, size, (6.4, 3.9), title=title) as figure:
        axes = figure.add_subplot()
        turn = np.linspace(0, np.pi, POINTS)
        radius = 1 + gain / 2
        axes.plot(radius * (1 - np.cos(turn)), radius * np.sin(turn), color=LIGHT, linewidth=1.0, label="half circle")
        ends = [0, -1]
        axes.plot(across[ends], heights[ends], color=DARK, linewidth=1.6, label=f"chord of {length:.3g}")
        mark = 4.0 if across.size <= FEW else 1.5
        look = {"linestyle": "", "marker": "o", "markersize": mark, "color": INK, "markerfacecolor": "white"}
        axes.plot(across, heights, label="points of the gaps", **look)  # type: ignore[arg-type]
        axes.plot([0, 1], [0, 0], color=INK, linewidth=2.5, solid_capstyle="butt", label="length 1")
        axes.set(
            xlabel="P = 1 + (exp(ε) \N{MINUS SIGN} 1) times the prior below the gap",
            ylabel="r, height of the half circle",
            aspect="equal",
            xlim=(-0.02 * radius, 2.02 * radius),
        )
        axes.set_ylim(-0.03 * radius, 1.05 * radius)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4)
        told = f"so a gap and a bit are {'optimal' if best else 'not optimal'}"
        bound = f"a chord of at most {above(length, 3)}" if best else f"a chord of {length:.4g}, longer than 1"
        figure.suptitle(f"{_caption(problem)}: {bound}\n{told}", fontsize=9)
    return figure


def gap_figure(subject: Problem | Mechanism, *, ax: Place = None, title: bool = True, size: Size = None) -> FigureBase:
    """Closed form of a problem as a public gap, then a private bit: both outputs against a public random number.

    To the public number belongs the gap between two labels whose strip it falls in, as wide as the gap is likely; the
    bit is whether the label lies above it, told truthfully with probability ``E / (E + 1)``, and answered by the output
    on the upper or the lower line.

    Parameters
    ----------
    subject : Problem or Mechanism
        Of which only the problem counts.

    Raises
    ------
    InvalidInput
        A problem other than unbiased regression of squared error on two labels or more.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 0.5)
    >>> gap_figure(problem).get_suptitle()
    'A public gap, then a private bit: ε = 0.5, 4 labels, optimal'
    """
    problem = _problem(subject)
    solution = design_gap_response(problem.labels, problem.prior, problem.epsilon)
    arcs, count = solution.randomizer.arcs, problem.k - 1
    if arcs is None:
        raise InvalidInput("the closed form has no arcs")
    edges = np.concatenate(([0.0], np.cumsum(arcs.masses[:count]) / arcs.masses[:count].sum()))
    with canvas(STYLE, ax, size, (7.2, 4.0), title=title) as figure:
        axes = figure.add_subplot()
        low, high = (np.append(values, values[-1]) for values in (problem.labels[:-1], problem.labels[1:]))
        axes.fill_between(edges, low, high, step="post", color=LIGHT, alpha=0.6, linewidth=0, label="gap")
        for outputs, style, told in (
            (arcs.outputs[count:], "-", "output of a yes: the label is above the gap"),
            (arcs.outputs[:count], "--", "output of a no: it is below"),
        ):
            axes.step(edges, np.append(outputs, outputs[-1]), where="post", color=DARK, linestyle=style, label=told)
        axes.set(xlabel="public random number", ylabel="label and output (label units)", xlim=(0, 1))
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3)
        figure.suptitle(
            f"A public gap, then a private bit: {_caption(problem)}, "
            f"{'optimal' if solution.stats.status == 'optimal' else 'not optimal'}",
            fontsize=9,
        )
    return figure


def _problem(subject: Problem | Mechanism) -> Problem:
    problem = subject if isinstance(subject, Problem) else problem_of(subject)
    if problem.loss != losses.squared or not problem.unbiased or problem.k < 2:
        raise InvalidInput(
            "this picture is one of unbiased regression of squared error on two labels or more: see unbiased_regression"
        )
    return problem


def _caption(problem: Problem) -> str:
    return f"ε = {problem.epsilon:g}, {counted(problem.k, 'label')}"
