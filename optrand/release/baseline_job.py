"""The main job with another randomizer of the papers: it needs no prior, and the whole budget goes to the labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, frozen
from optrand.base.validation import labels as checked_labels
from optrand.base.validation import values as checked_values
from optrand.baselines import Moments
from optrand.baselines.additive import Additive
from optrand.baselines.lattice_additive import LatticeAdditive
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.outputs import Line, in_words
from optrand.release.diagnosis import Diagnosis, Readings, declared_places
from optrand.release.job import Keep, ProgressCallback, no_progress
from optrand.release.randomizer_file import KINDS, finite_moments, save_randomizer
from optrand.sampling.entropy import EntropySource, SystemEntropy

__all__ = ["BaselineJob", "BaselineRelease", "BaselineSummary"]


@dataclass(frozen=True)
class BaselineSummary:
    """Public summary of a release without a prior. Everything but the number of rows was known before it.

    Attributes
    ----------
    rows : int
        Public.
    labels : int
        How many labels were declared.
    outputs : str
        Where noisy labels lie, in words.
    epsilon, realised_epsilon : float
        The budget, and what is spent of it at most, in nats.
    exact : bool
        Whether the labels were drawn with exactly the probabilities that were proven private. If not, privacy holds for
        real numbers only.
    bias, variance : float
        The largest ``|E[M(y)] - y|`` and the largest variance over the declared labels.
    noisy_label_loss : float
        Half the mean squared change of a label, *were every declared label as frequent as any other*.
    private : bool
        False where a seeded source drew the noise: then the table must not be released.
    """

    rows: int
    labels: int
    outputs: str
    epsilon: float
    realised_epsilon: float
    exact: bool
    bias: float
    variance: float
    noisy_label_loss: float
    private: bool


@dataclass(frozen=True, eq=False)
class BaselineRelease:
    """Noisy labels, the randomizer that drew them, and what may be told about both.

    Attributes
    ----------
    values : array
        Of the shape of the labels that went in.
    labels : (k,) array
        The declared set.
    randomizer : Additive or Mechanism
    summary : BaselineSummary
    """

    values: Floats = field(repr=False)
    labels: Floats = field(repr=False)
    randomizer: Additive | Mechanism
    summary: BaselineSummary

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the randomizer, whole or not at all."""
        if isinstance(self.randomizer, Mechanism):
            self.randomizer.save(path, overwrite=overwrite)
        else:
            save_randomizer(self.randomizer, path, labels=self.labels, overwrite=overwrite)


