"""The reduced dual: its kernel piece by piece, its coarse levels, and its answers against the older solver's."""

import time
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error, by_case
from random_problems import TAILS, random_problem
from scipy.optimize import linprog

import optrand
from optrand.errors import InvalidInput, SolverFailed
from optrand.mechanism._tabulation import tabulate
from optrand.model._randomizer import Arcs, Randomizer
from optrand.solvers import ReducedDual, design
from optrand.solvers.reduced_dual import _answers, _interior_point, _multipliers
from optrand.solvers.reduced_dual import _arcs as arcs_module
from optrand.solvers.reduced_dual._answers import Reduced
from optrand.solvers.reduced_dual._interior_point import KernelOptions, Status
from optrand.solvers.reduced_dual._multipliers import Sums, refine_sums
from optrand.solvers.reduced_dual._solver import FIRST, SECOND, Descent, TimeOver, TooWide

FEW = (2, 11, pytest.param(53, marks=pytest.mark.nightly))
PRIORS = ("uniform", "rough", "smooth", "spike", "half zero", "tails")


def prior_of(kind, k, rng):
    """Weights of k labels."""
    place = np.linspace(-1, 1, k)
    weights = {
        "uniform": np.ones(k),
        "rough": rng.dirichlet(np.full(k, 0.5)) + 1e-6,
        "smooth": np.exp(-4 * (place - 0.3) ** 2),
        "spike": np.where(np.arange(k) == k // 3, 0.5 * k, 1.0),
        "half zero": np.where(np.arange(k) % 2, rng.random(k) + 0.01, 0),
        "tails": np.exp(-60 * place**2),
    }[kind]
    return weights / weights.sum()


def problem_of(k, kind, epsilon, seed=0, clustered=False):
    rng = np.random.default_rng([k, seed])
    labels = np.cumsum(rng.exponential(size=k) ** 3 + 1e-3) if clustered else np.arange(float(k))
    return optrand.unbiased_regression(labels, prior_of(kind, k, rng), epsilon)


def arcs_of(nodes, places, stars, terms):
    """Arcs with the same bounds of their outputs."""
    bounds = tuple(np.full(nodes[0].size, limit) for limit in (terms.low, terms.high))
    return arcs_module.build_arcs(nodes, bounds, terms, places, stars)


def random_arcs(terms, seed, stars=0, *, bordered=False, parallel=1):
    k = terms.before.size - 1
    rng = np.random.default_rng(seed)
    places = np.full(k + 1, -1)
    places[1:k] = rng.permutation(k - 1)
    if bordered:
        places[k] = k - 1
    nodes = tuple(np.repeat(nodes, parallel) for nodes in arcs_module.all_arcs(k))
    return arcs_of(nodes, places, stars + bordered, terms)


@pytest.mark.parametrize(("bordered", "charged"), [(False, False), (True, False), (True, True)])
@by_case("k, stars, parallel", (2, 0, 1), (5, 0, 1), (9, 3, 1), (4, 3, 1), (12, 1, 1), (7, 1, 2))
def test_factors_solve_newtons_equations(k, stars, parallel, bordered, charged):
    rng, excess = np.random.default_rng(2), 0.3
    charges = rng.random(k * charged)
    terms = arcs_module.Terms(np.linspace(0, 1, k + 1), np.zeros(k + 1), excess, charges, -np.inf, np.inf)
    arcs = random_arcs(terms, 1, stars, bordered=bordered, parallel=parallel)
    slopes, costs = rng.random(arcs.n) + 1, rng.random(arcs.n) + 1
    mixed = rng.uniform(-0.5, 0.5, arcs.n)
    # The incidence of arcs and of labels on the sums at all nodes.
    seen, label = np.zeros((arcs.n, k + 1)), np.diff(np.eye(k + 1), axis=0)
    for row, a, b in zip(seen, arcs.first, arcs.end, strict=True):
        row[b] += 1
        row[a] -= 1
        row[k] += excess * bordered
    free = slice(1, k + bordered)
    dense = [[(seen.T * entries) @ seen for entries in pair] for pair in ((slopes, mixed), (mixed, costs))]
    if charged:
        dense[0][0] = dense[0][0] + (label.T * charges) @ label
    matrix = np.block([[dense[i][j][free, free] for j in (0, 1)] for i in (0, 1)])
    right = rng.normal(size=(2, k + 1))
    factors = _interior_point.factorize(arcs, terms, slopes, mixed, costs)
    found = _interior_point.solve_system(arcs, factors, right)
    expected = np.linalg.solve(matrix, right[:, free].ravel()).reshape(2, -1)
    np.testing.assert_allclose(found[:, free], expected, rtol=1e-9, atol=1e-11)
    # The same incidence and its transpose without a matrix. Fixed sums are zero.
    sums = right * (np.arange(k + 1) < k + bordered)
    np.testing.assert_allclose(arcs.apply_incidence(sums), sums @ seen.T, atol=1e-12)
    amounts = rng.normal(size=(2, arcs.n))
    np.testing.assert_allclose(arcs.apply_transpose(amounts)[:, free], (amounts @ seen)[:, free], atol=1e-12)
    if arcs.size:
        with pytest.raises(np.linalg.LinAlgError):
            _interior_point.factorize(arcs, terms, -slopes - 2 * charged * k, mixed, costs)


@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (-0.4, 0.3)])
@pytest.mark.parametrize("charged", [False, True])
def test_a_newton_step_solves_its_equations(limits, charged):
    k, rng, excess = 9, np.random.default_rng(7), 0.6
    before = np.append(0.0, np.cumsum(rng.dirichlet(np.ones(k))))
    terms = arcs_module.Terms(before, rng.random(k + 1), excess, rng.random(k * charged), *limits)
    arcs = random_arcs(terms, 8, 1, bordered=charged)
    weight = arcs.apply_incidence(before)
    pairs = rng.random((2, arcs.n)) + 0.5
    sums = np.array((rng.normal(size=k + 1) / 3, before / 2 + rng.normal(size=k + 1) / 9))
    point = _interior_point.Point(sums, pairs)
    residuals = _interior_point.evaluate_residuals(arcs, terms, weight, point)
    assert (residuals.bend == 0).any() == (limits[0] > -np.inf)
    target = _interior_point.Target(*rng.random((3, arcs.n)) / 10)
    step = _interior_point.NewtonSystem(arcs, terms, point, residuals).step_to(target)
    changed = point.move(step.change, np.full(2, 1e-7))
    after = _interior_point.evaluate_residuals(arcs, terms, weight, changed)
    free = slice(1, k + charged)
    gone = (after.rows - residuals.rows)[1, free] / 1e-7
    np.testing.assert_allclose(gone, -residuals.rows[1, free], atol=1e-5)
    np.testing.assert_allclose((after.slack - residuals.slack) / 1e-7, target.square - residuals.slack, atol=1e-5)
    products = point.mass * point.slack
    np.testing.assert_allclose((changed.mass * changed.slack - products) / 1e-7, target.products - products, atol=1e-5)


