r"""Exact draws from integer arcs, with the probabilities of their table and without the table.

With ``R = r / d``, masses :math:`C_j` and coverage :math:`t`, the weights of a label ``y`` fall into two parts,

.. math:: \mathtt{total} = d \sum_j C_j + (r - d) \sum_{j \text{ favours } y} C_j = d \sum_j C_j + (r - d)\, t.

The first is common to all labels. For the second the labels are the leaves of a binary tree, and an arc is kept at the
few nodes (at most two on a level) that together cover its interval: it favours ``y`` if and only if it is kept at a
node above the leaf ``y``. So the weights of ``y`` are those of the lists on its way: of node 0, which holds all arcs,
of node 1, the root, and so on down to the leaf. All labels below a node share the way to it, so each entry of a list
has *one* running sum and one exact threshold. A draw is two bisections: among the ends of the lists on the way, and
within a list. A word that equals a threshold is settled in integers (:mod:`optrand.sampling.drawing`).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import Integers
from optrand.base.validation import Floats
from optrand.errors import InvalidInput
from optrand.model.arcs import IntegerArcs
from optrand.sampling.drawing import Draws, LabelSampler, Rows, bisected, increasing, settled, thresholds
from optrand.sampling.entropy import EntropySource, Words, checked_words

__all__ = ["ArcSampler"]


@dataclass(frozen=True, eq=False)
class _Tree:
    """Arcs at the nodes of a binary tree whose leaves are the labels, for any weights.

    The children of node ``i >= 1`` are ``2 i`` and ``2 i + 1``; its arcs are ``entries[starts[i] : starts[i + 1]]``.
    """

    leaves: int
    starts: Rows
    entries: Rows

    @classmethod
    def of(cls, arcs: IntegerArcs) -> _Tree:
        """Cut every interval into nodes, one level at a time from the leaves up; cost ``O(arcs log k)``."""
        leaves = 1 << (arcs.k - 1).bit_length()
        count = arcs.first.size
        # The nodes from `low` up to, but not, `high` of a level are still to be covered.
        low, high = arcs.first + leaves, arcs.last + 1 + leaves
        nodes, entries = [np.zeros(count, dtype=np.intp)], [np.arange(count)]
        while (low < high).any():
            for end, node in ((low, low), (high, high - 1)):
                single = np.flatnonzero((low < high) & (end & 1 == 1))
                nodes.append(node[single])
                entries.append(single)
            low, high = (low + 1) >> 1, high >> 1
        places = np.concatenate(nodes)
        order = np.argsort(places, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(places, minlength=2 * leaves))))
        return cls(leaves, starts, np.concatenate(entries)[order])

    @property
    def levels(self) -> int:
        """Number of nodes on the way to a leaf, node 0 and the leaf among them."""
        return self.leaves.bit_length() + 1

    def on_the_way(self, row: int) -> list[NDArray[np.intp]]:
        """Lists of arcs on the way to a label."""
        nodes = [(row + self.leaves) >> height for height in reversed(range(self.levels))]
        return [self.entries[self.starts[node] : self.starts[node + 1]] for node in nodes]

    def sums(self, base: Integers, more: Integers) -> tuple[Integers, Integers]:
        """Running sums at the end of each entry and of each node, if arcs weigh `base` in node 0, else `more`."""
        everywhere = self.starts[1]
        amounts = np.concatenate((base[self.entries[:everywhere]], more[self.entries[everywhere:]]))
        running = np.concatenate((np.zeros(1, dtype=object), np.cumsum(amounts)))
        within = running[self.starts[1:]] - running[self.starts[:-1]]
        ends = within.copy()
        ends[1] += ends[0]
        for level in range(1, self.levels - 1):
            parents, children = slice(1 << level - 1, 1 << level), slice(1 << level, 2 << level)
            ends[children] += np.repeat(ends[parents], 2)
        offsets = ends - within - running[self.starts[:-1]]
        return running[1:] + np.repeat(offsets, np.diff(self.starts)), ends


@dataclass(frozen=True, eq=False)
class _Tables:
    """Thresholds of all entries and of all nodes, which decide a draw from one word of `width` bits.

    ``guide`` counts, for each value of the leading bits of a word, the thresholds of node 0 below it. ``entries`` and
    ``arcs``, the arc of each entry, have a last entry that is read but never used.
    """

    width: int
    shift: int
    guide: Rows
    entries: Words
    nodes: Words
    arcs: Rows

    @classmethod
    def build(cls, tree: _Tree, sums: tuple[Integers, Integers], total: int, width: int) -> _Tables:
        """Compute the exact thresholds: ``O(k + arcs log k)`` divisions of integers."""
        entries, nodes = (thresholds(each, total, width) for each in sums)
        first = entries[: tree.starts[1]]
        bits = min(width, first.size.bit_length() + 1)
        cells = np.arange(1 << bits, dtype=np.uint64) << np.uint64(width - bits)
        guide = np.append(np.searchsorted(first, cells), first.size)
        return cls(width, width - bits, guide, np.append(entries, np.uint64(0)), nodes, np.append(tree.entries, 0))


@dataclass(frozen=True, eq=False)
class ArcSampler(LabelSampler[_Tables]):
    r"""Sampler with exactly the probabilities of the table that integer arcs make.

    .. math:: \Pr[\text{output } v_i \mid \text{label } y] = \frac{1}{\mathtt{total}} \sum_{j : \mathrm{at}_j = i} C_j
              \, (r \text{ if } \mathrm{first}_j \leq y \leq \mathrm{last}_j \text{ else } d)

    Parameters
    ----------
    labels, outputs : (k,) and (n,) arrays
        Strictly increasing.
    arcs : IntegerArcs
        In any order and nested in any way; equal coverage of all labels.
    ratio : Fraction
        ``r / d``, above 1.

    Raises
    ------
    InvalidInput
        Parts that do not fit, a ratio of 1 or less, or labels that are not covered equally.

    Notes
    -----
    Tables take ``O(k + arcs log k)`` time and memory at the first draw, and are kept; a draw takes ``O(log k + log n)``
    steps. Its time depends a little on the label and on the output, as with :class:`~optrand.sampling.tables.Sampler`.

    Examples
    --------
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> arcs = IntegerArcs(2, [0, 1], [0, 1], [0, 1], [1, 1])
    >>> coin = ArcSampler([0, 1], [0, 1], arcs, Fraction(3))
    >>> coin.sample([0, 0, 0, 0, 1, 1, 1, 1], source=SeededEntropy(3)).tolist()
    [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    """

    labels: Floats
    outputs: Floats
    arcs: IntegerArcs = field(repr=False)
    ratio: Fraction = field(repr=False)
    total: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Freeze the arrays and check that they fit together."""
        for name in ("labels", "outputs"):
            object.__setattr__(self, name, increasing(getattr(self, name), name))
        given_arcs: object = self.arcs
        if not isinstance(given_arcs, IntegerArcs):
            raise InvalidInput(f"arcs are of type {type(given_arcs).__name__}, expected IntegerArcs")
        made_for, given = (self.arcs.k, self.arcs.n), (self.labels.size, self.outputs.size)
        if made_for != given:
            raise InvalidInput(f"the arcs are made for {made_for} labels and outputs, expected {given}")
        ratio: object = self.ratio
        if not isinstance(ratio, Fraction) or ratio <= 1:
            raise InvalidInput("the ratio of arcs must be a fractions.Fraction above 1")
        object.__setattr__(self, "total", self.arcs.total(self.ratio))

    @classmethod
    def of_proven(cls, labels: Floats, outputs: Floats, arcs: IntegerArcs, ratio: Fraction, total: int) -> ArcSampler:
        """Sampler of parts that a mechanism has proven and frozen: they are not checked again."""
        sampler = object.__new__(cls)
        vars(sampler).update(labels=labels, outputs=outputs, arcs=arcs, ratio=ratio, total=total)
        return sampler

    @cached_property
    def _tree(self) -> _Tree:
        return _Tree.of(self.arcs)

    @cached_property
    def _weights(self) -> tuple[Integers, Integers]:
        """Weights of each arc for every label, and the further weights for those that it favours."""
        low, high = self.ratio.denominator, self.ratio.numerator
        return low * self.arcs.masses, (high - low) * self.arcs.masses

    def _build(self, width: int) -> _Tables:
        return _Tables.build(self._tree, self._tree.sums(*self._weights), self.total, width)

    def _draw(self, rows: Rows, tables: _Tables, draws: Draws, drawn: Floats) -> None:
        words = draws.words
        leaves, top = rows + self._tree.leaves, self._tree.levels - 1
        nothing, everything = np.zeros_like(rows), np.full_like(rows, top)
        level = bisected(nothing, everything, lambda at: tables.nodes[leaves >> (top - at)] <= words)
        node = leaves >> (top - level)
        start = self._tree.starts[node]
        cell = (words >> np.uint64(tables.shift)).astype(np.intp)
        low = np.where(node == 0, tables.guide[cell], start)
        high = np.where(node == 0, tables.guide[cell + 1], self._tree.starts[node + 1])
        found = bisected(low, high, lambda at: tables.entries[at] <= words)
        self.outputs.take(self.arcs.at[tables.arcs[found]], out=drawn, mode="wrap")
        # The sum before an entry is that of the entry before it, or that of the list before; nothing is before node 0.
        before = np.where(found > start, tables.entries[found - 1], tables.nodes[leaves >> (top - level + 1)])
        for i in np.flatnonzero((before == words) & (level + found > 0)).tolist():
            drawn[i] = self.outputs[self._settle(int(rows[i]), int(words[i]), tables.width, draws.further(i))]

    def _draw_one(self, row: int, tables: _Tables, source: EntropySource) -> int:
        word: int = checked_words(source, 1).item()
        leaf, top = row + self._tree.leaves, self._tree.levels - 1
        level = bisect_right(range(top), word, key=lambda at: int(tables.nodes[leaf >> (top - at)]))
        node = leaf >> (top - level)
        start, stop = self._tree.starts[node : node + 2].tolist()
        found = bisect_right(tables.entries, word, start, stop)
        before = tables.entries[found - 1] if found > start else tables.nodes[leaf >> (top - level + 1)]
        tie = level + found > 0 and before == word
        return self._settle(row, word, tables.width, source) if tie else int(self.arcs.at[tables.arcs[found]])

    def _settle(self, row: int, word: int, width: int, source: EntropySource) -> int:
        first, *others = self._tree.on_the_way(row)
        favoured = np.concatenate(others)
        base, more = self._weights
        sums = list(accumulate([*base[first].tolist(), *more[favoured].tolist()]))
        found = settled(sums[:-1], self.total, (word, width), source)
        return int(self.arcs.at[np.concatenate((first, favoured))[found]])
