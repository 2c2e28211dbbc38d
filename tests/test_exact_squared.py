"""The integer bound for squared loss off a grid: below the plain definition always, and by next to nothing."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optrand import Dual, Interval, regression, unbiased_range, unbiased_regression
from optrand.base.arithmetic import exp_bracket
from optrand.certificates.squared import local_minima, lower_bound

EPSILONS = [1e-6, 1e-3, 0.3, 1.0, 4.0, 8.0, 17.0, 40.0]

TIGHT = Fraction(1, 10**25)
"""What rounding may take from the bound, as a share of the magnitudes that are added up in it, per unit of E."""


def fractions(numbers):
    return [Fraction(x) for x in numbers.tolist()]


class Plain:
    """The bound in fractions, from its formula, with roots bracketed to 200 binary digits: slow and easy to read."""

    def __init__(self, problem, dual, ratio):
        self.problem, self.ratio = problem, ratio
        self.alpha, self.beta, self.labels, self.prior = map(
            fractions, (dual.alpha, dual.beta, problem.labels, problem.prior)
        )
        columns = zip(self.prior, self.labels, self.alpha, self.beta, strict=True)
        self.curves = [(p / 2, -p * y - b, p * y * y / 2 - a) for p, y, a, b in columns]
        low, high = problem.outputs.low, problem.outputs.high
        self.low, self.high = (Fraction(x) if math.isfinite(x) else None for x in (low, high))

    def bound(self, lowest):
        """The bound that ``min f >= lowest`` makes."""
        total = sum(self.alpha) + sum(b * y for b, y in zip(self.beta, self.labels, strict=True))
        if not self.problem.unbiased:
            penalty = Fraction(self.problem.bias_penalty)
            total -= sum(b * b / (2 * penalty * p) for b, p in zip(self.beta, self.prior, strict=True) if b)
        k = self.problem.k
        return total + (lowest * k / (self.ratio + k - 1) if lowest < 0 else lowest / self.ratio)

    def cost(self, v):
        """``f(v)`` at an allowed output."""
        reduced = [(a * v + b) * v + c for a, b, c in self.curves]
        return sum(self.ratio * h if h < 0 else h for h in reduced)

    def magnitude(self):
        """The numbers that are added up in the bound."""
        reach = max(map(abs, (*self.labels, self.low or 0, self.high or 0)))
        parts = [abs(a) + abs(b) * reach + p * reach**2 for a, b, p in self.columns()]
        charges = [b * b / p for _, b, p in self.columns() if p]
        return (sum(parts) + sum(charges) / (Fraction(self.problem.bias_penalty) if self.finite() else 1)) or Fraction(
            1
        )

    def columns(self):
        return list(zip(self.alpha, self.beta, self.prior, strict=True))

    def finite(self):
        return 0 < self.problem.bias_penalty < math.inf

    def lowest(self):
        """At most ``min f``: the sweep over brackets of the roots."""
        spread = max(self.labels[-1] - self.labels[0], Fraction(1, 10**200))
        quantum = Fraction(2) ** (spread.numerator.bit_length() - spread.denominator.bit_length() - 200)
        events, slack = [], Fraction(0)
        for curve in self.curves:
            bracket = self.bracket(curve, quantum)
            if bracket:
                events += [(bracket[0], 1, curve), (bracket[1], -1, curve)]
                at_ends = [(curve[0] * v + curve[1]) * v + curve[2] for v in bracket if isinstance(v, Fraction)]
                slack += max([0, *at_ends])
        low, high = (end if end is not None else sign * math.inf for end, sign in ((self.low, -1), (self.high, 1)))
        totals = [sum(c[j] for c in self.curves) for j in range(3)]
        start, least = low, []
        for root, sign, curve in [*sorted(events, key=lambda event: event[0]), (math.inf, 0, (0, 0, 0))]:
            end = min(max(root, low), high)
            if start < end:
                v = min(max(-totals[1] / (2 * totals[0]), start), end)
                least.append((totals[0] * v + totals[1]) * v + totals[2])
                start = end
            totals = [t + sign * (self.ratio - 1) * c for t, c in zip(totals, curve, strict=True)]
        return min(least) - (self.ratio - 1) * slack

    @staticmethod
    def bracket(curve, quantum):
        a, b, c = curve
        if a == 0:
            if b == 0:
                return (-math.inf, math.inf) if c < 0 else None
            root = math.floor(-c / b / quantum) * quantum
            return (root, math.inf) if b < 0 else (-math.inf, root + quantum)
        square = b * b - 4 * a * c
        if square <= 0:
            return None
        product = (square.numerator * square.denominator) << 800
        root = Fraction(math.isqrt(product) + 1, square.denominator << 400)
        return tuple(
            (math.floor if sign < 0 else math.ceil)((-b + sign * root) / (2 * a) / quantum) * quantum
            for sign in (-1, 1)
        )


@st.composite
def cases(draw, max_size=40):
    """Problems and multipliers of all shapes: bowls deep, shallow, touching zero and above it, and half lines."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(1, max_size))
    start, gap = draw(
        st.sampled_from([(0.0, 1.0), (-2.5, 0.1), (1e9, 1.0), (1e6, 1e-3), (-1e150, 1e147), (0.0, 1e-140)])
    )
    gaps = gap * rng.choice([1.0, 0.5, 3.0, 1e-3, 20.0], size=k)
    labels = np.unique(start + np.cumsum(gaps))
    k = labels.size
    weights = rng.dirichlet(np.ones(k)) * rng.choice([1.0, 1.0, 0.0, 1e-8, 1e-300], size=k)
    weights[rng.integers(k)] += 1.0
    prior = weights / weights.sum()
    prior /= math.fsum(prior)
    epsilon, penalty = (
        draw(st.sampled_from(EPSILONS)),
        draw(st.sampled_from([0.0, 1e-9, 0.3, 10.0, math.inf, math.inf])),
    )
    spread = float(np.ptp(labels)) or 1.0
    allowed = None
    if draw(st.booleans()):
        low, high = labels[0] + 0.3 * spread, labels[-1] + 0.2 * spread
        if penalty == math.inf:
            low, high = (x + sign * spread for x, sign in zip(unbiased_range(labels, epsilon), (-1, 1), strict=True))
        allowed = Interval(low, high) if -1e150 <= low < high <= 1e150 else None
    problem = regression(labels, prior, epsilon, bias_penalty=penalty, outputs=allowed)
    scale = rng.choice([1.0, 1e-6, 30.0]) * np.where(rng.random(k) < 0.8, prior, 1 / k)
    beta = scale * spread * rng.normal(size=k) * rng.choice([0.0, 1.0, 1e-7], size=k)
    beta = np.where(problem.bias_weights > 0, beta, 0.0)
    depth = scale * spread**2 * rng.choice([0.0, 1.0, 0.1, -0.2, 1e-9], size=k) * math.exp(-rng.choice([0.0, epsilon]))
    curvature = np.divide(beta**2, 2 * prior, out=np.zeros(k), where=prior > 1e-10)
    alpha = depth - beta * labels - np.where(rng.random(k) < 0.5, curvature, 0.0)
    return problem, Dual(alpha, beta)


