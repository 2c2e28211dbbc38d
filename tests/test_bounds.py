"""The bound of multipliers: its definition in rationals, rounded down to a float."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from oracle import LOGARITHM_DIGITS, exact_loss, reference_bound
from strategies import duals, problems

import optrand
from optrand import (
    Dual,
    Grid,
    Interval,
    certify,
    checker,
    losses,
    lower_bound,
    regression,
    solve,
    unbiased_range,
    unbiased_regression,
)
from optrand.base import _strict_json
from optrand.base._arithmetic import exp_bracket, float_below, privacy_ratio
from optrand.certificates import _bound as dual_bound
from optrand.certificates._certificate import exact_objective
from optrand.model._problem import Problem
from optrand.solvers.grid._pricing import price
from tests.tables import mechanism_of


def fractions(numbers):
    return [Fraction(x) for x in numbers.tolist()]


TIGHT = Fraction(1, 10**25)


def size(problem, dual):
    """The numbers that are added up in the bound."""
    places = [*problem.labels, *getattr(problem.outputs, "values", (problem.outputs.low, problem.outputs.high))]
    reach = max(Fraction(abs(x)) for x in [*places, dual.origin] if math.isfinite(x))
    if isinstance(problem.loss, losses.Tabulated):
        unit = Fraction(np.abs(problem.loss.entries).max())
    else:
        unit = {"squared": reach**2, "absolute": reach, "poisson_log": 1000 * reach, "zero_one": 1}[problem.loss.name]
    total = unit
    for alpha, beta, prior in zip(*map(fractions, (dual.alpha, dual.beta, problem.prior)), strict=True):
        total += abs(alpha) + 2 * abs(beta) * reach + (beta**2 / prior if prior else 0)
        if beta and not problem.unbiased:
            total += beta**2 / (prior * Fraction(problem.bias_penalty))
    return total


def of_the_checker(problem, dual):
    """Bound that the checker computes from a file with these multipliers. All rows of its table are equal."""
    output = min(max(problem.labels[-1] or 1.0, problem.outputs.low), problem.outputs.high)
    if isinstance(problem.outputs, Grid):
        output = problem.outputs.values[0]
    ones = np.ones((problem.k, 1), dtype=object)
    mechanism = mechanism_of(problem, dual, [output], ones, privacy_ratio(problem.epsilon))
    return checker._bound(checker._read(checker._parse(_strict_json.canonical(mechanism._document).decode())))[0]


def truths(problem, dual):
    """Rationals that hold the bound between them, by sets of labels one at a time: it falls as the ratio grows."""
    low, high = exp_bracket(problem.epsilon, 400)
    bounds = [reference_bound(problem, dual, max(Fraction(1), ratio)) for ratio in (high, low)]
    # Digits of the logarithms of the reference, which are not rounded to one side.
    logs = high * size(problem, dual) / 10 ** (LOGARITHM_DIGITS - 10) if problem.loss == losses.poisson_log else 0
    return bounds[0] - logs, bounds[1] + logs


def examine(problem, dual):
    """The bound and that of the checker, against the definition: not above it, and hardly below."""
    found, (low, high) = lower_bound(problem, dual), truths(problem, dual)
    assert found == -math.inf or Fraction(found) <= high
    assert math.nextafter(found, math.inf) >= float_below(low)
    checked = of_the_checker(problem, dual)
    if checked is None:
        assert problem.loss == losses.poisson_log
        assert not isinstance(problem.outputs, Grid)
    else:
        assert checked <= high
        scale = exp_bracket(problem.epsilon)[1] * size(problem, dual)
        assert low - checked <= Fraction(1, 10**20) * scale
    return found, low


# ----------------------------------------------------------------------------------------------- against the definition

SCALES = {
    "squared": [(0.0, 1.0), (-2.5, 0.1), (1e9, 1.0), (1e6, 1e-3), (-1e130, 1e128), (0.0, 1e-140)],
    "poisson_log": [(0.0, 1.0), (0.0, 1e-140), (1e9, 1.0), (0.3, 0.1), (0.0, 1e140)],
}
KINDS = [(kind, place) for kind in ("squared", "absolute", "poisson_log") for place in ("line", "interval", "grid")]
KINDS += [("table", "grid"), ("classes", "grid")]


@st.composite
def cases(draw, kind, place, most=4):
    """Labels near and far, priors with zeros, multipliers of all sizes: bowls deep, shallow, touching 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    start, gap = draw(st.sampled_from(SCALES.get(kind, SCALES["squared"])))
    steps = np.cumsum(rng.choice([1.0, 0.5, 3.0, 1e-3], size=draw(st.integers(1, most))))
    labels = np.unique(start + gap * (steps - draw(st.booleans()) * steps[0]))
    k, positive = labels.size, kind == "poisson_log"
    prior = rng.dirichlet(np.ones(k)) * rng.choice([1.0, 1.0, 0.0, 1e-8, 1e-300], size=k)
    prior[rng.integers(k)] += 1.0
    prior /= prior.sum()
    prior /= math.fsum(prior)
    epsilon = draw(st.sampled_from([1e-6, 0.3, 1.0, 4.0, 17.0, 40.0]))
    if kind == "classes":
        each = np.arange(float(k))
        grid = draw(st.sampled_from([each, each[: k // 2 + 1], np.append(each[k // 2 :], [k + 3.5, -7.0])]))
        problem = Problem(each, prior, epsilon, losses.zero_one, 0.0, Grid(grid))
        return problem, Dual(prior * rng.normal(size=k) * rng.choice([0.0, 1.0, -1.0], size=k), np.zeros(k))
    spread = float(labels.max() if positive else np.ptp(labels)) or abs(start) or 1.0
    penalty = draw(st.sampled_from([0.0, 1e-9, 0.3, 10.0, *([] if positive else [math.inf])]))
    penalty = penalty if kind == "squared" or place == "grid" else 0.0
    low, high = labels[0] + spread * rng.choice([-1.0, 0.0, 0.3, 1.5]), labels[-1] + 2 * spread
    if penalty == math.inf:
        low, high = (x + sign * spread for x, sign in zip(unbiased_range(labels, epsilon), (-1, 1), strict=True))
    elif positive:
        low, high = np.sort(spread * rng.choice([1e-9, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0], size=2, replace=False))
    values = spread * np.exp(rng.normal(scale=3, size=9)) if positive else start + spread * rng.normal(size=9)
    values = np.unique(np.concatenate((values, labels[labels > 0] if positive else labels, [low, high])))
    outputs = {"line": None, "interval": Interval(low, high), "grid": Grid(values)}[place]
    unit, least = (spread**2 if kind == "squared" else spread), np.zeros(k)
    if kind == "table":
        loss = losses.Tabulated(rng.normal(size=(k, values.size)) * 10.0 ** rng.integers(-20, 20))
        unit = np.abs(loss.entries).max()
    else:
        loss = getattr(losses, kind)
    if positive:
        least = labels - labels * np.log(np.where(labels > 0, labels, 1.0))
    problem = regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=outputs)
    scale = np.where(rng.random(k) < 0.8, prior, rng.choice([1e-3, 1.0]))
    beta = scale * unit / spread * rng.normal(size=k) * rng.choice([0.0, 1.0, 1e-7, 30.0], size=k)
    beta = np.where(problem.bias_weights > 1e-290, beta, 0.0)
    origin = float(rng.choice([0.0, labels[0], 17.0]))
    depth = scale * (least + unit * rng.choice([0.0, 1.0, 0.1, -0.2, 1e-9, 30.0], size=k)) - beta * (labels - origin)
    bowls = kind == "squared" and rng.random() < 0.5
    curvature = np.zeros(k)
    if bowls:
        np.divide(beta**2, 2 * prior, out=curvature, where=prior > 1e-10)
    return problem, Dual(depth - curvature, beta, origin)


@pytest.mark.parametrize(("kind", "place"), KINDS)
@given(st.data())
def test_bounds_are_those_of_the_definition_rounded_down(kind, place, data):
    examine(*data.draw(cases(kind, place)))


@given(problems(max_size=4).flatmap(lambda problem: st.tuples(st.just(problem), duals(problem))))
def test_bounds_of_ordinary_problems_are_those_of_the_definition(case):
    examine(*case)


SPIKES = [0.9, 0.1 - 2e-10 - 1e-18, 2e-10, 1e-18]
CRAFTED = {
    # The best output lies between two floats, which are 1/8 apart here: f is higher at both of them.
    "far off, unpenalised": ([1e15, 1e15 + 1], [0.18, 0.82], 5.0, [0.0, 0.0], [0.0, 0.0], 0.0, None),
    "far off, close together": (
        *([1000000000000.0056, 1000000000000.0076], [0.25, 0.75], 1.0),
        *([0.0, 9.273456456735435e-07], [0.0, 0.0], 0.0, None),
    ),
    "far off, unbiased": (
        *([1e15, 1e15 + 1.4, 1e15 + 4, 1e15 + 6.5], [1e-10, 0.5, 0.0, 0.4999999999], 1.0),
        *([2.7e-11, 0.02, 0.0, 0.056], [0.0] * 4, math.inf, None),
    ),
    "far off, in an interval": (
        *([1000000000000.002, 1000000000000.005], [0.02, 0.98], 0.1, [0.0, 0.0], [0.0, 0.0], 1.0),
        Interval(1000000000000.001, 1000000000000.006),
    ),
    # A term of 1e-299 decides, and rounding hides it.
    "a prior of 1e-299 at the largest budget": (
        *([3.3644788071697374, 8.484559710297564], [1.0, 2.9118836514199627e-299], 700.0),
        *([0.0, 1.3240726199929315e-298], [0.0, 0.0], 0.0, Interval(3.3644788071697374, 8.984559710297564)),
    ),
    # The product of penalty and prior keeps one bit. Half of it was charged for the bias.
    "a charge that underflows": (
        *([0.0, 1.0], [0.5, 0.5], 1.0, [0.0, 0.0], [4e-163, 0.0], 2.0**-1074 * 3, Interval(-1, 2)),
    ),
}
ROOTS = {
    # Of Poisson log loss: near the smallest floats, below them, beyond the largest, and outside the allowed outputs.
    "near the smallest": ([1000.0, 1001.0, 1002.0, 1003.0], [0.25] * 4, 1e-6, [0.0, 0.0, 0.0, 177854.35688135], None),
    "below the smallest": ([1.0, 2.0, 3.0, 4.0], SPIKES, 40.0, [0.0, 0.0, 0.13, 0.2], None),
    "outside": ([1.0, 2.0, 3.0, 4.0], SPIKES, 40.0, [0.0, 0.0, 0.13, 0.2], Interval(0.1, 4.7)),
    "beyond the largest": ([0.0, 1.0, 2.0], [0.5, 0.5 - 1e-305, 1e-305], 1.0, [0.1, 0.1, 1e5], None),
    "none": ([0.0], [1.0], 1.0, [0.0], None),
}


@pytest.mark.parametrize("name", [*CRAFTED, *ROOTS])
def test_what_once_lifted_a_bound_above_the_definition_does_so_no_more(name):
    if name in CRAFTED:
        labels, prior, epsilon, alpha, beta, penalty, outputs = CRAFTED[name]
        problem = regression(labels, prior, epsilon, bias_penalty=penalty, outputs=outputs)
    else:
        labels, prior, epsilon, alpha, outputs = ROOTS[name]
        beta = [0.0] * len(labels)
        problem = regression(labels, prior, epsilon, loss=losses.poisson_log, outputs=outputs)
    examine(problem, Dual(alpha, beta))


def cost_of(problem, dual, ratio):
    """``f`` at an output, and the labels whose reduced cost there is negative, from the definition."""
    rows = list(zip(*map(fractions, (problem.labels, problem.prior, dual.alpha, dual.beta)), strict=True))

    def cost(v):
        apart = v - Fraction(dual.origin)
        found = [p * exact_loss(problem.loss, v, y) - a - b * apart for y, p, a, b in rows]
        return sum(ratio * h if h < 0 else h for h in found), [h < 0 for h in found]

    return cost


def dips(problem, dual):
    """Allowed outputs next to the local minima of ``f``: of many, of labels and ends, and between zeros of ``h_y``."""
    labels, p, spread = problem.labels, problem.prior, float(np.ptp(problem.labels)) or 1.0
    places = [np.linspace(labels[0] - 3 * spread, labels[-1] + 3 * spread, 4001), labels]
    if problem.loss == losses.squared:
        slopes, levels = p * labels + dual.beta, p * labels**2 / 2 - dual.alpha + dual.beta * dual.origin
        with np.errstate(all="ignore"):
            root = np.sqrt(slopes**2 - 2 * p * levels)
            zeros = np.concatenate(((slopes - root) / p, (slopes + root) / p, levels / slopes))
        zeros = np.sort(zeros[np.isfinite(zeros)])
        places += [(zeros[1:] + zeros[:-1]) / 2, zeros[:1] - 1, zeros[-1:] + 1]
    low = max(problem.outputs.low, 1e-9 if problem.loss.positive_outputs else -math.inf)
    outputs = np.unique(np.clip(np.concatenate(places), low, problem.outputs.high))
    costs = np.pad(price(problem, dual, outputs), 1, constant_values=math.inf)
    return outputs[(costs[1:-1] <= costs[:-2]) & (costs[1:-1] <= costs[2:])]


@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind, place in KINDS[:6] if place != "grid"])
@given(st.data())
def test_of_many_labels_no_output_refutes_the_bound_and_some_output_attains_it(kind, place, data):
    """Not all sets of 25 labels can be listed, but the minimiser of each piece is known: there the bound is tight."""
    problem, dual = data.draw(cases(kind, place, most=25))
    bound, (least_ratio, ratio) = lower_bound(problem, dual), exp_bracket(problem.epsilon, 400)
    cost, middle = cost_of(problem, dual, ratio), Fraction(dual.origin)
    low, high = (Fraction(x) if math.isfinite(x) else None for x in (problem.outputs.low, problem.outputs.high))
    rows = list(zip(*map(fractions, (problem.labels, problem.prior, dual.beta)), strict=True))
    least = []
    for v in fractions(dips(problem, dual)):
        # From each dip to the minimum of its piece, until that lies in the piece.
        for _ in range(20):
            here, negative = cost(v)
            least.append(here)
            weights = [ratio if inside else Fraction(1) for inside in negative]
            weight = sum(s * p for s, (_, p, _) in zip(weights, rows, strict=True))
            vertex = sum(s * (p * y + b) for s, (y, p, b) in zip(weights, rows, strict=True)) / weight
            vertex = vertex if low is None else min(max(vertex, low), high)
            if kind == "absolute" or vertex == v or (kind == "poisson_log" and vertex <= 0):
                break
            v = vertex
    for v in np.clip(problem.labels * (1 + 1e-9), problem.outputs.low, problem.outputs.high).tolist():
        least.append(cost(Fraction(v))[0])
    total = sum(a + b * (y - middle) for a, (y, _, b) in zip(fractions(dual.alpha), rows, strict=True))
    if not problem.unbiased:
        total -= sum(b * b / (2 * Fraction(problem.bias_penalty) * p) for _, p, b in rows if b)
    lowest = min(least)
    attained = total + (lowest * problem.k / (ratio + problem.k - 1) if lowest < 0 else lowest / ratio)
    # The reference takes a ratio that is too large by 400 digits, and the minimum is within a float's rounding.
    off = (ratio - least_ratio) * size(problem, dual)
    assert Fraction(bound) <= attained + off
    assert attained - Fraction(bound) <= off + Fraction(2 * math.ulp(bound)) + TIGHT * ratio * size(problem, dual)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-12, 300.0, 700.0])
