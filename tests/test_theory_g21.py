"""Instances of the claims of [G21], against derivations by other means."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from optrand.theory._shared import RATIOS, prior
from optrand.theory.g21.debiased import Debiased, rademacher, samples
from optrand.theory.g21.descent import Descent, Replaced, differences_change_by_two, with_gaussian_noise, with_responses
from optrand.theory.g21.lower_bounds import (
    known_of_a_sign,
    likeliest,
    lose_by_majority,
    lose_copies,
    lose_population,
    resampled_delta,
)
from optrand.theory.g21.response import (
    best_subset,
    bounds,
    kept_labels,
    predict_by_counts,
    stages_cost_epsilon_once,
    top_k_rows,
)


def test_whatever_the_multipliers_nothing_exceeds_the_bounds() -> None:
    random = Random(23)
    for _ in range(300):
        weights, ratio = prior(random, 4), random.choice(RATIOS)
        multipliers = tuple(Fraction(random.randint(0, 40), 100) for _ in range(4))
        assert min(bounds(weights, ratio, multipliers)) >= best_subset(weights, ratio)


def test_a_label_that_is_asked_twice_of_all_labels_costs_epsilon_twice() -> None:
    """The second prior is 1/3 and 2/3, of which randomized response at E = 5 keeps both."""
    sides = stages_cost_epsilon_once(k=2, epsilon=math.log(5), stages=((0,), (0,)), model=predict_by_counts)
    assert float(sides.left) == pytest.approx(25, rel=1e-14)


def test_the_first_step_by_hand() -> None:
    """At the upper end both gradients are 1, so that eq. (7) is 1 for every noisy label."""
    first = Descent((0.0, 1.0), (1.0, 0.0), 1)
    assert with_responses(first, 0.99)[0] == pytest.approx(1 - 0.99 / 12, rel=1e-14)
    assert with_gaussian_noise(first, 0.0, runs=3)[0] == 0


def test_descents_that_are_drawn_are_near_those_of_all_noisy_labels() -> None:
    """Two labels, E = exp(0.9), three steps: all sequences of noisy labels, with their chances."""
    short, rise = Descent((0.0, 1.0), (0.6, 0.4), 3), math.exp(0.9)
    first = (0.6 * rise + 0.4) / (rise + 1)
    mean = 0.0
    for noisy in product(range(2), repeat=3):
        w = np.array([1.0])
        for t, label in enumerate(noisy, 1):
            own = np.where(w >= short.centres, 1, -1)
            estimate = (own[label] - own.sum() / (rise + 1)) * (rise + 1) / (rise - 1)
            w = np.clip(w - 0.9 / (12 * math.sqrt(t)) * estimate, 0, 1)
        # The least risk, 0.4, is at the likelier label.
        risk = float(np.abs(w - short.centres) @ short.law) - 0.4
        mean += risk * math.prod(first if label == 0 else 1 - first for label in noisy)
    drawn, error = with_responses(short, 0.9, runs=20_000)
    assert error > 0
    assert abs(drawn - mean) < 5 * error


@pytest.mark.parametrize(("centres", "diameter"), [((0, 0, 4), 4), ((1, 3, 2), 5)])
def test_breakpoints_are_enough(centres: tuple[int, ...], diameter: int) -> None:
    """On a fine mesh nothing is larger than at the breakpoints."""
    mass = np.array([0.5, 0.25, 0.25])
    rows = (np.array([[*map(Fraction, row)]]) for row in (mass, centres))
    given = Replaced(*rows, np.array([[True, False, True]]), Fraction(diameter), Fraction(3))
    distances = 3 * np.abs(np.linspace(0, diameter, 60 * diameter + 1)[:, np.newaxis] - np.array(centres))
    risks, replaced = distances @ mass, distances @ [0.625, 0, 0.375]
    assert float(differences_change_by_two(given).left) == pytest.approx(np.ptp(risks - replaced), abs=1e-12)


def test_algorithm_1_by_hand() -> None:
    half, quarter, zero = Fraction(1, 2), Fraction(1, 4), Fraction(0)
    assert kept_labels([quarter, half, quarter], 2) == (0, 1)
    rows = ((3 * quarter, quarter, zero), (quarter, 3 * quarter, zero), (half, half, zero))
    assert top_k_rows([half, quarter, quarter], 2, Fraction(3)) == rows


# Lower bounds and debiased losses

LP_TOLERANCE = 1e-7

ratios = st.fractions(min_value=Fraction(11, 10), max_value=20, max_denominator=10)


@pytest.mark.parametrize(("event", "delta"), [(0.0, 0.01), (0.05, 0.02), (0.9, 0.3)])
def test_the_likeliest_event_is_the_optimum_of_a_linear_program_over_a_chain_of_data_sets(
    event: float, delta: float
) -> None:
    """Variables are the event's probabilities on four data sets in a row. Both it and its complement are protected."""
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