def slacks(before, slopes, costs, excess):
    """Slack of every interval, shape (k + 1, k + 1)."""
    weight = before - before[:, np.newaxis] + excess
    cost = costs - costs[:, np.newaxis] + excess / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        found = cost - (slopes - slopes[:, np.newaxis]) ** 2 / (2 * weight)
    return found[np.triu_indices(before.size, 1)]


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_coarse_points_stay_feasible(kind, epsilon):
    """Prolonging multipliers keeps all fine intervals priced at least at zero."""
    fine = Reduced(problem_of(17, kind, epsilon)).finest
    coarse, excess = fine.coarsen(), 1 / np.expm1(epsilon)
    k = coarse.before.size - 1
    terms = arcs_module.Terms(coarse.before, coarse.gaps, excess, np.zeros(0), -np.inf, np.inf)
    arcs = arcs_of(arcs_module.all_arcs(k), np.concatenate(([-1], np.arange(k - 1), [-1])), 0, terms)
    ((slopes, costs), _), *_ = _interior_point.interior_point(arcs, terms, 1e-12, 1e-13, terms.centre)
    least = slacks(coarse.before, slopes, costs, excess).min()
    assert least > -1e-11
    assert slacks(fine.before, coarse.prolong(slopes), coarse.prolong(costs), excess).min() >= least - 1e-12


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("k", FEW)
def test_answers_are_proven_best(k, kind, epsilon, clustered):
    problem = problem_of(k, kind, epsilon, clustered=clustered)
    solution = design(problem, ReducedDual())
    proof = optrand.certify(tabulate(solution)).require(gap=1e-9)
    assert proof.bias == 0
    assert solution.gap <= 1e-9