@pytest.mark.parametrize("labels", [[0, 1, 2], [-1e150, 0, 1e150], [1e9, 1e9 + 1, 1e9 + 2], [0, 1e-150, 1e150]])
@pytest.mark.parametrize("loss", [losses.squared, losses.poisson_log], ids=["squared", "poisson"])
def test_extreme_numbers_are_held(loss, labels, epsilon):
    """No output of many refutes the bound."""
    places = [None, Interval(-1e150, 1e150)] if loss == losses.squared else [None, Interval(1e-200, 1e150)]
    labels = np.array(labels if loss == losses.squared else np.unique(np.abs(labels)), dtype=float)
    for outputs, scale in itertools.product(places, [0.0, 1.0, 1e100]):
        penalty, beta = (1e-300, [1e-150, 0.0, -1.0]) if loss == losses.squared else (0.0, [0.0] * 3)
        prior = [0.5, 0.0, 0.5] if labels.size == 3 else [0.5, 0.5]
        problem = regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=outputs)
        dual = Dual([scale, -scale, 1e-300][: problem.k], beta[:1] + beta[3 - problem.k + 1 :])
        ratio = max(Fraction(1), exp_bracket(epsilon)[0])
        cost = cost_of(problem, dual, ratio)
        ends = max(problem.outputs.low, -1e160 if loss == losses.squared else 1e-320), problem.outputs.high
        some = np.clip([*labels, 1e-310, 0.1, 3.0], *ends).tolist()
        least, k = min(cost(Fraction(v))[0] for v in some), problem.k
        total = sum(a + b * y for a, b, y in zip(*map(fractions, (dual.alpha, dual.beta, labels)), strict=True))
        if penalty:
            parts = zip(fractions(dual.beta), fractions(problem.prior), strict=True)
            total -= sum(b * b / (2 * Fraction(penalty) * p) for b, p in parts if b)
        bound = total + (least * k / (ratio + k - 1) if least < 0 else least / ratio)
        found = lower_bound(problem, dual)
        assert found == -math.inf or Fraction(found) <= bound + abs(bound) / 10**70


