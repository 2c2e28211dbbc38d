"""Labels that are randomized one by one, and what is learned from all of them ([Z25]_, Section 3.1).

References
----------
.. [Z25] Zhao et al., *Enhancing Learning with Label Local Differential Privacy by Vector Approximation*, 2025.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.instances import listed

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class Learning:
    """A randomizer of labels, and something that is learned from all its outputs.

    Attributes
    ----------
    randomizer : tuple of tuple of Fraction
        A row of probabilities for each label.
    records : int
    learned : dict
        From the outputs of all records to the probability that the learner says yes.
    """

    randomizer: tuple[tuple[Fraction, ...], ...]
    records: int
    learned: tuple[tuple[tuple[int, ...], Fraction], ...]

    @property
    def ratio(self) -> Fraction:
        """The largest one of the randomizer: what it spends."""
        return max(a / b for one, other in permutations(self.randomizer, 2) for a, b in zip(one, other, strict=True))

    @cached_property
    def answers(self) -> dict[tuple[int, ...], tuple[Fraction, Fraction]]:
        """The probabilities of yes and no on every data set."""
        found = {}
        for labels in product(range(len(self.randomizer)), repeat=self.records):
            yes = Fraction(0)
            for outputs, chance in self.learned:
                yes += chance * math.prod(self.randomizer[y][v] for y, v in zip(labels, outputs, strict=True))
            found[labels] = yes, 1 - yes
        return found

    def worst_ratio(self, changed: int) -> Fraction:
        """Of the probabilities of one answer on two data sets that differ in at most so many labels."""
        return max(
            ours / theirs
            for (one, here), (other, there) in permutations(self.answers.items(), 2)
            if sum(a != b for a, b in zip(one, other, strict=True)) <= changed
            for ours, theirs in zip(here, there, strict=True)
            if ours
        )

    def __str__(self) -> str:
        rows = "; ".join(map(listed, self.randomizer))
        return f"rows {rows}; {self.records} records; yes at " + ", ".join(
            f"{v}: {chance}" for v, chance in self.learned
        )


def _learning(budget: Budget) -> Iterator[Learning]:
    random = Random(31)  # noqa: S311
    binary = ((Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3)))
    yield Learning(binary, 2, (((0, 0), Fraction(1)),))
    for _ in range(budget.pick(quick=40, full=600)):
        k, n, records = random.randint(2, 3), random.randint(2, 3), random.randint(1, 3)
        rows = [[random.randint(1, 20) for _ in range(n)] for _ in range(k)]
        randomizer = tuple(tuple(Fraction(cell, sum(row)) for cell in row) for row in rows)
        outputs = product(range(n), repeat=records)
        yield Learning(randomizer, records, tuple((v, Fraction(random.choice((0, 1, 3, 4)), 4)) for v in outputs))


def local_privacy_is_enough(learning: Learning) -> Comparison:
    """Whatever is learned from labels that were randomized one by one is as private as the randomizer.

    Between data sets that differ in one label; the two answers of a learner stand for any set of models.
    """
    return at_most(learning.worst_ratio(1), learning.ratio)


def local_privacy_protects_pairs(learning: Learning) -> Comparison:
    """The same between data sets that differ in two labels."""
    return at_most(learning.worst_ratio(2), learning.ratio)


CLAIMS = (
    Claim(
        paper="Z25",
        number="Section 3.1",
        part="local is central",
        hypothesis="each label randomized on its own, any learner, random or not",
        instances=_learning,
        printed=local_privacy_is_enough,
        false=local_privacy_protects_pairs,
    ),
)
