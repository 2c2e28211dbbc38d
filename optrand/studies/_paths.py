r"""Randomizers of interval columns as mixtures of randomized responses on bins.

Masses of interval columns that cover every label equally are a flow on the nodes :math:`0 \ldots k`
(:mod:`optrand.model._randomizer`): :func:`decompose_paths` splits it into paths from node 0 to node ``k``, and a path
is a partition of the labels into bins.

**Theorem.** *Let interval columns* :math:`(S_j, v_j, c_j)` *cover every label by the same mass* :math:`t`. *Then they
are a mixture of randomized responses on bins,*

.. math:: M(y) = \sum_q \pi_q \, M_q(y), \qquad \pi_q = \mu_q (m_q + E - 1),

*in which* :math:`M_q` *partitions the labels into* :math:`m_q` *intervals, the bins, and produces the output of the
label's own bin with probability* :math:`E / (m_q + E - 1)` *and that of each other bin with probability*
:math:`1 / (m_q + E - 1)`. *It has at most as many components as there are columns. If no interval lies strictly
inside another, the bins of two components differ in number by at most one.*

*Proof.* Give every label a circle of length :math:`t`, on which each column that favours the label holds an arc, or
several, of length :math:`c_j` in total. From node to node the columns that end at node ``i`` leave to those that start
there exactly their places, since they have the same mass. So each point :math:`u` of the circle is held, label after
label, by columns whose intervals follow each other from the first label to the last: a partition. Points between two
neighbouring ends of places have the same one. Call it :math:`q`, and :math:`\mu_q` the length of all such points, so
that :math:`c_j = \sum_{q \ni j} \mu_q` and :math:`t = \sum_q \mu_q`. Hence

.. math:: M(y) = \sum_j c_j s_j(y) \delta_{v_j} = \sum_q \mu_q \sum_{j \in q} s_j(y) \delta_{v_j},

and of the bins of :math:`q` exactly one holds :math:`y`, so that the inner sum has the total :math:`m_q + E - 1`, which
does not depend on :math:`y`. A node that ``d`` columns leave adds ``d - 1`` ends of places and the first node one more.
So there are at most as many paths as columns, less one for every further node that a column leaves. For the last
statement hand places on in the order in which they were taken: then the bins of :math:`u` are the columns at :math:`u,
u + t, u + 2 t, \ldots`, laid end to end (``docs/mathematics.md``, Proposition 20), as many as there are before the end,
and for two points below :math:`t` these numbers differ by at most one. ∎

Which component is used does not depend on the label, so that it may even be published: each of them is epsilon-DP.
With integer masses and a rational ratio all of this is exact.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import itemgetter

import numpy as np

from optrand.base._arithmetic import privacy_ratio
from optrand.base._validation import Floats, freeze_array
from optrand.errors import InvalidInput
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._tabulation import Solution, round_randomizer
from optrand.model._problem import Grid
from optrand.model._randomizer import Indices, Randomizer
from optrand.model._table import IntegerArcs

Decomposable = Mechanism | Randomizer | Solution
"""Exact mechanisms, tables of floats, and candidate solutions of a solver."""


@dataclass(frozen=True, eq=False)
class Path:
    """Component of the mixture: randomized response on bins.

    Attributes
    ----------
    arcs : (bins,) array of int
        Indices of its columns in the flow, from the first label to the last.
    first, last : (bins,) arrays of int
        First and last label of each bin. Each bin begins where the one before it ends.
    outputs : (bins,) array
    mass : int
        Its share of the mass of each of its columns.
    ratio : Fraction
        Probability of the output of the label's own bin over that of another.
    """

    arcs: Indices
    first: Indices
    last: Indices
    outputs: Floats
    mass: int
    ratio: Fraction

    @property
    def bins(self) -> int:
        """Number of bins."""
        return self.arcs.size

    @property
    def keeps(self) -> Fraction:
        """Probability that the component produces the output of the label's own bin, exactly."""
        return self.ratio / (self.bins - 1 + self.ratio)


