"""Sweeps: one certified row per problem, in order, on any executor, and sweeps that stop early."""

import math
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from asserting import assert_error, by_case

import optrand.studies._many
from optrand import certify, feasible_output_set, solve, unbiased_regression
from optrand.certificates._certificate import Certificate
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.model._problem import Interval
from optrand.solvers import ColumnGeneration, GridDual
from optrand.studies import sweep
from optrand.studies._paths import count_outputs

GAP = 1e-9
"""Gap that every row of these small problems must verify."""

LABELS, PRIOR = [0, 1, 2, 5], [0.4, 0.3, 0.2, 0.1]
EPSILONS = [0.5, 1.0, 2.0]
PENALTIES = [0.0, 0.7, 20.0, math.inf]


@pytest.fixture(scope="module")
def problem():
    return unbiased_regression(LABELS, PRIOR, 1.0)


@pytest.fixture(scope="module")
def rows(problem):
    """Twelve rows, solved in turn."""
    return sweep(problem, epsilons=EPSILONS, bias_penalties=PENALTIES)


def test_a_wrong_solver_is_refused_before_anything_is_solved(problem):
    for solver in ("HIGHS", GridDual, 3):
        assert_error("expected a solver with its options", sweep, problem, epsilons=[0.5], solver=solver)
        with pytest.raises(InvalidInput, match="expected a solver with its options"):
            optrand.solve_many([problem], solver=solver, on_error="return")


def test_a_row_is_what_the_library_says_of_that_problem(problem, rows):
    for row, found in zip(rows, rows.results, strict=True):
        question = replace(problem, epsilon=row.epsilon, bias_penalty=row.bias_penalty)
        assert found.problem == question
        assert found.value == pytest.approx(solve(question).value, rel=1e-12)
        proof = certify(found)
        assert (row.value, row.lower, row.upper, row.gap) == (proof.upper, proof.lower, proof.upper, proof.gap)
        assert (row.realised_epsilon, row.bias) == (proof.epsilon, proof.bias)
        assert row.outputs == count_outputs(found) <= found.n <= found.outputs.size
        assert (row.status, row.reason) == ("certified", "")
        assert row.gap <= GAP
        assert row.realised_epsilon <= row.epsilon


def test_value_is_half_of_variance_and_penalised_squared_bias(rows):
    """The objective by its definition: (variance + (1 + penalty) * squared bias) / 2."""
    for row in rows:
        weight = 1.0 if row.bias_penalty == math.inf else 1 + row.bias_penalty
        assert row.value == pytest.approx((row.variance + weight * row.squared_bias) / 2, rel=1e-12)


def test_less_privacy_and_less_care_for_bias_never_cost_more(rows):
    """A randomizer that keeps a budget keeps a larger one, and a penalty only adds to the objective."""
    table = np.reshape([row.value for row in rows], (len(EPSILONS), len(PENALTIES)))
    assert (np.diff(table, axis=0) < 0).all()
    assert (np.diff(table, axis=1) > 0).all()
    squared_bias = np.reshape([row.squared_bias for row in rows], table.shape)
    assert (np.diff(squared_bias, axis=1) < 0).all()
    assert (squared_bias[:, -1] < 1e-24).all()


def test_the_solver_is_the_one_that_was_asked_for():
    grid = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=feasible_output_set([0, 1, 2], 1.0, 9))
    values = [sweep(grid, solver=solver)[0].value for solver in (None, GridDual(), ColumnGeneration())]
    assert values == pytest.approx([values[0]] * 3, rel=GAP)
    assert_error("takes outputs on a grid", ColumnGeneration(), unbiased_regression(LABELS, PRIOR, 1.0))
    (refused,) = sweep(unbiased_regression(LABELS, PRIOR, 1.0), solver=ColumnGeneration())
    assert refused.status == "failed"
    assert "takes outputs on a grid" in refused.reason


def test_outputs_too_narrow_for_a_small_epsilon_make_a_row_that_says_so():
    """Outputs from -1 to 3 are unbiased for 0 and 2 from E - 1 = 2 on: at epsilon log(3)."""
    question = unbiased_regression([0, 2], [0.5, 0.5], 2.0, outputs=Interval(-1, 3))
    short, enough = sweep(question, epsilons=[math.log(3) - 1e-6, math.log(3) + 1e-6])
    assert (short.status, short.outputs) == ("infeasible", 0)
    assert "cannot be unbiased" in short.reason
    assert math.isnan(short.value)
    assert math.isnan(short.gap)
    assert (enough.status, enough.gap <= GAP) == ("certified", True)


