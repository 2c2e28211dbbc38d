"""Checks of [B23], against independent derivations."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
from asserting import assert_error
from scipy.optimize import linprog

from optrand.baselines._noise import StaircaseNoise
from optrand.errors import Infeasible
from optrand.theory._shared import Setting, label_set, prior
from optrand.theory.b23.grids import Descent, smallest_ratio, stair_chance
from optrand.theory.b23.optima import (
    FAR,
    Column,
    absolute_infimum,
    absolute_within,
    best_on_grid,
    half_square,
    minimise,
    response_ends,
)
from optrand.theory.b23.predictors import predict, predictor_loss, table_1
from optrand.theory.b23.transformations import move_forward, staircases

ONE, HALF = Fraction(1), Fraction(1, 2)
SEEDS = range(5)


def numbers(*texts: str | int) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, texts))


def posed_at(seed: int, most: int = 4) -> Setting:
    random = Random(seed)
    k = random.randint(2, most)
    return Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(5, 60), 10))


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_programs_have_the_optimum_of_a_solver_in_floats(seed: int) -> None:
    random = Random(seed)
    rows, count = random.randint(1, 4), random.randint(4, 9)
    columns = [[Fraction(random.randint(-3, 5)) for _ in range(rows)] for _ in range(count)]
    costs = [Fraction(random.randint(0, 9)) for _ in range(count)]
    right = [sum((column[i] for column in columns[: rows + 1]), Fraction(0)) for i in range(rows)]
    value, amounts = minimise(costs, columns, right)
    answer = linprog(np.array(costs, float), A_eq=np.array(columns, float).T, b_eq=np.array(right, float))
    assert float(value) == pytest.approx(answer.fun, abs=1e-9)
    assert all(sum(x * column[i] for x, column in zip(amounts, columns, strict=True)) == right[i] for i in range(rows))
    assert sum(x > 0 for x in amounts) <= rows


def test_programs_without_a_point_or_an_optimum_are_refused_and_repeated_rows_are_not() -> None:
    assert minimise([ONE, 2 * ONE], [[ONE, 2 * ONE], [ONE, 2 * ONE]], [ONE, 2 * ONE])[0] == 1
    assert_error("allow more columns", minimise, [ONE], [[ONE]], [-ONE], error=Infeasible)
    assert_error("no lower bound", minimise, [-2 * ONE, ONE], [[ONE], [-ONE]], [ONE])


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_the_sums_of_their_staircases(seed: int) -> None:
    random = Random(seed)
    ratio = Fraction(random.randint(11, 40), 10)
    column = [1 + (ratio - 1) * Fraction(random.randint(0, 6), 6) for _ in range(random.randint(2, 6))]
    made = staircases(column, ratio)
    assert all(mass > 0 and 0 < sum(members) < len(column) for members, mass in made)
    assert column == [sum(mass * (ratio if members[y] else 1) for members, mass in made) for y in range(len(column))]


def test_columns_of_one_output_are_split_so_that_their_labels_move_forward() -> None:
    # Favoured: label 1 by 4, label 2 by all 6, label 3 by 1. Label 1 leaves after 4 of 6, label 3 joins after 5.
    columns = [Column(favoured(*labels), 0, mass) for labels, mass in (((1, 2), 3), ((1, 2, 3), 1), ((2,), 2))]
    split = [(column.members, column.mass) for column in move_forward(columns)]
    assert split == [(favoured(1, 2), 4), (favoured(2), 1), (favoured(2, 3), 1)]
    # No label is favoured by both.
    apart = [Column(favoured(2), 0, 1), Column(favoured(0, 1), 0, 1)]
    assert move_forward(apart) == apart[::-1]


def favoured(*labels: int) -> tuple[bool, ...]:
    return tuple(y in labels for y in range(4))


def test_of_absolute_loss_there_may_be_no_optimum() -> None:
    # Theorem 6 as printed. No reach of the outputs has the least loss, and any loss above it is reached.
    setting = Setting(numbers(0, 1, 2), numbers("5/11", "5/11", "1/11"), Fraction(2))
    infimum = absolute_infimum(setting)
    assert infimum == Fraction(82, 33)
    within = [absolute_within(setting, Fraction(reach)) for reach in (2, 20, 200, 2_000, FAR)]
    assert all(coarse > fine > infimum for coarse, fine in pairwise(within))
    assert within[3] - infimum < Fraction(1, 1_000)
    alike = Setting(numbers(0, 1, 2), numbers("1/3", "1/3", "1/3"), Fraction(2))
    assert absolute_within(alike, FAR) == absolute_infimum(alike)


def test_table_one_by_hand() -> None:
    rise = math.exp(0.5)
    low, high = 0.55 / (0.6 * rise + 0.4), 0.55 * rise / (0.4 * rise + 0.6)
    zero, others = (rise * low + high) / (rise + 1), (low + rise * high) / (rise + 1)
    noisy = {"a": 0.7 * zero + 0.3 * others, "b": 0.5 * zero + 0.5 * others}
    assert table_1("as designed")[0] == pytest.approx([low, high])
    assert predict("as designed", noisy=True) == pytest.approx(noisy)
    # Variances 0.44 at a and 0.61 at b, half of all examples each. Then the squared moves of the predictor.
    assert predictor_loss("as designed", noisy=False) == pytest.approx((0.44 + 0.61) / 4)
    moves = (noisy["a"] - 0.4) ** 2 + (noisy["b"] - 0.7) ** 2
    assert predictor_loss("as designed", noisy=True) == pytest.approx((0.44 + 0.61 + moves) / 4)


def test_descent_by_its_paths_one_by_one() -> None:
    descent = Descent(2 * ONE, ONE, 4 * ONE, 5 * ONE, Fraction(1, 4), 2)
    losses = []
    for noises in product((-4, 4), repeat=3):
        places = [ONE]
        for noise in noises:
            moved = places[-1] - Fraction(1, 10) * (descent.gradient(places[-1]) + noise)
            places.append(min(max(moved, Fraction(0)), ONE))
        losses.append(2 * abs(sum(places, Fraction(0)) / 4 - Fraction(1, 4)))
    assert descent.excess == sum(losses, Fraction(0)) / 8


@pytest.mark.parametrize("seed", SEEDS)
def test_the_program_has_a_solution_from_the_smallest_ratio_on(seed: int) -> None:
    # Algorithm 1 on three outputs, exactly: feasible at the ratio, infeasible a millionth below.
    posed = posed_at(seed, most=3)
    low, high = response_ends(posed.labels, posed.ratio)
    needed = Fraction(smallest_ratio(posed.labels, low, high))
    best_on_grid(replace(posed, ratio=needed), (low, (low + high) / 2, high), half_square)
    below = replace(posed, ratio=1 + (needed - 1) * Fraction(999_999, 1_000_000))
    assert_error(None, best_on_grid, below, (low, (low + high) / 2, high), half_square, error=Infeasible)


@pytest.mark.parametrize(("length", "rise"), [(1, 1), (3, 2), (7, 3)])
def test_probabilities_of_the_package_are_those_of_the_definition(length: int, rise: int) -> None:
    lattice = StaircaseNoise(math.log(2.5), length, rise, 1)
    expected = [float(stair_chance(i, length, rise, Fraction(5, 2))) for i in range(20)]
    assert lattice.density(np.arange(20.0)).tolist() == pytest.approx(expected, rel=1e-11)
