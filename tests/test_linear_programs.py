"""Programs as objects: the papers' rows as printed, every notion of privacy, one certificate, exact tables."""

import itertools
import json
import math
import pickle
import random
import re
from fractions import Fraction
from functools import partial

import highspy
import numpy as np
import pytest
from asserting import assert_error, by_case
from commands import invoke
from tables import resealed

import optrand
from optrand import program_checker
from optrand.errors import Infeasible, InvalidFile, InvalidInput, NotCertified
from optrand.model._table import Table
from optrand.programs import (
    Approximate,
    BiasAtMost,
    Cvxpy,
    Highs,
    MaximalLeakage,
    Metric,
    Pairwise,
    PointwiseMaximalLeakage,
    ProbabilityAtMost,
    Program,
    Pure,
    Sensitive,
    Status,
    Unbiased,
    algorithm1,
    lp1,
    lp2,
)
from optrand.programs._certificate import bound, exact_cost, largest_violation
from optrand.programs._exact_point import exact_points
from optrand.programs._mechanism import ProgramMechanism, load, solve_program
from tests.oracle import exactly, exponential

PRIORS = {"uniform": lambda k: np.full(k, 1 / k), "falling": lambda k: np.arange(k, 0, -1.0) / (k * (k + 1) / 2)}
PRIORS["with zeros"] = lambda k: np.eye(k)[0] * 0.5 + np.eye(k)[-1] * 0.5


def outputs(k, n=None):
    """Outputs that reach beyond the range that unbiased randomizers at epsilon 1 need."""
    overhang = (k - 1) / math.expm1(1.0) + 0.4
    return np.linspace(-overhang, k - 1 + overhang, n or 2 * k + 5)


KINDS = {
    "pure": lambda _: (Pure(1.0), [Unbiased()]),
    "floor": lambda _: (Pure(1.0, form="floor"), [Unbiased()]),
    "metric": lambda k: (Metric(np.arange(k), 0.5), [Unbiased()]),
    "sensitive": lambda k: (Sensitive(np.arange(k) > 0, 1.0), [Unbiased()]),
    "approximate": lambda _: (Approximate(1.0, 1e-3), [Unbiased()]),
    "delta of 0": lambda _: (Approximate(1.0, 0.0), [Unbiased()]),
    "leakage": lambda _: (MaximalLeakage(1.0), [Unbiased()]),
    "pointwise": lambda _: (PointwiseMaximalLeakage(1.5), [BiasAtMost(1.0)]),
    "bias": lambda k: (Pure(1.0), [BiasAtMost(np.linspace(0.1, 0.4, k))]),
    "capped": lambda _: (Pure(1.0), [ProbabilityAtMost(0.9)]),
    "several": lambda k: ([Pure(1.5), MaximalLeakage(0.8)], [BiasAtMost(k / 2)]),
}


def violations(program, mechanism):
    """Violations of the stated notions and constraints by their definitions, in fractions of the drawn table."""
    table, found = mechanism.table, []
    rows = np.array([[Fraction(w, table.total) for w in row] for row in table.weights.tolist()])
    outputs, labels, prior = (np.array(exactly(x.tolist())) for x in (table.outputs, program.labels, program.prior))
    for part in program.constraints:
        if isinstance(part, ProbabilityAtMost):
            found.append(rows - Fraction(float(part.bound)))
        else:
            bounds = np.broadcast_to(getattr(part, "bound", 0.0), labels.shape)
            found.append(abs(rows @ outputs - labels) - exactly(bounds.tolist()))
    found += [privacy_violations(notion, rows, prior) for notion in program.privacy]
    return max(np.max(each) for each in [abs(rows.sum(axis=1) - 1), -rows, *found])


def privacy_violations(notion, rows, prior):
    if isinstance(notion, Pairwise):
        finite = [(pair, e) for pair, e in np.ndenumerate(notion.epsilons) if np.isfinite(e)]
        return np.array([rows[y] - exponential(e)[1] * rows[z] for (y, z), e in finite])
    ratio = exponential(notion.epsilon)[1]
    if isinstance(notion, MaximalLeakage):
        return rows.max(axis=0).sum() - ratio
    if isinstance(notion, PointwiseMaximalLeakage):
        return rows - ratio * (prior @ rows)
    excess = rows[:, np.newaxis] - ratio * rows
    return excess if isinstance(notion, Pure) else np.maximum(excess, 0).sum(axis=2) - Fraction(notion.delta)


def nightly(values, kept):
    """Values of which all but the ones that are kept are tried at night alone."""
    return [each if each in kept else pytest.param(each, marks=pytest.mark.nightly) for each in values]


