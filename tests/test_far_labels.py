"""Labels far from zero, milliseconds or 1e15: the answer is that of the labels moved back, carried over exactly."""

import math
from fractions import Fraction

import numpy as np
import pytest
from oracle import least_float, split_cost
from truth import Known, examine

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


def far_problem(rng: np.random.Generator) -> optrand.Problem:
    """Labels up to 1e15 or at powers of two, neighbouring floats or wider apart, at any epsilon from 0.1 to 20."""
    k, epsilon = int(rng.integers(2, 9)), float(np.exp(rng.uniform(math.log(0.1), math.log(20))))
    if rng.random() < 0.3:
        epsilon = float(rng.choice([0.1, 0.3, 0.5, 1.0, 2.0, 8.0, 12.0, 16.0, 20.0]))
    # On either side of a power of two floats are not equally far apart.
    away = float(rng.choice([np.rint(10 ** rng.uniform(3, 15)), 1e15, 2.0**49, 2.0 ** int(rng.integers(10, 50))]))
    unit = 2.0 ** int(rng.integers(0, 12)) * math.ulp(away)
    steps = [1, 1, 3] if k == 4 and rng.random() < 0.5 else rng.integers(1, 9, size=k - 1)
    labels = away + unit * (np.concatenate(([0.0], np.cumsum(steps))) - int(rng.integers(0, 3)))
    prior = np.full(k, 1 / k) if rng.random() < 0.3 else rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])))
    return optrand.unbiased_regression(labels * rng.choice([-1.0, 1.0]), prior, epsilon)


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.nightly)])
def test_the_loss_of_far_labels_is_that_of_the_table_that_is_drawn(count: int) -> None:
    rng, gaps, rests = np.random.default_rng([29, count]), [], []
    for _ in range(count):
        truth = Known.of(far_problem(rng))
        examine(truth, truth.mechanism.table, truth.mechanism.dual)
        proof = truth.mechanism.certificate
        gaps.append(proof.gap)
        rests.append(proof.gap - split_cost(truth.mechanism) / proof.upper)
    # Some labels are so close that floats cost a share of the loss, and the gap states it. Nothing else is lost.
    assert max(gaps) > 1e-3
    assert max(rests) < 1e-9


def test_what_floats_cost_is_in_the_gap() -> None:
    """Labels one float apart: the drawn table loses 3.401e-8, and outputs of any digits would lose 2.886e-8."""
    truth = Known.of(optrand.unbiased_regression(2.0**52 + np.array([0.0, 1.0, 2.0, 5.0]), np.full(4, 0.25), 20.0))
    examine(truth, truth.mechanism.table, truth.mechanism.dual)
    proof = truth.mechanism.certificate
    assert (proof.lower, proof.upper) == pytest.approx((2.8856e-8, 3.4009e-8), rel=1e-4)


def test_a_chain_of_630_outputs_loses_what_it_draws() -> None:
    """Each output of a coin, spread evenly over 315 numbers: half their variance, ``(315**2 - 1) / 24``, more.

    Such a file was once verified at 0.264, and lost 235.4.
    """
    truth = Known.of(optrand.unbiased_regression([2.0**52, 2.0**52 + 512], [0.5, 0.5], 1.0))
    outputs = [2.0**52 + start + step for start in (-512, 1024) for step in range(-157, 158)]
    table = optrand.Table.of_rows(truth.problem.labels, outputs, [[2] * 315 + [1] * 315, [1] * 315 + [2] * 315])
    examine(truth, table, truth.mechanism.dual)
    loss = (Fraction(2, 3) * 512**2 + Fraction(1, 3) * 1024**2) / 2 + Fraction(315**2 - 1, 24)
    assert optrand.Mechanism(truth.problem, table).value == least_float(loss)
