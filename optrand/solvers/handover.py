"""Labels between two others: the columns that favour the lower one give way, one after another, to those of the upper.

Each column is cut into few pieces: there are at most as many more as there are columns and labels, where the mixture of
the rows on either side, just as unbiased, would cut every column once a label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.model.randomizer import Arcs, Indices

__all__ = ["handed_over"]


class _Cuts(NamedTuple):
    """Shares of the mass up to which the pieces of a column go, the last one 1, and the label at an end of each."""

    shares: Floats
    labels: Indices


def handed_over(arcs: Arcs, places: Indices, labels: Floats) -> Arcs:
    """Unbiased arcs over all labels, from those over some.

    Parameters
    ----------
    arcs : Arcs
        Over some labels, the first and the last one among them; unbiased there.
    places : (arcs.k,) array of int
        Which labels these are.
    labels : (k,) array

    Returns
    -------
    Arcs
        Unbiased at every label, and with the same rows at those that were there.

    Examples
    --------
    >>> arcs = Arcs(2, [0, 1], [0, 1], [-0.5, 1.5], [0.25, 0.25])
    >>> whole = handed_over(arcs, np.array([0, 2]), np.array([0.0, 0.25, 1.0]))
    >>> whole.table(3.0)[1] @ whole.table(3.0)[0]
    array([0.  , 0.25, 1.  ])
    """
    begin = {i: _Cuts(np.ones(1), places[[first]]) for i, first in enumerate(arcs.first.tolist())}
    end = {i: _Cuts(np.ones(1), places[[last]]) for i, last in enumerate(arcs.last.tolist())}
    for gap in np.flatnonzero(np.diff(places) > 1).tolist():
        lower, upper = np.flatnonzero(arcs.last == gap), np.flatnonzero(arcs.first == gap + 1)
        lower, upper = (some[np.argsort(arcs.outputs[some], kind="stable")] for some in (lower, upper))
        if not (arcs.masses[lower].any() and arcs.masses[upper].any()):
            continue  # What claims to be unbiased and is not stays so.
        below, above = (_shares(arcs.masses[some]) for some in (lower, upper))
        there = np.arange(places[gap], places[gap + 1] + 1)
        until = _handed(below, above, (arcs.outputs[lower], arcs.outputs[upper]), labels[there])
        end.update(zip(lower.tolist(), _pieces(below, until, there[:-1]), strict=True))
        begin.update(zip(upper.tolist(), _pieces(above, until, there[1:]), strict=True))
    pieces = [_both(begin[i], end[i]) for i in range(arcs.first.size)]
    counts = [shares.size for _, _, shares in pieces]
    first, last, shares = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    masses, outputs, rests = (np.repeat(x, counts) for x in (arcs.masses, arcs.outputs, arcs.rests))
    return Arcs(labels.size, first, last, outputs, masses * shares, rests)


def _shares(masses: Floats) -> Floats:
    """Share of the whole up to each mass and with it; the last one is 1."""
    sums = np.cumsum(masses)
    shares: Floats = sums / sums[-1]
    return shares


def _handed(below: Floats, above: Floats, outputs: tuple[Floats, Floats], labels: Floats) -> Floats:
    """Share of the mass that has changed sides before each label but the first, so that the mean is that label.

    The mean need not grow along the way: a share is the first one at which it is right.
    """
    shares = np.unique(np.concatenate(([0.0], below, above)))
    middle = (shares[:-1] + shares[1:]) / 2
    low = outputs[0][np.minimum(np.searchsorted(below, middle), below.size - 1)]
    high = outputs[1][np.minimum(np.searchsorted(above, middle), above.size - 1)]
    means = np.append(0.0, np.cumsum((high - low) * np.diff(shares)))
    wanted = (labels[1:-1] - labels[0]) / (labels[-1] - labels[0])
    if not means[-1] > 0:
        return np.append(wanted, 1.0)
    means /= means[-1]
    at = np.searchsorted(np.maximum.accumulate(means), wanted)
    part = (wanted - means[at - 1]) / (means[at] - means[at - 1])
    return np.append(shares[at - 1] + part * (shares[at] - shares[at - 1]), 1.0)


def _pieces(ends: Floats, until: Floats, labels: Indices) -> list[_Cuts]:
    """Each column, of those whose shares of the mass end at `ends`, cut where another label takes over."""
    starts = np.append(0.0, ends[:-1])
    found = []
    for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
        some = slice(int(np.searchsorted(until, low, side="right")), int(np.searchsorted(until, high)) + 1)
        cuts = (np.minimum(until[some], high) - low) / (high - low) if high > low else np.ones(1)
        some_labels = labels[some] if cuts.size == labels[some].size else labels[some][:1]
        cuts[-1] = 1.0
        found.append(_Cuts(cuts, some_labels))
    return found


def _both(begin: _Cuts, end: _Cuts) -> tuple[Indices, Indices, Floats]:
    """First and last labels, and shares, of the pieces of a column that is cut on both sides."""
    if begin.shares.size == end.shares.size == 1:
        return begin.labels, end.labels, np.ones(1)
    shares = np.unique(np.concatenate((begin.shares, end.shares)))
    first, last = (cuts.labels[np.searchsorted(cuts.shares, shares)] for cuts in (begin, end))
    return first, last, np.diff(np.append(0.0, shares))
