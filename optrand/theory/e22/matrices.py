"""Label-randomization matrices and what undoing them costs ([E22], Lemmas 1, 2 and 4).

A label stays with probability `1 - beta`, or else is drawn from a distribution `q`: the matrix `(1 - beta) I + beta q
1'`, a column for each true label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

import numpy as np

from optrand.baselines import LabelRandomization
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, none
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS", "Randomization"]

TOLERANCE = 1e-9
"""Of singular values and inverses in floats."""

ANY = "any distribution of the cluster, any beta from 0 to below 1"


@dataclass(frozen=True)
class Randomization:
    """One matrix.

    Attributes
    ----------
    distribution : tuple of Fraction
        `q`.
    beta : Fraction
        Below 1.
    """

    distribution: tuple[Fraction, ...]
    beta: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.distribution)

    @property
    def kept(self) -> Fraction:
        """`1 - beta`."""
        return 1 - self.beta

    @cached_property
    def matrix(self) -> list[list[Fraction]]:
        """Entry by entry as Algorithm 1 has it: ``matrix[out][true]``."""
        return [[self.kept * (out == true) + self.beta * q for true in range(self.k)] for out, q in _counted(self)]

    @cached_property
    def inverse(self) -> list[list[Fraction]]:
        """``(I - beta q 1') / (1 - beta)``; :attr:`strays` says whether it is one."""
        return [[((out == true) - self.beta * q) / self.kept for true in range(self.k)] for out, q in _counted(self)]

    @cached_property
    def strays(self) -> int:
        """How many entries of matrix times inverse are not those of the identity, and of floats of the package."""
        size = range(self.k)
        exact = sum(
            sum(self.matrix[i][m] * self.inverse[m][j] for m in size) != (i == j) for i, j in product(size, repeat=2)
        )
        floats = LabelRandomization(self.distribution, self.beta).inverse
        off = np.abs(floats - np.array(self.inverse, dtype=float)) > TOLERANCE / float(self.kept)
        return exact + int(off.sum())

    def __str__(self) -> str:
        return f"q = {listed(self.distribution)}, beta = {self.beta}"


def _counted(randomization: Randomization) -> list[tuple[int, Fraction]]:
    return list(enumerate(randomization.distribution))


def _randomizations(budget: Budget) -> Iterator[Randomization]:
    """One label, two and three with every kind of distribution, then random ones."""
    betas = [Fraction(text) for text in ("0", "1/2", "9/10", "999/1000", "1/100", "999999/1000000")]
    sure = [(Fraction(1),), (Fraction(1, 2),) * 2, (Fraction(1), Fraction(0)), (Fraction(0), Fraction(0), Fraction(1))]
    yield from (Randomization(q, beta) for q in sure for beta in betas)
    random = Random(1)  # noqa: S311
    for _ in range(budget.pick(quick=100, full=3_000)):
        q = prior(random, random.randint(2, 9))
        yield Randomization(q, Fraction(random.randint(0, 999), 1_000))
    for k in budget.pick(quick=(20,), full=(20, 40, 80)):
        yield Randomization((Fraction(1),) + (Fraction(0),) * (k - 1), Fraction(999, 1_000))


def inverses_are_at_most_root_2k(randomization: Randomization) -> Comparison:
    """The smallest singular value of the matrix is at least (1 - beta) / sqrt(2 K): one over it is at most its inverse.

    The proof multiplies by the transpose, which has the same singular values. The constant can be sqrt(K).
    """
    return _stretched(randomization, 2 * randomization.k)


def inverses_are_as_long_as_eigenvalues_say(randomization: Randomization) -> Comparison:
    """The smallest singular value is the smallest eigenvalue, 1 - beta."""
    return _stretched(randomization, 1)


def _stretched(randomization: Randomization, square: int) -> Comparison:
    matrix = np.array(randomization.matrix, dtype=float)
    smallest = float(np.linalg.svd(matrix, compute_uv=False)[-1])
    return at_most(1 / smallest, square**0.5 / float(randomization.kept), tolerance=TOLERANCE)


def columns_sum_to_root_2_k(randomization: Randomization) -> Comparison:
    """The absolute entries of a column of the inverse sum to at most sqrt(2) K / (1 - beta); compared in squares."""
    return _summed(randomization, Fraction(2 * randomization.k**2))


def columns_sum_to_one_over_kept(randomization: Randomization) -> Comparison:
    """The absolute entries of a column of the inverse sum to at most 1 / (1 - beta); compared in squares."""
    return _summed(randomization, Fraction(1))


def _summed(randomization: Randomization, square: Fraction) -> Comparison:
    largest = max(sum(map(abs, column)) for column in zip(*randomization.inverse, strict=True))
    return _of_an_inverse(randomization, at_most(largest**2, square / randomization.kept**2))


def losses_are_bounded_by_root_2_k(randomization: Randomization) -> Comparison:
    """The modified loss is at most sqrt(2) K / (1 - beta) in absolute value; compared in squares.

    Losses lie in [0, 1], so that their corners suffice: a sum of the positive entries of a column, or of the negative
    ones. It never is more than 1 / (1 - beta).
    """
    return _bounded(randomization, Fraction(2 * randomization.k**2))


def losses_are_bounded_as_for_equal_shares(randomization: Randomization) -> Comparison:
    """The modified loss is at most (1 - beta / K) / (1 - beta), what it is where all labels are drawn alike."""
    return _bounded(randomization, (1 - randomization.beta / randomization.k) ** 2)


def _bounded(randomization: Randomization, square: Fraction) -> Comparison:
    columns = zip(*randomization.inverse, strict=True)
    largest = max(max(sum(max(side * w, 0) for w in column) for side in (1, -1)) for column in columns)
    return _of_an_inverse(randomization, at_most(largest**2, square / randomization.kept**2))


def _of_an_inverse(randomization: Randomization, said: Comparison) -> Comparison:
    """What is said, unless what it is said of is no inverse."""
    return none(randomization.strays) if randomization.strays else said


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 1",
        hypothesis=ANY,
        instances=_randomizations,
        printed=inverses_are_at_most_root_2k,
        false=inverses_are_as_long_as_eigenvalues_say,
    ),
    Claim(
        paper="E22",
        number="Lemma 2",
        hypothesis=ANY,
        instances=_randomizations,
        printed=columns_sum_to_root_2_k,
        false=columns_sum_to_one_over_kept,
    ),
    Claim(
        paper="E22",
        number="Lemma 4",
        hypothesis=ANY + ", losses from 0 to 1",
        instances=_randomizations,
        printed=losses_are_bounded_by_root_2_k,
        false=losses_are_bounded_as_for_equal_shares,
    ),
)
