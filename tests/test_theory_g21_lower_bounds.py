"""The lower bounds and the debiased losses of [G21], against what is derived here by other means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from optrand.estimate import top_k_loss_weights
from optrand.theory import Budget, Claim, check, find
from optrand.theory.g21.debiased import TopK
from optrand.theory.g21.finite_classes import exceeded, log_term, rademacher, samples
from optrand.theory.g21.lower_bounds import group_delta, known_of_a_sign, likeliest, occurrences
from optrand.theory.g21.populations import Copied

LP_TOLERANCE = 1e-7

ratios = st.fractions(min_value=Fraction(11, 10), max_value=20, max_denominator=10)


def claim(name: str) -> Claim:
    found = [each for each in find(paper="G21") if each.name == f"G21 {name}"]
    assert len(found) == 1
    return found[0]


def instances(name: str) -> Iterator[Any]:
    yield from claim(name).instances(Budget.QUICK)


# Groups of labels


@pytest.mark.parametrize(("event", "delta"), [(0.0, 0.01), (0.05, 0.0), (0.05, 0.02), (0.4, 0.1), (0.9, 0.3)])
def test_the_likeliest_event_is_the_optimum_of_a_linear_program_over_a_chain_of_data_sets(
    event: float, delta: float
) -> None:
    """Variables are the event's probabilities on four data sets in a row; both it and its complement are protected."""
    ratio, rows, limits = 1.5, [], []
    for i, j in [(0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2)]:
        row = np.zeros(4)
        row[i], row[j] = 1, -ratio
        rows += [row, -row]
        limits += [delta, delta + ratio - 1]
    program = linprog([0, 0, 0, -1], A_ub=rows, b_ub=limits, A_eq=[[1, 0, 0, 0]], b_eq=[event], bounds=(0, 1))
    found = Fraction(event)
    for _ in range(3):
        found = likeliest(found, Fraction(3, 2), delta=Fraction(delta))
    assert float(found) == pytest.approx(-program.fun, abs=LP_TOLERANCE)


def test_group_delta_is_a_geometric_sum() -> None:
    assert group_delta(Fraction(3), Fraction(1, 100), labels=3) == Fraction(1 + 3 + 9, 100)
    assert group_delta(Fraction(3), Fraction(1, 100), labels=0) == 0


# Signs


@given(ratios, st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=5))
def test_no_channel_of_a_sign_says_more_than_its_budget(ratio: Fraction, pairs: list[tuple[int, int]]) -> None:
    """The delta of a random channel is computed from its table, and the mean square by Bayes' rule."""
    plus, minus = (sum(pair[i] for pair in pairs) for i in (0, 1))
    if not plus or not minus:
        return
    table = [(Fraction(p, plus), Fraction(q, minus)) for p, q in pairs]
    delta = max(sum(max(p - ratio * q, Fraction(0)) for p, q in turned) for turned in (table, [r[::-1] for r in table]))
    known = sum((p - q) ** 2 / (p + q) for p, q in table if p + q) / 2
    assert known <= known_of_a_sign(ratio, Fraction(delta))


