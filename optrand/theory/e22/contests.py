"""Populations on which two hypotheses compete: the one is chosen that is better by what is seen of the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property

from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["CONSTANT", "GAMMAS", "TOLERANCE", "Contest", "Table", "contests", "heterogeneity", "most_lost"]

TOLERANCE = 1e-9
"""Of :func:`most_lost`, and of quantiles, sums and roots in floats."""

GAMMAS = (0.5, 0.05, 1e-4)
"""None near 1, where `log(1/gamma)` tends to 0 and `log(2/gamma)` has to stand for it."""

CONSTANT = "an unnamed constant, over all classes of hypotheses and populations"

Table = tuple[tuple[Fraction, ...], ...]


def heterogeneity(weights: tuple[Fraction, ...], clusters: tuple[int, ...], labels: Table) -> Fraction:
    """How far the labels of an example are distributed from those of its cluster ([E22], Definition 1).

    Examples
    --------
    >>> half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    >>> heterogeneity((half, half), (0, 0), (sure, sure[::-1])), heterogeneity((half, half), (0, 1), (sure, sure[::-1]))
    (Fraction(1, 1), Fraction(0, 1))
    """
    of_clusters = _cluster_shares(weights, clusters, labels)
    return total(
        weight * abs(p - q)
        for weight, cluster, row in zip(weights, clusters, labels, strict=True)
        for p, q in zip(row, of_clusters[cluster], strict=True)
    )


def _cluster_shares(
    weights: tuple[Fraction, ...], clusters: tuple[int, ...], labels: Table
) -> dict[int, list[Fraction]]:
    """Distribution of labels in each cluster."""
    found = {}
    for cluster in set(clusters):
        inside = [(w, row) for w, c, row in zip(weights, clusters, labels, strict=True) if c == cluster]
        weight = total(w for w, _ in inside) or Fraction(1)
        found[cluster] = [total(w * row[y] for w, row in inside) / weight for y in range(len(labels[0]))]
    return found


class Contest(Instance, weights="examples of weight", clusters="in clusters"):
    """A population and the losses of two hypotheses on it, at each example and label."""

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
        """Distribution of labels in the cluster of each example."""
        found = _cluster_shares(self.weights, self.clusters, self.labels)
        return tuple(tuple(found[cluster]) for cluster in self.clusters)

    def excess(self, seen: Table) -> Fraction:
        """Loss of the chosen hypothesis beyond the better one, if the loss at a label counts by what is `seen` of it.

        Of two that look alike, the worse is chosen.
        """
        risks = [self._risk(table, self.labels) for table in self.losses]
        looks = [self._risk(table, seen) for table in self.losses]
        return max(risk for risk, look in zip(risks, looks, strict=True) if look == min(looks)) - min(risks)

    def _risk(self, losses: Table, counted: Table) -> Fraction:
        each = zip(self.weights, losses, counted, strict=True)
        return total(w * a * b for w, row, counts in each for a, b in zip(row, counts, strict=True))


def contests(count: int, *, labels: int, seed: int) -> Iterator[Contest]:
    """Two examples whose cluster misleads, hardly and by far, then `count` random populations of up to four examples.

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
    random = seeded(seed)
    for _ in range(count):
        size, k = random.randint(1, 4), random.randint(2, labels)
        weights = shares([random.randint(1, 9) for _ in range(size)])
        first, second = (
            tuple(tuple(Fraction(random.randint(0, 4), 4) for _ in range(k)) for _ in range(size)) for _ in range(2)
        )
        clusters = tuple(random.randint(0, 1) for _ in range(size))
        yield Contest(weights, clusters, tuple(prior(random, k) for _ in range(size)), (first, second))


def most_lost(misled: Callable[[float], float], gamma: float) -> float:
    """Largest excess risk, over all probabilities of a label, that is met with probability `gamma` at least.

    "Always 0" costs `2 p - 1` more than "always 1" where labels are 1 with probability `p` above 1/2; `misled` says how
    likely "always 0" is chosen, and falls with `p`.

    Examples
    --------
    >>> round(most_lost(lambda p: 1 - p, 0.25), 6)
    0.5
    """
    low, high = 0.5, 1.0
    if misled(high) >= gamma:
        return 1.0
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if misled(middle) >= gamma else (low, middle)
    return 2 * low - 1
