"""Problems of one kind are answered at once as they are one by one, and each answer is proven."""

from dataclasses import replace

import numpy as np
import pytest

import optrand
from optrand.closed_forms.response import design_rr_with_prior, many_rr_with_prior
from optrand.mechanism.tabulation import tabulate
from optrand.model.outputs import Interval
from optrand.solvers import batches, design
from optrand.solvers.batches import batch_key, solved_at_once
from optrand.solvers.gaps import estimated_gap

KINDS = ["squared", "absolute", "poisson_log", "classes"]


def problems(kind, count=24, k=17, seed=0, outputs=None):
    """Problems that differ in prior and epsilon only."""
    rng = np.random.default_rng([seed, k])
    priors = rng.dirichlet(np.full(k, 0.7), count) + 1e-12
    priors /= priors.sum(axis=1, keepdims=True)
    epsilons = np.exp(rng.uniform(-2, 2, count)).tolist()
    if kind == "classes":
        return [optrand.classification(prior, epsilon) for prior, epsilon in zip(priors, epsilons, strict=True)]
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
    for problem, solution in zip(given, solved_at_once(given), strict=True):
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
    ):
        assert batch_key(problem) is None
        assert solved_at_once([problem, replace(problem, epsilon=problem.epsilon / 2)]) == [None, None]
    assert solved_at_once(problems("squared", 1)) == [None]


def test_what_floats_do_not_prove_is_solved_alone(monkeypatch):
    monkeypatch.setattr(batches, "estimated_gap", lambda _: 1e-8)
    assert solved_at_once(problems("classes", 3)) == [None] * 3
    assert solved_at_once(problems("squared", 3)) == [None] * 3
    assert all(optrand.certify(one).gap < 1e-9 for one in optrand.solve_many(problems("squared", 3)))


def test_where_floats_give_out_problems_are_solved_alone(monkeypatch):
    def broken(*_):
        raise FloatingPointError

    for name in ("many_rr_with_prior", "many_bins"):
        monkeypatch.setattr(batches, name, broken)
    assert solved_at_once(problems("classes", 3) + problems("absolute", 3)) == [None] * 6


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 30.0])
def test_classes_at_once_have_the_multipliers_of_one(epsilon):
    rng = np.random.default_rng(3)
    priors = rng.dirichlet(np.ones(40), 20)
    priors[0] = 1 / 40
    priors[1] = (1 + 1e-12 * rng.normal(size=40)) / 40
    priors[2, 5:] = 0
    given = [optrand.classification(prior / prior.sum(), epsilon) for prior in priors]
    for problem, solution in zip(given, many_rr_with_prior(given), strict=True):
        alone = design_rr_with_prior(problem)
        assert np.array_equal(solution.randomizer.matrix, alone.randomizer.matrix)
        assert solution.dual.alpha == pytest.approx(alone.dual.alpha, rel=1e-12, abs=1e-15)
        assert estimated_gap(solution) < 1e-11
