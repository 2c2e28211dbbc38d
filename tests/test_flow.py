"""The parts of the flow solver, each against its definition: program, prices, Newton's equations, polish, levels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand import Interval, Problem
from optrand.model.problem import regression, unbiased_range
from optrand.solvers import design
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.flow import interval_prices
from optrand.solvers.flow.interior_point import Elimination, Equations, used
from optrand.solvers.flow.interval_prices import violated_intervals
from optrand.solvers.flow.levels import all_arcs, coarsened, refined, widened
from optrand.solvers.flow.program import FlowProgram, Point

WITNESS = 1e-7
"""Of two interior-point solves in different forms."""


def unbiased(k: int, epsilon: float, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    labels = 100.0 + np.cumsum(rng.random(k) + 0.05)
    return optrand.unbiased_regression(labels, rng.dirichlet(np.ones(k)), epsilon)


def priced(k: int, epsilon: float, seed: int) -> Problem:
    problem = unbiased(k, epsilon, seed)
    return regression(problem.labels, problem.prior, epsilon, bias_penalty=1.7)


def boxed(k: int, epsilon: float, seed: int) -> Problem:
    problem = unbiased(k, epsilon, seed)
    low, high = unbiased_range(problem.labels, epsilon)
    outputs = Interval(low - 0.02 * (high - low), high + 0.01 * (high - low))
    return optrand.unbiased_regression(problem.labels, problem.prior, epsilon, outputs=outputs)


def cramped(k: int, epsilon: float, seed: int) -> Problem:
    problem = priced(k, epsilon, seed)
    inside = Interval(problem.labels[0] + 0.1, problem.labels[-1] - 0.3 * np.ptp(problem.labels))
    return regression(problem.labels, problem.prior, epsilon, bias_penalty=1.7, outputs=inside)


every_kind = pytest.mark.parametrize("make", [unbiased, priced, boxed, cramped], ids=lambda make: make.__name__)


def program_of(problem: Problem) -> FlowProgram:
    return FlowProgram(problem, *all_arcs(problem.k))


def potentials(program: FlowProgram, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(program.k, 2))


def solved(program: FlowProgram, tolerance: float = 1e-11) -> Point:
    return program.read(Clarabel(tolerance).solve(program.build()))


def steepness(program: FlowProgram) -> np.ndarray:
    """The columns of the arcs over ``E``, shape ``(k, n)``."""
    labels = np.arange(program.k)[:, np.newaxis]
    inside = (program.first <= labels) & (labels <= program.last)
    return np.where(inside, 1.0, math.exp(-program.problem.epsilon))


def multipliers(program: FlowProgram, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``alpha`` and ``beta`` of the labels from potentials, in the program's units, from their definition."""
    nodes = np.vstack((np.zeros(2), at[:-1] / program.nodes.excess, at[-1]))
    return tuple(np.diff(nodes, axis=0).T)


# --------------------------------------------------------------------------------------------------------- the program


@every_kind
def test_an_arc_prices_at_the_sum_of_its_column_and_the_multipliers(make) -> None:
    program = program_of(make(6, 0.8, 1))
    at = potentials(program)
    alpha, beta = multipliers(program, at)
    columns = steepness(program)
    assert program.nodes.arcs @ at == pytest.approx(np.column_stack((alpha @ columns, beta @ columns)))
    assert program.nodes.amounts(at) == pytest.approx(np.column_stack((alpha, beta)))