def test_a_solve_that_fails_is_a_row_with_what_was_proven(problem, monkeypatch):
    known = Certificate(
        lower=1.0, upper=5.0, target_epsilon=1.0, epsilon=math.inf, bias=0.25, findings=("not private",)
    )

    def fails(question, _):
        if question.epsilon == 2.0:
            raise NotCertified("no useful bound", certificate=known)
        if question.epsilon == 1.0:
            raise NotCertified("the backend gave up")
        return solve(question)

    monkeypatch.setattr(optrand.studies._many, "solve", fails)
    good, nothing, something = sweep(problem, epsilons=EPSILONS)
    assert good.status == "certified"
    assert (nothing.status, nothing.reason) == ("failed", "the backend gave up")
    assert math.isnan(nothing.lower)
    assert (something.lower, something.upper, something.realised_epsilon) == (1.0, 5.0, math.inf)
    assert math.isnan(something.value)


def test_a_mechanism_that_proves_nothing_is_not_certified(problem, monkeypatch):
    """An answer whose dual is lost still tabulates, is still private, and is no certified row."""
    monkeypatch.setattr(optrand.studies._many, "solve", lambda question, _: replace(solve(question), dual=None))
    (row,) = sweep(problem)
    assert row.status == "failed"
    assert "verified gap is inf" in row.reason
    assert row.upper == pytest.approx(solve(problem).value)


def test_pandas_reads_a_sweep_as_it_is(rows):
    frame = pd.DataFrame(rows)
    assert tuple(frame.columns) == rows.columns
    assert (frame["value"].tolist(), frame["outputs"].dtype.kind) == ([row.value for row in rows], "i")
    assert frame.equals(pd.DataFrame(rows.arrays()))
    assert frame.equals(pd.DataFrame(rows.records()))
    best = frame.loc[frame.groupby("epsilon")["value"].idxmin(), "bias_penalty"]
    assert best.tolist() == [0.0] * 3


class Recorded(Executor):
    """Tasks that are never begun, and one that ends as set."""

    def __init__(self, first):
        self.first, self.futures = first, []

    def submit(self, _task, /, *_, **__):
        future = Future()
        self.futures.append(future)
        if len(self.futures) == 3:
            self.futures[0].set_running_or_notify_cancel()
            if isinstance(self.first, BaseException):
                self.futures[0].set_exception(self.first)
            else:
                self.futures[0].set_result([self.first])
        return future


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_a_task_or_an_interrupt_raises_cancels_those_that_wait(problem, rows, error):
    def stop(done, _):
        if done:
            raise error

    executor = Recorded(error() if error is MemoryError else rows.results[0])
    assert_error(None, sweep, problem, epsilons=EPSILONS, executor=executor, progress=stop, error=error)
    assert [future.cancelled() for future in executor.futures] == [False, True, True]


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_a_function_is_told_before_the_first_and_after_each(pool):
    question = unbiased_regression([0, 2], [0.5, 0.5], 2.0, outputs=Interval(-1, 3))
    told = []
    with pool(2) if pool else ThreadPoolExecutor(1) as executor:
        sweep(
            question,
            epsilons=[1.0, 2.0, 3.0],
            executor=executor if pool else None,
            progress=lambda *news: told.append(news),
        )
    # The infeasible one is done before anything is solved.
    assert told == [(1, 3), (2, 3), (3, 3)]


@by_case(
    "options, message",
    ({"epsilons": [1.0, 0.0]}, "epsilon is 0"),
    ({"epsilons": []}, "epsilons is empty"),
    ({"epsilons": 1.0}, "epsilons is of type float, expected a list"),
    ({"epsilons": "12"}, "epsilons is of type str, expected a list"),
    ({"bias_penalties": [-1.0]}, "bias_penalty is -1"),
    ({"bias_penalties": []}, "bias_penalties is empty"),
    ids=str,
)
def test_parameters_without_meaning_are_refused_before_anything_is_solved(problem, monkeypatch, options, message):
    asked = []
    monkeypatch.setattr(optrand.studies._many, "solve", lambda *_: asked.append(1))
    with pytest.raises(InvalidInput, match=message) as caught:
        sweep(problem, **options)
    assert not isinstance(caught.value, Infeasible)
    assert asked == []
