"""Mechanisms made to deceive the certificate: thousands, each statement compared with its definition in rationals.

Of every problem two numbers are known without the package's arithmetic (:mod:`definitions`): what some multipliers
prove, by brute force over all sets of labels, and what some mechanism attains that is feasible beyond doubt. The
optimum lies between them; whatever is certified, of whomever, must allow for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from definitions import Channel, exponential, proven

import optrand
from optrand import Dual, Grid, Interval, Mechanism, Randomizer, certify, losses
from optrand.base.arithmetic import privacy_ratio
from optrand.model.arcs import Arcs, IntegerArcs
from optrand.model.staircase import decompose
from optrand.solvers.translation import Translation

EACH = 20
"""Mechanisms and randomizers of each kind for each problem."""

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


@dataclass(frozen=True)
class Known:
    """A problem, an answer of the package, and between what its optimum lies, computed without it."""

    problem: optrand.Problem
    solution: optrand.Solution
    mechanism: Mechanism
    proven: Fraction
    attained: Fraction


@cache
def known(name: str) -> Known:
    problem = PROBLEMS[name]
    solution = optrand.solve(problem)
    mechanism = optrand.tabulate(solution)
    channel = Channel.of_mechanism(mechanism)
    assert channel.is_feasible(problem)
    return Known(problem, solution, mechanism, proven(problem, solution.dual), channel.objective(problem)[1])


# ------------------------------------------------------------------------------------------------- what must be true


def examine(truth: Known, answer: Mechanism | Randomizer, dual: Dual | None) -> optrand.Certificate:
    """Compare all that is certified with what is so."""
    problem, exact = truth.problem, isinstance(answer, Mechanism)
    proof = certify(problem, answer, dual)
    channel = (Channel.of_mechanism if exact else Channel.of_floats)(answer)
    joined = exact and answer.arcs is not None and problem.loss == losses.squared
    _examine_bounds(truth, channel, proof, joined=joined and not isinstance(problem.outputs, Grid))
    _examine_privacy(channel, proof, exact=exact)
    bias = channel.largest_bias(problem.labels)
    assert bias <= proof.bias
    assert not exact or not bias or math.nextafter(proof.bias, 0) < bias
    if dual is not None:
        without = certify(problem, answer)
        assert (without.lower if proof.maximised else without.upper) == (
            proof.lower if proof.maximised else proof.upper
        )
    _examine_findings(problem, channel, proof, exact=exact)
    return proof


def _examine_bounds(truth: Known, channel: Channel, proof: optrand.Certificate, *, joined: bool) -> None:
    low, high = (-proof.upper, -proof.lower) if proof.maximised else (proof.lower, proof.upper)
    assert low <= high
    assert low <= truth.attained
    assert high >= truth.proven
    if channel.is_feasible(truth.problem):
        least, most = channel.objective(truth.problem)
        assert not proof.findings
        assert low <= least
        # Where neighbouring floats may count as what lies between them, that only lowers the loss.
        assert joined or high >= least
        # Above it is what rounding up a logarithm and a float costs, at most.
        assert high <= math.nextafter(float(most), math.inf) * (1 + math.copysign(1e-15, most))


def _examine_privacy(channel: Channel, proof: optrand.Certificate, *, exact: bool) -> None:
    ratio = channel.ratio
    if ratio is None:
        assert proof.epsilon == math.inf
        assert proof.findings
        return
    assert ratio <= exponential(proof.epsilon)[1]
    if exact and proof.epsilon:
        assert ratio > exponential(math.nextafter(proof.epsilon, 0))[0]


def _examine_findings(problem: optrand.Problem, channel: Channel, proof: optrand.Certificate, *, exact: bool) -> None:
    scale = float(np.ptp(problem.labels)) or abs(float(problem.labels[0])) or 1.0
    # A little more than what is documented to be forgiven.
    forgiven = 0.0 if exact else 1.001e-9
    broken = [
        channel.worst_row > forgiven,
        problem.bias_penalty == math.inf and channel.largest_bias(problem.labels) > max(forgiven, 2e-12) * scale,
        channel.ratio is None or channel.ratio > exponential(problem.epsilon * (1 + forgiven) + forgiven * 1e-6)[1],
        # What an output far from zero exceeds its float by is forgiven.
        not Channel(exactly_floats(channel), channel.rows).is_allowed(problem),
    ]
    if any(broken):
        assert proof.findings
    if proof.findings:
        assert proof.gap == math.inf
        with pytest.raises(optrand.errors.NotCertified):
            proof.require(gap=math.inf)


def exactly_floats(channel: Channel) -> list[Fraction]:
    return [Fraction(float(v)) for v in channel.outputs]


# ------------------------------------------------------------------------------------------------ multipliers of a foe


def foe_duals(truth: Known, rng: np.random.Generator):
    """Good ones, scaled ones, random ones, enormous ones, and those of another problem."""
    good, k = truth.solution.dual, truth.problem.k
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
    other = known("three").solution.dual
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


def random_table(truth: Known, rng: np.random.Generator) -> Mechanism:
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
    return Mechanism(problem, None, outputs, np.array(columns, dtype=object).T, ratio)


def random_arcs(truth: Known, rng: np.random.Generator) -> Mechanism:
    """Intervals that cover every label equally, several of them at one output, or at neighbouring floats."""
    problem, k = truth.problem, truth.problem.k
    outputs = allowed_outputs(problem, rng, int(rng.integers(1, 9)))
    at, first, last, masses = [], [], [], []
    for _ in range(int(rng.integers(1, 5))):
        mass, begin = large(rng), 0
        while begin < k:
            end = int(rng.integers(begin, k))
            at.append(int(rng.integers(outputs.size)))
            first.append(begin)
            last.append(end)
            masses.append(mass)
            begin = end + 1
    used, at = np.unique(at, return_inverse=True)
    order = np.argsort(at, kind="stable")
    arcs = IntegerArcs(k, *(np.array(part)[order] for part in (first, last, at)), np.array(masses, dtype=object)[order])
    return Mechanism(problem, None, outputs[used], arcs, privacy_ratio(problem.epsilon))


def nudged_outputs(truth: Known, rng: np.random.Generator) -> Mechanism:
    """The optimum with its outputs scaled or moved, by a rounding or a little more."""
    given, allowed = truth.mechanism, truth.problem.outputs
    share = rng.choice([2.0**-53, 4.5e-10, 1e-12, 5e-13, 1e-9, 1e-6]) * rng.choice([-1, 1])
    outputs = given.outputs * (1 + share) if rng.random() < 0.5 else given.outputs + share
    if rng.random() < 0.3:
        outputs = np.where(rng.random(outputs.size) < 0.5, np.nextafter(given.outputs, math.inf), given.outputs)
    outputs = np.clip(outputs, allowed.low, allowed.high)
    if isinstance(allowed, Grid) or (np.diff(outputs) <= 0).any():
        outputs = given.outputs
    return Mechanism(given.problem, None, outputs, given.table, given.ratio)


def far_outputs(truth: Known, rng: np.random.Generator) -> Mechanism:
    """The optimum, and with next to no probability outputs that pull all means aside, or cancel."""
    given = truth.mechanism
    extra = np.setdiff1d(allowed_outputs(truth.problem, rng, 4), given.outputs)
    if rng.random() < 0.5:
        extra = np.union1d(extra, -extra)
        extra = np.setdiff1d(
            extra[(extra >= truth.problem.outputs.low) & (extra <= truth.problem.outputs.high)], given.outputs
        )
        extra = (
            extra[np.isin(extra, truth.problem.outputs.values)] if isinstance(truth.problem.outputs, Grid) else extra
        )
        extra = extra[extra > 0] if truth.problem.loss.positive_outputs else extra
    outputs = np.concatenate((given.outputs, extra))
    order = np.argsort(outputs)
    factor = 10 ** int(rng.choice([3, 12, 25, 60, 400]))
    weights = np.hstack((given.weights * factor, np.ones((truth.problem.k, extra.size), dtype=object)))
    return Mechanism(given.problem, None, outputs[order], weights[:, order], given.ratio)


def of_another_budget(truth: Known, rng: np.random.Generator) -> Mechanism:
    """A mechanism for a smaller budget, and one for a larger, which is none for this one."""
    problem = truth.problem
    budget = problem.epsilon * rng.choice([0.5, 1 - 1e-9, 1 + 1e-9, 1 + 2.0**-52, 1.5])
    other = optrand.regression(problem.labels, problem.prior, budget)
    ratio = privacy_ratio(budget)
    outputs = allowed_outputs(problem, rng, problem.k)
    if outputs.size < problem.k:
        return Mechanism(other, None, outputs[:1], np.ones((problem.k, 1), dtype=object), ratio)
    flips = [[ratio.numerator if i == y else ratio.denominator for i in range(problem.k)] for y in range(problem.k)]
    return Mechanism(other, None, outputs, np.array(flips, dtype=object), ratio)


def unbiased_by_force(truth: Known, rng: np.random.Generator) -> Mechanism:
    """Whatever randomizer, made a mechanism: where bias is forbidden it has none at all."""
    given = (random_table if rng.random() < 0.4 else random_arcs)(truth, rng)
    try:
        mechanism = optrand.tabulate(truth.problem, given.randomizer)
    except optrand.errors.NotCertified:
        return given
    assert not truth.problem.unbiased or not any(mechanism.exact_biases)
    return mechanism


# --------------------------------------------------------------------------------------- randomizers in floats of a foe


def shaken_floats(truth: Known, rng: np.random.Generator) -> Randomizer:
    """The optimum in floats: entries, columns and rows off by a rounding, by what is forgiven, and by more."""
    given, problem = truth.mechanism.randomizer, truth.problem
    size = rng.choice([1e-17, 1e-16, 1e-13, 4.5e-10, 0.9e-9, 1.1e-9, 1e-6])
    shape = [(problem.k, given.n), (1, given.n), (problem.k, 1)][rng.integers(3)]
    matrix = given.matrix * (1 + size * rng.uniform(-1, 1, shape))
    if rng.random() < 0.3:
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return Randomizer(problem.labels, given.outputs, matrix, problem.epsilon)


def steeper_floats(truth: Known, rng: np.random.Generator) -> Randomizer:
    """The optimum at a budget that is exceeded by less, or more, than what is forgiven; rows are made right again."""
    given, problem = truth.mechanism.randomizer, truth.problem
    bottom = given.matrix.min(axis=0)
    steep = 1 + problem.epsilon * rng.choice([1e-16, 1e-12, 0.9e-9, 1.1e-9, 1e-3])
    matrix = bottom * (given.matrix / bottom) ** steep
    return Randomizer(problem.labels, given.outputs, matrix / matrix.sum(axis=1, keepdims=True), problem.epsilon)


def strange_floats(truth: Known, rng: np.random.Generator) -> Randomizer:
    """The optimum and further outputs, of subnormal, negligible, negative or plain wrong probability."""
    given, problem = truth.mechanism.randomizer, truth.problem
    extra = np.setdiff1d(allowed_outputs(problem, rng, 3), given.outputs)
    mass = rng.choice([5e-324, 1e-310, 1e-300, 1e-30, 1e-19, 1e-10, 0.0, -1e-300])
    columns = mass * rng.choice([1.0, 1.0, 1.0, 2.0], (problem.k, extra.size))
    outputs = np.concatenate((given.outputs, extra))
    order = np.argsort(outputs)
    return Randomizer(problem.labels, outputs[order], np.hstack((given.matrix, columns))[:, order], problem.epsilon)


def shaken_arcs(truth: Known, rng: np.random.Generator) -> Randomizer:
    """Interval columns in floats, the optimum's own where it has any, off by a rounding or by what is forgiven."""
    problem, k = truth.problem, truth.problem.k
    claimed = problem.epsilon * rng.choice([1.0, 1.0, 1.0, 1 - 1e-9, 1 + 0.9e-9, 0.5, 2.0])
    arcs = truth.solution.randomizer.arcs
    if arcs is None or rng.random() < 0.3:
        outputs = rng.choice(allowed_outputs(problem, rng, 4), k)
        masses = np.full(k, 1 / (k + math.expm1(claimed)))
        arcs = Arcs(k, range(k), range(k), outputs, masses)
    size = rng.choice([0.0, 1e-16, 1e-13, 4.5e-10, 0.9e-9, 1e-6])
    masses = arcs.masses * (1 + size * rng.uniform(-1, 1, arcs.n if rng.random() < 0.5 else 1))
    outputs = arcs.outputs
    if not isinstance(problem.outputs, Grid) and not arcs.rests.any():
        moved = outputs * (1 + size * rng.uniform(-1, 1)) if rng.random() < 0.5 else np.nextafter(outputs, math.inf)
        outputs = np.clip(moved, problem.outputs.low, problem.outputs.high)
    first, last, rests = arcs.first, arcs.last, arcs.rests
    if rng.random() < 0.5:
        # Columns that are doubled, of no mass, of next to none, and of less than none.
        twice = rng.integers(arcs.n, size=2)
        first, last, outputs, rests = (np.concatenate((x, x[twice])) for x in (first, last, outputs, rests))
        masses = np.concatenate((masses, masses[twice] * rng.choice([0.0, 1e-300, 1e-18, -1e-17, 1.0], 2)))
        masses[twice] -= masses[-2:]
    return Randomizer.of_arcs(problem.labels, Arcs(k, first, last, outputs, masses, rests), claimed)