@pytest.mark.parametrize("epsilon", [0.05, 12.0])
def test_weights_means_and_spreads_are_right_to_the_last_digits(epsilon: float) -> None:
    """At a large epsilon a spread is a small difference of large sums: the witness counts in fractions."""
    rng = np.random.default_rng(4)
    labels = 1e6 + np.cumsum(rng.random(9) * np.array([1, 1e-4, 1] * 3))
    problem = optrand.unbiased_regression(labels, rng.dirichlet(np.ones(9)), epsilon)
    program = program_of(problem)
    least, unit = Fraction(math.exp(-epsilon)), Fraction(program.unit)
    total = sum(map(Fraction, problem.prior.tolist()))
    prior = [Fraction(p) / total for p in problem.prior.tolist()]
    places = [(Fraction(y) - Fraction(program.centre)) / unit for y in labels.tolist()]
    for j, (first, last) in enumerate(zip(program.first.tolist(), program.last.tolist(), strict=True)):
        shares = [p * (1 if first <= y <= last else least) for y, p in enumerate(prior)]
        weight = sum(shares)
        mean = sum(s * y for s, y in zip(shares, places, strict=True)) / weight
        spread = sum(s * (y - mean) ** 2 for s, y in zip(shares, places, strict=True)) / 2
        assert program.moments.weights[j] == pytest.approx(float(weight), rel=1e-14)
        assert program.moments.means[j] == pytest.approx(float(mean), rel=1e-13, abs=1e-13)
        assert program.moments.spreads[j] == pytest.approx(float(spread), rel=1e-10)


@every_kind
def test_a_reduced_cost_is_the_least_over_all_outputs(make) -> None:
    program = program_of(make(5, 1.2, 5))
    at = potentials(program, 6)
    costs, best = program.reduced_costs(at)
    alpha, beta = multipliers(program, at)
    low, high = (np.clip(end, -60.0, 60.0) for end in program.box)
    outputs = np.concatenate((best, np.linspace(low, high, 5_001)))
    loss = program.problem.prior[:, np.newaxis] * (outputs - program.labels[:, np.newaxis]) ** 2 / 2
    table = steepness(program).T @ (loss - alpha[:, np.newaxis] - beta[:, np.newaxis] * outputs)
    assert np.diag(table) == pytest.approx(costs, abs=1e-11)
    assert (table >= costs[:, np.newaxis] - 1e-11).all()
    assert (best >= program.box[0]).all()
    assert (best <= program.box[1]).all()


def witness(program: FlowProgram) -> float:
    """The primal as a program in masses and first moments, written row by row, on cvxpy.

    Of an arc of mass ``c`` and first moment ``m`` the loss is ``V c + P (m - mu c)^2 / (2 c)``: ``2 c q >= d^2`` is a
    cone.
    """
    import cvxpy

    columns, k = steepness(program), program.k
    masses, moments, squares = (cvxpy.Variable(program.n) for _ in range(3))
    bias = cvxpy.Variable(k)
    off = moments - cvxpy.multiply(program.moments.means, masses)
    cone = cvxpy.SOC(masses + squares, cvxpy.vstack([masses - squares, math.sqrt(2) * off]))
    rows = [cone, columns @ masses == 1, columns @ moments - bias == program.labels]
    loss = program.moments.weights @ squares + program.moments.spreads @ masses
    if program.problem.unbiased:
        rows.append(bias == 0)
    else:
        loss += program.problem.bias_weights / 2 @ bias**2
    low, high = program.box
    rows += [moments >= low * masses] if math.isfinite(low) else []
    rows += [moments <= high * masses] if math.isfinite(high) else []
    problem = cvxpy.Problem(cvxpy.Minimize(loss), rows)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


@every_kind
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_dual_program_has_the_value_of_the_primal(make, epsilon: float) -> None:
    program = program_of(make(4, epsilon, 9))
    at = solved(program).potentials
    _, beta = multipliers(program, at)
    charge = 0.0 if program.problem.unbiased else beta**2 @ (1 / program.bias_weights) / 2
    value = float((program.gain * at).sum() - charge)
    assert value == pytest.approx(witness(program), rel=WITNESS)
    assert value * program.unit**2 == pytest.approx(optrand.solve(program.problem).value, rel=WITNESS)


# ------------------------------------------------------------------------------------------------------ interval prices