def prove(program, folder):
    """Solve a program, prove it, and find the same proof in the saved mechanism, by `load` and by the checker."""
    mechanism, path = solve_program(program), folder / "m.json"
    proof = mechanism.certificate.require(gap=1e-9)
    mechanism.save(path)
    assert load(path).certify() == proof
    report = program_checker.check(path.read_text())
    assert (program_checker.up(report.value), -program_checker.up(-report.bound)) == (proof.value, proof.bound)
    assert [name for name, _ in report.facts] == [name for name, _ in proof.realised]
    assert [found for _, found in report.facts] == pytest.approx([number for _, number in proof.realised], rel=1e-14)
    return mechanism


@pytest.mark.parametrize("k", nightly(range(3, 21), kept=(3, 5)))
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_notion_is_solved_exactly_and_proven(kind, prior, k, tmp_path):
    privacy, constraints = KINDS[kind](k)
    program = Program(np.arange(k), PRIORS[prior](k), outputs(k), privacy=privacy, constraints=constraints)
    program.add("mine", np.ones((2, k, program.outputs.size)), "<=", [k + 0.5, k + 1.0])
    mechanism = prove(program, tmp_path)
    assert violations(program, mechanism) <= 0
    assert mechanism.certificate.bound <= mechanism.certificate.value


@pytest.mark.parametrize("scale", [2.0**-300, 1e-9, 1e12, 2.0**300])
@pytest.mark.parametrize("constraint", [Unbiased, BiasAtMost])
def test_the_unit_of_labels_is_of_no_effect(constraint, scale):
    def stated(unit):
        bound = [] if constraint is Unbiased else [np.array([0.1, 0.2, 0.3, 0.4]) * unit]
        parts = np.arange(4) * unit, np.full(4, 0.25), outputs(4) * unit
        return Program(*parts, privacy=Pure(1.0), constraints=[constraint(*bound)])

    mechanism = solve_program(stated(scale))
    assert mechanism.certify().require(gap=1e-9).violation == 0
    assert mechanism.value / scale**2 == pytest.approx(solve_program(stated(1.0)).value, rel=1e-9)


@pytest.mark.parametrize("prior", [np.exp(-0.1 * np.arange(24)), np.random.default_rng(1).dirichlet(np.ones(40))])
def test_refinement_brings_digits_that_a_backend_does_not_have(prior):
    """Over 24 labels, each within a factor of e of the next, errors of 1e-10 weigh hundreds of times more."""
    labels = np.arange(prior.size)
    program = Program(labels, prior / prior.sum(), labels, privacy=Metric(labels, 1.0))
    gaps = []
    for point, multipliers in itertools.islice(exact_points(program.solve()), 2):
        assert largest_violation(program, point) == 0
        gaps.append(1 - bound(program, multipliers) / exact_cost(program.cost, point))
    assert 1e-9 < gaps[0] < 1e-6
    assert 0 <= gaps[1] < 1e-12


def test_lp1_has_the_rows_that_are_printed():
    """[G21], (2) and (3): K^2 (K - 1) rows of privacy, K sums, and the objective in the paper's units."""
    program = lp1([0.5, 0.3, 0.2], 1.0)
    assert {name: block.count for name, block in program.blocks.items()} == {"sum": 3, "privacy": 18}
    matrix, low, high = program.matrices()
    assert program.cost.reshape(3, 3).tolist() == [[0.5, 0, 0], [0, 0.3, 0], [0, 0, 0.2]]
    assert program.variable_names[1] == "M[y=0, v=1]"
    row = program.row_names().index("privacy[0 > 2, v=1]")
    expected = np.zeros((3, 3))
    expected[0, 1], expected[2, 1] = 1.0, -math.e
    assert matrix.toarray()[row].reshape(3, 3).tolist() == expected.tolist()
    assert (low[row], high[row]) == (-math.inf, 0)


def test_lp2_has_the_rows_that_are_printed():
    """[G21], (4): the diagonal weighs 1, all others exp(-epsilon)."""
    program = lp2([0.5, 0.3, 0.2], 1.0)
    matrix, _, high = program.matrices()
    assert np.allclose(matrix.toarray(), np.full((3, 3), math.exp(-1)) + (1 - math.exp(-1)) * np.eye(3), rtol=1e-15)
    assert high.tolist() == [1, 1, 1]
    assert_error("no table", solve_program, program)


def test_algorithm1_has_the_rows_that_are_printed():
    labels, grid = [0, 1, 2], [-3.0, -1.0, 1.0, 3.0, 5.0]
    program = algorithm1(labels, [0.5, 0.3, 0.2], 0.5, grid)
    assert {name: block.count for name, block in program.blocks.items()} == {"sum": 3, "mean": 3, "privacy": 30}
    assert program.cost[0] == 0.5 * 9 / 2
    matrix, low, high = program.matrices()
    row = program.row_names().index("mean[2]")
    assert matrix.toarray()[row].reshape(3, 5)[2].tolist() == grid
    assert low[row] == high[row] == 2


