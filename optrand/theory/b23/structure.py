"""The program as printed, existence and number of outputs of its optima ([B23], Algorithm 1, Theorem 6, Claim 11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

import numpy as np

import optrand
from optrand.errors import Infeasible
from optrand.model import losses
from optrand.programs import Pairwise, Program, Unbiased
from optrand.studies.paths import count_outputs
from optrand.theory.b23.optima import (
    THREE,
    Cost,
    Members,
    Mesh,
    absolute,
    best_on_grid,
    dot,
    half_square,
    meshes,
    minimise,
    pose,
    prove,
    response_ends,
    sets,
)
from optrand.theory.engine import Comparison, at_most, claim, corrected, draws, equal, false
from optrand.theory.instances import RATIOS, Setting, label_set, prior, settings, shares

INTERIOR_POINT = 1e-6
"""Tolerance for the answer of an interior-point method, as a share of the loss."""


@claim(
    "B23 Algorithm 1",
    *meshes(4, 8),
    given="halved squared loss, outputs of Algorithm 2, three or four labels",
    where=lambda mesh: mesh.setting.k > 2,
)
@false("The same where privacy is asked of neighbouring labels only.", apart=1)
def printed_program_is_right(mesh: Mesh, apart: int = 10) -> Comparison:
    """The program, solved as printed, has the loss of the best sum of staircase columns on its outputs."""
    problem, outputs = pose(mesh.setting, mesh.in_floats), mesh.in_floats.values
    places = np.arange(mesh.setting.k)
    distance = np.abs(places[:, np.newaxis] - places)
    epsilons = np.where(distance <= apart, problem.epsilon, np.inf)
    np.fill_diagonal(epsilons, 0.0)
    program = Program(problem.labels, problem.prior, outputs, privacy=Pairwise(epsilons), constraints=[Unbiased()])
    return equal(program.solve("CLARABEL").value, float(mesh.least()), tolerance=INTERIOR_POINT)


def _draw_setting(draw: Random) -> Setting:
    """Return a random setting with priors that are zero or not tiny."""
    k = draw.randint(2, 12)
    weights = [max(draw.randint(-4, 20), 0) for _ in range(k)]
    return Setting(label_set(draw, k), shares(weights if any(weights) else [1] * k), draw.choice(RATIOS[:-1]))


@claim(
    "B23 Theorem 6: outputs",
    lambda _: [Setting((Fraction(3),), (Fraction(1),), Fraction(2)), *settings(0)(1)][::5],
    draws(12, _draw_setting),
    given="halved squared loss, any finite labels and prior, epsilon above 0 and at most log(3000); optima on the real "
    "line, proven to 1e-9",
    where=lambda setting: setting.ratio <= 3000,
)
@false("The same with `2 k - 3` for three labels or more.", most=lambda k: max(2 * k - 3, min(k, 2)))
def twice_as_many_outputs(setting: Setting, most: Callable[[int], int] = lambda k: 2 * k) -> Comparison:
    """Of halved squared loss there is an optimal unbiased randomizer with at most `2 k` outputs."""
    return at_most(count_outputs(prove(pose(setting))[0]), most(setting.k))


class Part(NamedTuple):
    """Mass that a column has at a label, or a moment that it has beyond all labels (`side` is -1 or 1)."""

    members: Members
    label: Fraction
    side: int = 0


@dataclass(frozen=True)
class AbsoluteLoss:
    """Absolute loss with outputs anywhere on the line, as a linear program in mass at labels and moments beyond them.

    An output at distance `d` beyond the last label, of mass `c`, is to the rows and to the loss the same as mass `c` at
    that label and a moment `c d` beside it. A moment without mass is an output at infinity: the least loss is attained
    if and only if some optimum of the program has none. Convex in the distances, the loss gains nothing from outputs
    between two labels.
    """

    setting: Setting

    @cached_property
    def columns(self) -> dict[Part, list[Fraction]]:
        """Coefficients of each variable of the program in its rows and in the loss."""
        labels, made = self.setting.labels, {}
        ends = [*((label, 0) for label in labels), (labels[0], -1), (labels[-1], 1)]
        for part in (Part(members, *end) for members in sets(self.setting.k) for end in ends):
            weights = [self.setting.ratio if member else Fraction(1) for member in part.members]
            losses = [Fraction(1) if part.side else absolute(part.label, y) for y in labels]
            loss = dot([weight * p for weight, p in zip(weights, self.setting.prior, strict=True)], losses)
            masses = [Fraction(0) if part.side else weight for weight in weights]
            made[part] = [*masses, *((part.side or part.label) * weight for weight in weights), loss]
        return made

    @cached_property
    def infimum(self) -> Fraction:
        """The infimum of the losses of unbiased randomizers."""
        return self._optimum()[0]

    @cached_property
    def lost(self) -> list[Part]:
        """Moments that every optimum needs, of columns that have no mass beside them in any optimum."""
        used = self._optimum()[1]
        moments = [part for part in used if part.side and part._replace(side=0) not in used]
        return [part for part in moments if self._needed(part) and not self._mass(part)]

    def loss_within(self, reach: Fraction) -> Fraction:
        """Return the least loss with outputs at most `reach` beyond the labels."""
        labels = self.setting.labels
        return best_on_grid(self.setting, [labels[0] - reach, *labels, labels[-1] + reach], absolute)[0]

    def _optimum(self, without: Part | None = None) -> tuple[Fraction, list[Part]]:
        kept = {part: column for part, column in self.columns.items() if part != without}
        right = [*[Fraction(1)] * self.setting.k, *self.setting.labels]
        value, amounts = minimise([c[-1] for c in kept.values()], [c[:-1] for c in kept.values()], right)
        return value, [part for part, amount in zip(kept, amounts, strict=True) if amount]

    def _needed(self, part: Part) -> bool:
        """Whether the least loss without it is larger."""
        try:
            return self._optimum(part)[0] > self.infimum
        except Infeasible:
            return True

    def _mass(self, moment: Part) -> Fraction:
        """Return the most mass at the label from which a moment starts, over all optima."""
        costs = [Fraction(-int(part == moment._replace(side=0))) for part in self.columns]
        right = [*[Fraction(1)] * self.setting.k, *self.setting.labels, self.infimum]
        return -minimise(costs, list(self.columns.values()), right)[0]


def _absolute_losses(_: int) -> Iterator[AbsoluteLoss]:
    priors = ((1, 1), (0, 1), (1, 1, 1), (5, 5, 1), (1, 1, 0), (0, 1, 0))
    for ratio, weights in product(map(Fraction, ("2", "11/10", "100")), priors):
        yield AbsoluteLoss(Setting(THREE[: len(weights)], shares(weights), ratio))


def _draw_absolute_loss(draw: Random) -> AbsoluteLoss:
    k = draw.randint(2, 4)
    return AbsoluteLoss(Setting(label_set(draw, k), prior(draw, k), 1 + Fraction(draw.randint(1, 60), 10)))


def _box_has_an_optimum(absolute_loss: AbsoluteLoss) -> Comparison:
    """Compare the package's optimum on the corners of a box with the exact one on a finer grid, and `n` with `2 k`."""
    setting = absolute_loss.setting
    box = sorted({*setting.labels, *response_ends(setting.labels, setting.ratio)})
    finer = best_on_grid(setting, sorted([*box, *((a + b) / 2 for a, b in pairwise(box))]), absolute)[0]
    outputs = [float(v) for v in box]
    outputs[0] -= 1e-9 * abs(outputs[0])
    outputs[-1] += 1e-9 * abs(outputs[-1])
    labels, weights = setting.floats
    mechanism, proof = prove(
        optrand.regression(
            labels, weights, math.log(setting.ratio), loss=losses.absolute, bias_penalty=math.inf, outputs=outputs
        ),
        INTERIOR_POINT,
    )
    least = float(finer)
    bounds = [least + INTERIOR_POINT * least, proof.upper + INTERIOR_POINT * least, 2 * setting.k]
    return at_most([proof.upper, least, mechanism.n], bounds)


