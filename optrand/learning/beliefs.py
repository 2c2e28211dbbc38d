"""What a model believes of labels, made fit to be the prior of a randomizer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import Floats
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.learning.release import LabelRelease

__all__ = ["at_least_two", "selected", "tempered"]

ABOVE = 1 + 1e-9
"""Factor by which a second label is lifted over the bar of what RRWithPrior keeps."""


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