FOES = [
    random_table,
    random_arcs,
    nudged_outputs,
    far_outputs,
    of_another_budget,
    unbiased_by_force,
    shaken_floats,
    steeper_floats,
    strange_floats,
    shaken_arcs,
]


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_foe_is_certified_what_is_not_so(name: str) -> None:
    truth = known(name)
    assert truth.proven <= truth.attained
    proof = certify(truth.problem, truth.mechanism, truth.solution.dual)
    assert proof.gap < 1e-6
    for number, foe in enumerate(FOES):
        rng = np.random.default_rng([number, *name.encode()])
        for _ in range(EACH):
            answer = foe(truth, rng)
            duals = list(foe_duals(truth, rng))
            examine(truth, answer, duals[rng.integers(len(duals))])


def test_thousands_are_examined() -> None:
    assert len(PROBLEMS) * len(FOES) * EACH >= 5000


# ------------------------------------------------------------------------------------------------ two labels by formula


@pytest.mark.parametrize(
    ("labels", "prior", "epsilon"),
    [
        ([1.7e12, 1.7e12 + 1], [0.5, 0.5], 2.0),
        ([0.0, 1.0], [0.9, 0.1], 1e-6),
        ([-1e15, -1e15 + 1], [0.5, 0.5], 0.3),
        ([0.0, 1e-12], [1.0, 0.0], 8.0),
        ([3.0, 1e150], [0.5, 0.5], 40.0),
    ],
)
def test_two_labels_are_answered_by_their_formula(labels, prior, epsilon) -> None:
    """Unbiased on the line: debiased randomized response, whatever the prior.

    With the ratio ``E`` and the distance ``d`` its outputs lie ``d / (E - 1)`` beyond the labels; a label loses half of
    ``E / (E + 1) (d / (E - 1))**2 + 1 / (E + 1) (E d / (E - 1))**2 = d**2 E / (E - 1)**2``.
    """
    problem = optrand.unbiased_regression(labels, prior, epsilon)
    distance, mass = Fraction(labels[1]) - Fraction(labels[0]), sum(map(Fraction, prior))
    # Falls with the ratio.
    high, low = (mass * distance**2 * ratio / (ratio - 1) ** 2 / 2 for ratio in exponential(epsilon))
    solution = optrand.solve(problem)
    for subject in (solution, optrand.tabulate(solution)):
        proof = certify(subject)
        assert proof.lower <= high
        assert proof.upper >= low
        assert proof.require(gap=1e-9).upper <= float(high) * (1 + 1e-9)
    if epsilon == 2:
        assert float(low) == pytest.approx(0.09050770762, abs=1e-11)