def test_without_an_attempt_or_with_too_wide_bands_there_is_no_answer():
    problem = problem_of(12, "rough", 2.0)
    for attempts in ((), (replace(FIRST, work=(0.0, 0.0, 0.0)),)):
        assert_error("the interior point has no answer", ReducedDual(attempts=attempts), problem, error=SolverFailed)


def attempts_made(monkeypatch, wide=()):
    """Reaches of the attempts in order, those in `wide` being too wide."""
    asked, solve = [], Descent.best_answer

    def told(self):
        asked.append(self.options.reach)
        if self.options.reach in wide:
            raise TooWide
        return solve(self)

    monkeypatch.setattr(Descent, "best_answer", told)
    return asked


def test_an_attempt_that_is_too_wide_is_followed_by_the_next(monkeypatch):
    problem, asked = problem_of(60, "rough", 2.0), attempts_made(monkeypatch, wide=(2,))
    solution = ReducedDual()(problem)
    assert (asked, solution.stats.status) == ([2, 3], "solved")
    assert optrand.certify(tabulate(solution)).gap < 1e-9


@pytest.mark.parametrize("seed", [1323, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1617, 2100))])
def test_few_labels_at_which_newton_steps_overestimate_slacks_are_proven(seed):
    """Halved steps prove nearly all tiny problems for which plain steps end nowhere, and cones the others."""
    rng, halved = np.random.default_rng(seed), 0
    for _ in range(20):
        k, epsilon = int(rng.integers(2, 5)), float(np.exp(rng.uniform(np.log(0.5), np.log(8))))
        labels = np.cumsum(rng.exponential(size=k))
        low, high = optrand.unbiased_range(labels, epsilon)
        room = (high - low) * 10 ** rng.uniform(-3, 0)
        problem = optrand.unbiased_regression(
            labels, rng.dirichlet(np.ones(k)), epsilon, outputs=optrand.Interval(low - room, high + room)
        )
        assert optrand.certify(tabulate(ReducedDual()(problem))).gap < 1e-9
        halved += Descent(Reduced(problem), SECOND).best_answer().gap < 1e-9
    assert halved >= 18


@pytest.mark.parametrize(("k", "share", "epsilon"), [(3, 1e-3, 6.0), (9, 1e-7, 4.0), (21, 1e-8, 8.0)])
def test_an_interval_hardly_wider_than_the_narrowest_is_proven_by_cones(k, share, epsilon):
    problem = problem_of(k, "rough", epsilon)
    low, high = optrand.unbiased_range(problem.labels, epsilon)
    more = share * (high - low)
    problem = replace(problem, outputs=optrand.Interval(low - more, high + more))
    for attempt in (FIRST, SECOND):
        with np.errstate(over="ignore", invalid="ignore"):
            assert not Descent(Reduced(problem), attempt).best_answer().gap <= 1e-9
    assert optrand.certify(tabulate(ReducedDual()(problem))).gap <= 1e-9


def tight_problem(k, epsilon, room):
    """No bias in an interval hardly wider than it must be, half of the labels close to their neighbours."""
    rng = np.random.default_rng(k)
    gaps = np.where(rng.random(k) < 0.5, 0.01, 1.0)
    labels, prior = np.cumsum(gaps), rng.dirichlet(np.full(k, 0.5)) + 1e-4
    low, high = optrand.unbiased_range(labels, epsilon)
    box = optrand.Interval(low - room * (high - low), high + room * (high - low))
    return optrand.unbiased_regression(labels, prior / prior.sum(), epsilon, outputs=box)


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [4.0, 5.0])
def test_a_tight_interval_without_bias_needs_no_more_than_the_first_attempt(epsilon):
    problem = tight_problem(250, epsilon, 0.005)
    assert Descent(Reduced(problem), FIRST).best_answer().gap < 1e-9
    # Merged labels at the ends make a problem of its own: its path means nothing for the whole one.
    assert Descent(Reduced(problem), replace(FIRST, steep=0.0)).best_answer().gap > 1e-6