# -------------------------------------------------------------------------------------------- nothing rests on roots
def random_problem(rng, kind, spread=None):
    """Spread or clustered labels, spiked, thin-tailed or partly zero priors, and an interval now and then."""
    k = int(rng.integers(2, 40))
    labels = np.sort(rng.choice(900, k, replace=False)) * float(rng.choice([1e-3, 1.0, 1e5]))
    prior = rng.dirichlet(np.full(k, rng.uniform(0.1, 2))) + 1e-15
    spread = spread or rng.choice(["plain", "zeros", "tails"])
    if spread == "zeros":
        prior[rng.random(k) < 0.3] = 0
        prior[0] += 0.1
    elif spread == "tails":
        prior *= 10.0 ** -rng.uniform(0, 30, k)
    prior, epsilon = prior / prior.sum(), float(rng.choice([0.05, 0.5, 1.0, 3.0, 6.0]))
    if kind == "classes":
        return optrand.classification(prior, epsilon)
    if kind in ("unbiased", "priced"):
        return regression(labels, prior, epsilon, bias_penalty=math.inf if kind == "unbiased" else 10.0)
    low, high = labels[0], labels[-1]
    inside = Interval(low + 0.2 * (high - low), high - 0.1 * (high - low)) if rng.random() < 0.4 else None
    return regression(labels, prior, epsilon, loss=getattr(losses, kind), outputs=inside)


