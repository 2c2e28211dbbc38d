"""The exact bound and value of classification, against the definitions that look at every output for every label."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand import Dual, Grid, certify, classification, losses, rr, tabulate
from optrand.certificates import exact, exact_loss
from optrand.mechanism.mechanism import Mechanism
from optrand.model.arcs import IntegerArcs
from optrand.model.problem import Problem


@st.composite
def cases(draw):
    """Classes with outputs that are all labels, some of them, or some and others."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(1, 8))
    labels = np.arange(float(k))
    prior = rng.dirichlet(np.ones(k)) * rng.choice([1.0, 0.0], size=k)
    prior[rng.integers(k)] += 1.0
    prior /= math.fsum(prior)
    grid = draw(st.sampled_from([labels, labels[: k // 2 + 1], np.append(labels[k // 2 :], [k + 3.5, -7.0])]))
    problem = Problem(
        labels, prior / math.fsum(prior), draw(st.sampled_from([0.1, 1.0, 8.0])), losses.zero_one, 0.0, Grid(grid)
    )
    return problem, Dual(prior * rng.normal(size=k) * rng.choice([0.0, 1.0, -1.0], size=k), np.zeros(k))


def kept_by(mechanism: Mechanism) -> list[int]:
    return exact_loss._kept(mechanism.labels, mechanism.outputs, mechanism.table, mechanism.ratio)


@given(cases())
def test_the_lowest_price_is_that_of_every_output_for_every_label(case):
    problem, dual = case
    assert exact.lower_bound(problem, dual) == exact._of_any_loss(problem, dual, problem.outputs.values)


@given(cases())
def test_a_table_of_the_same_losses_has_the_same_bound(case):
    problem, dual = case
    table = losses.Tabulated(problem.loss_table(problem.outputs.values))
    assert exact.lower_bound(replace(problem, loss=table), dual) == exact.lower_bound(problem, dual)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.5]), st.sampled_from([1e-6, 1.0, 40.0]))
def test_a_table_is_evaluated_as_it_is_defined(seed, penalty, epsilon):
    """Losses of any sign and size, multipliers of bias measured from anywhere: equal to the definition in fractions."""
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 7, 2)
    table = losses.Tabulated(rng.normal(size=(k, n)) * 10.0 ** rng.integers(-20, 20))
    grid = Grid(rng.normal(size=n) * 10.0 ** rng.integers(-9, 9))
    problem = Problem(np.arange(float(k)), np.full(k, 1 / k), epsilon, table, penalty, grid)
    alpha, beta = rng.normal(size=(2, k)) * np.abs(table.entries).max()
    dual = Dual(alpha, beta * (penalty > 0), float(rng.choice([0.0, 3.0, 1e9])))
    expected = exact._of_any_loss(problem, dual, grid.values)
    found = exact.lower_bound(problem, dual)
    assert found <= expected
    assert expected - found <= Fraction(1, 10**9) * (abs(expected) + Fraction(float((beta**2).sum())))


@given(st.integers(0, 2**32), st.booleans())
def test_the_kept_weights_are_the_diagonal_of_the_table(seed, as_arcs):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    problem = classification(np.full(k, 1 / k), 1.0)
    ratio = Fraction(5, 2)
    masses = [int(mass) for mass in rng.integers(1, 9, size=k)]
    each, full = np.arange(k), np.full(k, k - 1)
    if k == 1:
        table = IntegerArcs(1, [0], [0], [0], masses)
    else:
        # Each output has the full interval, and its own label alone.
        first, last = np.column_stack((0 * each, each)).ravel(), np.column_stack((full, each)).ravel()
        both = [mass for own in masses for mass in (own, 3)]
        table = IntegerArcs(k, first, last, np.repeat(each, 2), both)
    weights = table if as_arcs else table.table(ratio)
    mechanism = Mechanism(problem, None, np.arange(float(k)), weights, ratio)
    kept = kept_by(mechanism)
    assert kept == [mechanism.weights[y, y] for y in range(k)]
    correct = sum(Fraction(p) * Fraction(w, mechanism.total) for p, w in zip(problem.prior.tolist(), kept, strict=True))
    assert exact_loss.of_mechanism(problem, mechanism) == -correct


def test_an_output_that_is_no_label_keeps_nothing():
    problem = Problem(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 1.0, losses.zero_one, 0.0, Grid([-3.0, 1.0, 9.0]))
    mechanism = Mechanism(problem, None, [-3.0, 1.0, 9.0], [[2, 1, 1], [1, 2, 1]], Fraction(2))
    assert kept_by(mechanism) == [0, 2]


def test_a_thousand_classes_are_proven_exactly():
    mechanism = tabulate(rr(np.arange(1_000), 3.0))
    proof = certify(mechanism, exact=True)
    assert proof.findings == ()
    assert proof.gap < 1e-12
    assert proof.upper == pytest.approx(math.exp(3) / (math.exp(3) + 999), rel=1e-9)


def test_a_loss_of_ones_own_is_summed_from_its_brackets():
    """A loss whose floats are nonsense: what counts is the bracket, and of that the upper end."""
    own = losses.Loss("own", lambda v, y: 0 * v * y, lambda v, y: (abs(v - y), abs(v - y) + Fraction(1, 3)))
    problem = Problem(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 1.0, own, 0.0, Grid([0.0, 1.0]))
    mechanism = Mechanism(problem, None, [0.0, 1.0], [[2, 1], [1, 2]], Fraction(2))
    assert exact_loss.of_mechanism(problem, mechanism) == Fraction(1, 3) + Fraction(1, 3)
