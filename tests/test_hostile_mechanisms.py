"""Mechanisms made to deceive the certificate: thousands, each statement compared with its definition in rationals."""

import math
import os
import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from asserting import assert_error, by_case
from oracle import Channel, exponential, split_cost
from tables import layered_arcs
from truth import Known, examine

import optrand
from optrand import Dual, Grid, Interval, Mechanism, Table, certify, losses
from optrand.base._arithmetic import privacy_ratio
from optrand.mechanism._tabulation import Solution, tabulate
from optrand.model._randomizer import Arcs, Randomizer, decompose
from optrand.solvers import design
from optrand.solvers._interface import Translation
from tests.tables import mechanism_of

EACH = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 3
"""Tables of each kind for each problem."""

EPSILON = 1.0
THREE = ([0.0, 1.0, 2.0], [0.5, 0.3, 0.2])
FOUR = ([0.0, 1.0, 2.5, 4.0], [0.4, 0.1, 0.2, 0.3])
TABLE = losses.Tabulated([[0, 1, 4, 2, 7], [3, 0, 1, 1, 5], [2, 2, 0, 0.5, 1]])
FAR = 2.0**53


def _problems():
    unbiased, regression = optrand.unbiased_regression, optrand.regression
    tight = optrand.unbiased_range(THREE[0], EPSILON)
    return {
        "three": unbiased(*THREE, EPSILON),
        "one": unbiased([3.0], [1.0], EPSILON),
        "one in an interval": unbiased([3.0], [1.0], EPSILON, outputs=Interval(3.0, 4.0)),
        "two": unbiased([0.0, 1.0], [0.5, 0.5], 2.0),
        "two far apart in budget": unbiased([0.0, 1.0], [0.9, 0.1], 12.0),
        "two with hardly a budget": unbiased([0.0, 1.0], [0.5, 0.5], 1e-3),
        "four, a prior of zero": unbiased([0, 1, 2, 5], [0.5, 0.0, 0.3, 0.2], 0.5),
        "a prior of next to nothing": unbiased([0, 1, 2], [0.5, 1e-300, 0.5], EPSILON),
        "clusters": unbiased([0.0, 1e-6, 1.0, 1.0 + 1e-6], [0.25] * 4, EPSILON),
        "at 1e12": unbiased([1e12, 1e12 + 0.5, 1e12 + 1], [0.5, 0.3, 0.2], EPSILON),
        "at 2**52": unbiased(2.0**52 + np.array([0.0, 1.0, 2.0, 5.0]), [0.25] * 4, 20.0),
        "at 1e15": unbiased([1e15, 1e15 + 0.5, 1e15 + 1], [0.5, 0.3, 0.2], EPSILON),
        "tight interval": unbiased(*THREE, EPSILON, outputs=Interval(*tight)),
        "interval": unbiased(*THREE, EPSILON, outputs=Interval(tight[0] - 0.3, tight[1] + 0.01)),
        "grid": unbiased(*THREE, EPSILON, outputs=np.linspace(-3, 5, 9)),
        "grid with a value near another": unbiased(*THREE, EPSILON, outputs=[-3.0, 0.0, 1e-30, 1.0, 2.0, 5.0]),
        "grid of neighbouring floats": unbiased(
            [FAR, FAR + 4], [0.5, 0.5], 1.0, outputs=FAR + np.arange(-8.0, 14.0, 2.0)
        ),
        "biased": regression(*FOUR, EPSILON),
        "biased on neighbouring floats": regression(
            [FAR, FAR + 4], [0.5, 0.5], 1.0, outputs=FAR + np.arange(-4.0, 10, 2)
        ),
        "biased in an interval": regression(*FOUR, 3.0, outputs=Interval(0.5, 3.0)),
        "bias has a price": regression(*FOUR, EPSILON, bias_penalty=3.0),
        "bias has a price on a grid": regression(*THREE, EPSILON, bias_penalty=0.5, outputs=[-1.0, 0.0, 1.5, 2.0, 4.0]),
        "absolute": regression(*FOUR, EPSILON, loss=losses.absolute),
        "absolute, unbiased": regression(
            *THREE, EPSILON, loss=losses.absolute, bias_penalty=math.inf, outputs=np.linspace(-3, 5, 9)
        ),
        "poisson": regression([1.0, 2.0, 4.0], [0.5, 0.3, 0.2], EPSILON, loss=losses.poisson_log),
        "poisson on a grid": regression(
            [1.0, 2.0], [0.5, 0.5], 2.0, loss=losses.poisson_log, outputs=[1e-30, 0.5, 1, 2, 3]
        ),
        "table": regression(*THREE, EPSILON, loss=TABLE, outputs=[-3.0, 0.0, 1e-30, 2.0, 5.0]),
        "table, unbiased": regression(
            *THREE, EPSILON, loss=TABLE, bias_penalty=math.inf, outputs=[-3.0, 0.0, 1e-30, 2.0, 5.0]
        ),
        "classes": optrand.classification([0.5, 0.3, 0.2], EPSILON),
    }


