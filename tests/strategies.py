"""Random problems, multipliers and feasible randomizers: the strategies that tests of the core share."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from oracle import Channel

from optrand import Dual, Grid, Interval, classification, losses, regression, unbiased_range
from optrand.base._arithmetic import float_above, float_below, privacy_ratio

EPSILONS = (1e-6, 1e-3, 0.1, 0.5, 1.0, 2.5, 8.0, 17.0, 40.0, 700.0)

KINDS = ("squared", "absolute", "poisson_log", "tabulated", "classification")

epsilons = st.one_of(st.sampled_from(EPSILONS), st.floats(1e-6, 40.0))
"""Budgets far outside the range in which problems are solved, too."""

solved_epsilons = st.one_of(st.sampled_from([0.01, 0.1, 0.7, 1.0, 2.0, 4.0, 8.0]), st.floats(0.01, 8.0))
"""The range in which every problem is solved."""


@st.composite
def label_sets(draw, min_size=1, max_size=6):
    """Increasing labels: even, uneven, negative, in clusters, or far from zero."""
    k = draw(st.integers(min_size, max_size))
    gaps = draw(
        st.one_of(
            st.just([1.0] * k),
            st.lists(st.sampled_from([1.0, 0.5, 3.0, 0.01, 20.0]), min_size=k, max_size=k),
            st.lists(st.sampled_from([1.0, 1.0, 1e-5]), min_size=k, max_size=k),
        )
    )
    start = draw(st.sampled_from([0.0, 0.0, -2.5, 1.0, 1000.0]))
    return start + np.concatenate(([0.0], np.cumsum(gaps[1:])))


@st.composite
def priors(draw, k):
    """Probabilities with zeros, ties, spikes and entries that hardly count."""
    entry = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 5.0, 1e-3, 1e-8, 1e5])
    weights = np.array(draw(st.lists(entry, min_size=k, max_size=k).filter(any)))
    prior = weights / math.fsum(weights)
    return prior / math.fsum(prior)


@st.composite
def problems(draw, kinds=KINDS, budgets=epsilons, max_size=5, places=("line", "interval", "grid")):
    """Any problem that can be stated: every loss, outputs on the line, an interval or a grid, every bias penalty."""
    kind = draw(st.sampled_from(kinds))
    labels = draw(label_sets(1, max_size))
    prior = draw(priors(labels.size))
    epsilon = draw(budgets)
    if kind == "classification":
        return classification(prior, epsilon, labels=labels)
    where = draw(st.sampled_from(["grid"] if kind == "tabulated" else places))
    penalty = 0.0
    if kind == "squared" or where == "grid":
        penalty = draw(st.sampled_from([0.0, 0.3, 10.0, math.inf]))
    loss, floor = losses.by_name.get(kind), -math.inf
    if kind == "poisson_log":
        labels, floor = labels - min(0.0, labels[0]), 0.01
        if where == "grid" and unbiased_range(labels, epsilon)[0] < floor:
            penalty = min(penalty, 10.0)
    outputs = None
    if where != "line":
        outputs = draw(_outputs(labels, epsilon, penalty, floor, where))
    if kind == "tabulated":
        entries = st.lists(
            st.floats(-2, 2), min_size=labels.size * outputs.values.size, max_size=labels.size * outputs.values.size
        )
        loss = losses.Tabulated(np.array(draw(entries)).reshape(labels.size, -1))
    return regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=outputs)


@st.composite
def _outputs(draw, labels, epsilon, penalty, floor, where):
    """An interval or a grid around the labels, or one that leaves some of them outside."""
    spread = float(np.ptp(labels)) or 1.0
    low, high = (
        labels[0] + draw(st.sampled_from([-0.5, 0.0, 0.3])) * spread,
        labels[-1] + draw(st.sampled_from([0.4, 0.0, -0.2])) * spread,
    )
    if penalty == math.inf:
        low, high = unbiased_range(labels, epsilon)
        margin = draw(st.sampled_from([1e-9, 0.1, 1.0])) * (high - low + spread)
        low, high = low - margin, high + margin
    low, high = max(low, floor), max(high, floor + 0.5, low + spread)
    if where == "interval":
        return Interval(low, high)
    return Grid(np.unique(np.linspace(low, high, draw(st.integers(2, 9)))))


@st.composite
def duals(draw, problem):
    """Multipliers that put the bowls of the reduced costs where they matter: deep, shallow, touching 0, or above it."""
    spread = float(np.ptp(problem.labels)) or 1.0
    unit = float(np.abs(problem.loss_table(_some_outputs(problem, spread))).max()) or 1.0
    alpha, beta = np.zeros(problem.k), np.zeros(problem.k)
    for y in range(problem.k):
        p = problem.prior[y]
        weight = p if draw(st.sampled_from([True, True, False])) else 1.0
        depth = weight * unit * draw(st.sampled_from([0.0, 0.0, 1.0, 0.1, -0.2, -1.0, 30.0, 1e-7]))
        shift = spread * draw(st.sampled_from([0.0, 0.5, -0.5, 2.0, -1.0, 1e-6]))
        if problem.bias_weights[y] > 0:
            beta[y] = weight * unit / spread**2 * shift if problem.loss == losses.squared else weight * shift * unit
        # Of p (v - y)^2 / 2 - alpha - beta v the least value is now -depth.
        alpha[y] = depth - beta[y] * problem.labels[y]
        if problem.loss == losses.squared and p > 0:
            alpha[y] -= beta[y] ** 2 / (2 * p)
    return Dual(alpha, beta)


def _some_outputs(problem, spread):
    if isinstance(problem.outputs, Grid):
        return problem.outputs.values
    return np.clip(
        np.array([max(problem.labels[0], 0.1 * spread), problem.labels[-1] + spread]),
        problem.outputs.low,
        problem.outputs.high,
    )


@st.composite
def feasible(draw):
    """A problem, and a random sum of staircase columns that meets its constraints exactly."""
    kind = draw(st.sampled_from(["squared", "squared", "absolute", "poisson_log", "tabulated", "classification"]))
    labels, epsilon = draw(label_sets(1, 5)), draw(epsilons)
    k, ratio = labels.size, privacy_ratio(epsilon)
    prior = draw(priors(k))
    penalty = draw(st.sampled_from([0.0, 0.5, 20.0, math.inf])) if kind == "squared" else 0.0
    if kind == "poisson_log":
        labels = labels - min(0.0, labels[0])
    values = labels if kind == "classification" else labels[0] + np.arange(-3.0, 8.0) * 0.75 * (np.ptp(labels) or 1.0)
    if kind == "poisson_log":
        values = values[values > 0]
    sets = draw(st.lists(st.tuples(*[st.booleans()] * k), min_size=1, max_size=5))
    masses = draw(st.lists(st.integers(1, 100), min_size=len(sets) + k, max_size=len(sets) + k))
    choice = st.sampled_from([Fraction(v) for v in values.tolist()])
    arcs = [(members, draw(choice), mass) for members, mass in zip(sets, masses, strict=False)]
    # Singletons make all labels covered equally. One unit more of each lets their outputs move.
    covered = [sum(mass for members, _, mass in arcs if members[y]) for y in range(k)]
    unit = [tuple(z == y for z in range(k)) for y in range(k)]
    arcs += [(unit[y], draw(choice), max(covered) - covered[y] + masses[-1]) for y in range(k)]
    rows = [[mass * (ratio if members[y] else 1) for members, _, mass in arcs] for y in range(k)]
    total = sum(rows[0])
    rows = [[Fraction(w) / total for w in row] for row in rows]
    outputs = [v for _, v, _ in arcs]
    if penalty == math.inf:
        outputs[-k:] = _unbiased_ends(labels, rows, outputs, ratio)
    allowed = draw(_allowed(kind, outputs, penalty))
    if kind == "classification":
        return classification(prior, epsilon, labels=labels), Channel(outputs, rows)
    loss = losses.by_name.get(kind)
    if kind == "tabulated":
        entries = draw(st.lists(st.integers(-5, 5), min_size=k * allowed.values.size, max_size=k * allowed.values.size))
        loss = losses.Tabulated(np.array(entries).reshape(k, -1))
    problem = regression(labels, prior, epsilon, loss=loss, bias_penalty=penalty, outputs=allowed)
    return problem, Channel(outputs, rows)


def _unbiased_ends(labels, rows, outputs, ratio):
    """Outputs of the last k columns, singletons, that make every mean right: a system that a formula solves."""
    k = labels.size
    light = [rows[(y + 1) % k][-k + y] / (1 if k > 1 else ratio) for y in range(k)]
    missing = [
        Fraction(labels[y]) - sum(q * v for q, v in zip(rows[y][:-k], outputs[:-k], strict=True)) for y in range(k)
    ]
    shared = sum(missing) / (ratio - 1 + k)
    return [(missing[y] - shared) / (light[y] * (ratio - 1)) for y in range(k)]


@st.composite
def _allowed(draw, kind, outputs, penalty):
    low, high = float_below(min(outputs)), float_above(max(outputs))
    choices = ["grid"] if kind == "tabulated" else ["line", "interval", "grid"]
    where = draw(st.sampled_from(["line", "interval"] if penalty == math.inf else choices))
    if where == "line":
        return None
    if where == "interval":
        return Interval(low, high if high > low else low + 1)
    extra = [high + 1.0] if draw(st.booleans()) else []
    return Grid(np.unique([*(float(v) for v in outputs), *extra]))
