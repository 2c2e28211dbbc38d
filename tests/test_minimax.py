"""Without a prior: the largest loss over labels, its worst prior, and the program that finds both."""

import math
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand import Interval, Mechanism, Problem, certify
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.model._problem import regression, unbiased_range
from optrand.model._table import Table
from optrand.solvers import WorstPrior, design
from optrand.solvers._cones import ConeOptions, only, solve_cones
from optrand.solvers._minimax import _with_kernel_multipliers, _worst_case_gap
from optrand.solvers._optimality import Support, candidates
from optrand.studies import minimax

GAP = 1e-9
"""Relative gap of the exact mechanism. It is 1e-8 from epsilon 6 on."""

WITNESS = 1e-6
"""Relative accuracy of an interior-point solve in another form."""

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
    """An interval with `margin` of its width beyond the range that unbiased randomizers need."""
    low, high = unbiased_range(labels, epsilon)
    return Interval(low - margin * (high - low), high + margin * (high - low))


def proven(*arguments, **options) -> tuple[Mechanism, optrand.Certificate]:
    mechanism = minimax(*arguments, **options)
    return mechanism, certify(mechanism, worst_case=True)


def value(*arguments, **options) -> float:
    return proven(*arguments, **options)[1].upper


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(("penalty", "boxed"), [(math.inf, False), (math.inf, True), (0.7, False), (0.7, True)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_program_over_whole_tables_finds_nothing_better(k: int, penalty: float, boxed: bool, epsilon: float) -> None:
    """On a grid that holds the outputs of the answer, and many others, all tables are allowed: the optimum is the same.

    ``minimise t  s.t.  M 1 = 1,  m_i <= M[y, i] <= E m_i,  sum_i M[y, i] (v_i - y)^2 / 2 + lam (M v - y)^2 / 2 <= t``
    """
    import cvxpy

    labels = UNEVEN[:k]
    outputs = near(labels, epsilon, 0.05) if math.isinf(penalty) else Interval(0.4, 0.8 * labels[-1])
    mechanism, proof = proven(labels, epsilon, bias_penalty=penalty, outputs=outputs if boxed else None)
    low, high = (outputs.low, outputs.high) if boxed else np.array(unbiased_range(labels, epsilon)) * 1.2 - [0.1, 0.0]
    grid = np.union1d(np.linspace(low, high, 60), mechanism.outputs)
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
    assert proof.upper == pytest.approx(witness, rel=WITNESS)
    assert proof.lower == pytest.approx(proof.upper, rel=GAP)


@pytest.mark.parametrize("penalty", [math.inf, 3.0])
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_the_worst_prior_is_a_saddle_point(epsilon: float, penalty: float) -> None:
    """Under the worst prior the best randomizer has the same value, and under no prior a larger one."""
    labels = drawn(7, "rough", 3)
    mechanism, largest = proven(labels, epsilon, bias_penalty=penalty)
    worst = optrand.solve(regression(labels, mechanism.prior, epsilon, bias_penalty=penalty))
    assert certify(worst).upper == pytest.approx(largest.upper, rel=GAP)
    rng = np.random.default_rng(4)
    for spread in (0.2, 1.0, 10.0):
        prior = rng.dirichlet(np.full(7, spread))
        proof = certify(optrand.solve(regression(labels, prior, epsilon, bias_penalty=penalty)))
        assert proof.upper <= largest.upper
        nearby = 0.9 * mechanism.prior + 0.1 * prior
        solved = optrand.solve(regression(labels, nearby / nearby.sum(), epsilon, bias_penalty=penalty))
        assert certify(solved).upper <= largest.upper * (1 + GAP)


@pytest.mark.parametrize("k", [3, 10])
def test_a_small_epsilon_leaves_the_two_ends(k: int) -> None:
    """No more than rounding to the ends, then two labels: ``(1/2 + 1/(E-1))^2 / 2``. No less than the ends alone."""
    labels = drawn(k, "rough", 6)
    spread, odds = np.ptp(labels), math.exp(0.01)
    found = value(labels, 0.01) / spread**2
    assert odds / (odds - 1) ** 2 / 2 <= found * (1 + 1e-12)
    assert found <= (0.5 + 1 / (odds - 1)) ** 2 / 2 * (1 + 1e-12)


def test_a_penalty_leads_from_the_constant_in_the_middle_to_no_bias() -> None:
    """A constant costs ``(1 + lam) spread^2 / 8``. At ``lam -> 0`` privacy no longer matters at a small epsilon."""
    spread, free = np.ptp(UNEVEN), value(UNEVEN, 1.0)
    penalties = (1e-3, 1.0, 1e6)
    values = np.array([value(UNEVEN, 1.0, bias_penalty=penalty) for penalty in penalties])
    assert (values <= (1 + np.array(penalties)) * spread**2 / 8).all()
    assert values[-1] == pytest.approx(free, rel=1e-4)
    assert values[-1] < free
    assert value(UNEVEN, 1e-3, bias_penalty=0.1) == pytest.approx(1.1 * spread**2 / 8, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.05, 3.0])
@pytest.mark.parametrize("margin", [0.0, 1e-6])
def test_outputs_in_an_interval_that_is_barely_wide_enough(epsilon: float, margin: float) -> None:
    interval = near(UNEVEN, epsilon, margin)
    mechanism, proof = proven(UNEVEN, epsilon, outputs=interval)
    assert proof.gap <= GAP
    assert interval.low <= mechanism.outputs[0] <= mechanism.outputs[-1] <= interval.high


@pytest.mark.parametrize("kind", ["even", "clustered", "wild"])
@pytest.mark.parametrize(("penalty", "margin"), [(math.inf, None), (math.inf, 0.02), (1.5, None), (1.5, 0.1)])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.2), (13, 3.0), (24, 6.0)])
def test_exact_mechanisms_are_proven(k: int, epsilon: float, kind: str, penalty: float, margin: float | None) -> None:
    labels = drawn(k, kind, k)
    outputs = None
    if margin is not None:
        outputs = (
            near(labels, epsilon, margin) if math.isinf(penalty) else Interval(*np.quantile(labels, (margin, 0.8)))
        )
    proof = proven(labels, epsilon, bias_penalty=penalty, outputs=outputs)[1]
    assert proof.gap <= (GAP if epsilon < 6 else 10 * GAP)
    assert proof.epsilon <= epsilon
    assert proof.findings == ()
    if math.isinf(penalty):
        assert proof.bias == 0


