"""Optima in rationals: closed forms, both sides of privacy, and proofs that refuse what is not optimal."""

from __future__ import annotations

import builtins
import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optrand
from optrand.certificates import squared
from optrand.certificates.rational import RationalDual, enclosure, expected_loss, lower_bound
from optrand.errors import InvalidInput, MissingExtra, NotCertified
from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.model.problem import Problem
from optrand.studies import ExactOptimum, exact_optimum
from optrand.studies.exact.grids import candidates
from optrand.studies.exact.interior import centred, intervals
from optrand.studies.exact.nodes import Nodes
from optrand.studies.exact.simplex import Column, GridProgram, first_basis, minimised

DIGITS = 30
TINY = Fraction(1, 10**DIGITS)


def line(labels: Any, prior: Any, ratio: Fraction) -> Problem:
    return optrand.unbiased_regression(labels, prior, math.log(ratio))


def ladder(k: int, seed: int) -> tuple[list[float], list[float]]:
    """Labels and a prior of multiples of 1/1024 that sum to exactly 1."""
    random = np.random.default_rng(seed)
    parts = random.multinomial(1024 - k, np.ones(k) / k) + 1
    return sorted(random.choice(4096, k, replace=False).tolist()), (parts / 1024).tolist()


def proven(best: ExactOptimum) -> None:
    """The enclosure, proven again from the parts of an optimum."""
    bits = 0 if isinstance(best.problem.outputs, optrand.Grid) else 300
    low, high = enclosure(best.problem, best.mechanism, best.dual, best.ratio, bits=bits)
    low, high = (-high, -low) if best.problem.sign < 0 else (low, high)
    assert low <= high
    assert abs(low - best.lower) + abs(high - best.upper) <= TINY * abs(best.upper)


@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(3), Fraction(27, 10), Fraction(40)])
def test_uniform_classes_are_randomized_response(ratio: Fraction) -> None:
    """``E / (E + K - 1)`` of randomized response on K classes."""
    best = exact_optimum(optrand.classification([0.25] * 4, math.log(ratio)), ratio=ratio)
    assert best.lower == best.upper == ratio / (ratio + 3)
    assert best.mechanism.ratio == ratio


@pytest.mark.parametrize("ratio", [Fraction(5, 4), Fraction(3), Fraction(12)])
def test_classes_are_randomized_response_on_the_likeliest(ratio: Fraction) -> None:
    """``max_j E sum(top j) / (E + j - 1)`` of RRWithPrior ([G21], Theorem 3), in rationals."""
    prior = [0.5, 0.1875, 0.125, 0.125, 0.0625, 0.0]
    sums = np.cumsum(prior)
    expected = max(ratio * Fraction(float(s)) / (ratio + j) for j, s in enumerate(sums))
    best = exact_optimum(optrand.classification(prior, math.log(ratio)), ratio=ratio)
    assert best.gap == 0
    assert best.upper == expected


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.125, 0.875], [1.0, 0.0]])
def test_two_labels_have_one_loss_each(prior: list[float]) -> None:
    """Debiased randomized response of labels 0 and d: a loss of ``d^2 E / (2 (E - 1)^2)`` whatever the prior."""
    ratio, d = Fraction(7, 2), Fraction(3)
    best = exact_optimum(line([0, 3], prior, ratio), ratio=ratio)
    expected = d * d * ratio / (2 * (ratio - 1) ** 2)
    assert best.lower <= expected <= best.upper
    assert best.gap <= TINY
    assert best.mechanism.ratio == ratio


def test_small_ratios_have_the_value_of_a_gap_and_a_bit() -> None:
    """``(L^2 / (E - 1)^2 - Var) / 2``, ``L = sum_j d_j sqrt(P_j (E + 1 - P_j))``, for ``E <= 2``."""
    ratio, (labels, prior) = Fraction(19, 10), ladder(17, 3)
    best = exact_optimum(line(labels, prior, ratio), ratio=ratio)
    y, p = [Fraction(x) for x in labels], [Fraction(x) for x in prior]
    assert sum(p) == 1
    scale = 10**60
    below = Fraction(0)
    for j in range(1, len(y)):
        square = (1 + (ratio - 1) * sum(p[:j])) * (ratio - (ratio - 1) * sum(p[:j]))
        below += (y[j] - y[j - 1]) * Fraction(math.isqrt(math.floor(square * scale * scale)), scale)
    mean = sum(a * b for a, b in zip(p, y, strict=True))
    variance = sum(a * (b - mean) ** 2 for a, b in zip(p, y, strict=True))
    value = ((below / (ratio - 1)) ** 2 - variance) / 2
    assert best.lower * (1 - TINY) <= value <= best.upper
    assert best.upper - value < value * TINY * 2