# ----------------------------------------------------------------------------------------- what deceived it in the past


OPTIMUM = 1.945447367
"""Of labels 0, 1, 2 with the prior 0.5, 0.3, 0.2 at epsilon 1, rounded down to ten digits: asserted below."""


def test_the_optimum_of_three_labels() -> None:
    truth = known("three")
    assert OPTIMUM < truth.proven <= truth.attained < OPTIMUM + 1e-9


def test_bias_is_not_hidden_by_a_far_output_of_negligible_probability() -> None:
    a = ([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    s = optrand.solve(optrand.regression(*a))
    m = optrand.tabulate(s)
    weights = np.hstack([m.weights * 10**60, np.ones((3, 1), dtype=object)])
    f = Mechanism(optrand.unbiased_regression(*a), s.dual, [*m.outputs, 1e18], weights, m.ratio)
    with pytest.raises(optrand.errors.NotCertified, match="biased by up to"):
        optrand.certify(f, exact=True).require(gap=1e-9)


def test_a_budget_that_is_exceeded_within_tolerance_buys_nothing() -> None:
    problem = known("three").problem
    beyond = optrand.solve(optrand.unbiased_regression(*THREE, EPSILON + 0.9e-9)).randomizer
    for table in (beyond.columns, beyond.matrix):
        proof = certify(
            problem, Randomizer(beyond.labels, beyond.outputs, table, beyond.epsilon), known("three").solution.dual
        )
        assert problem.value(beyond) < OPTIMUM < proof.upper


@pytest.mark.parametrize("share", [4.5e-10, 5e-13, 2.0**-52])
def test_outputs_that_are_drawn_together_gain_nothing(share: float) -> None:
    truth = known("three")
    given = truth.mechanism
    for table in (given.table, given.weights):
        drawn = Mechanism(truth.problem, truth.solution.dual, given.outputs * (1 - share), table, given.ratio)
        proof = certify(drawn)
        assert proof.upper >= truth.proven
        assert proof.findings or share < 2.0**-40


def test_what_lies_between_two_values_of_a_grid_is_no_output() -> None:
    """Half of the answers two to the left, half on the label: on the line they may count as one to the left."""
    problem, at = PROBLEMS["biased on neighbouring floats"], [0, 1, 2, 3]
    arcs = IntegerArcs(2, [0, 0, 1, 1], [0, 0, 1, 1], at, [1, 1, 1, 1])
    mechanism = Mechanism(problem, None, FAR + np.array([-2.0, 0.0, 4.0, 6.0]), arcs, privacy_ratio(1.0))
    loss = Channel.of_mechanism(mechanism).objective(problem)[0]
    upper = certify(mechanism).upper
    assert math.nextafter(upper, 0) < loss <= upper
    assert mechanism.losses(bias_penalty=problem.bias_penalty) @ problem.prior == pytest.approx(float(loss), rel=1e-15)
    elsewhere = optrand.regression(problem.labels, problem.prior, 1.0)
    assert certify(elsewhere, mechanism).upper < loss


def test_a_value_of_a_grid_is_not_rounded_to_another() -> None:
    """Of the values -2, 2**-80, 1 and 3 some share q of label 0 must go to -2, or its mean would be above 0.

    The others being at least ``2**-80``, ``2 q >= (1 - q) 2**-80``, and q costs ``0.5 * 4 / 2``, at any epsilon.
    """
    problem = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], 200.0, outputs=[-2.0, 2.0**-80, 1.0, 3.0])
    arcs = Arcs(2, [0, 1], [0, 1], [2.0**-80, 1.0], np.full(2, 1 / (1 + math.exp(200.0))))
    assert certify(problem, Randomizer.of_arcs([0.0, 1.0], arcs, 200.0)).upper > 2.0**-82