@pytest.mark.nightly
def test_a_finest_level_far_off_comes_closer_by_more_arcs():
    reduced = Reduced(random_problem(101021, 2001, TAILS)[1])
    found = Descent(reduced, FIRST).best_answer()
    assert found.gap < 1e-9
    assert optrand.certify(tabulate(found)).gap < 1e-9
    assert Descent(reduced, replace(FIRST, rounds=1)).best_answer().gap > 1e-6


@pytest.mark.parametrize("over", [TooWide, TimeOver])
def test_a_finest_level_cut_off_leaves_the_best_claim_so_far(monkeypatch, over):
    reduced = Reduced(random_problem(101021, 2001, TAILS)[1])
    solved, calls = Descent.solve, []

    def cut_off(self, terms, *given, **options):
        calls.extend([0] * (terms.before.size == reduced.before.size))
        if len(calls) == many:
            raise over
        return solved(self, terms, *given, **options)

    monkeypatch.setattr(Descent, "solve", cut_off)
    many = 3
    claim = Descent(reduced, FIRST).best_answer()
    assert claim is not None
    assert 1e-6 < claim.gap < np.inf
    calls.clear()
    many = 1
    with pytest.raises(over):
        Descent(reduced, FIRST).best_answer()


def problem_of_class(kind, k, epsilon):
    """No bias on the line, no bias in an interval, or a price of bias."""
    rng = np.random.default_rng(k)
    labels, prior = np.arange(float(k)), rng.dirichlet(np.ones(k))
    if kind == "price":
        return optrand.regression(labels, prior, epsilon, bias_penalty=20.0)
    if kind == "line":
        return optrand.unbiased_regression(labels, prior, epsilon)
    low, high = optrand.unbiased_range(labels, epsilon)
    box = optrand.Interval(low - 0.01 * (high - low), high + 0.01 * (high - low))
    return optrand.unbiased_regression(labels, prior, epsilon, outputs=box)


def off_slacks(arcs, terms, sums, slack):
    """How far prices are from some slacks, weighted by nothing, in extended precision."""
    before, slopes, costs = (x[arcs.end] - x[arcs.first] + terms.excess * x[-1] for x in sums)
    output = np.clip(slopes / before, arcs.low, arcs.high)
    return np.abs(costs - (slopes - before * output / 2) * output - slack)


def all_arcs_of(kind, k):
    """All arcs of a problem, and its terms."""
    reduced = Reduced(problem_of_class(kind, k, 2.0))
    terms = reduced.terms(reduced.finest.before, reduced.finest.gaps)
    places = np.concatenate(([-1], np.arange(k - 1), [-1 if kind == "line" else k - 1]))
    return reduced, terms, arcs_of(arcs_module.all_arcs(k), places, int(kind != "line"), terms)


@pytest.mark.parametrize("kind", ["line", "interval", "price"])
def test_refined_sums_solve_their_equations_to_more_digits_than_floats_have(kind):
    reduced, terms, arcs = all_arcs_of(kind, 40)
    point, _, status = _interior_point.interior_point(arcs, terms, 1e-12, 1e-11, terms.centre)
    assert status in (Status.CONVERGED, Status.STALLED)
    used = point.mass > 1e-3 * point.slack

    def most(sums):
        return off_slacks(arcs, terms, sums, point.slack)[used].max()

    given = Sums(reduced.before, point.slopes.astype(np.longdouble), point.costs.astype(np.longdouble))
    found = refine_sums(arcs, terms, point, reduced.before)
    assert found.slopes.dtype == found.costs.dtype == np.longdouble
    assert most(found) < most(given) / 10
    # From far off as well. If a step would not help, nothing is moved.
    noise = 1e-6 * np.sin(np.arange(41.0)) * (np.arange(41) < 40 + arcs.total) * (np.arange(41) > 0)
    off = point._replace(sums=point.sums + noise)
    assert most(refine_sums(arcs, terms, off, reduced.before)) < 1e-3 * most(
        Sums(reduced.before, off.slopes, off.costs)
    )
    lost = point._replace(sums=point.sums * np.nan)
    assert np.isnan(refine_sums(arcs, terms, lost, reduced.before).slopes).all()