@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineJob:
    """The options of a release without a prior; :meth:`run` does it.

    Parameters
    ----------
    labels : (k,) array
        The declared set, public, in any order.
    randomizer : Additive or Mechanism
        For these labels; :func:`~optrand.release.named.named_randomizer` finds one by its name.
    clip : bool
        Whether labels beyond the ends of the declared set are moved to the nearest end. Without it they stop the job.
    allow_inexact : bool
        Whether floating-point noise will do, whose privacy holds for real numbers only.

    Raises
    ------
    InvalidInput
        Floating-point noise that nobody allowed, a mechanism for other labels, labels beyond those of the noise, or
        noise whose variance is no float.

    Examples
    --------
    >>> from optrand.baselines import DiscreteLaplace
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> job = BaselineJob(labels=np.arange(4), randomizer=DiscreteLaplace(np.arange(4), 1.0))
    >>> release = job.run([0, 3, 3, 1, 0, 0] * 500, source=SeededEntropy(1))
    >>> summary = release.summary
    >>> summary.rows, summary.realised_epsilon, summary.exact, summary.bias, round(summary.variance, 3)
    (3000, 1.0, True, 0.0, 17.834)
    """

    labels: Floats
    randomizer: Additive | Mechanism
    clip: bool = False
    allow_inexact: bool = False

    def __post_init__(self) -> None:
        """Check every option before a private label is read."""
        object.__setattr__(self, "labels", frozen(np.sort(checked_labels(self.labels))))
        if type(self.randomizer) not in (*KINDS.values(), Mechanism):
            raise InvalidInput(
                f"the randomizer is of type {type(self.randomizer).__name__}, expected a Mechanism or one of "
                f"{', '.join(kind.__name__ for kind in KINDS.values())}"
            )
        if not (self.exact or self.allow_inexact):
            raise InvalidInput(
                f"the noise of {type(self.randomizer).__name__} is drawn in floats, whose last bits may tell labels "
                "apart, so that its privacy holds for real numbers only: take the discrete one, or allow inexact draws "
                "(--allow-inexact)"
            )
        if isinstance(self.randomizer, Mechanism) and not np.array_equal(self.randomizer.labels, self.labels):
            raise InvalidInput("the mechanism is made for other labels than the declared ones: make it for these")
        # Refuses moments that are no floats.
        self._moments()

    @property
    def exact(self) -> bool:
        """Whether draws have exactly the probabilities that were proven private."""
        return isinstance(self.randomizer, Mechanism) or self.randomizer.exact

    @property
    def ending(self) -> str:
        """A mechanism is saved as one; noise, which has no table, in a file of another kind."""
        return ".mechanism.json" if isinstance(self.randomizer, Mechanism) else ".randomizer.json"

    @property
    def buys_a_prior(self) -> bool:
        """Never: no prior is needed."""
        return False

    def diagnose(self, values: ArrayLike) -> Diagnosis:
        """Count exactly which labels :meth:`run` would refuse, for the owner of the labels alone.

        Releases nothing; what it returns is a fact about the true labels, and not to be shared.
        """
        return Diagnosis.of(Readings.of_array(values), self.labels, clip=self.clip)

    def run(
        self,
        values: ArrayLike,
        *,
        source: EntropySource | None = None,
        announce: ProgressCallback | None = None,
        keep: Keep | None = None,  # noqa: ARG002 - as every job
    ) -> BaselineRelease:
        """Replace every label.

        Parameters
        ----------
        values : array of labels, any shape
            Private.
        source : EntropySource, optional
            The operating system by default, the only choice for a release.
        announce : callable, optional
            Called with each stage as it begins.
        keep : callable, optional
            Never called: there is no prior to keep.

        Returns
        -------
        BaselineRelease

        Raises
        ------
        InvalidInput
            No labels, or labels outside the declared set: the message says neither which nor how many.

        Notes
        -----
        *Privacy.* Each noisy label depends on one label only, by an epsilon-DP randomizer that was fixed before any
        label was read.
        """
        entropy = SystemEntropy() if source is None else source
        given = np.asarray(values)
        places = declared_places(checked_values(given.ravel(), "the labels"), self.labels, clip=self.clip)
        (announce or no_progress)("drawing labels")
        noisy = self.randomizer.sample(self.labels[places], source=entropy).reshape(given.shape)
        return BaselineRelease(noisy, self.labels, self.randomizer, self._summary(places.size, entropy))

    def _moments(self) -> Moments:
        if not isinstance(self.randomizer, Mechanism):
            return finite_moments(self.randomizer, self.labels)
        return Moments.of_mechanism(self.randomizer)

    def _summary(self, rows: int, entropy: EntropySource) -> BaselineSummary:
        randomizer, moments, k = self.randomizer, self._moments(), self.labels.size
        if isinstance(randomizer, Mechanism):
            outputs, spent = _finite_outputs(randomizer), randomizer.realised_epsilon
        else:
            outputs, spent = _noisy_outputs(randomizer), randomizer.epsilon
        return BaselineSummary(
            rows=rows,
            labels=k,
            outputs=outputs,
            epsilon=randomizer.epsilon,
            realised_epsilon=spent,
            exact=self.exact,
            bias=moments.bias,
            variance=float(moments.variances.max()),
            noisy_label_loss=moments.loss(np.full(k, 1 / k)),
            private=entropy.private,
        )


def _finite_outputs(mechanism: Mechanism) -> str:
    return f"{mechanism.n} values from {mechanism.outputs[0]:g} to {mechanism.outputs[-1]:g}"


def _noisy_outputs(noise: Additive) -> str:
    words = in_words(Line() if noise.clip is None else noise.clip)
    return f"{words}, in steps of {noise.step!r}" if isinstance(noise, LatticeAdditive) else words
