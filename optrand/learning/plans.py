"""Plans: which rows are asked, by which randomizer, in which order, and what a row pays for it.

====================================  ==================================================  =========================
plan                                  of                                                  a row pays
====================================  ==================================================  =========================
:class:`Stages`                       LP-1ST, LP-2ST, LP-3ST ([G21], Algorithm 3)         epsilon, in its own stage
:class:`DomainPrior`                  [G21], Algorithm 4                                  share + rest = epsilon
:class:`Bits`                         [Z25], Section 4                                    epsilon
:class:`NearestNeighbour`             [Z25], Appendix C                                   epsilon
:class:`Alibi`                        [MEMP21], on a lattice                              epsilon
:class:`Clusters`                     [E22], Algorithm 1                                  share + rest = epsilon
====================================  ==================================================  =========================

Shares are rounded so that the exact sum of the two floats is at most epsilon.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats, integer, real
from optrand.baselines.cluster import ClusterRR
from optrand.baselines.groups import Groups
from optrand.baselines.lattice_alibi import LatticeAlibi
from optrand.baselines.vector import Alibi as LaplaceAlibi
from optrand.baselines.vector import UnaryBits
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning.release import LabelRelease, Rows
from optrand.sampling.priors import BudgetSplit, split_at

if TYPE_CHECKING:
    from optrand.learning.training import Training

__all__ = ["Alibi", "Bits", "Clusters", "DomainPrior", "NearestNeighbour", "Plan", "Stages"]

SPLITS = {1: (1.0,), 2: (0.6, 0.4), 3: (0.4, 0.3, 0.3)}
"""Shares of rows of each stage, where none are given."""

ABOVE = 1 + 1e-9
"""Factor by which a second label is lifted over the bar of what RRWithPrior keeps."""


class Plan(Protocol):
    """How a classifier comes by its releases."""

    vectors: ClassVar[bool]
    """Whether it releases noisy vectors, rather than noisy labels."""

    trains: ClassVar[bool]
    """Whether it trains the estimator."""

    def check(self, rows: int, k: int) -> None:
        """Refuse sizes that it cannot work with, before anything is drawn."""
        ...

    def train(self, training: Training) -> Any:
        """Release labels, and return a model of them."""
        ...


@dataclass(frozen=True)
class DomainPrior:
    """A private prior for each public cluster of rows, and its optimal randomizer for every label.

    Parameters
    ----------
    clusters : int or callable
        Clusters by k-means of the features; or a function of the features that gives each row an id.
    share : float
        Of epsilon for the priors, above 0 and below 1.
    smallest : int
        Rows below which clusters are pooled, a choice by public sizes.

    Examples
    --------
    >>> DomainPrior(50, share=0.1)
    DomainPrior(clusters=50, share=0.1, smallest=50)
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    clusters: int | Callable[[Any], Any] = 16
    share: float = 0.05
    smallest: int = 50

    def __post_init__(self) -> None:
        """Check all three."""
        _checked_share(self.share)
        integer(self.smallest, "smallest", 1)
        if not callable(self.clusters):
            integer(self.clusters, "clusters", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than one cluster needs."""
        if rows < self.smallest:
            raise InvalidInput(f"{rows} rows are fewer than smallest={self.smallest}, which a histogram needs")

    def priors(self, training: Training, rows: Rows) -> tuple[Floats, float]:
        """A prior for each of some rows, shape ``(m, K)``, paid for, and what is left of epsilon."""
        split = split_at(training.epsilon, self.share * training.epsilon)
        groups = pooled(clustered(training, rows, self.clusters), self.smallest)
        table = np.empty((rows.size, training.k))
        for group in range(len(groups)):
            members = np.flatnonzero(groups.index == group)
            table[members] = training.prior(rows[members], split.prior).probabilities
        return table, split.labels

    def train(self, training: Training) -> Any:
        """One stage, with the priors of the clusters."""
        rows = np.arange(training.rows)
        priors, budget = self.priors(training, rows)
        return training.learn([training.release(rows, RRWithPriorBatch(priors, budget))])


@dataclass(frozen=True)
class Stages:
    """Training in stages: the model of the stages before is the prior of a row's randomizer ([G21], Algorithm 3).

    Parameters
    ----------
    n : int
        Stages: 1, 2 or 3 are LP-1ST, LP-2ST and LP-3ST.
    split : tuple of float, optional
        Shares of the rows of each stage, which sum to 1; by default 60 : 40, and 40 : 30 : 30.
    temperature : float
        Of the softmax of beliefs, ``p**(1 / temperature)``. The likelihood needs none; [G21] sharpens, with less than
        1, what cross entropy on noisy labels has blurred.
    least : int
        Labels that a randomizer keeps at least, 1 or 2: with 1 an overconfident model wastes rows.
    reuse : bool
        Whether later stages train on the releases of earlier ones.
    top_k_filter : bool
        [G21]: of these leave out rows whose noisy label is not among the model's likeliest.
    domain_prior : DomainPrior, optional
        Of the first stage, instead of the uniform prior.

    Notes
    -----
    Each row is in one stage and pays epsilon there; with a `domain_prior` a row of the first stage pays both parts of
    it. The split is at random, by the classifier's `random_state`, and looks at no label.

    Examples
    --------
    >>> [part.size for part in Stages(2).parts(10, np.random.default_rng(0))]
    [6, 4]
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    n: int = 1
    split: tuple[float, ...] | None = None
    temperature: float = 1.0
    least: int = 2
    reuse: bool = True
    top_k_filter: bool = False
    domain_prior: DomainPrior | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without rows."""
        integer(self.n, "the number of stages", 1)
        integer(self.least, "least", 1, 2)
        if real(self.temperature, "temperature") <= 0:
            raise InvalidInput(f"temperature is {self.temperature:g}, expected a number above 0")
        shares = self.shares
        if len(shares) != self.n or not all(share > 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
            raise InvalidInput(f"split has {len(shares)} shares, expected {self.n} numbers above 0 that sum to 1")

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the rows of each stage."""
        return tuple(self.split or SPLITS.get(self.n, (1 / self.n,) * self.n))

    def parts(self, rows: int, generator: np.random.Generator) -> list[Rows]:
        """Rows of each stage, at random."""
        ends = np.rint(np.cumsum((0.0, *self.shares)) * rows).astype(np.intp)
        order = generator.permutation(rows)
        return [order[low:high] for low, high in itertools.pairwise(ends)]

    def check(self, rows: int, k: int) -> None:
        """Refuse a split that leaves a stage without rows."""
        empty = [stage + 1 for stage, part in enumerate(self.parts(rows, np.random.default_rng(0))) if not part.size]
        if empty:
            raise InvalidInput(f"stage {empty[0]} of {self.n} would have none of the {rows} rows: take fewer stages")
        if self.domain_prior is not None:
            self.domain_prior.check(int(self.shares[0] * rows), k)

    def train(self, training: Training) -> Any:
        """All stages."""
        model: Any = None
        held: list[LabelRelease] = []
        for rows in self.parts(training.rows, training.generator):
            priors, budget = self._priors(training, rows, model)
            randomizer = RRWithPriorBatch(priors, budget)
            release = training.release(rows, randomizer)
            old = [self._filtered(training, one, model, randomizer) for one in held] if self.reuse else []
            model = training.learn([*(one for one in old if len(one)), release], before=model)
            held.append(release)
        return model

    def _priors(self, training: Training, rows: Rows, model: Any) -> tuple[Floats, float]:
        if model is None and self.domain_prior is not None:
            priors, budget = self.domain_prior.priors(training, rows)
        elif model is None:
            priors, budget = np.full((rows.size, training.k), 1 / training.k), training.epsilon
        else:
            priors, budget = tempered(training.beliefs(model, rows), self.temperature), training.epsilon
        return (at_least_two(priors, budget) if self.least == 2 else priors), budget

    def _filtered(
        self, training: Training, release: LabelRelease, model: Any, randomizer: RRWithPriorBatch
    ) -> LabelRelease:
        if not self.top_k_filter:
            return release
        top = max(1, round(float(randomizer.k_star.mean())))
        beliefs = training.beliefs(model, release.rows)
        likeliest = np.argsort(-beliefs, axis=1, kind="stable")[:, :top]
        return selected(release, (likeliest == release.values[:, np.newaxis]).any(axis=1))


@dataclass(frozen=True)
class Bits:
    """Random bits of the one-hot vector of every label ([Z25])."""

    vectors: ClassVar[bool] = True
    trains: ClassVar[bool] = True

    def check(self, rows: int, k: int) -> None:
        """Any sizes will do."""

    def train(self, training: Training) -> Any:
        """One release of all rows."""
        return training.learn([training.release(np.arange(training.rows), UnaryBits(training.k, training.epsilon))])


@dataclass(frozen=True)
class NearestNeighbour:
    """The nearest-neighbour learner of [Z25]: the bits of the nearest rows on average, and the largest wins.

    Parameters
    ----------
    neighbours : int
        How many; 200 in the paper. No estimator is trained.
    """

    vectors: ClassVar[bool] = True
    trains: ClassVar[bool] = False

    neighbours: int = 200

    def __post_init__(self) -> None:
        """Check the number."""
        integer(self.neighbours, "neighbours", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than neighbours."""
        if rows < self.neighbours:
            raise InvalidInput(f"{rows} rows have no {self.neighbours} neighbours: ask for fewer")

    def train(self, training: Training) -> Any:
        """One release of all rows."""
        randomizer = UnaryBits(training.k, training.epsilon)
        release = training.release(np.arange(training.rows), randomizer)
        return training.neighbours(release, randomizer, self.neighbours)


@dataclass(frozen=True)
class Alibi:
    """One-hot vectors with Laplace noise ([MEMP21]), by default exact on a lattice.

    Parameters
    ----------
    steps : int or None
        Steps of the lattice between 0 and 1. None draws in floats, which the labels must allow (`allow_inexact`).
    """

    vectors: ClassVar[bool] = True
    trains: ClassVar[bool] = True

    steps: int | None = 16

    def __post_init__(self) -> None:
        """Check the steps."""
        if self.steps is not None:
            integer(self.steps, "steps", 1, 256)

    def check(self, rows: int, k: int) -> None:
        """Any sizes will do."""

    def train(self, training: Training) -> Any:
        """One release of all rows."""
        k, epsilon = training.k, training.epsilon
        randomizer = LaplaceAlibi(k, epsilon) if self.steps is None else LatticeAlibi(k, epsilon, self.steps)
        return training.learn([training.release(np.arange(training.rows), randomizer)])


@dataclass(frozen=True)
class Clusters:
    """The cluster mechanism of [E22]: labels replaced, with some probability, from the noisy shares of their cluster.

    Parameters
    ----------
    clusters : int or callable
        As in :class:`DomainPrior`.
    heterogeneity : float
        The paper's phi, above 0: the threshold of noisy shares is the smaller of it and ``1 / K``.
    share : float
        Of epsilon for the shares of labels.
    smallest : int
        As in :class:`DomainPrior`.

    Notes
    -----
    With ``target="debiased"`` it is [E22], Algorithm 1, with all bias removed (line 30). The account has the true cost,
    twice the printed one for the shares: see :class:`~optrand.baselines.ClusterRR`.
    """

    vectors: ClassVar[bool] = False
    trains: ClassVar[bool] = True

    clusters: int | Callable[[Any], Any] = 16
    heterogeneity: float = 0.05
    share: float = 0.1
    smallest: int = 50

    def __post_init__(self) -> None:
        """Check all four."""
        DomainPrior(self.clusters, self.share, self.smallest)
        if real(self.heterogeneity, "heterogeneity") <= 0:
            raise InvalidInput(f"heterogeneity is {self.heterogeneity:g}, expected a distance above 0")

    def check(self, rows: int, k: int) -> None:
        """Refuse fewer rows than one cluster needs."""
        DomainPrior(self.clusters, self.share, self.smallest).check(rows, k)

    def train(self, training: Training) -> Any:
        """One release of all rows."""
        rows = np.arange(training.rows)
        groups = pooled(clustered(training, rows, self.clusters), self.smallest)
        split = self._split(training.epsilon, training.k)
        randomizer = ClusterRR.for_budget(training.k, split, threshold=min(self.heterogeneity, 1 / training.k))
        return training.learn([training.release(rows, randomizer, groups=groups)])

    def _split(self, epsilon: float, k: int) -> BudgetSplit:
        """Split whose mechanism, as it is rounded, costs at most epsilon."""
        split = split_at(epsilon, self.share * epsilon)
        while ClusterRR.for_budget(k, split, threshold=min(self.heterogeneity, 1 / k)).epsilon > epsilon:
            split = BudgetSplit(split.prior, float(np.nextafter(split.labels, 0.0)))
        return split


def clustered(training: Training, rows: Rows, clusters: int | Callable[[Any], Any]) -> Groups:
    """Public clusters of some rows."""
    features = training.features(rows)
    if callable(clusters):
        return Groups.of_ids(clusters(features))
    return Groups.by_k_means(features, clusters, seed=training.seed)


def pooled(groups: Groups, smallest: int) -> Groups:
    """Groups of at least `smallest` rows: smaller ones are pooled, with the next larger if that is not enough.

    Examples
    --------
    >>> pooled(Groups.of_ids([0] * 5 + [1, 2] + [3] * 4), 3).sizes.tolist()
    [5, 6]
    """
    order = np.argsort(groups.sizes, kind="stable")
    together = np.cumsum(groups.sizes[order])
    small = int((groups.sizes < smallest).sum())
    if small == 0:
        return groups
    last = max(small, int(np.searchsorted(together, smallest)) + 1)
    names = np.arange(len(groups))
    names[order[:last]] = order[0]
    return Groups.of_ids(names[groups.index], names=[int(one) for one in dict.fromkeys(names.tolist())])


def tempered(beliefs: Floats, temperature: float) -> Floats:
    """Beliefs to the power ``1 / temperature``, each row a distribution."""
    powers = (beliefs / beliefs.max(axis=1, keepdims=True)) ** (1 / temperature)
    powers[powers < np.finfo(np.float64).tiny] = 0.0
    rows: Floats = powers / powers.sum(axis=1, keepdims=True)
    rows[rows < np.finfo(np.float64).tiny] = 0.0
    return rows


def at_least_two(priors: Floats, epsilon: float) -> Floats:
    """Priors of which RRWithPrior keeps two labels or more: the second is lifted where it would be dropped.

    A label is kept second if its prior is above ``exp(-epsilon)`` times the largest.

    Examples
    --------
    >>> at_least_two(np.array([[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]]), 1.0).round(3).tolist()
    [[0.731, 0.269, 0.0], [0.5, 0.3, 0.2]]
    """
    lone = np.flatnonzero(RRWithPriorBatch(priors, epsilon).k_star == 1)
    lifted = np.array(priors)
    first, second = np.argsort(-priors[lone], axis=1, kind="stable")[:, :2].T
    lifted[lone, second] = lifted[lone, first] * np.exp(-epsilon) * ABOVE
    rows: Floats = lifted / lifted.sum(axis=1, keepdims=True)
    return rows


def selected(release: LabelRelease, kept: NDArray[np.bool_]) -> LabelRelease:
    """Rows of a release by RRWithPrior, chosen by what is public."""
    batch = release.randomizer
    randomizer = RRWithPriorBatch(batch.priors[kept], batch.epsilon) if kept.any() else batch
    return LabelRelease(release.rows[kept], release.values[kept], randomizer, release.domain, release.spent)


def _checked_share(share: object) -> None:
    if not 0 < real(share, "share") < 1:
        raise InvalidInput(f"share is {share}, expected a part of epsilon between 0 and 1")