PROBLEMS = _problems()


@cache
def known(name: str) -> Known:
    return Known.of(PROBLEMS[name])


# ------------------------------------------------------------------------------------------------ multipliers of a foe
def foe_duals(truth: Known, rng: np.random.Generator):
    """Good ones, scaled ones, random ones, enormous ones, and those of another problem."""
    good, k = truth.mechanism.dual, truth.problem.k
    held = truth.problem.bias_weights > 0
    yield None
    yield good
    scale = 1 + rng.choice([1e-15, -1e-12, 1e-6, 0.1, -2.0, 1e6])
    yield Dual(good.alpha * scale, good.beta * scale, good.origin)
    shaken = (x * (1 + rng.normal(size=k) * 10.0 ** rng.uniform(-16, 0)) for x in (good.alpha, good.beta))
    yield Dual(*shaken, good.origin)
    yield Dual(*(rng.normal(size=(2, k)) * 10.0 ** rng.uniform(-20, 20)) * [np.ones(k), held])
    yield Dual(*(rng.normal(size=(2, k)) * [[1e300]] * [np.ones(k), held]), rng.choice([0.0, 1e-300, 1e15, -1e300]))
    yield Dual(good.alpha[::-1], good.beta * (rng.normal(size=k) > 0), good.origin + rng.normal())
    other = known("three").mechanism.dual
    if k == other.alpha.size:
        yield Dual(other.alpha, other.beta * held)