@pytest.mark.nightly
@pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="no numbers of more digits than floats have"
)
@pytest.mark.parametrize("kind", ["line", "interval", "price"])
def test_refined_multipliers_prove_more_at_a_large_epsilon(monkeypatch, kind):
    problem = problem_of_class(kind, 60, 17.0)

    def gap():
        return float(optrand.certify(tabulate(Descent(Reduced(problem), FIRST).best_answer())).gap)

    refined = gap()
    monkeypatch.setattr(_answers, "refine_sums", lambda *given: Sums(given[3], *given[2].sums))
    assert refined < gap() / 3


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("penalty", [0.25, 5.0, 40.0])
def test_biases_of_labels_next_to_no_weight_leave_the_others_their_digits(penalty, epsilon):
    labels = np.arange(60.0)
    prior = np.maximum(np.exp(-(((labels - 18) / 5) ** 2) / 2), 1e-20)
    problem = optrand.regression(labels, prior / prior.sum(), epsilon, bias_penalty=penalty)
    claim = Descent(Reduced(problem), FIRST).best_answer()
    assert claim.gap < 1e-11


def test_every_attempt_solves_an_easy_problem():
    problem = problem_of(101, "smooth", 1.0)
    for attempt in (FIRST, SECOND):
        claim = Descent(Reduced(problem), attempt).best_answer()
        assert claim.gap < 1e-10
        assert claim.stats.iterations > 0


def test_priors_need_not_sum_to_one_exactly():
    problem = problem_of(20, "rough", 1.0)
    scaled = replace(problem, prior=problem.prior * (1 + 3e-10))
    assert optrand.certify(tabulate(ReducedDual()(scaled))).gap < 1e-12


def kinds(k, kind, epsilon, seed=0):
    """Priced and boxed problems on one prior."""
    rng = np.random.default_rng([k, seed])
    labels, prior = np.cumsum(rng.exponential(size=k) + 0.05), prior_of(kind, k, rng)
    low, high = optrand.unbiased_range(labels, epsilon)
    room = high - low
    for penalty in (1e-3, 0.3, 1e4):
        yield optrand.regression(labels, prior, epsilon, bias_penalty=penalty)
    for share in (0.02, 3.0):
        box = optrand.Interval(low - share * room, high + share * room)
        yield optrand.unbiased_regression(labels, prior, epsilon, outputs=box)
    for penalty, share in ((0.1, 0.0), (1e3, 0.5)):
        width = np.ptp(labels)
        box = optrand.Interval(labels[0] - share * width, labels[-1] + share * width)
        yield optrand.regression(labels, prior, epsilon, bias_penalty=penalty, outputs=box)


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("k", FEW)
def test_prices_of_bias_and_ends_of_outputs_are_proven_best(k, kind, epsilon):
    for problem in kinds(k, kind, epsilon):
        solution = design(problem)
        proof = optrand.certify(tabulate(solution)).require(gap=1e-9)
        assert not proof.findings
        assert solution.stats.solver.startswith("ClosedForm") or solution.gap <= 1e-9


def test_biases_are_those_that_the_multipliers_pay_for():
    problem = next(iter(kinds(30, "rough", 1.0, seed=3)))
    problem = replace(problem, bias_penalty=2.0)
    solution = ReducedDual()(problem)
    assert solution.stats.status == "solved"
    np.testing.assert_allclose(solution.dual.beta, -2.0 * problem.prior * solution.randomizer.biases, atol=1e-9)


@pytest.mark.parametrize("low", [-np.inf, -0.4])
def test_mended_groups_leave_no_interval_too_cheap(low):
    """Sums stay at fixed nodes, and every interval is priced at least at zero, for any sums in between."""
    rng, k, fixed = np.random.default_rng(1), 12, np.zeros(13, dtype=bool)
    fixed[[0, 4, 8, 12]] = True
    before = np.append(0.0, np.cumsum(rng.dirichlet(np.ones(k))))
    terms = arcs_module.Terms(before, np.zeros(k + 1), 0.5, np.ones(k), low, np.inf)
    slopes = np.append(0.0, np.cumsum(rng.normal(size=k) / 20))
    # With these costs no column is too cheap. At the nodes in between they are lost.
    good = _multipliers._raise_costs(terms, slopes, before / 2, 0.5)
    lost = np.where(fixed, good, good + rng.normal(size=k + 1))
    lost[-1] = good[-1]
    found = _multipliers.feasible_costs(terms, slopes, lost, fixed)
    np.testing.assert_allclose(found[fixed], good[fixed], atol=1e-12)
    outputs = np.linspace(max(low, -5.0), 5.0, 2001)
    for a in range(k):
        for b in range(a + 1, k + 1):
            weight, slope, cost = (x[b] - x[a] + 0.5 * x[k] for x in (before, slopes, found))
            assert (weight * outputs**2 / 2 - slope * outputs + cost).min() > -1e-12


