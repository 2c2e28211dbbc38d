"""Pictures of an answer to a problem: its joint distribution, its flow, and the proof that it is optimal."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike

from optrand.base.numerals import shown_above
from optrand.certificates.certificate import Certificate
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import decompose_paths
from optrand.model import losses
from optrand.model.randomizer import Randomizer
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.dual import draw_dual
from optrand.plotting.flow import draw_flow
from optrand.plotting.joint import draw_joint
from optrand.plotting.style import STYLE, above, below
from optrand.plotting.subject import HasRandomizer, counted, drawn_table, problem_of
from optrand.solvers.prices import price

__all__ = ["dual_figure", "flow_figure", "joint_figure"]


def joint_figure(
    subject: Mechanism,
    *,
    labels: ArrayLike | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """Joint distribution of label and noisy label as a heat map, with both margins ([B23], Figure 3).

    Noisy labels are in bins of one width, many labels in groups. The title states the mean squared error of
    the exact table, rounded up.

    Parameters
    ----------
    subject : Mechanism
        Its problem holds the prior.

    Raises
    ------
    InvalidInput
        A subject without a problem, or with classes for outputs, between which there is no distance.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> print(joint_figure(debiased_rr([0, 1, 2], 1.0)).get_suptitle())
    ε = 1, 3 labels: mean squared error 4.36009
    noisy labels in 90 bins; dashed: noisy label = label
    """
    problem, table = problem_of(subject), drawn_table(subject)
    if problem.loss == losses.zero_one:
        raise InvalidInput("classes have no distance, and so no mean squared error: draw a pmf or the matrix")
    with canvas(STYLE, ax, size, (5.6, 5.8), title=title) as figure:
        fineness = draw_joint(figure, table, problem.prior, labels)
        stated = _squared_error(subject)
        figure.suptitle(f"ε = {problem.epsilon:g}, {counted(problem.k, 'label')}: {stated}\n{fineness}", fontsize=9)
    return figure


def _squared_error(mechanism: Mechanism) -> str:
    """Exact mean squared error in words, whatever the loss of the mechanism's problem is."""
    errors = zip(mechanism.prior.tolist(), mechanism.table.squared_errors, strict=True)
    return f"mean squared error {shown_above(sum(Fraction(p) * error for p, error in errors), 6)}"


def flow_figure(
    subject: Randomizer | HasRandomizer,
    *,
    labels: ArrayLike | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """Flow on the line of labels: an arc for every column, over the labels that it favours.

    An output is ``exp(epsilon)`` times as likely for the labels under its arc as for all others. Arcs are as wide as
    their mass, the output's probability for the other labels, and as dark as their output is high. All labels are under
    equal mass, which makes the rows sum to one. Of more than 400 arcs those between equal groups of labels are drawn as
    one.

    Parameters
    ----------
    subject : Mechanism or Randomizer
        With interval columns (:func:`optrand.mechanism.decompose_paths`).

    Raises
    ------
    InvalidInput
        Columns that are no intervals.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> flow_figure(optrand.solve(problem)).get_suptitle()
    'The flow of a randomizer: 6 arcs over 4 labels, ε = 2'
    """
    paths = decompose_paths(subject)
    with canvas(STYLE, ax, size, (7.2, 4.0), title=title) as figure:
        bundles = draw_flow(figure, paths, labels)
        arcs, over = counted(paths.flow.masses.size, "arc"), counted(paths.labels.size, "label")
        told = f"The flow of a randomizer: {arcs} over {over}, ε = {math.log(paths.ratio):g}"
        if bundles.grouped > 1:
            told += f"\ndrawn in {bundles.masses.size:,} bundles, between groups of up to {bundles.grouped:,} labels"
        figure.suptitle(told, fontsize=9)
    return figure


def dual_figure(subject: Mechanism, *, ax: Place = None, title: bool = True, size: Size = None) -> FigureBase:
    r"""Dual certificate as a picture: the price of the best column at each output, which is zero where the outputs are.

    .. math:: f(v) = \sum_y h_y(v) + (E - 1) \sum_y \min(h_y(v), 0), \qquad
              h_y(v) = p_y g(v, y) - \alpha_y - \beta_y v

    Where :math:`f` is nowhere negative, no private randomizer loses less than the bound of the multipliers; one that
    attains it has outputs only where :math:`f = 0` (``docs/mathematics.md``, section 2). The title states how far below
    zero the curve may reach, and bounds of the optimum, as certified and rounded outward; the curve is drawn from
    floats, above around all outputs, below close to some of them.

    Parameters
    ----------
    subject : Mechanism
        With a dual.

    Raises
    ------
    InvalidInput
        A subject without a dual, or with one whose prices leave the range of floats.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> print(dual_figure(debiased_rr([0, 1], 1.0)).get_suptitle())
    ε = 1, 2 labels: f(v) ≥ 0 for every allowed v
    so the optimum lies between 0.460336797103896 and 0.460336797103897
    """
    problem = problem_of(subject)
    if subject.dual is None:
        raise InvalidInput("there is no dual, and so no proof to draw: solve the problem again")
    table, proof = drawn_table(subject), subject.certificate
    with np.errstate(over="ignore"):
        lowest = price(problem, subject.dual).lowest
    if not math.isfinite(lowest):
        raise InvalidInput("the dual is too large: its prices leave the range of floats, solve the problem again")
    with canvas(STYLE, ax, size, (7.2, 5.0), title=title) as figure:
        draw_dual(figure, problem, subject.dual, table.outputs)
        floor = below(min(0.0, lowest), 2)
        told = f"ε = {problem.epsilon:g}, {counted(problem.k, 'label')}: f(v) ≥ {floor} for every allowed v\n"
        if math.isfinite(proof.gap):
            digits = _proven_digits(proof)
            told += f"so the optimum lies between {below(proof.lower, digits)} and {above(proof.upper, digits)}"
        else:
            told += "no optimum is certified"
        figure.suptitle(told, fontsize=9)
    return figure


def _proven_digits(proof: Certificate) -> int:
    """Digits of both ends of a certified range that show how close they are: one more than they share, 3 to 15."""
    return min(15, max(3, 2 - math.floor(math.log10(proof.gap)))) if proof.gap > 0 else 15