@pytest.mark.parametrize("off", [1e-9, 1e-2, -1e-2, 3.0, math.nan])
@pytest.mark.parametrize("kind", ["squared", "poisson_log"])
def test_bounds_rest_on_no_root(monkeypatch, kind, off):
    """With all roots wrong by some share the bound is worse, and still one."""
    problem = random_problem(np.random.default_rng(4), "unbiased" if kind == "squared" else kind, "plain")
    dual = solve(problem).dual
    good, form = dual_bound.lower_bound(problem, dual), dual_bound.FORMS[problem.loss]

    def moved(curve):
        roots = form.roots(curve)
        return None if roots is None else tuple(root * (1 + off) for root in roots)

    monkeypatch.setitem(dual_bound.FORMS, problem.loss, form._replace(roots=moved))
    monkeypatch.setattr(dual_bound, "MOST_BITS", 256)
    assert dual_bound.lower_bound(problem, dual) < good


@pytest.mark.parametrize("kind", ["squared", "absolute", "poisson_log"])
def test_bounds_at_points_need_no_guess(monkeypatch, kind):
    """The ranges that floats name on a grid only save steps: from wrong ones the bound is the same."""
    rng = np.random.default_rng(8)
    labels, prior = np.sort(rng.uniform(0, 9, 12)), rng.dirichlet(np.ones(12))
    problem = regression(labels, prior, 1.0, loss=getattr(losses, kind), outputs=np.linspace(0.5, 9, 40))
    least = labels - labels * np.log(labels) if kind == "poisson_log" else np.zeros(12)
    dual = Dual(prior * (least + rng.random(12)), np.zeros(12))
    good = dual_bound.lower_bound(problem, dual)
    for first, turn, last in ((0, 0, 0), (40, 40, 40), (0, 20, 40), (11, 11, 11)):
        monkeypatch.setattr(dual_bound, "_guess_ranges", lambda *_, g=(first, turn, last): [g] * 12)
        assert dual_bound.lower_bound(problem, dual) == good