@pytest.mark.parametrize("ratio", [Fraction(14, 10), Fraction(5), Fraction(30)])
@pytest.mark.parametrize("k", [3, 24, 64])
def test_the_line_is_enclosed(k: int, ratio: Fraction) -> None:
    labels, prior = ladder(k, k)
    problem = line(labels, prior, ratio)
    best = exact_optimum(problem, ratio=ratio)
    assert 0 < best.gap <= TINY
    assert not any(best.mechanism.biases)
    assert best.mechanism.ratio == ratio
    proven(best)
    proof = optrand.certify(optrand.solve(problem))
    assert proof.lower <= best.upper * (1 + Fraction(1, 10**13))
    assert best.lower <= proof.upper * (1 + Fraction(1, 10**13))


@pytest.mark.parametrize("loss", [optrand.losses.squared, optrand.losses.absolute])
@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(13, 2)])
def test_grids_have_no_gap(loss: optrand.losses.Loss, ratio: Fraction) -> None:
    labels, prior = ladder(12, 5)
    for penalty, outputs in ((0.0, labels), (math.inf, optrand.feasible_output_set(labels, math.log(ratio), 40))):
        problem = optrand.regression(labels, prior, math.log(ratio), loss=loss, bias_penalty=penalty, outputs=outputs)
        best = exact_optimum(problem, ratio=ratio)
        assert best.gap == 0
        assert best.mechanism.ratio == ratio
        assert penalty == 0 or not any(best.mechanism.biases)
        assert float(best.upper) == pytest.approx(optrand.solve(problem).value, rel=1e-8)
        proven(best)


def test_tabulated_losses_have_no_gap() -> None:
    ratio, table = Fraction(3), optrand.losses.Tabulated(np.random.default_rng(2).random((9, 14)))
    problem = optrand.regression(
        np.arange(9.0), [1 / 8] * 7 + [1 / 16] * 2, math.log(3), loss=table, outputs=np.arange(14.0)
    )
    best = exact_optimum(problem, ratio=ratio)
    assert best.gap == 0
    assert float(best.upper) == pytest.approx(optrand.solve(problem).value, rel=1e-8)


def test_a_bad_basis_is_mended_by_exact_pivots() -> None:
    """From a basis of the two ends, which is not feasible, phase one and two lead to the optimum."""
    ratio, (labels, prior) = Fraction(4), ladder(7, 1)
    grid = optrand.feasible_output_set(labels, math.log(ratio), 15)
    problem = optrand.unbiased_regression(labels, prior, math.log(ratio), outputs=grid)
    program = GridProgram(problem, ratio)
    subsets = [Column(i, (1 << y) - 1) for y in range(7) for i in (7, 8, 9, 0, 14)]
    vertex = first_basis(program, subsets)
    assert min(vertex.values) < 0
    multipliers, common = minimised(vertex)
    assert vertex.pivots > 0
    masses = dict(zip(vertex.columns, vertex.values, strict=True))
    cost = sum(Fraction(int(m.p), int(m.q)) * program.cost(c) for c, m in masses.items() if c is not None)
    assert cost / program.unit == exact_optimum(problem, ratio=ratio).upper
    assert sum(x * t for x, t in zip(multipliers, program.target, strict=True)) / Fraction(common) == cost


def test_the_cheapest_column_is_the_best_of_all_sets() -> None:
    """Pricing on sets against enumeration."""
    ratio, (labels, prior) = Fraction(5, 2), ladder(5, 9)
    program = GridProgram(optrand.regression(labels, prior, math.log(ratio), outputs=labels), ratio)
    random = np.random.default_rng(0)
    for _ in range(20):
        multipliers = [int(x) for x in random.integers(0, 10**9, 5)]
        prices = program.reduced(multipliers, 1 << 10, scale=1)

        def price(column: Column, prices: Any = prices) -> int:
            return sum(w * int(x) for w, x in zip(program.weights(column), prices[:, column.output], strict=True))

        least = min(price(Column(i, s)) for i in range(5) for s in range(32))
        found = program.cheapest(prices)
        assert (found is None and least >= 0) or (found is not None and price(found) == least < 0)


def test_candidates_span_all_rows() -> None:
    ratio, (labels, prior) = Fraction(3), ladder(6, 4)
    grid = optrand.feasible_output_set(labels, math.log(ratio), 9)
    solution = optrand.solve(optrand.unbiased_regression(labels, prior, math.log(ratio), outputs=grid))
    bare = dataclasses.replace(solution, dual=None)
    assert len(first_basis(GridProgram(solution.problem, ratio), candidates(bare, 3.0)).columns) == 12