@by_case(
    "problem",
    optrand.regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0, bias_penalty=0),
    optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, outputs=[-5.0, 0.0, 5.0]),
    optrand.unbiased_regression([3], [1.0], 1.0),
)
def test_refuses_other_problems(problem):
    assert not ReducedDual().accepts(problem)
    assert_error("takes squared loss with a bias penalty above 0", ReducedDual(), problem)


def test_refuses_labels_that_floats_do_not_tell_apart():
    with pytest.raises(InvalidInput, match="number 1 and 2 in increasing order"):
        ReducedDual()(optrand.unbiased_regression([0, 1, 1 + 1e-14, 2], [0.25] * 4, 3.0))


def test_a_time_limit_that_has_passed_leaves_a_gap_and_a_bit_with_its_bound():
    problem = optrand.unbiased_regression(np.arange(40), np.full(40, 1 / 40), 1.5)
    early, late = (design(problem, ReducedDual(time_limit=limit)) for limit in (0.0, 600.0))
    assert [one.stats.status for one in (early, late)] == ["time limit", "solved"]
    mechanism, best = tabulate(early), optrand.certify(tabulate(late)).require(1e-9)
    assert mechanism.table == optrand.closed_forms.gap_response(problem.labels, problem.prior, 1.5).table
    proof = optrand.certify(mechanism)
    assert proof.lower <= best.upper < best.lower * 1.1 < proof.upper * 1.1


def test_a_time_limit_between_attempts_leaves_the_best_so_far(monkeypatch):
    """Time is over after the first attempt, whose answer is not good enough for a gap that no attempt can reach."""
    problem = optrand.unbiased_regression(np.arange(40), np.full(40, 1 / 40), 1.5)
    solve, calls = Descent.best_answer, []

    def first_only(self):
        calls.append(self.options)
        if len(calls) > 1:
            return solve(self)
        found = solve(replace(self, end=np.inf))
        time.sleep(max(0.0, self.end - time.perf_counter()))
        return found

    monkeypatch.setattr(Descent, "best_answer", first_only)
    found = ReducedDual(gap=-1.0, time_limit=0.1)(problem)
    assert (len(calls), found.stats.status) == (2, "time limit")
    assert optrand.certify(tabulate(found)).gap < 1e-9


def test_out_of_time_an_answer_that_cannot_be_made_exact_is_none(monkeypatch):
    """The rows of the first attempt's answer sum to 2."""
    problem = optrand.unbiased_regression(np.arange(40), np.full(40, 1 / 40), 1.5)
    solve = Descent.best_answer

    def break_rows(self):
        found = solve(replace(self, end=np.inf))
        time.sleep(max(0.0, self.end - time.perf_counter()))
        arcs = found.randomizer.arcs
        wrong = Arcs(arcs.k, arcs.first, arcs.last, arcs.outputs, 2 * arcs.masses)
        return replace(found, randomizer=Randomizer.of_arcs(problem.labels, wrong, problem.epsilon))

    monkeypatch.setattr(Descent, "best_answer", break_rows)
    found = ReducedDual(time_limit=0.1)(problem)
    assert found.stats.status == "time limit"
    assert optrand.certify(tabulate(found)).findings == ()
    with pytest.raises(SolverFailed, match="no answer"):
        ReducedDual()(problem)


def test_two_ends_are_an_answer_of_the_solver_that_tried_them():
    outputs = optrand.Interval(*optrand.unbiased_range([0, 1, 2], 12.0))
    problem = optrand.unbiased_regression([0, 1, 2], [1 / 3] * 3, 12.0, outputs=outputs)
    found = ReducedDual()(problem)
    assert (found.stats.status, found.stats.solver) == ("closed form", repr(ReducedDual()))


