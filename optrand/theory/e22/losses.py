"""Label-randomization matrices `(1 - beta) I + beta q 1'`, and the loss that undoes them ([E22], Lemmas 1 to 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np
from scipy.stats import laplace

from optrand.baselines import ClusterRR, LabelRandomization
from optrand.baselines.cluster import ClusterRelease
from optrand.baselines.groups import Groups
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none
from optrand.theory.e22.noise import TOLERANCE, Distribution, Histogram, noisy_law, renormalized
from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import pushed, times, total

__all__ = ["Contest", "Examples", "Noisy", "Population", "Randomization", "channel", "contests"]

ANY = "any distribution of the cluster, any beta from 0 to below 1"
IN_ONE = f"{ANY}, losses from 0 to 1"
NOISE = "any population, loss and noise"
RESAMPLED = Variant("The same with lambda for beta, where lambda is 1/2.", beta=Fraction(1, 2))

Table = tuple[tuple[Fraction, ...], ...]


def channel(out: int, true: int, distribution: Distribution, resampling: Fraction) -> Fraction:
    """Probability of a noisy label, given the true one and the distribution of its cluster."""
    return (1 - resampling) * (out == true) + resampling * distribution[out]


class Randomization(Instance, distribution="q"):
    """A label that stays with probability `1 - beta`, or else is drawn from a distribution."""

    distribution: Distribution
    beta: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.distribution)

    @cached_property
    def laws(self) -> list[dict[int, Fraction]]:
        """Columns of the matrix, as Algorithm 1 has it: ``laws[true][out]``."""
        labels = range(self.k)
        return [{out: channel(out, true, self.distribution, self.beta) for out in labels} for true in labels]

    @cached_property
    def columns(self) -> list[list[Fraction]]:
        """Columns of ``(I - beta q 1') / (1 - beta)``; :attr:`strays` says whether it is the inverse."""
        shares, kept = self.distribution, 1 - self.beta
        return [[((y == true) - self.beta * q) / kept for y, q in enumerate(shares)] for true in range(self.k)]

    @cached_property
    def strays(self) -> int:
        """How many entries of inverse times matrix are not those of the identity, and of the package's own floats."""
        known = LabelRandomization(self.distribution, self.beta)
        matrix, inverse = (np.array(each).T for each in ([list(law.values()) for law in self.laws], self.columns))
        wrong = inverse @ matrix != np.identity(self.k)
        off = np.abs(known.inverse - inverse.astype(float)) > TOLERANCE / float(1 - self.beta)
        return int((wrong | off | (np.abs(known.matrix - matrix.astype(float)) > TOLERANCE)).sum())

    @cached_property
    def largest_loss(self) -> Fraction:
        """The largest modified loss in absolute value, of all losses from 0 to 1."""
        sides = product(self.columns, (1, -1))
        return max(total(side * w for w in each if side * w > 0) for each, side in sides)

    def of_an_inverse(self, largest: Fraction, square: Fraction) -> Comparison:
        """Compare with the root of a square over `1 - beta`, if the columns are those of the inverse."""
        return none(self.strays) if self.strays else at_most(largest**2, square / (1 - self.beta) ** 2)


def _randomizations(budget: Budget) -> Iterator[Randomization]:
    """One label, two and three with every kind of distribution, then random ones."""
    betas = [Fraction(text) for text in ("0", "1/2", "9/10", "999/1000", "1/100", "999999/1000000")]
    sure = [(Fraction(1),), (Fraction(1, 2),) * 2, (Fraction(1), Fraction(0)), (Fraction(0), Fraction(0), Fraction(1))]
    yield from (Randomization(q, beta) for q, beta in product(sure, betas))
    random = seeded(1)
    for _ in range(budget.pick(quick=80, full=3_000)):
        yield Randomization(prior(random, random.randint(2, 9)), Fraction(random.randint(0, 999), 1_000))
    for k in budget.pick(quick=(20,), full=(20, 40, 80)):
        yield Randomization((Fraction(1),) + (Fraction(0),) * (k - 1), Fraction(999, 1_000))


@claim(
    "E22 Lemma 1",
    on=_randomizations,
    given=ANY,
    sides=("inverse of the smallest singular value", "inverse of the bound"),
    false=Variant("It is 1 - beta, an eigenvalue.", square=1),
)
def inverses_are_at_most_root_2k(each: Randomization, square: int | None = None) -> Comparison:
    """The smallest singular value of the matrix is at least (1 - beta) / sqrt(2 K); compared as inverses."""
    matrix = LabelRandomization(each.distribution, each.beta).matrix
    smallest = float(np.linalg.svd(matrix, compute_uv=False)[-1])
    return at_most(1 / smallest, math.sqrt(square or 2 * each.k) / float(1 - each.beta), tolerance=TOLERANCE)


@claim(
    "E22 Lemma 2",
    on=_randomizations,
    given=ANY,
    sides=("largest sum of a column of the inverse (squared)", "bound (squared)"),
    false=Variant("The same with 1 for sqrt(2) K.", square=1),
)
def columns_sum_to_root_2_k(each: Randomization, square: int | None = None) -> Comparison:
    """The absolute entries of a column of the inverse sum to at most sqrt(2) K / (1 - beta); compared in squares."""
    largest = max(total(map(abs, column)) for column in each.columns)
    return each.of_an_inverse(largest, Fraction(square or 2 * each.k**2))


@claim("E22 Lemma 4", on=_randomizations, given=IN_ONE, sides=("largest modified loss (squared)", "bound (squared)"))
def losses_are_bounded_by_root_2_k(each: Randomization) -> Comparison:
    """The modified loss is at most sqrt(2) K / (1 - beta) in absolute value; compared in squares."""
    return each.of_an_inverse(each.largest_loss, Fraction(2 * each.k**2))


@losses_are_bounded_by_root_2_k.false
def _(each: Randomization) -> Comparison:
    """The modified loss is at most (1 - beta / K) / (1 - beta), what it is where all labels are drawn alike."""
    return each.of_an_inverse(each.largest_loss, (1 - each.beta / each.k) ** 2)


@claim(
    "E22 Equation 1",
    on=_randomizations,
    given=IN_ONE,
    sides=("largest modified loss (squared)", "bound (squared)"),
    false=Variant("The same without 1 - beta.", power=1),
)
def losses_are_bounded_by_k(each: Randomization, power: int = 0) -> Comparison:
    """The modified loss is at most K / (1 - beta) in absolute value; compared in squares."""
    return each.of_an_inverse(each.largest_loss, (each.k * (1 - each.beta) ** power) ** 2)


@claim(
    "E22 Lemma 3: as the package has it",
    kind="ours",
    on=_randomizations,
    given=ANY,
    sides=("largest distance of the weights from the inverse", "rounding that is forgiven"),
    false=RESAMPLED,
)
def package_weighs_losses(each: Randomization, beta: Fraction | None = None) -> Comparison:
    """The weights of a release of the package are columns of the inverse with beta (Algorithm 1, line 30)."""
    q, k = each.distribution, each.k
    # The package has no mechanism of one label, for which no loss is modified.
    mechanism = ClusterRR(max(k, 2), threshold=0, noise_scale=1, resampling=1, bias_correction=each.beta)
    weights = ClusterRelease(np.arange(k), Groups.of_ids([0] * k), (q,), mechanism).loss_weights()
    stated = np.array(Randomization(q, each.beta if beta is None else beta).columns, dtype=float)
    return at_most(float(np.abs(weights - stated).max()), TOLERANCE / float(1 - each.beta))


class Examples(Instance):
    """Examples in clusters, with the distributions of their labels."""

    weights: tuple[Fraction, ...]
    clusters: tuple[int, ...]
    labels: Table

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels[0])

    @cached_property
    def shares(self) -> Table:
        """Distribution of labels in the cluster of each example."""
        found = {}
        for cluster in set(self.clusters):
            inside = [w * (c == cluster) for w, c in zip(self.weights, self.clusters, strict=True)]
            columns = zip(*self.labels, strict=True)
            found[cluster] = tuple(total(map(Fraction.__mul__, inside, column)) / total(inside) for column in columns)
        return tuple(found[cluster] for cluster in self.clusters)

    @cached_property
    def heterogeneity(self) -> Fraction:
        """`phi`, by Definition 1: how far labels are distributed from those of their cluster.

        Examples
        --------
        >>> half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
        >>> [str(Examples((half, half), (0, c), (sure, sure[::-1])).heterogeneity) for c in (0, 1)]
        ['1', '0']
        """
        rows = zip(self.weights, self.labels, self.shares, strict=True)
        return total(w * abs(p - q) for w, row, shares in rows for p, q in zip(row, shares, strict=True))

    def mean(self, values: Table, counted: Table) -> Fraction:
        """Mean of values over examples, where each label counts by so much."""
        rows = zip(self.weights, values, counted, strict=True)
        return total(w * value * count for w, row, counts in rows for value, count in zip(row, counts, strict=True))


