"""Only optrand's own errors leave a solver, for any problem and on any machine."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from asserting import assert_error, by_case
from threadpoolctl import ThreadpoolController

from optrand import Grid, certify, losses, regression, solve, unbiased_regression
from optrand.errors import Infeasible, InvalidInput, NotCertified, SolverFailed
from optrand.model._problem import Interval, Problem
from optrand.solvers import ColumnGeneration, ReducedDual
from optrand.solvers._interface import GuardedSolver, solver_failures

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("x"), np.linalg.LinAlgError("x"), RuntimeError("x"), IndexError("x"), InvalidInput("x")]
)
def test_errors_of_libraries_become_the_solvers(error):
    with (
        pytest.raises(SolverFailed, match=r"^ReducedDual\(\) has no answer: numbers left the range or the") as caught,
        solver_failures(ReducedDual()),
    ):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [Infeasible("x"), SolverFailed("x"), NotCertified("x"), TypeError("x")])
def test_what_says_enough_or_is_a_mistake_of_ours_passes(error):
    with pytest.raises(type(error), match=r"^x$") as caught, solver_failures(ReducedDual()):
        raise error
    assert caught.value is error


class _Broken:
    """A backend that fails like one."""

    name = "broken"

    def run(self, _):
        raise np.linalg.LinAlgError("SVD did not converge")


def test_a_backend_that_fails_is_not_the_callers_fault():
    solver = ColumnGeneration(backend=_Broken())
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs=[-2, 0, 1, 2, 4])
    with pytest.raises(SolverFailed, match="has no answer") as caught:
        solver(problem)
    assert str(caught.value.__cause__) == "SVD did not converge"
    assert_error(r"^no solution: \w+\(\) has no answer: [\w ]+$", solve, problem, solver, error=NotCertified)


@by_case(
    "epsilon, prior, penalty, named",
    (1e-15, [0.5, 0.5], 1.0, "epsilon 1e-15"),
    (600.0, [1.0, 1e-300], 1e-9, "epsilon 600 and a prior of 1e-300 and the bias penalty 1e-09"),
    (1.0, [0.5, 0.5], 1.0, ""),
)
def test_a_failure_names_the_numbers_that_are_extreme(epsilon, prior, penalty, named):
    def fails(_):
        raise SolverFailed("nothing")

    with pytest.raises(NotCertified) as caught:
        solve(regression([0, 1], prior, epsilon, bias_penalty=penalty), fails)
    advice = f". Less extreme numbers than {named} can be proven" if named else ""
    assert str(caught.value) == f"no solution: nothing{advice}"


def test_nothing_of_a_library_is_repeated_at_an_epsilon_near_0():
    with pytest.raises(NotCertified, match=r"^no solution: [\w ]+\. Less extreme numbers than epsilon 1e-15 can be"):
        solve(regression([17, 80, 122], [0.2, 0.5, 0.3], 1e-15, bias_penalty=0.37))


class _Threads(GuardedSolver):
    """A solver that counts the threads of BLAS, solves with another, counts again, and fails."""

    refusal = "anything"
    seen: ClassVar[list[dict[str, int]]] = []

    def accepts(self, problem):
        return problem.k > 1

    def _solution(self, problem):
        self.seen.append(blas_threads())
        ReducedDual()(problem)
        self.seen.append(blas_threads())
        raise ArithmeticError("x")


def blas_threads() -> dict[str, int]:
    return {one["filepath"]: one["num_threads"] for one in ThreadpoolController().select(user_api="blas").info()}


def test_blas_has_one_thread_while_any_solver_runs_and_its_own_number_after_the_last():
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    solve(problem)  # loads every library that the solver needs
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = blas_threads()
        assert_error("has no answer", _Threads(), problem, error=SolverFailed)
        assert _Threads.seen == [dict.fromkeys(before, 1)] * 2
        assert blas_threads() == before


EXTREME: dict[str, Problem] = {
    "a grid where 1 / E vanishes squared": regression([0, 1, 2], [0.2, 0.5, 0.3], 600.0, outputs=Grid([0, 1, 2])),
    "a column for nothing": regression(
        np.array([1, 2, 3]) * 1e140,
        [0.2, 0.5, 0.3],
        1.0,
        loss=losses.Tabulated(np.eye(3)),
        bias_penalty=1.0,
        outputs=np.array([1, 2, 3]) * 1e140,
    ),
    "weights of arcs that vanish": regression(
        np.array([1, 2, 4]) * 1e140, [1 - 1e-200, 1e-200, 0.0], 700.0, bias_penalty=1e6, outputs=Interval(0.0, 1e141)
    ),
    "labels next to the largest": unbiased_regression(np.array([1, 2, 4]) * 1e149, [0.2, 0.5, 0.3], 2.0),
    "a first output next to 0": regression(
        [0.0, 1.0], [1e-250, 1 - 1e-250], 700.0, loss=losses.poisson_log, bias_penalty=0.0
    ),
    "absolute loss without bias": regression(
        [0, 1, 5], [0.2, 0.5, 0.3], 300.0, loss=losses.absolute, bias_penalty=math.inf, outputs=np.linspace(0, 5, 11)
    ),
}


@pytest.mark.parametrize("name", EXTREME)
def test_an_extreme_problem_is_proven_or_ends_in_an_error_of_ours(name):
    problem = EXTREME[name]
    try:
        proof = certify(solve(problem))
    except NotCertified:
        return
    assert proof.findings == ()
    assert proof.lower <= proof.upper


def drawn(number: int) -> Problem:
    """Small, large, even, clustered and thin priors, and epsilon from almost 0 to the largest."""
    rng = np.random.default_rng([31, number])
    k = int(rng.choice([2, 3, 5, 9]))
    labels = [np.arange(float(k)), np.cumsum(rng.choice([1.0, 1e-7, 20.0], k)), 8.0 ** np.arange(k)][number % 3]
    labels = labels * 10.0 ** rng.choice([-140, 0, 140])
    prior = rng.dirichlet(np.full(k, 0.5)) * 10.0 ** -rng.choice([0.0, 20.0, 200.0], k)
    prior = np.where(rng.random(k) < 0.2, 0.0, np.maximum(prior, 1e-280))
    prior = np.append(prior[:-1], max(prior[-1], 0.1))
    epsilon = float(rng.choice([1e-6, 1e-3, 0.1, 1, 4, 20, 100, 600, 700]))
    penalty = float(rng.choice([0.0, 1e-3, 1.0, 1e6]))
    outputs = [None, Interval(labels[0], labels[-1]), np.linspace(labels[0], labels[-1], 5)][number // 3 % 3]
    loss = losses.absolute if number % 7 == 0 and (not penalty or number // 3 % 3 == 2) else losses.squared
    return regression(labels, prior / prior.sum(), epsilon, loss=loss, bias_penalty=penalty, outputs=outputs)


@pytest.mark.parametrize("numbers", [range(0, 200, 10), pytest.param(range(200), marks=pytest.mark.nightly)])
def test_nothing_but_an_answer_or_an_error_of_ours_comes_out(numbers):
    answered = 0
    for number in numbers:
        try:
            proof = certify(solve(drawn(number)))
        except (NotCertified, InvalidInput):
            continue
        else:
            assert proof.lower <= proof.upper, number
            answered += 1
    assert answered >= 0.6 * len(numbers)


@by_case("kernels", "Nehalem", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("", "Haswell")))
def test_clustered_labels_are_proven_with_the_arithmetic_of_every_processor(kernels):
    """The same 120 problems with the kernels of another processor, whose last digits differ."""
    environment = os.environ | ({"OPENBLAS_CORETYPE": kernels} if kernels else {})
    command = [sys.executable, "-W", "error", str(HERE / "clustered.py")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "120 of 120 proven\n"
