"""Unbiased one-hot vectors: exact identities, bounds against every other channel, optima by independent ways."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from asserting import assert_error, by_case
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from words import enumerated

from optrand import errors, unbiased_vectors
from optrand.base._arithmetic import exp_bracket, privacy_ratio
from optrand.model._randomizer import LabelRandomizer
from optrand.model._table import Table
from optrand.sampling._entropy import SeededEntropy
from optrand.vectors import UnbiasedVectors, best_decoder
from optrand.vectors._bound import (
    ClassGroups,
    VectorDual,
    exp_above,
    least_value,
    lower_bound,
    response_is_best,
    subset_selection_loss,
    subset_size,
)
from optrand.vectors._design import best_design

K6 = {
    "geometric": 0.5 ** np.arange(6),
    "spike": np.array([0.9, 0.02, 0.02, 0.02, 0.02, 0.02]),
    "two": np.array([0.45, 0.45, 0.025, 0.025, 0.025, 0.025]),
    "three": np.array([0.25, 0.25, 0.25, 0.1, 0.1, 0.05]),
    "uniform": np.full(6, 1 / 6),
    "zeros": np.array([0.6, 0.3, 0.1, 0.0, 0.0, 0.0]),
    "rough": np.random.default_rng(0).dirichlet(np.ones(6)),
}
K6 = {name: prior / prior.sum() for name, prior in K6.items()}


def subsets(k):
    """Every set of classes, neither empty nor full, as rows of bits."""
    return np.array(list(itertools.product([0, 1], repeat=k)))[1:-1]


def bits(k, ratio):
    """The bits of [Z25], all 2**K vectors."""
    right = math.sqrt(ratio) / (1 + math.sqrt(ratio))
    vectors = np.array(list(itertools.product([0, 1], repeat=k)))
    return np.array([np.prod(np.where(vectors == row, right, 1 - right), axis=1) for row in np.eye(k, dtype=int)])


def table_in_fractions(randomizer):
    """Probabilities and vectors, written out, in rationals."""
    weights = randomizer.weights.tolist()
    total = sum(weights[0])
    vectors = [randomizer.exact_vector(np.flatnonzero(members)) for members in randomizer.sets]
    return [[Fraction(weight, total) for weight in row] for row in weights], vectors


def exact_loss(prior, rows, vectors):
    """Half the expected squared distance from the one-hot vector, by its definition."""
    squares = [
        sum(q * sum((x - (z == y)) ** 2 for z, x in enumerate(v)) for q, v in zip(row, vectors, strict=True))
        for y, row in enumerate(rows)
    ]
    chances = [Fraction(p) for p in prior.tolist()]
    return sum(p * square for p, square in zip(chances, squares, strict=True)) / sum(chances) / 2


def ungrouped(prior):
    """Groups of one class each."""
    groups = ClassGroups.of_prior(np.asarray(prior, dtype=float))
    return ClassGroups(groups.weights, tuple(np.array([y]) for y in range(groups.k)))


def proven_bound(groups, epsilon):
    """The bound that the multipliers of the best design prove."""
    design = best_design(groups, epsilon)
    return lower_bound(groups, epsilon, design.dual, design.counts)


# ----------------------------------------------------------------------------------------------------- exact identities
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 40.0])
@pytest.mark.parametrize("name", K6)
def test_rows_means_and_loss_are_exact_in_rationals(name, epsilon):
    prior = K6[name]
    randomizer = unbiased_vectors(prior, epsilon)
    rows, vectors = table_in_fractions(randomizer)
    assert len(vectors) == randomizer.n == len(set(map(tuple, randomizer.sets.tolist())))
    assert all(sum(row) == 1 for row in rows)
    for y, row in enumerate(rows):
        mean = [sum(q * v[z] for q, v in zip(row, vectors, strict=True)) for z in range(6)]
        assert mean == [int(z == y) for z in range(6)]
    assert randomizer.exact_value == exact_loss(prior, rows, vectors)
    proof = randomizer.certificate.require(gap=1e-14)
    assert Fraction(proof.lower) <= randomizer.exact_value <= Fraction(proof.upper)
    assert proof.epsilon <= epsilon == proof.target_epsilon
    # The same in floats.
    moments = randomizer.moments(range(6))
    losses = [float(exact_loss(np.eye(6)[y], rows, vectors)) for y in range(6)]
    assert moments.variances / 2 == pytest.approx(losses, rel=1e-12)
    assert moments.loss(prior) == pytest.approx(randomizer.value, rel=1e-12)
    assert np.abs(randomizer.matrix @ randomizer.vectors - np.eye(6)).max() < 1e-12 * max(1, 1 / epsilon)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 40.0])
def test_privacy_holds_in_integers_and_is_used_up(epsilon):
    randomizer = unbiased_vectors(K6["two"], epsilon)
    table = Table.of_rows(range(6), range(randomizer.weights.shape[1]), randomizer.weights)
    assert table.largest_ratio == randomizer.ratio
    assert randomizer.ratio < exp_bracket(epsilon)[0]
    assert exp_bracket(epsilon)[1] - randomizer.ratio <= (exp_bracket(epsilon)[1] - 1) / 2**50


def test_only_private_tables_can_be_built():
    good = unbiased_vectors([0.9, 0.06, 0.04], 1.0)
    parts = {name: getattr(good, name) for name in ("prior", "epsilon", "groups", "counts", "masses", "ratio", "dual")}
    masses = good.masses.copy()
    masses[0] += 1
    assert_error("different totals", UnbiasedVectors, **parts | {"masses": masses})
    assert_error("integers above 0", UnbiasedVectors, **parts | {"masses": good.masses * 0})
    assert_error("masses must be Python integers", UnbiasedVectors, **parts | {"masses": good.masses.astype(float)})
    for name in ("masses", "counts"):
        hidden = np.ma.array(parts[name], mask=np.ones(parts[name].shape, dtype=bool))
        assert_error(f"{name} is a masked array", UnbiasedVectors, **parts | {name: hidden})
    assert_error("types of subsets", UnbiasedVectors, **parts | {"counts": good.counts + 5})
    assert_error("ratio", UnbiasedVectors, **parts | {"ratio": exp_bracket(1.0)[1]})
    for ratio in (Fraction(1, 100), Fraction(1), 2.0, 2, type("Other", (Fraction,), {})(2)):
        assert_error(r"expected a fractions.Fraction above 1", UnbiasedVectors, **parts | {"ratio": ratio})
    pairs = unbiased_vectors([0.9, 0.05, 0.05], 1.0)
    lost = {"counts": np.array([[1, 0], [0, 2]]), "masses": np.array([1, 1], dtype=object), "dual": None}
    with pytest.raises(errors.Infeasible, match="distinguish all classes"):
        UnbiasedVectors(pairs.prior, 1.0, pairs.groups, ratio=pairs.ratio, **lost)
    # Any covering masses are private and unbiased, and the certificate states their loss.
    other = UnbiasedVectors(**parts | {"counts": 1 - np.eye(3, dtype=int), "masses": np.array([1, 1, 1], dtype=object)})
    assert other.certificate.findings == ()
    assert other.certificate.lower == good.certificate.lower
    assert other.certificate.upper > good.certificate.upper
    with pytest.raises(errors.NotCertified):
        UnbiasedVectors(**parts | {"dual": None}).certificate.require(gap=0.5)


# ------------------------------------------------------------------------------------------------------------- decoders
@settings(deadline=None, max_examples=30)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_no_unbiased_decoder_is_better_and_the_value_is_the_trace(k, seed):
    rng = np.random.default_rng(seed)
    matrix, prior = rng.dirichlet(np.ones(k + 3), k), rng.dirichlet(np.ones(k))
    decoder = best_decoder(matrix, prior)
    assert np.abs(matrix @ decoder.vectors - np.eye(k)).max() < 1e-8
    chances = prior @ matrix
    information = (matrix / chances) @ matrix.T
    assert information @ prior == pytest.approx(np.ones(k))
    assert decoder.value == pytest.approx((np.trace(np.linalg.inv(information)) - 1) / 2, rel=1e-6)
    # A change that keeps the means makes it worse, by exactly half its own mean square.
    other = (np.eye(k + 3) - np.linalg.pinv(matrix) @ matrix) @ rng.normal(size=(k + 3, k))
    distances = ((decoder.vectors + other - np.eye(k)[:, None]) ** 2).sum(axis=2)
    worse = (prior @ (matrix * distances).sum(axis=1)) / 2
    added = (chances @ (other**2).sum(axis=1)) / 2
    assert worse == pytest.approx(decoder.value + added, rel=1e-6)


def test_without_its_one_the_value_is_false_and_a_decoder_for_another_prior_is_worse():
    channel, prior = bits(4, math.e), np.array([0.7, 0.1, 0.1, 0.1])
    decoder = best_decoder(channel, prior)
    information = (channel / (prior @ channel)) @ channel.T
    assert decoder.value == pytest.approx(np.trace(np.linalg.inv(information)) / 2 - 0.5)
    uniform = best_decoder(channel, np.full(4, 0.25)).vectors
    distances = ((uniform - np.eye(4)[:, None]) ** 2).sum(axis=2)
    assert (prior @ (channel * distances).sum(axis=1)) / 2 > decoder.value * 1.01


def test_symbols_that_cost_nothing_are_used_first():
    # The third symbol occurs under the class of prior 0 only: the other class is determined by the first two.
    channel = np.array([[0.75, 0.25, 0.0], [0.25, 0.5, 0.25]])
    decoder = best_decoder(channel, [1.0, 0.0])
    assert channel @ decoder.vectors == pytest.approx(np.eye(2), abs=1e-12)
    # Mean (1, 0) under class 0 without any variance: nothing is better.
    assert decoder.value == pytest.approx(0, abs=1e-12)
    assert decoder.vectors[:2] == pytest.approx(np.array([[1.0, 0.0], [1.0, 0.0]]), abs=1e-12)


@by_case(
    "matrix, prior, words",
    ([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], "linearly dependent"),
    ([[1.0], [1.0]], [0.5, 0.5], "linearly dependent"),
    ([[0.5, 0.6], [0.5, 0.5]], [0.5, 0.5], "do not sum to 1"),
    ([[1.5, -0.5], [0.5, 0.5]], [0.5, 0.5], "negative"),
    ([[math.nan, 1.0], [0.5, 0.5]], [0.5, 0.5], "NaN"),
    ([[1.0, 0.0]], [0.5, 0.5], "a row for each"),
    ([["a", "b"], ["c", "d"]], [0.5, 0.5], "numbers"),
    ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.6], "prior sums"),
)
def test_channels_without_an_unbiased_decoder_are_refused(matrix, prior, words):
    error = errors.Infeasible if "dependent" in words else errors.InvalidInput
    assert_error(words, best_decoder, matrix, prior, error=error)


# --------------------------------------------------------------------------------------------------------------- optima
@pytest.mark.parametrize("k", [4, 7])
@pytest.mark.parametrize("epsilon", [0.3, 1.7, 3.0])
def test_under_a_uniform_prior_one_size_is_the_optimum_over_all_subsets(k, epsilon):
    """Enumeration that knows nothing of the symmetry, with its own bound, against the closed form."""
    groups = ungrouped(np.full(k, 1 / k))
    design = best_design(groups, epsilon)
    bound = lower_bound(groups, epsilon, design.dual, design.counts)
    closed = unbiased_vectors(np.full(k, 1 / k), epsilon)
    assert closed.masses.size == 1
    # The loss falls as the ratio grows: at a ratio below exp(epsilon) it is above the optimum.
    low = exp_bracket(epsilon)[0]
    assert bound <= subset_selection_loss(k, low, subset_size(k, low))
    assert float(bound) == pytest.approx(closed.value, rel=1e-12)
    assert closed.certificate.gap <= 1e-14
    assert set(design.counts.sum(axis=1)[design.masses > max(design.masses) >> 20]) == {closed.counts[0, 0]}


@pytest.mark.parametrize("k", [2, 3, 6, 10, 57])
@pytest.mark.parametrize("ratio", [Fraction(1001, 1000), Fraction(3, 2), Fraction(3), Fraction(10), Fraction(200)])
def test_the_better_integer_beside_k_over_e_plus_1_beats_every_size(k, ratio):
    best = subset_size(k, ratio)
    assert subset_selection_loss(k, ratio, best) == min(subset_selection_loss(k, ratio, d) for d in range(1, k))
    assert best in {1, math.floor(k / (ratio + 1)), math.ceil(k / (ratio + 1))}


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("prior", [*K6.values(), np.random.default_rng(0).dirichlet(np.full(8, 0.3))])
def test_a_cone_program_over_all_subsets_finds_nothing_better(prior, epsilon):
    """The primal, as anybody would state it, solved by cvxpy."""
    cp = pytest.importorskip("cvxpy")
    k, ratio = prior.size, math.exp(epsilon)
    columns = 1 + (ratio - 1) * subsets(k)
    n = len(columns)
    masses, moments, squares = cp.Variable(n, nonneg=True), cp.Variable((n, k)), cp.Variable(n)
    ends = cp.hstack([math.sqrt(2) * moments, cp.reshape(squares - masses, (n, 1), order="C")])
    constraints = [
        columns.T @ moments == np.eye(k),
        columns.T @ masses == np.ones(k),
        cp.SOC(squares + masses, ends, axis=1),
    ]
    program = cp.Problem(cp.Minimize((columns @ prior) @ squares), constraints)
    program.solve(solver="CLARABEL")
    assert unbiased_vectors(prior, epsilon).value == pytest.approx(program.value - 0.5, rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 6), st.floats(0.05, 5.0), st.integers(0, 2**32 - 1))
def test_no_private_channel_is_below_the_bound(k, epsilon, seed):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(k, 0.5))
    bound = unbiased_vectors(prior, epsilon).certificate.lower
    # Columns within the ratio, of rows made equal: staircases or not.
    columns = rng.uniform(1, math.exp(epsilon), (k, 3 * k)) if seed % 2 else 1 + math.expm1(epsilon) * subsets(k).T
    columns = columns * rng.dirichlet(np.full(columns.shape[1], 0.3))
    lift = (columns.sum(axis=1).max() - columns.sum(axis=1)) / math.expm1(epsilon)
    channel = np.hstack((columns, (1 + math.expm1(epsilon) * np.eye(k)) * lift))
    channel = channel / channel.sum(axis=1)[:, None]
    try:
        decoder = best_decoder(channel, prior)
    except errors.Infeasible:
        return
    assert decoder.value >= bound * (1 - 1e-9)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.floats(0.1, 4.0), st.integers(0, 2**32 - 1))
def test_perturbed_multipliers_never_prove_more_than_the_optimum(k, epsilon, seed):
    rng = np.random.default_rng(seed)
    randomizer = unbiased_vectors(rng.dirichlet(np.ones(k)), epsilon)
    dual = randomizer.dual
    if dual is None:
        return

    def shaken(numbers):
        factors = 1 + rng.normal(size=numbers.shape) * 10.0 ** -rng.integers(1, 6)
        scaled = [int(x * Fraction(f)) for x, f in zip(numbers.flat, factors.flat, strict=True)]
        return np.array(scaled, dtype=object).reshape(numbers.shape)

    other = VectorDual(shaken(dual.between), shaken(dual.within), dual.level, shaken(dual.slopes))
    assert 0 <= lower_bound(randomizer.groups, epsilon, other, randomizer.counts) <= randomizer.exact_value
    # Scales are of no account.
    same = VectorDual(dual.between * 3, dual.within * 3, dual.level * 7, dual.slopes * 7)
    ours = lower_bound(randomizer.groups, epsilon, dual, randomizer.counts)
    assert float(lower_bound(randomizer.groups, epsilon, same, randomizer.counts)) == pytest.approx(
        float(ours), rel=1e-12
    )
    # One subset that is left out of the prices would make a false bound.
    nothing = VectorDual(dual.between, dual.within, -dual.level, dual.slopes)
    assert lower_bound(randomizer.groups, epsilon, nothing, randomizer.counts) == 0


@pytest.mark.parametrize("epsilon", [1e-140, 1e-6, 20.0, 100.0])
@by_case("prior", [0.6, 0.3, 0.1], [0.5, 0.5, 0.0], [0.9, 0.05, 0.05], [1.0, 0.0, 0.0, 0.0], [1 - 2e-12, 1e-12, 1e-12])
def test_every_budget_is_proven(prior, epsilon):
    unbiased_vectors(prior, epsilon).certificate.require(gap=1e-13)


@by_case(
    "prior, epsilon",
    # Two sizes of subsets that differ by no more than epsilon.
    ([0.9552309222538858, 0.04284715629277044, 0.0019219214533437695], 2.2218460427722695e-05),
    # Newton's full step leads far off.
    (np.array([2, 2, 2, 2, 2, 1, 1, 2]) / 14, 6.7713926347264755),
    # Floats confuse designs that differ in classes of no prior, or hardly any.
    ([1 / 3, 1 / 6, 1 / 3, 0, 1 / 6, 0, 0, 0], 29.361562161390964),
    (np.array([2, 1, 0, 0]) / 3, 30.0),
    ([1 - 1e-9 - 1e-12, 1e-9, 1e-12], 24.0),
    # Many classes with few priors.
    (np.r_[0.5, np.full(50, 0.01)], 1.0),
)
def test_designs_that_are_hard_to_tell_apart_are_proven(prior, epsilon):
    unbiased_vectors(prior, epsilon).certificate.require(gap=1e-14)


@pytest.mark.parametrize(
    ("prior", "epsilon"),
    [
        (0.8 ** np.arange(13), 1.0),
        (np.random.default_rng(16).dirichlet(np.ones(16)), 0.01),
        (np.random.default_rng(16).dirichlet(np.ones(16)), 2.0),
        # Sets of classes of no prior are as likely under all other labels.
        (np.r_[np.random.default_rng(13).dirichlet(np.ones(13)), np.zeros(5)], 16.0),
        *(
            pytest.param(np.random.default_rng(k).dirichlet(np.ones(k)), epsilon, marks=pytest.mark.nightly)
            for k in (24, 30)
            for epsilon in (0.5, 1.0, 2.0)
        ),
    ],
)
def test_any_priors_of_up_to_32_classes_are_proven(prior, epsilon):
    """Column generation finds no better set by local search, and an enumeration of all sets proves that none is."""
    prior = prior / prior.sum()
    randomizer = unbiased_vectors(prior, epsilon)
    assert randomizer.groups.alike
    randomizer.certificate.require(gap=1e-9)
    assert len(randomizer.counts) <= randomizer.groups.m * (randomizer.groups.m + 3) // 2
    k = prior.size
    assert np.abs(randomizer.matrix @ randomizer.vectors - np.eye(k)).max() < 1e-10
    distances = ((randomizer.vectors - np.eye(k)[:, None]) ** 2).sum(axis=2)
    assert prior @ (randomizer.matrix * distances).sum(axis=1) / 2 == pytest.approx(randomizer.value, rel=1e-9)


@pytest.mark.parametrize("k", [40, 100])
def test_the_gap_of_many_priors_falls_as_the_square_of_epsilon(k):
    prior = np.random.default_rng(k).dirichlet(np.ones(k))
    for epsilon in (1e-3, 0.01, 0.1, 0.5):
        randomizer = unbiased_vectors(prior, epsilon)
        assert not randomizer.groups.alike
        randomizer.certificate.require(gap=0.1 * epsilon**2)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_the_least_value_of_a_form_is_that_of_a_plain_enumeration(sizes, seed):
    rng = np.random.default_rng(seed)
    integers = np.triu(rng.integers(-999, 1000, (len(sizes) + 1, len(sizes) + 1)))
    # Plainly positive, or with values of either sign.
    integers[0, 0] += rng.choice([0, 30_000])
    points = [(1, *counts) for counts in itertools.product(*(range(size + 1) for size in sizes))]
    values = [int(np.array(point) @ integers @ np.array(point)) for point in points]
    form = np.array([arb(int(x)) for x in integers.flat], dtype=object).reshape(integers.shape)
    found = least_value(tuple(sizes), form)
    # A positive least value proves no more than 0, as which it is reported.
    assert found == min(*values, 0)


def test_the_least_value_is_bounded_in_floats_if_many_values_are_negative():
    # sum x (1 - x) = 0 for all 2**13 sets, less a third.
    with ctx.workprec(200):
        form = np.diag([arb(-1) / 3] + [arb(-1) / 7] * 13)
        form[0, 1:] = arb(1) / 7
        found = least_value((1,) * 13, form)
        assert found < arb(-1) / 3
        assert found > arb(-1) / 3 - 1e-15


@pytest.mark.parametrize("lost", [slice(1, None), slice(0, 3)])
def test_types_that_were_not_priced_cannot_make_a_false_bound(lost):
    prior = np.random.default_rng(8).dirichlet(np.ones(8))
    whole = unbiased_vectors(prior, 1.0)
    bound = lower_bound(whole.groups, 1.0, whole.dual, whole.counts)
    assert bound <= whole.exact_value <= bound * (1 + Fraction(1, 10**14))
    # The multipliers of a design without some sets suggest a loss above the optimum, which the enumeration refutes.
    groups = whole.groups
    short = np.delete(whole.counts, lost, axis=0)
    assert 0 <= lower_bound(groups, 1.0, whole.dual, short) <= whole.exact_value
    dual = VectorDual(whole.dual.between, whole.dual.within, whole.dual.level, whole.dual.slopes * 0)
    assert 0 <= lower_bound(groups, 1.0, dual, short) <= whole.exact_value


@settings(deadline=None, max_examples=20)
@given(st.integers(5, 6), st.floats(0.05, 5.0), st.integers(0, 2**32 - 1))
def test_no_tilt_of_the_bound_proves_more_than_the_optimum_of_single_classes(k, epsilon, seed):
    prior = np.random.default_rng(seed).dirichlet(np.ones(k))
    apart = unbiased_vectors(prior, epsilon)
    # The same classes in two groups of unequal priors.
    order = np.argsort(prior)
    groups = ClassGroups(apart.groups.weights, (order[2:], order[:2]))
    assert proven_bound(groups, epsilon) <= apart.exact_value


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 7), st.floats(0.3, 7.0), st.sampled_from([0.5, 1.0, 5.0, 50.0]), st.integers(0, 2**32 - 1))
def test_response_is_called_best_just_where_no_enumeration_beats_it(k, epsilon, spread, seed):
    prior = np.random.default_rng(seed).dirichlet(np.full(k, spread))
    groups, high = ungrouped(prior), exp_above(epsilon)
    # The loss falls as the ratio grows: at a ratio below exp(epsilon) it is above that of randomized response.
    loss = subset_selection_loss(k, exp_bracket(epsilon)[0], 1)
    bound = proven_bound(groups, epsilon)
    if response_is_best(groups.weights, high):
        assert bound <= loss
        assert float(bound) == pytest.approx(float(loss), rel=1e-12)
    else:
        assert unbiased_vectors(prior, epsilon).exact_value < subset_selection_loss(k, privacy_ratio(epsilon), 1)


@pytest.mark.parametrize("k", [20, 60])
def test_response_is_proven_for_many_classes_at_a_large_budget(k):
    prior = np.random.default_rng(k).dirichlet(np.full(k, 5.0))
    for epsilon in (8.0, 40.0):
        randomizer = unbiased_vectors(prior, epsilon)
        randomizer.certificate.require(gap=1e-14)
        assert randomizer.n == k
    assert not response_is_best(ungrouped(prior).weights, exp_above(1.0))


# ---------------------------------------------------------------------------------------------------------------- draws
@pytest.mark.parametrize(("prior", "masses"), [([1 / 3] * 3, [1]), ([0.9, 0.05, 0.05], [1, 2])])
def test_draws_have_exactly_the_probabilities_of_the_table(prior, masses):
    """Every string of bits that a draw may read, for a ratio of 2."""
    good = unbiased_vectors(prior, 1.0)
    counts = np.array([[1]]) if len(masses) == 1 else np.array([[1, 0], [0, 1]])
    randomizer = UnbiasedVectors(
        good.prior, 1.0, good.groups, counts, np.array(masses, dtype=object), Fraction(2), None
    )
    rows, _ = table_in_fractions(randomizer)
    for y, row in enumerate(rows):
        drawn, undecided = enumerated(lambda tape, y=y: tuple(randomizer._draw(np.array([y]), tape)[0][0].tolist()), 14)
        for members, chance in zip(randomizer.sets.tolist(), row, strict=True):
            found = drawn.get(tuple(members), Fraction(0))
            assert found <= chance <= found + undecided
        assert undecided < Fraction(1, 20)


def test_shapes_and_protocol():
    randomizer = unbiased_vectors(np.full(30, 1 / 30), 1.0)
    assert isinstance(randomizer, LabelRandomizer)
    assert randomizer.exact is True
    assert randomizer.sample(3).shape == (30,)
    assert randomizer.sample([[1, 2], [3, 4]]).shape == (2, 2, 30)
    assert randomizer.sample([]).shape == (0, 30)
    sets, types = randomizer._draw(np.arange(30), SeededEntropy(1))
    assert (sets.sum(axis=1) == randomizer.counts[0, 0]).all()
    assert not types.any()
    assert np.abs(randomizer.sample(range(30)).sum(axis=1) - 1).max() < 1e-9
    # More than one part, nearly without noise.
    labels = np.arange(10_000) % 30
    assert (unbiased_vectors(np.full(30, 1 / 30), 40.0).sample(labels).argmax(axis=1) == labels).all()
    with pytest.raises(errors.InvalidInput, match="too many to write out"):
        _ = randomizer.sets
    assert_error("never draws", randomizer.exact_vector, [0])
    for strangers in ([30], [-1], [0.5], ["a"], [math.nan]):
        assert_error(r"^(at least one value|values are of type)", randomizer.sample, strangers)


@by_case(
    "prior, epsilon, words",
    ([1.0], 1.0, "at least two classes"),
    ([0.5, 0.6], 1.0, "prior sums"),
    ([0.5, 0.5], 0.0, "above 0"),
    ([0.5, 0.5], 1e-141, "at least 1e-140"),
)
def test_input_without_meaning_is_refused(prior, epsilon, words):
    assert_error(words, unbiased_vectors, prior, epsilon)
