"""Composition of releases: the dominating pair from both sides, its powers, and the accountant of others."""

import math
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand.errors import MissingExtra
from optrand.mechanism import _privacy_loss
from optrand.mechanism._privacy_loss import DominatingPair
from optrand.plotting import composition_figure
from tests.tables import mechanism_of

PRIOR = [0.5, 0.2, 0.15, 0.1, 0.05]
ORDERS = [Fraction(n, 7) for n in range(1, 22)]


def stick(first: list[int], second: list[int], total: int, a: Fraction) -> Fraction:
    """Hockey-stick divergence of two rows, by its definition."""
    return sum((max(Fraction(0), p - a * q) for p, q in zip(first, second, strict=True)), Fraction(0)) / total


def stick_of(pair: DominatingPair, a: Fraction) -> Fraction:
    first = [pair.ratio * pair.mass, 1 - (pair.ratio + 1) * pair.mass, pair.mass]
    return sum((max(Fraction(0), p - a * q) for p, q in zip(first, reversed(first), strict=True)), Fraction(0))


def largest(mechanism: optrand.Mechanism, a: Fraction) -> Fraction:
    rows = mechanism.weights.tolist()
    return max(stick(first, second, mechanism.total, a) for first, second in permutations(rows, 2))


@cache
def mechanisms() -> dict[str, optrand.Mechanism]:
    problem = optrand.unbiased_regression(range(5), PRIOR, 1.0)
    grid = optrand.feasible_output_set(range(5), 1.0, 9)
    table = [[5, 3, 2], [3, 4, 3], [2, 3, 5]]
    three = optrand.regression(range(3), [0.5, 0.3, 0.2], 1.0)
    return {
        "flow": optrand.solve(problem),
        "grid": optrand.solve(optrand.unbiased_regression(range(5), PRIOR, 1.0, outputs=grid)),
        "bins": optrand.rr_on_bins(range(5), PRIOR, 1.0),
        "classes": optrand.rr_with_prior(PRIOR, 1.5),
        "rows of three levels": mechanism_of(three, None, [0.0, 1.0, 2.0], table, Fraction(5, 2)),
    }


@pytest.mark.parametrize("name", list(mechanisms()))
def test_no_two_labels_exceed_the_pair(name: str) -> None:
    mechanism = mechanisms()[name]
    pair = mechanism.dominating_pair
    assert pair.ratio <= mechanism.ratio
    assert 0 < pair.mass * (pair.ratio + 1) <= 1
    assert all(largest(mechanism, a) <= stick_of(pair, a) for a in ORDERS)
    smaller = DominatingPair(pair.ratio, pair.mass * Fraction(999, 1000))
    assert any(largest(mechanism, a) > stick_of(smaller, a) for a in ORDERS)


@pytest.mark.parametrize("name", ["flow", "bins", "classes"])
def test_two_levels_reach_the_pair(name: str) -> None:
    mechanism = mechanisms()[name]
    assert all(largest(mechanism, a) == stick_of(mechanism.dominating_pair, a) for a in ORDERS)


def test_randomized_response_gives_less_away_the_more_classes_it_has() -> None:
    for k in (2, 3, 10):
        mechanism = optrand.rr_with_prior([1 / k] * k, 0.1)
        assert mechanism.dominating_pair.mass == 1 / (mechanism.dominating_pair.ratio + k - 1)


def test_many_equal_pairs_are_bounded_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([[3 if y == i else 2 for i in range(5)] for y in range(5)], dtype=object)
    exact = _privacy_loss._find_total_variation(weights, 11)
    monkeypatch.setattr(_privacy_loss, "CANDIDATES", 3)
    assert exact == Fraction(1, 11)
    assert exact <= _privacy_loss._find_total_variation(weights, 11) <= exact * (1 + Fraction(1, 10**12))


def test_a_mechanism_that_ignores_the_label_loses_nothing() -> None:
    problem = optrand.regression([0, 1], [0.5, 0.5], 1.0)
    constant = mechanism_of(problem, None, [0.0, 1.0], [[1, 2], [1, 2]], Fraction(2))
    assert constant.dominating_pair.mass == 0
    assert constant.dominating_pair.delta(0, releases=1000) <= 1e-80
    assert constant.dominating_pair.epsilon(1e-9, releases=1000) == 0.0


def power(pair: DominatingPair, releases: int, a: Fraction) -> Fraction:
    """Divergence of the product of pairs, outcome by outcome."""
    first = [pair.ratio * pair.mass, 1 - (pair.ratio + 1) * pair.mass, pair.mass]
    gain = Fraction(0)
    for outcome in product(range(3), repeat=releases):
        p, q = math.prod(first[o] for o in outcome), math.prod(first[2 - o] for o in outcome)
        gain += max(Fraction(0), p - a * q)
    return gain