AGREE = [(prior, e) for prior in ([0.4, 0.4, 0.2, 0.0], [1.0], [0.0, 0.0, 1.0]) for e in (0.1, 1.0, 4.0)]
AGREE += [(PRIORS[name](k), 1.0) for name in PRIORS for k in (2, 6)]
LARGE = [(PRIORS[name](k), 1.0) for name in PRIORS for k in (*range(3, 21), 50, 100, 200) if k != 6]


@by_case("prior, epsilon", *AGREE, *(pytest.param(*case, marks=pytest.mark.nightly) for case in LARGE))
def test_lp1_lp2_and_the_closed_form_agree(prior, epsilon):
    """[G21], Theorem 3, ties and zeros among the priors: LP1 as printed up to 20, in the form with floors beyond."""
    form = "pairwise" if len(prior) <= 20 else "floor"
    proofs = [program.solve().certify() for program in (lp1(prior, epsilon, form=form), lp2(prior, epsilon))]
    closed = optrand.certify(optrand.rr_with_prior(prior, epsilon))
    for proof in proofs:
        assert proof.gap < 1e-9
        assert proof.value == pytest.approx(closed.lower, rel=1e-12)
        assert proof.bound >= closed.lower * (1 - 1e-12)


@pytest.mark.parametrize("k", nightly(range(3, 21), kept=(4,)))
@pytest.mark.parametrize("prior", PRIORS)
def test_a_pure_program_is_the_problem_on_a_grid(prior, k):
    """Two forms of the program, their exact mechanisms, and `solve`: apart by no more than their gaps."""
    labels, shares, grid = np.arange(k), PRIORS[prior](k), outputs(k)
    proofs = [
        solve_program(algorithm1(labels, shares, 1.0, grid, form=form)).certificate for form in ("pairwise", "floor")
    ]
    proofs.append(optrand.certify(optrand.solve(optrand.unbiased_regression(labels, shares, 1.0, outputs=grid))))
    assert max(proof.lower for proof in proofs) <= min(proof.upper for proof in proofs) * (1 + 1e-15)
    assert max(proof.gap for proof in proofs) < 1e-9


def test_any_multipliers_give_a_bound_below_every_feasible_point():
    rng = np.random.default_rng(5)
    for kind in KINDS:
        privacy, constraints = KINDS[kind](4)
        program = Program(np.arange(4), [0.1, 0.2, 0.3, 0.4], outputs(4), privacy=privacy, constraints=constraints)
        answer = program.solve()
        point, _ = next(exact_points(answer))
        assert largest_violation(program, point) == 0
        best, value = bound(program, answer.multipliers), exact_cost(program.cost, point)
        assert best <= value
        for scale in (1e-9, 1e-3, 1.0, 30.0):
            moved = answer.multipliers + rng.normal(size=program.rows) * scale
            assert bound(program, moved) <= value
            assert bound(program, -moved) <= value


def test_exponentials_are_rounded_to_the_safe_side():
    """A program whose optimum is known: two outputs, LP1 at K = 2, where it is E / (E + 1)."""
    program = lp1([0.5, 0.5], 1.0)
    proof = solve_program(program).certify()
    optimum = Fraction(math.e) / (Fraction(math.e) + 1)
    assert Fraction(proof.value) <= optimum * (1 + Fraction(1, 2**52))
    assert Fraction(proof.bound) >= optimum * (1 - Fraction(1, 2**52))
    assert solve_program(program).table.largest_ratio < Fraction(math.e) * (1 + Fraction(1, 2**52))


def test_a_multiplier_is_the_derivative_by_the_right_hand_side():
    """Two variables: output 0 or 1 for one label. The row caps M[0, 1], of which each unit gains 2."""
    gain = [[0.0, 2.0]]
    program = Program([0], [1.0], [0, 1], loss=gain, privacy=Pure(1.0), maximize=True)
    program.add("cap", [[0, 1]], "<=", 0.25)
    loss = Program([0], [1.0], [0, 1], loss=[[2.0, 0.0]], privacy=Pure(1.0)).add("cap", [[0, 1]], "<=", 0.25)
    more = Program([0], [1.0], [0, 1], loss=gain, privacy=Pure(1.0)).add("least", [[0, 1]], ">=", 0.25)
    for backend in ("highs", "highs-ipm", "scipy", "CLARABEL"):
        assert program.solve(backend).duals["cap"] == pytest.approx([2.0], abs=1e-6)
        assert loss.solve(backend).duals["cap"] == pytest.approx([-2.0], abs=1e-6)
        assert more.solve(backend).duals["least"] == pytest.approx([2.0], abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_binding_row_of_ones_own_is_proven_too(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 6))
    program = algorithm1(np.arange(k), rng.dirichlet(np.ones(k)), 1.0, outputs(k))
    free = program.solve()
    row = rng.normal(size=(k, program.outputs.size))
    reached = float((row * free.table).sum())
    program.add("mine", row, "<=", reached - 0.01 * abs(reached))
    mechanism = solve_program(program)
    assert program.solve().duals["mine"][0] < 0
    assert mechanism.certify().require(gap=1e-9).value > free.value
    table, places = mechanism.matrix, np.searchsorted(program.outputs, mechanism.outputs)
    assert (row[:, places] * table).sum() <= reached - 0.01 * abs(reached) + 1e-12


