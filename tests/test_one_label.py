"""A single label with outputs on a grid has its best distribution in closed form, by the lower convex hull."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optrand
from optrand import losses, regression
from optrand.solvers._dispatch import one_label_within

GRID = [-1.0, -0.4, 0.3, 0.9, 2.0]


def best_of_two(label, grid, row, penalty):
    """Least cost over all mixtures of two outputs, each a parabola in the share of the second one."""
    x, best = np.array(grid) - label, math.inf
    for a in range(len(grid)):
        for b in range(a, len(grid)):
            reach, more = x[b] - x[a], row[b] - row[a]
            if penalty == math.inf:
                shares = [-x[a] / reach] if reach and x[a] <= 0 <= x[b] else [0.0] if x[a] == 0 else []
            else:
                turn = (-more / penalty / reach - x[a]) / reach if reach and penalty else 0.0
                shares = [0.0, 1.0, min(max(turn, 0.0), 1.0)]
            mean = 0.0 if penalty == math.inf else penalty / 2
            best = min([best, *(row[a] + s * more + mean * (x[a] + s * reach) ** 2 for s in shares)])
    return best


@pytest.mark.parametrize("penalty", [0.0, 1e-3, 0.7, 50.0, math.inf])
@pytest.mark.parametrize("loss", ["squared", "absolute", "tabulated"])
@given(seed=st.integers(0, 10_000))
def test_the_best_mixture_of_two_outputs_is_found_and_proven(loss, penalty, seed):
    rng = np.random.default_rng(seed)
    grid = np.unique(rng.uniform(-3, 3, rng.integers(2, 9)).round(2))
    label = float(rng.choice(grid) if rng.random() < 0.5 else rng.uniform(grid[0], grid[-1]))
    table = losses.Tabulated([rng.normal(size=grid.size)])
    chosen = table if loss == "tabulated" else getattr(losses, loss)
    problem = regression([label], [1.0], 1.0, loss=chosen, bias_penalty=penalty, outputs=grid)
    row = problem.loss_table(grid)[0]
    mechanism = optrand.solve(problem)
    assert mechanism.value == pytest.approx(best_of_two(label, grid, row, penalty), rel=1e-9, abs=1e-15)
    assert mechanism.certificate.upper - mechanism.certificate.lower <= 1e-9 * abs(mechanism.value) + 1e-15


@pytest.mark.parametrize(
    ("labels", "prior", "penalty"),
    [([0.3], [1.0], 1e-3), ([0.3], [1.0], 1.0), ([0.3], [1.0], math.inf), ([-1.0, 0.3, 2.0], [0.0, 1.0, 0.0], 1.0)],
)
def test_a_label_on_the_grid_that_is_certain_costs_nothing(labels, prior, penalty):
    mechanism = optrand.solve(regression(labels, prior, 2.0, bias_penalty=penalty, outputs=GRID))
    assert mechanism.value == 0
    assert mechanism.certificate.gap < 1e-15


def test_a_single_label_far_from_zero_is_answered():
    outputs = [1e9, 1602395372.537617, 1805872698.7947516]
    problem = regression([1e9], [1.0], 1.0696708527214243, bias_penalty=0.007933611110930676, outputs=outputs)
    assert optrand.solve(problem).certificate.gap == 0


def test_other_problems_are_left_to_others():
    assert one_label_within(optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)) is None
    assert one_label_within(regression([0.0], [1.0], 1.0)) is None
