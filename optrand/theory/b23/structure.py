"""The program as printed, existence and number of outputs of its optima ([B23], Algorithm 1, Theorem 6, Claim 11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import islice, pairwise, product
from typing import NamedTuple

import numpy as np

import optrand
from optrand.errors import Infeasible
from optrand.mechanism.paths import count_outputs
from optrand.model import losses
from optrand.programs import Pairwise, Program, Unbiased
from optrand.theory.b23.optima import (
    PROVEN,
    Members,
    Mesh,
    absolute,
    best_on_grid,
    dot,
    half_square,
    meshes,
    minimise,
    posed,
    proven,
    response_ends,
    sets,
)
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.instances import RATIOS, Instance, Setting, label_set, prior, seeded, settings, shares

__all__ = ["AbsoluteLoss", "Part"]

INTERIOR_POINT = 1e-6
"""What the answer of an interior-point method is forgiven, as a share of the loss."""


@claim(
    "B23 Algorithm 1",
    on=lambda budget: (mesh for mesh in meshes(budget, 4, 12) if mesh.setting.k > 2),
    given="halved squared loss, outputs of Algorithm 2, three or four labels",
    sides=("optimum of the program as printed", "least loss of staircase columns"),
    needs=("cvxpy",),
    false=Variant("The same where privacy is asked of neighbouring labels only.", apart=1),
)
def printed_program_is_right(mesh: Mesh, apart: int = 10) -> Comparison:
    """The program, solved as printed by cvxpy, has the loss of the best sum of staircase columns on its outputs."""
    problem, outputs = posed(mesh.setting, mesh.in_floats), mesh.in_floats.values
    places = np.arange(mesh.setting.k)
    distance = np.abs(places[:, np.newaxis] - places)
    epsilons = np.where(distance <= apart, problem.epsilon, np.inf)
    np.fill_diagonal(epsilons, 0.0)
    program = Program(problem.labels, problem.prior, outputs, privacy=Pairwise(epsilons), constraints=[Unbiased()])
    value = program.solve("CLARABEL").value
    return equal(value, float(mesh.least()), tolerance=INTERIOR_POINT)


def _all_sizes(budget: Budget) -> Iterator[Setting]:
    """A single label, edge cases, then random ones with priors that are zero or not tiny."""
    yield Setting((Fraction(3),), (Fraction(1),), Fraction(2))
    yield from islice(settings(0), 0, None, budget.pick(quick=3, full=1))
    random = seeded(4)
    for _ in range(budget.pick(quick=25, full=1_000)):
        k = random.randint(2, 12)
        weights = [max(random.randint(-4, 20), 0) for _ in range(k)]
        yield Setting(label_set(random, k), shares(weights if any(weights) else [1] * k), random.choice(RATIOS[:-1]))


@claim(
    "B23 Theorem 6: outputs",
    on=_all_sizes,
    given="halved squared loss, any finite labels and prior, any epsilon above 0; optima with a proof on the real line",
    sides=("outputs of the optimum (count)", "bound (count)"),
    false=Variant("The same with `2 k - 3` for three labels or more.", most=lambda k: max(2 * k - 3, min(k, 2))),
)
def twice_as_many_outputs(setting: Setting, most: Callable[[int], int] = lambda k: 2 * k) -> Comparison:
    """Of halved squared loss there is an optimal unbiased randomizer with at most `2 k` outputs."""
    mechanism, proof = proven(posed(setting))
    return worst(at_most(float(count_outputs(mechanism)), most(setting.k)), at_most(proof.gap, PROVEN))


class Part(NamedTuple):
    """Mass that a column has at a label, or a moment that it has beyond all labels (`side` is -1 or 1)."""

    members: Members
    label: Fraction
    side: int = 0


class AbsoluteLoss(Instance, setting=""):
    """Absolute loss with outputs anywhere on the line, as a linear program in mass at labels and moments beyond them.

    An output at distance `d` beyond the last label, of mass `c`, is to the rows and to the loss the same as mass `c` at
    that label and a moment `c d` beside it. A moment without mass is an output at infinity: the least loss is attained
    if and only if some optimum of the program has none. Convex in the distances, the loss gains nothing from outputs
    between two labels.
    """

    setting: Setting

    @cached_property
    def columns(self) -> dict[Part, list[Fraction]]:
        """Coefficients of each variable of the program in its rows, and in the loss."""
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
        """What no unbiased randomizer goes below, and some come as near to as one likes."""
        return self._optimum()[0]

    @cached_property
    def lost(self) -> list[Part]:
        """Moments that every optimum needs, of columns that have no mass beside them in any optimum."""
        used = self._optimum()[1]
        moments = [part for part in used if part.side and part._replace(side=0) not in used]
        return [part for part in moments if self._needed(part) and not self._mass(part)]

    def loss_within(self, reach: Fraction) -> Fraction:
        """The least loss with outputs at most `reach` beyond the labels."""
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
        """The most mass at the label from which a moment starts, over all optima."""
        costs = [Fraction(-int(part == moment._replace(side=0))) for part in self.columns]
        right = [*[Fraction(1)] * self.setting.k, *self.setting.labels, self.infimum]
        return -minimise(costs, list(self.columns.values()), right)[0]


def _absolute_losses(budget: Budget) -> Iterator[AbsoluteLoss]:
    three, priors = tuple(map(Fraction, range(3))), ((1, 1), (0, 1), (1, 1, 1), (5, 5, 1), (1, 1, 0), (0, 1, 0))
    for ratio, weights in product(map(Fraction, ("2", "11/10", "100")), priors):
        yield AbsoluteLoss(Setting(three[: len(weights)], shares(weights), ratio))
    random = seeded(2)
    for _ in range(budget.pick(quick=6, full=200)):
        k = random.randint(2, 4)
        yield AbsoluteLoss(Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(1, 60), 10)))


@claim(
    "B23 Theorem 6: existence",
    on=_absolute_losses,
    given="absolute loss, which is convex and least at the label; any finite labels, prior and epsilon",
    sides=("outputs, loss, or settings without an optimum", "bound, loss on a finer grid, or zero"),
    false=Variant(
        "Of absolute loss one exists if no label has the prior 0.",
        lambda posed: none(len(posed.lost) if all(posed.setting.prior) else 0),
    ),
)
def there_is_an_optimum(absolute_loss: AbsoluteLoss) -> Comparison:
    """Of any convex loss that is least at the label, absolute loss for one, an optimal unbiased randomizer exists."""
    return none(len(absolute_loss.lost))


@there_is_an_optimum.corrected
def _(absolute_loss: AbsoluteLoss) -> Comparison:
    """Of any convex loss and outputs in a feasible box an optimal one exists, with at most `2 k` outputs.

    Without a box there is one if the loss grows faster than linearly, as squared loss does.
    """
    setting = absolute_loss.setting
    box = sorted({*setting.labels, *response_ends(setting.labels, setting.ratio)})
    finer = best_on_grid(setting, sorted([*box, *((a + b) / 2 for a, b in pairwise(box))]), absolute)[0]
    labels, weights, outputs = ([float(x) for x in row] for row in (setting.labels, setting.prior, box))
    outputs[0], outputs[-1] = outputs[0] - 1e-9 * abs(outputs[0]), outputs[-1] + 1e-9 * abs(outputs[-1])
    asked = optrand.regression(
        labels, weights, math.log(setting.ratio), loss=losses.absolute, bias_penalty=math.inf, outputs=outputs
    )
    mechanism, proof = proven(asked)
    near = equal(proof.upper, float(finer), tolerance=INTERIOR_POINT)
    return worst(at_most(float(mechanism.n), 2 * setting.k), at_most(proof.gap, INTERIOR_POINT), near)


def _on_grid(budget: Budget) -> Iterator[Mesh]:
    three = tuple(map(Fraction, range(3)))
    for ratio, weights in product((min(RATIOS), max(RATIOS)), ((1, 1, 1), (1, 0, 1), (0, 1, 0))):
        yield Mesh(Setting(three, shares(weights), ratio), 5)
    yield from meshes(budget, 4, 12)


def _is_interval(members: Members) -> bool:
    places = [i for i, member in enumerate(members) if member]
    return places[-1] - places[0] + 1 == len(places)


@claim(
    "B23 Claim 11: on a grid",
    on=_on_grid,
    given="halved squared or absolute loss, any prior, outputs on a grid; exact optima",
    sides=("least loss of outputs that favour intervals", "least loss of all"),
    false=Variant(
        "The same of outputs that favour all labels up to one, or from one on.",
        kept=lambda members: sorted(members) in (list(members), list(reversed(members))),
    ),
)
def intervals_are_enough(mesh: Mesh, kept: Callable[[Members], bool] = _is_interval) -> Comparison:
    """No unbiased randomizer does better than those whose outputs favour neighbouring labels."""
    return worst(*(equal(mesh.least(loss, kept=kept), mesh.least(loss)) for loss in (half_square, absolute)))
