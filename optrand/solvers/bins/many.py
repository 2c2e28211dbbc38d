"""Shortest paths of randomized response on bins for many priors of the same labels at once.

Each row of costs, and each step of a path, is one call for all priors: ``O(k^2)`` numbers per prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optrand.base.validation import SMALLEST_NORMAL, Floats
from optrand.model import losses
from optrand.model.problem import Problem

__all__ = ["LARGEST_EPSILON", "best_cuts"]

CHUNK = 1 << 20
"""Costs of bins that are kept at a time, 8 MB."""

LARGEST_EPSILON = 12.0
"""Beyond it differences of running sums are too coarse for what bins cost, and each prior is solved alone."""


def best_cuts(problem: Problem, priors: Floats, epsilons: Floats) -> NDArray[np.bool_]:
    """Return where bins begin under each of some priors in the place of the problem's, shape ``(m, k)``.

    Parameters
    ----------
    problem : Problem
        As :class:`~optrand.solvers.bins.path.BinPath` takes it; its prior and epsilon do not matter.
    priors : (m, k) array
        A probability distribution a row, zeros among them.
    epsilons : (m,) array
        Privacy budgets in nats, at most :data:`LARGEST_EPSILON`.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> best_cuts(problem, np.array([[0.6, 0.25, 0.15], [0.1, 0.1, 0.8]]), np.array([0.5, 0.5])).tolist()
    [[True, True, False], [True, False, True]]
    """
    cuts = np.zeros(priors.shape, dtype=bool)
    step = max(1, CHUNK // problem.k**2)
    for start in range(0, len(priors), step):
        some = slice(start, start + step)
        cuts[some] = _Batch.of(problem, priors[some], epsilons[some]).best()
    return cuts


@dataclass(frozen=True, eq=False)
class _Batch:
    """Costs of all bins under some priors.

    Attributes
    ----------
    rows : list of (m, k - a) arrays
        ``K`` of the bins that begin at label ``a``.
    least : (m,) array
        Least loss of a constant output.
    gain : (m,) array
        ``exp(epsilon) - 1``.
    """

    rows: list[Floats]
    least: Floats
    gain: Floats

    @classmethod
    def of(cls, problem: Problem, priors: Floats, epsilons: Floats) -> _Batch:
        """Return the costs under some priors."""
        prior = priors / priors.sum(axis=1, keepdims=True)
        gain, low, high = np.expm1(epsilons), problem.outputs.low, problem.outputs.high
        kinds = {losses.squared.name: _squared, losses.absolute.name: _absolute, losses.poisson_log.name: _poisson}
        return cls(*kinds[problem.loss.name](problem.labels, prior, gain[:, np.newaxis], low, high), gain)

    def best(self) -> NDArray[np.bool_]:
        """Return where bins begin, by Dinkelbach's method for all priors until none gets better."""
        k, m = len(self.rows), self.least.size
        own = np.sum([row[:, 0] for row in self.rows], axis=0)
        cuts, penalty = np.ones((m, k), dtype=bool), (self.least - own) / (self.gain + k)
        left = np.arange(m)
        while left.size:
            found, lengths = self._shortest(left, np.maximum(penalty[left], 0.0))
            better = (self.least[left] - lengths) / (self.gain[left] + found.sum(axis=1))
            kept = better > penalty[left]
            left = left[kept]
            cuts[left], penalty[left] = found[kept], better[kept]
        return cuts

    def _shortest(self, chosen: NDArray[np.intp], penalty: Floats) -> tuple[NDArray[np.bool_], Floats]:
        """Return the shortest paths under some of the priors, and the sums of ``K`` along them."""
        k, m, every = len(self.rows), chosen.size, np.arange(chosen.size)
        whole = m == self.least.size
        distances, following = np.zeros((m, k + 1)), np.empty((m, k), dtype=np.intp)
        for a in range(k - 1, -1, -1):
            lengths = (self.rows[a] if whole else self.rows[a][chosen]) + distances[:, a + 1 :]
            best = lengths.argmin(axis=1)
            distances[:, a], following[:, a] = lengths[every, best] + penalty, a + 1 + best
        cuts, node, on = np.zeros((m, k), dtype=bool), np.zeros(m, dtype=np.intp), every
        while on.size:
            cuts[on, node[on]] = True
            node[on] = following[on, node[on]]
            on = on[node[on] < k]
        return cuts, distances[:, 0] - cuts.sum(axis=1) * penalty