@pytest.mark.parametrize("prior", [[2.0**-60, 0.5, 0.25, 2.0**-40, 0.25], [0.0, 0.5, 0.0, 0.5, 0.0]])
def test_labels_of_hardly_any_prior(prior: list[float]) -> None:
    """Floats do not identify what such labels do; the interior point in many digits does."""
    ratio = Fraction(9)
    best = exact_optimum(line([0, 1, 2, 4, 5], prior, ratio), ratio=ratio)
    assert best.gap <= TINY
    proven(best)


def test_the_interior_point_finds_the_optimum_of_newton() -> None:
    ratio, (labels, prior) = Fraction(8), ladder(9, 6)
    problem = line(labels, prior, ratio)
    best = exact_optimum(problem, ratio=ratio)
    point = centred(Nodes(problem, ratio, 460), 45, intervals(9))
    low, high = enclosure(problem, point.mechanism(), point.dual(), ratio, bits=300)
    assert low <= best.upper
    assert best.lower <= high
    assert high - low <= TINY * high


@given(
    st.integers(2, 7),
    st.integers(0, 10**6),
    st.integers(-50, 50),
    st.sampled_from([Fraction(1, 4), Fraction(8)]),
    st.sampled_from([Fraction(3, 2), Fraction(6)]),
)
@settings(max_examples=12, deadline=None)
def test_shift_and_scale_of_labels(k: int, seed: int, shift: int, scale: Fraction, ratio: Fraction) -> None:
    """A loss is of the second degree: labels ``s (y + c)`` multiply it by ``s^2``."""
    labels, prior = ladder(k, seed)
    moved = [float(scale * (Fraction(y) + shift)) for y in labels]
    here = exact_optimum(line(labels, prior, ratio), ratio=ratio)
    there = exact_optimum(line(moved, prior, ratio), ratio=ratio)
    assert there.lower <= here.upper * scale**2
    assert here.lower * scale**2 <= there.upper
    grid = optrand.feasible_output_set(labels, math.log(ratio), 12).values
    far = scale * shift
    on = optrand.unbiased_regression(
        labels, prior, math.log(ratio), outputs=np.round(grid * 8) / 8 + np.sign(np.arange(12) - 5.5)
    )
    off = optrand.unbiased_regression(
        moved,
        prior,
        math.log(ratio),
        outputs=on.outputs.values * float(scale) + float(far),  # type: ignore[union-attr]
    )
    assert exact_optimum(off, ratio=ratio).upper == scale**2 * exact_optimum(on, ratio=ratio).upper


def test_a_perturbed_dual_proves_less() -> None:
    ratio, (labels, prior) = Fraction(3), ladder(6, 2)
    for outputs in (None, optrand.feasible_output_set(labels, math.log(ratio), 25)):
        problem = optrand.unbiased_regression(labels, prior, math.log(ratio), outputs=outputs)
        best = exact_optimum(problem, ratio=ratio)
        nudge = Fraction(1, 1 << 40)
        for index in range(problem.k):
            for sign in (1, -1):
                alpha = tuple(a + sign * nudge * (y == index) for y, a in enumerate(best.dual.alpha))
                worse = lower_bound(problem, RationalDual(alpha, best.dual.beta), ratio, bits=300)
                assert worse < best.lower


def test_a_mechanism_is_private_at_its_ratio_and_at_no_smaller_one() -> None:
    ratio, (labels, prior) = Fraction(3), ladder(6, 2)
    problem = line(labels, prior, ratio)
    best = exact_optimum(problem, ratio=ratio)
    smaller = ratio - Fraction(1, 10**40)
    with pytest.raises(NotCertified, match="not private"):
        enclosure(problem, best.mechanism, best.dual, smaller, bits=300)


def test_what_breaks_the_problem_is_refused() -> None:
    ratio = Fraction(3)
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], math.log(3), outputs=[-0.5, 1.5])
    best = exact_optimum(problem, ratio=ratio)
    ends = best.mechanism.outputs
    biased = dataclasses.replace(best.mechanism, weights=((2, 1), (1, 2)))
    with pytest.raises(NotCertified, match="bias"):
        enclosure(problem, biased, best.dual, ratio, bits=0)
    wide = RationalMechanism(best.mechanism.labels, (Fraction(-1), Fraction(2)), ((2, 1), (1, 2)))
    with pytest.raises(NotCertified, match="grid"):
        enclosure(problem, wide, best.dual, ratio, bits=0)
    other = optrand.unbiased_regression([0, 2], [0.5, 0.5], math.log(3))
    with pytest.raises(NotCertified, match="labels"):
        enclosure(other, best.mechanism, best.dual, ratio, bits=0)
    for weights in (((3, 0), (1, 2)), ((3, 1), (1, 2)), ((3, 1),), ((3,), (3,))):
        with pytest.raises(InvalidInput):
            RationalMechanism(best.mechanism.labels, ends, weights)
    with pytest.raises(InvalidInput, match="increase"):
        RationalMechanism(best.mechanism.labels, ends[::-1], best.mechanism.weights)