def test_rows_that_are_added_later_change_no_answer(tmp_path):
    program = lp1([0.5, 0.3, 0.2], 1.0)
    answer, mechanism = program.solve(), solve_program(program)
    before = answer.certify(), mechanism.certify()
    program.add("cap", np.diag([0.5, 0.3, 0.2]), "<=", 0.4)
    assert (answer.certify(), mechanism.certify()) == before
    assert list(answer.duals) == ["sum", "privacy"]
    mechanism.save(tmp_path / "m.json")
    assert load(tmp_path / "m.json").certify() == before[1]
    assert solve_program(program).value == pytest.approx(0.4, abs=1e-9)
    mechanism.program.add("cap", np.diag([0.5, 0.3, 0.2]), "<=", 0.4)
    assert_error("rows were added to the program of a mechanism", mechanism.certify)


def test_rows_without_coefficients_are_solved_and_proven():
    """They hold for every randomizer or for none, and have no largest entry to be scaled by."""
    for sense, right in (("<=", 1.0), ("==", 0.0)):
        program = lp1([0.5, 0.3, 0.2], 1.0).add("zero", np.zeros((2, 3, 3)), sense, right)
        for backend in ("highs", "scipy", "CLARABEL"):
            assert program.solve(backend).value == pytest.approx(lp1([0.5, 0.3, 0.2], 1.0).solve().value, abs=1e-7)
        assert solve_program(program).certificate.gap < 1e-9
    with pytest.raises(Infeasible, match="zero"):
        solve_program(lp1([0.5, 0.3, 0.2], 1.0).add("zero", np.zeros((3, 3)), ">=", 1.0))
    # The one mean is a row without coefficients: its label is 0, and so is the one output.
    assert solve_program(algorithm1([0.0], [1.0], 1.0, [0.0])).value == 0.0


@pytest.mark.parametrize("notion", [Pure(1.0), Pure(1.0, form="floor"), Approximate(1.0, 0.1), MaximalLeakage(1.0)])
def test_outputs_that_are_forbidden_are_never_given(notion):
    """No table keeps such a row strictly. Under pure privacy an output without label 0 has no other label either."""
    program = Program(np.arange(3), np.full(3, 1 / 3), outputs(3, 7), privacy=notion, constraints=[BiasAtMost(1.0)])
    unused = np.zeros((3, 7))
    program.add("nothing", unused, "<=", 0.0).add("nothing either", unused, ">=", 0.0)
    unused[0, 5:] = 1.0
    mechanism = solve_program(program.add("forbidden", unused, "<=", 0.0))
    assert mechanism.certify().require(gap=1e-9).violation == 0
    high = mechanism.table.outputs >= program.outputs[5]
    assert not mechanism.table.weights[0, high].any()
    assert not (isinstance(notion, Pure) and mechanism.table.weights[:, high].any())
    assert mechanism.value == pytest.approx(program.solve("CLARABEL").value, rel=1e-6)


