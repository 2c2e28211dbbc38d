"""Mixture of two mechanisms by a public coin: columns of both, with masses that are still exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.arcs import IntegerArcs

__all__ = ["mixture"]

LARGEST_DENOMINATOR = 1 << 10
"""Of the ratio of the two masses, which decides how many digits they gain."""


def mixture(first: Mechanism, second: Mechanism, weight: float) -> Mechanism:
    r"""Draw from `second` with a probability near `weight`, else from `first`.

    Masses are :math:`A C_j` and :math:`B C'_j` with :math:`B T' / (A T + B T') \approx w` for small integers ``A, B``
    and the totals :math:`T, T'` of the two.

    Parameters
    ----------
    first : Mechanism
        Its problem and its dual are those of the mixture, which is of arcs if both are.
    second : Mechanism
        For the same labels, with the same ratio and outputs that the first one's problem allows.
    weight : float
        Between 0 and 1, both excluded.

    Raises
    ------
    InvalidInput
        Other labels, another ratio, or a weight out of range.

    Notes
    -----
    Privacy and unbiasedness are linear: every column keeps the ratio that it had, and rows of equal totals add up to
    rows of equal totals. The constructor proves it again.

    Examples
    --------
    >>> import optrand
    >>> coin = optrand.tabulate(optrand.debiased_rr([0, 1], 1.0))
    >>> best = optrand.tabulate(optrand.solve(optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)))
    >>> proof = optrand.certify(mixture(best, coin, 0.25))
    >>> proof.epsilon, proof.bias < 1e-15
    (1.0, True)
    """
    if not np.array_equal(first.labels, second.labels) or first.ratio != second.ratio:
        raise InvalidInput("the two mechanisms have other labels or another ratio: make them for the same problem")
    if not 0 < weight < 1:
        raise InvalidInput(f"weight is {weight:g}, expected a probability between 0 and 1")
    odds = Fraction(second.total, first.total) * (1 / Fraction(weight) - 1)
    times, other = _small(odds)
    if first.arcs is None or second.arcs is None:
        return _of_tables(first, second, (times, other))
    parts = ((first.outputs, first.arcs, times), (second.outputs, second.arcs, other))
    outputs = np.concatenate([at[arcs.at] for at, arcs, _ in parts])
    order = np.argsort(outputs, kind="stable")
    distinct, places = np.unique(outputs[order], return_inverse=True)
    masses = np.array([mass * factor for _, arcs, factor in parts for mass in arcs.masses.tolist()], dtype=object)
    starts = np.concatenate([arcs.first for _, arcs, _ in parts])[order]
    ends = np.concatenate([arcs.last for _, arcs, _ in parts])[order]
    mixed = IntegerArcs(first.arcs.k, starts, ends, places, masses[order])
    return Mechanism(first.problem, first.dual, distinct, mixed, first.ratio)


def _of_tables(first: Mechanism, second: Mechanism, factors: tuple[int, int]) -> Mechanism:
    """Mixture written out: the columns of both, those of one output added up."""
    outputs = np.union1d(first.outputs, second.outputs)
    weights = np.zeros((first.labels.size, outputs.size), dtype=object)
    for one, factor in zip((first, second), factors, strict=True):
        weights[:, np.searchsorted(outputs, one.outputs)] += one.weights * factor
    return Mechanism(first.problem, first.dual, outputs, weights, first.ratio)


def _small(odds: Fraction) -> tuple[int, int]:
    """Two integers above 0 in a ratio near `odds`, the smaller at most :data:`LARGEST_DENOMINATOR`."""
    if odds < 1:
        return _small(1 / odds)[::-1]
    near = odds.limit_denominator(LARGEST_DENOMINATOR)
    return near.numerator, near.denominator