class Population(Examples, sample="rows", threshold="tau", noise="exp(1/sigma)", resampling="lambda"):
    """The losses of one hypothesis, and Algorithm 1 on a sample with noise in whole rows."""

    losses: Table
    sample: int
    threshold: Fraction
    noise: Fraction
    beta: Fraction
    resampling: Fraction

    def modified_risk(self, resampling: Fraction) -> Fraction:
        """The mean modified loss on noisy labels, over all samples, all noise and all draws."""
        return total(
            mass * channel(v, y, q, resampling) * self.modified_loss(x, v, q)
            for (x, y, q), mass in self.seen.items()
            for v in range(self.k)
        )

    def modified_loss(self, example: int, label: int, q: Distribution) -> Fraction:
        """Line 30 of Algorithm 1, where `q` is the noisy distribution of the example's cluster."""
        row = self.losses[example]
        return (row[label] - self.beta * total(map(Fraction.__mul__, q, row))) / (1 - self.beta)

    @cached_property
    def distortion(self) -> Fraction:
        """`psi`, by Definition 3: the mean distance of noisy shares in the worst cluster of a sample."""
        return total(mass * max(map(self._distorted, counts.values())) for mass, _, counts in self._samples)

    def _distorted(self, counts: Histogram) -> Fraction:
        shares, law = [Fraction(count, sum(counts)) for count in counts], noisy_law(counts, self.threshold, self.noise)
        return total(chance * abs(q - p) for each, chance in law.items() for q, p in zip(each, shares, strict=True))

    @cached_property
    def _samples(self) -> list[tuple[Fraction, tuple[tuple[int, int], ...], dict[int, Histogram]]]:
        """All samples: how likely they are, their examples and labels, and the histograms of their clusters."""
        found, pairs = [], product(range(len(self.weights)), range(self.k))
        masses = {(x, y): self.weights[x] * self.labels[x][y] for x, y in pairs if self.labels[x][y]}
        for rows in product(masses, repeat=self.sample):
            seen = {c: [y for x, y in rows if self.clusters[x] == c] for c in {self.clusters[x] for x, _ in rows}}
            counts = {c: tuple(map(labels.count, range(self.k))) for c, labels in seen.items()}
            found.append((times(masses[row] for row in rows), rows, counts))
        return found

    @cached_property
    def seen(self) -> dict[tuple[int, int, Distribution], Fraction]:
        """Law of an example of the sample, its label, and the noisy distribution of its cluster."""
        cases = (
            ((x, y, q), mass * chance / self.sample)
            for mass, rows, counts in self._samples
            for x, y in rows
            for q, chance in noisy_law(counts[self.clusters[x]], self.threshold, self.noise).items()
        )
        return pushed(cases, lambda each: each)


