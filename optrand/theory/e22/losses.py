"""The modified loss on small populations, with every sample and every noise summed ([E22], Lemmas 3 and 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal
from optrand.theory.e22.noise import Distribution, channel, law_of_distributions
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS", "Population", "heterogeneity"]

Table = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Population:
    """Examples in clusters, one hypothesis, and Algorithm 1 on a sample of them with noise in whole rows.

    Attributes
    ----------
    weights : tuple of Fraction
        The distribution of examples.
    clusters : tuple of int
        The cluster of each example.
    labels : tuple of tuples of Fraction
        The distribution of labels of each example.
    losses : tuple of tuples of Fraction
        The loss of the hypothesis at each example and label.
    sample : int
        How many rows the curator has.
    threshold, noise : Fraction
        `tau` and `exp(1 / sigma)`.
    beta, resampling : Fraction
        The bias correction, and `lambda`.
    """

    weights: tuple[Fraction, ...]
    clusters: tuple[int, ...]
    labels: Table
    losses: Table
    sample: int
    threshold: Fraction
    noise: Fraction
    beta: Fraction
    resampling: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels[0])

    @cached_property
    def risk(self) -> Fraction:
        """The mean loss of the hypothesis."""
        return sum(
            (w * p * loss for w, ps, row in self._examples for p, loss in zip(ps, row, strict=True)), Fraction(0)
        )

    def modified_risk(self, resampling: Fraction) -> Fraction:
        """The mean modified loss on noisy labels, over all samples, all noise and all draws."""
        total = Fraction(0)
        for mass, rows in self._samples:
            for x, y in rows:
                for q, chance in self._law(rows, self.clusters[x]).items():
                    drawn = (channel(v, y, q, resampling) * self.modified_loss(x, v, q) for v in range(self.k))
                    total += mass * chance * sum(drawn) / self.sample
        return total

    def modified_loss(self, example: int, label: int, q: Distribution) -> Fraction:
        """Line 30 of Algorithm 1, where `q` is the noisy distribution of the example's cluster."""
        row = self.losses[example]
        mean = sum((share * loss for share, loss in zip(q, row, strict=True)), Fraction(0))
        return (row[label] - self.beta * mean) / (1 - self.beta)

    @cached_property
    def largest_loss(self) -> Fraction:
        """The largest modified loss that can occur, in absolute value."""
        return max(
            abs(self.modified_loss(x, v, q))
            for _, rows in self._samples
            for x, _ in rows
            for q in self._law(rows, self.clusters[x])
            for v in range(self.k)
        )

    @property
    def heterogeneity(self) -> Fraction:
        """`phi`, by Definition 1."""
        return heterogeneity(self.weights, self.clusters, self.labels)

    @cached_property
    def distortion(self) -> Fraction:
        """`psi`, by Definition 3: the mean distance of noisy shares in the worst cluster of a sample."""
        return sum((mass * max(self._distorted(rows)) for mass, rows in self._samples), Fraction(0))

    @property
    def _examples(self) -> Iterator[tuple[Fraction, tuple[Fraction, ...], tuple[Fraction, ...]]]:
        return zip(self.weights, self.labels, self.losses, strict=True)

    @cached_property
    def _samples(self) -> list[tuple[Fraction, tuple[tuple[int, int], ...]]]:
        rows = [(x, y) for x in range(len(self.weights)) for y in range(self.k)]
        masses = {(x, y): self.weights[x] * self.labels[x][y] for x, y in rows}
        samples = product([row for row in rows if masses[row]], repeat=self.sample)
        return [(math.prod((masses[row] for row in sample), start=Fraction(1)), sample) for sample in samples]

    def _law(self, rows: tuple[tuple[int, int], ...], cluster: int) -> dict[Distribution, Fraction]:
        return law_of_distributions(self._histogram(rows, cluster), self.threshold, self.noise)

    def _histogram(self, rows: tuple[tuple[int, int], ...], cluster: int) -> tuple[int, ...]:
        found = [y for x, y in rows if self.clusters[x] == cluster]
        return tuple(found.count(y) for y in range(self.k))

    def _distorted(self, rows: tuple[tuple[int, int], ...]) -> Iterator[Fraction]:
        for cluster in {self.clusters[x] for x, _ in rows}:
            histogram = self._histogram(rows, cluster)
            size = sum(histogram)
            for_all = self._law(rows, cluster).items()
            yield sum(
                (
                    chance * sum(abs(share - Fraction(count, size)) for share, count in zip(q, histogram, strict=True))
                    for q, chance in for_all
                ),
                Fraction(0),
            )

    def __str__(self) -> str:
        return (
            f"examples of weight {listed(self.weights)} in clusters {', '.join(map(str, self.clusters))} with labels "
            f"{'; '.join(map(listed, self.labels))} and losses {'; '.join(map(listed, self.losses))}, {self.sample} "
            f"row(s), tau = {self.threshold}, exp(1 / sigma) = {self.noise}, beta = {self.beta}, lambda = "
            f"{self.resampling}"
        )