def test_a_bias_that_is_free_admits_no_multiplier():
    prior = [0.5, 0.5, 0.0]
    for problem in (
        regression([0, 1, 2], prior, 1.0, bias_penalty=1.0),
        regression([0, 1, 2], prior, 1.0, loss=losses.poisson_log),
        regression([0, 1, 2], prior, 1.0, outputs=[0, 1]),
    ):
        assert lower_bound(problem, Dual(np.zeros(3), [0.0, 0.0, 0.1])) == -math.inf


def test_multipliers_too_large_for_a_bound_prove_nothing():
    problem = unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    assert lower_bound(problem, Dual([-1.7e308, -1.7e308], [0.0, 0.0])) == -math.inf
    assert lower_bound(problem, Dual([1e300, 0.0], [1e200, 0.0])) == -math.inf


def test_a_bound_of_zero_is_found():
    """One label, no multipliers: the loss is at least 0, and that is the bound up to the smallest float."""
    problem = regression([3.0], [1.0], 0.7)
    assert -1e-323 <= lower_bound(problem, Dual([0.0], [0.0])) <= 0


def test_the_precision_of_others_is_left_alone_and_does_not_matter():
    problem = random_problem(np.random.default_rng(4), "unbiased", "plain")
    dual = solve(problem).dual
    right = dual_bound.lower_bound(problem, dual)
    with ctx.workprec(17):
        assert dual_bound.lower_bound(problem, dual) == right
        assert ctx.prec == 17


