"""Every solver on every kind of problem that it accepts, judged by the certificate alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import given, settings
from oracle import reference_bound
from strategies import problems, solved_epsilons

import optrand
from optrand import Interval, Problem, losses, solvers
from optrand.base._arithmetic import exp_bracket
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._problem import regression
from optrand.solvers._bins import BinPath

GAP = 1e-6
"""The solved range promises this for 0.01 <= epsilon <= 8 and up to 64 labels."""

LABELS = np.array([0.0, 1.0, 2.5, 4.0, 4.5, 7.0])
PRIOR = np.array([0.35, 0.0, 0.25, 0.2, 0.05, 0.15])
EPSILON = 2.0


def grid(epsilon: float, size: int = 40) -> np.ndarray:
    low, high = optrand.unbiased_range(LABELS, epsilon)
    return np.linspace(min(low, 0.05) - 1, high + 1, size)


def positive_grid(epsilon: float) -> np.ndarray:
    return np.linspace(0.1, 12.0, 40) + 0 * epsilon


KINDS = {
    "classification": lambda e: optrand.classification(PRIOR, e),
    "line unbiased": lambda e: optrand.unbiased_regression(LABELS, PRIOR, e),
    "line penalised": lambda e: regression(LABELS, PRIOR, e, bias_penalty=2.0),
    "line free": lambda e: regression(LABELS, PRIOR, e),
    "line absolute": lambda e: regression(LABELS, PRIOR, e, loss=losses.absolute),
    "line poisson": lambda e: regression(LABELS, PRIOR, e, loss=losses.poisson_log),
    "interval unbiased": lambda e: optrand.unbiased_regression(
        LABELS, PRIOR, e, outputs=Interval(*(np.array(optrand.unbiased_range(LABELS, e)) * 1.01 + [-0.1, 0.1]))
    ),
    "interval penalised": lambda e: regression(LABELS, PRIOR, e, bias_penalty=2.0, outputs=Interval(0.5, 6.0)),
    "interval free": lambda e: regression(LABELS, PRIOR, e, outputs=Interval(0.5, 6.0)),
    "grid unbiased": lambda e: optrand.unbiased_regression(LABELS, PRIOR, e, outputs=grid(e)),
    "grid penalised": lambda e: regression(LABELS, PRIOR, e, bias_penalty=2.0, outputs=grid(e)),
    "grid free": lambda e: regression(LABELS, PRIOR, e, outputs=grid(e)),
    "grid absolute unbiased": lambda e: regression(
        LABELS, PRIOR, e, loss=losses.absolute, bias_penalty=math.inf, outputs=grid(e)
    ),
    "grid poisson": lambda e: regression(LABELS, PRIOR, e, loss=losses.poisson_log, outputs=positive_grid(e)),
    "grid tabulated": lambda e: regression(
        LABELS, PRIOR, e, loss=losses.Tabulated(np.random.default_rng(5).random((6, 9))), outputs=np.arange(9)
    ),
}

SOLVERS = {
    "closed": solvers.ClosedForm(),
    "columns": solvers.ColumnGeneration(),
    "line": solvers.ReducedDual(),
    "grid": solvers.GridDual(),
    "bins": BinPath(),
}

FREE = ("free", "absolute", "poisson")

ACCEPTED = {
    "classification": {"closed", "columns"},
    **{kind: {"line"} for kind in KINDS if kind.endswith(("line unbiased", "interval unbiased", "penalised"))},
    **{kind: {"bins"} for kind in KINDS if kind.startswith(("line", "interval")) and kind.split()[1] in FREE},
    **{kind: {"columns"} for kind in KINDS if kind.startswith("grid")},
    "grid unbiased": {"columns", "grid"},
    "grid penalised": {"columns", "grid"},
}
"""At epsilon 2. At a smaller one the closed form answers the unbiased problem on the line too."""


def test_the_accepted_pairs_are_these() -> None:
    found = {
        kind: {name for name, solver in SOLVERS.items() if solver.accepts(make(EPSILON))}
        for kind, make in KINDS.items()
    }
    assert found == ACCEPTED
    small = KINDS["line unbiased"](0.5)
    assert [name for name, solver in SOLVERS.items() if solver.accepts(small)] == ["closed", "line"]


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in sorted(ACCEPTED) for name in sorted(ACCEPTED[kind])]
)
def test_every_pair_is_certified(kind: str, name: str, epsilon: float) -> None:
    problem = KINDS[kind](epsilon)
    proof = optrand.certify(optrand.solve(problem, SOLVERS[name])).require(gap=GAP)
    assert proof.epsilon <= epsilon
    if problem.unbiased:
        assert proof.bias == 0


@settings(max_examples=60)
@given(problems(budgets=solved_epsilons))
def test_an_answer_is_proven_by_brute_force_over_all_columns_too(problem: Problem) -> None:
    """Problems of every kind. Only under Poisson log loss may there be no best output."""
    try:
        mechanism = optrand.solve(problem)
    except optrand.errors.Infeasible:
        assert problem.loss == losses.poisson_log
        return
    proof = optrand.certify(mechanism).require(gap=GAP)
    value = problem.sign * mechanism.value
    bound = reference_bound(problem, mechanism.dual, exp_bracket(problem.epsilon)[1])
    claim = -proof.upper if problem.sign < 0 else proof.lower
    assert claim <= bound + abs(bound) * Fraction(1, 10**12)
    assert bound <= value + 1e-9 * abs(value) + 1e-12


def test_the_dispatch_is_as_documented() -> None:
    def name(problem: Problem) -> str:
        return type(solvers.choose(problem)).__name__

    assert name(KINDS["classification"](1.0)) == "ClosedForm"
    assert name(KINDS["line unbiased"](EPSILON)) == "ReducedDual"
    assert name(KINDS["line unbiased"](0.5)) == "ClosedForm"
    assert name(KINDS["interval penalised"](1.0)) == "ReducedDual"
    assert name(KINDS["interval free"](1.0)) == name(KINDS["line poisson"](1.0)) == "BinPath"
    assert name(KINDS["grid unbiased"](1.0)) == name(KINDS["grid penalised"](1.0)) == "GridDual"
    assert name(KINDS["grid absolute unbiased"](1.0)) == name(KINDS["grid free"](1.0)) == "ColumnGeneration"


@pytest.mark.parametrize("penalty", [0.0, 0.7, math.inf])
def test_one_label_and_a_prior_that_knows_the_label(penalty: float) -> None:
    one = optrand.solve(regression([3.0], [1.0], 1.0, bias_penalty=penalty))
    assert one.outputs.tolist() == [3.0]
    assert optrand.certify(one).require(gap=0).upper == 0
    spike = optrand.solve(regression([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], 1.0, bias_penalty=penalty))
    proof = optrand.certify(spike).require(gap=GAP)
    assert (proof.upper == 0) == (penalty < math.inf)


def test_solve_raises_with_the_best_that_it_has() -> None:
    class Careless:
        def accepts(self, _: Problem) -> bool:
            return True

        def __call__(self, problem: Problem) -> Solution:
            found = solvers.ReducedDual()(problem)
            return Solution(problem, found.randomizer, None, found.stats)

    with pytest.raises(optrand.errors.NotCertified, match="could not be certified") as caught:
        optrand.solve(KINDS["line unbiased"](1.0), Careless())
    assert caught.value.mechanism is not None
    assert caught.value.certificate is not None
    assert caught.value.certificate.gap == math.inf


def test_solvers_refuse_what_they_do_not_accept() -> None:
    assert_error("ColumnGeneration", solvers.GridDual(), KINDS["line unbiased"](1.0))
    assert_error("GridDual", solvers.ReducedDual(), KINDS["grid unbiased"](1.0))
    assert_error("ReducedDual", solvers.ColumnGeneration(), KINDS["line unbiased"](1.0))
    assert_error("BinPath", solvers.ReducedDual(), KINDS["line free"](1.0))
    assert_error("bias penalty of 0", BinPath(), KINDS["line penalised"](1.0))


@pytest.mark.parametrize("kind", ["line unbiased", "line penalised", "interval unbiased", "interval penalised"])
def test_flows_come_back_as_arcs_and_no_table_is_made(kind: str) -> None:
    solution = solvers.ReducedDual()(KINDS[kind](1.0))
    arcs = solution.randomizer.arcs
    assert arcs is not None
    assert "matrix" not in vars(solution.randomizer)
    assert (arcs.masses > 0).all()
    assert (np.diff(arcs.outputs) >= 0).all()
    assert tabulate(solution).arcs is not None


def test_what_a_solution_says_of_how_it_came_about() -> None:
    stats = solvers.ReducedDual()(KINDS["line unbiased"](1.0)).stats
    assert stats.solver == repr(solvers.ReducedDual())
    assert stats.iterations >= 1
    assert stats.seconds > 0
    assert stats.status


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute, losses.Tabulated([[3.0], [0.0], [1e6]])])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 1e12])
def test_a_single_allowed_output_is_the_answer(loss, penalty):
    """All labels give the output, so the value is the sum of its definition."""
    labels, prior = np.array([0.0, 1.0, 4.0]), np.array([0.5, 0.25, 0.25])
    problem = regression(labels, prior, 1.0, loss=loss, bias_penalty=penalty, outputs=[3.0])
    mechanism = optrand.solve(problem)
    proof = mechanism.certificate.require(gap=1e-12)
    costs = {losses.squared: [4.5, 2.0, 0.5], losses.absolute: [3.0, 2.0, 1.0]}.get(loss, [3.0, 0.0, 1e6])
    assert proof.value == pytest.approx(prior @ costs + penalty / 2 * (prior @ [9.0, 4.0, 1.0]), rel=1e-15)
    assert mechanism.matrix.tolist() == [[1.0]] * 3


@pytest.mark.parametrize("penalty", [1.0, 1e6, 1e12])
def test_a_single_allowed_output_far_from_zero_is_proven(penalty):
    """Labels a hundred thousandth apart at a billion: `beta` measured from 0 would leave few digits of the loss."""
    labels = 1e9 + np.array([12.0, 17.0, 30.0]) * 1e-6
    for k in (1, 3):
        prior = np.full(k, 1 / k)
        problem = regression(labels[:k], prior, 1.0, bias_penalty=penalty, outputs=[1e9 + 2e-6])
        optrand.solve(problem).certificate.require(gap=1e-12)


def test_a_grid_for_many_labels_without_a_bias_penalty_is_proven_in_a_few_rounds():
    """More labels than those whose intervals are all columns: vertices alone took hundreds of rounds."""
    problem = regression(range(200), np.full(200, 1 / 200), 6.0, bias_penalty=0.0, outputs=np.linspace(0, 199, 64))
    solution = solvers.ColumnGeneration()(problem)
    assert solution.stats.iterations <= 20
    tabulate(solution).certificate.require(gap=1e-9)