@dataclass(frozen=True, eq=False)
class Paths:
    """Components of the mixture. ``paths[q]`` is made on demand, and not cached.

    Attributes
    ----------
    labels : (k,) array
    outputs : (n,) array
    flow : IntegerArcs
    ratio : Fraction
    phases : tuple of int
        Points of the circle at which one path ends and the next begins: one for each path, and the coverage.
    bins : (paths,) array of int
        Number of bins of each path.
    leaving : tuple of k lists
        For each node the points of the circle at which a column takes its place, increasing, each with the column.
    """

    labels: Floats
    outputs: Floats
    flow: IntegerArcs
    ratio: Fraction
    phases: tuple[int, ...]
    bins: Indices
    leaving: tuple[list[tuple[int, int]], ...]

    def __len__(self) -> int:
        return len(self.phases) - 1

    def __getitem__(self, number: int) -> Path:
        """Return the path with an index, at cost ``O(bins log n)``."""
        count = len(self)
        if not -count <= number < count:
            raise IndexError(f"there are {count} paths, and none has the number {number}")
        phase = self.phases[number % count]
        arcs, node = [], 0
        # At each node the column that holds the phase is the last one whose place begins at or before it. It ends at
        # the next node of the path.
        while node < self.flow.k:
            held = self.leaving[node]
            arcs.append(held[bisect_right(held, phase, key=itemgetter(0)) - 1][1])
            node = int(self.flow.last[arcs[-1]]) + 1
        first, last = self.flow.first[arcs], self.flow.last[arcs]
        outputs = freeze_array(self.outputs[self.flow.at[arcs]])
        return Path(np.array(arcs), first, last, outputs, self.masses[number % count], self.ratio)

    def __iter__(self) -> Iterator[Path]:
        return (self[number] for number in range(len(self)))

    @property
    def masses(self) -> list[int]:
        """Mass of each path."""
        return [after - before for before, after in pairwise(self.phases)]

    @property
    def weights(self) -> list[Fraction]:
        """Weight of each path in the mixture, exactly. They sum to 1."""
        # The weights of the theorem, mu (m + R - 1), as integers: times the denominator of R.
        total = self.flow.total(self.ratio)
        low, more = self.ratio.denominator, self.ratio.numerator - self.ratio.denominator
        return [
            Fraction(mass * (low * bins + more), total)
            for mass, bins in zip(self.masses, self.bins.tolist(), strict=True)
        ]


