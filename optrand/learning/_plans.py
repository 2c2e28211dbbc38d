"""Plans: the rows, the randomizers and the order of releases, and the charge of a row.

These are the plans of classes in [G21], [Z25] and [MEMP21]. ``docs/learning.md`` has tables of all plans and of the
charges of a row, which is in one stage, one group and one cluster. Shares are rounded so that the exact sum of the two
floats is at most epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from optrand.base._validation import Floats, check_integer, check_real, expect
from optrand.baselines._groups import Groups
from optrand.baselines._vector import Alibi as LaplaceAlibi
from optrand.baselines._vector import LatticeAlibi, UnaryBits
from optrand.closed_forms._response import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning._likelihoods import LabelRelease, Rows
from optrand.learning._targets import BitModel
from optrand.learning._training import Training
from optrand.sampling._priors import split_at

Ids = int | Callable[[Any], Any]
"""Number of clusters by k-means of the features, or a function of the features that returns an id per row."""


class Plan:
    """Base of all plans, by which an estimator obtains its releases."""

    for_numbers: ClassVar[bool] = False  # for LabelDPRegressor, rather than for LabelDPClassifier
    vectors: ClassVar[bool] = False  # releases noisy vectors, rather than noisy labels
    trains: ClassVar[bool] = True  # trains the estimator
    penalises_bias: ClassVar[bool] = False  # by default, for a regressor

    @property
    def informed(self) -> bool:
        """Whether its models begin with priors of clusters, which the likelihood of labels does not contain."""
        return False

    def check(self, rows: int, k: int) -> None:
        """Refuse sizes that the plan cannot handle, before anything is drawn."""

    def penalty(self, rows: int) -> float:
        """Return the default bias penalty: rows per parameter, if a model has as many as the root of its rows."""
        return math.sqrt(rows) if self.penalises_bias else math.inf

    def train(self, training: Training) -> Any:
        """Release labels, and return a model of them."""
        raise NotImplementedError


class InClusters(Plan):
    """Plan with the fields `clusters` and `smallest`."""

    clusters: Ids
    smallest: int

    def _check_clusters(self) -> None:
        check_integer(self.smallest, "smallest", 1)
        if callable(self.clusters):
            return
        if not isinstance(self.clusters, int | np.integer):
            raise InvalidInput(
                f"clusters is of type {type(self.clusters).__name__}, expected their number, or a function that "
                "returns an id for each row of features"
            )
        check_integer(self.clusters, "clusters", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than one cluster needs."""
        if rows < self.smallest:
            raise InvalidInput(
                f"{rows} rows are fewer than smallest={self.smallest}, which a histogram needs: lower it"
            )

    def ids(self, training: Training, rows: Rows) -> Groups:
        """Return the public clusters of some rows."""
        features = training.features(rows)
        if not callable(self.clusters):
            return Groups.by_k_means(features, self.clusters, seed=training.seed)
        groups = Groups.of_ids(self.clusters(features))
        if groups.n != rows.size:
            raise InvalidInput(f"clusters returned {groups.n} ids for {rows.size} rows, expected one per row")
        return groups

    def groups(self, training: Training, rows: Rows) -> Groups:
        """Return the public clusters of some rows, small ones pooled."""
        return pool_small_groups(self.ids(training, rows), self.smallest)


def pool_small_groups(groups: Groups, smallest: int) -> Groups:
    """Pool groups of fewer than `smallest` rows, with the next larger one if that is not enough."""
    order = np.argsort(groups.sizes, kind="stable")
    together = np.cumsum(groups.sizes[order])
    small = int((groups.sizes < smallest).sum())
    if small == 0:
        return groups
    # All small groups, and further ones until the pool is large enough.
    last = max(small, int(np.searchsorted(together, smallest)) + 1)
    names = np.arange(len(groups))
    names[order[:last]] = order[0]
    left = np.array(list(dict.fromkeys(names.tolist())))
    places = np.empty(len(groups), dtype=np.intp)
    places[left] = np.arange(left.size)
    return Groups(places[names[groups.index]], left)


def members_of(groups: Groups, rows: Rows) -> list[Rows]:
    return [rows[groups.index == group] for group in range(len(groups))]


def check_share(share: object, name: str = "share", of: str = "epsilon") -> None:
    if share is not None and not 0 < check_real(share, name) < 1:
        raise InvalidInput(f"{name} is {share}, expected a share of {of} between 0 and 1")


