r"""Minimiser of the debiased empirical risk over finitely many models ([G21], Theorem 17), with what it may lose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import Floats, real, rectangular
from optrand.closed_forms.batch import RRWithPriorBatch
from optrand.errors import InvalidInput
from optrand.learning.debiased import debiased_weights
from optrand.learning.release import LabelRelease

__all__ = ["FiniteFit", "least_risk"]


@dataclass(frozen=True, eq=False)
class FiniteFit:
    """Debiased risks of finitely many models.

    Attributes
    ----------
    risks : (M,) array
        Mean debiased losses of the release.
    deviation : float
        Within which all of them are of the true risks, but for probability `beta` and the chance of a label not kept.
    """

    risks: Floats
    deviation: float

    @property
    def best(self) -> int:
        """Number of the model of least risk, the first of equals."""
        return int(self.risks.argmin())

    @property
    def excess_risk(self) -> float:
        """How much more than the best of them the chosen model loses, up to twice the chance of a label not kept."""
        return 2 * self.deviation


def least_risk(losses: ArrayLike, release: LabelRelease, *, beta: float = 0.05) -> FiniteFit:
    r"""Debiased risks of `M` models, and how far off they are.

    .. math:: \Big|\tilde L(f) - L(f)\Big| \leq \omega \sqrt{\frac{\log(2 M / \beta)}{2 n}} + \Pr[y \notin Y_k],
              \qquad \omega = \frac{1 + (k - 2) p}{1 - k p}, \quad p = \frac{1}{e^\epsilon + k - 1}

    Parameters
    ----------
    losses : (M, n, K) array
        Of each model at each row under each label, from 0 to 1; models are chosen without these rows' labels.
    release : LabelRelease
        By randomized response, RRTop-k or RRWithPrior, of independent rows.
    beta : float, optional
        Probability of failure.

    Raises
    ------
    InvalidInput
        Losses out of [0, 1] or of another shape, another randomizer, a beta out of range.

    Notes
    -----
    Hoeffding's inequality for each model, whose debiased losses lie in an interval of length :math:`\omega`, for the
    largest `k` of all rows; and Lemma 20. Theorem 17 has the Rademacher complexity of a class in place of ``log(M)``,
    and no :math:`\omega` in its root, without which it fails: debiased losses leave [0, 1].

    Examples
    --------
    >>> from optrand.learning import PrivateLabels
    >>> from optrand.sampling.entropy import SeededEntropy
    >>> y = np.arange(3000) % 3
    >>> labels = PrivateLabels(y, 1.0, [0, 1, 2], source=SeededEntropy(1))
    >>> release = labels.release(slice(None), RRWithPriorBatch(np.full((3000, 3), 1 / 3), 1.0))
    >>> guesses = np.array([y, (y + 1) % 3])
    >>> found = least_risk(1.0 * (guesses[:, :, np.newaxis] != np.arange(3)), release)
    >>> found.best, found.risks.round(2).tolist(), round(found.deviation, 3)
    (0, [-0.05, 1.0], 0.09)
    """
    batch, table = release.randomizer, rectangular(losses, "losses", np.float64)
    if not isinstance(batch, RRWithPriorBatch):
        raise InvalidInput(f"the release is by {type(batch).__name__}, expected RRWithPriorBatch")
    if table.ndim != 3 or table.shape[1:] != (len(release), len(release.domain)) or not table.shape[0]:
        raise InvalidInput(f"losses have shape {table.shape}, expected (M, {len(release)}, {len(release.domain)})")
    if not ((table >= 0) & (table <= 1)).all():
        raise InvalidInput("losses leave [0, 1]: divide them by their range")
    if not 0 < real(beta, "beta") < 1:
        raise InvalidInput(f"beta is {beta:g}, expected a probability above 0 and below 1")
    gain, kept = math.expm1(batch.epsilon), batch.k_star
    # Weights of the losses are (E + k - 2) / (E - 1) at the released label and -1 / (E - 1) at the others kept.
    high, low = (gain + kept.max() - 1) / gain, -(kept.max() - 1) / gain
    risks: Floats = np.einsum("mnk,nk->m", table, debiased_weights(release)) / len(release)
    root = math.sqrt(math.log(2 * table.shape[0] / beta) / (2 * len(release)))
    return FiniteFit(risks, float((high - low) * root))
