"""Labels far from zero, milliseconds or 1e15: the answer is that of the labels moved back, carried over exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from oracle import split_cost

import optrand
from optrand import Grid, Interval, certify, losses, solve
from optrand.solvers._interface import Translation


@pytest.mark.parametrize("penalty", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("kind", ["line", "interval", "grid"])
def test_every_kind_of_problem_moves_along(kind: str, penalty: float) -> None:
    rng, away = np.random.default_rng(4), 1e15
    near = np.array([0.0, 1.0, 2.0, 5.0, 6.0])
    prior = rng.dirichlet(np.ones(5))
    low, high = optrand.unbiased_range(near, 1.0)
    sets = {
        "line": lambda _: None,
        "interval": lambda x: Interval(x + math.floor(low) - 1, x + math.ceil(high) + 1),
        "grid": lambda x: Grid(x + np.arange(-8.0, 15.0)),
    }
    for loss in (losses.squared, losses.absolute) if penalty == 0 or kind == "grid" else (losses.squared,):
        here, there = (
            optrand.regression(shift + near, prior, 1.0, loss=loss, bias_penalty=penalty, outputs=sets[kind](shift))
            for shift in (0.0, away)
        )
        expected, proof = certify(solve(here)), certify(solve(there))
        assert proof.lower == pytest.approx(expected.lower, rel=1e-8)
        rounding = split_cost(solve(there)) if kind != "grid" else 0.0
        assert expected.upper * (1 - 1e-8) <= proof.upper <= expected.upper * (1 + 1e-8) + rounding
        if penalty == math.inf:
            assert not any(solve(there).exact_biases)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_two_ends_of_the_narrowest_interval_move_along(epsilon: float) -> None:
    """Their multipliers have an origin of their own, which is moved with the labels."""
    labels = 1e6 + np.array([0.0, 1.0, 3.0, 7.0])
    outputs = Interval(*optrand.unbiased_range(labels, epsilon))
    mechanism = solve(optrand.unbiased_regression(labels, [0.4, 0.3, 0.2, 0.1], epsilon, outputs=outputs))
    assert Translation(mechanism.problem).origin == mechanism.dual.origin == 1e6 + 3
    certify(mechanism).require(gap=1e-9)


def test_labels_near_zero_and_losses_that_do_not_move_stay() -> None:
    near = optrand.unbiased_regression([-1, 0, 15], [0.5, 0.3, 0.2], 1.0)
    assert Translation(near).origin == 0
    assert Translation(near).apply() is near
    poisson = optrand.regression([1e6, 1e6 + 1], [0.5, 0.5], 1.0, loss=losses.poisson_log)
    assert Translation(poisson).origin == 0
    # An end that floats cannot move exactly is left where it is.
    uneven = optrand.regression([1e6, 1e6 + 1], [0.5, 0.5], 1.0, outputs=Interval(0.1, 2e6))
    assert Translation(uneven).origin == 0


def test_differences_of_far_labels_are_exact() -> None:
    rng = np.random.default_rng(9)
    for _ in range(300):
        away = 10 ** rng.uniform(-140, 140)
        labels = np.unique(away * (1 + rng.random(6) / 17))
        problem = optrand.unbiased_regression(labels, np.full(labels.size, 1 / labels.size), 1.0)
        origin = problem.origin
        assert origin in labels
        assert [Fraction(y) - Fraction(origin) for y in labels.tolist()] == [
            Fraction(y) for y in (labels - origin).tolist()
        ]
