"""Label-randomization matrices, and the loss that undoes them on average ([E22], Lemmas 1 to 6, Equation 1).

A label stays with probability `1 - beta`, or else is drawn from a distribution `q`: the matrix `(1 - beta) I + beta q
1'`, a column for each true label. Populations are small, with every sample and every noise summed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.base.validation import Floats
from optrand.baselines import ClusterRR, LabelRandomization
from optrand.baselines.cluster import ClusterRelease
from optrand.baselines.groups import Groups
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none
from optrand.theory.e22.contests import Table, heterogeneity
from optrand.theory.e22.noise import Distribution, Histogram, channel, label_laws, law_of_distributions, renormalized
from optrand.theory.instances import Instance, prior, seeded
from optrand.theory.sums import times, total

__all__ = ["Population", "Randomization", "distortion"]

TOLERANCE = 1e-9
"""Of singular values and inverses in floats."""

QUADRATURE = 0.02
"""Of means over Laplace noise by midpoints of its quantiles, as a share."""

ANY = "any distribution of the cluster, any beta from 0 to below 1"
NOISE = "any population, loss and noise"
IN_ONE = f"{ANY}, losses from 0 to 1"

Row = tuple[int, int]
"""An example and its label."""


class Randomization(Instance, distribution="q"):
    """One matrix."""

    distribution: Distribution
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
    def laws(self) -> list[dict[int, Fraction]]:
        """Columns of the matrix, as Algorithm 1 has it: ``laws[true][out]``."""
        return label_laws(self.distribution, self.beta)

    @cached_property
    def inverse(self) -> list[list[Fraction]]:
        """``(I - beta q 1') / (1 - beta)``; :attr:`strays` says whether it is one."""
        shares = enumerate(self.distribution)
        return [[((out == true) - self.beta * q) / self.kept for true in range(self.k)] for out, q in shares]

    @property
    def columns(self) -> list[tuple[Fraction, ...]]:
        """Columns of the inverse."""
        return list(zip(*self.inverse, strict=True))

    @cached_property
    def strays(self) -> int:
        """How many entries of inverse times matrix are not those of the identity, and of the package's own floats."""
        pairs = product(range(self.k), repeat=2)
        exact = sum(total(self.inverse[i][m] * p for m, p in self.laws[j].items()) != (i == j) for i, j in pairs)
        known = LabelRandomization(self.distribution, self.beta)
        matrix = np.array([list(law.values()) for law in self.laws], dtype=float).T
        off = np.abs(known.inverse - np.array(self.inverse, dtype=float)) > TOLERANCE / float(self.kept)
        return exact + int(off.sum()) + int((np.abs(known.matrix - matrix) > TOLERANCE).sum())

    @cached_property
    def largest_loss(self) -> Fraction:
        """The largest modified loss in absolute value, of all losses from 0 to 1."""
        sides = product(self.columns, (1, -1))
        return max(total(side * w for w in each if side * w > 0) for each, side in sides)

    def of_an_inverse(self, largest: Fraction, square: Fraction) -> Comparison:
        """Compare with a square over `1 - beta`, unless what is compared is of no inverse."""
        return none(self.strays) if self.strays else at_most(largest**2, square / self.kept**2)


def _randomizations(budget: Budget) -> Iterator[Randomization]:
    """One label, two and three with every kind of distribution, then random ones."""
    betas = [Fraction(text) for text in ("0", "1/2", "9/10", "999/1000", "1/100", "999999/1000000")]
    sure = [(Fraction(1),), (Fraction(1, 2),) * 2, (Fraction(1), Fraction(0)), (Fraction(0), Fraction(0), Fraction(1))]
    yield from (Randomization(q, beta) for q in sure for beta in betas)
    random = seeded(1)
    for _ in range(budget.pick(quick=80, full=3_000)):
        yield Randomization(prior(random, random.randint(2, 9)), Fraction(random.randint(0, 999), 1_000))
    for k in budget.pick(quick=(20,), full=(20, 40, 80)):
        yield Randomization((Fraction(1),) + (Fraction(0),) * (k - 1), Fraction(999, 1_000))


@claim(
    "E22", "Lemma 1", on=_randomizations, given=ANY, false=Variant("It is the smallest eigenvalue, 1 - beta.", square=1)
)
def inverses_are_at_most_root_2k(randomization: Randomization, square: int | None = None) -> Comparison:
    """The smallest singular value of the matrix is at least (1 - beta) / sqrt(2 K): one over it is at most its inverse.

    The proof multiplies by the transpose, which has the same singular values. The constant can be sqrt(K).
    """
    matrix = LabelRandomization(randomization.distribution, randomization.beta).matrix
    smallest = float(np.linalg.svd(matrix, compute_uv=False)[-1])
    root = math.sqrt(square or 2 * randomization.k)
    return at_most(1 / smallest, root / float(randomization.kept), tolerance=TOLERANCE)


@claim("E22", "Lemma 2", on=_randomizations, given=ANY, false=Variant("The same with 1 for sqrt(2) K.", square=1))
def columns_sum_to_root_2_k(randomization: Randomization, square: int | None = None) -> Comparison:
    """The absolute entries of a column of the inverse sum to at most sqrt(2) K / (1 - beta); compared in squares."""
    largest = max(total(map(abs, each)) for each in randomization.columns)
    return randomization.of_an_inverse(largest, Fraction(square or 2 * randomization.k**2))


@claim("E22", "Lemma 4", on=_randomizations, given=IN_ONE)
def losses_are_bounded_by_root_2_k(randomization: Randomization) -> Comparison:
    """The modified loss is at most sqrt(2) K / (1 - beta) in absolute value; compared in squares.

    Losses lie in [0, 1], so that their corners suffice: a sum of the positive entries of a column, or of the negative
    ones. It never is more than 1 / (1 - beta).
    """
    return randomization.of_an_inverse(randomization.largest_loss, Fraction(2 * randomization.k**2))


@losses_are_bounded_by_root_2_k.false
def _(randomization: Randomization) -> Comparison:
    """The modified loss is at most (1 - beta / K) / (1 - beta), what it is where all labels are drawn alike."""
    return randomization.of_an_inverse(randomization.largest_loss, (1 - randomization.beta / randomization.k) ** 2)


@claim("E22", "Equation 1", on=_randomizations, given=IN_ONE, false=Variant("The same without 1 - beta.", kept=1))
def losses_are_bounded_by_k(randomization: Randomization, kept: int = 0) -> Comparison:
    """The modified loss is at most K / (1 - beta) in absolute value; compared in squares."""
    return randomization.of_an_inverse(randomization.largest_loss, (randomization.k * randomization.kept**kept) ** 2)


@claim(
    "E22",
    "Lemma 3: as the package has it",
    kind="ours",
    on=_randomizations,
    given=ANY,
    false=Variant("The same with lambda for beta, where lambda is 1/2.", beta=Fraction(1, 2)),
)
def package_weighs_losses(randomization: Randomization, beta: Fraction | None = None) -> Comparison:
    """The weights of a release of the package are columns of the inverse with beta (Algorithm 1, line 30)."""
    q, k = randomization.distribution, randomization.k
    # The package has no mechanism of one label, for which no loss is modified.
    mechanism = ClusterRR(max(k, 2), threshold=0, noise_scale=1, resampling=1, bias_correction=randomization.beta)
    release = ClusterRelease(np.arange(k), Groups.of_ids([0] * k), (q,), mechanism)
    stated = Randomization(q, randomization.beta if beta is None else beta)
    weights = np.array(stated.columns, dtype=float)
    apart = float(np.abs(release.loss_weights() - weights).max())
    return at_most(apart, TOLERANCE / float(randomization.kept))


class Population(Instance, sample="rows", threshold="tau", noise="exp(1/sigma)", resampling="lambda"):
    """Examples in clusters, one hypothesis, and Algorithm 1 on a sample of them with noise in whole rows."""

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
        return total(self._mass(x, y) * self.losses[x][y] for x, y in self._rows)

    def modified_risk(self, resampling: Fraction) -> Fraction:
        """The mean modified loss on noisy labels, over all samples, all noise and all draws."""
        return total(
            mass * chance * channel(v, y, q, resampling) * self.modified_loss(x, v, q) / self.sample
            for mass, rows in self._samples
            for x, y in rows
            for q, chance in self._law(rows, self.clusters[x]).items()
            for v in range(self.k)
        )

    def modified_loss(self, example: int, label: int, q: Distribution) -> Fraction:
        """Line 30 of Algorithm 1, where `q` is the noisy distribution of the example's cluster."""
        row = self.losses[example]
        mean = total(share * loss for share, loss in zip(q, row, strict=True))
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
        return total(mass * max(self._distorted(rows)) for mass, rows in self._samples)

    @property
    def _rows(self) -> list[Row]:
        return [(x, y) for x, y in product(range(len(self.weights)), range(self.k)) if self._mass(x, y)]

    def _mass(self, example: int, label: int) -> Fraction:
        return self.weights[example] * self.labels[example][label]

    @cached_property
    def _samples(self) -> list[tuple[Fraction, tuple[Row, ...]]]:
        return [(times(self._mass(*row) for row in rows), rows) for rows in product(self._rows, repeat=self.sample)]

    def _law(self, rows: tuple[Row, ...], cluster: int) -> dict[Distribution, Fraction]:
        return law_of_distributions(self._histogram(rows, cluster), self.threshold, self.noise)

    def _histogram(self, rows: tuple[Row, ...], cluster: int) -> Histogram:
        found = [y for x, y in rows if self.clusters[x] == cluster]
        return tuple(found.count(y) for y in range(self.k))

    def _distorted(self, rows: tuple[Row, ...]) -> Iterator[Fraction]:
        for cluster in {self.clusters[x] for x, _ in rows}:
            counts, law = self._histogram(rows, cluster), self._law(rows, cluster)
            apart = ((abs(q - Fraction(c, sum(counts))) for q, c in zip(each, counts, strict=True)) for each in law)
            yield total(chance * total(each) for chance, each in zip(law.values(), apart, strict=True))


def _populations(budget: Budget) -> Iterator[Population]:
    """Two examples that are sure of opposite labels, then random ones."""
    half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    two = (sure, sure[::-1])
    for clusters in ((0, 0), (0, 1)):
        for beta, share in ((half, Fraction(1, 4)), (Fraction(0), half), (Fraction(9, 10), Fraction(99, 100))):
            losses = (sure, (half, sure[0]))
            yield Population((half, half), clusters, two, losses, 2, Fraction(1, 4), Fraction(2), beta, share)
    random = seeded(4)
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


@claim("E22", "Lemma 3", on=_populations, given=NOISE, false=Variant("The same whatever beta and lambda.", alike=False))
def modified_losses_are_unbiased(population: Population, *, alike: bool = True) -> Comparison:
    """With beta = lambda the mean modified loss on noisy labels is the risk."""
    resampling = population.beta if alike else population.resampling
    return equal(population.modified_risk(resampling), population.risk)


class Noisy(Instance, threshold="tau", scale="sigma"):
    """One cluster with Laplace noise."""

    counts: Histogram
    threshold: Fraction
    scale: float


def distortion(noisy: Noisy) -> float:
    """Mean distance of noisy shares from the shares of a cluster, with continuous noise.

    Means over the midpoints of equally likely pieces of the noise, some 40,000 points.
    """
    shares, threshold = np.array(noisy.counts) / sum(noisy.counts), float(noisy.threshold)
    points = round(40_000 ** (1 / shares.size))
    levels = (np.arange(points) + 0.5) / points - 0.5
    noise: Floats = -noisy.scale / sum(noisy.counts) * np.sign(levels) * np.log1p(-2 * np.abs(levels))
    grid = np.stack(np.meshgrid(*[noise] * shares.size, indexing="ij"), axis=-1).reshape(-1, shares.size)
    clipped = np.clip(shares + grid, threshold, 1)
    return float(np.abs(renormalized(clipped, threshold) - shares).sum(axis=1).mean())


def _noisy(budget: Budget) -> Iterator[Noisy]:
    for scale in (1e-6, 1.0, 0.1, 100.0):
        for counts in ((1, 0), (1, 0, 0), (5, 5), (20, 0, 0, 0), (3, 2, 1), (100, 20, 3)):
            yield from (Noisy(counts, Fraction(part, 4 * len(counts)), scale) for part in (0, 2, 4))
    random = seeded(8)
    for _ in range(budget.pick(quick=10, full=2_000)):
        k = random.randint(2, 4)
        some = (random.randint(1, 20), *(random.randint(0, 20) for _ in range(k - 1)))
        yield Noisy(some, Fraction(random.randint(0, 9), 9 * k), 10 ** random.uniform(-2, 2))


@claim(
    "E22",
    "Lemma 5",
    on=_noisy,
    given="any cluster of at least s rows, tau from 0 to 1/K",
    false=Variant("The same with K tau: as if what rare labels gain were not taken from others.", thresholds=1),
)
def shares_are_distorted_by_threshold_and_noise(noisy: Noisy, thresholds: int = 2) -> Comparison:
    """The noisy shares of a cluster of s rows are on average within 2 K tau + 2 sqrt(2) K sigma / s of its shares."""
    k = len(noisy.counts)
    bound = thresholds * k * float(noisy.threshold) + 2 * math.sqrt(2) * k * noisy.scale / sum(noisy.counts)
    return at_most(distortion(noisy), bound, tolerance=QUADRATURE)


@claim(
    "E22", "Lemma 6", on=_populations, given=NOISE, false=Variant("Without psi, as if noise cost nothing.", noises=0)
)
def another_correction_costs_both_distances(population: Population, noises: int = 1) -> Comparison:
    """Another beta than lambda moves the mean modified loss by at most its bound times |beta - lambda| (phi + psi).

    The proof takes the mean of the modified loss as if it did not depend on the labels. It does, through the noisy
    distribution; but what depends on them is the same for all labels and cancels.
    """
    moved = abs(population.modified_risk(population.beta) - population.modified_risk(population.resampling))
    distance = population.heterogeneity + noises * population.distortion
    return at_most(moved, population.largest_loss * abs(population.beta - population.resampling) * distance)