def test_bounds_of_many_threads_at_once_are_those_of_one():
    """The precision is one number for all threads, and any of them may set it."""
    given = [random_problem(np.random.default_rng(seed), "unbiased", "plain") for seed in range(6)]
    cases = [(problem, solve(problem).dual) for problem in given]
    right = [dual_bound.lower_bound(*case) for case in cases]
    before = ctx.prec
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda case: dual_bound.lower_bound(*case), cases * 20)) == right * 20
    assert ctx.prec == before


def test_a_precision_that_another_thread_sets_makes_bounds_weak_not_false(monkeypatch):
    problem = random_problem(np.random.default_rng(4), "unbiased", "plain")
    dual = solve(problem).dual
    right, given = dual_bound.lower_bound(problem, dual), dual_bound._generate_curves

    def disturbed(*arguments):
        for i, curve in enumerate(given(*arguments)):
            ctx.prec = 20 if i % 2 else 300
            yield curve

    monkeypatch.setattr(dual_bound, "_generate_curves", disturbed)
    monkeypatch.setattr(dual_bound, "MOST_BITS", 256)
    assert -math.inf < dual_bound.lower_bound(problem, dual) < right
    assert arb(1).rad() == 0


# ---------------------------------------------------------------------------------------- labels far from zero, origins

