"""The integer bounds on a grid, against the definition at every one of its values."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand import Dual, Grid, certify, feasible_output_set, losses, solve, tabulate, unbiased_regression
from optrand.certificates.bound import excess_above
from optrand.certificates.certificate import lower_bound
from optrand.certificates.exact import lower_bound as exact_bound
from optrand.certificates.prices import price
from optrand.model.problem import Problem

TIGHT = Fraction(1, 10**25)
"""What rounding of roots may take from the bound, as a share of what is added up in it."""


def fractions(numbers):
    return [Fraction(x) for x in numbers.tolist()]


@st.composite
def cases(draw):
    """Both losses, every kind of penalty, grids coarse and fine, priors with zeros, and multipliers of all sizes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start, gap = draw(st.sampled_from([(0.0, 1.0), (-2.5, 0.1), (1e9, 1.0), (-1e130, 1e128), (0.0, 1e-140)]))
    labels = np.unique(start + gap * np.cumsum(rng.choice([1.0, 0.5, 3.0, 1e-3], size=draw(st.integers(1, 8)))))
    k = labels.size
    prior = rng.dirichlet(np.ones(k)) * rng.choice([1.0, 1.0, 0.0, 1e-8, 1e-300], size=k)
    prior[rng.integers(k)] += 1.0
    prior /= prior.sum()
    prior /= math.fsum(prior)
    spread = float(np.ptp(labels)) or abs(start) or 1.0
    values = start + spread * rng.normal(size=draw(st.integers(1, 30)))
    values = np.unique(np.concatenate((values, labels[rng.random(k) < 0.5])))
    penalty = draw(st.sampled_from([0.0, 1e-9, 0.3, 10.0]))
    loss = draw(st.sampled_from([losses.squared, losses.absolute]))
    problem = Problem(labels, prior, draw(st.sampled_from([1e-6, 0.3, 4.0, 40.0])), loss, penalty, Grid(values))
    unit = spread ** (2 if loss == losses.squared else 1)
    scale = np.where(rng.random(k) < 0.8, prior, rng.choice([1e-3, 1.0]))
    beta = scale * unit / spread * rng.normal(size=k) * rng.choice([0.0, 1.0, 30.0], size=k)
    beta = np.where(problem.bias_weights > 1e-290, beta, 0.0)
    alpha = scale * unit * rng.choice([0.0, 1.0, 0.1, -0.2, 1e-9, 30.0], size=k) - beta * labels
    return problem, Dual(alpha, beta)


def costs(problem, dual, ratio):
    """``f`` at every value of the grid, in fractions."""
    parts = list(zip(*map(fractions, (problem.labels, problem.prior, dual.alpha, dual.beta)), strict=True))
    found = []
    for v in fractions(problem.outputs.values):
        far = [(abs(v - y) if problem.loss == losses.absolute else (v - y) ** 2 / 2) for y, *_ in parts]
        reduced = [p * g - a - b * v for g, (_, p, a, b) in zip(far, parts, strict=True)]
        found.append(sum(ratio * h if h < 0 else h for h in reduced))
    return found


@settings(max_examples=200)
@given(cases())
def test_the_bound_is_that_of_the_cheapest_value(case):
    problem, dual = case
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 2**shift)
    found = costs(problem, dual, ratio)
    least, k = min(found), problem.k
    alpha, beta, labels, prior = map(fractions, (dual.alpha, dual.beta, problem.labels, problem.prior))
    parts = [*alpha, *(b * y for b, y in zip(beta, labels, strict=True))]
    if problem.bias_penalty:
        penalty = Fraction(problem.bias_penalty)
        parts += [-b * b / (2 * penalty * p) for b, p in zip(beta, prior, strict=True) if b]
    bound = sum(parts) + (least * k / (ratio + k - 1) if least < 0 else least / ratio)
    rounded = TIGHT * (sum(map(abs, parts)) + abs(least) + max(map(abs, found)))
    assert exact_bound(problem, dual) <= bound <= exact_bound(problem, dual) + rounded
    assert lower_bound(problem, dual) <= bound


@settings(max_examples=100)
@given(cases())
def test_prices_are_costs_and_the_cheapest_value_is_among_them(case):
    problem, dual = case
    excess, shift = excess_above(problem.epsilon)
    found = costs(problem, dual, 1 + Fraction(excess, 2**shift))
    prices = price(problem, dual)
    where = np.searchsorted(problem.outputs.values, prices.outputs)
    assert (problem.outputs.values[where] == prices.outputs).all()
    rounded = TIGHT * max(map(abs, found))
    for i, cost in zip(where.tolist(), prices.costs.tolist(), strict=True):
        assert abs(Fraction(cost) - found[i]) <= rounded + Fraction(math.ulp(cost))
    assert Fraction(prices.lowest) <= min(found) + rounded
    assert Fraction(prices.costs.min()) <= min(found) + rounded + Fraction(2 * math.ulp(prices.costs.min()))


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
def test_a_grid_of_one_value_has_one_price(loss):
    problem = Problem(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 1.0, loss, 0.0, Grid([3.0]))
    proof = certify(solve(problem))
    assert (proof.lower, proof.upper) == pytest.approx((problem.value(solve(problem).randomizer),) * 2, rel=1e-12)


def test_a_fine_grid_is_proven_in_exact_arithmetic_without_asking():
    labels = np.arange(21.0)
    problem = unbiased_regression(labels, np.full(21, 1 / 21), 1.0, outputs=feasible_output_set(labels, 1.0, 5_000))
    mechanism = tabulate(solve(problem))
    proof = certify(mechanism)
    assert proof.exact
    assert proof.require(1e-9) == certify(mechanism, exact=True)
    line = certify(
        tabulate(solve(replace(problem, outputs=type(unbiased_regression([0, 1], [0.5, 0.5], 1).outputs)())))
    )
    assert line.lower <= proof.upper
    assert line.upper <= proof.upper