@pytest.mark.parametrize("seed", range(13))
def test_what_no_randomizer_keeps_is_proven_to_be_infeasible(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    labels = np.arange(k)
    first, last = np.zeros((2, k, k))
    first[0], last[-1] = 1.0, rng.random(k)
    stated, pure = partial(Program, labels, np.full(k, 1 / k)), Pure(1.0)
    programs = (
        # Means cannot differ by more than privacy allows between these ends.
        stated(np.linspace(-0.1, k - 0.9, 9), privacy=Pure(0.5), constraints=[Unbiased()]),
        stated(labels, privacy=MaximalLeakage(0.01), constraints=[BiasAtMost(0.1)]),
        # Each of these has a row that forces probabilities to be 0, such as the mean of label 0 over outputs from 0 on.
        stated(labels, privacy=Pure(0.5), constraints=[Unbiased()]),
        stated(labels, privacy=Approximate(0.5, 0.0), constraints=[Unbiased()]),
        stated(labels, privacy=MaximalLeakage(1.0)).add("none", first, "<=", 0.0),
        stated(labels, privacy=pure).add("none", -last, ">=", 0.0),
        stated(labels, privacy=pure).add("twice", np.ones((k, k)), "==", k + 1.0),
        stated(labels, privacy=pure).add("row", rng.random((k, k)), ">=", float(k + rng.random())),
    )
    for program in programs:
        assert_error("proven", solve_program, program, error=Infeasible)


def test_a_program_that_is_infeasible_by_rounding_says_so():
    """Outputs that miss the ends that unbiased answers need by 1e-13, which no backend notices."""
    grid = [-1 / math.expm1(1.0) + 1e-13, 1 + 1 / math.expm1(1.0) - 1e-13]
    assert algorithm1([0, 1], [0.5, 0.5], 1.0, grid).solve().status is Status.OPTIMAL
    assert_error(None, solve_program, algorithm1([0, 1], [0.5, 0.5], 1.0, grid), error=(NotCertified, Infeasible))


@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_a_file_is_read_back_with_the_same_optimum_and_names(ending, tmp_path):
    program = algorithm1([0, 1, 2], [0.5, 0.3, 0.2], 1.0, outputs(3))
    path = tmp_path / f"x.{ending}"
    program.write(path)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.readModel(str(path))
    model.run()
    assert model.getObjectiveValue() == pytest.approx(program.solve().value, rel=1e-9)
    assert model.getColName(1)[1] in ("M[y=0,_v=-1.05116273099]", "M(y_0,v_m1.05116273099)")
    assert_error(r"expected \.mps or \.lp", program.write, tmp_path / "x.txt")
    assert_error("could not be written: check that its folder exists", program.write, tmp_path / "none" / path.name)


def test_the_cvxpy_problem_is_the_same_program():
    program = Program(
        [0, 1, 2], [0.5, 0.3, 0.2], outputs(3), privacy=[Pure(1.0, form="floor")], constraints=[BiasAtMost(0.2)]
    )
    problem, table = program.cvxpy()
    problem.solve(solver="CLARABEL")
    assert problem.value == pytest.approx(program.solve().value, rel=1e-6)
    assert float((program.cost[:33] * table.value.ravel()).sum()) == pytest.approx(problem.value, rel=1e-9)
    assert len(problem.constraints) == len(program.blocks)


def test_a_backend_that_stops_early_is_not_believed():
    program = algorithm1(np.arange(8), np.full(8, 1 / 8), 1.0, outputs(8, 60))
    stopped = program.solve(Highs(method="ipm", time_limit=0.0))
    assert stopped.status is not Status.OPTIMAL
    assert stopped.certify().findings
    poor = program.solve(Cvxpy("SCS", (("max_iters", 10),)))
    proof = poor.certify()
    assert proof.findings
    assert_error(None, proof.require, error=NotCertified)


@pytest.mark.parametrize("backend", ["highs", "highs-ipm"])
def test_where_a_backend_stopped_in_an_infeasible_program_is_no_optimum(backend):
    low, high = optrand.unbiased_range(np.arange(5), 1.0)
    inside = np.linspace(0.9 * low, 4 + 0.9 * (high - 4), 12)
    answer = algorithm1(np.arange(5), np.full(5, 0.2), 1.0, inside).solve(backend)
    assert answer.status is Status.INFEASIBLE
    assert answer.point.size  # HiGHS returns the point at which it stopped
    assert math.isnan(answer.value)
    proof = answer.certify()
    assert proof.value == proof.gap == math.inf
    assert "infeasible" in str(proof)
    assert repr(answer).startswith(f"<Answer of {answer.backend}: infeasible, ")
    assert "value" not in repr(answer)
    assert_error("its status is infeasible", proof.require, gap=math.inf, error=NotCertified)
    none = lp1([0.5, 0.5], 1.0).add("too much", [[1, 1], [0, 0]], ">=", 2).solve()
    assert none.status is Status.INFEASIBLE
    assert np.isnan(none.table).all()
    assert none.table.shape == (2, 2)


def test_wrong_arguments_are_refused_with_what_to_do():
    program = algorithm1([0, 1], [0.5, 0.5], 1.0, [-3.0, 0.0, 4.0])
    ones, state = np.ones((2, 3)), partial(Program, [0, 1], [0.5, 0.5], [-1, 0, 2])
    assert_error(r"expected \(rows, 2, 3\)", program.add, "x", np.ones((2, 2)), "<=", 1)
    assert_error(r"expected \(rows, 2, 3\)", program.add, "x", np.zeros((0, 2, 3)), "<=", 1)
    assert_error("the name 'mean' of the rows is empty or in use", program.add, "mean", ones, "<=", 1)
    assert_error("the name '' of the rows is empty", program.add, "", ones, "<=", 1)
    assert_error("of type int, expected a text", program.add, 3, ones, "<=", 1)
    assert_error("sense is '<'", program.add, "x", ones, "<", 1)
    assert_error("sense is of type ndarray", program.add, "x", ones, np.array(["<=", ">="]), 1)
    assert_error("expected one number per row", program.add, "x", np.ones((2, 2, 3)), "<=", [1, 2, 3])
    assert_error("finite", program.add, "x", np.full((2, 3), np.nan), "<=", 1)
    assert_error("diagonal", Pairwise, [[1, 1], [1, 0]])
    assert_error("negative", Pairwise, [[0, -1], [1, 0]])
    assert_error(r"for 2 labels, expected \(2, 2\)", state, privacy=Pairwise(np.zeros((3, 3))))
    assert_error("below 1", Approximate, 1.0, 1.0)
    assert_error("form='floor'", lp1, np.full(400, 1 / 400), 1.0)
    assert_error("no backend is called 'GUROBY'", program.solve, "GUROBY")
    for wrong in (Highs("simplx"), Highs(tolerance=1e-12), Highs(time_limit=-1.0)):
        assert_error("HiGHS does not take the ", program.solve, wrong)
    expected = r"privacy is of type float, expected an object of optrand.programs, such as Pure\(1.0\)"
    assert_error(expected, state, privacy=1.0)
    assert_error("privacy is the class Pure", state, privacy=Pure)
    assert_error("privacy is of type Unbiased", state, privacy=Unbiased())
    assert_error("constraints is the class Unbiased", state, privacy=Pure(1.0), constraints=[Unbiased])
    assert_error("constraints is of type str", state, privacy=Pure(1.0), constraints=["mean"])
    assert_error("constraints is of type Pure", state, privacy=Pure(1.0), constraints=[Pure(1.0)])


def test_a_table_that_breaks_its_program_is_refused():
    program = Program([0, 1], [0.5, 0.5], [0, 1], privacy=Pure(1.0)).add("row", [[1, 0], [0, 0]], "<=", 0.7)
    zeros = np.zeros(program.rows)
    ProgramMechanism(program, Table.of_rows([0, 1], [0, 1], [[2, 1], [1, 2]]), zeros)
    with pytest.raises(InvalidInput, match="does not keep Pure"):
        ProgramMechanism(program, Table.of_rows([0, 1], [0, 1], [[6, 4], [1, 9]]), zeros)
    with pytest.raises(InvalidInput, match=r"breaks the row row\[0\]"):
        ProgramMechanism(program, Table.of_rows([0, 1], [0, 1], [[72, 28], [28, 72]]), zeros)
    assert_error("does not allow", ProgramMechanism, program, Table.of_rows([0, 1], [0, 2], [[2, 1], [1, 2]]), zeros)


def test_nothing_that_proves_travels_in_a_pickle():
    mechanism = solve_program(lp1([0.5, 0.5], 1.0))
    proof = mechanism.certificate
    vars(mechanism)["certificate"] = "forged"
    assert pickle.loads(pickle.dumps(mechanism)).certificate == proof  # noqa: S301


def test_a_table_counts_what_it_leaks():
    """By hand: rows (1/2, 1/2, 0), (1/4, 1/4, 1/2)."""
    table = Table.of_rows([0, 1], [0, 1, 2], [[2, 2, 0], [1, 1, 2]])
    assert table.largest_ratio is None
    assert table.pair_ratio(0, 1) == 2
    assert table.pair_ratio(1, 0) is None
    assert (table.excess(Fraction(1)), table.leakage) == (Fraction(1, 2), Fraction(3, 2))
    assert table.pointwise_leakage([Fraction(1, 2), Fraction(1, 2)]) == 2
    assert table.biases == (Fraction(1, 2), Fraction(1, 4))
    assert table.weights.tolist() == [[2, 2, 0], [1, 1, 2]]


def test_a_metric_of_neighbours_implies_that_of_all_pairs():
    labels, prior = [0.0, 1.0, 3.0, 4.0], [0.4, 0.1, 0.2, 0.3]
    notions = Metric(labels, 0.7), Pairwise(0.7 * np.abs(np.subtract.outer(labels, labels)))
    values = [Program(labels, prior, np.linspace(-4, 8, 25), privacy=notion).solve().value for notion in notions]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert Metric([0.0, 1e-6, 3e-6], 250_000.0).epsilons[0, 1] == 0.25
    assert_error("entries above 700, where .* overflows: use infinity for them", Metric, [0, 1, 500], 2.0)
    for rate in (0.0, -1.0):
        assert_error(f"epsilon_per_unit is {rate:g}, expected a number above 0", Metric, [0, 1], rate)


def test_solve_certify_load_and_the_command_line_take_programs(tmp_path):
    program = lp1([0.5, 0.3, 0.2], 1.0)
    mechanism = optrand.solve(program)
    assert optrand.certify(mechanism) == mechanism.certificate
    assert optrand.certify(optrand.solve(program, "highs-ipm")).gap < 1e-9
    assert optrand.certify(program.solve()).gap < 1e-9
    assert_error("not that of a program", optrand.certify, mechanism, worst_case=True)
    assert_error("state a program", optrand.solve, [1.0])
    path = tmp_path / "lp1.json"
    mechanism.save(path)
    assert optrand.load(path).digest == mechanism.digest
    told = invoke("verify", str(path), "--gap", "1e-9", code=0)
    assert "between 0.584846" in told.output
    assert "kept, at most 1" in told.output
    path.write_bytes(path.read_bytes().replace(b"0.3", b"0.4", 1))
    invoke("verify", str(path), code=3)


@pytest.mark.parametrize("notion", [Pure(1.0), Approximate(1.0, 0.1), MaximalLeakage(1.0), Metric([3.0], 1.0)])
def test_a_single_label_is_proven(notion, tmp_path):
    assert prove(Program([3.0], [1.0], [1.0, 2.0], privacy=notion), tmp_path).value == 0.5


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12, 1e15])
def test_a_bound_of_biases_is_kept_exactly_by_labels_far_from_zero(far, tmp_path):
    """Labels plus and minus the bound are no floats there: near 1e15 they would admit no bias, or an eighth."""
    labels, near = far + np.arange(3.0), [-4.0, -1.0, 0.0, 1.0, 2.0, 3.0, 6.0]
    parts = {"privacy": Pure(1.0), "constraints": [BiasAtMost(0.07)]}
    mechanism = prove(Program(labels, [0.5, 0.3, 0.2], far + np.array(near), **parts), tmp_path)
    assert mechanism.table.largest_bias <= Fraction(0.07)
    assert mechanism.value == pytest.approx(1.736614391965, rel=1e-9)


