"""A dual that is measured from an origin: a change of its constants, and a bound that moves with the labels."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from optrand import Dual, Grid, Interval, losses, regression, unbiased_regression
from optrand.certificates.exact import lower_bound
from optrand.certificates.prices import price

FAR = 2.0**50
"""Numbers with two binary digits after the point can be added to it without rounding."""

LABELS = np.array([0.0, 0.75, 1.0, 2.5, 4.0])
PRIOR = np.array([0.25, 0.125, 0.125, 0.375, 0.125])
VALUES = np.arange(-8, 33) / 4

PLACES = {"line": None, "interval": Interval(-1.25, 5.25), "grid": Grid(VALUES)}


def moved(outputs, distance):
    if isinstance(outputs, Interval):
        return Interval(outputs.low + distance, outputs.high + distance)
    return None if outputs is None else Grid(outputs.values + distance)


def questions():
    """Every loss that knows distances only, at every kind of penalty, wherever its bound is stated."""
    for place, outputs in PLACES.items():
        for loss in (losses.squared, losses.absolute):
            for penalty in (0.0, 0.5, np.inf):
                if loss == losses.squared or penalty == 0 or place == "grid":
                    yield pytest.param(loss, penalty, outputs, id=f"{loss.name}-{penalty}-{place}")


def a_dual(seed, penalty, origin=0.0):
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=LABELS.size) if penalty else np.zeros(LABELS.size)
    return Dual(PRIOR * rng.normal(size=LABELS.size), 0.1 * beta, origin)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("loss", "penalty", "outputs"), list(questions()))
def test_the_bound_does_not_change_when_everything_moves(loss, penalty, outputs, seed):
    """At distances whose constants ``alpha - beta * origin`` no float holds."""
    near = regression(LABELS, PRIOR, 1.5, loss=loss, bias_penalty=penalty, outputs=outputs)
    far = replace(near, labels=LABELS + FAR, outputs=near.outputs if outputs is None else moved(outputs, FAR))
    for origin in (0.0, 1.0, -17.25):
        at_home = lower_bound(near, a_dual(seed, penalty, origin))
        assert lower_bound(far, a_dual(seed, penalty, FAR + origin)) == at_home


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("loss", "penalty", "outputs"), list(questions()))
def test_prices_do_not_change_when_everything_moves(loss, penalty, outputs, seed):
    near = regression(LABELS, PRIOR, 1.5, loss=loss, bias_penalty=penalty, outputs=outputs)
    far = replace(near, labels=LABELS + FAR, outputs=near.outputs if outputs is None else moved(outputs, FAR))
    here, there = price(near, a_dual(seed, penalty)), price(far, a_dual(seed, penalty, FAR))
    assert there.costs.min() == here.costs.min()
    assert there.outputs[there.costs.argmin()] - FAR == pytest.approx(here.outputs[here.costs.argmin()], abs=0.25)


def equivalent(dual, origin):
    """``alpha`` with ``beta * origin`` taken off, where floats hold it exactly."""
    alpha = [Fraction(a) - Fraction(b) * Fraction(origin) for a, b in zip(dual.alpha, dual.beta, strict=True)]
    assert all(Fraction(float(a)) == a for a in alpha)
    return Dual([float(a) for a in alpha], dual.beta)


@pytest.mark.parametrize(
    "loss", [losses.squared, losses.absolute, losses.poisson_log, losses.Tabulated(np.outer([0, 1, 2, 0, 3], VALUES))]
)
@pytest.mark.parametrize("penalty", [0.5, 4.0])
@pytest.mark.parametrize("origin", [0.75, -3.0, 1024.0])
def test_an_origin_is_a_change_of_the_constants(loss, penalty, origin):
    values = VALUES[VALUES > 0] if loss == losses.poisson_log else VALUES
    problem = regression(LABELS, PRIOR, 1.5, loss=loss, bias_penalty=penalty, outputs=Grid(values))
    rng = np.random.default_rng(3)
    alpha, beta = rng.integers(-99, 99, (2, LABELS.size)) / 64
    measured = Dual(alpha, beta, origin)
    plain = equivalent(measured, origin)
    assert abs(lower_bound(problem, measured) - lower_bound(problem, plain)) < Fraction(1, 10**30)
    there, here = price(problem, measured), price(problem, plain)
    assert there.costs == pytest.approx(here.costs, rel=1e-12)
    assert (there.lowest - here.lowest) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("origin", [0.75, -3.0, 1024.0])
@pytest.mark.parametrize("penalty", [0.5, np.inf])
def test_an_origin_is_a_change_of_the_constants_off_a_grid(penalty, origin):
    problem = regression(LABELS, PRIOR, 1.5, bias_penalty=penalty)
    alpha, beta = np.random.default_rng(3).integers(-99, 99, (2, LABELS.size)) / 64
    measured = Dual(alpha, beta, origin)
    plain = equivalent(measured, origin)
    assert abs(lower_bound(problem, measured) - lower_bound(problem, plain)) < Fraction(1, 10**30)


def test_by_hand():
    """One label, 2^52, with beta = 1: ``h(v) = (v - y)^2 / 2 - (v - y)`` is least at ``y + 1``, where it is -1/2.

    No bias is allowed, so the multipliers' own part is ``beta (y - origin) = 0``; with one label the factor of the
    least price, ``k / (E + k - 1)``, is ``1 / E``, and its column counts ``E`` times: the bound is -1/2.
    """
    problem = unbiased_regression([2.0**52], [1.0], 1.0)
    bound = lower_bound(problem, Dual([0.0], [1.0], 2.0**52))
    assert 0 <= Fraction(-1, 2) - bound < Fraction(1, 10**30)
