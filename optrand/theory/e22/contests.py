"""Two hypotheses, the one chosen that is better by what is seen of the labels, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

from optrand.theory.e22.losses import Table, heterogeneity
from optrand.theory.instances import listed, prior

__all__ = ["Contest", "contests", "most_lost"]

PRECISION = 1e-9
"""Of :func:`most_lost`."""


@dataclass(frozen=True)
class Contest:
    """A population and the losses of two hypotheses on it.

    Attributes
    ----------
    weights : tuple of Fraction
        The distribution of examples.
    clusters : tuple of int
        The cluster of each example.
    labels : table
        The distribution of labels of each example.
    losses : tuple of two tables
        Of each hypothesis, at each example and label.
    """

    weights: tuple[Fraction, ...]
    clusters: tuple[int, ...]
    labels: Table
    losses: tuple[Table, Table]

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels[0])

    @cached_property
    def heterogeneity(self) -> Fraction:
        """`phi`."""
        return heterogeneity(self.weights, self.clusters, self.labels)

    @cached_property
    def shares(self) -> Table:
        """The distribution of labels in the cluster of each example."""
        return tuple(self._share(cluster) for cluster in self.clusters)

    def excess(self, seen: Table) -> Fraction:
        """What the chosen hypothesis loses beyond the better one; of two that look alike, the worse is chosen.

        Parameters
        ----------
        seen : table
            With what weight the loss at each label counts, at each example.
        """
        risks = [self._risk(table, self.labels) for table in self.losses]
        looks = [self._risk(table, seen) for table in self.losses]
        return max(risk for risk, look in zip(risks, looks, strict=True) if look == min(looks)) - min(risks)

    def _share(self, cluster: int) -> tuple[Fraction, ...]:
        inside = [x for x, c in enumerate(self.clusters) if c == cluster]
        weight = sum((self.weights[x] for x in inside), Fraction(0))
        masses = [sum((self.weights[x] * self.labels[x][y] for x in inside), Fraction(0)) for y in range(self.k)]
        return tuple(mass / weight for mass in masses)

    def _risk(self, losses: Table, counted: Table) -> Fraction:
        each = zip(self.weights, losses, counted, strict=True)
        return sum((w * a * b for w, row, counts in each for a, b in zip(row, counts, strict=True)), Fraction(0))

    def __str__(self) -> str:
        tables = " or ".join("; ".join(map(listed, table)) for table in self.losses)
        return (
            f"examples of weight {listed(self.weights)} in clusters {', '.join(map(str, self.clusters))} with labels "
            f"{'; '.join(map(listed, self.labels))}, losses {tables}"
        )


def contests(count: int, *, labels: int, seed: int) -> Iterator[Contest]:
    """Two examples whose cluster misleads, hardly and by far, then random populations of up to four examples.

    Parameters
    ----------
    count : int
        How many random ones.
    labels : int
        The largest number of labels.
    seed : int

    Examples
    --------
    >>> first = next(contests(0, labels=2, seed=0))
    >>> str(first.heterogeneity), str(first.excess(first.labels)), str(first.excess(first.shares))
    ('1', '0', '1/2')
    """
    one, none, half = Fraction(1), Fraction(0), Fraction(1, 2)
    right = ((none, one), (one, none))
    for wrong in (((one, one), (none, none)), ((one, half), (none, none))):
        yield Contest((half, half), (0, 0), ((one, none), (none, one)), (right, wrong))
    random = Random(seed)  # noqa: S311
    for _ in range(count):
        size, k = random.randint(1, 4), random.randint(2, labels)
        counts = [random.randint(1, 9) for _ in range(size)]
        tables = [
            tuple(tuple(Fraction(random.randint(0, 4), 4) for _ in range(k)) for _ in range(size)) for _ in range(2)
        ]
        yield Contest(
            tuple(Fraction(part, sum(counts)) for part in counts),
            tuple(random.randint(0, 1) for _ in range(size)),
            tuple(prior(random, k) for _ in range(size)),
            (tables[0], tables[1]),
        )


def most_lost(misled: Callable[[float], float], gamma: float) -> float:
    """The largest excess risk, over all probabilities of a label, that is met with probability `gamma` at least.

    "Always 0" costs `2 p - 1` more than "always 1" where labels are 1 with probability `p` above 1/2.

    Parameters
    ----------
    misled : callable
        From `p` to the probability that "always 0" is chosen, which falls.
    gamma : float

    Examples
    --------
    >>> round(most_lost(lambda p: 1 - p, 0.25), 6)
    0.5
    """
    low, high = 0.5, 1.0
    if misled(high) >= gamma:
        return 1.0
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if misled(middle) >= gamma else (low, middle)
    return 2 * low - 1
