"""Picture of a release by groups: the prior of each group, and the noise that its own mechanism adds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import FigureBase

from optrand.base.numerals import shown_above
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.plotting.canvas import Place, Size, canvas
from optrand.plotting.style import INK, STYLE, spread
from optrand.plotting.subject import counted

__all__ = ["groups_figure", "pooled"]

MOST = 6
"""Mechanisms that are shown; of more, so many evenly spread ones."""

LONGEST = 40
"""Characters of the names of groups above a panel."""


def pooled(mechanisms: Mapping[str, Mechanism]) -> list[tuple[Mechanism, list[str]]]:
    """Distinct mechanisms, each with the names of the groups that share it, in the order of their first groups."""
    found: dict[str, tuple[Mechanism, list[str]]] = {}
    for name, mechanism in mechanisms.items():
        found.setdefault(mechanism.digest, (mechanism, []))[1].append(name)
    return list(found.values())


def groups_figure(
    mechanisms: Mapping[str, Mechanism],
    *,
    total: float | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """One row for each mechanism of a release by groups: its prior to the left, its noise to the right.

    The noise is the standard deviation of what a label becomes, in units of the labels; of classes the probability that
    a label becomes another one.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By their groups, such as :attr:`.ReleaseRecord.mechanisms`; groups that share one are in one row.
    total : float, optional
        Budget of the whole release, in nats.

    Raises
    ------
    InvalidInput
        No groups.

    Examples
    --------
    >>> from optrand import rr
    >>> figure = groups_figure({"a": rr([0, 1], 1.0), "b": rr([0, 1], 1.0)}, total=1.0)
    >>> figure.get_suptitle(), len(figure.axes)
    ('2 groups, 1 mechanism, total ε = 1', 2)
    """
    distinct = pooled(mechanisms)
    if not distinct:
        raise InvalidInput("there are no groups to draw, expected a mechanism for each")
    rows = [distinct[place] for place in spread(len(distinct), MOST)]
    with canvas(STYLE, ax, size, (7.2, 0.9 + 1.35 * len(rows)), title=title) as figure:
        told = [counted(len(mechanisms), "group"), counted(len(distinct), "mechanism")]
        if len(rows) < len(distinct):
            told[-1] += f", {len(rows)} of them shown"
        if total is not None:
            told.append(f"total ε = {shown_above(total, 6)}")
        figure.suptitle(", ".join(told), fontsize=9)
        axes = figure.subplots(len(rows), 2, sharex=True, sharey="col", squeeze=False)
        for (left, right), (mechanism, names) in zip(axes, rows, strict=True):
            labels = mechanism.labels
            # Zeros, so that a step at each label is drawn from the ground.
            left.vlines(labels, 0, mechanism.problem.prior, color=INK, linewidth=1.2)
            right.plot(labels, _noise(mechanism), color=INK, linewidth=1.2, marker="." if labels.size <= 60 else "")
            left.set_title(_shortened(names), loc="left")
        classes = rows[0][0].problem.loss == losses.zero_one
        axes[0, 1].set_title("Probability of another class" if classes else "Standard deviation of the noise")
        for axis, text in zip(axes[-1], ("label, and its prior", "label (label units)"), strict=True):
            axis.set_xlabel(text)
            axis.set_ylim(bottom=0)
    return figure


def _noise(mechanism: Mechanism) -> np.ndarray:
    if mechanism.problem.loss != losses.zero_one:
        return np.sqrt(np.maximum(mechanism.moments(mechanism.labels).variances, 0.0))
    table = mechanism.randomizer
    kept = table.outputs[np.newaxis, :] == table.labels[:, np.newaxis]
    changed: np.ndarray = 1 - np.where(kept, table.matrix, 0.0).sum(axis=1)
    return changed


def _shortened(names: list[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}… ({counted(len(names), 'group')})"