def heterogeneity(weights: tuple[Fraction, ...], clusters: tuple[int, ...], labels: Table) -> Fraction:
    """How far the labels of an example are distributed from those of its cluster ([E22], Definition 1).

    Examples
    --------
    >>> half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    >>> heterogeneity((half, half), (0, 0), (sure, sure[::-1])), heterogeneity((half, half), (0, 1), (sure, sure[::-1]))
    (Fraction(1, 1), Fraction(0, 1))
    """
    total = Fraction(0)
    for cluster in set(clusters):
        inside = [x for x, c in enumerate(clusters) if c == cluster and weights[x]]
        weight = sum((weights[x] for x in inside), Fraction(0))
        for y in range(len(labels[0])):
            share = sum((weights[x] * labels[x][y] for x in inside), Fraction(0))
            total += sum((abs(weights[x] * labels[x][y] - weights[x] * share / weight) for x in inside), Fraction(0))
    return total


def _populations(budget: Budget) -> Iterator[Population]:
    """Two examples that are sure of opposite labels, then random ones."""
    half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    for clusters in ((0, 0), (0, 1)):
        for beta, share in ((half, Fraction(1, 4)), (Fraction(0), half), (Fraction(9, 10), Fraction(99, 100))):
            yield Population(
                (half, half),
                clusters,
                (sure, sure[::-1]),
                (sure, (half, sure[0])),
                2,
                Fraction(1, 4),
                Fraction(2),
                beta,
                share,
            )
    random = Random(4)  # noqa: S311
    for _ in range(budget.pick(quick=12, full=150)):
        k, examples = random.choice(((2, 1), (2, 2), (3, 1), (3, 2)))
        beta, share = (Fraction(random.randint(0, 99), 100) for _ in range(2))
        yield Population(
            weights=(Fraction(1),) if examples == 1 else (beta / 3 + Fraction(1, 3), Fraction(2, 3) - beta / 3),
            clusters=(0,) * examples if random.random() < 0.7 else tuple(range(examples)),
            labels=tuple(prior(random, k) for _ in range(examples)),
            losses=tuple(tuple(Fraction(random.randint(0, 6), 6) for _ in range(k)) for _ in range(examples)),
            sample=2 if k == 3 else random.choice((1, 2, 3)),
            threshold=Fraction(random.randint(0, 6), 6 * k),
            noise=1 + Fraction(random.randint(1, 200), 100),
            beta=beta,
            resampling=share,
        )


def modified_losses_are_unbiased(population: Population) -> Comparison:
    """With beta = lambda the mean modified loss on noisy labels is the risk."""
    return equal(population.modified_risk(population.beta), population.risk)


def modified_losses_are_unbiased_anyhow(population: Population) -> Comparison:
    """Whatever beta and lambda, the mean modified loss on noisy labels is the risk."""
    return equal(population.modified_risk(population.resampling), population.risk)


def another_correction_costs_both_distances(population: Population) -> Comparison:
    """Another beta than lambda moves the mean modified loss by at most its bound times |beta - lambda| (phi + psi).

    The proof takes the mean of the modified loss as if it did not depend on the labels. It does, through the noisy
    distribution; but what depends on them is the same for all labels and cancels.
    """
    return _moved(population, population.heterogeneity + population.distortion)


def another_correction_costs_the_heterogeneity(population: Population) -> Comparison:
    """The same without psi: what the noise does to the distribution of a cluster costs nothing."""
    return _moved(population, population.heterogeneity)


def _moved(population: Population, distance: Fraction) -> Comparison:
    moved = abs(population.modified_risk(population.beta) - population.modified_risk(population.resampling))
    return at_most(moved, population.largest_loss * abs(population.beta - population.resampling) * distance)


CLAIMS = (
    Claim(
        paper="E22",
        number="Lemma 3",
        hypothesis="any population, loss and noise",
        instances=_populations,
        printed=modified_losses_are_unbiased,
        false=modified_losses_are_unbiased_anyhow,
    ),
    Claim(
        paper="E22",
        number="Lemma 6",
        hypothesis="any population, loss and noise",
        instances=_populations,
        printed=another_correction_costs_both_distances,
        false=another_correction_costs_the_heterogeneity,
    ),
)
