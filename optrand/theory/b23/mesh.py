"""What a grid of outputs costs, and how that shrinks with the mesh ([B23], Lemma 8 and Appendix G.3)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from random import Random

import numpy as np

import optrand
from optrand.data import weeks_worked_counts_path
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.theory.b23.columns import absolute, best_on_grid, grid, half_square, response_ends
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.instances import Setting, label_set, prior

__all__ = ["CLAIMS", "Mesh", "weeks_loss"]

FLOATS = 1e-9
"""What certified losses are forgiven, as a share of the loss."""

MESHES = (52, 104, 208, 416, 832, 1_664)
"""Mesh sizes, with those of [B23], Appendix G.3, among them."""


@dataclass(frozen=True)
class Mesh:
    """A setting and `n` outputs from the lowest to the highest one of debiased randomized response."""

    setting: Setting
    n: int

    def __str__(self) -> str:
        return f"{self.setting}, {self.n} outputs from end to end of debiased randomized response"

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """`L` and `U`."""
        return response_ends(self.setting.labels, self.setting.ratio)

    @property
    def size(self) -> Fraction:
        """`Delta`."""
        return (self.ends[1] - self.ends[0]) / (self.n - 1)

    @property
    def steepest(self) -> Fraction:
        """The largest slope of halved squared loss between the ends, over all labels."""
        return max(abs(end - y) for end in self.ends for y in self.setting.labels)

    @cached_property
    def absolute_excess(self) -> Fraction:
        """Of absolute loss, exactly; in the interval it is piecewise linear, and outputs at ends and labels suffice."""
        everywhere = sorted({*self.ends, *self.setting.labels})
        on_grid = best_on_grid(self.setting, grid(self.setting, self.n), absolute)[0]
        return on_grid - best_on_grid(self.setting, everywhere, absolute)[0]

    @cached_property
    def squared_excess(self) -> float:
        """Of halved squared loss: from the bound that is proven for the interval to what is achieved on the grid."""
        return _achieved(self._problem(self.n)) - self._interval

    @cached_property
    def _interval(self) -> float:
        """At most the least loss of outputs between the ends of the grid."""
        outputs = self._problem(2).outputs
        posed = optrand.unbiased_regression(
            *self._floats, math.log(self.setting.ratio), outputs=optrand.Interval(outputs.low, outputs.high)
        )
        return optrand.certify(optrand.tabulate(optrand.solve(posed))).lower

    @property
    def _floats(self) -> tuple[list[float], list[float]]:
        return [float(y) for y in self.setting.labels], [float(p) for p in self.setting.prior]

    def _problem(self, n: int) -> Problem:
        epsilon = math.log(self.setting.ratio)
        outputs = optrand.feasible_output_set(self._floats[0], epsilon, n)
        return optrand.unbiased_regression(*self._floats, epsilon, outputs=outputs)


def _achieved(problem: Problem) -> float:
    return optrand.certify(optrand.tabulate(optrand.solve(problem))).require(FLOATS).upper


def _meshes(budget: Budget, *, most: int, quick: int, full: int) -> Iterator[Mesh]:
    three = Setting(tuple(map(Fraction, range(3))), (Fraction(1, 3),) * 3, Fraction(3))
    yield Mesh(Setting(three.labels[:2], (Fraction(1, 2),) * 2, Fraction(2)), 2)
    yield from (Mesh(three, n) for n in (2, 3, 6))
    # All the prior between two outputs: as E grows, the excess is what rounding costs at its worst place.
    yield Mesh(Setting(three.labels, (Fraction(0), Fraction(1), Fraction(0)), Fraction(1_000)), 2)
    random = Random(31)  # noqa: S311
    for _ in range(budget.pick(quick=quick, full=full)):
        k = random.randint(2, most)
        setting = Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(1, 60), 10))
        yield Mesh(setting, random.randint(2, 10))


@lru_cache(maxsize=2)
def _exact(budget: Budget) -> tuple[Mesh, ...]:
    """Shared by several claims, which so find each optimum once."""
    return tuple(_meshes(budget, most=4, quick=25, full=400))


def _refined(budget: Budget) -> Iterator[Mesh]:
    return _meshes(budget, most=3, quick=12, full=200)


@lru_cache(maxsize=2)
def _certified(budget: Budget) -> tuple[Mesh, ...]:
    return tuple(_meshes(budget, most=6, quick=25, full=500))


def absolute_loss_grows_by_the_mesh(mesh: Mesh) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta more."""
    return at_most(mesh.absolute_excess, mesh.size)


def absolute_loss_grows_by_less_than_half(mesh: Mesh) -> Comparison:
    """Of absolute loss a grid of mesh Delta costs at most 49/100 of Delta more."""
    return at_most(mesh.absolute_excess, mesh.size * Fraction(49, 100))


def absolute_loss_grows_by_half(mesh: Mesh) -> Comparison:
    """Of a loss with slopes of at most 1, absolute loss, a grid of mesh Delta costs at most Delta / 2 more.

    Rounding an output to its neighbours on the grid moves it by at most as much on average.
    """
    return at_most(mesh.absolute_excess, mesh.size / 2)


def _least_excess(mesh: Mesh, bound: Fraction) -> Comparison:
    return at_most(mesh.squared_excess - FLOATS * float(bound), float(bound))


