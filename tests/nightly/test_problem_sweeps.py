"""Sweeps of hard problems: every mechanism keeps its promises in integers, and enough of each class are proven."""

import math
from collections import Counter
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from asserting import assert_error
from random_problems import OPEN, TAILS, few_labels, random_problem, thin_tails

from benchmarks.exactness import examine
from benchmarks.priors import dirichlet, exponential, revenue
from optrand import Grid, Interval, certify, losses, regression, solve, unbiased_range, unbiased_regression
from optrand.studies import minimax

pytestmark = pytest.mark.nightly

SWEEPS = {
    # Problems, and the shares that must be proven to 1e-9: without classes that may stay open, and of all.
    "random": (lambda: (random_problem(n, 401, TAILS) for n in range(1_000)), 0.995, 0.995),
    "large": (lambda: (random_problem(n, 2_001, TAILS) for n in range(10_000, 10_200)), 0.995, 0.995),
    "thin tails": (thin_tails, 0.99, 0.9),
    "few labels": (lambda: ((one.family, one.problem) for n, one in enumerate(few_labels()) if n % 5 == 0), 0.98, 0.9),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_mechanisms_keep_their_promises_and_are_proven(name, record_property):
    problems, share, of_all = SWEEPS[name]
    tried, proven = Counter(), Counter()
    for kind, problem in problems():
        row = examine(problem)
        assert row["right"], (kind, problem, row)
        tried[kind] += 1
        proven[kind] += row["gap"] <= 1e-9
    for kind, count in tried.items():
        record_property(f"{name}, {', '.join(kind)}", f"{proven[kind]} of {count} proven to 1e-9")
    promised = [kind for kind in tried if kind[-1] not in OPEN]
    assert sum(proven[kind] for kind in promised) >= share * sum(tried[kind] for kind in promised)
    assert proven.total() >= of_all * tried.total()


def rough(k, least=1e-4):
    prior = np.random.default_rng([1729, k]).dirichlet(np.full(k, 0.5)) + least
    return prior / prior.sum()


def gaussian(k, deviation, least=0.0):
    weights = np.maximum(np.exp(-(((np.arange(k) - (k - 1) / 2) / deviation) ** 2) / 2), least)
    return weights / weights.sum()


def narrow(excess, epsilon):
    """Nine labels in an interval that is wider than the narrowest by a share."""
    low, high = unbiased_range(range(9), epsilon)
    outputs = Interval(low - excess * (high - low), high + excess * (high - low))
    return unbiased_regression(range(9), gaussian(9, 2.0), epsilon, outputs=outputs)


def on_grid(k, n, epsilon, penalty):
    low, high = unbiased_range(range(k), epsilon)
    outputs = Grid(np.linspace(low - (k - 1) / 4, high + (k - 1) / 4, n))
    return regression(range(k), rough(k), epsilon, bias_penalty=penalty, outputs=outputs)


CLOSE = (0.0, 1e-6, 0.5, 0.5 + 1e-6, 1.0)
ALTERNATING = np.where(np.arange(401) % 2, 0.1, 1e-12) / np.where(np.arange(401) % 2, 0.1, 1e-12).sum()
ABSOLUTE = {"outputs": np.linspace(-0.2, 1.2, 1_001), "loss": losses.absolute, "bias_penalty": 1.0}
EDGES = {
    "labels 1e9 from zero": lambda: unbiased_regression(1e9 + np.arange(11.0), rough(11), 1.0),
    "labels 1e12 from zero": lambda: unbiased_regression(1e12 + np.arange(11.0), rough(11), 1.0),
    "labels a millionth apart": lambda: unbiased_regression(CLOSE, rough(5), 1.0),
    "labels a millionth apart, penalty 10": lambda: regression(CLOSE, rough(5), 1.0, bias_penalty=10),
    "labels 1e-14 of the range apart": lambda: unbiased_regression([0, 1e-14, 1], np.full(3, 1 / 3), 1.0),
    **{
        f"end labels of prior zero, epsilon {e:g}": partial(unbiased_regression, range(5), [0, 0.2, 0.4, 0.4, 0], e)
        for e in (12.0, 17.0, 25.0)
    },
    "tails of 1e-30": lambda: unbiased_regression(range(4_001), gaussian(4_001, 4_001 / 60, 1e-30), 1.0),
    "Dirichlet and 1e-4 / k": lambda: unbiased_regression(range(4_001), rough(4_001, 1e-4 / 4_001), 1.0),
    "exponential prior, epsilon 8": lambda: unbiased_regression(range(401), exponential(401), 8.0),
    "revenue, epsilon 8": lambda: unbiased_regression(range(401), revenue(401), 8.0),
    "within 1e-6 of the narrowest": lambda: narrow(1e-6, 1.0),
    "within 1e-6 of the narrowest, epsilon 8": lambda: narrow(1e-6, 8.0),
    "three even labels in the narrowest": lambda: unbiased_regression(
        range(3), np.full(3, 1 / 3), 16.0, outputs=Interval(*unbiased_range(range(3), 16.0))
    ),
    "absolute loss, 1,001 outputs": lambda: regression(np.linspace(0, 1, 41), rough(41), 1.0, **ABSOLUTE),
    "1,601 outputs, no bias": lambda: on_grid(401, 1_601, 1.0, math.inf),
    "1,601 outputs, penalty 10": lambda: on_grid(401, 1_601, 1.0, 10.0),
    "64 outputs, no bias": lambda: on_grid(200, 64, 6.0, math.inf),
    "64 outputs, no penalty": lambda: on_grid(200, 64, 6.0, 0.0),
    "two labels, 17 outputs": lambda: on_grid(2, 17, 40.0, math.inf),
    "alternating 1e-12 and 0.1": lambda: regression(range(401), ALTERNATING, 4.0, bias_penalty=1000),
    "penalty 0.001, epsilon 30": lambda: regression(range(9), rough(9), 30.0, bias_penalty=0.001),
}


@pytest.mark.parametrize("name", EDGES)
def test_problems_at_an_edge_are_proven(name):
    certify(solve(EDGES[name]())).require(gap=1e-9)


@pytest.mark.parametrize("k", [53, 401])
def test_the_worst_prior_is_proven(k):
    certify(minimax(range(k), 4.0), worst_case=True).require(gap=1e-9)


def test_an_interval_that_is_too_narrow_is_refused():
    assert_error("unbiased", narrow, -1e-6, 1.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("prior", [dirichlet, exponential])
def test_optima_walk_by_unit_steps_from_the_first_label_to_the_last(prior, epsilon):
    """The interval of labels that an output favours: one end moves by one label or both do, from output to output."""
    problem = unbiased_regression(range(101), prior(101), epsilon)
    mechanism = solve(problem)
    certify(mechanism).require(gap=1e-9)
    arcs = mechanism.arcs
    # An output between two floats is split between the two.
    ends = list(dict.fromkeys(sorted(zip(arcs.first.tolist(), arcs.last.tolist(), strict=True))))
    assert ends[0] == (0, 0)
    assert ends[-1] == (100, 100)
    steps = {(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(ends)}
    assert steps <= {(0, 1), (1, 0), (1, 1)}
    assert len(ends) <= 2 * 101 - 2
