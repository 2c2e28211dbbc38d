r"""Newton's method on the conditions of an optimum, on the columns that an engine's answer has in use.

A cone solver stops at eight digits or so. Once it is known which columns are in use, the answer solves equations, and
Newton's method finds it to the last digits in a few steps. The answer is a candidate, whose gap is computed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from optrand.base._validation import Floats
from optrand.mechanism._columns import node_equations
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._problem import Problem
from optrand.model._randomizer import Randomizer
from optrand.solvers._cones import ConeAnswer, ConeProgram


def candidates(program: ConeProgram, answer: ConeAnswer, calls: int) -> Iterator[Solution]:
    """Generate the answer of a cone program after Newton's method, if there are few labels, and as it is."""
    # The conditions are dense matrices of 7 k rows.
    if program.problem.k <= 128:
        with suppress(linalg.LinAlgError, ValueError):
            yield _solution_of(program, Support(program, answer).polish(), calls)
    yield _solution_of(program, answer, calls)


def _solution_of(program: ConeProgram, answer: ConeAnswer, calls: int) -> Solution:
    """Return the answer of a program in the units of its problem. Its table is made exact later (`tabulate`)."""
    prior, dual = program.dual(answer)
    worst = replace(program.problem, prior=prior)
    randomizer = Randomizer.of_arcs(worst.labels, program.arcs(answer, answer.in_use), worst.epsilon)
    return Solution(worst, randomizer, dual, Stats("", iterations=calls, status=answer.status))


class Support:
    """The columns in use at an answer, and Newton's method on their optimality conditions.

    Unknowns are the masses and outputs of these columns, and the sums of the multipliers and of an unknown prior. Rows,
    means and, for an unknown prior, equal losses are the primal equations (:class:`_Errors`). The dual ones: every
    column in use has reduced cost zero, which is a minimum if its output may move. The multiplier of a bias is its
    charge. A label that loses less than the largest loss has an unknown prior of zero. Lengths are in
    units of the labels' range.
    """

    def __init__(self, program: ConeProgram, answer: ConeAnswer) -> None:
        self.program, self.answer = program, answer
        self.used = np.flatnonzero(answer.in_use)
        problem, self.k = program.problem, program.problem.k
        self.ratio = program.unit / float(np.ptp(problem.labels))
        self.units = np.array([1.0, self.ratio, self.ratio**2])[:, np.newaxis]
        self.labels = program.labels * self.ratio
        first, end = program.first[self.used], program.end[self.used]
        self.rows = node_equations(self.k, first, end - 1, problem.epsilon).toarray()
        self.own = np.diff(np.eye(self.k + 1), axis=0)
        # Sums of each column: what its labels have, and what all have over E - 1.
        self.arcs = np.eye(self.k + 1)[end] - np.eye(self.k + 1)[first]
        self.arcs[:, self.k] += program.inv_ratio_m1
        outputs = answer.outputs[self.used]
        low, high = program.box
        margin = 1e-6 * (high - low) if math.isfinite(high - low) else 0.0
        self.free = (outputs > low + margin) & (outputs < high - margin)
        self.ends = np.array([low, high]) * self.ratio

    def polish(self) -> ConeAnswer:
        """Take some steps of Newton's method, and return the answer."""
        masses, outputs = self.answer.masses[self.used], self.answer.outputs[self.used] * self.ratio
        nearest = np.where(outputs - self.ends[0] <= self.ends[1] - outputs, *self.ends)
        outputs = np.where(self.free, outputs, nearest)
        sums = self.answer.sums * self.units
        sums[:, 0], sums[0, -1] = 0.0, 1.0
        n = masses.size
        # Five steps are enough from the digits of a cone solver.
        for _ in range(5):
            matrix, residual = self.equations(masses, outputs, sums)
            # Changes of masses as shares of them: light columns are not to be pushed below zero. Conditions may be
            # dependent, as where labels share multipliers, and least squares of low rank then move as little as needed.
            scale = np.concatenate((masses, np.ones(n), np.ones(sums.size)))
            step = scale * linalg.lstsq(matrix * scale, residual, cond=1e-14, lapack_driver="gelsy")[0]
            masses = masses + np.clip(step[:n], -masses / 2, masses)
            outputs = np.clip(outputs + step[n : 2 * n], *self.ends)
            sums = sums + step[2 * n :].reshape(3, -1)
            if not (np.isfinite(sums).all() and np.isfinite(masses).all()):
                raise linalg.LinAlgError("the conditions are singular in floats")
        whole, places = np.zeros_like(self.answer.masses), self.answer.outputs.copy()
        whole[self.used], places[self.used] = masses, outputs / self.ratio
        slacks = np.where(whole > 0, 0.0, self.answer.slacks)
        return replace(self.answer, sums=sums / self.units, masses=whole, outputs=places, slacks=slacks)

    def equations(self, masses: Floats, outputs: Floats, sums: Floats) -> tuple[Floats, Floats]:
        """Return the Jacobian of the conditions, and their residuals."""
        problem, n, size = self.program.problem, masses.size, sums.size
        errors = _Errors.at(problem, self.labels, self.rows, masses, outputs)
        prior = np.diff(sums[0])
        weighed = are_weighed(prior, errors.losses) & self.program.unknown
        primal, lack = errors.linearize(np.flatnonzero(weighed))
        weight, slope, cost = sums @ self.arcs.T
        v, none = outputs[:, np.newaxis], np.zeros((n, n))
        zeros = np.zeros_like(self.arcs)
        # Columns in use cost nothing, those whose output may move have a minimum there, and idle labels have no prior.
        flat = np.hstack((none, np.diag(weight * outputs - slope), self.arcs * v**2 / 2, -self.arcs * v, self.arcs))
        least = np.hstack((none, np.diag(-weight), -self.arcs * v, self.arcs, zeros))[self.free]
        blank = np.zeros((self.k, 2 * n))
        idle = np.hstack((blank, self.own, 0 * self.own, 0 * self.own))[~weighed]
        parts = [np.hstack((primal, np.zeros((primal.shape[0], size)))), flat, least, idle]
        right = [lack, -(cost - slope * outputs + weight * outputs**2 / 2), -(slope - weight * outputs)[self.free]]
        right.append(-prior[~weighed] * self.program.unknown)
        if not problem.unbiased:
            penalty, whole = problem.bias_penalty, np.cumsum(self.rows, axis=0)
            charge = (penalty * (errors.means - self.labels) - self.labels)[:, np.newaxis]
            moved = np.hstack((whole * outputs, whole * masses)) * (penalty * prior)[:, np.newaxis]
            parts.append(np.hstack((moved, self.own * charge, self.own, 0 * self.own)))
            right.append(-(np.diff(sums[1]) + charge[:, 0] * prior))
        matrix = np.vstack(parts)
        # Sums before the first label are zero, the whole prior is one or all of it given, and outputs at an end stay.
        given = np.array([0, self.k]) if self.program.unknown else np.arange(self.k + 1)
        matrix[:, 2 * n + np.concatenate((given, [self.k + 1, 2 * self.k + 2]))] = 0.0
        matrix[:, n + np.flatnonzero(~self.free)] = 0.0
        return matrix, np.concatenate(right)