@every_kind
@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize("epsilon", [0.2, 3.0])
def test_the_intervals_that_a_program_lacks(make, block: int, epsilon: float, monkeypatch) -> None:
    """All that cost less than nothing and less than those one label shorter and longer, whatever the blocks."""
    monkeypatch.setattr(interval_prices, "BLOCK", block)
    problem = make(9, epsilon, 11)
    everything = program_of(problem)
    at = 0.3 * potentials(everything, 12)
    table = np.full((9, 11), np.inf)
    table[everything.first, everything.last + 1] = everything.reduced_costs(at)[0]
    inner, tolerance = table[:, 1:-1], 0.01
    dips = (inner < -tolerance) & (inner <= table[:, :-2]) & (inner <= table[:, 2:])
    some = FlowProgram(problem, np.array([0, 3]), np.array([2, 8]))
    first, last = violated_intervals(some, at, tolerance)
    assert dips.any()
    assert set(zip(first.tolist(), last.tolist(), strict=True)) == set(
        zip(*map(np.ndarray.tolist, np.nonzero(dips)), strict=True)
    )
    assert violated_intervals(some, at, 1e9)[0].size == 0


# ------------------------------------------------------------------------------------------------------- interior point


def least_costs(program: FlowProgram, at: np.ndarray, leans: np.ndarray) -> np.ndarray:
    costs, slopes, weights = program.curves(at, leans)
    return costs - slopes**2 / (2 * weights)


def lagrangian(program: FlowProgram, point: Point, moved: np.ndarray, biases: np.ndarray) -> float:
    """Of the program: the gain, reduced costs and leans times their multipliers, and the price of bias."""
    at, leans = moved[: 2 * program.k].reshape(-1, 2), moved[2 * program.k :]
    amounts = np.concatenate((least_costs(program, at, leans), leans))
    value = float((program.gain * at).sum() + point.multipliers @ amounts)
    if not program.problem.unbiased:
        beta = multipliers(program, at)[1]
        value += float(beta @ biases + program.bias_weights @ biases**2 / 2)
    return value


def inside(program: FlowProgram, seed: int) -> Point:
    """A point that satisfies no equation."""
    rng = np.random.default_rng(seed)
    leans = program.n * len(program.ends)
    at = 0.1 * rng.normal(size=(program.k, 2))
    return Point(at, rng.random(program.n + leans), rng.random(program.n + leans), rng.normal(size=program.k))


@every_kind
@pytest.mark.parametrize("k", [2, 6])
def test_newtons_equations_are_the_derivatives_of_the_lagrangian(make, k: int) -> None:
    program = program_of(make(k, 0.9, 14))
    point, step = inside(program, 15), 1e-5
    equations = Equations(program, point)
    x = np.concatenate((point.potentials.ravel(), program.leans(point)))
    directions = step * np.eye(x.size)
    rises = [lagrangian(program, point, x + some, point.biases) for some in directions]
    falls = [lagrangian(program, point, x - some, point.biases) for some in directions]
    # What is maximised is concave: its gradient, and minus its second derivatives on the diagonal.
    assert (np.array(rises) - falls) / (2 * step) == pytest.approx(equations.gradient, abs=1e-6)
    here = lagrangian(program, point, x, point.biases)
    second = (np.array(rises) + falls - 2 * here) / step**2
    assert -second == pytest.approx(equations.curvature.diagonal(), abs=1e-3, rel=1e-3)
    start = least_costs(program, point.potentials, program.leans(point))
    shifts = [least_costs(program, (x + some)[: 2 * k].reshape(-1, 2), (x + some)[2 * k :]) for some in directions]
    slopes = (np.stack(shifts) - start).T / step
    assert slopes == pytest.approx(equations.rows[: program.n].toarray(), abs=1e-3)


@every_kind
@pytest.mark.parametrize("pivot", [0.0, 0.1])
def test_a_step_solves_newtons_equations(make, pivot: float) -> None:
    program = program_of(make(7, 0.9, 16))
    point = inside(program, 17)
    equations = Equations(program, point)
    ratios, right = point.slacks / point.multipliers, np.random.default_rng(18).normal(size=point.slacks.size)
    charged = equations.charged
    elimination = Elimination(pivot)
    # Twice, since the order of elimination is found once and kept where there are no pivots.
    for _ in range(2):
        moved, mass, biases = equations.solver(ratios, 1e-11, elimination)(right)
        priced = biases[: charged.shape[0]]
        top = equations.curvature @ moved - equations.rows.T @ mass - charged.T @ priced
        assert top == pytest.approx(equations.gradient, abs=1e-8)
        assert -equations.rows @ moved - ratios * mass == pytest.approx(right, abs=1e-8)
        assert -charged @ moved - equations.charges * priced == pytest.approx(equations.unpaid, abs=1e-8)