def _populations(budget: Budget) -> Iterator[Population]:
    """Two examples that are sure of opposite labels, then random ones."""
    half, sure = Fraction(1, 2), (Fraction(1), Fraction(0))
    cases = (half, half / 2), (Fraction(0), half), (Fraction(9, 10), Fraction(99, 100))
    for clusters, (beta, share) in product(((0, 0), (0, 1)), cases):
        losses = (sure, (half, sure[0]))
        yield Population((half, half), clusters, (sure, sure[::-1]), losses, 2, half / 2, Fraction(2), beta, share)
    random = seeded(4)
    for _ in range(budget.pick(quick=12, full=150)):
        k, examples = random.choice(((2, 1), (2, 2), (3, 1), (3, 2)))
        beta, share = (Fraction(random.randint(0, 99), 100) for _ in range(2))
        yield Population(
            weights=(Fraction(1),) if examples == 1 else ((1 + beta) / 3, (2 - beta) / 3),
            clusters=(0,) * examples if random.random() < 0.7 else tuple(range(examples)),
            labels=tuple(prior(random, k) for _ in range(examples)),
            losses=tuple(tuple(Fraction(random.randint(0, 6), 6) for _ in range(k)) for _ in range(examples)),
            sample=2 if k == 3 else random.choice((1, 2, 3)),
            threshold=Fraction(random.randint(0, 6), 6 * k),
            noise=1 + Fraction(random.randint(1, 200), 100),
            beta=beta,
            resampling=share,
        )


@claim(
    "E22 Lemma 3",
    on=_populations,
    given=NOISE,
    sides=("mean modified loss on noisy labels", "risk"),
    false=Variant("The same whatever beta and lambda.", alike=False),
)
def modified_losses_are_unbiased(population: Population, *, alike: bool = True) -> Comparison:
    """With beta = lambda the mean modified loss on noisy labels is the risk."""
    resampling = population.beta if alike else population.resampling
    return equal(population.modified_risk(resampling), population.mean(population.losses, population.labels))