@pytest.mark.parametrize("releases", [1, 2, 5, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_composition_is_the_power_of_the_trinomial(releases: int, epsilon: float) -> None:
    pair = DominatingPair(Fraction(5, 2), Fraction(1, 5))
    exact = float(power(pair, releases, Fraction(math.exp(epsilon))))
    found = pair.delta(epsilon, releases=releases)
    assert found == pytest.approx(exact, rel=1e-13)
    assert found >= exact * (1 - 1e-15)


def test_epsilon_is_the_inverse_of_delta() -> None:
    pair = DominatingPair(Fraction(11, 10), Fraction(1, 11))
    for delta in (1e-12, 1e-6, 0.01):
        epsilon = pair.epsilon(delta, releases=100)
        assert pair.delta(epsilon, releases=100) <= delta < pair.delta(epsilon * (1 - 1e-12), releases=100)
    assert pair.epsilon(0, releases=100) == pytest.approx(100 * math.log(1.1))
    assert pair.epsilon(1) == 0.0


def test_no_pair_composes_worse_than_the_bit_and_the_bit_than_advanced_composition() -> None:
    ratio = optrand.rr_with_prior([0.5, 0.5], 0.1).ratio
    bit, classes = DominatingPair(ratio, 1 / (ratio + 1)), DominatingPair(ratio, 1 / (ratio + 9))
    advanced = 0.1 * math.sqrt(200 * math.log(1e6)) + 10 * math.expm1(0.1)
    both = [pair.epsilon(1e-6, releases=100) for pair in (classes, bit)]
    assert both[0] < both[1] < advanced < 100 * 0.1
    assert [round(epsilon, 3) for epsilon in both] == [2.071, 4.775]


@by_case(
    "words, call",
    ("dominating pair", lambda: DominatingPair(Fraction(1), Fraction(0))),
    ("dominating pair", lambda: DominatingPair(Fraction(2), Fraction(34, 100))),
    ("dominating pair", lambda: DominatingPair(Fraction(2), Fraction(-1))),
    ("epsilon is -1", lambda: DominatingPair(Fraction(2), Fraction(1, 3)).delta(-1)),
    ("delta is 2", lambda: DominatingPair(Fraction(2), Fraction(1, 3)).epsilon(2)),
    ("releases is 0", lambda: DominatingPair(Fraction(2), Fraction(1, 3)).delta(1, releases=0)),
)
def test_pairs_and_budgets_without_meaning_are_refused(words: str, call: object) -> None:
    assert_error(words, call)


# ------------------------------------------------------------------------------------------------- dp_accounting
def test_the_accountant_of_others_agrees() -> None:
    pytest.importorskip("dp_accounting")
    for name, mechanism in mechanisms().items():
        pair = mechanism.dominating_pair
        composed = mechanism.privacy_loss_distribution().self_compose(100)
        assert composed.get_epsilon_for_delta(1e-6) == pytest.approx(pair.epsilon(1e-6, releases=100), rel=1e-6), name
        for epsilon in (0.5, 2.0):
            theirs, ours = composed.get_delta_for_epsilon(epsilon), pair.delta(epsilon, releases=100)
            assert theirs == pytest.approx(ours, rel=1e-6, abs=1e-12), name


def test_the_accountant_of_others_rounds_losses_up() -> None:
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as accountant

    mechanism = optrand.rr_with_prior([0.1] * 10, 0.1)
    exact = mechanism.dominating_pair.epsilon(1e-6, releases=100)
    distribution = mechanism.privacy_loss_distribution(0.003)
    assert exact <= distribution.self_compose(100).get_epsilon_for_delta(1e-6) <= exact * 1.1
    laplace = accountant.from_laplace_mechanism(10.0, value_discretization_interval=0.003)
    both = distribution.compose(laplace).get_epsilon_for_delta(1e-9)
    assert laplace.get_epsilon_for_delta(1e-9) < both <= 0.1 + 0.1 + 0.01
    # Their randomized response draws another class, or the true one, with probability p.
    theirs = accountant.from_randomized_response(10 / (9 + math.exp(0.1)), 10, value_discretization_interval=1e-4)
    assert theirs.self_compose(100).get_epsilon_for_delta(1e-6) == pytest.approx(exact, rel=0.01)


def test_without_the_accountant_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting.pld.privacy_loss_distribution", None)
    assert_error(r"optrand\[accounting\]", mechanisms()["bins"].privacy_loss_distribution, error=MissingExtra)


# ------------------------------------------------------------------------------------------------------- picture
def test_the_picture_shows_what_is_computed() -> None:
    mechanism = optrand.rr_with_prior([0.1] * 10, 0.1)
    (axes,) = composition_figure({"10 classes": mechanism}, releases=10).axes
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    assert list(lines) == ["basic composition", "advanced composition", "any mechanism, exactly", "10 classes"]
    assert lines["10 classes"][-1].tolist() == [10, mechanism.dominating_pair.epsilon(1e-6, releases=10)]
    assert lines["basic composition"][-1].tolist() == [10, 1.0]


def test_pictures_of_several_budgets_are_refused() -> None:
    some = {str(epsilon): optrand.rr_with_prior(PRIOR, epsilon) for epsilon in (0.1, 0.2)}
    assert_error("2 epsilons", composition_figure, some)


def test_twenty_thousand_releases_cost_their_mean_loss_and_five_deviations() -> None:
    """A budget beyond 200 has an exponential that no mass of 320 binary digits outweighs."""
    bit, releases = DominatingPair(Fraction(3), Fraction(1, 4)), 20_000
    mean, square = math.log(3) / 2, math.log(3) ** 2
    deviation = math.sqrt(releases * (square - mean**2))
    found = bit.epsilon(1e-6, releases=releases)
    assert 4.5 < (found - releases * mean) / deviation < 5.0
    assert bit.delta(found, releases=releases) <= 1e-6 < bit.delta(found - 1, releases=releases)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_losses_up_to_epsilon_do_not_count_where_their_second_masses_round_to_nothing(share: float) -> None:
    # The largest loss comes up with probability 1/2 in each of 20 releases, else nearly always loss 0. At 17 and a
    # share of it, delta is below the probability of 18 or more, and above it less exp(-(1 - share) loss) of it.
    pair = DominatingPair(Fraction(10**9), Fraction(1, 2 * 10**9))
    epsilon = (17 + share) * pair.largest_loss
    above = sum(math.comb(20, count) for count in (18, 19, 20)) / 2**20
    assert epsilon > 320 * math.log(2)
    assert (1 - 10.0 ** (-9 * (1 - share))) * above * (1 - 1e-7) <= pair.delta(epsilon, releases=20)
    assert pair.delta(epsilon, releases=20) <= above * (1 + 1e-7)