@pytest.mark.parametrize("bounds", [0, [0, 0.5, 0.5], [0.5, 0, 0], [0, 0, 1e-3]])
@pytest.mark.parametrize("privacy", [Pure(1.0), MaximalLeakage(1.0)])
def test_some_labels_may_have_no_bias_and_others_some(privacy, bounds, tmp_path):
    """As inequalities no table would keep a bound of 0 strictly on both sides, and rounding could not be repaired."""
    parts = [0, 1, 2], [0.5, 0.3, 0.2], np.linspace(-3.0, 5.0, 9)
    mechanism = prove(Program(*parts, privacy=privacy, constraints=[BiasAtMost(bounds)]), tmp_path)
    most = np.broadcast_to(bounds, 3).tolist()
    assert all(abs(bias) <= Fraction(each) for bias, each in zip(mechanism.table.biases, most, strict=True))
    if bounds == 0:
        assert mechanism.value == solve_program(Program(*parts, privacy=privacy, constraints=[Unbiased()])).value


@pytest.mark.parametrize("seed", range(8, 20))
def test_an_epsilon_of_zero_makes_two_rows_equal(seed, tmp_path):
    rng = np.random.default_rng(seed)
    epsilons = rng.uniform(0.3, 2.0, (3, 3))
    epsilons[0, 1] = 0.0
    np.fill_diagonal(epsilons, 0.0)
    loss = np.random.default_rng(seed).normal(size=(3, 5))
    program = Program([0, 1, 2], [0.5, 0.3, 0.2], [-3, 0, 1.3, 2, 5], privacy=Pairwise(epsilons), loss=loss)
    weights = prove(program, tmp_path).table.weights.tolist()
    assert weights[0] == weights[1]