@pytest.mark.parametrize("k", [55, pytest.param(200, marks=pytest.mark.nightly)])
def test_biases_belong_to_their_multipliers_at_a_large_price(k):
    """Outputs that are the best for inexact multipliers cost 1e-8 of the loss more: biases count a million times."""
    problem = optrand.regression(np.arange(k), np.full(k, 1 / k), 8.0, bias_penalty=1e6)
    assert Descent(Reduced(problem), FIRST).best_answer().gap < 1e-10


@pytest.mark.parametrize("seed", [32, 47, 53])
def test_biases_of_light_labels_are_not_restored(seed):
    """Their charges leave them few digits, and restored ones would cost more than 1e-7 of the loss."""
    rng = np.random.default_rng(seed)
    prior = np.where(rng.random(20) < 0.5, 10.0 ** -rng.choice([9, 11, 13, 15], 20), rng.random(20))
    problem = optrand.regression(np.arange(20), prior / prior.sum(), 10.0, bias_penalty=1e4)
    assert optrand.solve(problem, ReducedDual()).certificate.gap < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_has_no_more_outputs_than_some_optimum(seed):
    """Without a choice among the arcs that seem in use, these priors have 2 to 22 outputs more."""
    prior = np.random.default_rng(seed).dirichlet(np.ones(1000))
    solution = ReducedDual()(optrand.unbiased_regression(np.arange(1000), prior, 2.0))
    assert solution.gap <= 1e-9
    assert solution.randomizer.n <= 2 * 1000 - 2


def test_residuals_that_are_left_to_tabulation_cost_nothing_to_speak_of():
    """A residual of 1e-8 would cost 1e-7 of the loss here."""
    labels, prior = np.square(np.arange(8)), np.full(8, 1 / 8)
    problem = optrand.regression(labels, prior, 14.0, bias_penalty=1e6)
    assert Descent(Reduced(problem), FIRST).best_answer().gap < 1e-9


@pytest.mark.parametrize(
    ("penalty", "outputs"),
    [(3.0, None), (3.0, optrand.Interval(10.0, 20.0)), (np.inf, None)],
    ids=["priced", "boxed", "unbiased"],
)
def test_out_of_time_the_answer_is_private_and_its_bounds_are_true(penalty, outputs):
    prior = np.random.default_rng(3).dirichlet(np.full(40, 0.5)) + 1e-4
    options = {} if outputs is None else {"outputs": outputs}
    problem = optrand.regression(np.arange(40.0), prior / prior.sum(), 1.0, bias_penalty=penalty, **options)
    early = design(problem, ReducedDual(time_limit=0.0))
    assert early.stats.status == "time limit"
    proof, best = tabulate(early).certificate, optrand.solve(problem).certificate
    assert proof.findings == ()
    assert proof.lower <= best.upper
    assert best.lower * (1 - 1e-9) <= proof.upper < np.inf


def test_labels_that_floats_cannot_tell_apart_are_refused_by_their_positions():
    with pytest.raises(InvalidInput, match=r"labels number 1 and 2 .* 1e-14 of the labels' range .* merge them"):
        optrand.solve(optrand.unbiased_regression([0.0, 0.5, 0.5 + 1e-14, 1.0], [0.25] * 4, 2.0))
    close = optrand.unbiased_regression([0.0, 0.5, 0.5 + 1e-12, 1.0], [0.25] * 4, 1.0)
    apart = optrand.unbiased_regression([0.0, 0.5, 1.0], [0.25, 0.5, 0.25], 1.0)
    assert optrand.solve(close).certificate.upper == pytest.approx(optrand.solve(apart).certificate.upper, rel=1e-9)


def all_slacks(terms, slopes, costs):
    """By the definition: the least price over the outputs that are allowed."""
    k = costs.size - 1
    found = {}
    for a in range(k):
        for b in range(a + 1, k + 1):
            weight = terms.before[b] - terms.before[a] + terms.excess
            slope = slopes[b] - slopes[a] + terms.excess * slopes[k]
            v = np.clip(slope / weight, terms.low, terms.high)
            found[a, b] = weight * v * v / 2 - slope * v + costs[b] - costs[a] + terms.excess * costs[k]
    del found[0, k]
    return found


