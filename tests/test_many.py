"""Many problems at once: order, equal ones once, errors by position, and executors."""

import functools
import multiprocessing
import pickle
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand.errors import NotCertified, OutOfTime, SolverFailed, SomeFailed

PROCESSES = functools.partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context("spawn"))
"""New processes, which know nothing of this one: the hardest case."""


def problems(count=12, seed=0):
    rng = np.random.default_rng(seed)
    return [
        optrand.unbiased_regression(np.arange(9), rng.dirichlet(np.ones(9)), float(rng.choice([0.5, 1, 3])))
        for _ in range(count)
    ]


@dataclass(frozen=True)
class Counting:
    """A solver that records its problems, takes its time, and fails at one epsilon."""

    asked: list = field(default_factory=list, compare=False)
    fails: float = -1.0
    pause: float = 0.0

    def __call__(self, problem):
        self.asked.append(problem)
        time.sleep(self.pause)
        if problem.epsilon == self.fails:
            raise SolverFailed("no answer")
        return optrand.solvers.ReducedDual()(problem)


def test_answers_are_those_of_solve_in_order():
    given = problems()
    for problem, solution in zip(given, optrand.solve_many(iter(given)), strict=True):
        assert solution.problem == problem
        assert optrand.certify(solution).gap < 1e-9
        assert solution.value == optrand.solve(problem).value


def test_equal_problems_are_solved_once():
    given, solver = problems(5), Counting()
    twice = given + problems(5)
    found = optrand.solve_many(twice, solver)
    assert len(solver.asked) == 5
    assert all(found[i] is found[i + 5] for i in range(5))


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, PROCESSES], ids=["threads", "processes"])
def test_executors_give_the_same(executor):
    given = problems(7)
    with executor(2) as pool:
        found = optrand.solve_many(given, executor=pool)
    # Sums of floats in another process may differ in their last bits, with the place of arrays in memory.
    here = [solution.value for solution in optrand.solve_many(given)]
    assert [solution.value for solution in found] == pytest.approx(here, rel=1e-12)
    assert [solution.problem for solution in found] == given


def test_failures_are_named_by_position_and_lose_nothing():
    given = problems()
    lost = [i for i, problem in enumerate(given) if problem.epsilon == 3]
    found = optrand.solve_many(given, Counting(fails=3.0), on_error="return")
    assert [i for i, result in enumerate(found) if isinstance(result, NotCertified)] == lost
    with pytest.raises(SomeFailed, match=rf"^{len(lost)} of 12 problems .* number {lost[0]} \(no solution") as caught:
        optrand.solve_many(given, Counting(fails=3.0))
    kept = pickle.loads(pickle.dumps(caught.value)).results  # noqa: S301
    assert len(kept) == 12
    assert {i for i, result in enumerate(kept) if isinstance(result, optrand.Mechanism)} == set(range(12)) - set(lost)


@by_case(
    "given, words",
    (problems(1)[0], "problems is of type Problem, expected a list"),
    (3, "problems is of type int"),
    ([problems(1)[0], [0, 1]], "problem number 1 is of type list, expected one of optrand.regression"),
)
def test_bad_input_is_refused_before_anything_is_solved(given, words):
    solver = Counting()
    assert_error(words, optrand.solve_many, given, solver)
    assert not solver.asked


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_time_limit_leaves_what_is_proven_so_far(executor):
    given = problems(40)
    slow = Counting(pause=0.2)
    with nullcontext() if executor is None else executor(2) as pool:
        if pool is not None:
            # Processes that were not forked take long to start and to import the package.
            list(pool.map(slow, given[:2]))
        found = optrand.solve_many(given, slow, executor=pool, on_error="return", time_limit=3.0)
    solved = [isinstance(one, optrand.Mechanism) for one in found]
    assert 0 < sum(solved) < len(given)
    assert all(optrand.certify(one).gap < 1e-9 for one, right in zip(found, solved, strict=True) if right)
    late = [one for one, right in zip(found, solved, strict=True) if not right]
    assert all(isinstance(one, OutOfTime) and isinstance(one, TimeoutError) for one in late)
    assert "time limit of 3 s" in str(late[0])


def test_time_that_is_over_is_raised_with_all_results():
    given = [*problems(5), optrand.classification([0.5, 0.5], 1.0)]
    with pytest.raises(SomeFailed, match=r"^6 of 6 problems .*time limit of 0 s") as caught:
        optrand.solve_many(given, time_limit=0)
    assert all(isinstance(one, OutOfTime) for one in caught.value.results)


@pytest.mark.parametrize("limit", [-1.0, np.nan, "soon", True])
def test_time_limits_are_checked(limit):
    assert_error("time_limit is", optrand.solve_many, problems(1), time_limit=limit)