@dataclass(frozen=True)
class DomainPrior(InClusters):
    """A private prior for each public cluster of rows ([G21], Algorithm 4), and its RRWithPrior for every label.

    Parameters
    ----------
    clusters : int or callable
        Number of clusters by k-means of the features, or a function of the features that returns an id per row.
    share : float
        Share of epsilon for the priors, above 0 and below 1.
    smallest : int
        Number of rows below which clusters are pooled. Sizes are public.
    least : int
        Least number of labels that a randomizer keeps, 1 or 2. With 1, as in [G21], a row whose prior is certain
        always releases the prior's label, whatever its own.

    Notes
    -----
    A row pays ``share * epsilon`` for the histogram of its cluster and the rest of epsilon for its label. The
    likelihood begins with the priors, which are paid for.
    """

    informed = True

    clusters: Ids = 16
    share: float = 0.05
    smallest: int = 50
    least: int = 2

    def __post_init__(self) -> None:
        check_share(self.share)
        self._check_clusters()
        check_integer(self.least, "least", 1, 2)

    def priors(self, training: Training, rows: Rows) -> tuple[Floats, float]:
        """Release a prior of each cluster. Return that of each row, shape ``(m, K)``, and the rest of epsilon."""
        split = split_at(training.epsilon, self.share * training.epsilon)
        groups = self.groups(training, rows)
        table = np.empty((rows.size, training.k))
        for group, members in enumerate(members_of(groups, rows)):
            table[groups.index == group] = training.prior(members, split.prior).probabilities
        return table, split.labels

    def train(self, training: Training) -> Any:
        return Stages(domain_prior=self).train(training)


