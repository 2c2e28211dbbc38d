"""Squared loss on a grid by the interior point, against column generation."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import largest_ratio

from optrand import Problem, certify, feasible_output_set, losses, unbiased_range, unbiased_regression
from optrand.errors import SolverFailed
from optrand.mechanism._tabulation import tabulate
from optrand.model._problem import regression
from optrand.model._randomizer import decompose
from optrand.programs import Highs
from optrand.programs._backends import Form, Result
from optrand.programs._certificate import Status
from optrand.solvers import ColumnGeneration, GridDual, design
from optrand.solvers.grid._column_generation import restore_rows
from optrand.solvers.grid._dual import Columns, GridOptions, GridProblem


def posed(k: int, n: int, epsilon: float, penalty: float = math.inf, *, even: bool = True) -> Problem:
    """A rough prior, and values that reach a little further than unbiased outputs need."""
    rng = np.random.default_rng([k, n])
    labels = np.cumsum(rng.random(k) + 0.05)
    low, high = unbiased_range(labels, epsilon) if math.isinf(penalty) else (labels[0], labels[-1])
    margin = 0.05 * (high - low)
    values = np.linspace(low - margin, high + margin, n)
    if not even:
        values[1:-1] = np.sort(rng.uniform(low, high, n - 2))
    return regression(labels, rng.dirichlet(np.ones(k)), epsilon, bias_penalty=penalty, outputs=values)


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("penalty", [math.inf, 1.5])
@by_case(
    "k, n, epsilon",
    (2, 9, 0.3),
    (7, 40, 2.0),
    (12, 5_000, 1.0),
    (20, 120, 1.0),
    pytest.param(40, 300, 1.0, marks=pytest.mark.nightly),
)
def test_the_interior_point_alone_proves_its_answer(k: int, n: int, epsilon: float, penalty: float, even: bool) -> None:
    problem = posed(k, n, epsilon, penalty, even=even)
    solution = GridDual()(problem)
    proof = certify(tabulate(solution)).require(gap=1e-9)
    assert np.isin(solution.randomizer.outputs, problem.outputs.values).all()
    assert solution.stats.iterations > 0
    if n <= 300:
        other = ColumnGeneration()(problem)
        assert solution.value <= other.value * (1 + 1e-9)
        assert proof.upper >= certify(tabulate(other)).lower


@by_case("k, n, penalty, even", (8, 20, 0.5, True), (12, 20, 0.5, False), (20, 50, 0.05, True))
def test_multipliers_at_a_price_of_bias_are_repaired_at_the_values_of_the_grid(
    k: int, n: int, penalty: float, even: bool
) -> None:
    """Repaired between the values as well, where no output is, they leave gaps of 1e-2."""
    certify(tabulate(GridDual()(posed(k, n, 5.0, penalty, even=even)))).require(gap=1e-9)


def test_a_finer_grid_is_no_worse_and_a_line_better_still() -> None:
    labels, prior = np.arange(9.0), np.full(9, 1 / 9)
    values = [
        GridDual()(
            regression(labels, prior, 1.0, bias_penalty=math.inf, outputs=feasible_output_set(labels, 1.0, n))
        ).value
        for n in (5, 9, 17, 33, 65)
    ]
    assert (np.diff(values) <= 1e-12).all()


def test_wrong_multipliers_and_masses_are_not_believed() -> None:
    problem = posed(7, 40, 2.0)
    solution = GridDual()(problem)
    off = GridProblem(problem, GridOptions())
    shifted = type(solution.dual)(solution.dual.alpha * 1.01, solution.dual.beta)
    assert solution.with_dual(shifted).gap > 1e-4
    assert off.find_violated(type(solution)(problem, solution.randomizer, None, solution.stats)).at.size == 0


def test_columns_answer_problems_that_the_interior_point_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    # Squares of labels, and a grid that reaches 1 % further than unbiased outputs need.
    labels = np.arange(20) ** 2.0
    margin = 1.01 * 361 / math.expm1(8)
    values = np.linspace(-margin, 361 + margin, 100)
    assert certify(tabulate(GridDual()(unbiased_regression(labels, np.full(20, 0.05), 8.0, outputs=values)))).gap < 1e-9
    monkeypatch.setattr(GridProblem, "solve", lambda *_: None)
    solution = GridDual()(posed(10, 100, 2.0))
    assert solution.stats.solver == repr(ColumnGeneration(rounds=50))
    assert solution.gap <= 1e-9
    beyond = GridDual(options=GridOptions(priced=999))
    assert_error(r"ColumnGeneration\(\) may have one", beyond, posed(10, 100, 2.0), error=SolverFailed)


def test_columns_are_united_each_once_and_in_order() -> None:
    some = Columns(*(np.array(x) for x in ([0, 1], [2, 3], [5, 4], [0.5, 0.25])))
    more = Columns.without_mass(*(np.array(x) for x in ([1, 0, 0], [3, 2, 1], [4, 1, 9])))
    *places, mass = (part.tolist() for part in some.unite(more))
    assert list(zip(*places, strict=True)) == [(0, 1, 9), (0, 2, 1), (0, 2, 5), (1, 3, 4)]
    assert mass == [0, 0, 0.5, 0.25]


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_other_problems_are_refused(penalty: float) -> None:
    one = regression([0.0], [1.0], 1.0, bias_penalty=penalty, outputs=[0.0, 1.0])
    assert_error("GridDual", GridDual(), one)
    assert not GridDual().accepts(regression([0.0, 1.0], [0.5, 0.5], 1.0, outputs=[0.0, 1.0]))


@by_case("loss, epsilon, seed", (losses.poisson_log, 5.0, 5), (losses.absolute, 5.0, 13), (losses.absolute, 5.0, 22))
def test_columns_in_use_bound_the_multipliers_that_prove_them(loss: losses.Loss, epsilon: float, seed: int) -> None:
    """At a price of bias, the multipliers of a master do not prove these answers, although they are optimal."""
    rng = np.random.default_rng(seed)
    prior = rng.choice([1.0, 1.0, 1e-5, 1e-8], 6)
    problem = regression(
        np.arange(1.0, 7.0), prior / prior.sum(), epsilon, loss=loss, bias_penalty=0.3, outputs=np.linspace(0.5, 7.0, 9)
    )
    certify(tabulate(ColumnGeneration()(problem))).require(gap=1e-9)


def test_multipliers_within_bounds_save_masters_if_outputs_are_few() -> None:
    """Each master gets one column per output at most: from its own multipliers alone, 52 are needed."""
    rng = np.random.default_rng(2)
    loss = losses.Tabulated(rng.random((30, 2)))
    prior = rng.dirichlet(np.ones(30))
    solution = ColumnGeneration()(regression(np.arange(30.0), prior, 5.0, loss=loss, outputs=[0.0, 1.0]))
    certify(tabulate(solution)).require(gap=1e-9)
    assert solution.stats.iterations <= 20


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_columns_of_the_program_end_rounds_that_each_improve_a_little(epsilon: float) -> None:
    """From its own columns alone more than a hundred masters are needed, or a minute."""
    labels, outputs = np.arange(53.0), np.linspace(0, 52, 25)
    prior = np.exp(-(((labels - 17.7) / 5.3) ** 2))
    loss = losses.Tabulated(np.abs(outputs - labels[:, np.newaxis]) ** 1.5)
    problem = regression(labels, prior / prior.sum(), epsilon, loss=loss, outputs=outputs)
    solution = ColumnGeneration()(problem)
    certify(tabulate(solution)).require(gap=1e-9)
    assert solution.stats.iterations <= 10


@dataclass(frozen=True)
class Silent(Highs):
    """A backend without an answer."""

    def run(self, form: Form) -> Result:
        del form
        nothing = np.zeros(0)
        return Result(Status.FAILED, "Solve error", nothing, nothing, 0)


@pytest.mark.parametrize("penalty", [0.0, math.inf])
def test_the_interior_point_answers_if_the_backend_does_not(penalty: float) -> None:
    problem = posed(7, 40, 2.0, penalty)
    certify(tabulate(ColumnGeneration(backend=Silent())(problem))).require(gap=1e-9)


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute], ids=["squared", "absolute"])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
@pytest.mark.parametrize("epsilon", [20.0, 27.0])
def test_losses_below_a_solvers_tolerance_are_proven(loss: losses.Loss, penalty: float, epsilon: float) -> None:
    """If labels are among the outputs, the loss is about exp(-epsilon): columns in use have to cost nothing exactly."""
    problem = regression([0.0, 1.0], [0.4, 0.6], epsilon, loss=loss, bias_penalty=penalty, outputs=[-5.0, 0.0, 1.0])
    certify(tabulate(ColumnGeneration()(problem))).require(gap=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 2.0, 8.0])
@given(share=st.sampled_from([1e-12, 1e-9, 1e-6]), seed=st.integers(0, 9))
@settings(max_examples=10)
def test_restored_rows_are_private_and_sum_to_one(epsilon: float, share: float, seed: int) -> None:
    problem = unbiased_regression([0.0, 1.0, 2.0, 4.0], [0.4, 0.1, 0.3, 0.2], epsilon)
    ratio = math.exp(epsilon)
    optimal = decompose(design(problem).randomizer, ratio, negligible=1e-9)
    noise = 1 + share * np.random.default_rng(seed).uniform(-1, 1, optimal.masses.size)
    before = replace(optimal, masses=optimal.masses * noise)
    after = restore_rows(before, ratio)
    _, table = after.table(ratio)
    assert np.abs(table.sum(axis=1) - 1).max() <= 1e-14
    assert largest_ratio(table) <= ratio * (1 + 1e-12)
    assert (after.masses >= 0).all()
    # The change is of the size of the error.
    assert np.abs(after.masses / before.masses - 1).max() <= 100 * share + 1e-9