def _sums(terms: Floats) -> Floats:
    """Return running sums of each row, from 0 on."""
    return np.concatenate((np.zeros((len(terms), 1)), np.cumsum(terms, axis=1)), axis=1)


def _squared(labels: Floats, prior: Floats, gain: Floats, low: float, high: float) -> tuple[list[Floats], Floats]:
    means = prior @ (labels - labels[0])
    places = labels - labels[0] - means[:, np.newaxis]
    ends = [end - labels[0] - means[:, np.newaxis] for end in (low, high)]
    shift = np.clip(0.0, *ends)
    masses, moments, squares = (_sums(prior * places**power) for power in (0, 1, 2))
    rows = []
    for a in range(labels.size):
        mass, moment, square = (sums[:, a + 1 :] - sums[:, a, np.newaxis] for sums in (masses, moments, squares))
        weight = mass + 1 / gain
        outputs = np.clip(moment / weight, *ends)
        rows.append((square + outputs * (weight * outputs - 2 * moment) - shift**2 / gain) / 2)
    return rows, (squares[:, -1] + shift[:, 0] ** 2) / 2


def _poisson(labels: Floats, prior: Floats, gain: Floats, low: float, high: float) -> tuple[list[Floats], Floats]:
    means = (prior @ labels)[:, np.newaxis]
    best = np.clip(means, max(low, SMALLEST_NORMAL), high)
    masses, moments = _sums(prior), _sums(prior * labels)
    rows = []
    for a in range(labels.size):
        mass, moment = (sums[:, a + 1 :] - sums[:, a, np.newaxis] for sums in (masses, moments))
        outputs = np.clip((means / gain + moment) / (1 / gain + mass), max(low, SMALLEST_NORMAL), high)
        beyond = (outputs - best - means * np.log(outputs / best)) / gain
        rows.append(mass * outputs - moment * np.log(outputs) + beyond)
    return rows, (best - means * np.log(best))[:, 0]


def _absolute(labels: Floats, prior: Floats, gain: Floats, low: float, high: float) -> tuple[list[Floats], Floats]:
    m, k = prior.shape
    candidates, every = np.clip(labels, low, high), np.arange(m)[:, np.newaxis]
    below = np.searchsorted(labels, candidates, side="right")
    masses, moments = _sums(prior), _sums(prior * (labels - labels[0]))
    places = candidates - labels[0]
    constant = places * (2 * masses[:, below] - 1) + moments[:, -1:] - 2 * moments[:, below]
    least = constant.min(axis=1)
    beyond = (constant - least[:, np.newaxis]) / gain
    # One search for all priors: the running sums of each begin where those of the one before end.
    line = (masses[:, 1:] + 2 * every).ravel()
    rows = []
    for a in range(k):
        start, end = masses[:, a, np.newaxis], masses[:, a + 1 :]
        half = (1 + gain * (end - start)) / 2
        inside = (half + gain * start) / (1 + gain)
        level = np.where(half <= start, half, np.where(inside <= end, inside, half - gain * (end - start)))
        medians = np.clip(np.searchsorted(line, level + 2 * every) - k * every, 0, k - 1)
        middle = np.clip(below[medians], a, np.arange(a + 1, k + 1))
        cost = places[medians] * (2 * masses[every, middle] - start - end)
        cost += moments[:, a + 1 :] + moments[:, a, np.newaxis] - 2 * moments[every, middle]
        rows.append(cost + beyond[every, medians])
    return rows, least
