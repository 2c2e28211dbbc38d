"""Prices: the cheapest of all staircase columns at some outputs, in floats, and at all allowed ones, proven."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import exact_loss
from strategies import duals, problems

import optrand
from optrand import Dual, Grid, Interval, classification, losses, regression
from optrand.certificates._bound import POISSON, lowest_price
from optrand.solvers.grid._pricing import price, reduced_costs

ROUNDING = 1e-11
"""Error of a price in floats, as a share of the magnitudes that are added up in it."""

HALVES = [0.5, 0.5]


def by_definition(problem, dual, outputs):
    """``h_y(v)`` for every label and output, in floats."""
    return (problem.prior * problem.loss_table(outputs).T - dual.alpha - np.outer(outputs, dual.beta)).T


def costs(problem, dual, outputs):
    """``f(v)`` from the definition: the cheapest of all columns ``s in {1, E}^k``."""
    columns = np.array(list(itertools.product([1.0, math.exp(problem.epsilon)], repeat=problem.k)))
    return (columns @ by_definition(problem, dual, outputs)).min(axis=0)


def sizes(problem, dual, outputs):
    """The magnitudes that are added up in ``f(v)``."""
    loss = np.abs(problem.prior * problem.loss_table(outputs).T)
    if problem.loss == losses.poisson_log:
        loss = problem.prior * (outputs[:, np.newaxis] + np.outer(np.abs(np.log(outputs)), problem.labels))
    return math.exp(problem.epsilon) * (loss + np.abs(dual.alpha) + np.abs(np.outer(outputs, dual.beta))).sum(axis=1)


def some_outputs(problem):
    """Many allowed outputs: all of a grid, or others near the labels and far away."""
    if isinstance(problem.outputs, Grid):
        return problem.outputs.values
    spread = float(np.ptp(problem.labels)) or 1.0
    around = np.linspace(problem.labels[0] - 3 * spread, problem.labels[-1] + 3 * spread, 400)
    low = max(problem.outputs.low, 1e-6 if problem.loss.positive_outputs else -math.inf)
    return np.unique(np.clip(np.concatenate((problem.labels, around)), low, problem.outputs.high))


def with_duals(chosen):
    return chosen.flatmap(lambda problem: st.tuples(st.just(problem), duals(problem)))


budgets = st.sampled_from([1e-6, 0.1, 1.0, 3.0, 17.0])
cases = with_duals(problems(budgets=budgets))


@settings(max_examples=150)
@given(cases)
def test_no_output_has_a_column_cheaper_than_the_lowest_price(case):
    problem, dual = case
    outputs = some_outputs(problem)
    found, off = costs(problem, dual, outputs), ROUNDING * sizes(problem, dual, outputs)
    lowest = lowest_price(problem, dual)
    assert lowest <= (found + off).min()
    if isinstance(problem.outputs, Grid):
        assert lowest >= (found - off).min()


@given(cases)
def test_prices_and_columns_are_those_of_the_definition(case):
    problem, dual = case
    outputs = some_outputs(problem)
    expected, off = costs(problem, dual, outputs), ROUNDING * sizes(problem, dual, outputs)
    assert (np.abs(price(problem, dual, outputs) - expected) <= off).all()
    columns = np.where(reduced_costs(problem, dual, outputs) < 0, math.exp(problem.epsilon), 1.0)
    assert (np.abs((columns * by_definition(problem, dual, outputs)).sum(axis=0) - expected) <= off).all()


@pytest.mark.parametrize("outputs", [Interval(-0.3, 0.0), Interval(-0.6, 0.0), Interval(-2.0, -0.1)])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_an_interval_is_priced_up_to_its_end_where_labels_are_negative(outputs, alpha):
    """The last piece ends at the end of the interval, measured from the middle label as all edges are."""
    problem = regression([-1.002, -0.52], HALVES, 0.5, outputs=outputs, bias_penalty=1.0)
    for slope in (-0.4, 0.0, 0.4):
        dual = Dual([alpha, alpha], [slope, -0.5 * slope])
        lowest = costs(problem, dual, np.linspace(outputs.low, outputs.high, 4001)).min()
        assert lowest_price(problem, dual) == pytest.approx(lowest, abs=1e-7)


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
    least = y - y * math.log(y) if y else 0.0
    with ctx.workprec(128):
        found = POISSON.roots((arb(p) * y, arb(p), -arb(p) * level))
    if level < least - 1e-9:
        assert found is None
    elif level > least + 1e-9:
        start, end = map(float, found)
        assert start <= y <= end
        for root in (start, end):
            if root > 1e-300:
                assert float(exact_loss(losses.poisson_log, Fraction(root), Fraction(y))) == pytest.approx(
                    level, abs=1e-9
                )


def test_classes_are_priced_by_hand():
    problem = classification([0.5, 0.3, 0.2], 1.0)
    dual = Dual([-0.5, -0.1, 0.0], [0.0] * 3)
    # h = -p [v = y] - alpha: (0, 0.1, 0) at 0, (0.5, -0.2, 0) at 1, (0.5, 0.1, -0.2) at 2.
    assert price(problem, dual, problem.labels) == pytest.approx([0.1, 0.5 - 0.2 * math.e, 0.6 - 0.2 * math.e])
    members = reduced_costs(problem, dual, problem.labels) < 0
    assert members.T.tolist() == [[False] * 3, [False, True, False], [False, False, True]]


def test_large_problems_are_priced_in_blocks(monkeypatch):
    problem = regression(np.arange(7), np.full(7, 1 / 7), 2.0, outputs=np.linspace(-1, 8, 100))
    dual = Dual(np.linspace(0.1, 0.4, 7), np.zeros(7))
    whole = price(problem, dual, problem.outputs.values)
    monkeypatch.setattr("optrand.solvers.grid._pricing.BLOCK", 16)
    assert price(problem, dual, problem.outputs.values) == pytest.approx(whole, rel=1e-14)