@settings(max_examples=150)
@given(cases())
def test_the_bound_is_that_of_the_plain_fractions(case):
    problem, dual = case
    bound, ratio = lower_bound(problem, dual), exp_bracket(problem.epsilon)[1]
    plain = Plain(problem, dual, ratio)
    slow = plain.bound(plain.lowest())
    assert abs(bound - slow) <= TIGHT * ratio * (plain.magnitude() + abs(slow))


@settings(max_examples=150)
@given(cases(max_size=12), st.integers(0, 2**32))
def test_no_output_refutes_the_bound(case, seed):
    """``f`` in fractions, of a ratio that is too small, at any output whatever: the bound stays below."""
    problem, dual = case
    plain = Plain(problem, dual, exp_bracket(problem.epsilon)[0])
    bound = lower_bound(problem, dual)
    outputs, _, _ = local_minima(problem, dual)
    rng = np.random.default_rng(seed)
    spread = float(np.ptp(problem.labels)) or 1.0
    around = [outputs, problem.labels, outputs[1:] / 2 + outputs[:-1] / 2]
    around += [outputs + step * spread for step in (-1e-3, 1e-9)]
    around.append(problem.labels[0] + spread * rng.normal(size=20))
    points = np.clip(np.concatenate(around), problem.outputs.low, problem.outputs.high)
    least = min(plain.cost(v) for v in fractions(points))
    assert bound <= plain.bound(least)


@settings(max_examples=150)
@given(cases(max_size=12))
def test_the_bound_is_attained_at_its_minimisers(case):
    """The exact minimiser of each piece, from the roots as floats find them: the least ``f`` there *is* the bound."""
    problem, dual = case
    ratio = exp_bracket(problem.epsilon)[1]
    plain = Plain(problem, dual, ratio)
    outputs, _, _ = local_minima(problem, dual)
    costs = []
    for v in fractions(outputs):
        below = [(a * v + b) * v + c < 0 for a, b, c in plain.curves]
        a, b = (sum((ratio if s else 1) * c[j] for s, c in zip(below, plain.curves, strict=True)) for j in (0, 1))
        vertex = -b / (2 * a)
        vertex = vertex if plain.low is None else min(max(vertex, plain.low), plain.high)
        costs += [plain.cost(v), plain.cost(vertex)]
    attained = plain.bound(min(costs))
    assert attained >= lower_bound(problem, dual)
    assert attained - lower_bound(problem, dual) <= TIGHT * ratio * (plain.magnitude() + abs(attained))


