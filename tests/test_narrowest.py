"""Two outputs at the ends of the narrowest interval, and response at a price of bias: proofs, and where they answer."""

import itertools
import math
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error
from oracle import split_cost
from random_problems import few_labels

import optrand
from optrand import Interval, solve, unbiased_range, unbiased_regression
from optrand.certificates._certificate import PROVEN
from optrand.closed_forms import two_ends
from optrand.closed_forms._regression import design_debiased_rr, design_two_ends
from optrand.errors import SolverFailed
from optrand.mechanism._tabulation import tabulate
from optrand.solvers import ClosedForm, ReducedDual, choose, design
from optrand.solvers._dispatch import CLOSED_FORMS, priced_rr_within, two_ends_within

RATIOS = (Fraction(11, 10), Fraction(2), Fraction(3), Fraction(7), Fraction(100))


def drawn(seed):
    """Labels, prior and epsilon at random."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 40))
    labels = np.cumsum(rng.exponential(size=k)) if seed % 2 else np.arange(float(k))
    return labels, rng.dirichlet(np.full(k, (0.1, 1.0, 10.0)[seed % 3])), float(np.exp(rng.uniform(-4, math.log(7))))


def narrowest(labels, prior, epsilon, margin=0.0):
    """Unbiased regression in the narrowest interval, wider at both ends by some share of its width."""
    low, high = unbiased_range(labels, epsilon)
    more = margin * (high - low)
    return unbiased_regression(labels, prior, epsilon, outputs=Interval(low - more, high + more))


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_dual_of_the_formulas_is_feasible_and_meets_the_value(ratio):
    """In rationals, from the formulas as printed, sharing nothing with the package."""
    y, p = [Fraction(0), Fraction(1), Fraction(3), Fraction(7)], [Fraction(n, 10) for n in (1, 4, 2, 3)]
    low, high = ((ratio * a - b) / (ratio - 1) for a, b in ((y[0], y[-1]), (y[-1], y[0])))
    width = high - low
    assert (y[-1] - low) == ratio * (y[0] - low)
    t = max(ratio * width**2 / (2 * (ratio**2 - 1)), ratio * width**2 / (8 * (ratio - 1)))
    at_low, at_high = [-t, 0, 0, ratio * t], [ratio * t, 0, 0, -t]

    def reduced(v):
        x = (v - low) / width
        return [-p[i] * width**2 / 2 * x * (1 - x) + at_low[i] * (1 - x) + at_high[i] * x for i in range(4)]

    # The multipliers that belong to these reduced costs, from three outputs: two solve for them, the third agrees.
    beta = [p[i] * (low + high) / 2 - p[i] * y[i] - (at_high[i] - at_low[i]) / width for i in range(4)]
    alpha = [p[i] * (low - y[i]) ** 2 / 2 - beta[i] * low - at_low[i] for i in range(4)]
    for v in (high, (low + high) / 3):
        assert reduced(v) == [p[i] * (v - y[i]) ** 2 / 2 - alpha[i] - beta[i] * v for i in range(4)]
    value = sum(p[i] * (y[i] - low) * (high - y[i]) / 2 for i in range(4))
    assert sum(a + b * label for a, b, label in zip(alpha, beta, y, strict=True)) == value
    for step in range(201):
        costs = reduced(low + width * Fraction(step, 200))
        assert (
            min(
                sum(s * h for s, h in zip(signs, costs, strict=True))
                for signs in itertools.product((1, ratio), repeat=4)
            )
            >= 0
        )


@pytest.mark.parametrize("seed", range(6))
def test_it_has_the_printed_table_and_value_and_proves_it(seed):
    labels, prior, epsilon = drawn(seed)
    low, high = unbiased_range(labels, epsilon)
    shares = (labels - low) / (high - low)
    value = float(prior @ ((labels - low) * (high - labels))) / 2
    floats = design_two_ends(unbiased_regression(labels, prior, epsilon, outputs=Interval(low, high)))
    assert floats.randomizer.outputs.tolist() == [low, high]
    assert floats.randomizer.matrix == pytest.approx(np.column_stack((1 - shares, shares)), rel=1e-12, abs=1e-15)
    assert floats.value == pytest.approx(value, rel=1e-12)
    mechanism = two_ends(labels, prior, epsilon)
    assert mechanism.bias == 0
    assert mechanism.certificate.require(gap=1e-11).upper == pytest.approx(value, rel=1e-12)


def test_labels_may_come_in_any_order_and_one_alone_is_refused():
    one, other = two_ends([3, 0, 1], [0.2, 0.5, 0.3], 1.0), two_ends([0, 1, 3], [0.5, 0.3, 0.2], 1.0)
    assert (one.value, one.dual) == (other.value, other.dual)
    assert_error("two labels or more", two_ends, [3], [1.0], 1.0)


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_solve_answers_the_narrowest_interval_without_a_solver(monkeypatch, seed):
    labels, prior, epsilon = drawn(seed)
    problem = narrowest(labels, prior, epsilon)

    def fails(*_):
        raise AssertionError("a solver was asked")

    monkeypatch.setattr(ReducedDual, "__call__", fails)
    assert design(problem).stats.solver == "ClosedForm()"
    assert solve(problem).certificate.require(gap=1e-11).bias == 0


def test_it_is_asked_exactly_where_the_certificate_says_so():
    labels, prior = np.arange(8.0), np.full(8, 0.125)
    for margin, holds in ((0.0, True), (1e-13, True), (1e-9, False), (1e-3, False)):
        problem = narrowest(labels, prior, 1.5, margin)
        found = two_ends_within(problem)
        assert (found is not None) == holds
        if found is not None:
            assert tabulate(found).certificate.gap <= PROVEN
    assert isinstance(choose(narrowest(labels, prior, 1.5)), ClosedForm)
    assert isinstance(choose(narrowest(labels, prior, 1.5, 1e-3)), ReducedDual)
    for other in (
        unbiased_regression(labels, prior, 1.5),
        unbiased_regression(labels, prior, 1.5, outputs=np.linspace(*unbiased_range(labels, 1.5), 9)),
        optrand.regression(labels, prior, 1.5, bias_penalty=3.0, outputs=Interval(*unbiased_range(labels, 1.5))),
    ):
        assert two_ends_within(other) is None


@pytest.mark.parametrize(("stride", "every"), [(34, 8), pytest.param(3, 3, marks=pytest.mark.nightly)])
def test_closed_forms_are_proven_on_hard_problems(stride, every):
    """Each closed form is held to its certificate, and some of them to an iterative solver."""
    found, compared = Counter(), 0
    hard = [each for each in few_labels() if math.isinf(each.penalty) and each.place != "grid"]
    for number, each in enumerate(hard[::stride]):
        solution = ClosedForm().answer(each.problem)
        found[solution is not None] += 1
        if solution is None:
            continue
        mechanism = tabulate(solution)
        proof = mechanism.certificate
        # The cost of rounding outputs, if a loss is almost 0, is no fault of a formula.
        rounding = split_cost(mechanism) if proof.gap > 1e-10 else 0.0
        assert proof.findings == ()
        assert proof.gap - rounding / proof.upper <= PROVEN, each
        if number % every == 0:
            with suppress(SolverFailed):
                other = tabulate(ReducedDual()(each.problem)).certificate
                assert other.findings or (other.lower <= proof.upper and proof.lower <= other.upper), each
                compared += 1
    assert found[True] > found.total() / 2
    assert found[False] > 10
    assert compared


def test_closed_forms_are_asked_once_each_in_their_order_before_any_solver(monkeypatch):
    asked, given = [], optrand.solvers._dispatch
    forms = tuple(lambda problem, form=form: (asked.append(form.__name__), form(problem))[1] for form in CLOSED_FORMS)
    monkeypatch.setattr(given, "CLOSED_FORMS", forms)
    descend = ReducedDual.__call__
    monkeypatch.setattr(ReducedDual, "__call__", lambda *given: (asked.append("ReducedDual"), descend(*given))[1])
    solve(unbiased_regression(range(6), np.full(6, 1 / 6), 1.5))
    assert asked == [form.__name__ for form in CLOSED_FORMS] + ["ReducedDual"]
    asked.clear()
    found = design(optrand.regression(range(40), np.full(40, 1 / 40), 16.0, bias_penalty=1.0))
    assert asked == [form.__name__ for form in CLOSED_FORMS[:6]]
    assert found.stats.solver == "ClosedForm()"


PRIOR = [0.1, 0.3, 0.05, 0.35, 0.2]


@pytest.mark.parametrize("box", [None, (0.0, 16.0), (-1.0, 16.0)])
@pytest.mark.parametrize("penalty", [0.001, 1000.0])
def test_a_priced_response_is_proven_at_a_large_epsilon_and_only_there(
    penalty: float, box: tuple[float, float] | None
) -> None:
    outputs = None if box is None else optrand.Interval(*box)
    labels = np.arange(5.0) ** 2
    for epsilon in (16.0, 20.0):
        problem = optrand.regression(labels, PRIOR, epsilon, bias_penalty=penalty, outputs=outputs)
        found = priced_rr_within(problem)
        assert found is not None
        optrand.certify(tabulate(found)).require(gap=1e-11)
    assert priced_rr_within(optrand.regression(labels, PRIOR, 1.0, bias_penalty=penalty)) is None
    assert priced_rr_within(optrand.unbiased_regression(labels, PRIOR, 20.0)) is None


def test_a_priced_response_tends_to_the_debiased_one() -> None:
    found = priced_rr_within(optrand.regression(range(5), PRIOR, 12.0, bias_penalty=1e6))
    assert found is not None
    debiased = design_debiased_rr(range(5), 12.0).randomizer.outputs
    assert found.randomizer.outputs - np.arange(5) == pytest.approx(debiased - np.arange(5), rel=1e-3, abs=1e-9)
