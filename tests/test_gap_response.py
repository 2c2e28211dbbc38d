"""A public gap and a private bit: identities in high precision, the condition of optimality, and its proof."""

import decimal
import math
from decimal import Decimal
from itertools import accumulate, pairwise

import numpy as np
import pytest
from asserting import assert_error, by_case
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import label_sets, priors

from optrand import Interval, Mechanism, Table, certify, solve, unbiased_regression
from optrand.base._arithmetic import privacy_ratio
from optrand.base._validation import Floats
from optrand.closed_forms import gap_response, gap_response_is_optimal
from optrand.closed_forms._regression import design_gap_response
from optrand.model._table import IntegerArcs
from optrand.solvers import ClosedForm, ReducedDual, choose

CLOSED = 1e-12
DIGITS = 80
EPSILONS = (1e-6, 1e-3, 0.1, math.log(2), 1.0, 2.5, 8.0, 20.0, 40.0)

epsilons = st.one_of(st.sampled_from(EPSILONS), st.floats(1e-6, 40))


@st.composite
def cases(draw, budgets=epsilons, min_size=2, max_size=7):
    labels = draw(label_sets(min_size, max_size))
    return labels, draw(priors(labels.size)), draw(budgets)


def drawn(seed: int, *, largest: int = 30) -> tuple[Floats, Floats, float]:
    rng = np.random.default_rng([271828, seed])
    k = int(rng.integers(2, largest))
    labels = np.sort(rng.choice(900, k, replace=False)) / 8
    return labels, rng.dirichlet(np.full(k, rng.uniform(0.1, 2))), float(rng.uniform(0.02, 2.5))


class Printed:
    """The closed form as it is printed, in decimals, sharing nothing with the package."""

    def __init__(self, labels: Floats, prior: Floats, epsilon: float) -> None:
        self.y, p = (list(map(Decimal, array.tolist())) for array in (labels, prior))
        self.p = [each / sum(p) for each in p]
        self.E = Decimal(epsilon).exp()
        below = list(accumulate(self.p))[:-1]
        self.P = [1 + (self.E - 1) * each for each in below]
        self.Q = [self.E + 1 - each for each in self.P]
        self.r = [(P * Q).sqrt() for P, Q in zip(self.P, self.Q, strict=True)]
        self.d = [after - before for before, after in pairwise(self.y)]
        self.L = sum(d * r for d, r in zip(self.d, self.r, strict=True))
        self.mean = sum(p * y for p, y in zip(self.p, self.y, strict=True))

    @property
    def gaps(self) -> list[Decimal]:
        return [d * r / self.L for d, r in zip(self.d, self.r, strict=True)]

    @property
    def no(self) -> list[Decimal]:
        return [self.mean - self.L / (self.E - 1) * (Q / P).sqrt() for P, Q in zip(self.P, self.Q, strict=True)]

    @property
    def yes(self) -> list[Decimal]:
        return [self.mean + self.L / (self.E - 1) * (P / Q).sqrt() for P, Q in zip(self.P, self.Q, strict=True)]

    @property
    def variance(self) -> Decimal:
        return sum(p * (y - self.mean) ** 2 for p, y in zip(self.p, self.y, strict=True))

    @property
    def value(self) -> Decimal:
        return ((self.L / (self.E - 1)) ** 2 - self.variance) / 2

    @property
    def chord(self) -> Decimal:
        return ((self.P[-1] - self.P[0]) ** 2 + (self.r[-1] - self.r[0]) ** 2).sqrt()

    def moments(self, power: int) -> list[Decimal]:
        """``E[v**power]`` of each label, from the definition of the mechanism."""
        found = []
        for y in range(len(self.y)):
            total = Decimal(0)
            for j, (chance, no, yes) in enumerate(zip(self.gaps, self.no, self.yes, strict=True), start=1):
                told = no if y < j else yes
                other = yes if y < j else no
                total += chance * (self.E * told**power + other**power) / (self.E + 1)
            found.append(total)
        return found


@given(cases())
def test_the_printed_form_is_unbiased_and_has_the_printed_value_at_every_epsilon(case):
    with decimal.localcontext(prec=DIGITS):
        form = Printed(*case)
        scale = max(map(abs, [*form.no, *form.yes]))
        assert max(abs(m - y) for m, y in zip(form.moments(1), form.y, strict=True)) <= scale * Decimal(10) ** -70
        loss = sum(
            p * (second - 2 * y * first + y * y) / 2
            for p, y, first, second in zip(form.p, form.y, form.moments(1), form.moments(2), strict=True)
        )
        assert abs(loss - form.value) <= scale**2 * Decimal(10) ** -70


