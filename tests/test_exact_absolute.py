"""The integer bound for absolute loss off a grid: the definition itself, at every place where it can be least."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand import Dual, Interval, losses, regression
from optrand.base.arithmetic import exp_bracket
from optrand.certificates.absolute import local_minima, lower_bound
from optrand.certificates.bound import excess_above


def fractions(numbers):
    return [Fraction(x) for x in numbers.tolist()]


@st.composite
def cases(draw):
    """Labels near and far, priors with zeros and next to zero, bowls deep, shallow, touching 0 and above it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(1, 15))
    start, gap = draw(st.sampled_from([(0.0, 1.0), (-2.5, 0.1), (1e9, 1.0), (-1e150, 1e147), (0.0, 1e-140)]))
    labels = np.unique(start + gap * np.cumsum(rng.choice([1.0, 0.5, 3.0, 1e-3], size=k)))
    k = labels.size
    weights = rng.dirichlet(np.ones(k)) * rng.choice([1.0, 1.0, 0.0, 1e-8, 1e-300], size=k)
    weights[rng.integers(k)] += 1.0
    prior = weights / weights.sum()
    prior /= math.fsum(prior)
    spread = float(np.ptp(labels)) or 1.0
    allowed = None
    if draw(st.booleans()):
        low = labels[0] + spread * rng.choice([-1.0, 0.0, 0.3, 1.5])
        allowed = Interval(low, low + spread) if low < low + spread and abs(low) + spread <= 1e150 else None
    problem = regression(
        labels, prior, draw(st.sampled_from([1e-6, 0.3, 4.0, 40.0])), loss=losses.absolute, outputs=allowed
    )
    scale = np.where(rng.random(k) < 0.8, prior, rng.choice([1e-3, 1.0])) * spread
    return problem, Dual(scale * rng.choice([0.0, 1.0, 0.1, -0.2, 1e-9, 30.0], size=k), np.zeros(k))


def definition(problem, dual, ratio):
    """``f`` at labels, roots and ends in fractions: it is linear between them."""
    labels, prior, alpha = map(fractions, (problem.labels, problem.prior, dual.alpha))
    points = set(labels)
    points |= {y + sign * a / p for y, p, a in zip(labels, prior, alpha, strict=True) if p for sign in (-1, 1)}
    ends = [x for x in (problem.outputs.low, problem.outputs.high) if math.isfinite(x)]
    points |= {Fraction(x) for x in ends}

    def cost(v):
        reduced = [p * abs(v - y) - a for y, p, a in zip(labels, prior, alpha, strict=True)]
        return sum(ratio * h if h < 0 else h for h in reduced)

    least = min(cost(v) for v in points if not ends or Fraction(ends[0]) <= v <= Fraction(ends[1]))
    k = problem.k
    return sum(alpha) + (least * k / (ratio + k - 1) if least < 0 else least / ratio), cost


@settings(max_examples=300)
@given(cases())
def test_the_bound_is_the_definition(case):
    """Equal to the last digit for the ratio that it takes, which is above ``exp(epsilon)``."""
    problem, dual = case
    excess, shift = excess_above(problem.epsilon)
    ratio = 1 + Fraction(excess, 2**shift)
    assert ratio >= exp_bracket(problem.epsilon)[0]
    bound, cost = definition(problem, dual, ratio)
    assert lower_bound(problem, dual) == bound
    outputs, costs = local_minima(problem, dual)
    assert (np.diff(outputs) > 0).all()
    assert costs.tolist() == [float(cost(Fraction(v))) for v in outputs.tolist()]
    assert lower_bound(problem, dual) <= definition(problem, dual, exp_bracket(problem.epsilon)[0])[0]


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-12, 0.1, 1.0, 40.0, 700.0])
def test_the_ratio_is_above_and_close(epsilon):
    excess, shift = excess_above(epsilon)
    low, high = (end - 1 for end in exp_bracket(epsilon, 400))
    assert Fraction(excess, 2**shift) >= low
    assert Fraction(excess, 2**shift) <= high * (1 + Fraction(1, 2**126)) + Fraction(1, 10**398)


def test_two_labels_by_hand():
    """alpha = 1/4 each and p = 1/2: both bowls touch 0 between the labels, at 1/2, and h_0(0) = -1/4, h_1(0) = 1/4."""
    problem = regression([0, 1], [0.5, 0.5], math.log(3), loss=losses.absolute)
    outputs, costs = local_minima(problem, Dual([0.25, 0.25], [0.0, 0.0]))
    assert outputs.tolist() == [0.0, 1.0]
    assert costs.tolist() == pytest.approx([-0.5, -0.5])
    # 1/2 - 1/2 * 2 / (3 + 1): randomized response is wrong with probability 1/4.
    assert float(lower_bound(problem, Dual([0.25, 0.25], [0.0, 0.0]))) == pytest.approx(0.25)
