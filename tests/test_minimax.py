"""Without a prior: the largest loss over labels, its worst prior, and the program that finds both."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand import Interval, Mechanism, Problem, certify
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.model.arcs import IntegerArcs
from optrand.model.problem import regression, unbiased_range
from optrand.solvers import MinimaxFlow
from optrand.solvers.backends.cones import Clarabel
from optrand.solvers.flow.interior_point import used
from optrand.solvers.flow.interval_prices import violated_intervals
from optrand.solvers.flow.levels import all_arcs
from optrand.solvers.flow.minimax_program import MinimaxProgram
from optrand.solvers.flow.nodes import Nodes
from optrand.studies import minimax

GAP = 1e-9
"""Of the exact mechanism, relative; 1e-8 from epsilon 6 on."""

WITNESS = 1e-6
"""Of an interior-point solve in another form."""

UNEVEN = np.array([0.0, 1.0, 2.5, 7.0])


def drawn(k: int, kind: str, seed: int) -> np.ndarray:
    """Labels: evenly spaced, roughly so, in clusters, or with gaps of all sizes."""
    rng = np.random.default_rng(seed)
    gaps = {
        "even": np.ones(k),
        "rough": rng.random(k) + 0.05,
        "clustered": np.where(rng.random(k) < 0.2, rng.random(k) + 0.5, 1e-3 * rng.random(k) + 1e-4),
        "wild": np.exp(2 * rng.normal(size=k)),
    }[kind]
    return np.asarray(100.0 + np.cumsum(gaps))


def near(labels: np.ndarray, epsilon: float, margin: float) -> Interval:
    """An interval with `margin` of its width beyond what unbiased randomizers need."""
    low, high = unbiased_range(labels, epsilon)
    return Interval(low - margin * (high - low), high + margin * (high - low))


def exact(answer: optrand.studies.Minimax) -> tuple[Mechanism, optrand.Certificate]:
    mechanism = answer.tabulate()
    return mechanism, certify(mechanism, worst_case=True)


# ------------------------------------------------------------------------------------------------------- the statement


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize(("penalty", "boxed"), [(math.inf, False), (math.inf, True), (0.7, False), (0.7, True)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_program_over_whole_tables_finds_nothing_better(k: int, penalty: float, boxed: bool, epsilon: float) -> None:
    """On a grid that holds the outputs of the answer, and many others, all tables are allowed: the optimum is the same.

    ``minimise t  s.t.  M 1 = 1,  m_i <= M[y, i] <= E m_i,  sum_i M[y, i] (v_i - y)^2 / 2 + lam (M v - y)^2 / 2 <= t``
    """
    import cvxpy

    labels = UNEVEN[:k]
    outputs = near(labels, epsilon, 0.05) if math.isinf(penalty) else Interval(0.4, 0.8 * labels[-1])
    answer = minimax(labels, epsilon, bias_penalty=penalty, outputs=outputs if boxed else None)
    low, high = (outputs.low, outputs.high) if boxed else np.array(unbiased_range(labels, epsilon)) * 1.2 - [0.1, 0.0]
    grid = np.union1d(np.linspace(low, high, 60), answer.randomizer.outputs)
    table, floors, largest = cvxpy.Variable((k, grid.size)), cvxpy.Variable((1, grid.size)), cvxpy.Variable()
    below = np.ones((k, 1)) @ floors
    biases = table @ grid - labels
    charge = 0.0 if math.isinf(penalty) else penalty / 2 * cvxpy.square(biases)
    errors = cvxpy.sum(cvxpy.multiply(table, (grid - labels[:, np.newaxis]) ** 2), axis=1) / 2
    limits = [below >= 0, table >= below, table <= math.exp(epsilon) * below, cvxpy.sum(table, axis=1) == 1]
    limits.append(errors + charge <= largest)
    if math.isinf(penalty):
        limits.append(biases == 0)
    witness = cvxpy.Problem(cvxpy.Minimize(largest), limits).solve(solver=cvxpy.CLARABEL)
    assert answer.upper == pytest.approx(witness, rel=WITNESS)
    assert answer.lower == pytest.approx(answer.upper, rel=GAP)


@pytest.mark.parametrize("penalty", [math.inf, 3.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_worst_prior_is_a_saddle_point(epsilon: float, penalty: float) -> None:
    """Under the worst prior the best randomizer has the same value, and under no prior a larger one."""
    labels = drawn(7, "rough", 3)
    answer = minimax(labels, epsilon, bias_penalty=penalty)
    worst = optrand.solve(regression(labels, answer.prior, epsilon, bias_penalty=penalty))
    assert optrand.certify(worst).upper == pytest.approx(answer.upper, rel=GAP)
    rng = np.random.default_rng(4)
    for spread in (0.2, 1.0, 10.0):
        prior = rng.dirichlet(np.full(7, spread))
        proof = optrand.certify(optrand.solve(regression(labels, prior, epsilon, bias_penalty=penalty)))
        assert proof.upper <= answer.upper
        nearby = 0.9 * answer.prior + 0.1 * prior
        solved = optrand.solve(regression(labels, nearby / nearby.sum(), epsilon, bias_penalty=penalty))
        assert optrand.certify(solved).upper <= answer.upper * (1 + GAP)


def test_labels_of_positive_prior_share_the_largest_loss() -> None:
    """Complementary slackness; at epsilon 1 the middle of eleven labels is never worst off, so its prior vanishes."""
    answer = minimax(np.arange(11), 1.0)
    positive = answer.prior > 0
    assert answer.losses[positive] == pytest.approx(answer.losses.max(), rel=1e-10)
    assert answer.losses[~positive].max() < answer.losses.max() * (1 - 1e-6)
    assert 0 < positive.sum() < 11


@pytest.mark.parametrize("penalty", [math.inf, 2.0])
@pytest.mark.parametrize("k", [3, 6, 20])
def test_symmetric_labels_have_a_symmetric_answer(k: int, penalty: float) -> None:
    answer = minimax(np.arange(k) - 4.0, 0.8, bias_penalty=penalty)
    assert answer.prior == pytest.approx(answer.prior[::-1], abs=1e-9)
    assert answer.losses == pytest.approx(answer.losses[::-1], rel=1e-6)


def test_shift_scale_and_reflection_of_labels() -> None:
    labels = drawn(9, "rough", 5)
    answer = minimax(labels, 1.3)
    for moved, scale in ((labels + 1e4, 1.0), (-labels, 1.0), (1e-3 * labels, 1e-6), (1e5 * labels, 1e10)):
        assert minimax(moved, 1.3).upper == pytest.approx(scale * answer.upper, rel=1e-9)


# -------------------------------------------------------------------------------------------------------- known limits


@pytest.mark.parametrize("epsilon", [0.01, 0.4, 1.0, 3.0, 8.0])
def test_two_labels_have_a_closed_form(epsilon: float) -> None:
    """Debiased randomized response: variance ``p (1 - p)`` at ``p = E / (E + 1)``, times ``((E + 1) / (E - 1))^2``."""
    odds = math.exp(epsilon)
    assert minimax([3.0, 5.0], epsilon).upper == pytest.approx(4 * odds / (odds - 1) ** 2 / 2, rel=1e-10)


@pytest.mark.parametrize("k", [3, 10])
def test_a_small_epsilon_leaves_the_two_ends(k: int) -> None:
    """No more than rounding to the ends, then two labels: ``(1/2 + 1/(E-1))^2 / 2``; no less than the ends alone."""
    labels = drawn(k, "rough", 6)
    spread, odds = np.ptp(labels), math.exp(0.01)
    value = minimax(labels, 0.01).upper / spread**2
    assert odds / (odds - 1) ** 2 / 2 <= value * (1 + 1e-12)
    assert value <= (0.5 + 1 / (odds - 1)) ** 2 / 2 * (1 + 1e-12)


def test_the_value_falls_with_epsilon_to_nothing() -> None:
    values = [minimax(UNEVEN, epsilon).upper for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0)]
    assert (np.diff(values) < 0).all()
    assert values[-1] < 1e-3 * np.ptp(UNEVEN) ** 2 / 8
    for epsilon, value in zip((1.0, 8.0), (values[2], values[5]), strict=True):
        response = optrand.debiased_rr(UNEVEN, epsilon)
        assert value <= response.randomizer.losses(bias_penalty=response.problem.bias_penalty).max()


def test_a_penalty_leads_from_the_constant_in_the_middle_to_no_bias() -> None:
    """A constant costs ``(1 + lam) spread^2 / 8``; at ``lam -> 0`` privacy no longer matters at a small epsilon."""
    spread, free = np.ptp(UNEVEN), minimax(UNEVEN, 1.0).upper
    penalties = (1e-3, 0.1, 1.0, 10.0, 1e3, 1e6)
    values = np.array([minimax(UNEVEN, 1.0, bias_penalty=penalty).upper for penalty in penalties])
    assert (np.diff(values) > 0).all()
    assert (values <= (1 + np.array(penalties)) * spread**2 / 8).all()
    assert values[-1] == pytest.approx(free, rel=1e-4)
    assert values[-1] < free
    assert minimax(UNEVEN, 1e-3, bias_penalty=0.1).upper == pytest.approx(1.1 * spread**2 / 8, rel=1e-3)


def test_one_label_costs_nothing() -> None:
    assert minimax([4.0], 1.0).upper == 0


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_outputs_in_an_interval(epsilon: float) -> None:
    free = minimax(UNEVEN, epsilon)
    outputs = free.randomizer.outputs
    wide = minimax(UNEVEN, epsilon, outputs=Interval(outputs[0] - 1, outputs[-1] + 1))
    assert wide.upper == pytest.approx(free.upper, rel=1e-9)
    values = []
    for margin in (0.0, 1e-6, 0.01):
        interval = near(UNEVEN, epsilon, margin)
        mechanism, proof = exact(minimax(UNEVEN, epsilon, outputs=interval))
        assert proof.gap <= GAP
        assert interval.low <= mechanism.outputs[0] <= mechanism.outputs[-1] <= interval.high
        values.append(proof.upper)
    assert (np.diff(values) <= 1e-9 * values[0]).all()
    assert free.lower <= values[-1]


# ----------------------------------------------------------------------------------------------------- exact, at length


@pytest.mark.parametrize("kind", ["even", "rough", "clustered", "wild"])
@pytest.mark.parametrize(("penalty", "margin"), [(math.inf, None), (math.inf, 0.02), (1.5, None), (1.5, 0.1)])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.2), (5, 1.0), (13, 3.0), (31, 0.6), (24, 6.0)])
def test_exact_mechanisms_are_proven(k: int, epsilon: float, kind: str, penalty: float, margin: float | None) -> None:
    labels = drawn(k, kind, k)
    outputs = None
    if margin is not None:
        outputs = (
            near(labels, epsilon, margin) if math.isinf(penalty) else Interval(*np.quantile(labels, (margin, 0.8)))
        )
    mechanism, proof = exact(minimax(labels, epsilon, bias_penalty=penalty, outputs=outputs))
    assert proof.gap <= (GAP if epsilon < 6 else 10 * GAP)
    assert proof.epsilon <= epsilon
    assert proof.findings == ()
    if math.isinf(penalty):
        assert proof.bias <= 1e-12 * max(np.ptp(mechanism.outputs), np.abs(labels).max())


@pytest.mark.parametrize(("k", "epsilon"), [(70, 0.5), (120, 1.0), (200, 0.3)])
def test_many_labels_level_by_level(k: int, epsilon: float) -> None:
    """Beyond sixty-four labels arcs come from a coarser answer; few are in use in the end."""
    answer = minimax(drawn(k, "rough", k), epsilon)
    mechanism, proof = exact(answer)
    assert proof.gap <= GAP
    assert answer.solution.stats.iterations > 1
    assert mechanism.outputs.size < 3 * k
    assert optrand.certify(mechanism).gap <= GAP


def test_a_mechanism_survives_its_file(tmp_path) -> None:
    mechanism, proof = exact(minimax(np.arange(11), 1.0))
    mechanism.save(tmp_path / "minimax.json")
    assert certify(optrand.load(tmp_path / "minimax.json"), worst_case=True) == proof


# ------------------------------------------------------------------------------------------------------ the certificate


@pytest.mark.parametrize("penalty", [math.inf, 0.8])
def test_losses_of_labels_are_those_of_the_table(penalty: float) -> None:
    """In fractions, of the exact table; and of arcs in floats as of their dense table."""
    answer = minimax(UNEVEN, 1.0, bias_penalty=penalty)
    problem, mechanism = answer.solution.problem, answer.tabulate()
    outputs = [Fraction(v) for v in mechanism.outputs.tolist()]
    for y, row, found in zip(
        UNEVEN.tolist(), mechanism.weights.tolist(), mechanism.losses(bias_penalty=problem.bias_penalty), strict=True
    ):
        shares = [Fraction(weight, mechanism.total) for weight in row]
        error = sum(share * (v - Fraction(y)) ** 2 for share, v in zip(shares, outputs, strict=True))
        bias = sum(share * v for share, v in zip(shares, outputs, strict=True)) - Fraction(y)
        loss = error / 2 + (0 if math.isinf(penalty) else Fraction(penalty) * bias**2 / 2)
        assert loss <= Fraction(found) <= loss * (1 + Fraction(1, 2**50))
    randomizer = answer.randomizer
    dense = optrand.Randomizer(UNEVEN, randomizer.outputs, randomizer.matrix, 1.0)
    assert dense.losses(bias_penalty=problem.bias_penalty) == pytest.approx(answer.losses, rel=1e-12)


def test_losses_of_a_dense_mechanism_are_those_of_its_randomizer() -> None:
    problem = optrand.unbiased_regression(UNEVEN, np.full(4, 0.25), 1.0, outputs=np.arange(-20.0, 21.0))
    solution = optrand.solve(problem)
    mechanism = optrand.tabulate(solution)
    assert mechanism.arcs is None
    assert mechanism.losses() == pytest.approx(solution.randomizer.losses(), rel=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 2.5, math.inf])
def test_exact_losses_of_arcs_and_of_their_table_are_those_of_plain_fractions(penalty: float) -> None:
    problem = regression([0, 1, 3], [0.5, 0.25, 0.25], 1.0, bias_penalty=2.5)
    arcs = IntegerArcs(3, [0, 1, 2], [0, 1, 2], [0, 1, 2], [1, 1, 1])
    split = Mechanism(problem, None, [-2.0, 1.0, 4.5], arcs, Fraction(2))
    table = Mechanism(problem, None, split.outputs, split.weights, split.ratio)
    plain = []
    for y, row in zip((0, 1, 3), split.weights.tolist(), strict=True):
        law = [
            (Fraction(weight, split.total), Fraction(v) - y) for weight, v in zip(row, (-2.0, 1.0, 4.5), strict=True)
        ]
        bias = sum(p * apart for p, apart in law)
        charge = Fraction(penalty) * bias**2 if math.isfinite(penalty) else 0
        plain.append((sum(p * apart**2 for p, apart in law) + charge) / 2)
    assert split.exact_losses(penalty) == table.exact_losses(penalty) == plain
    if penalty == problem.bias_penalty:
        assert certify(problem, table, worst_case=True).upper == pytest.approx(float(max(plain)), rel=1e-15)


def test_the_average_never_exceeds_the_largest_loss() -> None:
    """The bound at any other prior is lower, and the optimum under it has a larger largest loss."""
    answer = minimax(UNEVEN, 1.0)
    ordinary = optrand.solve(optrand.unbiased_regression(UNEVEN, [0.7, 0.1, 0.1, 0.1], 1.0))
    proof = certify(ordinary, worst_case=True)
    assert proof.lower < 0.98 * answer.lower
    assert proof.upper > 1.02 * answer.upper
    assert proof.gap > 0.1
    # The randomizer of the one and the multipliers of the other make a proof, too.
    mixed = certify(answer.solution.problem, ordinary.randomizer, answer.solution.dual, worst_case=True)
    assert (mixed.lower, mixed.upper) == (answer.lower, proof.upper)


def test_wrong_priors_multipliers_and_randomizers_are_not_believed() -> None:
    answer = minimax(UNEVEN, 1.0)
    problem, randomizer, dual = answer.solution.problem, answer.randomizer, answer.solution.dual
    doubled = optrand.Dual(2 * dual.alpha, 2 * dual.beta)
    assert certify(problem, randomizer, doubled, worst_case=True).lower <= answer.upper
    swapped = replace(problem, prior=problem.prior[[1, 0, 2, 3]])
    assert certify(swapped, randomizer, dual, worst_case=True).lower < 0.99 * answer.lower
    assert certify(problem, randomizer, worst_case=True).lower == -math.inf
    biased = optrand.Randomizer(UNEVEN, randomizer.outputs + 0.1, randomizer.matrix, 1.0)
    assert certify(problem, biased, dual, worst_case=True).upper == math.inf
    stricter = replace(problem, epsilon=0.99)
    proof = certify(stricter, optrand.Randomizer(UNEVEN, randomizer.outputs, randomizer.matrix, 0.99), worst_case=True)
    assert proof.upper == math.inf
    with pytest.raises(NotCertified):
        proof.require(gap=1.0)


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": [0.0, 7.0, 30.0]}, "not a grid"),
        ({"bias_penalty": 0.0}, "bias_penalty is 0"),
        ({"bias_penalty": -1.0}, "bias_penalty"),
        ({"labels": [1.0, 1.0]}, "labels repeats"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
    ],
)
def test_bad_arguments(arguments, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        minimax(**{"labels": UNEVEN, "epsilon": 1.0, **arguments})


def test_an_interval_without_unbiased_randomizers_names_one_that_has() -> None:
    with pytest.raises(Infeasible, match="would do"):
        minimax(UNEVEN, 1.0, outputs=Interval(0, 7))


@pytest.mark.parametrize("epsilon", [20.0, 40.0])
def test_a_huge_epsilon_fails_honestly(epsilon: float) -> None:
    with pytest.raises(NotCertified):
        minimax(UNEVEN, epsilon)


def test_only_squared_loss_and_only_one_way_of_asking() -> None:
    problem = regression(UNEVEN, np.full(4, 0.25), 1.0, loss=optrand.losses.absolute)
    solution = optrand.solve(problem)
    with pytest.raises(InvalidInput, match="squared"):
        certify(solution, worst_case=True)
    with pytest.raises(InvalidInput, match="squared loss with a bias penalty"):
        MinimaxFlow()(problem)
    answer = minimax(UNEVEN, 1.0)
    with pytest.raises(InvalidInput, match="its own problem"):
        certify(answer.solution, answer.randomizer, worst_case=True)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="needs a randomizer"):
        certify(answer.solution.problem, worst_case=True)  # type: ignore[call-overload]


# ---------------------------------------------------------------------------------------------------------- the program


def posed(k: int, epsilon: float, penalty: float = math.inf, *, boxed: bool = False) -> Problem:
    labels = drawn(k, "rough", k)
    outputs = None
    if boxed:
        outputs = near(labels, epsilon, 0.02) if math.isinf(penalty) else Interval(labels[0] + 0.1, labels[-1] - 0.4)
    return regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=penalty, outputs=outputs)


@pytest.mark.parametrize("epsilon", [0.05, 2.0, 9.0])
@pytest.mark.parametrize("k", [2, 3, 8])
def test_nodes_read_sums_of_labels(k: int, epsilon: float) -> None:
    nodes = Nodes(k, *all_arcs(k), epsilon)
    potentials = np.random.default_rng(1).normal(size=k)
    amounts = nodes.labels @ potentials
    labels = np.arange(k)[:, np.newaxis]
    columns = np.where((nodes.first <= labels) & (labels <= nodes.last), 1.0, math.exp(-epsilon))
    assert nodes.arcs @ potentials == pytest.approx(amounts @ columns)
    assert amounts.sum() == pytest.approx(potentials[-1])


@pytest.mark.parametrize("boxed", [False, True])
def test_arcs_that_are_lacking_are_those_that_cost_less_than_nothing(boxed: bool) -> None:
    """Against each arc's parabola at each of many outputs."""
    problem = posed(6, 1.0, boxed=boxed)
    program = MinimaxProgram(problem, *all_arcs(6))
    rng = np.random.default_rng(7)
    potentials = rng.normal(size=(6, 3))
    potentials[:, 2] = np.cumsum(rng.random(6)) / 5
    a, b, weights = (program.nodes.arcs @ potentials).T
    low, high = program.box if boxed else (-1e3, 1e3)
    outputs = np.union1d(np.linspace(low, high, 2001), np.clip(b / weights, low, high))[:, np.newaxis]
    costs = (a - b * outputs + weights * outputs**2 / 2).min(axis=0)
    tolerance = -float(np.median(costs))
    first, last = violated_intervals(program, potentials, tolerance)
    table = np.full((6, 8), np.inf)
    table[program.first, program.last + 1] = costs
    dips = (table[:, 1:-1] < -tolerance) & (table[:, 1:-1] <= table[:, :-2]) & (table[:, 1:-1] <= table[:, 2:])
    assert list(zip(first, last, strict=True)) == list(zip(*np.nonzero(dips), strict=True))
    assert 0 < first.size < program.n


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("penalty", [math.inf, 1.7])
def test_the_polish_takes_a_rough_answer_to_the_last_digit(penalty: float, boxed: bool) -> None:
    """From seven digits of the cone solver to a gap that only floats limit, and on few arcs."""
    problem = posed(20, 1.0, penalty, boxed=boxed)
    whole = MinimaxProgram(problem, *all_arcs(20), floor=1e-4)
    point = whole.read(Clarabel(1e-7).solve(whole.build()))
    program, polished = used(whole, point)
    assert program.floor == 0
    assert program.n <= 45
    assert polished.multipliers @ polished.slacks < 1e-11
    costs, slopes, weights = program.curves(polished.potentials, program.leans(polished))
    assert costs - slopes**2 / (2 * weights) == pytest.approx(0, abs=1e-11)
    rough = certify(MinimaxFlow(engine=Clarabel(1e-7))(problem), worst_case=True)
    assert rough.gap <= 1e-9