def test_columns_on_a_grid_become_a_mechanism_on_that_grid() -> None:
    problem = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], 2.0, outputs=[-2.0, 1e-10, 1.0, 3.0])
    columns = decompose(optrand.solve(problem).randomizer, math.exp(2.0)).arcs
    mechanism = optrand.tabulate(problem, Randomizer.of_arcs(problem.labels, columns, 2.0))
    assert 1e-10 in mechanism.outputs
    assert Channel.of_mechanism(mechanism).is_feasible(problem)


def test_an_output_near_zero_stays_positive_where_labels_are_far_from_it() -> None:
    problem = optrand.regression([1000.0, 1000.5], [0.5, 0.5], EPSILON, loss=losses.poisson_log)
    arcs = Arcs(2, [0, 1], [0, 1], [1e-300, 1000.0], np.full(2, 1 / (1 + math.e)))
    randomizer = Randomizer.of_arcs(problem.labels, arcs, EPSILON)
    assert certify(problem, randomizer).upper == pytest.approx(problem.value(randomizer), rel=1e-12)


def test_an_output_far_from_zero_has_no_rest_that_another_float_is_nearer_to() -> None:
    assert Arcs(1, [0], [0], [1e16], [1.0], [1.0]).rests == 1
    for output, rest in ((1e16, 1.5), (1.0, -3.0), (0.0, 0.25)):
        with pytest.raises(optrand.errors.InvalidInput, match="rests of arcs are what rounding"):
            Arcs(1, [0], [0], [output], [1.0], [rest])