@given(cases())
def test_the_package_has_the_printed_form(case):
    labels, _, _ = case
    arcs = design_gap_response(*case).randomizer.arcs
    assert arcs.first.tolist() == [0] * (arcs.k - 1) + list(range(1, arcs.k))
    assert arcs.last.tolist() == list(range(arcs.k - 1)) + [arcs.k - 1] * (arcs.k - 1)
    assert (np.diff(arcs.outputs) >= 0).all()
    with decimal.localcontext(prec=DIGITS):
        form = Printed(*case)
        outputs = [float(v - Decimal(float(labels[0]))) for v in (*form.no, *form.yes)]
        masses = [float(chance / (form.E + 1)) for chance in form.gaps] * 2
        value = float(form.value)
    reach = max(np.ptp(labels), np.abs(labels).max(), np.abs(outputs).max())
    assert arcs.outputs - labels[0] == pytest.approx(np.array(outputs), rel=1e-12, abs=1e-14 * reach)
    assert arcs.masses == pytest.approx(np.array(masses), rel=1e-12)
    assert certify(gap_response(*case)).upper == pytest.approx(value, rel=1e-11)


@given(cases())
def test_it_is_private_and_unbiased_and_the_condition_is_when_its_dual_proves_it(case):
    holds = gap_response_is_optimal(*case)
    proof = certify(gap_response(*case))
    assert proof.findings == ()
    with decimal.localcontext(prec=DIGITS):
        chord = Printed(*case).chord
    assert holds == (chord <= 1)
    if holds:
        assert proof.gap <= CLOSED
    elif chord > 1 + Decimal("1e-6") and case[1].max() < 0.9:
        assert proof.gap > CLOSED


def lost_to_rounding(mechanism):
    """Variance, halved, of an output in the middle of two neighbouring floats that it is split between."""
    return np.spacing(abs(mechanism.outputs).max()) ** 2 / 8


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 20.0, 40.0])
def test_two_labels_are_always_proven(epsilon):
    rng = np.random.default_rng(5)
    for _ in range(10):
        labels = rng.normal(size=2) * rng.choice([1e-3, 1.0, 1e5]) + rng.choice([0.0, 1.0, 100.0, 1e12])
        share = rng.choice([0.0, 1e-9, 0.2, 0.5, 1.0])
        assert gap_response_is_optimal(labels, [share, 1 - share], epsilon)
        mechanism = gap_response(labels, [share, 1 - share], epsilon)
        proof = certify(mechanism)
        assert proof.findings == ()
        assert proof.upper - proof.lower <= CLOSED * proof.upper + lost_to_rounding(mechanism)


@given(cases(budgets=st.floats(1e-6, math.log(2))))
def test_up_to_log_2_it_is_optimal_whatever_the_prior(case):
    assert gap_response_is_optimal(*case)
    assert certify(gap_response(*case)).gap <= CLOSED


@given(cases(budgets=st.floats(1e-6, math.log(2))))
def test_two_ends_lose_little_at_a_small_epsilon(case):
    with decimal.localcontext(prec=DIGITS):
        printed = Printed(*case)
        reach = (printed.y[-1] - printed.y[0]) / (printed.E - 1)
        low, high = printed.y[0] - reach, printed.y[-1] + reach
        two_ends = sum(p * (y - low) * (high - y) for p, y in zip(printed.p, printed.y, strict=True)) / 2
        square = (printed.E - 1) ** 2 / (4 * printed.E)
        share = two_ends / printed.value - 1
    assert -1e-60 <= share <= square / (1 - square) < case[2] ** 2 / 3


def test_log_2_is_the_last_such_epsilon():
    for prior in ([0, 1, 0], [0, 0.5, 0.5, 0]):
        labels, last = range(len(prior)), math.log(2)
        assert gap_response_is_optimal(labels, prior, last)
        assert not gap_response_is_optimal(labels, prior, math.nextafter(last, 1))


def test_the_condition_is_decided_on_both_sides_of_its_threshold_to_the_last_float():
    for seed in range(12):
        labels, prior, _ = drawn(seed)
        if labels.size < 3:
            continue
        low, high = 0.5, 40.0
        while math.nextafter(low, high) < high:
            middle = (low + high) / 2
            low, high = (middle, high) if gap_response_is_optimal(labels, prior, middle) else (low, middle)
        with decimal.localcontext(prec=DIGITS):
            assert Printed(labels, prior, low).chord <= 1 < Printed(labels, prior, high).chord