FAR = 2.0**50
"""Numbers with two binary digits after the point can be added to it without rounding."""


@pytest.mark.parametrize("penalty", [0.0, 0.5, math.inf])
@pytest.mark.parametrize("place", ["line", "interval", "grid"])
@pytest.mark.parametrize("loss", [losses.squared, losses.absolute], ids=["squared", "absolute"])
def test_the_bound_does_not_change_when_everything_moves(loss, place, penalty):
    """At distances whose constants ``alpha - beta * origin`` no float holds."""
    penalty = penalty if loss == losses.squared or place == "grid" else 0.0
    labels, prior = np.array([0.0, 0.75, 1.0, 2.5, 4.0]), np.array([0.25, 0.125, 0.125, 0.375, 0.125])
    sets = {"line": lambda _: None, "interval": lambda x: Interval(x - 1.25, x + 5.25)}
    sets["grid"] = lambda x: Grid(x + np.arange(-8, 33) / 4)
    near, far = (
        regression(x + labels, prior, 1.5, loss=loss, bias_penalty=penalty, outputs=sets[place](x)) for x in (0.0, FAR)
    )
    for seed, origin in itertools.product(range(3), (0.0, 1.0, -17.25)):
        alpha, beta = np.random.default_rng(seed).normal(size=(2, 5)) * [[1.0], [0.1 * (penalty > 0)]] * prior
        here, there = Dual(alpha, beta, origin), Dual(alpha, beta, FAR + origin)
        assert abs(lower_bound(far, there) - lower_bound(near, here)) <= math.ulp(lower_bound(near, here))
        if not origin:
            before, after = dual_bound.lowest_price(near, here), dual_bound.lowest_price(far, there)
            assert abs(after - before) <= math.ulp(before)


def test_one_label_far_from_zero_by_hand():
    """One label, 2^52, with beta = 1: ``h(v) = (v - y)^2 / 2 - (v - y)`` is least at ``y + 1``, where it is -1/2.

    No bias is allowed, so the multipliers' own part is ``beta (y - origin) = 0``. With one label the factor of the
    least price, ``k / (E + k - 1)``, is ``1 / E``, and its column counts ``E`` times: the bound is -1/2.
    """
    problem = unbiased_regression([2.0**52], [1.0], 1.0)
    assert 0 <= -0.5 - lower_bound(problem, Dual([0.0], [1.0], 2.0**52)) <= math.ulp(0.5)


# -------------------------------------------------------------------------------------------------------------- by hand
def test_a_label_of_prior_zero_is_negative_on_a_half_line():
    problem = unbiased_regression([0, 1, 2, 3], [0.5, 0, 0, 0.5], 1.0)
    dual = Dual([0.0, 2.0, 2.0, 0.0], [0.0, 1.0, -1.0, 0.0])
    # h_1(v) = -2 - v is negative above -2, and h_2(v) = -2 + v below 2. The others are parabolas that touch 0.
    # f(v) = v^2/4 + (v-3)^2/4 - 4 + (E-1)(min(-2-v, 0) + min(v-2, 0)): above 2 only h_1 counts E times,
    # f'(v) = v - 3/2 - (E-1) vanishes at E + 1/2. Below -2 only h_2 does, and f falls up to there.
    v = math.e + 0.5
    least = v * v / 4 + (v - 3) ** 2 / 4 - 4 - (math.e - 1) * (2 + v)
    assert dual_bound.lowest_price(problem, dual) == pytest.approx(least)
    assert lower_bound(problem, dual) == pytest.approx(4 - 1 + least * 4 / (math.e + 3))
    # Without slope: 2 - 2 from the multipliers, and f(v) = v^2/4 + (v-3)^2/4 - 2 E + 2, least at 3/2.
    priced = regression([0, 1, 2, 3], [0.5, 0, 0, 0.5], 1.0, bias_penalty=1.0)
    bound = lower_bound(priced, Dual([0.0, 2.0, -2.0, 0.0], [0.0] * 4))
    assert bound == pytest.approx((9 / 8 + 2 - 2 * math.e) * 4 / (math.e + 3), rel=1e-14)