# ------------------------------------------------------------------------------------------------ mechanisms of a foe
def allowed_outputs(problem: optrand.Problem, rng: np.random.Generator, n: int) -> np.ndarray:
    """Some outputs that the problem allows: far, near zero, neighbouring floats in chains, labels, and ends."""
    if isinstance(problem.outputs, Grid):
        values = problem.outputs.values
        return np.sort(rng.choice(values, min(n, values.size), replace=False))
    low, high = problem.outputs.low, problem.outputs.high
    spread = float(np.ptp(problem.labels)) or 1.0
    anywhere = problem.labels[0] + spread * rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3)
    chain = [float(rng.choice(problem.labels))]
    for _ in range(n // 2):
        chain.append(math.nextafter(chain[-1], math.inf))
    strange = [1e18, -1e18, 1e-300, -1e-300, 5e-324, 1e150, *problem.labels]
    found = np.concatenate((anywhere, chain, rng.choice(strange, 2), np.array([low, high])[np.isfinite([low, high])]))
    found = found[(found >= low) & (found <= high) & ((found > 0) | (not problem.loss.positive_outputs))] + 0.0
    found = np.unique(found)
    return np.sort(rng.choice(found, min(n, found.size), replace=False))


def large(rng: np.random.Generator) -> int:
    """A positive integer of any size."""
    return int(rng.integers(1, 1000)) * 10 ** int(rng.choice([0, 0, 0, 3, 15, 40, 300]))


def random_table(truth: Known, rng: np.random.Generator) -> Table:
    """Columns within the ratio, and rows that their mirror images make equal."""
    problem, k = truth.problem, truth.problem.k
    outputs = allowed_outputs(problem, rng, int(rng.integers(1, 7)))
    ratio = privacy_ratio(problem.epsilon)
    high, low = ratio.numerator, ratio.denominator
    turns = [[int(rng.integers(low, high, endpoint=True)) if high < 2**62 else high for _ in range(k)] for _ in outputs]
    columns = [[large(rng)] * k for _ in outputs]
    for j in range(0, outputs.size - 1, 2):
        mass = large(rng)
        steep = turns[j] if rng.random() < 0.5 else [low + (high - low) * int(rng.integers(2)) for _ in range(k)]
        columns[j] = [mass * step for step in steep]
        columns[j + 1] = [mass * (low + high - step) for step in steep]
    return Table.of_rows(problem.labels, outputs, np.array(columns, dtype=object).T)


def random_arcs(truth: Known, rng: np.random.Generator) -> Table:
    """Intervals that cover every label equally, several of them at one output, or at neighbouring floats."""
    problem = truth.problem
    outputs = allowed_outputs(problem, rng, int(rng.integers(1, 9)))
    source = random.Random(int(rng.integers(2**32)))
    arcs = layered_arcs(source, problem.k, int(rng.integers(1, 5)), outputs.size, large(rng))
    chosen = np.sort(rng.choice(outputs, arcs.n, replace=False))
    return Table.of_arcs(problem.labels, chosen, arcs, privacy_ratio(problem.epsilon))


def of_another_budget(truth: Known, rng: np.random.Generator) -> Table:
    """Randomized response for a smaller budget, and for a larger, which is not private for this one."""
    problem = truth.problem
    ratio = privacy_ratio(problem.epsilon * rng.choice([0.5, 1 - 1e-9, 1 + 1e-9, 1.5]))
    outputs = allowed_outputs(problem, rng, problem.k)
    if outputs.size < problem.k:
        return Table.of_rows(problem.labels, outputs[:1], np.ones((problem.k, 1), dtype=object))
    flips = [[ratio.numerator if i == y else ratio.denominator for i in range(problem.k)] for y in range(problem.k)]
    return Table.of_rows(problem.labels, outputs, np.array(flips, dtype=object))


def with_further_outputs(truth: Known, rng: np.random.Generator) -> Table:
    """The optimum and further outputs, of next to no probability or of much."""
    given, problem = truth.mechanism.table, truth.problem
    extra = np.setdiff1d(allowed_outputs(problem, rng, 3), given.outputs)
    scale = 10 ** int(rng.choice([0, 1, 18, 60, 300]))
    columns = np.full((problem.k, extra.size), 1 + given.total * int(rng.integers(2)), dtype=object)
    outputs, order = np.append(given.outputs, extra), np.argsort(np.append(given.outputs, extra))
    return Table.of_rows(problem.labels, outputs[order], np.hstack((given.weights * scale, columns))[:, order])


def with_moved_weights(truth: Known, rng: np.random.Generator) -> Table:
    """The optimum with a share of one label's probability moved to another output."""
    given = truth.mechanism.table
    weights = given.weights * 10**20
    y, source, target = (int(rng.integers(size)) for size in (given.k, given.n, given.n))
    moved = min(int(weights[y, source]), weights[y, target] // 10 ** int(rng.choice([3, 9, 15, 19])))
    weights[y, source] -= moved
    weights[y, target] += moved
    return Table.of_rows(given.labels, given.outputs, weights)


def with_moved_outputs(truth: Known, rng: np.random.Generator) -> Table:
    """The optimum with its outputs off by a rounding, by little, or by much."""
    given, allowed = truth.mechanism.table, truth.problem.outputs
    factor = 1 + rng.choice([1e-16, 1e-13, 1e-9, 0.1]) * rng.uniform(-1, 1, given.n)
    moved = np.unique(np.clip(given.outputs * factor, allowed.low, allowed.high) + 0.0)
    return given if moved.size < given.n else Table.of_rows(given.labels, moved, given.weights)


def with_spread_outputs(truth: Known, rng: np.random.Generator) -> Table:
    """The optimum with the column of each output divided among a chain of neighbouring floats."""
    given, columns = truth.mechanism.table, dict[float, np.ndarray]()
    for output, column in zip(given.outputs.tolist(), given.weights.T, strict=True):
        shares = rng.integers(1, 10**6, int(rng.integers(20))).tolist()
        for share in [10**9 - sum(shares), *shares]:
            columns[output] = columns.get(output, 0) + share * column
            output = math.nextafter(output, math.inf)
    outputs = sorted(columns)
    return Table.of_rows(given.labels, outputs, np.array([columns[v] for v in outputs]).T)


def unbiased_by_force(truth: Known, rng: np.random.Generator) -> Table:
    """Any table, tabulated: if bias is forbidden it has no bias."""
    given = (random_table if rng.random() < 0.4 else random_arcs)(truth, rng)
    try:
        mechanism = tabulate(Solution(truth.problem, Mechanism(truth.problem, given).randomizer))
    except optrand.errors.NotCertified:
        return given
    assert not truth.problem.unbiased or not any(mechanism.exact_biases)
    return mechanism.table


def shaken_arcs(truth: Known, rng: np.random.Generator) -> Table:
    """Interval columns in floats, the designed ones if there are any, off by a rounding or by much, and tabulated."""
    problem, k = truth.problem, truth.problem.k
    claimed = problem.epsilon * rng.choice([1.0, 1.0, 1.0, 1 - 1e-9, 0.5])
    arcs = design(problem).randomizer.arcs
    if arcs is None or rng.random() < 0.3:
        outputs = rng.choice(allowed_outputs(problem, rng, 4), k)
        masses = np.full(k, 1 / (k + math.expm1(claimed)))
        arcs = Arcs(k, range(k), range(k), outputs, masses)
    size = rng.choice([0.0, 1e-16, 1e-13, 4.5e-10, 0.9e-9, 1e-6])
    masses = arcs.masses * (1 + size * rng.uniform(-1, 1, arcs.n if rng.random() < 0.5 else 1))
    first, last, outputs, rests = arcs.first, arcs.last, arcs.outputs, arcs.rests
    if rng.random() < 0.5:
        # Columns that are doubled, of no mass, of next to none, and of less than none.
        twice = rng.integers(arcs.n, size=2)
        first, last, outputs, rests = (np.concatenate((x, x[twice])) for x in (first, last, outputs, rests))
        masses = np.concatenate((masses, masses[twice] * rng.choice([0.0, 1e-300, 1e-18, -1e-17, 1.0], 2)))
        masses[twice] -= masses[-2:]
    shaken = Randomizer.of_arcs(problem.labels, Arcs(k, first, last, outputs, masses, rests), claimed)
    try:
        return tabulate(Solution(problem, shaken)).table
    except (optrand.errors.NotCertified, optrand.errors.Infeasible):
        return truth.mechanism.table


FOES = [
    *[random_table, random_arcs, of_another_budget, with_further_outputs, with_moved_weights, with_moved_outputs],
    *[with_spread_outputs, unbiased_by_force, shaken_arcs],
]


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_foe_is_certified_what_is_not_so(name: str) -> None:
    truth = known(name)
    assert truth.proven <= truth.attained
    assert name != "three" or OPTIMUM < truth.proven <= truth.attained < OPTIMUM + 1e-9
    proof = truth.mechanism.certificate
    assert proof.gap < 1e-6 + split_cost(truth.mechanism) / (abs(proof.upper) or 1)
    examine(truth, truth.mechanism.table, truth.mechanism.dual)
    for number, foe in enumerate(FOES):
        rng = np.random.default_rng([number, *name.encode()])
        for _ in range(EACH):
            table = foe(truth, rng)
            duals = list(foe_duals(truth, rng))
            examine(truth, table, duals[rng.integers(len(duals))])


# ------------------------------------------------------------------------------------------------ two labels by formula
@by_case(
    "labels, prior, epsilon",
    ([1.7e12, 1.7e12 + 1], [0.5, 0.5], 2.0),
    ([0.0, 1.0], [0.9, 0.1], 1e-6),
    ([-1e15, -1e15 + 1], [0.5, 0.5], 0.3),
    ([0.0, 1e-12], [1.0, 0.0], 8.0),
    ([3.0, 1e150], [0.5, 0.5], 40.0),
)
def test_two_labels_are_answered_by_their_formula(labels, prior, epsilon) -> None:
    """Unbiased on the line: debiased randomized response, for any prior.

    With the ratio ``E`` and the distance ``d`` its outputs lie ``d / (E - 1)`` beyond the labels. A label loses half of
    ``E / (E + 1) (d / (E - 1))**2 + 1 / (E + 1) (E d / (E - 1))**2 = d**2 E / (E - 1)**2``.
    """
    problem = optrand.unbiased_regression(labels, prior, epsilon)
    distance, mass = Fraction(labels[1]) - Fraction(labels[0]), sum(map(Fraction, prior))
    # Falls with the ratio.
    high, low = (mass * distance**2 * ratio / (ratio - 1) ** 2 / 2 for ratio in exponential(epsilon))
    mechanism = optrand.solve(problem)
    proof = certify(mechanism)
    assert proof.lower <= high
    assert proof.lower >= float(low) * (1 - 1e-9)
    assert low <= proof.upper <= float(high) * (1 + 1e-9) + split_cost(mechanism)
    if epsilon == 2:
        assert float(low) == pytest.approx(0.09050770762, abs=1e-11)


# --------------------------------------------------------------------------------------------------- former deceptions
OPTIMUM = 1.945447367
"""Optimum of labels 0, 1, 2 with the prior 0.5, 0.3, 0.2 at epsilon 1, rounded down to ten digits."""


def test_bias_is_not_hidden_by_a_far_output_of_negligible_probability() -> None:
    a = ([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    m = optrand.solve(optrand.regression(*a))
    weights = np.hstack([m.weights * 10**60, np.ones((3, 1), dtype=object)])
    f = mechanism_of(optrand.unbiased_regression(*a), m.dual, [*m.outputs, 1e18], weights)
    assert_error("biased by up to", optrand.certify(f).require, gap=1e-9, error=optrand.errors.NotCertified)


def test_a_value_of_a_grid_is_not_rounded_to_another() -> None:
    """With the values -2, 2**-80, 1 and 3 a share q of label 0 must go to -2, or its mean would be above 0.

    The others being at least ``2**-80``, ``2 q >= (1 - q) 2**-80``, and q costs ``0.5 * 4 / 2``, at any epsilon.
    """
    problem = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], 200.0, outputs=[-2.0, 2.0**-80, 1.0, 3.0])
    arcs = Arcs(2, [0, 1], [0, 1], [2.0**-80, 1.0], np.full(2, 1 / (1 + math.exp(200.0))))
    assert tabulate(Solution(problem, Randomizer.of_arcs([0.0, 1.0], arcs, 200.0))).value > 2.0**-82


def test_columns_on_a_grid_become_a_mechanism_on_that_grid() -> None:
    problem = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], 2.0, outputs=[-2.0, 1e-10, 1.0, 3.0])
    columns = decompose(design(problem).randomizer, math.exp(2.0)).arcs
    mechanism = tabulate(Solution(problem, Randomizer.of_arcs(problem.labels, columns, 2.0)))
    assert 1e-10 in mechanism.outputs
    assert Channel.of_table(mechanism.table).is_feasible(problem)