def test_random_problems_are_answered_by_it_exactly_where_the_condition_holds():
    held = failed = 0
    for seed in range(24):
        labels, prior, epsilon = drawn(seed)
        problem = unbiased_regression(labels, prior, epsilon)
        found, best = gap_response(labels, prior, epsilon), certify(solve(problem))
        chord = float(Printed(labels, prior, epsilon).chord)
        assert best.upper <= found.value * (1 + 1e-9)
        if gap_response_is_optimal(labels, prior, epsilon):
            held += 1
            assert certify(found).gap <= CLOSED
            assert isinstance(choose(problem), ClosedForm)
            if epsilon > 0.5:
                flow = certify(solve(problem, ReducedDual()))
                assert abs(flow.upper / found.value - 1) <= 1e-9
        elif chord > 1.01:
            failed += 1
            assert best.upper < found.value * (1 - 1e-9)
    assert min(held, failed) > 5


def test_solve_uses_it_and_keeps_idle_labels_private_and_unbiased():
    problem = unbiased_regression([5, 3, 0, 1], [0.0, 0.5, 0.0, 0.5], 0.6)
    assert isinstance(choose(problem), ClosedForm)
    proof = certify(solve(problem)).require(gap=CLOSED)
    assert proof.bias == 0
    assert proof.upper == pytest.approx(gap_response([5, 3, 0, 1], [0.0, 0.5, 0.0, 0.5], 0.6).value, rel=1e-12)


def test_an_interval_that_holds_its_outputs_is_answered_as_the_line_is():
    labels, prior, epsilon = [0, 1, 2, 5], [0.1, 0.4, 0.3, 0.2], 0.5
    outputs = gap_response(labels, prior, epsilon).outputs
    for margin, solver in ((0.0, ClosedForm), (1.0, ClosedForm), (-1e-3, ReducedDual)):
        box = Interval(outputs[0] - margin, outputs[-1] + margin)
        problem = unbiased_regression(labels, prior, epsilon, outputs=box)
        assert isinstance(choose(problem), solver)
        assert certify(solve(problem)).gap <= (CLOSED if solver is ClosedForm else 1e-9)
    far = unbiased_regression(np.add(labels, 1e9), prior, epsilon, outputs=Interval(1e9 - 50.3, 1e9 + 50.7))
    assert certify(solve(far)).require(gap=1e-9).bias == 0


def test_labels_in_any_order_far_from_zero_or_a_single_one():
    one = gap_response([3], [1], 0.5)
    assert one.outputs.tolist() == [3.0]
    assert certify(one).require(gap=0).upper == 0
    assert gap_response([3], [1 - 1e-10], 0.5).prior.tolist() == [1 - 1e-10]
    mixed, sorted_ = gap_response([4, 0, 1], [0.2, 0.5, 0.3], 0.4), gap_response([0, 1, 4], [0.5, 0.3, 0.2], 0.4)
    assert mixed == sorted_
    far = gap_response([1e15, 1e15 + 1, 1e15 + 4], [0.5, 0.3, 0.2], 0.4)
    proof = certify(far)
    assert proof.upper - proof.lower <= CLOSED * proof.upper + lost_to_rounding(far)
    assert proof.lower == pytest.approx(certify(sorted_).lower, rel=1e-13)


@by_case(
    "labels, prior, epsilon, message",
    ([0, 1e149], [0.5, 0.5], 1e-6, "outputs reach beyond"),
    ([0, 1], [0.5, 0.5], 1e-200, "outputs reach beyond|overflow in floats"),
)
def test_bad_input_is_refused_in_words(labels, prior, epsilon, message):
    assert_error(message, gap_response, labels, prior, epsilon)


@given(cases(budgets=st.floats(0.1, 2.0), min_size=3))
def test_any_other_distribution_of_the_gap_is_biased(case):
    """The negative: if gaps are drawn uniformly, the means of neighbours differ by a multiple of their distance.

    From a label to the next one only the bit of the gap between them changes.
    """
    (labels, prior, epsilon), arcs = case, design_gap_response(*case).randomizer.arcs
    multiples = (math.exp(epsilon) + 1) * (labels.size - 1) * arcs.masses[: labels.size - 1]
    assume(np.abs(1 / multiples - 1).max() > 1e-3)
    outputs, at = np.unique(arcs.outputs, return_inverse=True)
    even = IntegerArcs(arcs.k, arcs.first, arcs.last, at, np.ones(arcs.n, dtype=object))
    wrong = Table.of_arcs(labels, outputs, even, privacy_ratio(epsilon))
    off = np.diff(np.array(wrong.biases, dtype=float))
    assert off == pytest.approx(np.diff(labels) * (1 / multiples - 1), abs=1e-12 * np.ptp(outputs))
    (finding,) = Mechanism(unbiased_regression(labels, prior, epsilon), wrong).certificate.findings
    assert "biased" in finding