def test_bounds_of_what_has_none_are_refused() -> None:
    two = RationalDual((Fraction(0),) * 2, (Fraction(1, 3),) * 2)
    with pytest.raises(InvalidInput, match="powers of two"):
        lower_bound(line([0, 1], [0.5, 0.5], Fraction(3)), two, Fraction(3), bits=100)
    with pytest.raises(InvalidInput, match="beta = 0"):
        lower_bound(optrand.regression([0, 1], [0.5, 0.5], 1.0), two, Fraction(3), bits=100)
    coin = RationalMechanism((Fraction(0), Fraction(1)), (Fraction(0), Fraction(1)), ((3, 1), (1, 3)))
    absolute = optrand.regression([0, 1], [0.5, 0.5], 1.0, loss=optrand.losses.absolute)
    with pytest.raises(InvalidInput, match="squared"):
        expected_loss(absolute, coin, bits=9)


def test_the_bound_in_rationals_is_that_of_floats() -> None:
    """At a dyadic dual and an epsilon whose exponential is nearly the ratio, two codes agree."""
    ratio, (labels, prior) = Fraction(3), ladder(8, 8)
    solution = optrand.solve(line(labels, prior, ratio))
    assert solution.dual is not None
    origin = Fraction(solution.dual.origin)
    beta = tuple(Fraction(b) for b in solution.dual.beta.tolist())
    alpha = tuple(Fraction(a) - b * origin for a, b in zip(solution.dual.alpha.tolist(), beta, strict=True))
    exact = lower_bound(solution.problem, RationalDual(alpha, beta), ratio, bits=200)
    assert float(exact) == pytest.approx(squared.lower_bound(solution.problem, solution.dual), rel=1e-14)


@pytest.mark.parametrize("ratio", [3.0, True, math.pi, "3"])
def test_ratios_that_are_no_rationals(ratio: Any) -> None:
    with pytest.raises(InvalidInput, match="rational"):
        exact_optimum(line([0, 1], [0.5, 0.5], Fraction(3)), ratio=ratio)


def test_problems_of_another_kind() -> None:
    three, eps = Fraction(3), math.log(3)
    many = line(np.arange(65.0), np.full(65, 1 / 65), three)
    cases: list[tuple[Problem, str]] = [
        (many, "65 labels"),
        (optrand.regression([0, 1], [0.5, 0.5], eps), "outputs=Grid"),
        (optrand.unbiased_regression([0, 1], [0.5, 0.5], eps, outputs=optrand.Interval(-9, 9)), "outputs=Grid"),
        (optrand.regression([0, 1], [0.5, 0.5], eps, bias_penalty=1.0, outputs=[0, 1]), "bias_penalty"),
        (optrand.regression([0, 1], [0.5, 0.5], eps, loss=optrand.losses.poisson_log, outputs=[0.5, 1]), "irrational"),
    ]
    for problem, words in cases:
        with pytest.raises(InvalidInput, match=words):
            exact_optimum(problem, ratio=three)
    two = line([0, 1], [0.5, 0.5], three)
    for ratio, digits, words in (
        (Fraction(1), 30, "above 1"),
        (Fraction(31, 10), 30, "math.log"),
        (three, 999, "digits"),
    ):
        with pytest.raises(InvalidInput, match=words):
            exact_optimum(two, ratio=ratio, digits=digits)


def test_one_label_needs_no_noise() -> None:
    best = exact_optimum(line([4], [1.0], Fraction(2)), ratio=Fraction(2))
    assert (best.lower, best.upper, best.gap) == (0, 0, 0)


def test_without_flint_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "flint":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("importlib.import_module", lambda name: refuse(name))
    with pytest.raises(MissingExtra, match=r"optrand\[exact\]"):
        exact_optimum(optrand.classification([0.5, 0.5], math.log(3)), ratio=Fraction(3))


def test_digits_are_kept() -> None:
    ratio, (labels, prior) = Fraction(6), ladder(10, 7)
    best = exact_optimum(line(labels, prior, ratio), ratio=ratio, digits=120)
    assert best.gap * 10**120 <= 1
    assert best.bits > 400