def test_an_output_near_zero_stays_positive_where_labels_are_far_from_it() -> None:
    problem = optrand.regression([1000.0, 1000.5], [0.5, 0.5], EPSILON, loss=losses.poisson_log)
    arcs = Arcs(2, [0, 1], [0, 1], [1e-300, 1000.0], np.full(2, 1 / (1 + math.e)))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, EPSILON)
    mechanism = tabulate(Solution(problem, randomizer))
    assert mechanism.outputs[0] == 1e-300
    assert mechanism.value == pytest.approx(problem.value(randomizer), rel=1e-12)


def test_an_output_far_from_zero_has_no_rest_that_another_float_is_nearer_to() -> None:
    assert Arcs(1, [0], [0], [1e16], [1.0], [1.0]).rests == 1
    for output, rest in ((1e16, 1.5), (1.0, -3.0), (0.0, 0.25)):
        assert_error("rests of arcs are larger", Arcs, 1, [0], [0], [output], [1.0], [rest])


def test_outputs_further_from_the_origin_than_it_is_from_zero_are_carried_back_exactly() -> None:
    labels = np.array([-3.0, -2.9, -2.85])
    problem = optrand.unbiased_regression(labels, [0.5, 0.3, 0.2], 0.01)
    translation = Translation(problem)
    near = design(translation.apply())
    offsets, far = near.randomizer.arcs, translation.invert(near).randomizer.arcs
    assert translation.origin == -2.9
    assert np.abs(offsets.outputs).max() > 2.9
    for offset, output, rest in zip(offsets.outputs, far.outputs, far.rests, strict=True):
        assert Fraction(offset) + Fraction(translation.origin) == Fraction(output) + Fraction(rest)
    assert optrand.solve(problem).bias == 0


def test_arcs_are_read_at_the_budget_that_they_claim() -> None:
    problem = known("three").problem
    wider = optrand.unbiased_regression(*THREE, 1.5)
    mechanism = tabulate(Solution(wider, design(problem).randomizer))
    assert mechanism.realised_epsilon <= EPSILON
    assert not mechanism.certificate.findings
    assert mechanism.value == pytest.approx(OPTIMUM, rel=1e-9)
    assert Mechanism(wider, known("three").mechanism.table).value == mechanism.value


@pytest.mark.parametrize("shift", [0, -3, 3])
def test_a_small_ratio_is_certified_at_a_budget_near_it(shift: int) -> None:
    """Twice or half as likely, at the budget of log 2 and a rounding, and biased by rounding."""
    problem = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], math.log(2) + 1e-16)
    outputs = np.array([-1.0, 2.0]) - np.array([1.0, -1.0]) * shift * 2.0**-45
    mechanism = mechanism_of(problem, optrand.solve(problem).dual, outputs, [[2, 1], [1, 2]])
    for worst_case in (False, True):
        proof = certify(mechanism, worst_case=worst_case)
        assert bool(proof.findings) == bool(shift)
        assert shift or proof.lower <= proof.upper