def test_outputs_further_from_the_origin_than_it_is_from_zero_are_carried_back_exactly() -> None:
    labels = np.array([-3.0, -2.9, -2.85])
    problem = optrand.unbiased_regression(labels, [0.5, 0.3, 0.2], 0.01)
    translation = Translation(problem)
    near = optrand.solve(translation.centred)
    offsets, far = near.randomizer.arcs, translation.back(near).randomizer.arcs
    assert translation.origin == -2.9
    assert np.abs(offsets.outputs).max() > 2.9
    for offset, output, rest in zip(offsets.outputs, far.outputs, far.rests, strict=True):
        assert Fraction(offset) + Fraction(translation.origin) == Fraction(output) + Fraction(rest)
    assert optrand.tabulate(optrand.solve(problem)).bias == 0


def test_arcs_are_read_at_the_budget_that_they_claim() -> None:
    truth = known("three")
    wider = optrand.unbiased_regression(*THREE, 1.5)
    proof = certify(wider, truth.solution.randomizer)
    assert not proof.findings
    assert proof.upper == pytest.approx(OPTIMUM, rel=1e-9)
    assert certify(wider, truth.mechanism).upper == proof.upper
    mechanism = optrand.tabulate(wider, truth.solution.randomizer)
    assert mechanism.realised_epsilon <= EPSILON
    assert certify(mechanism).upper == proof.upper