def squared_loss_grows_by_range_and_mesh(mesh: Mesh) -> Comparison:
    """Of halved squared loss, whose slopes are at most U - L, a grid of mesh Delta costs at most (U - L) Delta more."""
    width = mesh.ends[1] - mesh.ends[0]
    return worst(at_most(mesh.steepest, width), _least_excess(mesh, width * mesh.size))


def squared_loss_grows_by_a_square(mesh: Mesh) -> Comparison:
    """Of halved squared loss a grid of mesh Delta costs at most Delta^2 / 8 more.

    Rounding an output to its two neighbours on the grid is unbiased and adds a variance of at most Delta^2 / 4.
    """
    return _least_excess(mesh, mesh.size**2 / 8)


def squared_loss_grows_by_less_than_a_square(mesh: Mesh) -> Comparison:
    """Of halved squared loss a grid of mesh Delta costs at most 49/50 of Delta^2 / 8 more."""
    return _least_excess(mesh, mesh.size**2 * 49 / 400)


def slopes_reach_half_the_range(mesh: Mesh) -> Comparison:
    """Between L and U the slope of halved squared loss is at most (U - L) / 2 for every label."""
    return at_most(mesh.steepest, (mesh.ends[1] - mesh.ends[0]) / 2)


def halving_the_mesh_helps(mesh: Mesh) -> Comparison:
    """The least loss on a grid does not grow as its mesh is halved: the new grid holds the old one."""
    return at_most(_on(mesh, 2 * mesh.n - 1), _on(mesh, mesh.n))


def one_more_output_helps(mesh: Mesh) -> Comparison:
    """The least loss on a grid does not grow as its mesh gets smaller by one more output."""
    return at_most(_on(mesh, mesh.n + 1), _on(mesh, mesh.n))


def _on(mesh: Mesh, n: int) -> Fraction:
    return best_on_grid(mesh.setting, grid(mesh.setting, n), half_square)[0]


@lru_cache(maxsize=len(MESHES))
def weeks_loss(n: int) -> float:
    """The least halved squared loss of weeks worked at epsilon 1 with `n` outputs, certified."""
    with weeks_worked_counts_path().open(newline="") as file:
        rows = [(float(row["label"]), float(row["count"])) for row in csv.DictReader(file)]
    labels, counts = np.array(rows).T
    outputs: Grid = optrand.feasible_output_set(labels, 1.0, n)
    return _achieved(optrand.unbiased_regression(labels, counts / counts.sum(), 1.0, outputs=outputs))


@dataclass(frozen=True)
class _Weeks:
    """Two meshes for weeks worked, a coarser and a finer one."""

    coarse: int
    fine: int

    def __str__(self) -> str:
        return f"weeks worked 1994-95, 0 to 52, epsilon 1: {self.coarse} outputs and {self.fine}"


def _weeks(budget: Budget) -> Iterator[_Weeks]:
    last = budget.pick(quick=4, full=len(MESHES))
    yield from (_Weeks(coarse, fine) for fine in MESHES[:last] for coarse in MESHES[:last] if coarse < fine)


def finer_meshes_lose_less(weeks: _Weeks) -> Comparison:
    """On weeks worked the least loss falls as the mesh gets finer."""
    return at_most(weeks_loss(weeks.fine), weeks_loss(weeks.coarse))


def fine_meshes_are_no_use(weeks: _Weeks) -> Comparison:
    """On weeks worked no finer mesh lowers the loss by more than one in a hundred."""
    return at_most(weeks_loss(weeks.coarse), 1.01 * weeks_loss(weeks.fine))


CLAIMS = (
    Claim(
        paper="B23",
        number="Lemma 8",
        hypothesis="absolute loss, whose slopes are at most 1; outputs from end to end of debiased randomized response",
        instances=_exact,
        printed=absolute_loss_grows_by_the_mesh,
        false=absolute_loss_grows_by_less_than_half,
    ),
    Claim(
        paper="B23",
        number="Lemma 8",
        part="half is enough",
        hypothesis="as of Lemma 8; half of what the paper says",
        instances=_exact,
        printed=absolute_loss_grows_by_half,
        false=absolute_loss_grows_by_less_than_half,
    ),
    Claim(
        paper="B23",
        number="Lemma 8",
        part="squared loss",
        hypothesis="halved squared loss; outputs between the ends of debiased randomized response",
        instances=_certified,
        printed=squared_loss_grows_by_range_and_mesh,
        false=slopes_reach_half_the_range,
    ),
    Claim(
        paper="B23",
        number="Lemma 8",
        part="how loose",
        hypothesis="halved squared loss; sharper than the paper, whose bound is linear in the mesh",
        instances=_certified,
        printed=squared_loss_grows_by_a_square,
        false=squared_loss_grows_by_less_than_a_square,
    ),
    Claim(
        paper="B23",
        number="Appendix G.3",
        part="finer grids",
        hypothesis="halved squared loss, grids as Algorithm 2 makes them, the mesh halved; exact optima",
        instances=_refined,
        printed=halving_the_mesh_helps,
        false=one_more_output_helps,
    ),
    Claim(
        paper="B23",
        number="Appendix G.3",
        part="trend",
        hypothesis="weeks worked of another census, epsilon 1",
        instances=_weeks,
        printed=finer_meshes_lose_less,
        false=fine_meshes_are_no_use,
        quantifier="the figures are of the 1940 census, which cannot be had here: only the trend is tried",
    ),
)
