"""Labels beyond an end of the outputs: one label for the solver, and as good a proof for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import priors

from optrand import Interval, certify, losses, regression, solve
from optrand.mechanism.tabulation import tabulate
from optrand.solvers import ColumnGeneration, ReducedDual, design
from optrand.solvers.merging import Merging

CLOSE = 1e-9


@st.composite
def cramped_problems(draw):
    """Outputs that end before the labels do, on one side or on both; sometimes on a grid."""
    labels = np.cumsum(draw(st.lists(st.sampled_from([1.0, 0.5, 3.0, 0.1]), min_size=4, max_size=8)))
    low, high = sorted(draw(st.lists(st.integers(-1, labels.size), min_size=2, max_size=2, unique=True)))
    ends = np.concatenate((labels, [labels[-1] + 1, labels[0] - 1]))[[low, high]]
    outputs = Interval(*sorted(ends)) if draw(st.booleans()) else np.linspace(*sorted(ends), 9)
    penalty, epsilon = draw(st.sampled_from([0.1, 1.0, 30.0])), draw(st.sampled_from([0.3, 1.0, 3.0]))
    return regression(labels, draw(priors(labels.size)), epsilon, bias_penalty=penalty, outputs=outputs)


@settings(max_examples=25)
@given(cramped_problems())
def test_the_loss_of_the_whole_is_that_of_the_merged_and_a_constant(problem):
    """By completing the square: ``(1 + penalty) / 2`` times the spread of the labels within their groups."""
    merging = Merging(problem)
    solver = ReducedDual() if isinstance(problem.outputs, Interval) else ColumnGeneration()
    if not solver.accepts(merging.merged):
        return
    found = solver(merging.merged)
    whole = merging.extend(found)
    apart = problem.labels - merging.merged.labels[merging.groups]
    constant = (1 + problem.bias_penalty) / 2 * float(problem.prior @ apart**2)
    assert whole.problem is problem
    assert whole.value == pytest.approx(found.value + constant, rel=1e-12)
    before, after = certify(tabulate(found)), certify(tabulate(whole))
    assert after.findings == before.findings
    rounding = 1e-12 * abs(whole.value) + 1e-18 * float(np.ptp(problem.labels)) ** 2
    assert after.lower >= before.lower + constant - rounding


@pytest.mark.parametrize("penalty", [0.1, 1000.0])
@pytest.mark.parametrize("epsilon", [0.2, 4.0])
def test_without_merging_the_optimum_is_the_same(penalty, epsilon):
    problem = regression(
        np.arange(9.0), np.arange(1.0, 10.0) / 45, epsilon, bias_penalty=penalty, outputs=Interval(2.5, 6.0)
    )
    assert Merging(problem).merged.labels.tolist() == [pytest.approx(4 / 3), 3.0, 4.0, 5.0, pytest.approx(23 / 3, 0.1)]
    directly, merged = certify(tabulate(ReducedDual()(problem))), certify(solve(problem))
    assert merged.gap <= CLOSE
    assert directly.gap <= 1e-6
    assert merged.upper == pytest.approx(directly.upper, rel=1e-6)


def test_all_labels_beyond_one_end_are_a_single_one_and_have_the_end():
    problem = regression([3.0, 4.0, 9.0], [0.2, 0.5, 0.3], 1.0, bias_penalty=2.0, outputs=Interval(0.0, 1.0))
    assert Merging(problem).merged.k == 1
    mechanism = solve(problem)
    assert set(mechanism.outputs.tolist()) == {1.0}
    # Half of (1 + 2) times the mean square of the distances 2, 3 and 8.
    assert certify(mechanism).require(gap=1e-12).upper == pytest.approx(1.5 * (0.2 * 4 + 0.5 * 9 + 0.3 * 64))


@pytest.mark.parametrize(
    "options", [{"bias_penalty": 0.0}, {"bias_penalty": 1.0, "loss": losses.absolute, "outputs": [1.0, 2.0]}]
)
def test_what_is_not_merged(options):
    options = {"outputs": Interval(1.0, 2.0), **options}
    problem = regression([0, 1, 2, 3, 4], np.full(5, 0.2), 1.0, **options)
    assert Merging(problem).merged is problem
    solution = design(problem)
    assert Merging(problem).extend(solution) is solution or solution.problem is problem


def test_labels_without_a_prior_are_left_to_the_presolve():
    problem = regression([0, 1, 5, 6], [0.5, 0.5, 0, 0], 1.0, bias_penalty=1.0, outputs=Interval(0.0, 2.0))
    assert Merging(problem).groups.tolist() == [0, 1, 2, 3]
    assert certify(solve(problem)).gap <= CLOSE
