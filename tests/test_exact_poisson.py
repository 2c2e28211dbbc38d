"""The integer bound for Poisson log loss, against definitions that take logarithms to 80 digits at every place."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import exact_log, exact_loss, reference_bound

from optrand import Dual, Grid, Interval, losses, regression
from optrand.base.arithmetic import exp_bracket
from optrand.certificates import exact, poisson
from optrand.certificates.bound import excess_above
from optrand.certificates.logarithms import WIDTH, Logarithms, logarithms_below

TIGHT = Fraction(1, 10**30)
"""What rounding may take from the bound, as a share of what is added up in it."""

SCALES = [(0.0, 1.0), (0.0, 1e-140), (1e9, 1.0), (0.3, 0.1), (0.0, 1e140)]


@st.composite
def priors_and_labels(draw, most):
    """Labels near 0, at 0 and far from it; priors with zeros and next to zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start, gap = draw(st.sampled_from(SCALES))
    steps = np.cumsum(rng.choice([1.0, 0.5, 3.0, 1e-3], size=draw(st.integers(1, most))))
    labels = np.unique(start + gap * (steps - draw(st.booleans()) * steps[0]))
    prior = rng.dirichlet(np.ones(labels.size)) * rng.choice([1.0, 1.0, 0.0, 1e-8, 1e-300], size=labels.size)
    prior[rng.integers(labels.size)] += 1.0
    prior /= prior.sum()
    return rng, labels, prior / math.fsum(prior)


def a_dual(rng, labels, prior, slopes):
    """Bowls deep, shallow, touching 0 and above it."""
    with np.errstate(all="ignore"):
        least = np.where(labels > 0, labels - labels * np.log(labels), 0.0)
    size = np.abs(least) + labels.max() + 1e-150
    scale = np.where(rng.random(labels.size) < 0.8, prior, rng.choice([1e-3, 1.0]))
    alpha = scale * (least + size * rng.choice([0.0, 1.0, 0.1, -0.2, 1e-15, 1e-9, 30.0], size=labels.size))
    return Dual(alpha, slopes * scale * rng.normal(size=labels.size), float(rng.choice([0.0, labels[0], 17.0])))


@st.composite
def on_grids(draw):
    rng, labels, prior = draw(priors_and_labels(7))
    spread = labels.max() or 1.0
    values = np.unique(spread * np.exp(rng.normal(scale=3, size=draw(st.integers(1, 25)))))
    values = np.unique(np.concatenate((values, labels[labels > 0])))
    penalty = draw(st.sampled_from([0.0, 0.3, 10.0]))
    problem = regression(
        labels,
        prior,
        draw(st.sampled_from([1e-6, 0.3, 4.0, 40.0])),
        loss=losses.poisson_log,
        bias_penalty=penalty,
        outputs=Grid(values),
    )
    return problem, a_dual(rng, labels, prior, np.where(problem.bias_weights > 1e-290, 1.0, 0.0))


def definition(problem, dual, ratio):
    """The bound from its formula with ``f`` at every value of the grid, and the magnitudes that are added up in it."""
    columns = (problem.labels, problem.prior, dual.alpha, dual.beta)
    rows = list(zip(*([Fraction(x) for x in column.tolist()] for column in columns), strict=True))
    origin, parts, found, sizes = Fraction(dual.origin), [], [], [Fraction(0)]
    for y, p, alpha, beta in rows:
        parts += [alpha, beta * (y - origin)]
        if beta:
            parts.append(-(beta**2) / (2 * Fraction(problem.bias_penalty) * p))
    for v in map(Fraction, problem.outputs.values.tolist()):
        log = exact_log(v)
        reduced = [p * (v - y * log) - alpha - beta * (v - origin) for y, p, alpha, beta in rows]
        found.append(sum(ratio * h if h < 0 else h for h in reduced))
        sizes.append(sum(p * (v + abs(y * log)) + abs(alpha) + abs(beta * (v - origin)) for y, p, alpha, beta in rows))
    least, k = min(found), problem.k
    bound = sum(parts) + (least * k / (ratio + k - 1) if least < 0 else least / ratio)
    return bound, sum(map(abs, parts)) + ratio * max(sizes)


@settings(max_examples=200)
@given(on_grids())
def test_on_a_grid_the_bound_is_the_definition(case):
    problem, dual = case
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 2**shift)
    bound, size = definition(problem, dual, ratio)
    assert bound - TIGHT * size <= exact.lower_bound(problem, dual) <= bound + size / 10**70
    assert exact.lower_bound(problem, dual) <= definition(problem, dual, exp_bracket(problem.epsilon)[0])[0]