@claim(
    "B23 Theorem 6: existence",
    _absolute_losses,
    draws(6, _draw_absolute_loss),
    given="absolute loss, which is convex and least at the label; any finite labels, prior and epsilon; counted are "
    "outputs at infinity that every optimum needs",
)
@corrected(
    "Of any convex loss and outputs in a feasible box an optimal one exists, with at most `2 k` outputs.",
    _box_has_an_optimum,
)
@false("Of absolute loss one exists if no label has the prior 0.", where=lambda loss: all(loss.setting.prior))
def there_is_an_optimum(absolute_loss: AbsoluteLoss) -> Comparison:
    """Of any convex loss that is least at the label, absolute loss for one, an optimal unbiased randomizer exists."""
    return equal(len(absolute_loss.lost), 0)


def _extreme_meshes(_: int) -> Iterator[Mesh]:
    for ratio, weights in product((min(RATIOS), max(RATIOS)), ((1, 1, 1), (1, 0, 1), (0, 1, 0))):
        yield Mesh(Setting(THREE, shares(weights), ratio), 5)


def _is_interval(members: Members) -> bool:
    places = [i for i, member in enumerate(members) if member]
    return places[-1] - places[0] + 1 == len(places)


def _is_end(members: Members) -> bool:
    return sorted(members) in (list(members), list(reversed(members)))


@claim(
    "B23 Claim 11: on a grid",
    _extreme_meshes,
    *meshes(4, 8),
    given="halved squared or absolute loss, any prior, outputs on a grid; exact optima",
)
@false("The same of outputs that favour all labels up to one, or from one on.", kept=_is_end)
def intervals_are_enough(mesh: Mesh, kept: Callable[[Members], bool] = _is_interval) -> Comparison:
    """No unbiased randomizer does better than those whose outputs favour neighbouring labels."""
    costs: tuple[Cost, ...] = (half_square, absolute)
    return equal([mesh.least(cost, kept=kept) for cost in costs], [mesh.least(cost) for cost in costs])