def test_the_bias_of_floats_is_stated_though_it_cancels_in_floats() -> None:
    """Both outputs with probability one half: means are 0 whatever the label, but at 1e18 floats are 128 apart."""
    coin = Randomizer(THREE[0], [-1e18, 1e18], [[0.5, 0.5]] * 3, EPSILON)
    proof = certify(known("three").problem, coin)
    assert proof.bias == 2
    assert proof.findings


def test_a_row_of_a_single_output_is_made_whole() -> None:
    problem = optrand.unbiased_regression([3.0], [1.0], 1.0, outputs=[3.0])
    proof = certify(problem, Randomizer([3.0], [3.0], [[1 - 1e-10]], 1.0))
    assert (proof.upper, proof.findings) == (0.0, ())


@pytest.mark.parametrize("kind", ["table", "arcs"])
@pytest.mark.parametrize("shift", [0, -3, 3])
def test_a_ratio_that_is_declared_too_large_repairs_nothing_at_a_smaller_budget(kind: str, shift: int) -> None:
    """Twice or half as likely, declared with a ratio of 20, and asked about at the budget of 2; biased by rounding."""
    larger = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], 3.0)
    smaller = optrand.unbiased_regression([0.0, 1.0], [0.5, 0.5], math.log(2) + 1e-16)
    weights = (
        [[2, 1], [1, 2]]
        if kind == "table"
        else IntegerArcs(2, [0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [13, 6, 6, 13])
    )
    outputs = np.array([-1.0, 2.0]) - np.array([1.0, -1.0]) * shift * 2.0**-45
    mechanism = Mechanism(larger, None, outputs, weights, Fraction(20))
    best = optrand.solve(smaller)
    proof = certify(smaller, mechanism, best.dual)
    assert proof.findings or proof.lower <= proof.upper
    worst = optrand.certify(smaller, mechanism, best.dual, worst_case=True)
    assert worst.findings or worst.lower <= worst.upper
