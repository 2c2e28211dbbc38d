r"""Unbiased one-hot vectors from random subsets of the classes: exact tables, decoders, draws and certificates.

The randomizer draws a set ``S`` of classes for a label ``y``. A set is ``exp(epsilon)`` times as likely under the
labels that it contains as under the others. It is released as a vector ``v_S``, and ``E[v_S | y]`` is the one-hot
vector ``e_y``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from flint import fmpz_mat
from numpy.typing import ArrayLike, NDArray

from optrand.base import _validation
from optrand.base._arithmetic import (
    Integers,
    check_ratio,
    exact_integers,
    float_above,
    float_below,
    log_above,
    places,
    scale_to_integers,
)
from optrand.base._validation import Floats, Record, freeze_array
from optrand.certificates._certificate import Certificate
from optrand.errors import Infeasible, InvalidInput
from optrand.model._randomizer import Moments
from optrand.model._table import Table
from optrand.sampling import Sampler
from optrand.sampling._entropy import EntropySource, SystemEntropy, draw_integers
from optrand.vectors._bound import (
    ClassGroups,
    Counts,
    VectorDual,
    exp_above,
    lower_bound,
    response_is_best,
    subset_selection_loss,
    subset_size,
)

MOST_SETS = 1 << 16
"""Largest number of subsets that are written out as a table."""


class _Coordinates(NamedTuple):
    """Coordinates of classes in a subset of each type and out of it, ``(n, m)``, over a denominator for each group."""

    inside: Integers
    outside: Integers
    scales: list[int]


@dataclass(frozen=True, eq=False)
class UnbiasedVectors(Record):
    r"""Randomizer of a class label that releases a subset of the classes, with an unbiased vector for each.

    .. math:: \Pr[S \mid y] \propto c_S \cdot (R \text{ if } y \in S, \text{ else } 1), \qquad
              \sum_S \Pr[S \mid y] \, v_S = e_y

    Made by :func:`~optrand.vectors.unbiased_vectors`. Masses are integers, so privacy and means are exact. Subsets of
    one type (the same number of classes of each group) have equal masses.

    Attributes
    ----------
    prior : (K,) array
        Divided by its sum wherever it is used.
    epsilon : float
    groups : ClassGroups
        Classes that are treated alike.
    counts : (n, m) array of int
        Types of the subsets.
    masses : (n,) array of Python integers
        Positive. The total over all subsets of a type.
    ratio : Fraction
        ``R``, proven to be at most ``exp(epsilon)``.
    dual : VectorDual or None
        Multipliers of the bound. They are not needed for a uniform prior, or if randomized response is optimal.

    Examples
    --------
    >>> import optrand
    >>> randomizer = optrand.unbiased_vectors([0.5, 0.25, 0.25], 1.0)
    >>> randomizer.sets.astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    >>> np.allclose(randomizer.matrix @ randomizer.vectors, np.eye(3))
    True
    >>> randomizer.sample([0, 2]).shape
    (2, 3)
    """

    exact: ClassVar[Literal[True]] = True

    prior: Floats
    epsilon: float
    groups: ClassGroups = field(repr=False)
    counts: Counts = field(repr=False)
    masses: Integers = field(repr=False)
    ratio: Fraction = field(repr=False)
    dual: VectorDual | None = field(repr=False, default=None)

    def __repr__(self) -> str:
        size = f"{self.prior.size:,} classes, {len(self.masses):,} types of subsets"
        return f"<UnbiasedVectors: {size}, epsilon {self.epsilon:g}>"

    def __post_init__(self) -> None:
        # A subclass could override comparisons. Below 1 the classes outside of a subset would be the likelier ones.
        if type(self.ratio) is not Fraction or self.ratio <= 1:
            raise InvalidInput(f"ratio is {self.ratio!r}, expected a fractions.Fraction above 1")
        check_ratio(self.ratio, self.epsilon)
        object.__setattr__(self, "prior", freeze_array(self.prior))
        object.__setattr__(self, "masses", exact_integers(self.masses, "masses"))
        counts = exact_integers(self.counts, "counts").astype(np.int64)
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
        if (
            counts.shape != (self.masses.size, self.groups.m)
            or (counts < 0).any()
            or (counts > self.groups.sizes).any()
        ):
            raise InvalidInput("counts are no types of subsets: expected a row for each mass, a column for each group")
        if not all(mass > 0 for mass in self.masses.tolist()):
            raise InvalidInput("masses must be integers above 0")
        if len(set((self.masses @ self.groups.shares(self.counts)).tolist())) > 1:
            raise InvalidInput("rows have different totals, expected subsets that cover all classes equally")
        # The scale of a group is a multiple of the determinant between groups and of the information within it
        # (Proposition 22).
        if not all(self._decoder.scales):
            raise Infeasible("the subsets do not distinguish all classes: no decoder of them is unbiased")

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.groups.k

    @property
    def n(self) -> int:
        """Number of subsets in use."""
        return sum(self._multiplicities)

    @cached_property
    def value(self) -> float:
        """Half the expected squared distance from the one-hot vector, under the prior, rounded up."""
        return float_above(self.exact_value)

    @cached_property
    def exact_value(self) -> Fraction:
        """Half the expected squared distance, exactly, for :meth:`exact_vector`."""
        pairs = zip(self.groups.group_weights, self._squares, strict=True)
        return (sum((weight * square for weight, square in pairs), Fraction(0)) / self.groups.total - 1) / 2

    @cached_property
    def certificate(self) -> Certificate:
        """Certificate: :attr:`exact_value`, rounded up, and a lower bound for every such randomizer.

        Its `bias` is that of the floats in :attr:`vectors`, which round unbiased rationals.
        """
        exactly = not any(self._square_biases(*self._decoder))
        # A larger ratio allows more randomizers: a bound at a rational above exp(epsilon) holds at exp(epsilon).
        high, response = exp_above(self.epsilon), self.groups.m == 1 and self.counts.tolist() == [[1]]
        if self.groups.uniform:
            bound = subset_selection_loss(self.k, high, subset_size(self.k, high))
        elif self.dual is not None:
            bound = lower_bound(self.groups, self.epsilon, self.dual, self.counts)
        else:
            proven = response and response_is_best(self.groups.weights, high)
            bound = subset_selection_loss(self.k, high, 1) if proven else Fraction(0)
        return Certificate(
            lower=float_below(bound),
            upper=self.value if exactly else math.inf,
            target_epsilon=self.epsilon,
            epsilon=log_above(self.ratio),
            bias=self.bias,
            findings=() if exactly else ("the vectors are biased",),
        )

    @cached_property
    def bias(self) -> float:
        """Largest distance of the mean of :attr:`vectors`, floats as they are, from the one-hot vector, rounded up."""
        # A root is less than the float after the one that it is rounded to.
        return max(math.nextafter(math.sqrt(float_above(square)), math.inf) for square in self._float_biases)

    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw an unbiased vector for every label, with exactly the stated probabilities.

        Parameters
        ----------
        values : array of class numbers, any shape, or one number
            Others raise :class:`InvalidInput`, whose message does not reveal which, or how many. The vectors have an
            axis of length K more.
        source : EntropySource, optional
            By default the operating system's, the only choice for a release.

        Examples
        --------
        >>> import optrand
        >>> from optrand.sampling import SeededEntropy
        >>> randomizer = optrand.unbiased_vectors([0.25] * 4, 1.0)
        >>> randomizer.sample([2, 0], source=SeededEntropy(1)).round(3).tolist()
        [[-0.582, -0.582, 2.746, -0.582], [2.746, -0.582, -0.582, -0.582]]
        """
        classes = _validation.check_classes(values, self.k)
        words, flat = SystemEntropy() if source is None else source, classes.reshape(-1)
        vectors = np.empty((flat.size, self.k))
        # Parts of 2**18 entries bound the memory.
        step = max(1, (1 << 18) // self.k)
        for start in range(0, flat.size, step):
            vectors[start : start + step] = self._decode(*self._draw(flat[start : start + step], words))
        return vectors.reshape(*classes.shape, self.k)

    def exact_vector(self, members: ArrayLike) -> tuple[Fraction, ...]:
        """Return the vector of one subset, given by its classes, in rationals: without any bias."""
        inside = np.zeros(self.k, dtype=np.bool_)
        inside[_validation.check_classes(members, self.k)] = True
        numbers = [int(inside[part].sum()) for part in self.groups.members]
        found = np.flatnonzero((self.counts == numbers).all(axis=1))
        if not found.size:
            raise InvalidInput("members are a subset that this randomizer never draws")
        values = [(self._decoder.inside if held else self._decoder.outside)[found[0]] for held in inside.tolist()]
        pairs = zip(values, self.groups.of.tolist(), strict=True)
        return tuple(Fraction(int(value[g]), self._decoder.scales[g]) for value, g in pairs)

    def moments(self, labels: ArrayLike) -> Moments:
        """Return the length of the bias of the floats, and the variance summed over the coordinates, at some labels."""
        groups = self.groups.of[_validation.check_classes(labels, self.k).reshape(-1)]
        lengths = np.array([math.sqrt(float(square)) for square in self._float_biases])
        return Moments(lengths[groups], np.array([float(square - 1) for square in self._squares])[groups])

    @cached_property
    def sets(self) -> NDArray[np.bool_]:
        """All subsets in use, shape ``(n, K)``. More than 65,536 raise :class:`InvalidInput`."""
        if self.n > MOST_SETS:
            raise InvalidInput(f"{self.n} subsets are too many to write out: use sample")
        rows = []
        for row in self.counts.tolist():
            choices = [combinations(part.tolist(), d) for part, d in zip(self.groups.members, row, strict=True)]
            rows += [[y for part in chosen for y in part] for chosen in product(*choices)]
        sets = np.zeros((len(rows), self.k), dtype=np.bool_)
        for at, members in enumerate(rows):
            sets[at, members] = True
        sets.flags.writeable = False
        return sets

    @cached_property
    def weights(self) -> Integers:
        """Integers proportional to the probabilities, shape ``(K, n)``: rows are classes, and have one total."""
        sets, multiplicities = self.sets, self._multiplicities
        # Subsets of one type share its mass: the common multiple of their numbers makes every share an integer.
        common = math.lcm(*multiplicities)
        each = np.array(
            [int(mass) * (common // many) for mass, many in zip(self.masses, multiplicities, strict=True)], dtype=object
        ).repeat(multiplicities)
        weights: Integers = np.where(sets.T, each * self.ratio.numerator, each * self.ratio.denominator)
        weights.flags.writeable = False
        return weights

    @cached_property
    def matrix(self) -> Floats:
        """Probabilities, shape ``(K, n)``."""
        return freeze_array(self.weights / self.weights[0].sum())

    @cached_property
    def vectors(self) -> Floats:
        """Vector of each subset, shape ``(n, K)``: floats nearest to rationals that have no bias."""
        return freeze_array(self._decode(self.sets, np.repeat(np.arange(self.masses.size), self._multiplicities)))

    @cached_property
    def _multiplicities(self) -> list[int]:
        sizes = self.groups.sizes
        return [math.prod(map(math.comb, sizes, row)) for row in self.counts.tolist()]

    @cached_property
    def _parts(self) -> tuple[Integers, Integers]:
        """Weight of each type together with a label that is in the subset, and out of it, shape ``(n, m)``."""
        masses, shares = self.masses[:, np.newaxis], self.groups.shares(self.counts)
        return masses * self.ratio.numerator * shares, masses * self.ratio.denominator * (self.groups.unit - shares)

    @cached_property
    def _total(self) -> int:
        inside, outside = self._parts
        return int((inside + outside)[:, 0].sum())

    @cached_property
    def _decoder(self) -> _Coordinates:
        """Vectors of the types.

        Least squares with weights near the inverse probabilities of subsets: unbiased whatever the weights are, and
        optimal up to the square of their error (``docs/mathematics.md``, section 14).
        """
        sizes, shares, common = self.groups.sizes, self.groups.shares(self.counts), self.groups.unit
        extra = self.ratio.numerator - self.ratio.denominator
        likely = self.ratio.denominator * self.groups.total * common + extra * self.groups.mean_weights(self.counts)
        # 100 binary digits: the loss exceeds the least by the square of the error of the weights.
        weights = (max(likely.tolist()) << 100) // likely
        columns = self.ratio.denominator * common + extra * shares
        loads = self.masses * weights
        adjugate, determinant = _adjugate(_multiply((columns * loads[:, np.newaxis]).T, columns))
        level = _multiply(columns, adjugate.T)
        spread = loads @ (shares * (common - shares))
        factor = (weights * self._total)[:, np.newaxis]
        size = np.array(sizes, dtype=object)
        wide = np.array([extra * int(s) if k > 1 else 1 for k, s in zip(sizes, spread, strict=True)], dtype=object)
        inside = factor * (level * wide + determinant * (size - 1) * (common - shares))
        outside = factor * (level * wide - determinant * (size - 1) * shares)
        return _Coordinates(inside, outside, (determinant * size * wide).tolist())

    @cached_property
    def _floats(self) -> tuple[Floats, Floats]:
        scales = np.array(self._decoder.scales, dtype=object)
        return (self._decoder.inside / scales).astype(np.float64), (self._decoder.outside / scales).astype(np.float64)

    @cached_property
    def _squares(self) -> list[Fraction]:
        """Expected squared length of the vector under a class of each group."""
        numbers = self.counts.astype(object)
        norms = (
            numbers * self._decoder.inside**2
            + (np.array(self.groups.sizes, dtype=object) - numbers) * self._decoder.outside**2
        )
        sums = _multiply((self._parts[0] + self._parts[1]).T, norms)
        # One denominator for all groups.
        common = math.lcm(*self._decoder.scales)
        totals = sums @ np.array([(common // scale) ** 2 for scale in self._decoder.scales], dtype=object)
        return [Fraction(int(total), common**2 * self._total) for total in totals]

    @cached_property
    def _float_biases(self) -> list[Fraction]:
        """Squared bias of the floats, for a class of each group."""
        digits = max(map(places, self._floats))
        integers = (scale_to_integers(part.ravel(), digits) for part in self._floats)
        inside, outside = (np.array(part, dtype=object).reshape(self.counts.shape) for part in integers)
        return self._square_biases(inside, outside, [1 << digits] * self.groups.m)

    def _square_biases(self, inside: Integers, outside: Integers, scales: list[int]) -> list[Fraction]:
        """Return the squared distance of the mean from the one-hot vector, for a class of each group."""
        sizes, numbers = self.groups.sizes, self.counts.astype(object)
        size = np.array(sizes, dtype=object)
        held, missed = self._parts
        # Sums over the coordinate of the class, those of the others in its group, and those of each other group.
        own = (held * inside + missed * outside).sum(axis=0)
        same = held * ((numbers - 1) * inside + (size - numbers) * outside)
        same += missed * (numbers * inside + (size - 1 - numbers) * outside)
        cross = _multiply((held + missed).T, numbers * inside + (size - numbers) * outside)
        np.fill_diagonal(cross, same.sum(axis=0))
        squares = []
        for g, sums in enumerate(cross.tolist()):
            square = (Fraction(int(own[g]), scales[g] * self._total) - 1) ** 2
            for h, many in enumerate(sizes):
                # Coordinates of a group have one mean.
                others = many - (g == h)
                square += Fraction(sums[h], scales[h] * self._total) ** 2 / others if others else 0
            squares.append(square)
        return squares

    @cached_property
    def _sampler(self) -> Sampler:
        """Sampler of types and of whether the label is in the subset, by group."""
        held, missed = self._parts
        weights = np.concatenate((held, missed)).T
        return Sampler(Table.of_rows(range(self.groups.m), range(len(held) * 2), weights.tolist()))

    def _draw(self, classes: NDArray[np.intp], source: EntropySource) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Draw a subset for each class, as a row of bits, and its type."""
        # The type and the membership of the label first, and then uniform subsets of the others.
        own = self.groups.of[classes]
        drawn = self._sampler.sample(own, source=source).astype(np.intp)
        types, held = drawn % self.masses.size, drawn < self.masses.size
        sets, rows = np.empty((classes.size, self.k), dtype=np.bool_), np.arange(classes.size)
        place = np.empty(self.k, dtype=np.intp)
        for part in self.groups.members:
            place[part] = np.arange(part.size)
        for group, part in enumerate(self.groups.members):
            # Go cyclically from the label, whose membership is decided. Subsets of the other classes are equally
            # likely.
            wanted, here = self.counts[types, group], own == group
            start = np.where(here, place[classes], 0)
            for step in range(part.size):
                left = np.full(classes.size, part.size - step)
                taken = draw_integers(left, source) < wanted if part.size > 1 else wanted > 0
                if step == 0:
                    taken = np.where(here, held, taken)
                sets[rows, part[(start + step) % part.size]] = taken
                wanted = wanted - taken
        return sets, types

    def _decode(self, sets: NDArray[np.bool_], types: NDArray[np.intp]) -> Floats:
        inside, outside = (part[types][:, self.groups.of] for part in self._floats)
        vectors: Floats = np.where(sets, inside, outside)
        return vectors


def _multiply(left: Integers, right: Integers) -> Integers:
    """Multiply matrices of long integers."""
    product = (fmpz_mat(left.tolist()) * fmpz_mat(right.tolist())).tolist()
    return np.array([[int(x) for x in row] for row in product], dtype=object)


def _adjugate(matrix: Integers) -> tuple[Integers, int]:
    """Return the adjugate and the determinant of a square matrix of integers. No adjugate if it is singular."""
    exact = fmpz_mat(matrix.tolist())
    determinant = exact.det()
    if determinant == 0:
        return np.zeros_like(matrix), 0
    inverse: Any = exact.inv()
    adjugate: Integers = np.array([[int((x * determinant).p) for x in row] for row in inverse.tolist()], dtype=object)
    return adjugate, int(determinant)