@pytest.mark.parametrize(("k", "epsilon"), [(70, 0.5), pytest.param(200, 0.3, marks=pytest.mark.nightly)])
def test_many_labels_level_by_level(k: int, epsilon: float) -> None:
    """Beyond sixty-four labels arcs come from a coarser answer, and few are in use in the end."""
    mechanism, proof = proven(drawn(k, "rough", k), epsilon)
    assert proof.gap <= GAP
    assert mechanism.outputs.size < 3 * k
    assert certify(mechanism).gap <= GAP


def test_the_average_never_exceeds_the_largest_loss() -> None:
    """The bound at any other prior is lower, and the optimum under it has a larger largest loss."""
    mechanism, best = proven(UNEVEN, 1.0)
    ordinary = optrand.solve(optrand.unbiased_regression(UNEVEN, [0.7, 0.1, 0.1, 0.1], 1.0))
    proof = certify(ordinary, worst_case=True)
    assert proof.lower < 0.98 * best.lower
    assert proof.upper > 1.02 * best.upper
    assert proof.gap > 0.1
    # The table of the one and the multipliers of the other make a proof, too.
    mixed = certify(replace(mechanism, table=ordinary.table), worst_case=True)
    assert (mixed.lower, mixed.upper) == (best.lower, proof.upper)


def test_wrong_priors_multipliers_and_tables_are_not_believed() -> None:
    mechanism, best = proven(UNEVEN, 1.0)
    problem, table, dual = mechanism.problem, mechanism.table, mechanism.dual
    doubled = optrand.Dual(2 * dual.alpha, 2 * dual.beta)
    assert replace(mechanism, dual=doubled).certify(worst_case=True).lower <= best.upper
    swapped = replace(problem, prior=problem.prior[[1, 0, 2, 3]])
    assert replace(mechanism, problem=swapped).certify(worst_case=True).lower < 0.99 * best.lower
    assert replace(mechanism, dual=None).certify(worst_case=True).lower == -math.inf
    biased = replace(mechanism, table=Table(UNEVEN, 2 * table.outputs, table.steps)).certify(worst_case=True)
    assert biased.upper == math.inf
    assert_error(None, biased.require, gap=1.0, error=NotCertified)
    assert_error("would not be private", replace, mechanism, problem=replace(problem, epsilon=0.99))


