"""The pricing step: the cheapest of all staircase columns at all allowed outputs is found, up to rounding."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import exact_loss
from strategies import duals, problems

import optrand
from optrand import Dual, Grid, Interval, classification, losses, regression
from optrand.solvers._gaps import negative_ranges, price

ROUNDING = 1e-11
"""Error of a price in floats, as a share of the magnitudes that are added up in it."""

HALVES = [0.5, 0.5]


def reduced(problem, dual, outputs):
    """``h_y(v)`` for every label and output, from the definition, in floats."""
    rows = problem.prior * problem.loss_table(outputs).T - dual.alpha - np.outer(outputs, dual.beta)
    return rows.T


def costs(problem, dual, outputs):
    """``f(v)`` from the definition: the cheapest of all columns ``s in {1, E}^k``."""
    columns = np.array(list(itertools.product([1.0, math.exp(problem.epsilon)], repeat=problem.k)))
    return (columns @ reduced(problem, dual, outputs)).min(axis=0)


def sizes(problem, dual, outputs):
    """The magnitudes that are added up in ``f(v)``."""
    loss = np.abs(problem.prior * problem.loss_table(outputs).T)
    if problem.loss == losses.poisson_log:
        loss = problem.prior * (outputs[:, np.newaxis] + np.outer(np.abs(np.log(outputs)), problem.labels))
    return math.exp(problem.epsilon) * (loss + np.abs(dual.alpha) + np.abs(np.outer(outputs, dual.beta))).sum(axis=1)


def dense(problem, dual, count=400):
    """Many allowed outputs: near the labels, near everything that pricing looks at, and far away."""
    if isinstance(problem.outputs, Grid):
        return problem.outputs.values
    spread = float(np.ptp(problem.labels)) or 1.0
    found = price(problem, dual).outputs
    around = [np.linspace(problem.labels[0] - 3 * spread, problem.labels[-1] + 3 * spread, count), found]
    around += [found + step * spread for step in (-1e-3, -1e-6, 1e-6, 1e-3)]
    around.append((found[1:] + found[:-1]) / 2)
    low = max(problem.outputs.low, 1e-6 if problem.loss.positive_outputs else -math.inf)
    return np.unique(np.clip(np.concatenate(around), low, problem.outputs.high))


def with_duals(chosen):
    return chosen.flatmap(lambda problem: st.tuples(st.just(problem), duals(problem)))


budgets = st.sampled_from([1e-6, 0.1, 1.0, 3.0, 17.0])
cases = with_duals(problems(budgets=budgets))
OFF_GRIDS = ("line", "interval")
poisson_off_grids = with_duals(problems(("poisson_log",), budgets, places=OFF_GRIDS))


@settings(max_examples=150)
@given(cases)
def test_no_output_has_a_column_cheaper_than_the_lowest_price(case):
    problem, dual = case
    outputs = dense(problem, dual)
    least = costs(problem, dual, outputs) + ROUNDING * sizes(problem, dual, outputs)
    assert price(problem, dual).lowest <= least.min()


@given(cases)
def test_prices_and_columns_are_those_of_allowed_outputs(case):
    problem, dual = case
    prices = price(problem, dual)
    assert prices.lowest == prices.costs.min()
    assert (np.diff(prices.outputs) > 0).all()
    assert ((problem.outputs.low <= prices.outputs) & (prices.outputs <= problem.outputs.high)).all()
    members = prices.signatures(np.arange(prices.outputs.size))
    best = int(prices.costs.argmin())
    expected, off = costs(problem, dual, prices.outputs), ROUNDING * sizes(problem, dual, prices.outputs)
    columns = np.where(members, math.exp(problem.epsilon), 1.0)
    assert (np.abs((columns * reduced(problem, dual, prices.outputs)).sum(axis=0) - expected) <= off).all()
    assert abs(prices.costs[best] - expected[best]) <= off[best]


@given(poisson_off_grids)
def test_negative_ranges_are_where_reduced_costs_are_negative(case):
    problem, dual = case
    starts, ends = negative_ranges(problem, dual)
    outputs = dense(problem, dual)
    h = reduced(problem, dual, outputs)
    off = ROUNDING * np.broadcast_to(sizes(problem, dual, outputs) / math.exp(problem.epsilon), h.shape)
    inside = (starts[:, np.newaxis] < outputs) & (outputs < ends[:, np.newaxis])
    assert (h[inside] <= off[inside]).all()
    assert (h[~inside] >= -off[~inside]).all()


def test_a_label_of_prior_zero_is_negative_everywhere_or_nowhere():
    problem = regression([0, 1, 2, 3], [0.5, 0, 0, 0.5], 1.0, loss=losses.poisson_log)
    starts, ends = negative_ranges(problem, Dual([-1.0, 2.0, -2.0, 0.0], [0.0] * 4))
    assert (starts[1], ends[1]) == (-math.inf, math.inf)
    assert np.isnan([starts[0], ends[0], starts[2], ends[2]]).all()


def test_minima_at_one_float_are_one_output_and_the_lowest_of_them():
    """Two labels that are neighbouring floats: between them there are many minima and no float."""
    problem = regression([1e15, 1e15 + 0.125], HALVES, 1.0)
    dual = Dual([1e-4, 2e-4], [0.0, 0.0])
    prices = price(problem, dual)
    assert np.unique(prices.outputs).size == prices.outputs.size < 5
    # The middle of the labels is no float. Both reduced costs are positive there: 1/2 (1/16)^2 / 2 less alpha.
    assert prices.lowest == pytest.approx(0.0625**2 / 2 - 3e-4)


@pytest.mark.parametrize("outputs", [Interval(-0.3, 0.0), Interval(-0.6, 0.0), Interval(-2.0, -0.1)])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_an_interval_is_priced_up_to_its_end_where_labels_are_negative(outputs, alpha):
    """The last piece ends at the end of the interval, measured from the middle label as all edges are."""
    problem = regression([-1.002, -0.52], HALVES, 0.5, outputs=outputs, bias_penalty=1.0)
    for slope in (-0.4, 0.0, 0.4):
        dual = Dual([alpha, alpha], [slope, -0.5 * slope])
        lowest = costs(problem, dual, np.linspace(outputs.low, outputs.high, 4001)).min()
        assert price(problem, dual).lowest == pytest.approx(lowest, abs=1e-7)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("prior", [HALVES, [0.999999, 1e-6], [1.0, 0.0]])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_labels_below_all_outputs_have_the_lowest_output(epsilon, prior, penalty):
    problem = regression([-1.002, -0.52], prior, epsilon, bias_penalty=penalty, outputs=Interval(-0.3, 0.0))
    mechanism = optrand.solve(problem)
    assert mechanism.certificate.gap < 1e-9
    mirrored = regression([0.52, 1.002], prior[::-1], epsilon, bias_penalty=penalty, outputs=Interval(0.0, 0.3))
    assert mechanism.value == pytest.approx(optrand.solve(mirrored).value, rel=1e-9)


@settings(max_examples=60)
@given(y=st.sampled_from([0.0, 0.3, 1.0, 7.0]), level=st.floats(-3, 30), p=st.sampled_from([0.5, 0.25]))
@example(y=1.0, level=1.0, p=0.5)
@example(y=7.0, level=-6.62137104338719, p=0.5)
def test_roots_of_the_poisson_log_loss(y, level, p):
    problem = regression([y, y + 1], [p, 1 - p], 1.0, loss=losses.poisson_log)
    start, end = (x[0] for x in negative_ranges(problem, Dual([p * level, 0.0], [0.0, 0.0])))
    least = y - y * math.log(y) if y else 0.0
    if level < least - 1e-9:
        assert math.isnan(start)
    elif level > least + 1e-9:
        for root in (start, end):
            if root > 1e-300:
                assert float(exact_loss(losses.poisson_log, Fraction(root), Fraction(y))) == pytest.approx(
                    level, abs=1e-9
                )
        assert start <= y <= end


def test_improving_are_the_local_minima_below_zero():
    problem = regression([0, 1, 2], [0.3, 0.3, 0.4], 1.0, outputs=np.linspace(-1, 3, 41))
    dual = Dual([0.2, 0.05, 0.2], [0.0, 0.0, 0.0])
    prices = price(problem, dual)
    found = prices.improving(0.0)
    assert found.size
    for i, c in enumerate(prices.costs):
        neighbours = prices.costs[max(0, i - 1) : i + 2]
        assert (i in found) == (c < 0 and c == neighbours.min())
    assert (prices.improving(-prices.costs.min()).size, prices.improving(1e9).size) == (0, 0)


def test_a_grid_is_priced_at_each_of_its_values():
    problem = classification([0.5, 0.3, 0.2], 1.0)
    prices = price(problem, Dual([-0.5, -0.1, 0.0], [0.0] * 3))
    assert prices.outputs.tolist() == [0.0, 1.0, 2.0]
    # h = -p [v = y] - alpha: (0, 0.1, 0) at 0, (0.5, -0.2, 0) at 1, (0.5, 0.1, -0.2) at 2.
    assert prices.costs == pytest.approx([0.1, 0.5 - 0.2 * math.e, 0.6 - 0.2 * math.e])
    assert prices.signatures(np.array([1, 2])).T.tolist() == [[False, True, False], [False, False, True]]


def test_large_problems_are_priced_in_blocks(monkeypatch):
    problem = regression(np.arange(7), np.full(7, 1 / 7), 2.0, outputs=np.linspace(-1, 8, 100))
    line = regression(np.arange(7), np.full(7, 1 / 7), 2.0)
    dual = Dual(np.linspace(0.1, 0.4, 7), np.zeros(7))
    whole = [price(each, dual) for each in (problem, line)]
    monkeypatch.setattr("optrand.solvers._gaps.BLOCK", 16)
    for each, before in zip((problem, line), whole, strict=True):
        after = price(each, dual)
        assert after.outputs.tolist() == before.outputs.tolist()
        assert after.costs == pytest.approx(before.costs, rel=1e-14)


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 20.0])
@pytest.mark.parametrize("trial", range(2))
def test_many_labels_of_poisson_log_loss_are_priced_as_one_by_one(epsilon, trial):
    """Running totals against a grid that holds the stationary points and is fine beside them."""
    rng = np.random.default_rng([41, trial])
    labels, prior = 50 * np.sort(rng.random(150)), rng.dirichlet(np.full(150, 0.3)) + 1e-12
    least = labels - labels * np.log(labels)
    line = regression(labels, prior / prior.sum(), epsilon, loss=losses.poisson_log)
    dual = Dual(line.prior * (least + 3 * rng.random(150) ** 4), np.zeros(150))
    found = price(line, dual)
    beside = np.concatenate([found.outputs * factor for factor in (1 - 1e-7, 1 + 1e-7, 1.01)])
    values = np.unique(np.concatenate((found.outputs, beside, np.geomspace(1e-6, 100, 2000))))
    grid = price(regression(labels, line.prior, epsilon, loss=losses.poisson_log, outputs=values), dual)
    scale = np.abs(found.costs).max()
    assert found.lowest <= grid.costs.min() + 1e-12 * scale
    at = np.searchsorted(values, found.outputs)
    assert np.abs(grid.costs[at] - found.costs).max() <= 1e-12 * scale
