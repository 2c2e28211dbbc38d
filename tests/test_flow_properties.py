"""Properties of every optimal randomizer on a line: symmetry, order, structure, its proof."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from asserting import assert_error
from oracle import cone_program

from optrand import (
    Certificate,
    Grid,
    Interval,
    Mechanism,
    Problem,
    certify,
    feasible_output_set,
    regression,
    solve,
    unbiased_range,
    unbiased_regression,
)
from optrand.closed_forms._regression import design_debiased_rr
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._problem import Line
from optrand.model._randomizer import Arcs, Randomizer, Staircase, decompose
from optrand.programs import algorithm1
from optrand.solvers import BinPath, ColumnGeneration, design
from optrand.solvers._cones import solve_cones
from optrand.solvers._optimality import candidates

PROVEN = 1e-8
"""The relative gap within which an answer counts as proven."""

SAME = 1e-9
"""How far, relatively, two proven answers to one question may differ."""

LINEAR = 1e-8
"""Tolerance if one of them comes from a linear program, whose own tolerances are absolute."""

WITNESS = 1e-6
"""Tolerance if one of them comes from an interior-point method in another form."""

Make = Callable[[int], Problem]
Given = tuple[np.random.Generator, np.ndarray, np.ndarray, float]


# ---------------------------------------------------------------------------------------------------------- populations
def given_by(seed: int, *, largest: int = 9, zeros: bool = True) -> Given:
    """Labels in 64ths, so that moving and turning them is exact, a prior, and a budget from 0.05 to 6."""
    rng = np.random.default_rng([23, seed])
    k = int(rng.integers(2, largest + 1))
    spacing = (np.full(k, 64), rng.integers(1, 200, k), np.where(rng.random(k) < 0.5, 1, 640))[seed % 3]
    labels = np.cumsum(spacing) / 64 - rng.integers(5)
    prior = rng.dirichlet(np.ones(k))
    if zeros and seed % 4 == 3:
        prior[rng.permutation(k)[: (k - 1) // 2]] = 0.0
    return rng, labels, prior / prior.sum(), math.exp(rng.uniform(math.log(0.05), math.log(6.0)))


def unbiased(seed: int) -> Problem:
    return unbiased_regression(*given_by(seed)[1:])


def generic(seed: int) -> Problem:
    """Without bias, of a prior that is positive and spread: its optimum is unique."""
    _, labels, prior, epsilon = given_by(seed, zeros=False)
    return unbiased_regression(labels, 0.8 * prior + 0.2 / prior.size, epsilon)


def priced(seed: int) -> Problem:
    rng, labels, prior, epsilon = given_by(seed)
    return regression(labels, prior, epsilon, bias_penalty=math.exp(rng.uniform(math.log(0.01), math.log(100.0))))


def boxed(seed: int) -> Problem:
    rng, labels, prior, epsilon = given_by(seed)
    low, high = unbiased_range(labels, epsilon)
    below, above = rng.uniform(0.002, 0.05, 2) * (high - low)
    return unbiased_regression(labels, prior, epsilon, outputs=Interval(low - below, high + above))


def cramped(seed: int) -> Problem:
    rng, labels, prior, epsilon = given_by(seed)
    below, above = rng.uniform(-0.3, 0.3, 2) * np.ptp(labels)
    return regression(
        labels,
        prior,
        epsilon,
        bias_penalty=math.exp(rng.uniform(math.log(0.1), math.log(1000.0))),
        outputs=Interval(labels[0] - below, labels[-1] + above),
    )


every_kind = pytest.mark.parametrize("make", [unbiased, priced, boxed, cramped], ids=lambda make: str(make.__name__))
seeds = pytest.mark.parametrize("seed", [1, 3, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 12))])


def proven(problem: Problem) -> tuple[Solution, Certificate]:
    solution = design(problem)
    return solution, certify(tabulate(solution)).require(gap=PROVEN)


@pytest.mark.parametrize("make", [boxed, cramped])
def test_ends_of_intervals_hold_outputs_back(make: Make) -> None:
    """So that the other tests run on such intervals as well, and not only on wide ones."""
    held = 0
    for problem in map(make, range(8)):
        outputs = proven(problem)[0].randomizer.outputs
        held += bool(np.isin(outputs, (problem.outputs.low, problem.outputs.high)).any())
    assert held >= 4


def value(problem: Problem) -> float:
    return proven(problem)[1].upper


def arcs_of(solution: Solution) -> Arcs:
    arcs = solution.randomizer.arcs
    assert arcs is not None
    return arcs


# ------------------------------------------------------------------------------------------------------------- symmetry
def moved(problem: Problem, factor: float, shift: float) -> Problem:
    """The problem of the labels ``factor * y + shift``."""
    outputs = problem.outputs
    if isinstance(outputs, Interval):
        outputs = Interval(*sorted((factor * outputs.low + shift, factor * outputs.high + shift)))
    return regression(
        factor * problem.labels + shift,
        problem.prior,
        problem.epsilon,
        bias_penalty=problem.bias_penalty,
        outputs=outputs,
    )


@every_kind
@seeds
@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (-700.0, 1e5)], ids=str)
def test_values_move_with_the_labels(make: Make, seed: int, factor: float, shift: float) -> None:
    """Half a squared error is multiplied by the square of the scale, bias charged or not, and nothing else matters."""
    problem = make(seed)
    assert value(moved(problem, factor, shift)) == pytest.approx(factor**2 * value(problem), rel=SAME)


@seeds
@pytest.mark.parametrize(("factor", "shift"), [(4.0, -30.0), (-1.0, 7.0)], ids=str)
def test_unique_randomizers_move_with_the_labels(seed: int, factor: float, shift: float) -> None:
    problem = generic(seed)
    before, after = (arcs_of(design(each)) for each in (problem, moved(problem, factor, shift)))
    places = slice(None) if factor > 0 else slice(None, None, -1)
    first, last = (
        (before.first, before.last) if factor > 0 else (problem.k - 1 - before.last, problem.k - 1 - before.first)
    )
    assert (after.first.tolist(), after.last.tolist()) == (first[places].tolist(), last[places].tolist())
    assert after.masses == pytest.approx(before.masses[places], rel=1e-7)
    reach = float(np.ptp(before.outputs))
    assert (after.outputs - shift) / factor == pytest.approx(before.outputs[places], abs=1e-9 * reach)


# ---------------------------------------------------------------------------------------------------------------- order
@every_kind
@seeds
def test_a_larger_budget_is_proven_to_lose_less(make: Make, seed: int) -> None:
    """An epsilon-DP randomizer is private for every larger epsilon: the loss falls, and by more than any gap."""
    problem = make(seed)
    if make is boxed:
        # Outputs that suffice for one budget suffice for all larger ones.
        outputs = Interval(*(np.array([-1.1, 1.1]) * 25 * np.ptp(problem.labels) + problem.labels.mean()))
        problem = replace(problem, outputs=outputs)
    proofs = [proven(replace(problem, epsilon=epsilon))[1] for epsilon in (0.05, 0.2, 0.7, 1.5, 3.0, 5.0)]
    # If bias is cheap and privacy dear, a constant may be best at more than one budget.
    dearest = proofs[0].upper
    for before, after in itertools.pairwise(proofs):
        assert after.lower <= before.upper * (1 + SAME)
        assert after.upper < before.lower or (not problem.unbiased and after.upper >= dearest * (1 - 1e-3))
    assert proofs[-1].upper < proofs[0].lower


PENALTIES = (0.0, 0.03, 0.3, 1.0, 3.0, 30.0, 1000.0, math.inf)


@pytest.mark.parametrize("outputs", ["line", "interval"])
@seeds
def test_the_frontier_of_bias_and_variance(outputs: str, seed: int) -> None:
    r"""Find the randomizer of least ``V + penalty * B / 2``, for noisy label loss ``V`` and squared bias ``B``.

    A minimum of functions that are affine in the penalty is concave and does not fall. The larger the penalty, the less
    the bias and the more the rest. Both ends have solvers of their own.
    """
    _, labels, prior, epsilon = given_by(seed)
    low, high = unbiased_range(labels, epsilon)
    allowed = Interval(low - 0.1, high + 0.3) if outputs == "interval" else None
    problems = [regression(labels, prior, epsilon, bias_penalty=penalty, outputs=allowed) for penalty in PENALTIES]
    solutions, proofs = zip(*map(proven, problems), strict=True)
    charges = [float(prior @ solution.randomizer.biases**2) / 2 for solution in solutions]
    rest = [replace(p, bias_penalty=0.0).value(s.randomizer) for p, s in zip(problems, solutions, strict=True)]
    slack = SAME * proofs[-1].upper
    for i, j in itertools.pairwise(range(len(PENALTIES))):
        assert proofs[j].upper >= proofs[i].upper - slack
        assert charges[j] <= charges[i] + 1e-6 * max(charges[0], slack)
        assert rest[j] >= rest[i] - 1e-6 * rest[-1]
        # The optimum of a smaller penalty is feasible for a larger one: a tangent, above a concave function.
        if PENALTIES[j] < math.inf:
            assert proofs[j].upper <= proofs[i].upper + (PENALTIES[j] - PENALTIES[i]) * charges[i] + slack
    assert proofs[0].upper == pytest.approx(BinPath()(problems[0]).value, rel=SAME)
    assert proofs[-2].upper <= proofs[-1].upper + slack
    assert charges[-1] <= 1e-20 * np.ptp(labels) ** 2


@every_kind
@seeds
def test_values_are_concave_in_the_prior(make: Make, seed: int) -> None:
    """The loss of each randomizer is linear in the prior, so that the least of them all is concave."""
    one = make(seed)
    other = replace(one, prior=np.roll(one.prior, 1))
    mixture = replace(one, prior=0.3 * one.prior + 0.7 * other.prior)
    assert value(mixture) >= (0.3 * value(one) + 0.7 * value(other)) * (1 - SAME)


@seeds
def test_more_room_for_outputs_never_hurts_and_the_optimum_knows_how_much_it_needs(seed: int) -> None:
    problem = unbiased(seed)
    low, high = unbiased_range(problem.labels, problem.epsilon)
    width = high - low
    proofs = [
        proven(replace(problem, outputs=Interval(low - share * width, high + share * width)))[1]
        for share in (0.003, 0.02, 0.1, 0.5)
    ]
    line, best = proven(problem)
    for before, after in itertools.pairwise([*proofs, best]):
        assert after.upper <= before.upper * (1 + SAME)
    outputs = line.randomizer.outputs
    hull = replace(problem, outputs=Interval(min(outputs[0], low), max(outputs[-1], high)))
    assert value(hull) == pytest.approx(best.upper, rel=SAME)


# ---------------------------------------------------------------------------------------------------------------- grids
@seeds
def test_grids_are_refined_towards_the_line_as_fast_as_is_proven(seed: int) -> None:
    r"""[B23] Lemma 8 allows a mesh of width :math:`\Delta` on ``[L, U]`` an excess of :math:`(U - L) \Delta`.

    Half squared error allows less. Unbiased rounding of the output ``v`` to its neighbours ``a < b`` adds
    :math:`\tfrac12 E[(v - a)(b - v)]`, since its error has mean 0 for every label, and no more than
    :math:`\Delta^2 / 8`.
    """
    _, labels, prior, epsilon = given_by(seed)
    meshes = [feasible_output_set(labels, epsilon, n) for n in (3, 5, 9, 17, 33)]
    low, high = meshes[0].low, meshes[0].high
    line = value(unbiased_regression(labels, prior, epsilon))
    interval = value(unbiased_regression(labels, prior, epsilon, outputs=Interval(low, high)))
    assert line <= interval * (1 + SAME)
    before = math.inf
    for mesh in meshes:
        here = value(unbiased_regression(labels, prior, epsilon, outputs=mesh))
        width = float(np.diff(mesh.values).max())
        excess = here - interval
        assert here <= before * (1 + SAME)
        assert -SAME * here <= excess <= width**2 / 8 + SAME * here
        assert excess <= (high - low) * width
        before = here


@dataclass(frozen=True)
class Merged:
    """The columns of a table by their sets of labels, one each, at the mean of their outputs."""

    matrix: np.ndarray
    outputs: np.ndarray
    spread: float

    @classmethod
    def of(cls, randomizer: Randomizer) -> Merged:
        ratio = math.exp(randomizer.epsilon)
        columns = decompose(randomizer, ratio, negligible=1e-9)
        sets, which = np.unique(columns.members, axis=1, return_inverse=True)
        masses = np.bincount(which, columns.masses)
        outputs = np.bincount(which, columns.masses * columns.outputs) / masses
        apart = columns.outputs - outputs[which]
        return cls(np.where(sets, ratio, 1.0) * masses, outputs, float(columns.masses @ apart**2))


@pytest.mark.parametrize("make", [unbiased, priced])
@seeds
def test_columns_in_use_are_at_right_angles_to_shifts_and_stretches(make: Make, seed: int) -> None:
    """On the line, so that of their totals and first moments no more than ``2 k - 2`` are independent."""
    solution = proven(make(seed))[0]
    assert solution.dual is not None
    problem, arcs = solution.problem, arcs_of(solution)
    pull = solution.dual.beta + problem.prior * problem.labels
    ground = solution.dual.alpha - problem.prior * problem.labels**2 / 2
    members = Staircase.of_arcs(arcs).members
    columns = np.where(members, 1.0, math.exp(-problem.epsilon))
    used = np.vstack((columns, columns * arcs.outputs))
    for one, other in ((pull, -problem.prior), (2 * ground, pull)):
        turned = np.concatenate((one, other))
        assert turned @ used == pytest.approx(0.0, abs=1e-7 * float((np.abs(turned) @ np.abs(used)).max()))
    assert (members.all(axis=0) <= (arcs.n == 1)).all()


@seeds
def test_merging_the_outputs_of_a_signature_never_hurts(seed: int) -> None:
    r"""Merge columns of a grid's optimum of one signature, as [B23] calls it, at the mean of their outputs.

    Rows and means stay, and so does privacy. By Jensen's inequality the loss falls, strictly if outputs differed.
    The result may lie off the grid, and is no better than the optimum on the line.
    """
    _, labels, prior, epsilon = given_by(seed)
    line = unbiased_regression(labels, prior, epsilon)
    problem = replace(line, outputs=feasible_output_set(labels, epsilon, 12))
    solution, proof = proven(problem)
    merged = Merged.of(solution.randomizer)
    reach = float(np.ptp(merged.outputs))
    assert merged.matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-9)
    assert merged.matrix @ merged.outputs == pytest.approx(labels, abs=1e-8 * reach)
    assert (merged.matrix.max(axis=0) <= merged.matrix.min(axis=0) * math.exp(epsilon) * (1 + 1e-12)).all()
    errors = (merged.outputs - labels[:, np.newaxis]) ** 2 / 2
    loss = float(prior @ (merged.matrix * errors).sum(axis=1))
    assert loss <= proof.upper * (1 + LINEAR)
    if merged.spread > 1e-6 * reach**2:
        assert loss < proof.lower
    assert loss >= proven(line)[1].lower * (1 - LINEAR)


# ------------------------------------------------------------------------------------------------------------ witnesses
def agreement(number: int) -> dict[str, float]:
    """How far the flow is from other solvers on a grid that has its outputs and many more: relative differences."""
    rng, labels, prior, epsilon = given_by(number, largest=6)
    low, high = unbiased_range(labels, epsilon)
    found = {}
    for penalty in (math.inf, math.exp(rng.uniform(math.log(0.1), math.log(100.0)))):
        line = regression(labels, prior, epsilon, bias_penalty=penalty)
        flow, proof = proven(line)
        others = np.linspace(low - 0.3 * (high - low), high + 0.3 * (high - low), 40)
        grid = Grid(np.unique(np.concatenate((flow.randomizer.outputs, others))))
        on_grid = replace(line, outputs=grid)
        answers = {"columns": solve(on_grid, ColumnGeneration()).certificate}
        if line.unbiased:
            program = algorithm1(labels, prior, epsilon, grid.values, form="floor")
            answers["floors"] = solve(program).certificate
        for name, there in answers.items():
            upper = there.require(gap=WITNESS).upper
            bias = "forbidden" if line.unbiased else "priced"
            found[f"{name}, bias {bias}"] = abs(upper - proof.upper) / (proof.upper or 1.0)
    return found


@pytest.mark.parametrize("number", [*range(6), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(6, 40))])
def test_flow_column_generation_and_the_floor_program_agree(number: int) -> None:
    """On a grid that has the outputs of the optimum on the line the optimum is the same."""
    differences = agreement(number)
    assert len(differences) == 3
    assert differences.pop("columns, bias priced") <= WITNESS
    assert max(differences.values()) <= LINEAR


def witness(problem: Problem) -> float:
    """The optimum on cvxpy, from the definition of privacy alone: every set of labels, not only intervals, is a column.

    Of a column of mass ``c`` and first moment ``m`` that the labels weight as ``s`` the loss is the sum of ``s_y p_y (m
    - c y)^2 / (2 c)``: with the mean of the labels it is a square over ``c`` and a term linear in ``c``.
    """
    sets = np.array([members for members in itertools.product([0.0, 1.0], repeat=problem.k) if any(members)]).T
    return cone_program(problem, np.where(sets > 0, 1.0, math.exp(-problem.epsilon)))


@every_kind
@pytest.mark.parametrize("seed", [1, 4])
def test_no_set_of_labels_does_better_than_intervals(make: Make, seed: int) -> None:
    problem = make(seed)
    problem = regression(
        problem.labels[:5],
        problem.prior[:5] / problem.prior[:5].sum(),
        max(problem.epsilon, 0.3),
        bias_penalty=problem.bias_penalty,
        outputs=problem.outputs,
    )
    assert value(problem) == pytest.approx(witness(problem), rel=WITNESS)


# --------------------------------------------------------------------------------------------------------------- limits
@pytest.mark.parametrize("seed", [0, 3])
def test_for_little_privacy_loss_outputs_gather_at_those_of_the_two_end_labels(seed: int) -> None:
    """[B23] Section 3.1 observes it as epsilon vanishes.

    Outputs come within a share of order epsilon of the distance between the two ends, and the two ends alone are worse
    by a share of its square: ten times nearer, and a hundred times.
    """
    problem = generic(seed + 100)
    shares, excesses = [], []
    for epsilon in (0.1, 0.01):
        solution, proof = proven(replace(problem, epsilon=epsilon))
        low, high = unbiased_range(problem.labels, epsilon)
        outputs = solution.randomizer.outputs
        shares.append(np.minimum(np.abs(outputs - low), np.abs(outputs - high)).max() / (high - low))
        ends = float(problem.prior @ ((problem.labels - low) * (high - problem.labels))) / 2
        excesses.append(ends / proof.upper - 1)
    if problem.k == 2:
        assert max(shares + excesses) <= SAME
        return
    assert shares[0] <= 0.1
    assert excesses[0] <= 0.1**2
    assert shares[0] / shares[1] == pytest.approx(10, rel=0.05)
    assert excesses[0] / excesses[1] == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("seed", [0, 3])
def test_for_large_epsilon_the_optimum_is_debiased_randomized_response(seed: int) -> None:
    """[B23] Section 3.1 observes that it approaches it. If no prior and no distance is small it is equal to it.

    The arcs are those that the cones find, before any closed form is tried.
    """
    rng, _, prior, _ = given_by(seed + 200, zeros=False)
    labels = np.cumsum(rng.uniform(1.0, 2.0, prior.size))
    problem = unbiased_regression(labels, 0.8 * prior + 0.2 / prior.size, 10.0)
    arcs = next(candidates(*solve_cones(problem))).randomizer.arcs
    response = design_debiased_rr(problem.labels, problem.epsilon, prior=problem.prior)
    assert arcs.first.tolist() == arcs.last.tolist() == list(range(problem.k))
    assert arcs.outputs == pytest.approx(response.randomizer.outputs, abs=1e-9 * float(np.ptp(problem.labels)))
    assert arcs.masses == pytest.approx(1 / (math.exp(10.0) + problem.k - 1), rel=1e-9)
    assert certify(tabulate(response)).require(gap=PROVEN).upper == pytest.approx(value(problem), rel=SAME)


# ------------------------------------------------------------------------------------------------------------ structure
@every_kind
@seeds
def test_privacy_from_both_sides(make: Make, seed: int) -> None:
    """An optimum uses all of its budget and no more, not even by rounding."""
    problem, mechanism = make(seed), solve(make(seed))
    assert (1 - 1e-9) * problem.epsilon <= mechanism.realised_epsilon <= problem.epsilon
    smaller = replace(problem, epsilon=(1 - 1e-6) * problem.epsilon, outputs=Line())
    assert_error("would not be private", Mechanism, smaller, mechanism.table)


@pytest.mark.parametrize("seed", range(5))
def test_intervals_move_forward_step_by_step(seed: int) -> None:
    """At most ``2 k - 2`` outputs, in the order of their intervals, which lead from the first label to the last."""
    problem = generic(seed)
    arcs = arcs_of(proven(problem)[0])
    ends = np.column_stack((arcs.first, arcs.last))
    assert problem.k <= arcs.n <= 2 * problem.k - 2
    if problem.epsilon <= 0.5:
        assert arcs.n == 2 * problem.k - 2
    assert (np.diff(arcs.outputs) > 0).all()
    assert {tuple(step) for step in np.diff(ends, axis=0).tolist()} <= {(0, 1), (1, 0), (1, 1)}
    assert (ends[0].tolist(), ends[-1].tolist()) == ([0, 0], [problem.k - 1] * 2)
    assert not ((arcs.first == 0) & (arcs.last == problem.k - 1)).any()


@every_kind
@seeds
def test_few_outputs_whatever_the_prior(make: Make, seed: int) -> None:
    randomizer = proven(make(seed))[0].randomizer
    assert randomizer.n <= 2 * randomizer.k - 1
    assert (np.diff(randomizer.outputs) > 0).all()