def decompose_paths(subject: Decomposable, /) -> Paths:
    """Decompose a randomizer of interval columns into a mixture of randomized responses on bins.

    Parameters
    ----------
    subject : Mechanism, Randomizer or Solution
        The masses of an exact mechanism of arcs are its own, with those of an interval at two neighbouring floats as
        one (:func:`merge_neighbours`). Those of any other subject are rounded to integers first.

    Raises
    ------
    InvalidInput
        A column of the table is not an interval staircase.
    NotCertified
        Columns do not cover the labels equally.

    Notes
    -----
    The cost is ``O(k + n log n)`` if no interval lies strictly inside another. All paths of ten thousand labels
    together have about ten million bins: use them one at a time.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> paths = decompose_paths(optrand.solve(problem))
    >>> for path, weight in zip(paths, paths.weights):
    ...     print(
    ...         path.first.tolist(),
    ...         path.outputs.round(2).tolist(),
    ...         f"{float(weight):.3f} {float(path.keeps):.3f}",
    ...     )
    [0, 1, 2] [-0.75, 0.84, 3.29] 0.229 0.787
    [0, 1, 3] [-0.75, 1.3, 4.02] 0.540 0.787
    [0, 2] [-0.22, 3.29] 0.232 0.881
    >>> sum(paths.weights)
    Fraction(1, 1)
    """
    labels, outputs, flow, ratio = _flow(subject)
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(flow.k)]
    changes: dict[int, int] = {0: 0}
    # Paths change where a place begins or ends, and a path has a bin for each place that holds it.
    for node, arc, begin, end in _places(flow):
        leaving[node].append((begin, arc))
        changes[begin] = changes.get(begin, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    phases = sorted(changes)
    bins = list(accumulate(changes[phase] for phase in phases[:-1]))
    return Paths(labels, outputs, flow, ratio, tuple(phases), np.array(bins), tuple(map(sorted, leaving)))


def merge_neighbours(mechanism: Mechanism) -> tuple[Floats, IntegerArcs]:
    """Merge each two columns of one interval at neighbouring floats, at the float of the heavier one.

    It is for pictures and for counts of columns: tabulation splits an output between two floats, and this is the design
    before that, up to rounding, but not the mechanism that is drawn. A grid is left as it is.
    """
    arcs, outputs = mechanism.arcs, mechanism.outputs
    if arcs is None:
        raise InvalidInput("the mechanism is a table: only interval columns are split between neighbouring floats")
    if isinstance(mechanism.problem.outputs, Grid):
        return outputs, arcs
    masses, at = arcs.masses.tolist(), outputs[arcs.at]
    order = np.lexsort((arcs.at, arcs.last, arcs.first))
    merged = -1
    for i, j in pairwise(order.tolist()):
        # An output is split into at most two, so a merged column is not merged again.
        same = arcs.first[i] == arcs.first[j] and arcs.last[i] == arcs.last[j]
        if same and i != merged and math.nextafter(at[i], math.inf) == at[j]:
            at[j] = at[j] if masses[j] > masses[i] else at[i]
            masses[i], masses[j], merged = 0, masses[i] + masses[j], j
    kept = np.array([mass > 0 for mass in masses])
    order = np.lexsort((arcs.last, arcs.first, at))
    order = order[kept[order]]
    distinct, places = np.unique(at[order], return_inverse=True)
    left = np.array([masses[j] for j in order.tolist()], dtype=object)
    return distinct, IntegerArcs(arcs.k, arcs.first[order], arcs.last[order], places, left)


def count_outputs(mechanism: Mechanism) -> int:
    """Count the outputs of a mechanism, with two neighbouring floats of one split output as one.

    Examples
    --------
    >>> import optrand
    >>> mechanism = optrand.debiased_rr([0, 1, 2], 1.0)
    >>> mechanism.n, count_outputs(mechanism)
    (5, 3)
    """
    return mechanism.n if mechanism.arcs is None else merge_neighbours(mechanism)[0].size


def _places(flow: IntegerArcs) -> Iterator[tuple[int, int, int, int]]:
    """Yield node, arc, begin and end: the arc that holds this part of the circle from the node on."""
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(flow.k + 1)]
    # The circle of the theorem has the length of the coverage, and is free at the first node.
    waiting[0].append((0, flow.coverage[0]))
    position = [0] * flow.k
    first, end, masses = flow.first.tolist(), (flow.last + 1).tolist(), flow.masses.tolist()
    # Nodes hand on places in the order in which they were taken, as in the proof.
    for arc in np.lexsort((flow.last, flow.first)).tolist():
        node, missing = first[arc], masses[arc]
        held: list[tuple[int, int]] = []
        while missing:
            at = position[node]
            begin, stop = waiting[node][at]
            taken = min(stop, begin + missing)
            missing -= taken - begin
            if taken < stop:
                waiting[node][at] = (taken, stop)
            else:
                position[node] += 1
            # Join with the place before, so that arcs have few places.
            if held and held[-1][1] == begin:
                begin = held.pop()[0]
            held.append((begin, taken))
        waiting[end[arc]] += held
        for begin, taken in held:
            yield node, arc, begin, taken


def _flow(subject: Decomposable) -> tuple[Floats, Floats, IntegerArcs, Fraction]:
    if isinstance(subject, Mechanism) and subject.arcs is not None:
        return subject.labels, *merge_neighbours(subject), subject.ratio
    randomizer = subject if isinstance(subject, Randomizer) else getattr(subject, "randomizer", None)
    if not isinstance(randomizer, Randomizer):
        raise InvalidInput(f"paths need a Mechanism, Randomizer or Solution, not a {type(subject).__name__}")
    ratio, table = privacy_ratio(randomizer.epsilon), round_randomizer(randomizer)
    arcs = table.arcs(ratio)
    if arcs is None or not len(set(arcs.coverage)) == 1:
        raise InvalidInput("columns favour labels that are not an interval: only interval columns are paths on a line")
    return table.labels, table.outputs, arcs, ratio
