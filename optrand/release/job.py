"""The main job: private labels in, epsilon-label-DP labels out, and a mechanism that anybody can verify.

LabelRandomizer of [B23]_, Algorithm 3, with three corrections: the prior is estimated with exact discrete noise, its
share of the budget has a ceiling, and the grid of outputs is feasible for epsilon_2, the budget of the randomizer that
uses it (the paper prints epsilon_1).

:class:`LabelJob` works on arrays, :class:`~optrand.release.table_job.TableJob` on files. No figure that either returns
or saves is computed from the true labels, but for what the prior's budget pays for; the number of rows is public.

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.certificate import certify
from optrand.entropy import EntropySource, SystemEntropy
from optrand.errors import InvalidInput
from optrand.exact import float_above
from optrand.grids import feasible_output_set
from optrand.mechanism import Mechanism
from optrand.outputs import Grid
from optrand.priors import BudgetSplit, private_prior, split_at, split_budget
from optrand.problem import unbiased_regression
from optrand.release.declared import PublicPrior
from optrand.solvers import solve
from optrand.tabulation import tabulate
from optrand.validation import Floats, frozen
from optrand.validation import epsilon as checked_epsilon
from optrand.validation import labels as checked_labels
from optrand.validation import prior as checked_prior
from optrand.validation import values as checked_values

__all__ = ["Announce", "LabelJob", "Release", "Summary", "default_mesh", "output_grid", "silent"]

Announce = Callable[[str], object]
"""Told what a job does next, in a few words."""


def default_mesh(k: int) -> int:
    """How many outputs the grid has for `k` labels: eight steps a label, fewer where there are very many labels.

    [B23]_, Appendix G.3, uses 416 for 53 labels; four times as many earned it 0.04 %.

    Examples
    --------
    >>> default_mesh(2), default_mesh(53), default_mesh(401)
    (9, 417, 803)
    """
    return max(min(8 * (k - 1), 512), 2 * k) + 1


def output_grid(labels: Floats, epsilon: float, mesh: int | None = None) -> Grid:
    """The grid of [B23]_, Algorithm 2, of `mesh` outputs or of :func:`default_mesh`."""
    return feasible_output_set(labels, epsilon, default_mesh(labels.size) if mesh is None else mesh)


def silent(_: str) -> None:
    """Announce nothing."""


@dataclass(frozen=True)
class Summary:
    """What may be told about a release.

    Attributes
    ----------
    rows : int
        Public.
    labels, mesh, outputs : int
        How many labels were declared, how many outputs the grid offered, and how many the mechanism uses.
    epsilon : float
        The budget that was asked for, in nats.
    split : BudgetSplit
    prior : str
        Where the prior came from, in words.
    gap : float
        The loss of the mechanism is within this share of the optimum for its prior and its grid: verified.
    realised_epsilon : float
        What prior and labels together have spent, rounded up.
    noisy_label_loss : float
        Half the mean squared change of a label, *under the prior above*; nothing is said of the true labels.
    private : bool
        False where a seeded source drew the noise: then the table must not be released.
    """

    rows: int
    labels: int
    mesh: int
    outputs: int
    epsilon: float
    split: BudgetSplit
    prior: str
    gap: float
    realised_epsilon: float
    noisy_label_loss: float
    private: bool


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy labels, the mechanism that drew them, and what may be told about both.

    Attributes
    ----------
    values : array
        Of the shape of the labels that went in.
    mechanism : Mechanism
    summary : Summary
    """

    values: Floats = field(repr=False)
    mechanism: Mechanism
    summary: Summary


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelJob:
    """The options of a release; :meth:`run` does it.

    Parameters
    ----------
    labels : (k,) array
        The declared set, public, in any order.
    epsilon : float
        The whole budget, in nats.
    prior_epsilon : float, optional
        What the prior may spend of it; by default see :func:`~optrand.priors.split_budget`.
    public_prior : PublicPrior, optional
        A prior that spends nothing and is trusted to be public.
    mesh : int, optional
        How many outputs the grid has; by default see :func:`default_mesh`.
    clip : bool
        Whether labels beyond the ends of the declared set are moved to the nearest end. Without it they stop the job.

    Raises
    ------
    InvalidInput
        An option without meaning, or two that exclude each other.

    Examples
    --------
    >>> import numpy as np
    >>> from optrand.entropy import SeededEntropy
    >>> job = LabelJob(labels=np.arange(4), epsilon=1.0)
    >>> release = job.run([0, 3, 3, 1, 0, 0] * 500, source=SeededEntropy(1))
    >>> summary = release.summary
    >>> summary.rows, summary.split.prior, summary.gap < 1e-6, summary.realised_epsilon <= 1.0
    (3000, 0.03651483716701107, True, True)
    >>> summary.private
    False
    """

    labels: Floats
    epsilon: float
    prior_epsilon: float | None = None
    public_prior: PublicPrior | None = None
    mesh: int | None = None
    clip: bool = False

    def __post_init__(self) -> None:
        """Sort the labels and check every option before a private label is read."""
        object.__setattr__(self, "labels", frozen(np.sort(checked_labels(self.labels))))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if self.prior_epsilon is not None:
            split_at(self.epsilon, self.prior_epsilon)
        if self.public_prior is not None:
            if self.prior_epsilon is not None:
                raise InvalidInput("a public prior spends nothing: give either it or a budget for the prior, not both")
            checked_prior(self.public_prior.probabilities, self.labels.size)
        if self.mesh is not None:
            feasible_output_set(self.labels, self.epsilon, self.mesh)

    def run(
        self, values: ArrayLike, *, source: EntropySource | None = None, announce: Announce | None = None
    ) -> Release:
        """Replace every label.

        Parameters
        ----------
        values : array of labels, any shape
            Private.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.
        announce : callable, optional
            Told of each stage as it begins.

        Returns
        -------
        Release

        Raises
        ------
        InvalidInput
            No labels, or labels outside the declared set: the message says how many, never which.
        NotCertified
            The solver's answer could not be proven to be any good.

        Notes
        -----
        *Privacy.* The prior is epsilon_1-DP (:func:`~optrand.priors.private_histogram`) and the mechanism is a function
        of it; given the mechanism, the noisy labels are epsilon_2-DP, for each depends on one label only. Together:
        epsilon_1 + epsilon_2 by composition, at most `epsilon` as exact numbers.
        """
        entropy = SystemEntropy() if source is None else source
        tell = announce or silent
        given = np.asarray(values)
        places = self._places(checked_values(given.ravel(), "the labels"))
        tell("estimating the prior")
        split, prior, words = self._prior(places, entropy)
        tell("solving")
        grid = output_grid(self.labels, split.labels, self.mesh)
        mechanism = tabulate(solve(unbiased_regression(self.labels, prior, split.labels, outputs=grid)))
        tell("proving")
        proof = certify(mechanism, exact=True).require(gap=math.inf)
        tell("drawing labels")
        noisy = mechanism.sample(self.labels[places], source=entropy).reshape(given.shape)
        summary = Summary(
            rows=places.size,
            labels=self.labels.size,
            mesh=grid.values.size,
            outputs=mechanism.outputs.size,
            epsilon=self.epsilon,
            split=split,
            prior=words,
            gap=proof.gap,
            realised_epsilon=float_above(Fraction(split.prior) + Fraction(proof.epsilon)),
            noisy_label_loss=proof.upper,
            private=entropy.private,
        )
        return Release(noisy, mechanism, summary)

    def _places(self, values: Floats) -> NDArray[np.intp]:
        """Where in the declared set each label stands."""
        if self.clip:
            values = np.clip(values, self.labels[0], self.labels[-1])
        places = np.minimum(np.searchsorted(self.labels, values), self.labels.size - 1)
        outside = int((self.labels[places] != values).sum())
        if outside:
            remedy = "round them first" if self.clip else "declare them, or clip those beyond its ends"
            raise InvalidInput(
                f"{outside} of {values.size} labels are not in the declared set of {self.labels.size}; nothing was "
                f"written: {remedy}"
            )
        return places

    def _prior(self, places: NDArray[np.intp], entropy: EntropySource) -> tuple[BudgetSplit, Floats, str]:
        k = self.labels.size
        if self.public_prior is not None:
            words = "public: trusted as given, nothing spent on it"
            if self.public_prior.absent:
                words += f"; {self.public_prior.absent} label(s) that it does not list have prior 0"
            return BudgetSplit(0.0, self.epsilon), self.public_prior.probabilities, words
        if k == 1:
            return BudgetSplit(0.0, self.epsilon), np.ones(1), "none: a single label has nothing to hide"
        if self.prior_epsilon is None:
            split = split_budget(self.epsilon, k, places.size)
        else:
            split = split_at(self.epsilon, self.prior_epsilon)
        estimate = private_prior(np.bincount(places, minlength=k), split.prior, source=entropy)
        words = "estimated privately"
        if estimate.uniform:
            words += "; the noise left no count above 0, so it is uniform"
        return split, estimate.probabilities, words
