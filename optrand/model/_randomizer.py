r"""Randomizers in floats, candidates of solvers and a form for plots. A :class:`~optrand.model._table.Table` is exact.

Interval columns are the form of optimal randomizers for convex losses. Output :math:`v_j` has probability :math:`c_j E`
for the labels from ``first[j]`` to ``last[j]`` and :math:`c_j` for all others ([B23], Claims 11 to 14): an arc from
node ``first[j]`` to node ``last[j] + 1`` of the nodes :math:`0 \ldots k`. The rows have one sum if every label has one
*coverage*, the mass that favours it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand import losses
from optrand.base._validation import Floats, Record, check_epsilon, check_prior, check_values, freeze_array
from optrand.errors import InvalidInput
from optrand.losses import Loss, Tabulated

if TYPE_CHECKING:
    from optrand.sampling._entropy import EntropySource

Indices = NDArray[np.int64]
Extended = NDArray[np.longdouble]

BLOCK = 1 << 22
"""Entries of a table that are worked on at a time."""


@dataclass(frozen=True, eq=False)
class Arcs(Record):
    """Interval columns over ``k`` labels: an arc favours the labels from `first` to `last`.

    Its probability is its mass, at least 0, for the labels that it does not favour. Arcs may share an output. `rests`
    are exact outputs less their nearest floats, for labels so far from zero that floats lack digits, none by default.
    """

    k: int
    first: Indices
    last: Indices
    outputs: Floats
    masses: Floats
    rests: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        rests = self.rests if np.size(self.rests) else np.zeros(np.shape(self.outputs))
        for name, numbers in (("outputs", self.outputs), ("masses", self.masses), ("rests", rests)):
            object.__setattr__(self, name, freeze_array(numbers))
        shapes = {array.shape for array in (self.first, self.last, self.outputs, self.masses, self.rests)}
        if len(shapes) != 1 or self.first.ndim != 1:
            raise InvalidInput(f"arcs need vectors of one length, not of shapes {sorted(shapes)}")
        if ((self.first < 0) | (self.first > self.last) | (self.last >= self.k)).any():
            raise InvalidInput(f"every arc must favour an interval of the labels 0 ... {self.k - 1}")
        if (self.outputs + self.rests != self.outputs).any():
            raise InvalidInput("rests of arcs are larger than the rounding of their outputs to floats")

    @property
    def n(self) -> int:
        """Number of arcs."""
        return self.first.size

    def offsets(self, origin: float) -> Floats:
        """Return outputs less a number near them."""
        offsets: Floats = (self.outputs - origin) + self.rests
        return offsets

    def only(self, kept: NDArray[np.bool_]) -> Arcs:
        """Select some of the arcs."""
        rests = self.rests[kept]
        return Arcs(self.k, self.first[kept], self.last[kept], self.outputs[kept], self.masses[kept], rests)

    def table(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the distinct outputs in increasing order, and the dense ``(k, n)`` table of their probabilities."""
        outputs, where = np.unique(self.outputs, return_inverse=True)
        labels = np.arange(self.k)[:, np.newaxis]
        table = np.zeros((self.k, outputs.size))
        if outputs.size == self.n:
            inside = (self.first <= labels) & (labels <= self.last)
            table[:, where] = np.where(inside, ratio * self.masses, self.masses)
            return outputs, table
        for first, last, at, mass in zip(self.first, self.last, where, self.masses, strict=True):
            table[:, at] += mass
            table[first : last + 1, at] += (ratio - 1) * mass
        return outputs, table