@pytest.mark.parametrize("n", [1, 2])
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
    assert lose_copies(Fraction(math.log(ratio)), n, Fraction(0)) == pytest.approx(expected, rel=1e-12)


def test_bounds_of_a_population_by_enumeration() -> None:
    """Two examples and up to two directions, every draw and every flip written out."""
    for epsilon, n in product((1.0, 0.5, 0.2), (1, 2, 3)):
        m, kept = math.ceil(epsilon * n), 1 / (1 + math.exp(-epsilon))
        correlation = known = 0.0
        for drawn in product(range(m), repeat=n):
            for flips in product((1, -1), repeat=n):
                chance = math.prod(kept if flip == 1 else 1 - kept for flip in flips) / m**n
                votes = [sum(f for f, d in zip(flips, drawn, strict=True) if d == i) for i in range(m)]
                correlation += chance * sum(np.sign(votes)) / m
            tally = Counter(drawn)
            known += sum(math.tanh(tally[i] * epsilon / 2) ** 2 for i in range(m)) / m / m**n
        attained = lose_by_majority(n, Fraction(epsilon), m)
        least = lose_population(n, Fraction(epsilon), Fraction(0), m)
        assert attained == pytest.approx((1 - correlation) / (2 * math.sqrt(m)), rel=1e-9)
        assert least == pytest.approx((1 - math.sqrt(known)) / (2 * math.sqrt(m)), rel=1e-9)


def test_what_resampling_spends_is_what_a_fine_mesh_of_events_finds() -> None:
    """For two examples the changed one is drawn never, once or twice, with probabilities 1/4, 1/2, 1/4."""
    epsilon, delta, copies = 3.0, 0.05, 4 * math.log(20)
    ratio = math.exp(epsilon / copies)
    events = np.linspace(0, 1, 200_001)
    once = np.minimum(np.minimum(ratio * events + delta, 1 - (1 - events - delta) / ratio), 1)
    twice = np.minimum(np.minimum(ratio * once + delta, 1 - (1 - once - delta) / ratio), 1)
    found = [float((reached - math.exp(epsilon) * events).max()) for reached in (once, twice)]
    spent = resampled_delta(2, epsilon / copies, delta, copies)
    assert spent == pytest.approx(found[0] / 2 + found[1] / 4, rel=1e-12)


def test_debiased_losses_by_hand() -> None:
    """With E = 3 and two of three labels kept p = 1/4: (l - (l_0 + l_1) / 4) / (1/2)."""
    response = Debiased((Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)), Fraction(3), 2)
    losses = [Fraction(1), Fraction(1, 2), Fraction(0)]
    assert (response.weights @ losses).tolist() == [Fraction(5, 4), Fraction(1, 4), Fraction(-3, 4)]
    assert (response.means @ losses).tolist() == [Fraction(1), Fraction(1, 2), Fraction(3, 4)]
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
