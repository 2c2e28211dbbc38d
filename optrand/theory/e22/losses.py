"""Label-randomization matrices `(1 - beta) I + beta q 1'`, and the loss that undoes them ([E22], Lemmas 1 to 6).

Exact laws of the release of one cluster by Algorithm 1, with noise in whole rows as the package draws it: neighbouring
counts have the rational ratio `B = exp(1 / sigma)`, and clipping makes the laws finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache, cached_property
from itertools import product
from random import Random

import numpy as np

from optrand.baselines import LabelRandomization
from optrand.baselines._cluster import cluster_distribution
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, draws, equal, false, grid
from optrand.theory._shared import Row, Table, prior, push_forward, shares, times, total

Histogram = tuple[int, ...]


@cache
def noisy_law(histogram: Histogram, threshold: F, ratio: F) -> dict[Row, F]:
    """Return the law of the noisy distribution of a cluster with these counts of labels. `ratio` is `B`."""
    size = sum(histogram)
    noisy = product(*(_clip_count(count, math.floor(threshold * size), size, ratio).items() for count in histogram))
    counts = ((tuple(count for count, _ in each), times(mass for _, mass in each)) for each in noisy)
    return push_forward(counts, lambda row: cluster_distribution([F(count, size) for count in row], threshold))


def _clip_count(count: int, low: int, size: int, ratio: F) -> dict[int, F]:
    """Clip a noisy count, and return its law: `low` stands for all counts up to it, the size for all from it on."""

    def tail(x: int) -> F:
        return ratio**x * ratio / (1 + ratio) if x < 0 else 1 - ratio**-x / (1 + ratio)

    inner = {x: (ratio - 1) / (ratio + 1) * ratio ** -abs(x - count) for x in range(low + 1, size)}
    return {low: tail(low - count), size: tail(count - size)} | inner


@cache
def distort(counts: Histogram, threshold: F, ratio: F) -> F:
    """Return the mean distance of the noisy shares of a cluster from its shares."""
    shares = [F(count, sum(counts)) for count in counts]
    law = noisy_law(counts, threshold, ratio).items()
    return total(chance * abs(q - p) for noisy, chance in law for q, p in zip(noisy, shares, strict=True))


def histograms(k: int, size: int) -> Iterator[Histogram]:
    """Yield all counts of `k` labels that sum to `size`."""
    return (counts for counts in product(range(size + 1), repeat=k) if sum(counts) == size)


ANY = "any distribution of the cluster, any beta from 0 to below 1"
IN_ONE = f"{ANY}, losses from 0 to 1"
NOISE = "any population, loss and noise"


def label_laws(q: Row, beta: F) -> Table:
    """Return the laws of noisy labels, a row for each true one: columns of the matrix, as Algorithm 1 has it."""
    return beta * np.array(q) + (1 - beta) * np.eye(len(q), dtype=int)


def inverse_columns(q: Row, beta: F) -> Table:
    """Return the columns of the inverse of the matrix, ``(I - beta q 1') / (1 - beta)``, as rows."""
    return (np.eye(len(q), dtype=int) - beta * np.array(q)) / (1 - beta)


CHANNELS = (
    grid(
        q=map(shares, ([1], [1, 1], [1, 0], [0, 0, 1], [1, *[0] * 19])),
        beta=map(F, ("0", "1/2", "9/10", "999/1000", "1/100", "999999/1000000")),
    ),
    draws(80, q=lambda draw: prior(draw, draw.randint(2, 9)), beta=[F(n, 1_000) for n in range(1_000)]),
)


@claim("E22 Lemma 1", *CHANNELS, given=ANY)
@false("It is 1 - beta, an eigenvalue.", square=1)
def inverses_are_at_most_root_2k(q: Row, beta: F, square: int | None = None) -> Comparison:
    """The smallest singular value of the matrix is at least (1 - beta) / sqrt(2 K) (compared as inverses)."""
    smallest = float(np.linalg.svd(LabelRandomization(q, beta).matrix, compute_uv=False)[-1])
    return at_most(1 / smallest, math.sqrt(square or 2 * len(q)) / float(1 - beta), tolerance=TOLERANCE.proven)


@claim("E22 Lemma 2", *CHANNELS, given=ANY)
@false("The same with 1 for sqrt(2) K.", square=1)
def columns_sum_to_root_2_k(q: Row, beta: F, square: int | None = None) -> Comparison:
    """The absolute entries of a column of the inverse sum to at most sqrt(2) K / (1 - beta) (compared in squares)."""
    sums = abs(inverse_columns(q, beta)).sum(axis=1)
    return at_most(sums**2, F(square or 2 * len(q) ** 2) / (1 - beta) ** 2)


@claim("E22 Equation 1", *CHANNELS, given=IN_ONE)
@false("The same without 1 - beta.", power=0)
def losses_are_bounded_by_k(q: Row, beta: F, power: int = 1) -> Comparison:
    """The modified loss is at most K / (1 - beta), and so sqrt(2) K / (1 - beta) (Lemma 4), in absolute value."""
    columns = inverse_columns(q, beta)
    # The losses that are 1 where weights have one sign, and 0 elsewhere.
    largest = [np.maximum(sign * columns, 0).sum(axis=1) for sign in (1, -1)]
    return at_most(largest, len(q) / (1 - beta) ** power)


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples in clusters, with the distributions of their labels, a row for each example."""

    weights: Table
    clusters: Table
    labels: Table

    @property
    def k(self) -> int:
        return len(self.labels[0])

    @cached_property
    def shares(self) -> Table:
        """Row of labels in the cluster of each example."""
        inside = self.weights * (self.clusters[:, np.newaxis] == self.clusters)
        return np.array(inside @ self.labels / inside.sum(axis=1, keepdims=True))

    @cached_property
    def heterogeneity(self) -> F:
        """`phi`, by Definition 1: mean distance of the labels' distributions from those of their clusters."""
        return total(self.weights @ abs(self.labels - self.shares))

    def mean(self, values: Table, counted: Table) -> F:
        """Return the mean of values over examples, in which labels have the weights `counted`."""
        return total(self.weights @ (values * counted))


@dataclass(frozen=True, eq=False)
class Population(Examples):
    """Losses of one hypothesis, and Algorithm 1 on a sample with noise in whole rows."""

    losses: Table
    sample: int
    threshold: F
    noise: F
    beta: F
    resampling: F

    def modified_risk(self, resampling: F) -> F:
        """Return the mean modified loss on noisy labels, over all samples, all noise and all draws."""
        seen = self.joint_law.items()
        return total(m * (label_laws(q, resampling)[y] @ self.modified_losses(x, q)) for (x, y, q), m in seen)

    def modified_losses(self, example: int, q: Row) -> Table:
        """Return line 30 of Algorithm 1 by the noisy label, where `q` is the noisy distribution of the cluster."""
        return inverse_columns(q, self.beta) @ self.losses[example]

    @cached_property
    def distortion(self) -> F:
        """`psi`, by Definition 3: the mean distance of noisy shares in the worst cluster of a sample."""
        return total(
            mass * max(distort(each, self.threshold, self.noise) for each in counts.values())
            for mass, _, counts in self._samples
        )

    @cached_property
    def _samples(self) -> list[tuple[F, tuple[tuple[int, int], ...], dict[int, Histogram]]]:
        """All samples: how likely they are, their examples and labels, and the histograms of their clusters."""
        found, chances = [], self.weights[:, np.newaxis] * self.labels
        masses = {(x, y): chances[x, y] for x, y in np.ndindex(*chances.shape) if chances[x, y]}
        for rows in product(masses, repeat=self.sample):
            seen = {c: [y for x, y in rows if self.clusters[x] == c] for c in {self.clusters[x] for x, _ in rows}}
            counts = {c: tuple(map(labels.count, range(self.k))) for c, labels in seen.items()}
            found.append((times(masses[row] for row in rows), rows, counts))
        return found

    @cached_property
    def joint_law(self) -> dict[tuple[int, int, Row], F]:
        """Law of an example of the sample, its label, and the noisy distribution of its cluster."""
        cases = (
            ((x, y, q), mass * chance / self.sample)
            for mass, rows, counts in self._samples
            for x, y in rows
            for q, chance in noisy_law(counts[self.clusters[x]], self.threshold, self.noise).items()
        )
        return push_forward(cases, lambda each: each)


def _draw_population(draw: Random) -> Population:
    k, examples = draw.choice(((2, 1), (2, 2), (3, 1), (3, 2)))
    beta, share = (F(draw.randint(0, 99), 100) for _ in range(2))
    return Population(
        weights=np.array([F(1)] if examples == 1 else [(1 + beta) / 3, (2 - beta) / 3]),
        clusters=np.array([0] * examples if draw.random() < 0.7 else range(examples)),
        labels=np.array([prior(draw, k) for _ in range(examples)]),
        losses=np.array([[F(draw.randint(0, 6), 6) for _ in range(k)] for _ in range(examples)]),
        sample=2 if k == 3 else draw.choice((1, 2, 3)),
        threshold=F(draw.randint(0, 6), 6 * k),
        noise=1 + F(draw.randint(1, 200), 100),
        beta=beta,
        resampling=share,
    )


POPULATIONS = Draws(16, _draw_population)


@claim("E22 Lemma 3", POPULATIONS, given=NOISE)
@false("The same whatever beta and lambda.", alike=False)
def modified_losses_are_unbiased(population: Population, *, alike: bool = True) -> Comparison:
    """With beta = lambda the mean modified loss on noisy labels is the risk."""
    resampling = population.beta if alike else population.resampling
    return equal(population.modified_risk(resampling), population.mean(population.losses, population.labels))


@claim(
    "E22 Lemma 5",
    counts=((1, 0), (1, 0, 0), (5, 5), (3, 0, 0, 0), (3, 2, 1)),
    part=(F(0), F(1, 2), F(1)),
    ratio=map(F, ("1000000", "3", "11/10", "101/100")),
    given="any cluster, tau from 0 to 1/K (a part of 1/K), noise in whole rows, its ratio exp(1 / sigma)",
)
@false("With K tau.", thresholds=1)
def shares_are_distorted_by_both(counts: Histogram, part: F, ratio: F, thresholds: int = 2) -> Comparison:
    """The noisy shares of a cluster of s rows are on average within 2 K tau + 2 sqrt(2) K sigma / s of its shares."""
    k = len(counts)
    bound = thresholds * float(part) + 2 * math.sqrt(2) * k / math.log(ratio) / sum(counts)
    return at_most(distort(counts, part / k, ratio), bound)


@claim("E22 Lemma 6", POPULATIONS, given=NOISE)
@false("Without psi.", noises=0)
def another_correction_costs_both_distances(population: Population, noises: int = 1) -> Comparison:
    """Another beta than lambda moves the mean modified loss by at most its bound times |beta - lambda| (phi + psi)."""
    moved = abs(population.modified_risk(population.beta) - population.modified_risk(population.resampling))
    largest = max(max(abs(population.modified_losses(x, q))) for x, _, q in population.joint_law)
    distance = population.heterogeneity + noises * population.distortion
    return at_most(moved, largest * abs(population.beta - population.resampling) * distance)


@dataclass(frozen=True, eq=False)
class Contest(Examples):
    """Losses of two hypotheses, of which the one with the smaller loss on the labels seen is chosen."""

    losses: Table

    def excess(self, seen: Table) -> F:
        """Return the excess risk of the hypothesis that looks better by the labels `seen`, of equal ones the worse."""
        risks, looks = ([self.mean(losses, counted) for losses in self.losses] for counted in (self.labels, seen))
        return max(risk for risk, look in zip(risks, looks, strict=True) if look == min(looks)) - min(risks)


SURE = np.eye(2, dtype=int) * F(1)

TEMPTING = [
    Contest(np.array([F(1, 2)] * 2), np.zeros(2, dtype=int), SURE, np.array([[[0, 1], [1, 0]], wrong]))
    for wrong in ([[1, 1], [0, 0]], [[1, F(1, 2)], [0, 0]])
]
"""Two examples that are sure of opposite labels, whose cluster misleads, hardly and by far."""


def draw_contest(draw: Random, labels: int) -> Contest:
    """Return random losses of two hypotheses on up to four examples with two labels or more."""
    size, k = draw.randint(1, 4), draw.randint(2, labels)
    weights = shares([draw.randint(1, 9) for _ in range(size)])
    losses = [[[F(draw.randint(0, 4), 4) for _ in range(k)] for _ in range(size)] for _ in range(2)]
    clusters = [draw.randint(0, 1) for _ in range(size)]
    laws = np.array([prior(draw, k) for _ in range(size)])
    return Contest(np.array(weights), np.array(clusters), laws, np.array(losses))