def test_the_most_telling_channel_is_private_and_attains_the_mean_square() -> None:
    ratio, delta = Fraction(3), Fraction(1, 5)
    kept, lost = (1 - delta) * ratio / (ratio + 1), (1 - delta) / (ratio + 1)
    table = [(delta, Fraction(0)), (kept, lost), (lost, kept), (Fraction(0), delta)]
    assert sum(max(p - ratio * q, Fraction(0)) for p, q in table) == delta
    assert sum((p - q) ** 2 / (p + q) for p, q in table) / 2 == known_of_a_sign(ratio, delta)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_without_delta_randomized_response_has_the_least_excess_risk(n: int) -> None:
    """No posterior of a private output correlates with the sum of signs by more than n (E - 1) / (E + 1).

    Variables are the posterior over all labels, whose ratios between neighbours are bounded because the prior is flat.
    Directions with other weights gain less for their length, by the same program.
    """
    ratio, labels = 2.5, list(product((-1, 1), repeat=n))
    rows = []
    for i, one in enumerate(labels):
        for j, other in enumerate(labels):
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
                row = np.zeros(len(labels))
                row[i], row[j] = 1, -ratio
                rows.append(row)
    best = (ratio - 1) / (ratio + 1)
    for weights in ([1.0] * n, [2.0] + [1.0] * (n - 1), [1.0] + [0.0] * (n - 1)):
        gains = -np.array(labels) @ weights
        program = linprog(gains, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=[np.ones(len(labels))], b_eq=[1])
        assert -program.fun == pytest.approx(sum(weights) * best, abs=LP_TOLERANCE)
        assert -program.fun / np.linalg.norm(weights) <= math.sqrt(n) * best + LP_TOLERANCE
    expected = 1 / (math.sqrt(n) * (ratio + 1))
    assert Copied(Fraction(math.log(ratio)), Fraction(0), n).least == pytest.approx(expected, rel=1e-12)


def test_with_delta_randomized_response_is_not_best() -> None:
    """Two labels shown with probability 1/2 each, and else nothing: 1/4 + 1/2 sqrt(1/2) against 1/2 for a coin."""
    attained = [each.attained for each in instances("Proposition 13: least excess risk") if _nearly_free(each)]
    assert len(attained) == 1
    assert attained[0] == pytest.approx(0.25 + 0.5 * math.sqrt(0.5), abs=1e-6)
    assert check(claim("Proposition 13: least excess risk")).false.broken is not None


def _nearly_free(each: Any) -> bool:
    return bool(each.n == 2 and each.ratio == Fraction(1_000_001, 1_000_000) and each.delta == Fraction(1, 2))


def test_what_the_parameter_zero_loses_on_copies_by_hand() -> None:
    """At epsilon = 1/2: one direction twice, whose least risk is -1/2; the same with a zero vector; ten, twice each."""
    copied = {each.n: each for each in instances("Lemma 15: with constants") if each.epsilon == 1 / 2}
    assert copied[2].ignorant == pytest.approx(1 / 2, rel=1e-14)
    assert copied[3].ignorant == pytest.approx(1 / 3, rel=1e-14)
    assert copied[20].ignorant == pytest.approx(math.sqrt(10) / 20, rel=1e-14)
    assert all(each.least < each.ignorant for each in copied.values())


# Populations


def test_bounds_of_a_population_by_enumeration() -> None:
    """Two examples and up to two directions, every draw and every flip written out."""
    seen = 0
    for each in instances("Proposition 12: with constants"):
        if each.n > 3 or each.delta:
            continue
        seen += 1
        m, kept = each.directions, 1 / (1 + math.exp(-each.epsilon))
        correlation = known = 0.0
        for drawn in product(range(m), repeat=each.n):
            for flips in product((1, -1), repeat=each.n):
                chance = math.prod(kept if flip == 1 else 1 - kept for flip in flips) / m**each.n
                votes = [sum(f for f, d in zip(flips, drawn, strict=True) if d == i) for i in range(m)]
                correlation += chance * sum(np.sign(votes)) / m
            tally = Counter(drawn)
            known += sum(math.tanh(tally[i] * each.epsilon / 2) ** 2 for i in range(m)) / m / m**each.n
        assert each.attained == pytest.approx((1 - correlation) / (2 * math.sqrt(m)), rel=1e-9)
        assert each.least == pytest.approx((1 - math.sqrt(known)) / (2 * math.sqrt(m)), rel=1e-9)
    assert seen >= 4


def test_draws_with_replacement() -> None:
    assert sum(occurrences(7, 7)) == 1
    assert sum(j * chance for j, chance in enumerate(occurrences(7, 7))) == 1
    assert occurrences(1, 5) == [0, 1]