@st.composite
def off_grids(draw):
    rng, labels, prior = draw(priors_and_labels(5))
    spread, outputs = labels.max() or 1.0, None
    if draw(st.booleans()):
        low, high = np.sort(spread * rng.choice([1e-9, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0], size=2, replace=False))
        outputs = Interval(low, high)
    budget = draw(st.sampled_from([1e-6, 0.3, 4.0, 40.0]))
    problem = regression(labels, prior, budget, loss=losses.poisson_log, outputs=outputs)
    return problem, a_dual(rng, labels, prior, 0.0)


@settings(max_examples=200)
@given(off_grids())
def test_off_a_grid_the_bound_is_that_of_all_columns(case):
    """Every set of labels has one convex function: the least of all their least values is ``min f``."""
    problem, dual = case
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 2**shift)
    expected = reference_bound(problem, dual, ratio)
    reach = max([problem.labels[-1], *(x for x in (problem.outputs.low,) if math.isfinite(x))])
    weights = zip(problem.prior.tolist(), problem.labels.tolist(), dual.alpha.tolist(), strict=True)
    size = sum(Fraction(p) * Fraction(reach) * 1000 + abs(Fraction(a)) + Fraction(p * y) for p, y, a in weights)
    assert expected - TIGHT * ratio * size <= exact.lower_bound(problem, dual) <= expected + size * ratio / 10**60


@pytest.mark.parametrize("epsilon", [1e-300, 1e-9, 1.0, 300.0, 700.0])
@pytest.mark.parametrize("labels", [[0.0, 1.0, 2.0], [1e-150, 1.0, 1e150], [0.0, 5e-324, 1e-150], [1e9, 1e9 + 1, 2e9]])
def test_extreme_numbers_are_held(labels, epsilon):
    """No output of many refutes the bound, for duals on every side of the bowls."""
    for outputs, scale in itertools.product(
        [None, Interval(1e-300, 1e150), Interval(1e-200, 1e-100)], [0.0, 1.0, 1e100]
    ):
        problem = regression(labels, [0.5, 0.0, 0.5], epsilon, loss=losses.poisson_log, outputs=outputs)
        dual = Dual([scale, -scale, -1e-300], [0.0] * 3)
        ratio = max(Fraction(1), exp_bracket(epsilon)[0])
        low, high = max(problem.outputs.low, 1e-320), min(problem.outputs.high, 1e200)
        rows = [[Fraction(x) for x in column] for column in (labels, problem.prior, dual.alpha)]
        least = math.inf
        for v in {Fraction(float(v)) for v in np.clip([*labels, 1e-310, 0.1, 3.0, 1e160], low, high)}:
            h = [p * exact_loss(losses.poisson_log, v, y) - a for y, p, a in zip(*rows, strict=True)]
            least = min(least, sum(ratio * x if x < 0 else x for x in h))
        bound = sum(rows[2]) + (least * 3 / (ratio + 2) if least < 0 else least / ratio)
        assert exact.lower_bound(problem, dual) <= bound + abs(bound) / 10**70, "the logarithms here have 80 digits"


def test_a_root_that_floats_cannot_find_is_found_from_the_limit(monkeypatch):
    """The floats' guesses only save steps: without them, and with wrong ones, the bound is the same to all digits."""
    rng = np.random.default_rng(8)
    labels = np.sort(rng.uniform(0, 9, 12))
    problem = regression(labels, rng.dirichlet(np.ones(12)), 1.0, loss=losses.poisson_log)
    dual = a_dual(rng, labels, problem.prior, 0.0)
    bound = exact.lower_bound(problem, dual)
    for wrong in (math.nan, math.inf, 1e-300, 3.0, 1e300):
        monkeypatch.setattr(poisson, "negative_ranges", lambda *_, x=wrong: (np.full(12, x), np.full(12, x)))
        assert abs(exact.lower_bound(problem, dual) - bound) < TIGHT


@given(st.integers(1, 2**200), st.integers(0, 1200), st.sampled_from([20, 128, 300]))
def test_logarithms_are_above_by_less_than_their_width(v, line, bits):
    rounded = Fraction(Logarithms(line, bits).above(v), 2**bits)
    with_digits = exact_log(Fraction(v)) - exact_log(Fraction(2**line))
    digits = Fraction(1, 10**60)
    assert with_digits - digits <= rounded < with_digits + Fraction(WIDTH, 2**bits) + digits


@given(st.fractions(Fraction(1, 10**9), 10**9), st.sampled_from([20, 128]))
def test_logarithms_of_rationals_are_below_by_less_than_two_units(v, bits):
    (rounded,) = logarithms_below([v], bits)
    assert Fraction(rounded, 2**bits) <= exact_log(v) + Fraction(1, 10**70) < Fraction(rounded + 2, 2**bits)