def test_two_labels_by_hand():
    """alpha = 1/4 each and p = 1/2: both bowls touch 0 between the labels, at 1/2, and h_0(0) = -1/4, h_1(0) = 1/4."""
    problem = regression([0, 1], [0.5, 0.5], math.log(3), loss=losses.absolute)
    assert dual_bound.lowest_price(problem, Dual([0.25, 0.25], [0.0, 0.0])) == pytest.approx(-0.5)
    # 1/2 - 1/2 * 2 / (3 + 1): randomized response is wrong with probability 1/4.
    assert lower_bound(problem, Dual([0.25, 0.25], [0.0, 0.0])) == pytest.approx(0.25)


def test_an_output_that_is_no_class_counts():
    """With every prior at its own label the last value of the grid, which is no label, has the cheapest column."""
    problem = regression([0, 1], [0.5, 0.5], 1.0, loss=losses.zero_one, outputs=[0, 1, 2])
    dual = Dual([1.0, 1.0], [0.0, 0.0])
    alone = replace(problem, outputs=Grid([2.0]))
    for asked in (problem, alone):
        examine(asked, dual)
    assert lower_bound(alone, dual) > lower_bound(problem, dual)
    mechanism = mechanism_of(
        replace(problem, outputs=Grid([-3.0, 1.0, 9.0])), None, [-3.0, 1.0, 9.0], [[2, 1, 1], [1, 2, 1]], Fraction(2)
    )
    assert certify(mechanism).lower == 0.25


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
def test_a_grid_of_one_value_has_one_price(loss):
    problem = regression([0, 1], [0.5, 0.5], 1.0, loss=loss, outputs=[3.0])
    proof = certify(solve(problem))
    assert (proof.lower, proof.upper) == pytest.approx((problem.value(solve(problem).randomizer),) * 2, rel=1e-12)


def test_large_problems_are_proven_exactly():
    labels = np.arange(21.0)
    grid = optrand.feasible_output_set(labels, 1.0, 5_000)
    fine = certify(solve(unbiased_regression(labels, np.full(21, 1 / 21), 1.0, outputs=grid)))
    line = certify(solve(unbiased_regression(labels, np.full(21, 1 / 21), 1.0)))
    fine.require(1e-9)
    assert max(line.lower, line.upper) <= fine.upper
    classes = certify(optrand.rr(np.arange(1_000), 3.0)).require(1e-12)
    assert classes.upper == pytest.approx(math.exp(3) / (math.exp(3) + 999), rel=1e-9)


def test_a_loss_of_ones_own_is_summed_from_its_brackets():
    """A loss whose floats are nonsense: only the upper end of its bracket counts."""
    own = losses.Loss("own", lambda v, y: 0 * v * y, lambda v, y: (abs(v - y), abs(v - y) + Fraction(1, 3)))
    problem = Problem(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 1.0, own, 0.0, Grid([0.0, 1.0]))
    mechanism = mechanism_of(problem, None, [0.0, 1.0], [[2, 1], [1, 2]], Fraction(2))
    assert exact_objective(problem, mechanism.table) == Fraction(1, 3) + Fraction(1, 3)
    # The lower ends are those of absolute loss, and so is the bound.
    dual = Dual([0.2, 0.1], [0.0, 0.0])
    assert lower_bound(problem, dual) == lower_bound(replace(problem, loss=losses.absolute), dual)


@pytest.mark.parametrize("loss", [losses.Tabulated(np.zeros((1, 2))), losses.absolute, losses.squared])
def test_multipliers_of_one_binary_digit_prove_all_that_they_can(loss):
    problem = regression([1.0], [1.0], 1.0, loss=loss, bias_penalty=0.3, outputs=[1.0, 2.0])
    dual = Dual([0.0], [0.5])
    assert lower_bound(problem, dual) == pytest.approx(reference_bound(problem, dual, exp_bracket(1.0)[1]), rel=1e-15)