def are_weighed(prior: Floats, label_losses: Floats) -> NDArray[np.bool_]:
    """Return whether the prior of each label exceeds the shortfall of its loss, as shares of their largest values."""
    weighed: NDArray[np.bool_] = prior * prior.size > 1 - label_losses / label_losses.max()
    return weighed


@dataclass(frozen=True, eq=False)
class _Errors:
    """By how much rows, means and losses of arcs are off, in the unit of the labels' range.

    Attributes
    ----------
    rows : (k, n) array
        Sum of amounts of the arcs at the first label, then its change from each label to the next.
    masses, outputs : (n,) arrays
    sums, means, losses : (k,) arrays
        Values of each label.
    """

    problem: Problem
    labels: Floats
    rows: Floats
    masses: Floats
    outputs: Floats
    sums: Floats
    means: Floats
    losses: Floats

    @classmethod
    def at(cls, problem: Problem, labels: Floats, rows: Floats, masses: Floats, outputs: Floats) -> _Errors:
        sums, means, squares = (np.cumsum(rows @ (masses * outputs**power)) for power in range(3))
        expected = squares / 2 - labels * means + labels**2 * sums / 2
        if not problem.unbiased:
            expected = expected + problem.bias_penalty * (means - labels) ** 2 / 2
        return cls(problem, labels, rows, masses, outputs, sums, means, expected)

    def linearize(self, weighed: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the Jacobian by masses and outputs of the equations, and their residuals."""
        rows, masses, outputs = self.rows, self.masses, self.outputs
        labels = self.labels[weighed, np.newaxis]
        whole = np.cumsum(rows, axis=0)[weighed]
        slopes = outputs - labels
        by_mass = slopes**2 / 2
        if not self.problem.unbiased:
            bias = self.problem.bias_penalty * (self.means - self.labels)[weighed, np.newaxis]
            by_mass, slopes = by_mass + bias * outputs, slopes + bias
        jacobian = [np.hstack((rows, np.zeros_like(rows)))]
        residual = [-np.diff(self.sums - 1, prepend=0.0)]
        if self.problem.unbiased:
            jacobian.append(np.hstack((rows * outputs, rows * masses)))
            residual.append(-np.diff(self.means - self.labels, prepend=0.0))
        jacobian.append(np.diff(np.hstack((whole * by_mass, whole * masses * slopes)), axis=0))
        residual.append(-np.diff(self.losses[weighed]))
        return np.vstack(jacobian), np.concatenate(residual)
