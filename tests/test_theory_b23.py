"""What the checks of [B23] compute, against derivations of their own; the counterexamples, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
from scipy.optimize import linprog

import optrand
from optrand.errors import Infeasible, InvalidInput
from optrand.theory import Budget, check, find
from optrand.theory.b23.grids import finer_is_better, response_loss, smallest_ratio, two_end_loss, weeks_loss
from optrand.theory.b23.noise import Descent, Stairs
from optrand.theory.b23.optima import Mesh, best_on_grid, grid, half_square, minimise, response_ends, sets
from optrand.theory.b23.predictors import Example, Noise, debiased, halfway, predictor_moves, squares_obey_the_triangle
from optrand.theory.b23.release import Rounded, release_is_private
from optrand.theory.b23.structure import AbsoluteLoss, Part
from optrand.theory.b23.transformations import Channel, staircases
from optrand.theory.draws import drawn
from optrand.theory.instances import Setting, label_set, prior
from optrand.theory.sums import largest_ratio

CLAIMS = find(paper="B23")
ONE, HALF = Fraction(1), Fraction(1, 2)
SEEDS = range(12)


def numbers(*texts: str | int) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, texts))


def posed_at(seed: int, most: int = 4) -> Setting:
    random = Random(seed)
    k = random.randint(2, most)
    return Setting(label_set(random, k), prior(random, k), 1 + Fraction(random.randint(5, 60), 10))


def test_the_names_of_all_claims_differ() -> None:
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)


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


def test_programs_without_a_point_or_without_an_optimum_are_refused() -> None:
    with pytest.raises(Infeasible, match="allow more columns"):
        minimise([ONE], [[ONE]], [-ONE])
    with pytest.raises(InvalidInput, match="no lower bound"):
        minimise([-2 * ONE, ONE], [[ONE], [-ONE]], [ONE])


def test_a_row_that_repeats_another_is_no_hindrance() -> None:
    assert minimise([ONE, 2 * ONE], [[ONE, 2 * ONE], [ONE, 2 * ONE]], [ONE, 2 * ONE])[0] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_on_a_grid_is_that_of_the_program_as_printed(seed: int) -> None:
    setting = posed_at(seed)
    outputs = grid(setting, 6)
    wider = [outputs[0] - 1, *outputs, outputs[-1] + 1]
    problem = optrand.unbiased_regression(
        [float(y) for y in setting.labels],
        [float(p) for p in setting.prior],
        math.log(setting.ratio),
        outputs=[float(v) for v in wider],
    )
    found = optrand.solve(problem, solver=optrand.solvers.LinearProgram(optrand.solvers.grid.Pairwise()))
    assert float(best_on_grid(setting, wider, half_square)[0]) == pytest.approx(found.value, rel=1e-6)


def test_two_labels_have_one_randomizer_with_two_outputs() -> None:
    two = Setting(numbers(0, 1), (HALF, HALF), Fraction(3))
    # Outputs -1/2 and 3/2: (3/2)(1/2) / 2 for either label.
    assert two_end_loss(two, *response_ends(two.labels, two.ratio)) == Fraction(3, 8)
    assert response_loss(two) == pytest.approx(3 / 8, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_there_are_two_to_the_k_less_two_staircase_columns(k: int) -> None:
    assert len(set(sets(k))) == 2**k - 2


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_the_sums_of_their_staircases(seed: int) -> None:
    random = Random(seed)
    ratio = Fraction(random.randint(11, 40), 10)
    column = [1 + (ratio - 1) * Fraction(random.randint(0, 6), 6) for _ in range(random.randint(2, 6))]
    made = staircases(column, ratio)
    assert all(mass > 0 and 0 < sum(members) < len(column) for members, mass in made)
    assert column == [sum(mass * (ratio if members[y] else 1) for members, mass in made) for y in range(len(column))]


def test_what_is_always_released_alike_needs_one_number_twice() -> None:
    # Claim 12 as printed: labels -1 and 1 released as 0. No variance may come in, so every output is 0, and its
    # column is constant: no multiple of (E, 1) or (1, E).
    setting = Setting(numbers(-1, 1), (HALF, HALF), Fraction(2))
    channel = Channel(setting, numbers(0), ((ONE,), (ONE,)))
    assert [column.output for column in channel.columns] == [0, 0]
    assert channel.merged.loss(half_square) == channel.loss(half_square) == HALF


def test_of_absolute_loss_there_may_be_no_optimum() -> None:
    # Theorem 6 as printed. No reach of the outputs has the least loss, and any loss above it is reached.
    posed = AbsoluteLoss(Setting(numbers(0, 1, 2), numbers("5/11", "5/11", "1/11"), Fraction(2)))
    assert posed.infimum == Fraction(82, 33)
    assert posed.lost == [Part((False, False, True), Fraction(2), 1)]
    within = [posed.loss_within(Fraction(reach)) for reach in (2, 20, 200, 2_000)]
    assert all(coarse > fine > posed.infimum for coarse, fine in pairwise(within))
    assert within[-1] - posed.infimum < Fraction(1, 1_000)


def test_of_absolute_loss_and_two_labels_there_is_an_optimum() -> None:
    posed = AbsoluteLoss(Setting(numbers(0, 1), (HALF, HALF), Fraction(2)))
    # Outputs -1 and 2, each label's own with probability 2/3: 2/3 + 2/3.
    assert not posed.lost
    assert posed.infimum == posed.loss_within(ONE) == Fraction(4, 3)


def test_table_one_by_hand() -> None:
    example = Example("as designed")
    rise = math.exp(0.5)
    low, high = 0.55 / (0.6 * rise + 0.4), 0.55 * rise / (0.4 * rise + 0.6)
    zero, others = (rise * low + high) / (rise + 1), (low + rise * high) / (rise + 1)
    noisy = {"a": 0.7 * zero + 0.3 * others, "b": 0.5 * zero + 0.5 * others}
    assert example.law[0] == pytest.approx([low, high])
    assert example.predictor(noisy=True) == pytest.approx(noisy)
    # Variances 0.44 at a and 0.61 at b, half of all examples each; then the squared moves of the predictor.
    assert example.loss_of_predictor(noisy=False) == pytest.approx((0.44 + 0.61) / 4)
    moves = (noisy["a"] - 0.4) ** 2 + (noisy["b"] - 0.7) ** 2
    assert example.loss_of_predictor(noisy=True) == pytest.approx((0.44 + 0.61 + moves) / 4)


def test_squared_loss_breaks_the_triangle_inequality() -> None:
    # Equation 1: labels 1 and 3 released as 2, all predicted to be 1; the prior is all on 3.
    noise = Noise((1, 3), numbers(0, 1), 1.0, halfway)
    said = squares_obey_the_triangle(noise)
    assert (said.left, said.right, said.holds) == (2, 1, False)
    (corrected,) = [each.corrected for each in find(number="B23 Equation 1") if each.corrected]
    assert corrected(noise).margin == 0
    assert not find(number="B23 Equation 1")[0].false(noise).holds


def test_the_hypothesis_of_theorem_five_must_be_about_noisy_labels_too() -> None:
    # Label 1 becomes 0 with probability 2/3, else 3. If 3, above all labels, counts twice, the best prediction
    # is (2/3 * 0 + 2/3 * 3) / (4/3) = 3/2 and not 1.
    noise = Noise((1, 2), (HALF, HALF), math.log(2), debiased)
    assert max(map(abs, noise.biases)) < 1e-15
    assert float(predictor_moves(noise).left) == pytest.approx(0.5)
    assert predictor_moves.claim.corrected is not None
    assert predictor_moves.claim.corrected(noise).holds


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("away", [False, True])
def test_descent_by_its_paths_one_by_one(curved: bool, away: bool) -> None:
    descent = Descent(2 * ONE, ONE, 4 * ONE, 5 * ONE, 2, Fraction(1, 4), curved, away)
    losses = []
    for noises in product((-4, 4), repeat=3):
        places = [ONE]
        for noise in noises:
            moved = places[-1] - Fraction(1, 10) * (descent.gradient(places[-1]) + noise)
            places.append(min(max(moved, Fraction(0)), ONE))
        losses.append(descent.loss(sum(places, Fraction(0)) / 4))
    assert descent.excess == sum(losses, Fraction(0)) / 8


def test_descent_that_a_bias_turns_round_never_arrives() -> None:
    # Slope 1, bias 2: it walks to the wrong end and stays, however long.
    assert Descent(ONE, 2 * ONE, Fraction(0), 3 * ONE, 30, Fraction(0)).excess == 1


@pytest.mark.parametrize(("length", "rise"), [(1, 1), (2, 1), (5, 3)])
def test_stairs_sum_to_one_term_by_term(length: int, rise: int) -> None:
    stairs = Stairs(Fraction(length), Fraction(rise), Fraction(2), whole=True)
    assert float(sum(stairs.density(Fraction(i)) for i in range(-60 * length, 60 * length + 1))) == pytest.approx(
        1, abs=1e-12
    )
    assert stairs.total == 1


def test_steps_of_a_staircase_are_as_high_as_defined() -> None:
    steps = Stairs(Fraction(2), ONE, Fraction(3), whole=False)
    # (1 - 1/3) / (4 (1/2 + 1/6)) = 1/4 on [0, 1), a third of it on [1, 3), a ninth on [3, 5).
    assert [steps.density(Fraction(x)) * 4 for x in (0, -1, 2, 3)] == [
        1,
        Fraction(1, 3),
        Fraction(1, 3),
        Fraction(1, 9),
    ]
    assert steps.total == 1


def test_outputs_closer_than_needed_take_a_larger_ratio() -> None:
    labels = numbers(0, 1)
    assert smallest_ratio(labels, *response_ends(labels, Fraction(5))) == 5
    assert smallest_ratio(labels, Fraction(-1, 4), Fraction(3)) == 5
    assert smallest_ratio(labels, Fraction(0), Fraction(3)) == math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_the_program_has_a_solution_from_the_smallest_ratio_on(seed: int) -> None:
    # Algorithm 1 on three outputs, exactly: feasible at the ratio, infeasible a millionth below.
    posed = posed_at(seed, most=3)
    low, high = response_ends(posed.labels, posed.ratio)
    needed = Fraction(smallest_ratio(posed.labels, low, high))
    best_on_grid(replace(posed, ratio=needed), (low, (low + high) / 2, high), half_square)
    below = replace(posed, ratio=1 + (needed - 1) * Fraction(999_999, 1_000_000))
    with pytest.raises(Infeasible):
        best_on_grid(below, (low, (low + high) / 2, high), half_square)


def test_one_more_output_may_cost() -> None:
    # Appendix G.3: labels 0, 1, 2, all equally likely, E = 3: 7/4 with three outputs, 131/72 with four.
    said = finer_is_better(Mesh(Setting(numbers(0, 1, 2), (Fraction(1, 3),) * 3, Fraction(3)), 3))
    assert (said.left, said.right) == (Fraction(131, 72), Fraction(7, 4))


def test_weeks_worked_lose_what_was_measured_before() -> None:
    # Found by column generation and by the flow solver when the package was designed.
    assert weeks_loss(0, 52) == pytest.approx(1348.3746, abs=1e-4)
    assert weeks_loss(0, 416) == pytest.approx(1278.5386, abs=1e-4)
    assert weeks_loss(1, 0) == pytest.approx(82.0103, abs=1e-4)


def test_labels_that_never_occur_keep_debiased_response_from_being_optimal() -> None:
    # Labels 0 and 2 alone: a wrong output at distance 2 with probability 1/E; with 1 among the outputs there is one
    # more at distance 1: (4 + 1) / 4 of the loss, as E grows.
    setting = Setting(numbers(0, 1, 2), (HALF, Fraction(0), HALF), Fraction(10**7))
    ends = Setting(numbers(0, 2), (HALF, HALF), setting.ratio)
    assert response_loss(setting) / response_loss(ends) == pytest.approx(5 / 4, abs=1e-6)


def test_a_label_is_rounded_with_the_variance_of_the_formula() -> None:
    # A quarter of the way from 24 to 36: 3 * 9.
    assert Rounded(Fraction(27), 4).variance(4) == 27


def test_laws_of_draws_leave_out_what_bits_do_not_decide() -> None:
    law, rest = drawn(lambda bits: int(bits.words(1)[0]) or int(bits.words(1)[0]) + 2, 1)
    assert (law, rest) == ({1: HALF}, HALF)


def test_prior_and_labels_together_spend_both_budgets() -> None:
    # Algorithm 3: of the first tiny table the bound is tight, as exact as the table's ratio is.
    release = next(iter(release_is_private.claim.instances(Budget.QUICK)))
    ratio = largest_ratio([release.law(table) for table in (release.table, release.changed)])
    assert float(ratio) == pytest.approx(math.e, rel=1e-12)
    assert release_is_private(release).holds


def test_the_same_instances_every_time() -> None:
    for claim in CLAIMS:
        first, second = (list(map(str, claim.instances(Budget.QUICK))) for _ in range(2))
        assert first == second, claim.name


def test_known_slips_are_found() -> None:
    corrected = {claim.name.removeprefix("B23 ") for claim in CLAIMS if claim.corrected}
    assert corrected == {
        "Equation 1",
        "Theorem 5",
        "Claim 13: symbols",
        "Appendix G.3: finer grids",
        "Section 3.1: variance of rounding",
        "Table 1: losses",
        "Theorem 6: existence",
        "Claim 13: step",
        "Proposition 7: last step",
        "Algorithm 3",
        "Lemma 15: tightness",
    }


def test_what_no_computation_settles_is_named() -> None:
    assert {claim.name.removeprefix("B23 ") for claim in CLAIMS if claim.quantifier} == {
        "Appendix G.3: trend",
        "Appendix G.3: figures",
        "Section 3.1: large epsilon",
        "Section 3.1: small epsilon",
        "Appendix C: error",
        "Appendix C: split",
    }


def test_a_counterexample_is_as_small_as_it_is_told() -> None:
    finding = check(next(claim for claim in CLAIMS if claim.name == "B23 Lemma 15: tightness"))
    assert str(finding.printed.broken) == "alpha = 1, R = 1, w = 0: 0.25 <= 0"
