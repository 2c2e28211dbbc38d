"""Knots and outputs placed for a problem: the dynamic programme against brute force, and the certificates."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand.certificates._certificate import certify
from optrand.errors import Infeasible, InvalidInput, NotCertified
from optrand.losses import absolute, poisson_log
from optrand.mechanism._tabulation import tabulate
from optrand.model._meshes import feasible_output_set, mesh_size
from optrand.model._problem import Interval, regression, unbiased_range, unbiased_regression
from optrand.sampling._rounding import KnotCells
from optrand.solvers import design, solve
from optrand.studies._adaptive import adaptive_outputs, descend, lattice_around, optimum_on
from optrand.studies._continuous import ContinuousPrior, Knots, Placements, place_knots

point_sets = st.lists(st.integers(-40, 40), min_size=2, max_size=9, unique=True).map(lambda xs: np.sort(xs) / 4)


def variance(points, weights, knots):
    """Variance that rounding adds, straight from its definition, in fractions."""
    total = Fraction(0)
    for x, w in zip(map(Fraction, points.tolist()), map(Fraction, weights.tolist()), strict=True):
        below, above = max(t for t in knots if t <= x), min(t for t in knots if t >= x)
        total += w * (x - below) * (above - x)
    return total


@given(point_sets, st.data())
def test_placements_are_the_best_of_all_subsets(points, data):
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0, 0.25, 1, 5]), min_size=points.size, max_size=points.size))
    )
    best = Placements(points, weights)
    for n in range(2, points.size + 1):
        least = min(
            variance(points, weights, {Fraction(points[0]), Fraction(points[-1]), *map(Fraction, chosen)})
            for chosen in itertools.combinations(points[1:-1].tolist(), n - 2)
        )
        places = best.places(n)
        assert (places[0], places[-1]) == (0, points.size - 1)
        assert places.size <= n
        found = variance(points, weights, [Fraction(t) for t in points[places].tolist()])
        assert float(found) == pytest.approx(float(least), abs=1e-10)
        assert best.compute_variance(n) == pytest.approx(float(least), abs=1e-10)


def test_the_monotone_search_misses_nothing():
    # The same recursion without monotonicity, over all pairs, on a set larger than brute force over subsets allows.
    rng = np.random.default_rng(11)
    points, weights = np.sort(rng.uniform(-5, 5, 120)), rng.exponential(1, 120) ** 3
    inside = [
        weights[a + 1 : b] @ ((points[a + 1 : b] - points[a]) * (points[b] - points[a + 1 : b]))
        for a in range(120)
        for b in range(120)
    ]
    cost = np.where(np.arange(120)[:, None] <= np.arange(120), np.reshape(inside, (120, 120)), np.inf)
    best, costs = Placements(points, weights), cost[0]
    for n in range(3, 40):
        costs = (costs[:, None] + cost).min(axis=0)
        assert best.compute_variance(n) == pytest.approx(costs[-1], rel=1e-9)
        chosen = points[best.places(n)]
        assert weights @ KnotCells.of(chosen, points).variances(points) == pytest.approx(costs[-1], rel=1e-9)


def test_what_rounding_adds_and_the_prior_of_the_knots_by_hand():
    # Cells [0, 2] and [2, 8]: x = 1 adds 1, x = 3 adds 5, x = 2 nothing. Weights 1/4, 1/2, 1/4, then a half.
    knots = Knots(ContinuousPrior([3, 1, 2], [2, 1, 1], low=0, high=8), [0, 2, 8])
    assert knots.added == (1 / 4 * 1 + 1 / 2 * 5) / 2
    assert knots.probabilities.tolist() == pytest.approx([1 / 8, 1 / 8 + 1 / 4 + 1 / 2 * 5 / 6, 1 / 12])


@by_case(
    "call, message",
    (lambda: ContinuousPrior([1e200, 0]), "rescale"),
    (lambda: ContinuousPrior([0, 1], [1]), "1 weights for 2 values"),
    (lambda: ContinuousPrior([0, 1], [-1, 2]), "at least 0"),
    (lambda: ContinuousPrior([0, 1], [0, 0]), "above 0"),
    (lambda: ContinuousPrior([3]), "two ends"),
    (lambda: ContinuousPrior([0, 1], low=math.inf), "low is inf"),
    (lambda: ContinuousPrior([0, 1], high=True), "high is of type bool"),
    (lambda: Knots(ContinuousPrior([0, 1, 2]), [0, 1]), "from 0 to 1, expected the ends"),
    (lambda: place_knots(ContinuousPrior([0, 1, 2]), 1), "is 1"),
    *[(lambda x=x: mesh_size([0, 1], 1.0, **x), ".") for x in ({"tolerance": 0.0}, {"tolerance": 1e-300})],
    (lambda: mesh_size([0, 1], 1.0, tolerance=1.0, lipschitz=-1.0), "."),
)
def test_priors_knots_and_meshes_without_meaning_are_refused(call, message):
    assert_error(message, call)


def test_a_value_outside_the_interval_is_counted_not_repeated():
    with pytest.raises(InvalidInput, match=r"2 of 3 value\(s\) lie outside") as caught:
        ContinuousPrior([0.123456, 2, 3.654321], low=1, high=3)
    assert "123456" not in str(caught.value)
    assert "654321" not in str(caught.value)


def test_lattices_are_of_decimals():
    # 35 * 0.01 is 0.35000000000000003 in floats.
    assert lattice_around(np.array([0.35]), 0.01).tolist() == [0.35, 0.36]
    assert lattice_around(np.array([0.31, -0.31]), 0.1, 0.05).tolist() == [-0.35, -0.25, 0.25, 0.35]
    assert lattice_around(np.array([-3.0, 3.0]), 10).tolist() == [-10, 0, 10]


small_problems = st.builds(
    lambda k, seed, epsilon: unbiased_regression(
        np.cumsum(np.random.default_rng(seed).uniform(0.2, 1, k)),
        np.random.default_rng(seed + 1).dirichlet(np.ones(k)),
        epsilon,
    ),
    st.integers(2, 7),
    st.integers(0, 10**6),
    st.sampled_from([0.3, 1.0, 3.0]),
)


@settings(max_examples=12)
@given(small_problems, st.integers(2, 12))
def test_rounding_outputs_bounds_what_a_grid_loses(problem, n):
    # The outer bound of the module, and its corollary for even meshes: the excess is at most the squared mesh / 8.
    # ([B23], Lemma 8, has the range of the outputs times the mesh.)
    low, high = unbiased_range(problem.labels, problem.epsilon)
    within = Interval(low - 0.5, high + 0.5)
    boxed = solve(unbiased_regression(problem.labels, problem.prior, problem.epsilon, outputs=within))
    outputs, weights = boxed.outputs, problem.prior @ boxed.matrix
    even = np.linspace(within.low, within.high, n)
    on_grid = optimum_on(problem, even)
    added = weights @ KnotCells.of(even, outputs.clip(within.low, within.high)).variances(outputs) / 2
    slack = 1e-6 * boxed.value
    assert on_grid.value <= boxed.value + added + slack
    assert added <= (even[1] - even[0]) ** 2 / 8 + slack


@settings(max_examples=5)
@given(small_problems, st.integers(2, 5))
def test_a_descent_never_ends_higher_than_it_begins(problem, n):
    low, high = unbiased_range(problem.labels, problem.epsilon)
    start = np.linspace(low - 1, high + 1, n)
    first, found = optimum_on(problem, start), descend(problem, start)
    assert found.value <= first.value
    assert found.randomizer.n <= n
    assert certify(tabulate(found)).findings == ()
    assert found.value >= solve(problem).value * (1 - 1e-7)


def assert_nothing_can_be_left_out(problem, few, tolerance):
    for i in range(few.n):
        fewer = optimum_on(problem, np.delete(few.grid.values, i)) if few.n > 1 else None
        assert fewer is None or certify(tabulate(fewer)).upper > (1 + tolerance) * few.lower


@pytest.mark.parametrize("tolerance", [1e-2])
@pytest.mark.parametrize("penalty", [0.0, 2.0, math.inf])
@pytest.mark.parametrize("where", [None, Interval(-8, 20)])
def test_the_tolerance_is_certified_and_no_output_is_spare(tolerance, penalty, where):
    prior = np.random.default_rng(3).dirichlet(np.ones(9))
    problem = regression(np.arange(9), prior, 1.0, bias_penalty=penalty, outputs=where)
    few = adaptive_outputs(problem, tolerance=tolerance)
    proof = certify(few.mechanism)
    assert proof.findings == ()
    assert (few.upper, few.lower) == (proof.upper, certify(solve(problem)).lower)
    assert few.excess <= tolerance
    assert few.upper <= (1 + tolerance) * few.lower
    assert few.mechanism.problem.outputs == few.grid
    assert few.n <= design(problem).randomizer.n
    assert_nothing_can_be_left_out(problem, few, tolerance)


@pytest.mark.nightly
@pytest.mark.parametrize(("step", "origin"), [(1, 0), (0.1, 0.05)])
def test_outputs_on_a_lattice(step, origin):
    problem = unbiased_regression(np.arange(8), np.full(8, 1 / 8), 1.0)
    few = adaptive_outputs(problem, tolerance=1e-2, step=step, origin=origin)
    steps = (few.grid.values - origin) / step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
    assert few.excess <= 1e-2
    assert_nothing_can_be_left_out(problem, few, 1e-2)
    assert certify(few.mechanism).require(gap=1e-9).upper == few.upper


@pytest.mark.parametrize("n", [2, 4])
def test_few_integers_are_the_best_of_all(n):
    problem = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    few = adaptive_outputs(problem, n=n, step=1)
    assert few.n == n
    every = [optimum_on(problem, outputs) for outputs in itertools.combinations(range(-2, 5), n)]
    assert few.upper == pytest.approx(min(each.value for each in every if each is not None), rel=1e-9)


def test_a_single_label_needs_itself():
    few = adaptive_outputs(unbiased_regression([3], [1], 1.0), tolerance=0.1)
    assert (few.grid.values.tolist(), few.excess) == ([3], 0)


def test_what_cannot_be_met_is_said():
    problem = unbiased_regression(np.arange(5), np.full(5, 0.2), 2.0)
    with pytest.raises(NotCertified, match="make the step smaller") as caught:
        adaptive_outputs(problem, tolerance=1e-3, step=50)
    assert caught.value.mechanism.outputs.tolist() == [-50, 0, 50]
    boxed = unbiased_regression(np.arange(5), np.full(5, 0.2), 2.0, outputs=Interval(-1, 5))
    assert_error("lattice", adaptive_outputs, boxed, tolerance=1e-3, step=4, error=Infeasible)


@by_case(
    "options, message",
    *[({"tolerance": tolerance}, "tolerance") for tolerance in (0, math.nan, 1e-17)],
    *[(options, "either tolerance= or n=") for options in ({}, {"tolerance": 0.1, "n": 3})],
    *[({"tolerance": 0.1, "step": step}, "step") for step in (0, math.inf)],
)
def test_options_without_meaning_are_refused(options, message):
    problem = unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    assert_error(message, adaptive_outputs, problem, **options, error=(InvalidInput, NotCertified))
    assert_error("grid already", adaptive_outputs, regression([0, 1], [0.5, 0.5], 1.0, outputs=[0, 1]), tolerance=0.1)


@pytest.mark.parametrize("loss", [absolute, poisson_log])
def test_other_losses_are_placed_by_leaving_outputs_out(loss):
    labels = np.arange(1.0, 9.0)
    problem = regression(labels, np.arange(8, 0, -1) / 36, 4.0, loss=loss)
    whole = certify(solve(problem)).require(gap=1e-9)
    few = adaptive_outputs(problem, tolerance=0.3)
    assert few.excess <= 0.3
    assert few.n < design(problem).randomizer.n
    assert few.lower == whole.lower
    two = adaptive_outputs(problem, n=2)
    assert two.n == 2
    assert two.upper >= few.upper - 1e-12


def test_more_outputs_are_never_worse_and_two_are_the_narrowest_coin():
    """Two outputs v < w that are unbiased for labels 0..4 have the loss sum p (w - y) (y - v) / 2."""
    problem = unbiased_regression(np.arange(5), np.full(5, 0.2), 1.0)
    uppers = [adaptive_outputs(problem, n=n).upper for n in (2, 3, 5, 8, 20)]
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(uppers))
    low, high = unbiased_range(np.arange(5), 1.0)
    coin = sum((high - y) * (y - low) for y in range(5)) / 10
    assert uppers[0] == pytest.approx(coin, rel=1e-6)
    assert uppers[-1] == pytest.approx(solve(problem).value, rel=1e-9)
    assert_error("allow more", adaptive_outputs, problem, n=1, error=Infeasible)


@pytest.mark.parametrize(("epsilon", "tolerance"), [(0.7, 0.5), (1.0, 0.05), (3.0, 0.01)])
def test_a_mesh_of_the_stated_size_keeps_the_tolerance(epsilon, tolerance):
    """[B23], Lemma 8, and its sharper form for the squared error, against the interval between the same ends."""
    labels, prior = np.arange(4), [0.4, 0.3, 0.2, 0.1]
    n = mesh_size(labels, epsilon, tolerance)
    grid = feasible_output_set(labels, epsilon, n)
    on_grid = certify(solve(unbiased_regression(labels, prior, epsilon, outputs=grid))).require()
    between = certify(
        solve(unbiased_regression(labels, prior, epsilon, outputs=Interval(grid.low, grid.high)))
    ).require()
    assert on_grid.lower - between.upper <= tolerance
    spacing = (grid.high - grid.low) / (n - 1)
    assert spacing**2 / 8 <= tolerance < 1.5 * (spacing * (n - 1) / (n - 2)) ** 2 / 8
    assert mesh_size([3.0], 1.0, 1e-9) == 2
    assert mesh_size(labels, epsilon, tolerance, lipschitz=2.0) == math.ceil((grid.high - grid.low) * 2 / tolerance) + 1


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6])
def test_few_outputs_are_placed_at_a_small_epsilon_too(epsilon):
    """There the tolerance of HiGHS admits answers whose outputs allow no unbiased solution."""
    problem = unbiased_regression([3, 20, 57, 100, 196], [0.2, 0.3, 0.1, 0.3, 0.1], epsilon)
    placed = adaptive_outputs(problem, n=6)
    assert placed.n <= 6
    assert 0 <= placed.excess < 1e-9