@dataclass(frozen=True, eq=False)
class Randomizer(Record):
    """Row-stochastic table in floats: ``matrix[y, i]`` is the probability of output ``i`` for label ``y``.

    Construction checks shapes, order and that numbers are finite: :func:`optrand.audit` checks privacy and sums of
    rows.

    Parameters
    ----------
    labels, outputs : (k,) and (n,) arrays
        Strictly increasing.
    columns : (k, n) array or Arcs
        Arcs come by :meth:`of_arcs`, and their table is made on demand.
    epsilon : float
        Claimed budget, in nats.

    Examples
    --------
    >>> coin = Randomizer([0, 1], [0, 1], [[0.75, 0.25], [0.25, 0.75]], epsilon=1.1)
    >>> coin.means.tolist(), coin.signature().tolist()
    ([0.25, 0.75], [['S', 'S'], ['S', 'S']])
    """

    labels: Floats
    outputs: Floats
    columns: Floats | Arcs
    epsilon: float

    def __post_init__(self) -> None:
        for name in ("labels", "outputs"):
            numbers = freeze_array(check_values(getattr(self, name), name))
            if not (numbers[1:] > numbers[:-1]).all():
                raise InvalidInput(f"{name} of a randomizer must strictly increase")
            object.__setattr__(self, name, numbers)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not isinstance(self.columns, Arcs):
            object.__setattr__(self, "columns", freeze_array(self.columns))
        shape = (self.columns.k, self.n) if isinstance(self.columns, Arcs) else self.columns.shape
        if shape != (self.k, self.n):
            raise InvalidInput(f"matrix has shape {shape}, expected {(self.k, self.n)}: one row per label")
        if not np.isfinite(self.columns.masses if isinstance(self.columns, Arcs) else self.columns).all():
            raise InvalidInput("matrix holds NaN or infinite entries, expected probabilities")

    @classmethod
    def of_arcs(cls, labels: ArrayLike, arcs: Arcs, epsilon: float) -> Randomizer:
        """Return the channel of some arcs."""
        return cls(labels, np.unique(arcs.outputs), arcs, epsilon)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Randomizer: {self.k} labels, {self.n} outputs, epsilon {self.epsilon:g}>"

    @cached_property
    def matrix(self) -> Floats:
        """Table of probabilities, shape ``(k, n)``, read-only."""
        if isinstance(self.columns, Arcs):
            return freeze_array(self.columns.table(math.exp(self.epsilon))[1])
        return self.columns

    def blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of outputs and their columns of the table. The whole table of arcs is never made."""
        if self.arcs is None:
            yield self.outputs, self.matrix
            return
        step = max(1, BLOCK // self.k)
        block = np.searchsorted(self.outputs, self.arcs.outputs) // step
        for number in range(int(block.max()) + 1):
            yield self.arcs.only(block == number).table(math.exp(self.epsilon))

    @property
    def arcs(self) -> Arcs | None:
        """Interval columns that the channel was made of, if it was."""
        return self.columns if isinstance(self.columns, Arcs) else None

    @property
    def k(self) -> int:
        """Number of labels."""
        return self.labels.size

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.outputs.size

    def _mix(self, arcs: Arcs, amounts: Extended) -> Extended:
        """Sum of amounts of arcs under each label, in extended precision."""
        steps = np.zeros(self.k + 1, np.longdouble)
        np.add.at(steps, arcs.first, amounts)
        np.subtract.at(steps, arcs.last + 1, amounts)
        sums: Extended = amounts.sum() + (np.longdouble(math.exp(self.epsilon)) - 1) * np.cumsum(steps[:-1])
        return sums

    def sum_powers(self, highest: int) -> list[Extended]:
        """Sum over the outputs probability times ``(output - label)**power``, for powers from 0 on.

        Each sum has one entry per label. Those of arcs are in extended precision.
        """
        if self.arcs is None:
            apart = self.outputs - self.labels[:, np.newaxis]
            return [np.einsum("ki,ki->k", self.matrix, apart**power) for power in range(highest + 1)]
        # Measured from a label, numbers far from zero keep their digits.
        middle, masses = float(self.labels[self.k // 2]), self.arcs.masses.astype(np.longdouble)
        offsets, back = self.arcs.offsets(middle).astype(np.longdouble), -(self.labels - np.longdouble(middle))
        sums = [self._mix(self.arcs, masses * offsets**power) for power in range(highest + 1)]
        return [
            np.sum([math.comb(power, i) * sums[i] * back ** (power - i) for i in range(power + 1)], axis=0)
            for power in range(highest + 1)
        ]

    @property
    def means(self) -> Floats:
        """Expected output of each label, shape ``(k,)``."""
        return self.biases + self.labels

    @property
    def biases(self) -> Floats:
        """``E[M(y)] - y`` for each label. Summed around the label, so that far-off labels lose no digits."""
        return self.sum_powers(1)[1].astype(np.float64)

    @property
    def variances(self) -> Floats:
        """Variance of the output of each label, shape ``(k,)``, in extended precision for arcs."""
        if self.arcs is None:
            spread = self.outputs - (self.matrix @ self.outputs)[:, np.newaxis]
            variances: Floats = np.einsum("ki,ki->k", self.matrix, spread**2)
            return variances
        mass, bias, square = self.sum_powers(2)
        return (square - bias**2 * (2 - mass)).astype(np.float64)

    @property
    def squared_errors(self) -> Floats:
        """Expected squared distance of the output from each label, shape ``(k,)``."""
        return self.sum_powers(2)[2].astype(np.float64)

    def losses(self, loss: Loss | Tabulated = losses.squared, *, bias_penalty: float = 0.0) -> Floats:
        r"""Compute the expected loss of each label and the charge :math:`\lambda (E[v] - y)^2 / 2`, shape ``(k,)``.

        Nothing is charged at an infinite `bias_penalty`, which forbids bias.
        """
        if loss == losses.squared:
            expected = self.squared_errors / 2
        else:
            blocks = [np.einsum("ki,ki->k", m, loss.table(self.labels, v)) for v, m in self.blocks()]
            expected = np.sum(blocks, axis=0)
        return expected + bias_penalty * self.biases**2 / 2 if 0 < bias_penalty < math.inf else expected

    def signature(self, tolerance: float = 1e-9) -> NDArray[np.str_]:
        """Return the place of each probability in its column ([B23], Definition 10: signature), shape ``(k, n)``.

        ``U`` for the largest and ``L`` for the smallest if their ratio is ``exp(epsilon)``, ``0`` for an output that
        never occurs, ``S`` for anything else. Probabilities within the relative `tolerance` count as equal.
        """
        bottom, top = self.matrix.min(axis=0), self.matrix.max(axis=0)
        full = top >= math.exp(self.epsilon) * bottom * (1 - tolerance)
        marks: NDArray[np.str_] = np.full(self.matrix.shape, "S")
        marks[full & (self.matrix <= bottom * (1 + tolerance))] = "L"
        marks[full & (self.matrix >= top * (1 - tolerance))] = "U"
        marks[self.matrix == 0] = "0"
        return marks

    def without_unused_outputs(self) -> Randomizer:
        """Return the channel, as a table, without the outputs that no label ever produces."""
        used = (self.matrix != 0).any(axis=0)
        return Randomizer(self.labels, self.outputs[used], self.matrix[:, used], self.epsilon)


@dataclass(frozen=True, eq=False)
class Staircase:
    """Columns ``(S, v, c)``: output ``v`` with probability ``c E`` for the labels in ``S`` and ``c`` for the others.

    They are the extreme rays of the cone of epsilon-DP columns ([KOV16] and [B23], Appendix B). Sums of them with any
    masses of at least 0 are private (``docs/mathematics.md``, section 1). `members` holds one column for each ``S``.
    """

    members: NDArray[np.bool_]
    outputs: Floats
    masses: Floats

    @classmethod
    def of_arcs(cls, arcs: Arcs) -> Staircase:
        """Return the interval columns with their sets of labels written out."""
        labels = np.arange(arcs.k)[:, np.newaxis]
        return cls((arcs.first <= labels) & (labels <= arcs.last), arcs.outputs, arcs.masses)

    @property
    def arcs(self) -> Arcs | None:
        """Arcs of the staircase, in increasing order of outputs, if every set is an interval of labels."""
        k, n = self.members.shape
        if not n or not self.members.any(axis=0).all():
            return None
        first, last = self.members.argmax(axis=0), k - 1 - self.members[::-1].argmax(axis=0)
        if (self.members.sum(axis=0) != last - first + 1).any():
            return None
        order = np.lexsort((last, first, self.outputs))
        return Arcs(k, first[order], last[order], self.outputs[order], self.masses[order])

    def table(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the distinct outputs in increasing order, and the ``(k, n)`` table of their probabilities."""
        outputs, where = np.unique(self.outputs, return_inverse=True)
        table = np.zeros((self.members.shape[0], outputs.size))
        np.add.at(table.T, where, np.where(self.members, ratio * self.masses, self.masses).T)
        return outputs, table

    def only(self, kept: NDArray[np.bool_]) -> Staircase:
        """Select some of the columns."""
        return Staircase(self.members[:, kept], self.outputs[kept], self.masses[kept])


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Sets of some of ``k`` labels, one for each column, as runs ``start ... stop - 1``.

    Each set has at least one run. Runs are in the order of their sets, the `owner`.
    """

    k: int
    owner: Indices
    start: Indices
    stop: Indices

    @property
    def n(self) -> int:
        """Number of sets."""
        return int(self.owner.max(initial=-1)) + 1

    @classmethod
    def of_intervals(cls, k: int, first: Indices, last: Indices) -> LabelSets:
        """Build the sets of intervals, given by their first and last labels."""
        return cls(k, np.arange(first.size), first, last + 1)

    @classmethod
    def of_members(cls, members: NDArray[np.bool_]) -> LabelSets:
        """Build sets from the (k, n) array of their members."""
        edges = np.diff(members.T.astype(np.int8), prepend=0, append=0)
        owner, start = np.nonzero(edges == 1)
        return cls(len(members), owner, start, np.nonzero(edges == -1)[1])

    @property
    def are_intervals(self) -> bool:
        """Whether each set is one run of labels."""
        return self.owner.size == self.n

    def only(self, kept: NDArray[np.bool_]) -> LabelSets:
        """Select some of the sets."""
        runs = kept[self.owner]
        owner = (np.cumsum(kept) - 1)[self.owner[runs]]
        return LabelSets(self.k, owner, self.start[runs], self.stop[runs])

    def sum_over(self, amounts: list[Any]) -> list[Any]:
        """Sum the amounts of the sets that hold each label."""
        changes, steps = np.zeros(self.k + 1, dtype=object), np.array(amounts, dtype=object)[self.owner]
        np.add.at(changes, self.start, steps)
        np.subtract.at(changes, self.stop, steps)
        sums: list[Any] = np.cumsum(changes)[:-1].tolist()
        return sums


def decompose(randomizer: Randomizer, ratio: float, negligible: float = 0.0) -> Staircase:
    """Write a table as staircase columns: each column becomes the chain of its upper level sets.

    Differences of neighbours among the sorted entries, divided by ``ratio - 1``, are the masses of the nested level
    sets. The rest of the smallest entry is the mass of the full set. A column whose ratio exceeds `ratio` is lifted
    first, its low entries to the largest over `ratio`. Level sets whose share of their column is at most `negligible`
    are merged into their neighbour.
    """
    members, outputs, masses = [], [], []
    for output, column in zip(randomizer.outputs.tolist(), randomizer.matrix.T, strict=True):
        high = float(column.max())
        if high <= 0:
            continue
        low = max(float(column.min()), high / ratio)
        levels = np.unique(np.clip(column, low, high))[::-1]
        if negligible and levels.size > 1:
            keep = np.append(levels[:-1] - levels[1:] > negligible * (high - low), True)
            keep[0] = True
            levels = levels[keep]
        steps = (levels[:-1] - levels[1:]) / (ratio - 1)
        rest = (low - steps.sum()) / ratio
        # Between two neighbouring floats a middle is one of them: below the upper one, so that no set is empty.
        middles = np.minimum((levels[:-1] + levels[1:]) / 2, np.nextafter(levels[:-1], 0.0))
        for middle, mass in zip(np.append(middles, -np.inf), np.append(steps, max(0.0, rest)), strict=True):
            if mass > negligible * high / ratio:
                members.append(column > middle)
                outputs.append(output)
                masses.append(mass)
    return Staircase(np.array(members).T, np.array(outputs), np.array(masses))


@dataclass(frozen=True, eq=False)
class Moments:
    """The first two moments of the released number less the label, for each label.

    Attributes
    ----------
    biases : (k,) array
        ``E[M(y)] - y``, in units of the labels, for vectors the length of that difference.
    variances : (k,) array
        Variance of the released number. For vectors the sum over the coordinates. Infinite if it does not exist.

    Examples
    --------
    >>> moments = Moments([0.5, -1.0], [2.0, 4.0])
    >>> moments.bias, moments.variance([0.5, 0.5]), moments.loss([0.5, 0.5])
    (1.0, 3.0, 1.8125)
    """

    biases: Floats
    variances: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "biases", freeze_array(self.biases))
        object.__setattr__(self, "variances", freeze_array(self.variances))

    @property
    def bias(self) -> float:
        """Largest bias in absolute value."""
        return float(np.abs(self.biases).max())

    def variance(self, prior: ArrayLike) -> float:
        """Return the mean variance under a prior."""
        return self._mean(self.variances, prior)

    def loss(self, prior: ArrayLike) -> float:
        """Return the noisy label loss under a prior: the mean half squared error of a release ([B23], Definition 4)."""
        return self._mean((self.variances + self.biases**2) / 2, prior)

    def _mean(self, amounts: Floats, prior: ArrayLike) -> float:
        weights = check_prior(prior, self.biases.size)
        # A label that never occurs costs nothing, however large its error.
        return float(weights @ np.where(weights > 0, amounts, 0.0))


@runtime_checkable
class LabelRandomizer(Protocol):
    """An epsilon-label-DP randomizer of one label."""

    @property
    def exact(self) -> bool:
        """Whether draws have exactly the stated probabilities. Draws in floats leak, and are not fit for a release."""
        ...

    @property
    def epsilon(self) -> float:
        """The privacy budget in nats."""
        ...

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> NDArray[Any]:
        """Draw one output for every label in `values`, vectors along an additional axis."""
        ...

    def moments(self, labels: ArrayLike) -> Moments:
        """Return the moments at some labels."""
        ...
