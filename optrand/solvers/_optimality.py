r"""Newton's method on the conditions of an optimum, on the columns that an engine's answer has in use.

A cone solver stops at eight digits or so. Once it is known which columns are in use, the answer solves equations, and
Newton's method finds it to the last digits in a few steps. The answer is a candidate, whose gap is computed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from optrand.base._validation import Floats
from optrand.mechanism._tabulation import Solution, Stats
from optrand.model._randomizer import Randomizer
from optrand.solvers._cones import ConeAnswer, ConeProgram

Numbers = NDArray[Any]
"""Real, or complex for a derivative."""


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
    randomizer = Randomizer.of_arcs(worst.labels, program.arcs(answer), worst.epsilon)
    return Solution(worst, randomizer, dual, Stats("", iterations=calls, status=answer.status))


class Support:
    """The columns in use at an answer, and Newton's method on their optimality conditions.

    Unknowns are the masses and outputs of these columns, then `p`, `b` and `c` of each label
    (:mod:`optrand.solvers._cones`), in units of the labels' range. A known prior and outputs at an end are fixed.
    """

    def __init__(self, program: ConeProgram, answer: ConeAnswer) -> None:
        self.program, self.answer = program, answer
        self.used = np.flatnonzero(answer.in_use)
        k, each = program.problem.k, np.arange(program.problem.k)[:, np.newaxis]
        favoured = (program.first[self.used] <= each) & (each < program.end[self.used])
        self.weights = favoured + program.inv_ratio_m1
        # In the program's units, small at a large epsilon, least squares see a lower rank, and steps end too early.
        self.ratio = program.unit / float(np.ptp(program.problem.labels))
        self.units = np.array([1.0, self.ratio, self.ratio**2])[:, np.newaxis]
        self.labels = self.ratio * program.labels[:, np.newaxis]
        self.box = self.ratio * np.array(program.box)
        outputs, (low, high) = self.ratio * answer.outputs[self.used], self.box
        margin = 1e-6 * (high - low) if math.isfinite(high - low) else 0.0
        self.free = (outputs > low + margin) & (outputs < high - margin)
        outputs = np.where(self.free, outputs, np.where(outputs - low <= high - outputs, low, high))
        self.start = np.concatenate((answer.masses[self.used], outputs, (self.units * np.diff(answer.sums)).ravel()))
        self.variable = np.ones(self.start.size, dtype=bool)
        self.variable[outputs.size : 2 * outputs.size] = self.free
        self.variable[2 * outputs.size :][:k] = program.unknown

    def polish(self) -> ConeAnswer:
        """Take some steps of Newton's method, and return the answer."""
        n, unknowns = self.used.size, self.start
        # Two or three steps are usually enough from the digits of a cone solver.
        for _ in range(5):
            matrix, residual = self.linearize(unknowns)
            if np.abs(residual).max() < 1e-15:
                break
            # Changes of masses as shares of them: light columns are not to be pushed below zero. Conditions may be
            # dependent, as where labels share multipliers, and least squares of low rank then move as little as needed.
            masses = unknowns[:n]
            scale = np.ones(unknowns.size)
            scale[:n] = masses
            scale = scale[self.variable]
            step = np.zeros_like(unknowns)
            step[self.variable] = scale * linalg.lstsq(matrix * scale, -residual, cond=1e-14, lapack_driver="gelsy")[0]
            step[:n] = np.clip(step[:n], -masses / 2, masses)
            unknowns = unknowns + step
            unknowns[n : 2 * n] = np.clip(unknowns[n : 2 * n], *self.box)
            if not np.isfinite(unknowns).all():
                raise linalg.LinAlgError("the conditions are singular in floats")
        masses, outputs = np.zeros_like(self.answer.masses), self.answer.outputs.copy()
        masses[self.used], outputs[self.used] = unknowns[:n], unknowns[n : 2 * n] / self.ratio
        slacks = np.where(masses > 0, 0.0, self.answer.slacks)
        sums = np.zeros_like(self.answer.sums)
        sums[:, 1:] = np.cumsum(unknowns[2 * n :].reshape(3, -1) / self.units, axis=1)
        return replace(self.answer, sums=sums, masses=masses, outputs=outputs, slacks=slacks)

    def linearize(self, unknowns: Floats) -> tuple[Floats, Floats]:
        """Return the Jacobian of the conditions by the variable unknowns, and the residuals."""
        n = self.used.size
        losses = self._measure(unknowns[:n, np.newaxis], unknowns[n : 2 * n, np.newaxis])[2][:, 0]
        prior = unknowns[2 * n :].reshape(3, -1)[0]
        # If the prior of a label exceeds the shortfall of its loss, both as shares of their largest values, its loss
        # is to be the largest one. Otherwise its prior is to be zero.
        weighed = (prior * prior.size > 1 - losses / losses.max()) & self.program.unknown
        # The conditions are polynomials, whose derivatives a small complex step shows without rounding.
        small = 1e-30
        moved = unknowns[:, np.newaxis] + 1j * small * np.eye(unknowns.size)[:, self.variable]
        residuals = self._compute_residuals(unknowns[:, np.newaxis], weighed)[:, 0]
        return self._compute_residuals(moved, weighed).imag / small, residuals

    def _compute_residuals(self, unknowns: Numbers, weighed: NDArray[np.bool_]) -> Numbers:
        """Compute the residuals of all conditions at some points, a column for each of them."""
        problem, n, labels = self.program.problem, self.used.size, self.labels
        masses, outputs = unknowns[:n], unknowns[n : 2 * n]
        amounts = unknowns[2 * n :].reshape(3, problem.k, -1)
        prior, slopes, _ = amounts
        weight, slope, cost = self.weights.T @ amounts
        totals, means, losses = self._measure(masses, outputs)
        residuals = [
            # Rows sum to one, and labels with a prior lose the same.
            totals - 1,
            np.diff(losses[weighed], axis=0),
            # Columns in use cost nothing, and those whose output may move have a minimum there.
            cost - (slope - weight * outputs / 2) * outputs,
            (slope - weight * outputs)[self.free],
        ]
        if problem.unbiased:
            residuals.append(means - labels)
        else:
            # The multiplier of a bias is its charge.
            residuals.append(slopes + prior * (problem.bias_penalty * (means - labels) - labels))
        if self.program.unknown:
            residuals += [prior[~weighed], prior.sum(axis=0, keepdims=True) - 1]
        return np.concatenate(residuals)

    def _measure(self, masses: Numbers, outputs: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return sum, mean and loss of each label's row at some points, a column for each of them."""
        problem, moments = self.program.problem, masses * outputs
        totals, means, squares = self.weights @ np.stack((masses, moments, moments * outputs))
        losses = squares / 2 - self.labels * (means - self.labels * totals / 2)
        if not problem.unbiased:
            losses = losses + problem.bias_penalty * (means - self.labels) ** 2 / 2
        return totals, means, losses
