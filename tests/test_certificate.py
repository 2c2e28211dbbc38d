"""The certificate: no bound above an attained value, and no biased or overflowing mechanism let through."""

import math
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import duals, feasible

from optrand import (
    Mechanism,
    Table,
    certify,
    lower_bound,
    regression,
    rr,
    rr_top_k,
    rr_with_prior,
    solve,
    unbiased_regression,
)
from optrand.base._numerals import format_above
from optrand.certificates._certificate import Certificate, Proof
from optrand.errors import NotCertified
from optrand.solvers import design

GAP = 1e-6
"""Gap that solvers promise, used here only to have bounds that are nearly tight."""


# -------------------------------------------------------------------------------------- the bound and attained values
@settings(max_examples=4 * settings.default.max_examples)
@given(feasible().flatmap(lambda found: st.tuples(st.just(found), duals(found[0]))))
def test_no_bound_exceeds_the_value_of_any_feasible_randomizer(case):
    """In rationals, without tolerance: outputs, probabilities and losses are exact, and so is the comparison."""
    (problem, channel), dual = case
    assert channel.worst_row == 0
    assert lower_bound(problem, dual) <= channel.objective(problem)[1]


@given(st.floats(0.05, 20.0), st.floats(0.01, 6.0))
@example(1.0, 1.0)
def test_the_third_term_is_right_for_two_labels(penalty, epsilon):
    """Two labels -1 and 1 with equal priors in closed form, by symmetry.

    The columns favour one label each, at outputs -v and v, with t = tanh(epsilon / 2) the difference of their
    probabilities: the mean of the label 1 is t v. The objective (v^2 - 2 t v + 1 + penalty (t v - 1)^2) / 2 is least at
    v = t (1 + penalty) / (1 + penalty t^2).
    """
    t = math.tanh(epsilon / 2)
    v = t * (1 + penalty) / (1 + penalty * t * t)
    expected = (v * v - 2 * t * v + 1 + penalty * (t * v - 1) ** 2) / 2
    proof = certify(solve(regression([-1, 1], [0.5, 0.5], epsilon, bias_penalty=penalty))).require(gap=GAP)
    assert proof.upper == pytest.approx(expected, rel=GAP)
    assert proof.lower == pytest.approx(expected, rel=GAP)


# --------------------------------------------------------------------------------------------- privacy, from both sides
PRIVATE = {
    "rr": rr([0, 1, 2], 1.0),
    "rr_with_prior": rr_with_prior([0.5, 0.3, 0.2], 1.0),
    "unbiased": solve(unbiased_regression([0.0, 1.0, 2.5, 4.0], [0.4, 0.1, 0.2, 0.3], 1.0)),
}


CORRUPTIONS = {
    "swapped rows": lambda table: (table.outputs, table.weights[[1, 0, 2, 3]]),
    "outputs shifted": lambda table: (table.outputs + 1e-6, table.weights),
    "one output shifted": lambda table: (np.append(table.outputs[:-1], table.outputs[-1] + 1e-6), table.weights),
    "an output next to its own": lambda table: (np.nextafter(table.outputs, math.inf), table.weights),
    "labels forgotten": lambda table: (table.outputs, table.weights[[0, 0, 0, 0]]),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_private_corruption_of_an_unbiased_optimum_is_found(name):
    mechanism = PRIVATE["unbiased"]
    table = Table.of_rows(mechanism.labels, *CORRUPTIONS[name](mechanism.table))
    proof = Mechanism(mechanism.problem, table, mechanism.dual).certificate
    assert proof.findings == (f"biased by up to {format_above(proof.bias, 3)} where no bias is allowed",)
    assert (proof.upper, proof.gap) == (math.inf, math.inf)
    assert proof.lower == mechanism.certificate.lower
    assert_error("biased by up to", proof.require, gap=math.inf, error=NotCertified)
    assert "not feasible" in str(proof)


def test_a_loss_that_overflows_is_a_finding():
    problem = regression([0, 1], [0.5, 0.5], 1.0)
    proof = Mechanism(problem, Table.of_rows([0, 1], [0, 1e200], [[1, 1], [1, 1]])).certificate
    assert proof.findings == ("its loss overflows in floats",)
    assert proof.upper == math.inf


# ----------------------------------------------------------------------------------------------- the certificate itself
def test_the_gap_is_relative_to_the_value_and_absolute_at_zero():
    def made(lower, upper, maximised=False):
        return Certificate(lower=lower, upper=upper, target_epsilon=1.0, epsilon=1.0, bias=0.0, maximised=maximised)

    assert (made(1.0, 2.0).gap, made(0.5, 1.0, maximised=True).gap) == (0.5, 1.0)
    assert (made(-0.25, 0.0).gap, made(-math.inf, 3.0).gap) == (0.25, math.inf)
    assert (made(1.0, math.inf).gap, made(-2.0, -1.0).gap, made(1.0, 1.0).gap) == (math.inf, 1.0, 0.0)


def test_require_gives_the_certificate_or_the_reason():
    proof = certify(PRIVATE["rr_with_prior"])
    assert proof.require(gap=1e-9) is proof
    far = certify(rr_top_k([0.5, 0.3, 0.2], 1, 1.0))
    with pytest.raises(
        NotCertified, match=r"the verified gap is 0\.17, more than the 1e-09 that was required"
    ) as caught:
        far.require()
    assert caught.value.certificate is far
    assert far.require(gap=0.2) is far


def test_a_value_that_passes_the_bound_is_not_shown_as_an_interval():
    """Only a point that breaks rows has such a value."""
    crossed = Proof(lower=2.0, upper=1.5, findings=("a row is violated by 1e-4",))
    assert str(crossed).startswith("bound 2, passed by the value 1.5; ")
    assert "optimum in" not in str(crossed)
    assert str(replace(crossed, lower=1.0, findings=())).startswith("optimum in [1, 1.5], gap 0.34; ")


def test_without_a_dual_only_feasibility_is_stated():
    mechanism, classes = PRIVATE["unbiased"], PRIVATE["rr"]
    proof = Mechanism(mechanism.problem, mechanism.table).certificate
    assert proof == replace(mechanism.certificate, lower=-math.inf)
    assert_error("the verified gap is inf", proof.require, gap=1e9, error=NotCertified)
    maximised = Mechanism(classes.problem, classes.table).certificate
    assert (maximised.lower, maximised.upper) == (classes.value, math.inf)


def test_certify_takes_mechanisms_only():
    solution = design(PRIVATE["unbiased"].problem)
    for other in (solution, solution.problem, solution.randomizer, solution.randomizer.matrix, Mechanism):
        assert_error(f"needs a mechanism, not a {type(other).__name__}.*optrand.audit", certify, other)
    mechanism = PRIVATE["unbiased"]
    assert certify(mechanism) == mechanism.certificate
    assert_error("neither true nor false", bool, mechanism.certificate, error=TypeError)