@settings(max_examples=60)
@given(cases())
def test_local_minima_are_prices(case):
    problem, dual = case
    outputs, costs, slack = local_minima(problem, dual)
    plain = Plain(problem, dual, exp_bracket(problem.epsilon)[1])
    size = TIGHT * plain.ratio * plain.magnitude()
    assert (np.diff(outputs) >= 0).all()
    assert outputs.size <= 2 * problem.k + 1
    assert ((outputs >= problem.outputs.low) & (outputs <= problem.outputs.high)).all()
    assert 0 <= slack <= size
    if np.isfinite(costs.min()):
        assert abs(Fraction(costs.min()) - plain.lowest()) <= size + Fraction(2 * math.ulp(costs.min()))
    else:
        assert plain.lowest() < Fraction(-sys.float_info.max) / 2
    for v, cost in zip(fractions(outputs), costs.tolist(), strict=True):
        if math.isfinite(cost):
            # The output is the place of the minimum to within half a unit of its own last digit.
            step = Fraction(math.ulp(float(v)))
            slopes = (abs(p * (v - y)) + abs(b) for p, y, b in zip(plain.prior, plain.labels, plain.beta, strict=True))
            moved = plain.ratio * step * (sum(slopes) + step)
            assert abs(plain.cost(v) - Fraction(cost)) <= size + moved + Fraction(2 * math.ulp(cost))


def test_a_label_of_prior_zero_is_negative_on_a_half_line():
    problem = unbiased_regression([0, 1, 2, 3], [0.5, 0, 0, 0.5], 1.0)
    dual = Dual([0.0, 2.0, 2.0, 0.0], [0.0, 1.0, -1.0, 0.0])
    # h_1(v) = -2 - v is negative above -2, and h_2(v) = -2 + v below 2; the others are parabolas that touch 0.
    # f(v) = v^2/4 + (v-3)^2/4 - 4 + (E-1)(min(-2-v, 0) + min(v-2, 0)): above 2 only h_1 counts E times,
    # f'(v) = v - 3/2 - (E-1) vanishes at E + 1/2; below -2 only h_2 does, and f falls up to there.
    v = math.e + 0.5
    least = v * v / 4 + (v - 3) ** 2 / 4 - 4 - (math.e - 1) * (2 + v)
    outputs, costs, _ = local_minima(problem, dual)
    assert outputs[[0, -1]] == pytest.approx([-2.0, v])
    assert costs[-1] == pytest.approx(least)
    assert float(lower_bound(problem, dual)) == pytest.approx(4 - 1 + least * 4 / (math.e + 3))


def test_a_label_of_prior_zero_without_slope_is_negative_everywhere_or_nowhere():
    problem = regression([0, 1, 2, 3], [0.5, 0, 0, 0.5], 1.0, bias_penalty=1.0)
    # 2 - 2 from the multipliers; f(v) = v^2/4 + (v-3)^2/4 - 2 E + 2, least at 3/2.
    bound = lower_bound(problem, Dual([0.0, 2.0, -2.0, 0.0], [0.0] * 4))
    assert float(bound) == pytest.approx((9 / 8 + 2 - 2 * math.e) * 4 / (math.e + 3), rel=1e-14)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-12, 300.0, 700.0])
@pytest.mark.parametrize("labels", [[0, 1, 2], [-1e150, 0, 1e150], [1e9, 1e9 + 1, 1e9 + 2], [0, 1e-150, 1e150]])
def test_extreme_numbers_are_held(epsilon, labels):
    for outputs in (None, Interval(-1e150, 1e150)):
        problem = regression(labels, [0.5, 0.0, 0.5], epsilon, bias_penalty=1e-300, outputs=outputs)
        dual = Dual([1.0, -1e100, 1e-300], [1e-150, 0.0, -1.0])
        plain = Plain(problem, dual, max(Fraction(1), exp_bracket(epsilon)[0]))
        bound = lower_bound(problem, dual)
        assert bound <= plain.bound(min(plain.cost(v) for v in fractions(problem.labels)))
        outputs_found, costs, slack = local_minima(problem, dual)
        assert np.isfinite(outputs_found).all()
        assert not np.isnan([*costs, slack]).any()