class Noisy(Instance, threshold="tau", scale="sigma"):
    """One cluster with continuous Laplace noise."""

    counts: Histogram
    threshold: Fraction
    scale: float

    @cached_property
    def distortion(self) -> float:
        """Mean distance of noisy shares from the shares, over some 40,000 midpoints of equally likely noise."""
        n, k, threshold = sum(self.counts), len(self.counts), float(self.threshold)
        points, shares = round(40_000 ** (1 / k)), np.array(self.counts) / n
        noise = laplace.ppf((np.arange(points) + 0.5) / points, scale=self.scale / n)
        grid = np.stack(np.meshgrid(*[noise] * k, indexing="ij"), axis=-1).reshape(-1, k)
        noisy = renormalized(np.clip(shares + grid, threshold, 1), threshold)
        return float(np.abs(noisy - shares).sum(axis=1).mean())


def _noisy(budget: Budget) -> Iterator[Noisy]:
    counts = (1, 0), (1, 0, 0), (5, 5), (20, 0, 0, 0), (3, 2, 1), (100, 20, 3)
    for scale, some, part in product((1e-6, 1.0, 0.1, 100.0), counts, (0, 2, 4)):
        yield Noisy(some, Fraction(part, 4 * len(some)), scale)
    random = seeded(8)
    for _ in range(budget.pick(quick=10, full=2_000)):
        k = random.randint(2, 4)
        some = (random.randint(1, 20), *(random.randint(0, 20) for _ in range(k - 1)))
        yield Noisy(some, Fraction(random.randint(0, 9), 9 * k), 10 ** random.uniform(-2, 2))


@claim(
    "E22 Lemma 5",
    on=_noisy,
    given="any cluster, tau from 0 to 1/K",
    sides=("mean distance of noisy shares from the shares", "bound"),
    false=Variant("With K tau.", thresholds=1),
)
def shares_are_distorted_by_threshold_and_noise(noisy: Noisy, thresholds: int = 2) -> Comparison:
    """The noisy shares of a cluster of s rows are on average within 2 K tau + 2 sqrt(2) K sigma / s of its shares."""
    k = len(noisy.counts)
    bound = thresholds * k * float(noisy.threshold) + 2 * math.sqrt(2) * k * noisy.scale / sum(noisy.counts)
    return at_most(noisy.distortion, bound, tolerance=0.02)


@claim(
    "E22 Lemma 6",
    on=_populations,
    given=NOISE,
    sides=("change of the mean modified loss", "bound"),
    false=Variant("Without psi.", noises=0),
)
def another_correction_costs_both_distances(population: Population, noises: int = 1) -> Comparison:
    """Another beta than lambda moves the mean modified loss by at most its bound times |beta - lambda| (phi + psi)."""
    moved = abs(population.modified_risk(population.beta) - population.modified_risk(population.resampling))
    losses = (population.modified_loss(x, v, q) for x, _, q in population.seen for v in range(population.k))
    distance = population.heterogeneity + noises * population.distortion
    return at_most(moved, max(map(abs, losses)) * abs(population.beta - population.resampling) * distance)


class Contest(Examples, weights="examples of weight", clusters="in clusters"):
    """The losses of two hypotheses: the one is chosen that is better by what is seen of the labels."""

    losses: tuple[Table, Table]

    def excess(self, seen: Table) -> Fraction:
        """Excess risk of the hypothesis that looks better where labels count as `seen`; of two alike, of the worse."""
        risks, looks = ([self.mean(losses, counted) for losses in self.losses] for counted in (self.labels, seen))
        return max(risk for risk, look in zip(risks, looks, strict=True) if look == min(looks)) - min(risks)


def contests(count: int, *, labels: int, seed: int) -> Iterator[Contest]:
    """Two examples whose cluster misleads, hardly and by far, then `count` random ones of up to four examples."""
    one, zero, half = Fraction(1), Fraction(0), Fraction(1, 2)
    right = ((zero, one), (one, zero))
    for wrong in (((one, one), (zero, zero)), ((one, half), (zero, zero))):
        yield Contest((half, half), (0, 0), right[::-1], (right, wrong))
    random = seeded(seed)
    for _ in range(count):
        size, k = random.randint(1, 4), random.randint(2, labels)
        weights = shares([random.randint(1, 9) for _ in range(size)])
        losses = [[[Fraction(random.randint(0, 4), 4) for _ in range(k)] for _ in range(size)] for _ in range(2)]
        first, second = (tuple(map(tuple, table)) for table in losses)
        clusters = tuple(random.randint(0, 1) for _ in range(size))
        yield Contest(weights, clusters, tuple(prior(random, k) for _ in range(size)), (first, second))
