"""What the claims of [G21] up to Proposition 11 are tried on, against derivations by other means."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.special import softmax
from scipy.stats import norm

from optrand.accounting.gaussian import delta_of_gaussian
from optrand.closed_forms import batch, rr_with_prior
from optrand.sampling import discrete_noise, uniform
from optrand.theory import Verdict, check, find
from optrand.theory.g21 import descent, parallel, programs
from optrand.theory.g21.descent import Descent, Gradients, response_rows, with_responses
from optrand.theory.g21.learning import (
    Replaced,
    differences_change_by_two,
    excess_grows_by_two,
    with_gaussian_noise,
)
from optrand.theory.g21.response import Task, kept_labels, top_k_rows
from optrand.theory.instances import RATIOS, prior
from optrand.theory.sums import largest_ratio

THIRD = Fraction(1, 3)


def response_table(k: int, epsilon: float) -> np.ndarray:
    return np.array(response_rows(k, Fraction(math.exp(epsilon))), dtype=float)


def test_an_output_that_only_some_labels_give_has_an_infinite_ratio() -> None:
    one, zero = Fraction(1), Fraction(0)
    assert largest_ratio(((one, zero), (one, zero))) == 1
    assert largest_ratio(((one, zero), (zero, one))) == math.inf


def lp1_by_scipy(task: Task) -> float:
    """The rows of LP1 one by one, with `q[v, y]` at ``v * K + y``."""
    k = task.size
    rows = []
    for v, y, z in itertools.product(range(k), repeat=3):
        row = np.zeros(k * k)
        row[v * k + y] += 1
        row[v * k + z] -= float(task.ratio)
        rows.append(row)
    cost = np.zeros(k * k)
    cost[:: k + 1] = [-float(p) for p in task.prior]
    return -linprog(cost, A_ub=rows, b_ub=np.zeros(k**3), A_eq=np.tile(np.eye(k), k), b_eq=np.ones(k)).fun


def test_lp1_written_row_by_row_has_the_optimum_of_the_subsets() -> None:
    random = Random(22)
    for k, ratio in itertools.product((2, 3, 5), RATIOS[:5]):
        task = Task(prior(random, k), ratio)
        assert lp1_by_scipy(task) == pytest.approx(float(programs.best_subset(task)), rel=1e-8)


def test_whatever_the_multipliers_nothing_exceeds_the_bounds() -> None:
    random = Random(23)
    for _ in range(300):
        task = Task(prior(random, 4), random.choice(RATIOS))
        multipliers = tuple(Fraction(random.randint(0, 40), 100) for _ in range(4))
        assert min(programs.bounds(task, multipliers)) >= programs.best_subset(task)


def test_lp2_has_a_vertex_for_each_subset_and_without_a_budget_only_one_for_each_label() -> None:
    assert [len(programs.vertices_of_lp2(k, Fraction(3))) for k in (1, 2, 3, 4)] == [2, 4, 8, 16]
    assert [len(programs.vertices_of_lp2(k, Fraction(1))) for k in (1, 2, 3, 4)] == [2, 3, 4, 5]


def test_an_optimal_solution_of_lp2_that_is_no_vertex() -> None:
    """Of priors 2/3 and 1/3 at E = 2: the point between `(1, 0)` and `(2/3, 2/3)`."""
    point = (Fraction(5, 6), THIRD)
    assert max(point[0] + point[1] / 2, point[1] + point[0] / 2) == 1
    assert 2 * THIRD * point[0] + THIRD * point[1] == programs.best_subset(Task((2 * THIRD, THIRD), Fraction(2)))
    assert point not in programs.vertices_of_lp2(2, Fraction(2))
    finding = check(find(number="G21 Theorem 3: optima at vertices")[0])
    assert finding.verdict is Verdict.CORRECTED
    assert finding.printed.broken is not None
    assert finding.printed.broken.instance == "prior = (2/3, 1/3), E = 2"


@pytest.mark.parametrize("coins", [False, True])
def test_all_that_training_can_release_has_probability_one(coins: bool) -> None:
    training = parallel.Training(3, 0.3, ((1,), (0, 2)), parallel.arbitrary, coins)
    assert sum(training.law((2, 0, 1)).values()) == 1


def test_a_label_that_is_asked_twice_of_all_labels_costs_epsilon_twice() -> None:
    """The second prior is 1/3 and 2/3, of which randomized response at E = 5 keeps both."""
    ratio = parallel.Training(2, math.log(5), ((0,), (0,))).largest_ratio
    assert float(ratio) == pytest.approx(25, rel=1e-14)


def test_moments_of_the_estimate_are_those_of_a_scaled_gradient() -> None:
    r"""With `g` the gradient of the noisy label, the variance is that of `g` times ``((E + K - 1) / (E - 1))**2``."""
    random = Random(24)
    for _ in range(50):
        k, size = random.randint(2, 5), random.randint(1, 3)
        given = Gradients(
            tuple(tuple(Fraction(random.randint(-5, 5)) for _ in range(size)) for _ in range(k)), Fraction(9, 4)
        )
        vectors, scale = np.array(given.vectors, dtype=float), (1.25 + k) / 1.25
        chances = np.array(response_rows(k, given.ratio), dtype=float)
        spread = chances @ (vectors**2).sum(axis=1) - ((chances @ vectors) ** 2).sum(axis=1)
        variance, mean_square = given.moments
        assert float(variance) == pytest.approx(scale**2 * spread.max(), abs=1e-9)
        assert float(mean_square) == pytest.approx((scale**2 * spread + (vectors**2).sum(axis=1)).max(), abs=1e-9)


def test_the_variance_is_at_most_a_36th_of_its_bound() -> None:
    """For two labels ``1 / sinh(epsilon / 2)**2``; and for more ``1 + K / (E - 1) <= K / epsilon``."""
    for k, ratio in itertools.product((2, 3, 4, 7), descent.SMALL_RATIOS):
        for signs in itertools.product((Fraction(1), Fraction(-1)), repeat=k):
            given = Gradients(tuple((sign,) for sign in signs), ratio)
            assert given.moments[0] <= given.bound(factor=1)


def test_the_first_step_by_hand() -> None:
    """At the upper end both gradients are 1, so that eq. (7) is 1 whatever the noisy label is."""
    first = Descent((0.0, 1.0), (1.0, 0.0), 1)
    assert with_responses(first, response_table(2, 0.99), 0.99).mean == pytest.approx(1 - 0.99 / 12, rel=1e-14)
    assert with_gaussian_noise(first, 0.0, runs=3).mean == 0


def test_descents_that_are_drawn_are_those_that_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Descent((0.0, 1.0, 0.5), (0.5, 0.3, 0.2), 6)
    table = response_table(3, 0.9)
    followed = with_responses(short, table, 0.9)
    monkeypatch.setattr(descent, "MOST_PATHS", 0)
    drawn = with_responses(short, table, 0.9, runs=20_000, seed=5)
    assert followed.error == 0 < drawn.error
    assert abs(drawn.mean - followed.mean) < 5 * drawn.error


@pytest.mark.parametrize(("centres", "diameter"), [((0, 1, 2), 3), ((0, 0, 4), 4), ((1, 3, 2), 5)])
def test_breakpoints_are_enough(centres: tuple[int, ...], diameter: int) -> None:
    """On a fine mesh nothing is larger than at the breakpoints."""
    mass = np.array([0.5, 0.25, 0.25])
    given = Replaced(
        (tuple(map(Fraction, mass)),), (tuple(map(Fraction, centres)),), ((0, 2),), Fraction(diameter), Fraction(3)
    )
    distances = 3 * np.abs(np.linspace(0, diameter, 60 * diameter + 1)[:, np.newaxis] - np.array(centres))
    risks, replaced = distances @ mass, distances @ [0.625, 0, 0.375]
    gaps = risks - replaced
    assert float(differences_change_by_two(given).left) == pytest.approx(np.ptp(gaps), abs=1e-12)
    assert float(excess_grows_by_two(given).left) == pytest.approx(
        np.max(gaps) - risks.min() + replaced.min(), abs=1e-12
    )


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.3, 0.99), (1.0, 0.5), (4.0, 0.1), (0.7, 0.0)])
def test_what_a_gaussian_reaches_is_the_mass_above_exp_epsilon(sigma: float, epsilon: float) -> None:
    def above(x: float) -> float:
        return max(0.0, norm.pdf(x, 1, sigma) - math.exp(epsilon) * norm.pdf(x, -1, sigma))

    crossing = epsilon * sigma**2 / 2
    mass, _ = quad(above, crossing, 1 + 12 * sigma, epsabs=1e-13, limit=200)
    assert delta_of_gaussian(2.0, sigma, epsilon) == pytest.approx(mass, abs=1e-10)


@pytest.mark.parametrize("constant", [0.5, 1.0, 2 * math.sqrt(2), 30.0, 1e3, 1e4])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.999])
def test_no_constant_makes_the_printed_noise_private_for_all_delta(constant: float, epsilon: float) -> None:
    short = (epsilon / (10 * constant)) ** 2
    sigma = constant * math.sqrt(-math.log1p(-short)) / epsilon
    mu = 2 / sigma
    hidden = norm.cdf(epsilon / mu - mu / 2) + math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert hidden < short / 100, "what is short of 1 in the delta that is reached"


def test_as_delta_tends_to_1_the_rate_of_proposition_11_vanishes_and_the_risk_does_not() -> None:
    """By hand, without noise: the first step leads from 1 to 0, the second to ``sqrt(1/2)`` with probability 1/4.

    There the risk is ``(3 w + 1 - w) / 4``, the least one 1/4: an excess of ``sqrt(2) / 16`` in the mean.
    """
    outcome = with_gaussian_noise(Descent((0.0, 1.0), (0.75, 0.25), 2), 0.0, runs=10_000)
    assert abs(outcome.mean - math.sqrt(2) / 16) < 5 * outcome.error


def test_algorithm_1_by_hand() -> None:
    half, quarter, zero = Fraction(1, 2), Fraction(1, 4), Fraction(0)
    assert kept_labels([quarter, half, quarter], 2) == (0, 1)
    rows = ((3 * quarter, quarter, zero), (quarter, 3 * quarter, zero), (half, half, zero))
    assert top_k_rows([half, quarter, quarter], 2, Fraction(3)) == rows


def test_the_value_of_the_closed_form_at_three_labels() -> None:
    """Priors 1/2, 1/3, 1/6 at E = 3: `w` is 1/2, 5/8, 3/5."""
    task = Task((Fraction(1, 2), THIRD, Fraction(1, 6)), Fraction(3))
    assert programs.best_subset(task) == Fraction(5, 8)
    assert rr_with_prior([1 / 2, 1 / 3, 1 / 6], math.log(3)).value == pytest.approx(5 / 8, rel=1e-14)


def test_noise_whose_zeros_have_two_signs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero would come up twice as often as it should."""

    def laplace(self: discrete_noise.RandomBits, scale: Fraction) -> int:
        return self.geometric(scale) * (1 - 2 * self.take(1))

    monkeypatch.setattr(discrete_noise.RandomBits, "laplace", laplace)
    assert check(find(number="G21 Algorithm 4: draws")[0]).verdict is Verdict.REFUTED


def test_a_prior_at_a_temperature_is_the_softmax() -> None:
    tempered = parallel.Tempered((2, 0, -1, 2), Fraction(3, 2))
    assert [float(share) for share in tempered.prior] == pytest.approx(softmax(np.array([2, 0, -1, 2]) * math.log(1.5)))
    assert (tempered.tops, tempered.gap) == (2, 2)


@pytest.mark.parametrize(
    ("function", "line", "changed"),
    [
        (batch._coins, "// chance.denominator for", "// chance.denominator + 1 for"),
        (batch._coins, "(ratio - 1) /", "(ratio**2 - 1) /"),
        (batch._settle, "word != leading", "word >= leading"),
        (uniform.integers_below, "* int(size) - 1 for", "* int(size) for"),
    ],
)
def test_a_sampler_that_is_off_by_one_or_has_twice_the_budget_is_found(
    function: Callable[..., object], line: str, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = inspect.getsource(function)
    assert line in source
    names = dict(function.__globals__)
    exec(source.replace(line, changed), names)  # noqa: S102
    monkeypatch.setattr(batch, function.__name__, names[function.__name__])
    finding = check(find(number="G21 Corollary 2: sampler")[0])
    assert finding.verdict is Verdict.REFUTED
