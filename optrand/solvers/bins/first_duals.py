r"""First multipliers of many partitions at once, for squared loss: those of :mod:`optrand.solvers.bins.dual`.

:math:`\alpha_y = (1 - t) \, p_y g(v, y) + t \, p_y g(w, y)` with the one :math:`t` of each bin that makes its sum
right. All bins of all partitions are one list, so that a sum over bins is one call. Five partitions in six are proven
by these; the others need the turns of :func:`~optrand.solvers.bins.dual.bin_dual`.
"""

from __future__ import annotations

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.bins.dual import quotient
from optrand.solvers.bins.many import ManyBins

__all__ = ["first_duals"]


def first_duals(found: ManyBins) -> tuple[Floats, Floats]:
    """Return outputs and multipliers of partitions under squared loss, each with the loss of one prior.

    Parameters
    ----------
    found : ManyBins
        Of positive priors.

    Returns
    -------
    outputs : (m, k) array
        For each label that of its bin.
    alpha : (m, k) array

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers.bins.many import many_bins
    >>> found = many_bins(optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5), np.array([[0.6, 0.25, 0.15]]))
    >>> outputs, alpha = first_duals(found)
    >>> outputs.round(3).tolist(), round(float(alpha.sum() - found.values[0]), 12)
    ([[0.396, 0.72, 0.72]], 0.0)
    """
    problem, cuts, (m, k) = found.problem, found.cuts, found.cuts.shape
    totals = found.priors.sum(axis=1, keepdims=True)
    priors, gain = found.priors / totals, np.expm1(found.epsilons)
    labels = problem.labels - problem.labels[0]
    means = priors @ labels
    starts = np.flatnonzero(cuts)
    row = starts // k
    masses = np.add.reduceat(priors.ravel(), starts)
    # From the first label of the bin, so that no digits are lost.
    own = np.cumsum(cuts.ravel()) - 1
    firsts = labels[starts % k]
    offsets = np.add.reduceat((priors * (labels - firsts[own].reshape(m, k))).ravel(), starts) / masses
    distances, share = firsts - means[row] + offsets, gain[row] * masses
    low, high = problem.outputs.low - problem.labels[0], problem.outputs.high - problem.labels[0]
    outputs = np.clip(means[row] + share / (1 + share) * distances, low, high)

    # The outputs beside that of each bin; where it is the only one, or at an end, the nearest there is.
    beside = outputs[np.maximum(np.arange(row.size) - 1, 0)], outputs[np.minimum(np.arange(row.size) + 1, row.size - 1)]
    lower = np.append(True, row[1:] != row[:-1])
    upper = np.append(lower[1:], True)
    below, above = np.where(lower, beside[1], beside[0]), np.where(upper, beside[0], beside[1])
    alone = lower & upper
    below, above = np.where(alone, outputs, below), np.where(alone, outputs, above)

    def cost(of_bins: Floats) -> Floats:
        """Loss of each label at an output of its bin."""
        losses: Floats = priors * (of_bins[own].reshape(m, k) - labels) ** 2 / 2
        return losses

    lowest = cost(outputs)
    widths = np.maximum(np.minimum(cost(below), cost(above)) - lowest, 0.0)
    shift = np.clip(means, low, high) - means
    moved = outputs - means[row]
    excess = (moved - shift[row]) * (moved + shift[row]) / 2 / gain[row]
    least = (priors * (labels - means[:, np.newaxis]) ** 2).sum(axis=1) / 2 + shift**2 / 2
    lengths = lowest.sum(axis=1) + np.bincount(row, excess, m)
    penalty = (least - lengths) / (gain + np.bincount(row, minlength=m))
    needed = np.maximum(excess + penalty[row], 0.0)
    fractions = np.minimum(quotient(needed, np.add.reduceat(widths.ravel(), starts)), 1.0)
    alpha = totals * (lowest + widths * fractions[own].reshape(m, k))
    allowed = np.clip(problem.labels[0] + outputs, problem.outputs.low, problem.outputs.high)
    return allowed[own].reshape(m, k), alpha