def test_a_floor_under_the_prior_is_kept_and_costs_no_more_than_its_share() -> None:
    """Its value is the least of ``(1 - floor)`` times the largest loss and ``floor`` times the average one."""
    problem = posed(9, 1.0)
    values = []
    for floor in (0.0, 0.1, 0.5, 1.0):
        program = MinimaxProgram(problem, *all_arcs(9), floor=floor)
        answer = Clarabel(1e-11).solve(program.build())
        prior = program.nodes.amounts(program.read(answer).potentials)[:, 2]
        assert prior.min() >= floor / 9 - 1e-9
        assert prior.sum() == pytest.approx(1)
        values.append(program.gain.ravel() @ answer.x[:27] * program.unit**2)
    assert (np.diff(values) < 0).all()
    assert values[0] == pytest.approx(minimax(problem.labels, 1.0).upper, rel=1e-8)
    uniform = optrand.solve(problem).value
    assert values[-1] == pytest.approx(uniform, rel=1e-7)
    for floor, value in zip((0.1, 0.5), values[1:3], strict=True):
        # The least of a sum is no less than the sum of the least.
        assert value >= ((1 - floor) * values[0] + floor * uniform) * (1 - 1e-9)


def test_the_functions_of_version_01_say_what_they_are_now() -> None:
    answer = minimax(UNEVEN, 1.0)
    with pytest.warns(DeprecationWarning, match=r"certify\(..., worst_case=True\)"):
        assert optrand.certify_largest_loss(answer) == answer.certificate
    with pytest.warns(DeprecationWarning, match="answer.losses"):
        assert optrand.label_losses(answer.problem, answer.randomizer).tolist() == answer.losses.tolist()


def test_the_answer_is_a_solution_under_the_worst_prior() -> None:
    answer = minimax(UNEVEN, 1.0)
    assert isinstance(answer, optrand.Solution)
    assert answer.solution is answer
    assert answer.problem.prior is answer.prior
    assert certify(answer).gap <= GAP
    assert answer.value == pytest.approx(answer.upper, rel=GAP)


@pytest.mark.parametrize("loss", [optrand.losses.absolute, optrand.losses.squared], ids=lambda loss: loss.name)
def test_the_average_of_losses_is_the_value(loss: optrand.losses.Loss) -> None:
    """Of arcs, of their dense table, and of the exact mechanism."""
    problem = regression(UNEVEN, [0.1, 0.4, 0.3, 0.2], 1.0, loss=loss)
    solution = optrand.solve(problem)
    randomizer = solution.randomizer
    dense = optrand.Randomizer(UNEVEN, randomizer.outputs, randomizer.matrix, 1.0)
    for answer in (randomizer, dense, optrand.tabulate(solution)):
        assert answer.losses(loss) @ problem.prior == pytest.approx(solution.value, rel=1e-9)