@pytest.mark.parametrize("delta", [1e-8, 1e-10, 1e-30, 1e-310])
@pytest.mark.parametrize("constraints", [[], [Unbiased()]])
@pytest.mark.parametrize("seed", range(4))
def test_a_tiny_delta_is_proven_like_any_other(seed, constraints, delta, tmp_path):
    """Excesses below the tolerance of the backend have slack of their own size, and a strictly feasible point."""
    k, rng = 4, np.random.default_rng(seed)
    parts = range(k), rng.dirichlet(np.ones(k)), np.linspace(-2.5, k + 1.5, 6)
    options = {"constraints": constraints, "loss": optrand.losses.absolute}
    mechanism = prove(Program(*parts, privacy=Approximate(1.0, delta), **options), tmp_path)
    pure = solve_program(Program(*parts, privacy=Pure(1.0), **options))
    assert dict(mechanism.certificate.realised)["Approximate"] <= delta
    assert mechanism.certificate.lower <= pure.value
    assert mechanism.value == pytest.approx(pure.value, rel=1e-6)


def edited(document, path):
    """Write a document with a fresh digest, and return the errors of `load` and of the checker."""
    path.write_text(resealed(document))
    errors = []
    for read, given in ((load, path), (program_checker.check, path.read_text())):
        try:
            read(given)
        except (InvalidFile, program_checker.Refused) as error:
            errors.append(error)
    return errors


