"""The prior as an unknown of the reduced dual: its equations, coarse levels, and answers beside those of cones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import optrand
from optrand import Interval, certify
from optrand.errors import InvalidInput
from optrand.mechanism.tabulation import tabulate
from optrand.model.problem import Problem, regression, unbiased_range
from optrand.solvers import MinimaxFlow, WorstPrior, design
from optrand.solvers.worst_prior import solver
from optrand.solvers.worst_prior.interior_point import Equations, Point, centred
from optrand.solvers.worst_prior.network import Blocks, Network, differences, gathered_differences
from optrand.solvers.worst_prior.solver import Rung, Scaled, largest_gap

GAP = 1e-9


def posed(k: int, epsilon: float, penalty: float = math.inf, *, boxed: bool = False) -> Problem:
    labels = np.cumsum(np.random.default_rng(k).random(k) + 0.05)
    outputs = None
    if boxed:
        low, high = unbiased_range(labels, epsilon)
        room = 0.02 * (high - low)
        outputs = (
            Interval(low - room, high + room) if math.isinf(penalty) else Interval(*np.quantile(labels, (0.1, 0.8)))
        )
    return regression(labels, np.full(k, 1 / k), epsilon, bias_penalty=penalty, outputs=outputs)


CLASSES = [(math.inf, False), (math.inf, True), (1.5, False), (1.5, True)]


def networks() -> list[Network]:
    """All intervals; a strip in an order of phases; and a strip with stars."""
    found = [Scaled(posed(9, 2.0))._all(9)]
    for epsilon, boxed in ((2.0, False), (1.0, True)):
        network, _ = Scaled(posed(40, epsilon, boxed=boxed)).network(Rung())
        found.append(network)
    strip = found[1]
    return [*found, Network(strip.k, strip.first, strip.end, strip.places, 3, strip.excess)]


@pytest.mark.parametrize("number", [0, 1, 3])
def test_factors_solve_the_equations_of_the_nodes(number: int) -> None:
    """Against the sum of ``d' B d`` written out."""
    network = networks()[number]
    rng = np.random.default_rng(7)
    roots = rng.normal(size=(3, 3, network.n + network.k))
    whole = np.einsum("ijn,kjn->ikn", roots, roots)
    blocks: Blocks = (whole[0, 0], whole[0, 1], whole[0, 2], whole[1, 1], whole[1, 2], whole[2, 2])
    right = rng.normal(size=(3, network.k + 1))
    right[:, 0] = right[0, -1] = 0
    found = network.solved(network.factored(blocks), right)
    assert found[:, 0].tolist() == [0, 0, 0]
    assert found[0, -1] == 0
    arcs = np.einsum("ijn,jn->in", whole[..., : network.n], network.seen(found))
    labels = np.einsum("ijn,jn->in", whole[..., network.n :], differences(found))
    product = network.gathered(arcs) + np.stack([gathered_differences(side) for side in labels])
    product[:, 0] = product[0, -1] = 0
    assert product == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize(("penalty", "boxed"), CLASSES)
def test_coarse_points_stay_feasible(penalty: float, boxed: bool) -> None:
    """With sums that are linear between coarse nodes no interval is cheaper than the cheapest of those nodes."""
    scaled = Scaled(posed(21, 1.0, penalty, boxed=boxed))
    coarse = scaled.levels(Rung(fewest=12))[1]
    network = scaled._all(coarse.before.size - 1)
    point, _ = centred(network, scaled.terms(coarse, 0.01), 1e-3, 1e-6, proximal=1e-7)
    sums = np.stack([coarse.prolonged(side) for side in point.sums])
    cheapest = []
    for some, arcs in ((point.sums, network), (sums, scaled._all(21))):
        a, b, c = arcs.seen(some)
        output = np.clip(b / a, *scaled.box)
        cheapest.append(float((c - b * output + a * output**2 / 2).min()))
    assert cheapest[1] >= cheapest[0] - 1e-12
    assert np.diff(sums[0]).min() > 0


@pytest.mark.parametrize(("penalty", "boxed"), CLASSES)
def test_at_a_point_without_a_gap_rows_means_and_losses_are_right(penalty: float, boxed: bool) -> None:
    """The three gradients of the bound, read as a randomizer: and a changed multiplier shows in them."""
    problem = posed(6, 1.0, penalty, boxed=boxed)
    scaled = Scaled(problem)
    network, terms = scaled._all(6), scaled.terms(scaled.levels(Rung())[0], 0.0)
    point, steps = centred(network, terms, 1e-13, 1e-12, proximal=1e-7)
    assert 0 < steps < 60
    here = Equations(network, terms, point)
    assert max(here.error, here.slack_error) < 1e-10
    multipliers = point.multipliers.copy()
    multipliers[np.argmax(multipliers[: network.n])] *= 1.001
    off = Equations(network, terms, Point(point.sums, multipliers, point.slacks, point.biases))
    assert off.error > 1e-6


@pytest.mark.parametrize(("penalty", "boxed"), CLASSES)
@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.3), (7, 4.0), (30, 2.0)])
def test_answers_are_proven_and_those_of_cones(k: int, epsilon: float, penalty: float, boxed: bool) -> None:
    problem = posed(k, epsilon, penalty, boxed=boxed)
    solution = WorstPrior()(problem)
    proof = certify(tabulate(solution), worst_case=True).require(gap=GAP)
    assert solution.stats.iterations > 0
    if k < 23:
        other = certify(tabulate(MinimaxFlow()(problem)), worst_case=True)
        assert proof.upper == pytest.approx(other.upper, rel=GAP)
    assert largest_gap(solution, GAP) <= GAP


def test_the_given_prior_is_not_looked_at() -> None:
    problem = posed(9, 1.0)
    other = replace(problem, prior=np.eye(9)[3] * 0.9 + 0.1 / 9)
    assert WorstPrior()(problem).problem.prior.tolist() == WorstPrior()(other).problem.prior.tolist()


def test_randomizers_of_other_priors_are_far_from_proven() -> None:
    solution = WorstPrior()(posed(12, 1.0))
    ordinary = design(posed(12, 1.0))
    crossed = replace(solution, randomizer=ordinary.randomizer)
    assert largest_gap(crossed, GAP) > 1e-3
    assert largest_gap(replace(solution, dual=None), GAP) == math.inf


def test_without_an_attempt_cones_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "ATTEMPTS", ())
    solution = WorstPrior()(posed(8, 1.0))
    assert certify(tabulate(solution), worst_case=True).gap <= GAP
    assert solution.stats.solver == repr(MinimaxFlow())


def test_other_problems_are_refused() -> None:
    absolute = regression([0.0, 1.0], [0.5, 0.5], 1.0, loss=optrand.losses.absolute)
    with pytest.raises(InvalidInput, match="squared loss with a bias penalty"):
        WorstPrior()(absolute)