@by_case(
    "arguments, message, error",
    ({"outputs": [0.0, 7.0, 30.0]}, "not a grid", InvalidInput),
    ({"bias_penalty": 0.0}, "bias_penalty is 0", InvalidInput),
    ({"bias_penalty": -1.0}, "bias_penalty", InvalidInput),
    ({"outputs": Interval(0, 7)}, "would do", Infeasible),
    ({"epsilon": 20.0}, ".", NotCertified),
    ({"epsilon": 40.0}, ".", NotCertified),
)
def test_bad_arguments_are_refused_and_a_huge_epsilon_fails_honestly(arguments, message: str, error: type) -> None:
    assert_error(message, minimax, **{"labels": UNEVEN, "epsilon": 1.0, **arguments}, error=error)


def test_only_squared_loss() -> None:
    problem = regression(UNEVEN, np.full(4, 0.25), 1.0, loss=optrand.losses.absolute)
    assert_error("squared", certify, optrand.solve(problem), worst_case=True)
    assert_error("squared loss with a bias penalty", WorstPrior(), problem)


def posed(k: int, epsilon: float, penalty: float = math.inf, *, boxed: bool = False) -> Problem:
    labels = drawn(k, "rough", k)
    outputs = None
    if boxed:
        outputs = near(labels, epsilon, 0.02) if math.isinf(penalty) else Interval(labels[0] + 0.1, labels[-1] - 0.4)
    return regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=penalty, outputs=outputs)


CLASSES = [(math.inf, False), (math.inf, True), (1.7, False), (1.7, True)]


@pytest.mark.parametrize(("penalty", "boxed"), CLASSES)
def test_newtons_method_takes_a_rough_answer_to_the_last_digits(penalty: float, boxed: bool) -> None:
    """To a gap that only floats limit, on few columns. A bias penalty needs the multipliers of the kernel as well."""
    problem, options = posed(20, 1.0, penalty, boxed=boxed), ConeOptions()
    program, answer, _ = solve_cones(problem, unknown=True, options=options, floor=1e-4)
    program, answer = only(program, answer.masses > answer.slacks, options)
    polished, rough = candidates(program, answer, 1)
    if problem.unbiased:
        assert _worst_case_gap(polished) < 1e-12 < 1e-10 < _worst_case_gap(rough)
    else:
        assert _worst_case_gap(next(_with_kernel_multipliers(polished))) < 1e-12
    assert polished.randomizer.n <= 45


@pytest.mark.parametrize(("penalty", "boxed"), CLASSES)
def test_the_jacobian_of_the_conditions_is_their_derivative(penalty: float, boxed: bool) -> None:
    """By central differences, at a point that satisfies none of them."""
    program, answer, _ = solve_cones(posed(6, 1.0, penalty, boxed=boxed), unknown=True)
    support, rng = Support(program, answer), np.random.default_rng(3)
    point, variable = support.start.copy(), support.variable
    point[variable] += 1e-3 * rng.normal(size=variable.sum())
    matrix, _ = support.linearize(point)
    step = np.zeros_like(point)
    step[variable] = 1e-6 * rng.normal(size=variable.sum())
    change = support.linearize(point + step)[1] - support.linearize(point - step)[1]
    assert change / 2e-6 == pytest.approx(matrix @ step[variable] / 1e-6, abs=1e-6)


def test_the_given_prior_is_not_looked_at() -> None:
    problem = posed(9, 1.0)
    other = replace(problem, prior=np.eye(9)[3] * 0.9 + 0.1 / 9)
    assert WorstPrior()(problem).problem.prior == pytest.approx(WorstPrior()(other).problem.prior, abs=1e-12)


def test_randomizers_of_other_priors_are_far_from_proven() -> None:
    solution, ordinary = WorstPrior()(posed(12, 1.0)), design(posed(12, 1.0))
    assert _worst_case_gap(solution) <= GAP
    assert _worst_case_gap(replace(solution, randomizer=ordinary.randomizer)) > 1e-3
    assert _worst_case_gap(replace(solution, dual=None)) == math.inf
