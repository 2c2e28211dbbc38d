"""Labels far from zero, milliseconds or 1e15: the answer is that of the labels moved back, carried over exactly."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand import Grid, Interval, certify, losses, solve, tabulate
from optrand.errors import OptrandError
from optrand.solvers.translation import Translation

GAP = 1e-9


def far_problem(rng: np.random.Generator) -> tuple[optrand.Problem, optrand.Problem]:
    """Labels between 1e3 and 1e15 on a lattice that floats hold there, and the same moved back to zero."""
    k, epsilon = int(rng.integers(2, 61)), float(np.exp(rng.uniform(math.log(0.05), math.log(12))))
    away = float(np.rint(10 ** rng.uniform(3, 15)))
    steps = rng.integers(1, 5, size=k - 1)
    unit = 2.0 ** max(-10, math.ceil(math.log2(away)) - 52)
    near = np.concatenate(([0.0], np.cumsum(steps) * unit))
    prior = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 5.0])))
    sign = rng.choice([-1.0, 1.0])
    return tuple(optrand.unbiased_regression(y, prior, epsilon) for y in (sign * away + near, near))  # type: ignore[return-value]


def checked(rng: np.random.Generator) -> float:
    """The largest gap of a far problem, whose intervals hold the optimum of the near one."""
    far, near = far_problem(rng)
    solution = solve(far)
    mechanism = tabulate(solution)
    truth = certify(tabulate(solve(near))).require(gap=GAP)
    assert not any(mechanism.exact_biases)
    gaps = []
    for proof in (certify(solution), certify(mechanism)):
        proof.require(gap=GAP)
        # Two intervals that hold one optimum meet.
        assert proof.lower <= truth.upper
        assert truth.lower <= proof.upper
        gaps.append(proof.gap)
    return max(gaps)


def test_labels_far_from_zero_are_solved_unbiased_and_proven() -> None:
    rng = np.random.default_rng(2026)
    assert max(checked(rng) for _ in range(60)) <= GAP


def test_the_second_of_a_year_in_milliseconds() -> None:
    """Two labels: the optimum is debiased randomized response, whose loss is d^2 E / (E - 1)^2 / 2."""
    problem = optrand.unbiased_regression([1.7e12, 1.7e12 + 1], [0.5, 0.5], 2.0)
    ratio = math.exp(2.0)
    optimum = ratio / (ratio - 1) ** 2 / 2
    for subject in (solve(problem), tabulate(solve(problem))):
        proof = certify(subject).require(gap=GAP)
        assert proof.lower <= optimum * (1 + 1e-15)
        assert optimum * (1 - 1e-15) <= proof.upper
        assert f"{proof.lower:.11f}" == "0.09050770762"


@pytest.mark.parametrize("penalty", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("kind", ["line", "interval", "grid"])
def test_every_kind_of_problem_moves_along(kind: str, penalty: float) -> None:
    rng, away = np.random.default_rng(4), 1e15
    near = np.array([0.0, 1.0, 2.0, 5.0, 6.0])
    prior = rng.dirichlet(np.ones(5))
    low, high = optrand.unbiased_range(near, 1.0)
    sets = {
        "line": (None, None),
        "interval": (Interval(math.floor(low) - 1, math.ceil(high) + 1), Interval(away - 6, away + 12)),
        "grid": (Grid(np.arange(-8.0, 15.0)), Grid(away + np.arange(-8.0, 15.0))),
    }
    if kind == "interval":
        sets["interval"] = tuple(
            Interval(shift + math.floor(low) - 1, shift + math.ceil(high) + 1) for shift in (0.0, away)
        )  # type: ignore[assignment]
    for loss in (losses.squared, losses.absolute) if penalty == 0 or kind == "grid" else (losses.squared,):
        here, there = (
            optrand.regression(shift + near, prior, 1.0, loss=loss, bias_penalty=penalty, outputs=outputs)
            for shift, outputs in zip((0.0, away), sets[kind], strict=True)
        )
        expected, proof = certify(tabulate(solve(here))), certify(solve(there))
        assert proof.lower == pytest.approx(expected.lower, rel=1e-8)
        assert proof.upper == pytest.approx(expected.upper, rel=1e-8)
        if penalty == math.inf:
            assert not any(tabulate(solve(there)).exact_biases)


def test_a_mechanism_far_away_is_saved_and_verified(tmp_path) -> None:
    problem = optrand.unbiased_regression(np.arange(5.0) + 1e15, np.full(5, 0.2), 1.0)
    mechanism = tabulate(solve(problem))
    assert mechanism.dual is not None
    assert mechanism.dual.origin == 1e15 + 2
    mechanism.save(tmp_path / "far.json")
    loaded = optrand.load(tmp_path / "far.json")
    assert loaded == mechanism
    assert certify(loaded).require(gap=GAP) == certify(mechanism)
    text = (tmp_path / "far.json").read_text()
    (tmp_path / "zero.json").write_text(text.replace(repr(mechanism.dual.origin), "0.0"))
    with pytest.raises(optrand.errors.InvalidFile):
        optrand.load(tmp_path / "zero.json")


def test_labels_near_zero_and_losses_that_do_not_move_stay() -> None:
    near = optrand.unbiased_regression([-1, 0, 15], [0.5, 0.3, 0.2], 1.0)
    assert Translation(near).origin == 0
    assert Translation(near).centred is near
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


if __name__ == "__main__":
    worst, failed, rng = 0.0, 0, np.random.default_rng(int(sys.argv[2]))
    for number in range(int(sys.argv[1])):
        try:
            worst = max(worst, checked(rng))
        except (AssertionError, OptrandError) as error:
            failed += 1
            sys.stdout.write(f"{number}: {error}\n")
    sys.stdout.write(f"{failed} of {sys.argv[1]} failed, the worst gap of the others {worst:.2g}\n")
