"""The certificate: no bound above what can be attained, and no broken randomizer let through."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from conftest import duals, problems
from hypothesis import example, given, settings
from hypothesis import strategies as st
from references import Feasible, feasible, reference_bound

from optrand import (
    Dual,
    Grid,
    Interval,
    Randomizer,
    certify,
    classification,
    debiased_rr,
    losses,
    lower_bound,
    regression,
    rr,
    rr_top_k,
    rr_with_prior,
    solve,
    tabulate,
    unbiased_range,
    unbiased_regression,
)
from optrand.base.arithmetic import exp_bracket
from optrand.base.numerals import shown_above
from optrand.certificates.certificate import Certificate
from optrand.certificates.measurements import TOLERANCE
from optrand.errors import InvalidInput, NotCertified

GAP = 1e-6
"""What solvers promise; here only to have bounds that are nearly tight."""

ROUNDING = 1e-11
"""What the bound in floats may give away, as a share of the magnitudes that are added up in it."""

LABELS = np.array([0.0, 1.0, 2.5, 4.0])
PRIOR = np.array([0.4, 0.1, 0.2, 0.3])


def magnitude(problem, dual):
    """The numbers that are added up in the bound: rounding is relative to them."""
    spread = float(np.ptp(problem.labels)) or 1.0
    around = np.array([problem.labels[0] + 0.1 * spread, problem.labels[-1] + spread])
    outputs = problem.outputs.values if isinstance(problem.outputs, Grid) else around
    terms = [dual.alpha, dual.beta * np.abs(outputs).max(), problem.prior * np.abs(problem.loss_table(outputs)).max()]
    charged = (dual.beta != 0) & np.isfinite(problem.bias_weights)
    terms.append(dual.beta[charged] ** 2 / (2 * problem.bias_weights[charged]))
    return float(sum(np.abs(term).sum() for term in terms))


def with_duals(chosen):
    return chosen.flatmap(lambda problem: st.tuples(st.just(problem), duals(problem)))


# ---------------------------------------------------------------------------- the bound and the definition of the bound


def poisson(labels, prior, alpha, epsilon=1.0, outputs=None):
    problem = regression(labels, prior, epsilon, loss=losses.poisson_log, outputs=outputs)
    return problem, Dual(alpha, np.zeros(len(labels)))


SPIKES = [0.9, 0.1 - 2e-10 - 1e-18, 2e-10, 1e-18]


@settings(max_examples=200)
@given(with_duals(problems(max_size=4)))
# Roots of Poisson log loss near the smallest floats, below them, beyond the largest, and outside the allowed outputs.
@example(poisson([1000.0, 1001.0, 1002.0, 1003.0], [0.25] * 4, [0.0, 0.0, 0.0, 177854.35688135], 1e-6))
@example(poisson([1.0, 2.0, 3.0, 4.0], SPIKES, [0.0, 0.0, 0.13, 0.2], 40.0))
@example(poisson([1.0, 2.0, 3.0, 4.0], SPIKES, [0.0, 0.0, 0.13, 0.2], 40.0, Interval(0.1, 4.7)))
@example(poisson([0.0, 1.0, 2.0], [0.5, 0.5 - 1e-305, 1e-305], [0.1, 0.1, 1e5]))
@example(poisson([0.0], [1.0], [0.0]))
def test_bounds_are_those_of_the_definition_rounded_down(case):
    problem, dual = case
    floats, exact = lower_bound(problem, dual), lower_bound(problem, dual, exact=True)
    low, high = exp_bracket(problem.epsilon)
    # A larger ratio admits more randomizers, so the bound falls with it.
    reference = reference_bound(problem, dual, low)
    assert exact <= reference
    assert floats <= exact
    if problem.epsilon > 40:
        return
    slack = Fraction(magnitude(problem, dual)) + abs(reference)
    assert exact >= reference_bound(problem, dual, high) - Fraction(1, 10**14) * slack
    # The float bound forgives itself what it may have lost to rounding; where E is large that is a share of E.
    assert floats >= exact - ROUNDING * math.exp(problem.epsilon) * float(slack)


def test_multipliers_of_a_wrong_length_are_refused():
    with pytest.raises(InvalidInput, match="the dual has 3 entries for 4 labels"):
        lower_bound(unbiased_regression(LABELS, PRIOR, 1.0), Dual([0.0] * 3, [0.0] * 3))


@pytest.mark.parametrize("exact", [False, True])
def test_multipliers_of_a_bias_that_costs_nothing_prove_nothing(exact):
    dual = Dual([0.0, 0.0], [0.0, 1e-9])
    assert lower_bound(regression([0, 1], [0.5, 0.5], 1.0), dual, exact=exact) == -math.inf
    assert lower_bound(regression([0, 1], [1.0, 0.0], 1.0, bias_penalty=2.0), dual, exact=exact) == -math.inf
    assert lower_bound(regression([0, 1], [0.0, 1.0], 1.0, bias_penalty=2.0), dual, exact=exact) > -1
    # Where no bias is allowed at all, labels of prior zero have a say.
    assert lower_bound(unbiased_regression([0, 1], [1.0, 0.0], 1.0), dual, exact=exact) > -1


# ----------------------------------------------------------------------------------- the bound and what can be attained


@settings(max_examples=200)
@given(feasible().flatmap(lambda found: st.tuples(st.just(found), duals(found.problem))))
def test_no_bound_exceeds_the_value_of_any_feasible_randomizer(case):
    """In rationals, without tolerance: outputs, probabilities and losses are exact, and so is the comparison."""
    found, dual = case
    for row in found.rows:
        assert sum(row) == 1
    assert lower_bound(found.problem, dual, exact=True) <= found.value
    assert lower_bound(found.problem, dual) <= found.value


@given(
    with_duals(
        problems(budgets=st.sampled_from([0.3, 1.0, 2.0]), places=("grid",), kinds=("squared", "absolute")).filter(
            lambda problem: problem.unbiased
        )
    ),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=3),
)
def test_no_bound_exceeds_the_value_of_mixed_coins_on_a_grid(case, coins):
    """On a grid unbiased randomizers are harder to come by: coins between two values that reach far enough."""
    problem, dual = case
    low, high = unbiased_range(problem.labels, problem.epsilon)
    grid = [Fraction(v) for v in problem.outputs.values.tolist()]
    lows, highs = [v for v in grid if v <= low], [v for v in grid if v >= high]
    weights = [[Fraction(0)] * len(grid) for _ in range(problem.k)]
    for at_low, at_high, weight in coins:
        start = lows[min(int(at_low * len(lows)), len(lows) - 1)]
        end = highs[min(int(at_high * len(highs)), len(highs) - 1)]
        for y, label in enumerate(problem.labels):
            up = (Fraction(label) - start) / (end - start) if end > start else 1
            weights[y][grid.index(end)] += weight * up
            weights[y][grid.index(start)] += weight * (1 - up)
    total = sum(weight for _, _, weight in coins)
    mixed = Feasible(problem, grid, [[w / total for w in row] for row in weights])
    assert lower_bound(problem, dual, exact=True) <= mixed.value


SOLVED = {
    "unbiased": unbiased_regression(LABELS, PRIOR, 1.0),
    "unbiased, zero priors": unbiased_regression(LABELS, [0.0, 0.6, 0.0, 0.4], 0.5),
    "penalised": regression(LABELS, PRIOR, 1.0, bias_penalty=2.0),
    "penalised, zero priors": regression(LABELS, [0.0, 0.6, 0.0, 0.4], 2.0, bias_penalty=2.0),
    "free": regression(LABELS, PRIOR, 1.0),
    "interval, unbiased": unbiased_regression(LABELS, PRIOR, 1.0, outputs=Interval(-2.5, 6.5)),
    "interval, penalised": regression(LABELS, PRIOR, 0.5, bias_penalty=4.0, outputs=Interval(0.5, 3.0)),
    "interval, free": regression(LABELS, PRIOR, 2.0, outputs=Interval(1.0, 3.0)),
    "absolute": regression(LABELS, PRIOR, 1.0, loss=losses.absolute),
    "poisson": regression(LABELS, PRIOR, 2.0, loss=losses.poisson_log),
    "grid": regression(LABELS, PRIOR, 1.0, outputs=np.linspace(-1, 5, 13)),
    "grid, unbiased": unbiased_regression(LABELS, PRIOR, 1.0, outputs=np.linspace(-3, 7, 21)),
    "grid, penalised": regression(LABELS, PRIOR, 1.0, bias_penalty=1.0, outputs=np.linspace(-1, 5, 13)),
    "grid, poisson": regression(LABELS, PRIOR, 1.0, loss=losses.poisson_log, outputs=np.linspace(0.1, 5, 12)),
    "tabulated": regression(
        LABELS, PRIOR, 1.0, loss=losses.Tabulated(np.sin(np.arange(20.0)).reshape(4, 5)), outputs=np.arange(5)
    ),
    "classification": classification(PRIOR, 1.0),
}


@pytest.mark.parametrize("name", SOLVED)
def test_no_perturbed_multipliers_prove_more_than_the_optimum(name):
    problem = SOLVED[name]
    solution = solve(problem)
    optimum = problem.sign * solution.value
    assert lower_bound(problem, solution.dual) >= optimum - GAP * abs(optimum)
    rng = np.random.default_rng(7)
    size = float(np.abs(solution.dual.alpha).max()) + 1e-3
    slope = float(np.abs(solution.dual.beta).max()) + 1e-3
    for scale in np.repeat([1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0], 25):
        alpha = solution.dual.alpha + scale * size * rng.normal(size=problem.k)
        beta = solution.dual.beta + scale * slope * rng.normal(size=problem.k) * (problem.bias_weights > 0)
        moved = Dual(alpha, beta)
        exact = lower_bound(problem, moved, exact=True)
        assert lower_bound(problem, moved) <= exact <= optimum + 1e-9 * abs(optimum)


def test_the_bound_without_its_third_term_is_refuted():
    """The multipliers of the unbiased problem attain its optimum, which a penalised randomizer goes below.

    A finite penalty has the same other terms as an infinite one, so without the third the bound would be the unbiased
    optimum whatever the penalty is: above the value of a penalised randomizer.
    """
    unbiased = unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    penalised = regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, bias_penalty=1.0)
    dual = solve(unbiased).dual
    third_term = float((dual.beta**2 / (2 * penalised.bias_weights)).sum())
    attained = solve(penalised)
    assert certify(attained).findings == ()
    true_bound = lower_bound(penalised, dual)
    assert true_bound <= attained.value
    assert true_bound + third_term == pytest.approx(lower_bound(unbiased, dual), rel=1e-9)
    assert true_bound + third_term > 1.2 * attained.value


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
    "rr_top_k": rr_top_k([0.5, 0.3, 0.2], 2, 1.0),
    "rr_with_prior": rr_with_prior([0.5, 0.3, 0.2], 1.0),
    "debiased_rr": debiased_rr([0, 1, 3], 1.0),
    "unbiased": solve(SOLVED["unbiased"]),
    "penalised": solve(SOLVED["penalised"]),
    "grid, unbiased": solve(SOLVED["grid, unbiased"]),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_privacy_from_both_sides(name):
    solution = PRIVATE[name]
    problem = solution.problem
    proof = certify(solution)
    assert problem.epsilon - 1e-9 < proof.epsilon <= problem.epsilon * (1 + TOLERANCE)
    assert proof.findings == ()
    stricter = replace(problem, epsilon=problem.epsilon - 0.01)
    found = certify(stricter, solution.randomizer)
    assert found.findings == (f"not 0.99-DP: the realised epsilon is {shown_above(found.epsilon, 10)}",)
    assert found.upper == math.inf or found.lower == -math.inf
    with pytest.raises(NotCertified, match=r"not 0\.99-DP") as caught:
        certify(stricter, solution.randomizer, solution.dual).require(gap=math.inf)
    assert caught.value.certificate == certify(stricter, solution.randomizer, solution.dual)


@pytest.mark.parametrize("name", PRIVATE)
def test_an_exact_mechanism_is_private_from_both_sides_without_tolerance(name):
    mechanism = tabulate(PRIVATE[name])
    problem = mechanism.problem
    proof = certify(mechanism)
    assert problem.epsilon - 1e-9 < proof.epsilon <= problem.epsilon
    assert certify(replace(problem, epsilon=proof.epsilon), mechanism).findings == ()
    stricter = replace(problem, epsilon=problem.epsilon - 1e-12)
    assert certify(stricter, mechanism).findings == (f"not {stricter.epsilon:g}-DP in exact arithmetic",)


def corrupted(name):
    """One corruption of the optimal unbiased table each, and what the certificate has to say about it."""
    channel = PRIVATE["unbiased"].randomizer
    matrix, outputs = channel.matrix.copy(), channel.outputs.copy()
    if name == "swapped rows":
        matrix[[0, 1]] = matrix[[1, 0]]
    elif name == "a row that does not sum to one":
        matrix[2] *= 1 + 1e-8
    elif name == "a negative entry":
        matrix[1, 0] -= 2 * matrix[1, 0]
        matrix[1, 1] += 1 - matrix[1].sum()
    elif name == "a zero where others are positive":
        matrix[1, 1] += matrix[1, 0]
        matrix[1, 0] = 0.0
    elif name == "one probability moved":
        matrix[0, 0] += 1e-6
        matrix[0, 1] -= 1e-6
    elif name == "outputs shifted":
        outputs = outputs + 1e-6
    elif name == "reversed columns":
        matrix = matrix[:, ::-1]
    return Randomizer(channel.labels, outputs, matrix, channel.epsilon)


CORRUPTIONS = {
    "swapped rows": "biased by up to",
    "a row that does not sum to one": r"a row sums to 1 only within 1(\.01)?e-08",
    "a negative entry": "a probability is negative",
    "a zero where others are positive": "not 1-DP: the realised epsilon is inf",
    "one probability moved": "not 1-DP|biased",
    "outputs shifted": r"biased by up to 1(\.01)?e-06 where no bias is allowed",
    "reversed columns": "biased by up to",
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_is_found(name):
    solution = PRIVATE["unbiased"]
    proof = certify(solution.problem, corrupted(name), solution.dual)
    assert proof.findings
    assert proof.upper == math.inf
    assert proof.gap == math.inf
    with pytest.raises(NotCertified, match=CORRUPTIONS[name]):
        proof.require(gap=math.inf)
    assert "not feasible" in str(proof)


def test_the_uncorrupted_table_has_no_finding():
    solution = PRIVATE["unbiased"]
    assert certify(solution.problem, corrupted("nothing"), solution.dual).findings == ()


@pytest.mark.parametrize(
    ("allowed", "outside"),
    [(Interval(-2.5, 6.5), 0), (Interval(-2.0, 6.5), 1), (Grid([-3, 0, 1.0, 7]), 5)],
)
def test_outputs_outside_the_allowed_set_are_counted(allowed, outside):
    channel = Randomizer(LABELS, [-2.5, -1, 0, 1.5, 2, 6.5], np.full((4, 6), 1 / 6), 1.0)
    proof = certify(regression(LABELS, PRIOR, 1.0, outputs=allowed), channel)
    expected = (f"{outside} output(s) lie outside the allowed set",) if outside else ()
    assert proof.findings == expected


def test_poisson_log_loss_has_no_outputs_at_or_below_zero():
    channel = Randomizer([0, 1], [-1, 0, 2], np.full((2, 3), 1 / 3), 1.0)
    proof = certify(regression([0, 1], [0.5, 0.5], 1.0, loss=losses.poisson_log), channel)
    assert proof.findings == ("2 output(s) lie outside the allowed set",)


def test_an_answer_to_another_question_is_found():
    problem, other = SOLVED["free"], regression([0, 1, 2, 3], PRIOR, 1.0)
    proof = certify(problem, solve(other).randomizer)
    assert proof.findings == ("the randomizer's labels are not those of the problem",)
    proof = certify(problem, tabulate(solve(other)))
    assert proof.findings == ("the mechanism's labels are not those of the problem",)
    assert (proof.epsilon, proof.bias, proof.upper) == (math.inf, math.inf, math.inf)


def test_a_loss_that_overflows_is_a_finding():
    problem = regression([0, 1], [0.5, 0.5], 1.0)
    unused = Randomizer([0, 1], [0, 1e200], [[1.0, 0.0], [1.0, 0.0]], 1.0)
    assert certify(problem, unused).upper == 0.25
    proof = certify(problem, Randomizer([0, 1], [0, 1e200], [[0.5, 0.5], [0.5, 0.5]], 1.0))
    assert proof.findings == ("its loss overflows in floats",)
    assert proof.upper == math.inf


@settings(max_examples=150)
@given(st.data())
def test_certify_never_raises_for_a_bad_randomizer(data):
    problem = data.draw(problems(max_size=3))
    n = data.draw(st.integers(1, 3))
    wild = st.one_of(
        st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, 1e-310]),
        st.floats(-2, 2),
        st.floats(-1e308, 1e308),
    )
    entries = data.draw(st.lists(wild, min_size=problem.k * n, max_size=problem.k * n))
    outputs = data.draw(
        st.lists(st.one_of(st.floats(-5, 5), st.sampled_from([0.0, 1e308])), min_size=n, max_size=n, unique=True)
    )
    channel = Randomizer(problem.labels, np.sort(outputs), np.array(entries).reshape(problem.k, n), problem.epsilon)
    proof = certify(problem, channel, data.draw(duals(problem)))
    assert str(proof)
    assert not math.isnan(proof.gap)
    private = (channel.matrix >= 0).all() and channel.realised_ratio <= math.exp(problem.epsilon) * (1 + 1e-6)
    normal = np.allclose([math.fsum(row / 1e300) for row in channel.matrix], 1e-300, rtol=1e-6, atol=0)
    assert proof.findings or (private and normal)


# ----------------------------------------------------------------------------------------------- the certificate itself


def test_the_gap_is_relative_to_the_value_and_absolute_at_zero():
    def made(lower, upper, maximised=False):
        return Certificate(lower, upper, 1.0, 1.0, 0.0, False, (), maximised)

    assert made(1.0, 2.0).gap == 0.5
    assert made(0.5, 1.0, maximised=True).gap == 1.0
    assert made(-0.25, 0.0).gap == 0.25
    assert made(-math.inf, 3.0).gap == math.inf
    assert made(1.0, math.inf).gap == math.inf
    assert made(-2.0, -1.0).gap == 1.0
    assert made(1.0, 1.0).gap == 0.0


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


def test_without_a_dual_only_feasibility_is_stated():
    solution = PRIVATE["unbiased"]
    proof = certify(solution.problem, solution.randomizer)
    assert proof.lower == -math.inf
    assert proof.upper == pytest.approx(solution.value, rel=1e-15)
    assert proof.findings == ()
    with pytest.raises(NotCertified, match="the verified gap is inf"):
        proof.require(gap=1e9)
    maximised = certify(PRIVATE["rr"].problem, PRIVATE["rr"].randomizer)
    assert maximised.upper == math.inf
    assert maximised.lower == pytest.approx(PRIVATE["rr"].value, rel=1e-15)


def test_what_certify_takes():
    solution = PRIVATE["unbiased"]
    with pytest.raises(InvalidInput, match="needs a randomizer or a mechanism beside the problem"):
        certify(solution.problem)
    with pytest.raises(InvalidInput, match="brings its own problem and dual"):
        certify(solution, solution.randomizer)
    with pytest.raises(InvalidInput, match="brings its own problem and dual"):
        certify(solution, None, solution.dual)
    whole = certify(solution)
    assert certify(solution.problem, solution.randomizer, solution.dual) == whole
    mechanism = tabulate(solution)
    assert certify(solution.problem, mechanism, solution.dual, exact=True) == certify(mechanism, exact=True)


@pytest.mark.parametrize(
    "name", ["unbiased", "penalised", "free", "absolute", "poisson", "tabulated", "classification"]
)
def test_the_exact_certificate_of_a_mechanism_holds_the_optimum(name):
    problem = SOLVED[name]
    mechanism = tabulate(solve(problem))
    proof, floats = certify(mechanism, exact=True), certify(mechanism)
    assert proof.exact
    assert not certify(solve(problem), exact=True).exact
    assert floats == proof
    assert proof.lower <= proof.upper
    # The value once more, from the integers.
    rows = [[Fraction(w, mechanism.total) for w in row] for row in mechanism.weights.tolist()]
    value = Feasible(problem, [Fraction(v) for v in mechanism.outputs.tolist()], rows).value
    attained = proof.upper if problem.sign > 0 else -proof.lower
    assert value <= attained <= value + Fraction(1, 10**14) * abs(value)
