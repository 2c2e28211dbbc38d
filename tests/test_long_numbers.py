"""Long numbers: arithmetic, proofs where floats give out, agreement with the flow where they do not, and dispatch."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import optrand
from benchmarks.hard_problems import Hard, posed
from optrand import errors, solvers
from optrand.solvers import Flow, LongNumbers
from optrand.solvers.closed_form import priced_rr_within
from optrand.solvers.long_numbers.arithmetic import Arithmetic, longest, scaled
from optrand.solvers.long_numbers.interior_point import solved, start
from optrand.solvers.long_numbers.pricing import missing
from optrand.solvers.long_numbers.program import LongProgram

PRIOR = [0.1, 0.3, 0.05, 0.35, 0.2]


def test_a_system_is_solved_to_all_its_bits() -> None:
    numbers = Arithmetic(200)
    hilbert = [[Fraction(1, i + j + 1) for j in range(6)] for i in range(6)]
    matrix = np.array([[numbers.long(x) for x in row] for row in hilbert], dtype=object)
    right = numbers.longs(sum(row, Fraction(0)) for row in hilbert)
    found = numbers.substituted(numbers.factored(matrix), right)
    assert max(abs(x - numbers.one) for x in found.tolist()) < 1 << 40
    assert (matrix == matrix.T).all()


def test_steps_stop_at_the_boundary() -> None:
    amounts, changes = np.array([4, 6, 8], dtype=object), np.array([-8, 3, -4], dtype=object)
    assert longest(amounts, changes) == 0.5
    assert scaled(changes, 0.5).tolist() == [-4, 1, -2]
    assert longest(amounts, -np.minimum(changes, 0)) == math.inf


@pytest.mark.parametrize("penalty", [math.inf, 3.0, 0.01])
@pytest.mark.parametrize("box", [None, (-0.5, 4.5)])
def test_values_are_those_of_the_flow(penalty: float, box: tuple[float, float] | None) -> None:
    outputs = None if box is None else optrand.Interval(*box)
    problem = optrand.regression(range(5), PRIOR, 3.0, bias_penalty=penalty, outputs=outputs)
    found = LongNumbers()(problem)
    assert optrand.certify(found).require(gap=1e-12).upper == pytest.approx(Flow()(problem).value, rel=1e-9)


@pytest.mark.parametrize("epsilon", [17.0, 25.0, 40.0])
def test_end_labels_without_prior_are_proven_at_a_large_epsilon(epsilon: float) -> None:
    problem = optrand.unbiased_regression(range(5), [0, 0.2, 0.4, 0.4, 0], epsilon)
    solution = optrand.solve(problem)
    assert solution.randomizer.n > 5
    mechanism = optrand.tabulate(solution)
    assert optrand.certify(mechanism).require(gap=1e-12).bias == 0
    # To a hundredth of epsilon less no mechanism is as good.
    less = optrand.solve(optrand.unbiased_regression(range(5), [0, 0.2, 0.4, 0.4, 0], epsilon - 0.01))
    assert optrand.certify(less).lower > optrand.certify(mechanism).upper


@pytest.mark.parametrize(
    "hard",
    [
        Hard("uniform", "random", "narrowest", math.inf, 16.0, 4),
        Hard("geometric", "squares", "narrowest", math.inf, 28.0, 2),
        Hard("dirichlet", "outlier", "narrowest", math.inf, 40.0, 2),
        Hard("alternating", "outlier", "narrowest", 0.001, 28.0, 10),
        Hard("alternating", "squares", "wider", 1.0, 16.0, 6),
        Hard("half zero", "clustered", "line", 1000.0, 40.0, 5),
    ],
    ids=lambda hard: "-".join(map(str, hard)),
)
def test_hard_problems_are_proven(hard: Hard) -> None:
    optrand.certify(optrand.tabulate(optrand.solve(posed(hard)))).require(gap=1e-9)


def test_sets_that_are_no_intervals_are_found_missing() -> None:
    problem = optrand.regression(range(10), np.full(10, 0.1), 1.0, bias_penalty=1.0)
    program = LongProgram(problem)
    point, _ = solved(program, start(program), 60)
    value = program.value(point.sums)
    found = missing(program, point.sums, value >> 50)
    assert found
    members = np.array(list(found))
    assert not any(row[row.argmax() : len(row) - row[::-1].argmax()].all() for row in members)
    # Their multipliers prove less than those that know of the sets.
    claimed = optrand.lower_bound(problem, program.dual(point.sums))
    assert claimed < 0.95 * optrand.certify(LongNumbers()(problem)).lower


def test_the_transpose_of_sums_over_columns_is_one() -> None:
    problem = optrand.regression(range(4), [0.1, 0.2, 0.3, 0.4], 2.0, bias_penalty=1.0)
    program = LongProgram(problem, ((True, False, True, False), (True, False, False, True)))
    rng = np.random.default_rng(5)
    product = program.numbers.product
    some, amounts = (program.numbers.longs(map(Fraction, rng.standard_normal(n))) for n in (4, 12))
    weighted = program.weighted(some)
    assert weighted.size == 12
    tolerance = 1 << 8
    assert abs(product(weighted, amounts).sum() - product(some, program.gathered(amounts)).sum()) < tolerance
    square = product(some, product(program.squared(amounts), some).sum(axis=1)).sum()
    assert abs(product(amounts, weighted, weighted).sum() - square) < tolerance


@pytest.mark.parametrize("box", [None, (0.0, 16.0), (-1.0, 16.0)])
@pytest.mark.parametrize("penalty", [0.001, 1.0, 1000.0])
def test_a_priced_response_is_proven_at_a_large_epsilon_and_only_there(
    penalty: float, box: tuple[float, float] | None
) -> None:
    outputs = None if box is None else optrand.Interval(*box)
    labels = np.arange(5.0) ** 2
    for epsilon in (20.0, 60.0, 600.0):
        problem = optrand.regression(labels, PRIOR, epsilon, bias_penalty=penalty, outputs=outputs)
        found = priced_rr_within(problem)
        assert found is not None
        optrand.certify(optrand.tabulate(found)).require(gap=1e-11)
    outputs = None
    assert priced_rr_within(optrand.regression(labels, PRIOR, 1.0, bias_penalty=penalty, outputs=outputs)) is None
    assert priced_rr_within(optrand.unbiased_regression(labels, PRIOR, 20.0)) is None


def test_a_priced_response_tends_to_the_debiased_one() -> None:
    found = priced_rr_within(optrand.regression(range(5), PRIOR, 12.0, bias_penalty=1e6))
    assert found is not None
    debiased = optrand.debiased_rr(range(5), 12.0).randomizer.outputs
    assert found.randomizer.outputs - np.arange(5) == pytest.approx(debiased - np.arange(5), rel=1e-3, abs=1e-9)


def test_dispatch_and_refusals() -> None:
    few = optrand.unbiased_regression(range(5), PRIOR, 25.0)
    assert solvers.choose(few) == LongNumbers()
    many = optrand.unbiased_regression(range(100), np.full(100, 0.01), 25.0)
    assert solvers.choose(many) != LongNumbers()
    for refused in (many, optrand.regression(range(5), PRIOR, 25.0), optrand.classification(PRIOR, 1.0)):
        with pytest.raises(errors.InvalidInput, match="a few labels"):
            LongNumbers()(refused)


def test_outputs_next_to_too_narrow_are_refused_with_what_to_do() -> None:
    """In floats the ends of the narrowest interval are off by more than there is room; a billionth of it is enough."""
    prior, (low, high) = [1e-6, 1 - 4e-6, 1e-6, 1e-6, 1e-6], optrand.unbiased_range(range(5), 40.0)

    def answer(room: float) -> optrand.Solution:
        outputs = optrand.Interval(low - room * (high - low), high + room * (high - low))
        return optrand.solve(optrand.unbiased_regression(range(5), prior, 40.0, outputs=outputs))

    with pytest.raises(errors.NotCertified, match="no room: widen them by a billionth"):
        answer(0.0)
    assert optrand.certify(answer(1e-9)).gap < 1e-9
