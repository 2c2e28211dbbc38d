r"""The last digits of a randomizer where bias has a price: Newton's method on masses and outputs themselves.

The multiplier of a bias is charged :math:`\beta_y^2 / (2 \lambda p_y)`, so where the prior is next to nothing
potentials have no digits for it. Masses and outputs do: with the arcs in use given, the loss

.. math:: \sum_j c_j \Big( V_j + \tfrac12 P_j (v_j - \mu_j)^2 \Big) + \tfrac12 \sum_y \lambda p_y b_y^2, \qquad
          b_y = \sum_j s_{j y} c_j v_j - y,

is smooth, a label without much of a prior has as little say in it, and that rows sum to one is linear in the masses. A
few of Newton's steps among the masses that do find its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optrand.base.validation import Floats
from optrand.model.arcs import Arcs
from optrand.model.feasibility import node_equations
from optrand.model.problem import Problem
from optrand.solvers.flow.program import FlowProgram

__all__ = ["settled_primal"]

MOST = 128
"""With more arcs in use the equations, which are dense, are not worth their time."""

STEPS = 6
"""Newton's steps at most."""

RANK = 1e-11
"""Singular values below this share of the largest belong to masses that may move."""

FLAT = 1e-13
"""Directions in which the loss curves by less than this share do not move."""


@dataclass(frozen=True, eq=False)
class _Loss:
    """The loss near some arcs, by their masses (times ``E``) and then by their outputs, in the units of a program."""

    program: FlowProgram
    masses: Floats
    outputs: Floats

    @classmethod
    def of(cls, problem: Problem, arcs: Arcs) -> _Loss:
        program = FlowProgram(problem, arcs.first, arcs.last)
        return cls(program, arcs.masses / program.nodes.least, (arcs.outputs - program.centre) / program.unit)

    @cached_property
    def steepness(self) -> Floats:
        """Ratio of each label's probability to the least one in each arc, over ``E``."""
        label = np.arange(self.program.k)[:, np.newaxis]
        return np.where((self.program.first <= label) & (label <= self.program.last), 1.0, self.program.nodes.least)

    @cached_property
    def free(self) -> Floats:
        """1 for an output that may move, 0 for one on an end of its interval."""
        low, high = self.program.box
        free: Floats = ((self.outputs > low) & (self.outputs < high)).astype(np.float64)
        return free

    @cached_property
    def pull(self) -> Floats:
        """Pull of each arc at biases that have a price."""
        biases = self.steepness @ (self.masses * self.outputs) - self.program.labels
        pull: Floats = self.steepness.T @ (self.program.problem.bias_weights * biases)
        return pull

    @property
    def gradient(self) -> Floats:
        """The first derivatives."""
        program, off = self.program, self.outputs - self.program.moments.means
        by_mass = program.moments.spreads + program.moments.weights * off**2 / 2 + self.outputs * self.pull
        return np.concatenate((by_mass, self.free * self.masses * (program.moments.weights * off + self.pull)))

    @property
    def curvature(self) -> Floats:
        """The second derivatives."""
        program, every = self.program, np.arange(self.program.n)
        moved = np.hstack((self.steepness * self.outputs, self.steepness * (self.masses * self.free)))
        curvature: Floats = moved.T @ (program.problem.bias_weights[:, np.newaxis] * moved)
        mixed = self.free * (program.moments.weights * (self.outputs - program.moments.means) + self.pull)
        curvature[every, program.n + every] += mixed
        curvature[program.n + every, every] += mixed
        curvature[program.n + every, program.n + every] += np.where(
            self.free > 0, self.masses * program.moments.weights, 1.0
        )
        return curvature

    def after(self, step: Floats) -> tuple[Arcs, bool]:
        """The arcs after a step, or as much of it as leaves no mass negative; and whether that was less than all."""
        program = self.program
        change = step[: program.n]
        falling = change < 0
        room = np.full(program.n, np.inf)
        room[falling] = -self.masses[falling] / change[falling]
        length = min(1.0, float(room.min()))
        kept = room > length
        masses = (self.masses + length * change)[kept] * program.nodes.least
        outputs = program.centre + program.unit * (self.outputs + length * step[program.n :])[kept]
        outputs = np.clip(outputs, program.problem.outputs.low, program.problem.outputs.high)
        first, last = program.first[kept], program.last[kept]
        order = np.lexsort((last, first, outputs))
        return Arcs(program.k, first[order], last[order], outputs[order], masses[order]), not kept.all()


def settled_primal(problem: Problem, arcs: Arcs) -> Arcs:
    """Arcs in use, whose rows sum to 1, with the masses and outputs of least loss; as they were if none are found.

    An arc whose mass would turn negative is in no use.

    Parameters
    ----------
    problem : Problem
        Squared loss and a finite bias penalty.
    arcs : Arcs

    Notes
    -----
    ``O((k + n) n^2)`` a step for ``n`` arcs, at most 128.
    """
    arcs = arcs.only(arcs.masses > 0)
    if not 0 < arcs.n <= MOST:
        return arcs
    best, least, steps, blocked = arcs, np.inf, 0, False
    while steps < STEPS and arcs.n:
        loss, ways = _Loss.of(problem, arcs), _ways(problem, arcs)
        downhill = -ways.T @ loss.gradient
        here = float(np.abs(downhill).max(initial=0.0))
        if here < least:
            best, least = arcs, here
        elif not blocked:
            break
        step = ways @ np.linalg.lstsq(ways.T @ loss.curvature @ ways, downhill, rcond=FLAT)[0]
        arcs, blocked = loss.after(step)
        steps += not blocked
    return best


def _ways(problem: Problem, arcs: Arcs) -> Floats:
    """Orthogonal directions of masses that keep rows summing to 1, and of every output; one a column."""
    rows = node_equations(problem.k, arcs.first, arcs.last, problem.epsilon).toarray()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1.0)
    _, sizes, directions = np.linalg.svd(rows)
    rank = int((sizes > RANK * sizes.max(initial=0.0)).sum())
    ways = np.zeros((2 * arcs.n, 2 * arcs.n - rank))
    ways[: arcs.n, : arcs.n - rank] = directions[rank:].T
    ways[arcs.n :, arcs.n - rank :] = np.eye(arcs.n)
    return ways
