"""Plans: which rows are asked, by which randomizer, in which order, and what a row pays for it.

=========================  =================================  ======================================================
plan                       of                                 a row pays
=========================  =================================  ======================================================
:class:`Stages`            [G21], Algorithm 3                 epsilon in its stage + 0 in the others
:class:`DomainPrior`       [G21], Algorithm 4                 ``share * epsilon`` (histogram) + the rest (label)
:class:`Bits`              [Z25], Section 4                   epsilon
:class:`NearestNeighbour`  [Z25], Appendix C                  epsilon
:class:`Alibi`             [MEMP21], on a lattice             epsilon
:class:`Clusters`          [E22], Algorithm 1                 ``share * epsilon`` (shares) + the rest (label)
:class:`Peers`             [E22], Algorithm 2                 epsilon (flip), whether or not its label is sent
=========================  =================================  ======================================================

A row of the pilot of :class:`Clusters` pays epsilon there, and nothing else. A first stage with a domain prior pays as
:class:`DomainPrior` does.

Shares are rounded so that the exact sum of the two floats is at most epsilon.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from optrand.base.validation import Floats, integer, real
from optrand.baselines.vector import Alibi as LaplaceAlibi
from optrand.baselines.vector import LatticeAlibi, UnaryBits
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning.beliefs import at_least_two, selected, tempered
from optrand.learning.cluster_plans import Clusters, DomainPrior, Peers, clustered, pooled
from optrand.learning.release import LabelRelease, Rows

if TYPE_CHECKING:
    from optrand.learning.training import Training

__all__ = [
    "Alibi",
    "Bits",
    "Clusters",
    "DomainPrior",
    "NearestNeighbour",
    "Peers",
    "Plan",
    "Stages",
    "clustered",
    "pooled",
]

SPLITS = {1: (1.0,), 2: (0.6, 0.4), 3: (0.4, 0.3, 0.3)}
"""Shares of rows of each stage, where none are given."""


class Plan(Protocol):
    """How a classifier comes by its releases."""

    vectors: ClassVar[bool]
    """Whether it releases noisy vectors, rather than noisy labels."""

    trains: ClassVar[bool]
    """Whether it trains the estimator."""

    @property
    def informed(self) -> bool:
        """Whether its models begin with priors of clusters, which the likelihood of labels does not know."""
        ...

    def check(self, rows: int, k: int) -> None:
        """Refuse sizes that it cannot work with, before anything is drawn."""
        ...

    def train(self, training: Training) -> Any:
        """Release labels, and return a model of them."""
        ...


@dataclass(frozen=True)
class Stages:
    """Multi-stage training, LP-MST: earlier stages' model is the prior of a row's randomizer ([G21], Algorithm 3).

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

    @property
    def informed(self) -> bool:
        """Whether the first stage has a domain prior."""
        return self.domain_prior is not None

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
            priors, budget, beliefs = self._priors(training, rows, model)
            randomizer = RRWithPriorBatch(priors, budget)
            release = training.release(rows, randomizer)
            old = [self._filtered(training, one, model, randomizer) for one in held] if self.reuse else []
            model = training.learn([*(one for one in old if len(one)), release], before=model, beliefs=beliefs)
            held.append(release)
        return model

    def _priors(self, training: Training, rows: Rows, model: Any) -> tuple[Floats, float, Floats | None]:
        """Priors of the randomizers, what they cost, and what the domain prior believes, where it is asked."""
        beliefs = None
        if model is None and self.domain_prior is not None:
            beliefs, budget = self.domain_prior.priors(training, rows)
            priors = self.domain_prior.kept(beliefs, budget)
        elif model is None:
            priors, budget = np.full((rows.size, training.k), 1 / training.k), training.epsilon
        else:
            priors, budget = tempered(training.beliefs(model, rows), self.temperature), training.epsilon
        return (at_least_two(priors, budget) if self.least == 2 else priors), budget, beliefs

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
    informed: ClassVar[bool] = False

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
    informed: ClassVar[bool] = False

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
        return training.neighbours(np.arange(training.rows), randomizer, self.neighbours)


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
    informed: ClassVar[bool] = False

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