def test_what_resampling_spends_is_at_least_what_a_fine_mesh_of_events_finds() -> None:
    """For two examples the changed one is drawn never, once or twice, with probabilities 1/4, 1/2, 1/4."""
    each = next(each for each in instances("Lemma 16") if each.n == 2 and each.epsilon == 3.0)
    ratio, delta = math.exp(each.epsilon / each.copies), 0.05
    events = np.linspace(0, 1, 200_001)
    once = np.minimum(np.minimum(ratio * events + delta, 1 - (1 - events - delta) / ratio), 1)
    twice = np.minimum(np.minimum(ratio * once + delta, 1 - (1 - once - delta) / ratio), 1)
    found = [float((reached - math.exp(each.epsilon) * events).max()) for reached in (once, twice)]
    assert each.spent(delta) == pytest.approx(found[0] / 2 + found[1] / 4, abs=1e-4)


# Debiased losses


def test_debiased_losses_by_hand() -> None:
    """With E = 3 and two of three labels kept p = 1/4: (l - (l_0 + l_1) / 4) / (1/2)."""
    response = TopK((Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)), Fraction(3), 2)
    losses = [Fraction(1), Fraction(1, 2), Fraction(0)]
    assert [response.debiased(losses, y) for y in range(3)] == [Fraction(5, 4), Fraction(1, 4), Fraction(-3, 4)]
    assert [response.expected(losses, y) for y in range(3)] == [Fraction(1), Fraction(1, 2), Fraction(3, 4)]
    assert response.spread == 2


def test_samples_and_complexities_by_enumeration_in_order() -> None:
    functions = [(Fraction(0), Fraction(1), Fraction(1, 2)), (Fraction(1), Fraction(1, 3), Fraction(0))]
    chances, size = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], 3
    total = Fraction(0)
    for points in product(range(3), repeat=size):
        for signs in product((1, -1), repeat=size):
            largest = max(sum(s * f[v] for s, v in zip(signs, points, strict=True)) for f in functions)
            total += math.prod((chances[v] for v in points), start=Fraction(1, 2**size)) * Fraction(largest, size)
    assert rademacher(functions, chances, size) == total
    assert sum(chance for _, chance in samples(chances, size)) == 1


# Theorem 17


def test_theorem_17_fails_for_one_function_two_labels_and_one_example() -> None:
    """The label's loss is 1 and the other's 0; at E = 2 these become 2 and -1, both at least 1 from the risk.

    The class has one function and so no complexity, and both labels are kept: the bound is the root alone.
    """
    weights = top_k_loss_weights([0, 1], [True, True], math.log(2))
    assert (weights @ [1.0, 0.0]).round(12).tolist() == [2.0, -1.0]
    squared = log_term(Fraction(1, 2), 1)
    assert float(squared) == pytest.approx(math.log(4) / 2, rel=1e-12)
    assert exceeded([(Fraction(1), Fraction(1))], Fraction(0), squared) == 1
    broken = check(claim("Theorem 17")).printed.broken
    assert broken is not None
    assert (broken.left, broken.right) == (1.0, 0.5)
    assert "E = 2, k = 2)), n = 1, beta = 1/2" in broken.instance


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_more_examples_do_not_save_theorem_17(n: int) -> None:
    """At epsilon = 1 the share of labels that stay is binomial; an average is off by its error times (E + 1) / (E - 1).

    The bound for a failure of 1/10 fails more often than that at every n; with the spread of the losses it does not.
    """
    ratio, beta = math.e, 0.1
    stays, gain = ratio / (ratio + 1), (ratio + 1) / (ratio - 1)
    root = math.sqrt(math.log(2 / beta) / (2 * n))

    def failure(bound: float) -> float:
        off = n * bound / gain
        return float(
            binom.cdf(math.ceil(n * stays - off) - 1, n, stays) + binom.sf(math.floor(n * stays + off), n, stays)
        )

    assert failure(root) > 1.7 * beta
    assert failure(root * (ratio + 2 * 2 - 3) / (ratio - 1)) < beta / 4
