"""Exact mechanisms from designs in floats: private and normalised to the last integer, whatever went in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optrand
from optrand.base.arithmetic import exp_bracket, privacy_ratio
from optrand.closed_forms.debiased import design_debiased_rr
from optrand.mechanism.tabulation import tabulate
from optrand.model.randomizer import Randomizer
from optrand.solvers import LinearProgram, design

EPSILONS = (1e-6, 1e-3, 0.01, 0.1, 1.0, 4.0, 8.0, 20.0, 40.0)
UTILITY = 1e-6
"""Within the solved range a mechanism loses at most this share of its design's utility."""


def spiky(rng: np.random.Generator, k: int) -> np.ndarray:
    prior = rng.dirichlet(np.full(k, rng.choice([0.05, 0.5, 5.0]))) * (rng.random(k) < 0.7)
    prior[rng.integers(k)] += 0.3
    prior[prior < 1e-300] = 0
    prior /= prior.sum()
    prior[prior < 1e-300] = 0
    return prior


def cone_matrix(rng: np.random.Generator, k: int, n: int, epsilon: float) -> np.ndarray:
    """A private table: a mixture of randomized responses onto the outputs, and of one common row."""
    ratio = math.exp(epsilon)
    table = np.zeros((k, n))
    for weight in rng.dirichlet(np.ones(4)):
        image = rng.integers(n, size=k)
        used = np.unique(image)
        part = np.zeros((k, n))
        part[:, used] = 1 / (ratio + used.size - 1)
        part[np.arange(k), image] *= ratio
        table += weight * part
    common = rng.dirichlet(np.ones(n))
    share = rng.choice([0.0, 0.1])
    return (1 - share) * table + share * common


def check_exact(mechanism: optrand.Mechanism, epsilon: float) -> None:
    """The promise, recomputed here from nothing but the integers."""
    ratio = privacy_ratio(epsilon)
    assert ratio <= exp_bracket(epsilon, 400)[0]
    rows = mechanism.weights.sum(axis=1)
    assert (rows == rows[0]).all()
    tops, bottoms = mechanism.weights.max(axis=0), mechanism.weights.min(axis=0)
    assert (tops * ratio.denominator <= bottoms * ratio.numerator).all()
    assert (bottoms > 0).all()


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_thousand_designs_become_private_to_the_last_integer(epsilon: float) -> None:
    rng = np.random.default_rng(int(epsilon * 1e6) % 2**32)
    for _ in range(230):
        k, n = int(rng.integers(2, 65)), int(rng.integers(2, 129))
        labels = np.sort(rng.choice(np.arange(-200, 200), size=k, replace=False) / rng.choice([1, 7]))
        outputs = np.sort(rng.choice(np.arange(-500, 500), size=n, replace=False)).astype(float)
        problem = optrand.regression(labels, spiky(rng, k), epsilon, outputs=outputs)
        floats = Randomizer(problem.labels, outputs, cone_matrix(rng, k, n, epsilon), epsilon)
        mechanism = tabulate(problem, floats)
        check_exact(mechanism, epsilon)
        if 0.01 <= epsilon <= 8:
            assert mechanism.value == pytest.approx(problem.value(floats), rel=UTILITY)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("mesh", [None, 2, 30])
def test_unbiased_stays_unbiased_and_as_good(epsilon: float, mesh: int | None) -> None:
    rng = np.random.default_rng(int(epsilon * 100))
    for k in (2, 17):
        labels = np.sort(rng.normal(size=k)) * 10
        outputs = None if mesh is None else optrand.feasible_output_set(labels, epsilon, mesh)
        problem = optrand.unbiased_regression(labels, spiky(rng, k), epsilon, outputs=outputs)
        solution = design(problem)
        mechanism = tabulate(solution)
        check_exact(mechanism, epsilon)
        proof = optrand.certify(mechanism).require(gap=UTILITY)
        assert proof.bias == 0
        assert proof.upper == pytest.approx(solution.value, rel=UTILITY)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_tables_become_unbiased_to_the_last_integer(epsilon: float) -> None:
    """No bias of 1e-30 is left."""
    labels = [0.0, 1.0, 2.5, 7.0]
    on_the_line = optrand.unbiased_regression(labels, [0.4, 0.1, 0.3, 0.2], epsilon)
    on_a_grid = replace(on_the_line, outputs=optrand.feasible_output_set(labels, epsilon, 9))
    response = design_debiased_rr(labels, epsilon).randomizer
    for problem, floats in (
        (on_the_line, Randomizer(labels, response.outputs, response.matrix, epsilon)),
        (on_a_grid, LinearProgram()(on_a_grid).randomizer),
    ):
        assert floats.arcs is None
        assert 0 < np.abs(floats.biases).max() < 1e-12
        assert tabulate(problem, floats).bias == 0


def test_the_ratio_falls_short_of_the_budget_by_2_to_the_minus_50_at_most() -> None:
    for epsilon in EPSILONS:
        mechanism = optrand.rr([0, 1, 2], epsilon)
        high = exp_bracket(epsilon, 400)[1]
        assert (high - mechanism.ratio) * 2**50 <= high - 1
        assert mechanism.realised_ratio == mechanism.ratio
        assert optrand.certify(mechanism).epsilon <= epsilon


def test_zeros_of_a_simplex_answer_are_mended_and_a_broken_design_is_not() -> None:
    problem = optrand.classification([0.5, 0.3, 0.2], 1.0)
    matrix = np.array(optrand.solve(problem).matrix)
    off = matrix.copy()
    off[0, 0] += 1e-9
    off[0, 1] -= 1e-9
    mended = tabulate(problem, Randomizer(problem.labels, problem.labels[: matrix.shape[1]], off, 1.0))
    check_exact(mended, 1.0)
    tiny = np.array([[0.5, 0.5, 0.0], [0.5, 0.5 - 1e-11, 1e-11], [0.5, 0.5, 0.0]])
    check_exact(tabulate(problem, Randomizer(problem.labels, problem.labels, tiny, 1.0)), 1.0)
    broken = Randomizer(problem.labels, problem.labels, np.eye(3), 1.0)
    with pytest.raises(optrand.errors.NotCertified, match="not 1-DP"):
        tabulate(problem, broken)
    with pytest.raises(optrand.errors.InvalidInput, match="labels"):
        tabulate(problem, Randomizer([5, 6, 7], problem.labels, np.full((3, 3), 1 / 3), 1.0))
