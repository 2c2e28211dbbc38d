"""Problems of one kind are answered at once as they are one by one, and each answer is proven."""

from dataclasses import replace

import numpy as np
import pytest

import optrand
from optrand.mechanism.tabulation import tabulate
from optrand.model.outputs import Interval
from optrand.solvers import batches, design
from optrand.solvers.batches import batch_key, solve_at_once

KINDS = ["squared", "absolute", "poisson_log"]


def problems(kind, count=24, k=17, seed=0, outputs=None):
    """Problems that differ in prior and epsilon only."""
    rng = np.random.default_rng([seed, k])
    priors = rng.dirichlet(np.full(k, 0.7), count) + 1e-12
    priors /= priors.sum(axis=1, keepdims=True)
    epsilons = np.exp(rng.uniform(-2, 2, count)).tolist()
    labels = np.cumsum(rng.uniform(0.2, 2, k))
    loss = getattr(optrand.losses, kind)
    return [
        optrand.regression(labels, prior, epsilon, loss=loss, outputs=outputs)
        for prior, epsilon in zip(priors, epsilons, strict=True)
    ]


@pytest.mark.parametrize("outputs", [None, Interval(3.0, 9.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_one_by_one(kind, outputs):
    given = problems(kind, outputs=outputs)
    for problem, solution in zip(given, solve_at_once(given), strict=True):
        alone = design(problem)
        assert solution.problem is problem
        assert solution.value == pytest.approx(alone.value, rel=1e-9)
        assert solution.randomizer.n == alone.randomizer.n
        assert solution.stats.solver == alone.stats.solver
        assert optrand.certify(tabulate(solution)).require(1e-9).findings == ()


def test_others_are_left_alone():
    labels, prior = [0, 1, 2], [0.5, 0.3, 0.2]
    for problem in (
        optrand.unbiased_regression(labels, prior, 1.0),
        optrand.regression(labels, prior, 1.0, bias_penalty=1.0),
        optrand.regression(labels, prior, 1.0, outputs=[0, 1, 2]),
        optrand.regression(labels, [0.5, 0.0, 0.5], 1.0),
        optrand.regression(labels, prior, 13.0),
        optrand.regression([1e9, 1e9 + 1, 1e9 + 2], prior, 1.0),
        optrand.regression([1], [1.0], 1.0),
        optrand.regression(range(257), np.full(257, 1 / 257), 1.0),
        optrand.regression(labels, prior, 1.0, loss=optrand.losses.zero_one, outputs=[0, 1]),
        optrand.classification(prior, 1.0),
    ):
        assert batch_key(problem) is None
        assert solve_at_once([problem, replace(problem, epsilon=problem.epsilon / 2)]) == [None, None]
    assert solve_at_once(problems("squared", 1)) == [None]


def test_what_floats_do_not_prove_is_solved_alone(monkeypatch):
    monkeypatch.setattr(batches, "estimated_gap", lambda _: 1e-8)
    assert solve_at_once(problems("squared", 3)) == [None] * 3
    assert all(optrand.certify(one).gap < 1e-9 for one in optrand.solve_many(problems("squared", 3)))


def test_where_floats_give_out_problems_are_solved_alone(monkeypatch):
    def broken(*_):
        raise FloatingPointError

    monkeypatch.setattr(batches, "best_cuts", broken)
    assert solve_at_once(problems("absolute", 3)) == [None] * 3