EDITS = {
    "a smaller delta": (("program", "privacy", 0, "delta"), 1e-9),
    "an unknown notion": (("program", "privacy", 0, "kind"), "Whatever"),
    "a constraint as a notion": (("program", "privacy", 0), {"kind": "Unbiased"}),
    "a row that the table breaks": (("program", "rows", 0, "bound"), [0.5]),
    "another weight": (("columns", 0, 0, 1), "1"),
    "a column less": (("columns",), lambda columns: columns[:-1]),
    "an output of another program": (("outputs",), [0.0, 2.0]),
    "no prior": (("program", "prior"), [0.5, 0.25]),
    "a multiplier without a row": (("multipliers",), lambda pairs: [*pairs, [10**6, 1.0]]),
    "a text in place of a flag": (("program", "maximize"), "false"),
    "a number in place of a flag": (("program", "maximize"), 0),
    "nothing in place of a flag": (("program", "maximize"), None),
    "a flag in place of a number": (("program", "labels", 1), True),
    "an integer in place of a float": (("program", "labels", 1), 1),
    "a negative zero": (("outputs", 0), -0.0),
    "a text in place of a multiplier": (("multipliers", 0, 1), "0.5"),
    "an integer without end": (("multipliers", 0, 1), 10**400),
    "a place that is a float": (("columns", 0, 0, 0), 0.0),
    "digits with a zero before them": (("columns", 0, 0, 1), "0{}".format),
    "digits with white space": (("columns", 0, 0, 1), "{} ".format),
    "digits of another script": (("columns", 0, 0, 1), lambda digits: chr(ord(digits[0]) + 0x660 - 48) + digits[1:]),
    "a part with a field too many": (("program", "privacy", 1, "extra"), 1.0),
    "a budget beyond all floats": (("program", "privacy", 1, "epsilon"), 1e300),
    "a bound that is no probability": (("program", "constraints", 0, "bound"), 701.0),
    "another schema": (("schema",), True),
}


@pytest.mark.parametrize("edit", EDITS)
def test_the_checker_and_load_refuse_an_edited_file(edit, tmp_path):
    notions = [Approximate(1.0, 0.01), PointwiseMaximalLeakage(1.5)]
    program = Program([0, 1], [0.5, 0.5], [0, 1], privacy=notions, constraints=[ProbabilityAtMost(0.9)])
    prove(program.add("row", [[1, 0], [0, 0]], "<=", 0.7), tmp_path)
    document, (place, value) = json.loads((tmp_path / "m.json").read_text()), EDITS[edit]
    assert not edited(document, tmp_path / "m.json")
    node = document
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value(node[place[-1]]) if callable(value) else value
    assert len(edited(document, tmp_path / "m.json")) == 2


def test_a_file_may_be_indented_and_has_no_field_twice(tmp_path):
    mechanism, path = solve_program(lp1([0.5, 0.5], 1.0)), tmp_path / "m.json"
    mechanism.save(path)
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text), indent=1))
    assert load(path) == mechanism
    assert program_checker.check(path.read_text()).gap < 1e-9
    path.write_text(text.replace('"maximize"', '"maximize":true,"maximize"'))
    assert_error("twice", load, path, error=InvalidFile)
    assert_error("twice", program_checker.check, path.read_text(), error=program_checker.Refused)


TOKENS = ["0.0", "1.0", "-1.0", "0.5", "0.9", "0.995", "1.005", "1e-300", "-1", "0", "1", "2", "3", "true", "[]", "{}"]
TOKENS += ['"1"', '"-1"', '"1000001"', '"inf"', '"Pure"', '"Pairwise"', '"=="', '"<="', '">="', '"floor"', '"pairwise"']


def test_the_checker_and_load_refuse_the_same_edits(tmp_path):
    program = Program([0, 1], [0.5, 0.5], [0, 1], privacy=[Pure(1.0), Approximate(0.9, 0.1), MaximalLeakage(0.5)])
    prove(program.add("row", [[1, 0], [0, 0]], "<=", 0.7), tmp_path)
    text, rng, refused = (tmp_path / "m.json").read_text(), random.Random(1), 0
    values = list(re.finditer(r'(?<=[:,[])(?:[-\d.e]+|"[^"]*"|true|false)(?=[,\]}])', text))
    for _ in range(600):
        value, other = rng.choice(values), rng.choice(TOKENS)
        errors = edited(json.loads(text[: value.start()] + other + text[value.end() :]), tmp_path / "m.json")
        assert len(errors) in (0, 2), (errors, value, other)
        refused += bool(errors)
    assert 20 < refused < 580