def stationary(program: FlowProgram, point: Point) -> tuple[float, float]:
    """By how much reduced costs of arcs miss 0, and rows and means those of a randomizer."""
    costs, outputs = program.reduced_costs(point.potentials)
    masses = point.multipliers[: program.n]
    rows = program.averages(masses, np.ones(program.n)) - 1
    means = program.averages(masses, outputs) - program.labels
    biases = np.zeros(program.k)
    if not program.problem.unbiased:
        biases = -multipliers(program, point.potentials)[1] / program.bias_weights
    return float(np.abs(costs).max()), float(np.abs(np.concatenate((rows, means - biases))).max())


@every_kind
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_a_coarse_answer_is_polished_to_the_last_digit(make, epsilon: float) -> None:
    program = program_of(make(14, epsilon, 20))
    coarse = solved(program, 1e-8)
    support, point = used(program, coarse)
    size = float(np.abs(point.potentials).max())
    assert max(stationary(support, point)) <= 1e-11 * max(size, 1.0)
    assert support.n <= program.k * 2 + 2
    assert (point.multipliers > 0).all()
    # And it is the optimum of all arcs, not of those alone.
    assert program.reduced_costs(point.potentials)[0].min() >= -1e-9


# -------------------------------------------------------------------------------------------------------------- levels


def test_coarser_problems_keep_the_ends_and_the_mean_of_the_prior() -> None:
    problem = unbiased(101, 1.0, 24)
    before, sizes = problem, []
    for coarse, kept in coarsened(problem, 8):
        assert np.array_equal(coarse.labels, before.labels[kept])
        assert (coarse.labels[0], coarse.labels[-1]) == (problem.labels[0], problem.labels[-1])
        assert coarse.prior.sum() == pytest.approx(1.0, abs=1e-14)
        assert (coarse.prior >= 0).all()
        assert coarse.prior @ coarse.labels == pytest.approx(problem.prior @ problem.labels, rel=1e-13)
        assert (coarse.epsilon, coarse.bias_penalty) == (problem.epsilon, problem.bias_penalty)
        # What is moved to the neighbours spreads out.
        spread = [float(p.prior @ (p.labels - problem.labels[0]) ** 2) for p in (before, coarse)]
        assert spread[0] <= spread[1]
        sizes.append(coarse.k)
        before = coarse
    assert sizes == [51, 26, 14, 8]
    assert list(coarsened(problem, 101)) == []


def test_arcs_for_more_labels_from_those_for_fewer() -> None:
    problem = unbiased(41, 1.0, 25)
    coarse, kept = next(iter(coarsened(problem, 40)))
    program = program_of(coarse)
    point = solved(program)
    first, last = refined(program, point, kept, 41)
    found = set(zip(first.tolist(), last.tolist(), strict=True))
    assert len(found) == first.size < 41 * 42 / 2
    assert ((first >= 0) & (first <= last) & (last < 41)).all()
    assert {(y, y) for y in range(41)} <= found
    assert {(0, y) for y in range(41)} | {(y, 40) for y in range(41)} <= found
    # The arcs of the fine answer are among them: that is what levels are for.
    exact = design(problem).randomizer.arcs
    assert exact is not None
    assert set(zip(exact.first.tolist(), exact.last.tolist(), strict=True)) <= found


def test_both_ends_move_by_two_labels_together() -> None:
    first, last = widened(9, np.array([4]), np.array([5]), 2)
    moved = {(a - 4, b - 5) for a, b in zip(first.tolist(), last.tolist(), strict=True)}
    near = {(a, b) for a in range(-2, 3) for b in range(-2, 3) if abs(a) + abs(b) <= 2}
    # The interval from 4 to 5 keeps at least one label.
    assert moved == {(a, b) for a, b in near if a - b <= 1}
    assert len(first) == len(moved)