@pytest.mark.parametrize("box", [(-np.inf, np.inf), (-0.5, 0.7)])
@pytest.mark.parametrize("k", [2, 3, 17])
def test_cheap_arcs_are_the_cheapest_of_each_node(k, box):
    rng = np.random.default_rng(k)
    before = np.append(0.0, np.cumsum(rng.dirichlet(np.ones(k))))
    slopes, costs = (np.append(0.0, rng.normal(size=k)) for _ in range(2))
    terms = arcs_module.Terms(before, np.zeros(k + 1), 0.6, np.zeros(0), *box)
    slack = all_slacks(terms, slopes, costs)
    expected = set()
    for node in range(k + 1):
        for end in (0, 1):
            mine = [arc for arc in slack if arc[end] == node]
            expected |= {arc for arc in mine if slack[arc] == min(map(slack.get, mine)) < -0.1}
    assert expected
    assert (
        set(zip(*map(np.ndarray.tolist, arcs_module.find_violated_arcs(terms, slopes, costs, -0.1)), strict=True))
        == expected
    )
    assert arcs_module.find_violated_arcs(terms, slopes, costs, min(slack.values()) - 1e-9)[0].size == 0


def hold_a_randomizer(arcs, terms):
    """Whether some masses and outputs of arcs keep all rows, by a linear program in masses and moments."""
    k, n = arcs.k, arcs.n
    incidence = np.zeros((k + 1, n))
    incidence[arcs.end[:n], np.arange(n)] = 1
    incidence[arcs.first[:n], np.arange(n)] -= 1
    incidence[k] += terms.excess
    # Rows of the sums from the second node on: masses to one at the last, moments to minus the gaps.
    none = np.zeros((k, n))
    rows = np.block([[incidence[1:], none], [none, incidence[1:]]])
    right = np.concatenate((np.eye(k)[-1], -terms.gaps[1:]))
    ends = np.block([[terms.low * np.eye(n), -np.eye(n)], [-terms.high * np.eye(n), np.eye(n)]])
    bounds = [(0, None)] * n + [(None, None)] * n
    return linprog(np.zeros(2 * n), ends, np.zeros(2 * n), rows, right, bounds).status == 0


SMALL_AND_LARGE = [(72, 16, 5.0), (72, 32, 3.0)] + [
    pytest.param(130, reach, epsilon, marks=pytest.mark.nightly)
    for reach in (8, 16, 32, 64)
    for epsilon in (0.3, 1.0, 3.0, 5.0)
]


@pytest.mark.parametrize(("k", "reach", "epsilon"), SMALL_AND_LARGE)
def test_arcs_that_hold_no_randomizer_are_told_before_the_last_step(k, reach, epsilon):
    reduced = Reduced(tight_problem(k, epsilon, 0.01))
    terms = reduced.terms(reduced.finest.before, reduced.finest.gaps)
    first, end = arcs_module.all_arcs(k)
    kept = np.abs(end - first - k // 2) <= reach
    arcs = arcs_of((first[kept], end[kept]), np.arange(-1, k), 1, terms)
    centre = terms.centre
    point, steps, status = _interior_point.interior_point(arcs, terms, 1e-12, 1e-11, centre)
    holds = hold_a_randomizer(arcs, terms)
    assert (point.mass @ point.slack < 1e-12) == holds
    assert (status in (Status.CONVERGED, Status.STALLED)) == holds
    assert holds or steps < KernelOptions().steps


def test_arcs_at_the_ends_hold_a_randomizer_wherever_there_is_one():
    """On the narrowest interval that unbiased answers fit into they are all that is needed."""
    labels, epsilon = np.array([0.0, 1.0, 3.0, 4.0]), 1.0
    outputs = optrand.Interval(*optrand.unbiased_range(labels, epsilon))
    excess = np.expm1(epsilon)
    first, end = arcs_module.end_arcs(4)
    assert sorted(zip(first.tolist(), end.tolist(), strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]
    masses = np.diff(labels) / (excess * (outputs.high - outputs.low))
    favoured = (first[:, None] <= np.arange(4)) & (np.arange(4) < end[:, None])
    rows = np.tile(masses, 2)[:, None] * (1 + excess * favoured)
    assert rows.sum(axis=0) == pytest.approx(1)
    assert np.repeat([outputs.low, outputs.high], 3) @ rows == pytest.approx(labels)
