"""Checks of [Z25], against independent computations."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from optrand.baselines import UnaryBits
from optrand.theory._shared import bit_sums
from optrand.theory.z25.bits import Task, everything, law, learn, mean_soft_label, votes
from optrand.theory.z25.neighbours import (
    balance_errors,
    constant_exceeds,
    deviates,
    excess_with_ties,
    excess_with_two_classes,
)

F = Fraction


def test_laws_of_vectors_are_products_and_sum_to_one() -> None:
    epsilon = 2 * math.log(7 / 3)
    zero, one = (law(5, epsilon, y) for y in (0, 1))
    assert sum(one.values()) == 1
    # Both bits right against both wrong: exp(epsilon).
    assert zero[1, 0, 0, 1, 0] == one[1, 0, 0, 1, 0] * UnaryBits(5, epsilon).ratio
    assert zero[1, 1, 0, 0, 0] == one[1, 1, 0, 0, 0]


def test_learners_see_vectors_and_nothing_else() -> None:
    one, other = (law(2, 1.0, y).items() for y in (0, 1))
    # Classes that tie are for the first one.
    ahead = sum(p * q for (z, p), (v, q) in product(one, other) if z[1] + v[1] > z[0] + v[0])
    assert learn((0, 1), 2, 1.0, votes) == {0: 1 - ahead, 1: ahead}
    assert learn((0, 0), 2, 1.0, votes)[0] > 1 - ahead > F(1, 2)
    assert len(learn((0, 1), 2, 1.0, everything, rounds=2)) == 4**4


def test_risks_are_those_of_models_weighted_by_their_chance() -> None:
    etas = np.array([[F(1), F(0)], [F(1, 4), F(3, 4)]])
    models = np.array([[[F(1), F(0)], [F(0), F(1)]], [[F(1), F(0)], [F(1), F(0)]]])
    task = Task(np.array([F(1, 3), F(2, 3)]), etas, F(2), np.array([F(3, 4), F(1, 4)]), models)
    assert task.excess == F(1, 4) * F(2, 3) * F(1, 2)


@pytest.mark.parametrize("epsilon", [0.01, 4.0])
def test_soft_labels_of_many_classes_are_independent_numbers_over_a_constant(epsilon: float) -> None:
    # K times the soft label tends to E[x] under the truth over E[x] of another class, (1 + 2 r^3) / (3 r) over r.
    r = math.exp(epsilon / 2)
    assert mean_soft_label(10**9, epsilon) * 10**9 == pytest.approx((1 + 2 * r**3) / (3 * r**2), rel=1e-2)


def test_two_soft_labels_by_an_integral() -> None:
    epsilon = 3.0

    def density(o: float, centre: int) -> float:
        return math.exp(-abs(o - centre) * epsilon / 2) * epsilon / 4

    ends = 0.5, 0.5 * math.exp(-epsilon / 2)  # chances of clipping to 0 and 1 for another class, reversed for the true

    def soft(here: float, there: float) -> float:
        return 1 / (1 + math.exp(epsilon * (there - here)))

    def given(here: float) -> float:
        inside = quad(lambda there: soft(here, there) * density(there, 0), 0, 1)[0]
        return ends[0] * soft(here, 0) + ends[1] * soft(here, 1) + inside

    inside = quad(lambda here: given(here) * density(here, 1), 0, 1)[0]
    assert mean_soft_label(2, epsilon) == pytest.approx(ends[1] * given(0) + ends[0] * given(1) + inside, rel=1e-9)


def test_chances_of_sums_of_bits() -> None:
    assert bit_sums(np.array([F(1, 2)] * 3)).tolist() == [F(1, 8), F(3, 8), F(3, 8), F(1, 8)]
    assert bit_sums(np.array([F(1, 3), F(1, 2)])).tolist() == [F(1, 3), F(1, 2), F(1, 6)]
    assert deviates((F(1, 2),) * 2, F(99, 100)) == F(1, 2)  # half off: 1/4 * 4 > 0.99
    assert deviates((F(1, 2),) * 2, F(1)) == 0


def test_errors_of_many_classes_are_those_of_one_many_times() -> None:
    two, four = (constant_exceeds(classes, 3, 2.0, 0.25) for classes in (2, 4))
    right = 1 / (1 + math.exp(-1))
    # Three bits: of 0, 1, 2 or 3 ones, 2/3 alone is within 0.25 of 0.731. 3/3 is 0.269 off.
    assert two == pytest.approx(1 - (3 * right**2 * (1 - right)) ** 2)
    assert four == pytest.approx(1 - (1 - two) ** 2)


def last_class(place: float, shares: Callable[[float], tuple[float, ...]]) -> float:
    """Probability that the two nearest of three records name the last class alone, over all labels and bits."""
    one, other = (shares(x) for x in sorted((1 / 6, 1 / 2, 5 / 6), key=lambda record: abs(record - place))[:2])
    k, total = len(one), 0.0
    for y, z in product(range(k), repeat=2):
        for (bits, p), (more, q) in product(law(k, 1.0, y).items(), law(k, 1.0, z).items()):
            votes = [a + b for a, b in zip(bits, more, strict=True)]
            if votes[-1] > max(votes[:-1]):
                total += one[y] * other[z] * float(p * q)
    return total


PLACES = [(i + 0.5) / 100 for i in range(100)]


def test_votes_are_those_of_all_labels_and_bits() -> None:
    def shares(x: float) -> tuple[float, float]:
        first = min(1.0, max(0.0, 0.5 + (x - 0.5) * (2 if x > 0.5 else 1)))
        return first, 1 - first

    lost = []
    for x in PLACES:
        (first, _), second = shares(x), last_class(x, shares)
        lost.append(abs(2 * first - 1) * (second if first >= 0.5 else 1 - second))
    assert excess_with_two_classes(3, 1.0) == pytest.approx(sum(lost) / 100, rel=1e-9)


def test_ties_are_those_of_all_labels_and_bits() -> None:
    def shares(x: float) -> tuple[float, float, float]:
        first = min(1 / 3 + x, 0.5)
        return first, first, 1 - 2 * first

    lost = [2 * root * (3 * shares(root**2)[0] - 1) * last_class(root**2, shares) for root in PLACES]
    assert excess_with_ties(3, 1.0) == pytest.approx(sum(lost) / 100, rel=1e-9)


@pytest.mark.parametrize("shrinking", [0, 1])
def test_at_the_best_k_the_error_is_least(shrinking: int) -> None:
    def error(k: float) -> float:
        return k ** (-1 / 2) + 0.1 ** (1 + shrinking) * (k / 1e4) ** (1 / 5)

    k, least = balance_errors(5, 1e4, 0.1, shrinking=shrinking)
    assert least == pytest.approx(error(k), rel=1e-15)
    assert least < min(error(0.999 * k), error(1.001 * k))