@dataclass(frozen=True)
class Stages(Plan):
    """Multi-stage training, LP-MST: a row's randomizer has the earlier stages' model as prior ([G21], Algorithm 3).

    Parameters
    ----------
    n : int
        Number of stages: 1, 2 or 3 are LP-1ST, LP-2ST and LP-3ST.
    split : tuple of float, optional
        Shares of the rows of each stage, which sum to 1, by default 60 : 40, and 40 : 30 : 30.
    temperature : float
        Exponent ``1 / temperature`` of beliefs. The likelihood needs none. [G21] sharpens, with less than 1, beliefs
        that cross entropy on noisy labels has blurred.
    least : int
        Least number of labels that a randomizer keeps, 1 or 2. With 1 an overconfident model wastes rows. The first
        stage has that of its `domain_prior`, if there is one.
    reuse : bool
        Whether later stages train on the releases of earlier ones.
    top_k_filter : bool
        Whether to leave out reused rows whose noisy label is not among the model's likeliest, as [G21] does.
    domain_prior : DomainPrior, optional
        Prior of the first stage, instead of the uniform one.

    Notes
    -----
    Each row is in one stage and pays epsilon there. With a `domain_prior` a row of the first stage pays both parts of
    it. The split is random, by the classifier's `random_state`.

    Examples
    --------
    >>> [part.size for part in Stages(2).parts(10, np.random.default_rng(0))]
    [6, 4]
    """

    n: int = 1
    split: tuple[float, ...] | None = None
    temperature: float = 1.0
    least: int = 2
    reuse: bool = True
    top_k_filter: bool = False
    domain_prior: DomainPrior | None = None

    def __post_init__(self) -> None:
        check_integer(self.n, "the number of stages", 1)
        check_integer(self.least, "least", 1, 2)
        if check_real(self.temperature, "temperature") <= 0:
            raise InvalidInput(f"temperature is {self.temperature:g}, expected a number above 0")
        expected = f"{self.n} numbers above 0 that sum to 1, one for each stage"
        if self.split is not None:
            expect(self.split, (tuple, list), "split", expected)
        shares = [check_real(share, "a share of split") for share in self.shares]
        if len(shares) != self.n or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
            raise InvalidInput(f"split is {self.split}, expected {expected}")

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the rows of each stage."""
        default = {2: (0.6, 0.4), 3: (0.4, 0.3, 0.3)}.get(self.n, (1 / self.n,) * self.n)
        return tuple(self.split or default)

    @property
    def informed(self) -> bool:
        """Whether the first stage has a domain prior."""
        return self.domain_prior is not None

    def parts(self, rows: int, generator: np.random.Generator) -> list[Rows]:
        """Split rows into stages at random."""
        ends = np.rint(np.cumsum((0.0, *self.shares)) * rows).astype(np.intp)
        order = generator.permutation(rows)
        return [order[low:high] for low, high in itertools.pairwise(ends)]

    def check(self, rows: int, k: int) -> None:
        """Refuse a split that leaves a stage without rows."""
        for stage, part in enumerate(self.parts(rows, np.random.default_rng(0)), 1):
            if not part.size:
                raise InvalidInput(f"stage {stage} of {self.n} would have none of the {rows} rows: use fewer stages")
        if self.domain_prior is not None:
            self.domain_prior.check(int(self.shares[0] * rows), k)

    def train(self, training: Training) -> Any:
        model: Any = None
        held: list[LabelRelease] = []
        for rows in self.parts(training.rows, training.generator):
            # Priors come from the model of the stage before, from clusters, which are paid for, or are uniform.
            budget, least, beliefs = training.epsilon, self.least, None
            if model is not None:
                priors = temper(training.beliefs(model, rows), self.temperature)
            elif self.domain_prior is not None:
                beliefs, budget = self.domain_prior.priors(training, rows)
                priors, least = beliefs, self.domain_prior.least
            else:
                priors = np.full((rows.size, training.k), 1 / training.k)
            randomizer = RRWithPriorBatch(keep_two_labels(priors, budget) if least == 2 else priors, budget)
            release = training.release(rows, randomizer)
            old = held if self.reuse else []
            if self.top_k_filter and model is not None:
                # As many labels as the new randomizers keep.
                top = max(1, round(float(randomizer.k_star.mean())))
                old = [select_likeliest(one, training.beliefs(model, one.rows), top) for one in old]
            model = training.learn([*(one for one in old if len(one)), release], before=model, beliefs=beliefs)
            held.append(release)
        return model


def temper(beliefs: Floats, temperature: float) -> Floats:
    """Raise beliefs to the power ``1 / temperature``, and normalise each row."""
    powers = (beliefs / beliefs.max(axis=1, keepdims=True)) ** (1 / temperature)
    rows: Floats = powers / powers.sum(axis=1, keepdims=True)
    rows[rows < np.finfo(np.float64).tiny] = 0.0
    return rows


def keep_two_labels(priors: Floats, epsilon: float) -> Floats:
    """Raise the second-largest prior just above the threshold ``exp(-epsilon)`` at which RRWithPrior keeps a label."""
    lone = np.flatnonzero(RRWithPriorBatch(priors, epsilon).k_star == 1)
    lifted = np.array(priors)
    first, second = np.argsort(-priors[lone], axis=1, kind="stable")[:, :2].T
    # A billionth above the threshold, at which keeping one label or two is equally good.
    lifted[lone, second] = lifted[lone, first] * np.exp(-epsilon) * (1 + 1e-9)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


def select_likeliest(release: LabelRelease, beliefs: Floats, top: int) -> LabelRelease:
    """Leave out rows of a release by RRWithPrior whose noisy label is not among the `top` likeliest."""
    likeliest = np.argsort(-beliefs, axis=1, kind="stable")[:, :top]
    kept = (likeliest == release.values[:, np.newaxis]).any(axis=1)
    batch = release.randomizer
    randomizer = RRWithPriorBatch(batch.priors[kept], batch.epsilon) if kept.any() else batch
    return replace(release, rows=release.rows[kept], values=release.values[kept], randomizer=randomizer)


@dataclass(frozen=True)
class Bits(Plan):
    """Random bits of the one-hot vector of every label ([Z25])."""

    vectors: ClassVar[bool] = True

    def train(self, training: Training) -> Any:
        return training.learn([training.release(np.arange(training.rows), UnaryBits(training.k, training.epsilon))])


@dataclass(frozen=True)
class Alibi(Plan):
    """One-hot vectors with Laplace noise ([MEMP21]), by default exact on a lattice.

    Parameters
    ----------
    steps : int or None
        Steps of the lattice between 0 and 1. None draws in floats, which the labels must allow (`allow_inexact`).
    """

    vectors: ClassVar[bool] = True

    steps: int | None = 16

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_integer(self.steps, "steps", 1, 256)

    def train(self, training: Training) -> Any:
        k, epsilon = training.k, training.epsilon
        noise = LaplaceAlibi(k, epsilon) if self.steps is None else LatticeAlibi(k, epsilon, self.steps)
        return training.learn([training.release(np.arange(training.rows), noise)])


@dataclass(frozen=True)
class NearestNeighbour(Bits):
    """The nearest-neighbour learner of [Z25], which predicts the class with the largest mean bit of the nearest rows.

    Parameters
    ----------
    neighbours : int
        Number of neighbours, 200 in the paper. No estimator is trained.
    """

    trains: ClassVar[bool] = False

    neighbours: int = 200

    def __post_init__(self) -> None:
        check_integer(self.neighbours, "neighbours", 1)

    def check(self, rows: int, k: int) -> None:  # noqa: ARG002
        """Refuse fewer rows than neighbours."""
        if rows < self.neighbours:
            raise InvalidInput(f"{rows} rows have no {self.neighbours} neighbours: use fewer")

    def train(self, training: Training) -> BitModel:
        """Release the bits of all rows. Features that have no neighbours are refused before the draw."""
        index = NearestNeighbors(n_neighbors=self.neighbours).fit(training.X)
        release = training.release(np.arange(training.rows), UnaryBits(training.k, training.epsilon))
        return BitModel(partial(_mean_bits, index, release.values.astype(np.float64)), release.randomizer)


def _mean_bits(index: NearestNeighbors, bits: Floats, X: Any) -> Floats:
    return np.asarray(bits[index.kneighbors(X, return_distance=False)].mean(axis=1))
