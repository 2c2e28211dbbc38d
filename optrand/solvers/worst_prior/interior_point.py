r"""Primal-dual interior point for the worst prior: sums of the prior, slopes and costs up to each node.

With :math:`F, b, c` the sums up to each node, an arc sees :math:`A, B, C`, its slack is :math:`s = \min_v (A v^2 / 2 -
B v + C)` over allowed outputs, and each label has the slack :math:`p_y - \delta_y` of its prior. The gradient of
:math:`s` is :math:`(v^2 / 2, -v, 1)` at the best output :math:`v`, and its curvature :math:`-w w' / A` with :math:`w =
(-v, 1, 0)` where :math:`v` is free. A price of bias is the least over :math:`q` of :math:`\lambda p q^2 / 2 - (\Delta b
- y p) q`, so that nothing is divided by a prior that vanishes. Newton's equations are eliminated to a matrix of the
nodes, with ratios of slack to multiplier bounded below, and solutions are corrected on the equations themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optrand.base.validation import Floats
from optrand.solvers.worst_prior.network import Blocks, Factors, Network, differences, gathered_differences

__all__ = ["Point", "Terms", "centred"]

STEPS = 60
"""At most so many."""

IDLE, PATIENCE, STRAYED = 4, 15, 1e-4
"""Steps in a row that do not halve the error: where it is small, and elsewhere; small is a gap of less than this."""

CORRECTED = 3
"""Number of corrections of the solution of a step's equations."""

PRECISE = 1e-3
"""Corrections end when what is left is this share of the errors of the point."""

CORRECTIONS = 2
"""Of the products of multipliers and slacks that stray, where steps are short."""

DAMPING = 0.995
"""Share of the way to the boundary that a step may go."""

OFF, GREW, HALVED = 0.1, 2.0, 8
"""Slacks may be off by so much, or so many times more than before; else a step is halved, at most so many times."""

FAINTEST, LIGHTEST = 1e-18, 1e-20
"""Least slack and least multiplier: below, rounding errors would block the steps."""


class Terms(NamedTuple):
    """Numbers of a problem in which labels may be merged, in units of the loss.

    Attributes
    ----------
    places : (k,) array
        Mean label of each cell.
    squares : (k,) array
        Mean square.
    prices : (k,) array
        What the prior of a cell costs: half the mean square, and half the variance over the bias penalty.
    floors : (k,) array
        Least prior of each cell.
    shares : (k,) array
        Share of the labels.
    penalty : float
        Bias penalty.
    low, high : float
        Ends of the outputs.
    """

    places: Floats
    squares: Floats
    prices: Floats
    floors: Floats
    shares: Floats
    penalty: float
    low: float
    high: float


class Point(NamedTuple):
    """Sums ``(3, k + 1)``, multipliers and slacks of arcs and then of priors, and biases with their sign turned."""

    sums: Floats
    multipliers: Floats
    slacks: Floats
    biases: Floats


class Step(NamedTuple):
    """Changes of a point."""

    sums: Floats
    multipliers: Floats
    slacks: Floats
    biases: Floats


class Aim(NamedTuple):
    """What a step is to reach: products, and the terms of second order of slacks, gradient and biases."""

    products: Floats
    slacks: Floats
    gradient: Floats
    biases: Floats


def centred(network: Network, terms: Terms, gap: float, tolerance: float, *, proximal: float) -> tuple[Point, int]:
    """The point at which products of multipliers and slacks sum to `gap`, and equations hold to `tolerance`; and steps.

    The best one found where floats give out first. No ratio of slack to multiplier is less than `proximal` in the
    matrix, in units of the squared excess where that is larger than one; solutions are corrected for it.
    """
    point = _start(network, terms)
    best, least, idle, steps = point, np.inf, 0, 0
    while steps < STEPS:
        here = Equations(network, terms, point)
        total = float(point.multipliers @ point.slacks)
        if not math.isfinite(total):
            break
        error = max(total, here.error, here.slack_error)
        idle = 0 if error < 0.5 * least else idle + 1
        if error < least:
            best, least = point, error
        exact = total < gap and here.error < tolerance and here.slack_error < tolerance * (1 + abs(point.sums[2, -1]))
        if exact or idle >= (IDLE if total < STRAYED else PATIENCE):
            break
        try:
            point, steps = here.stepped(proximal), steps + 1
        except np.linalg.LinAlgError:
            break
    return best, steps


def _start(network: Network, terms: Terms) -> Point:
    """Strictly feasible sums, those of outputs at the labels, and equal products."""
    k, n = network.k, network.n
    sums = np.zeros((3, k + 1))
    each = np.stack((terms.shares, terms.shares * terms.places, terms.shares * (terms.squares + 1) / 2))
    sums[:, 1:] = np.cumsum(each, axis=1)
    sums[0] /= sums[0, -1]
    a, b, c = network.seen(sums)
    output = np.clip(b / a, terms.low, terms.high)
    slacks = np.concatenate((c - b * output + a * output**2 / 2, terms.shares - terms.floors))
    multipliers = 1 / (n * slacks)
    multipliers[:n] /= network.gathered(multipliers[np.newaxis, :n])[0, -1]
    mean = float(multipliers[:n] @ slacks[:n]) / n
    multipliers[n:] = np.minimum(mean / slacks[n:], 1.0)
    return Point(sums, multipliers, slacks, np.zeros(k))


class Equations:
    """Newton's equations at a point."""

    def __init__(self, network: Network, terms: Terms, point: Point) -> None:
        self.network, self.terms, self.point = network, terms, point
        n = network.n
        self.mass, self.lean = point.multipliers[:n], point.multipliers[n:]
        self.weight, self.slope, cost = network.seen(point.sums)
        free = self.slope / self.weight
        self.output = np.clip(free, terms.low, terms.high)
        self.bend = np.where(self.output == free, 1 / self.weight, 0.0)
        best = cost - self.slope * self.output + self.weight * self.output**2 / 2
        prior, slopes, _ = differences(point.sums)
        self.off = np.concatenate((best, prior - terms.floors)) - point.slacks
        self.charged = math.isfinite(terms.penalty)
        gradient = self._pulled(self.mass, self.lean)
        gradient[0] -= gathered_differences(terms.prices)
        gradient[1] += gathered_differences(terms.places)
        gradient[2, -1] -= 1
        self.lack = np.zeros(network.k)
        if self.charged:
            q = point.biases
            self.held = terms.penalty * (point.slacks[n:] + terms.floors)
            self.tilt = terms.places + terms.penalty * q
            self.lack = slopes - terms.places * prior - self.held * q
            gradient[0] += gathered_differences(terms.penalty * q**2 / 2 + terms.places * q)
            gradient[1] -= gathered_differences(q)
        self.gradient = _unknown(gradient)

    @property
    def error(self) -> float:
        """The largest error of rows, means and losses."""
        return float(np.abs(self.gradient).max())

    @property
    def slack_error(self) -> float:
        """The largest error of slacks and of biases."""
        return float(max(np.abs(self.off).max(), np.abs(self.lack).max()))

    def _pulled(self, masses: Floats, leans: Floats) -> Floats:
        """The gradients of the slacks, weighted."""
        sums = self.network.gathered(np.stack((masses * self.output**2 / 2, -masses * self.output, masses)))
        sums[0] += gathered_differences(leans)
        return sums

    def _tightened(self, seen: Floats, sums: Floats) -> Floats:
        """First-order changes of the slacks."""
        arcs = seen[2] - self.output * seen[1] + self.output**2 / 2 * seen[0]
        return np.concatenate((arcs, differences(sums[0])))

    def _charge(self, sums: Floats) -> Floats:
        """What the labels' slopes change beyond what their prior does."""
        charge: Floats = differences(sums[1]) - self.tilt * differences(sums[0])
        return charge

    def _charged_rows(self, amounts: Floats) -> Floats:
        """Transpose of :meth:`_charge`."""
        return np.stack(
            (-gathered_differences(amounts * self.tilt), gathered_differences(amounts), np.zeros(self.network.k + 1))
        )

    def _blocks(self, stiff: Floats) -> Blocks:
        """Blocks of arcs, then of labels, for the weights of the slacks."""
        n, v = self.network.n, self.output
        ratio, curve, half = stiff[:n], self.mass * self.bend, v**2 / 2
        arcs = (
            ratio * half**2 + curve * v**2,
            -ratio * half * v - curve * v,
            ratio * half,
            ratio * v**2 + curve,
            -ratio * v,
            ratio,
        )
        none = np.zeros(self.network.k)
        labels = [stiff[n:], none, none, none, none, none]
        if self.charged:
            each = 1 / self.held
            labels[0], labels[1], labels[3] = stiff[n:] + each * self.tilt**2, -each * self.tilt, each
        first, second, third, fourth, fifth, sixth = (np.concatenate(pair) for pair in zip(arcs, labels, strict=True))
        return first, second, third, fourth, fifth, sixth

    def _direction(self, factors: Factors, stiff: Floats, aim: Aim) -> Step:
        """The solution of the linear equations, corrected."""
        network, point, n = self.network, self.point, self.network.n
        weak = point.slacks / point.multipliers
        right = aim.products / point.multipliers - (self.off - aim.slacks) - point.slacks
        target = self.gradient + aim.gradient
        lack = aim.biases
        sums, multipliers, biases = np.zeros_like(point.sums), np.zeros_like(right), np.zeros(network.k)
        rest, slack_rest, bias_rest = target, right, lack
        enough = PRECISE * min(PRECISE, max(self.error, self.slack_error, 1e-12))
        for turn in range(CORRECTED + 1):
            pull = stiff * slack_rest
            moved = rest + self._pulled(pull[:n], pull[n:])
            if self.charged:
                moved -= self._charged_rows(bias_rest / self.held)
            step = network.solved(factors, moved)
            sums = sums + step
            multipliers = multipliers + pull - stiff * self._tightened(network.seen(step), step)
            if self.charged:
                biases = biases + (bias_rest + self._charge(step)) / self.held
            seen = network.seen(sums)
            tightened = self._tightened(seen, sums)
            if turn == CORRECTED:
                break
            curved = self.mass * self.bend * (seen[1] - self.output * seen[0])
            rest = target + self._pulled(multipliers[:n], multipliers[n:])
            rest -= network.gathered(np.stack((-curved * self.output, curved, np.zeros(n))))
            if self.charged:
                rest -= self._charged_rows(biases)
                bias_rest = lack + self._charge(sums) - self.held * biases
            rest = _unknown(rest)
            slack_rest = right - weak * multipliers - tightened
            if max(np.abs(rest).max(), np.abs(slack_rest).max()) < enough:
                break
        return Step(sums, multipliers, tightened + self.off - aim.slacks, biases)

    def stepped(self, proximal: float) -> Point:
        """The point after a predictor, a corrector and what strays from it.

        Raises
        ------
        LinAlgError
            Where floats give out.
        """
        point = self.point
        least = proximal * max(1.0, self.network.excess**2)
        stiff = 1 / (point.slacks / point.multipliers + least)
        factors = self.network.factored(self._blocks(stiff))
        total, size = float(point.multipliers @ point.slacks), point.slacks.size
        nothing = np.zeros(size)
        step = self._direction(factors, stiff, Aim(nothing, nothing, np.zeros_like(point.sums), self.lack))
        slack, mass = _longest(point.slacks, step.slacks), _longest(point.multipliers, step.multipliers)
        near = min(1.0, slack), min(1.0, mass)
        reached = (point.multipliers + near[1] * step.multipliers) @ (point.slacks + near[0] * step.slacks)
        centring = max(min(max(float(reached) / total, 0.0) ** 3, 1.0), 1e-8)
        aimed = centring * total / size
        aim = self._second_order(step, near, aimed)
        best, bent = step, 0.0
        for turn in range(CORRECTIONS + 1):
            step = self._direction(factors, stiff, aim)
            lengths = _longest(point.slacks, step.slacks), _longest(point.multipliers, step.multipliers)
            here = min(1.0, *lengths)
            if turn and here < bent + 0.01:
                break
            best, bent, (slack, mass) = step, here, lengths
            if here > 0.9:
                break
            aim = aim._replace(products=self._strayed(aim.products, step, lengths, aimed))
        slack, mass = min(1.0, DAMPING * slack), min(1.0, DAMPING * mass)
        allowed = max(OFF, GREW * self.slack_error)
        for _ in range(HALVED):
            if not self._off_after(slack, best) > allowed:
                break
            slack, mass = slack / 2, mass / 2
        return Point(
            point.sums + slack * best.sums,
            np.maximum(point.multipliers + mass * best.multipliers, LIGHTEST),
            np.maximum(point.slacks + slack * best.slacks, FAINTEST),
            point.biases + mass * best.biases,
        )

    def _off_after(self, length: float, step: Step) -> float:
        """By how much slacks of arcs are off after a step: they are concave, and a long step overestimates them."""
        n = self.network.n
        weight, slope, cost = self.network.seen(self.point.sums + length * step.sums)
        output = np.clip(slope / weight, self.terms.low, self.terms.high)
        slacks = self.point.slacks[:n] + length * step.slacks[:n]
        return float(np.abs(cost - slope * output + weight * output**2 / 2 - slacks).max())

    def _second_order(self, step: Step, near: tuple[float, float], aimed: float) -> Aim:
        """What a step of these lengths leaves beyond the first order."""
        n, (slack, mass) = self.network.n, near
        products = aimed - slack * mass * step.multipliers * step.slacks
        seen = slack * self.network.seen(step.sums)
        turned = (seen[1] - self.output * seen[0]) * (self.bend > 0)
        weight, masses = self.weight + seen[0], mass * step.multipliers[:n]
        output = self.output + turned / weight
        first = turned * self.bend
        slopes = (self.mass + masses) * output - (self.mass + masses) * self.output - self.mass * first
        squares = (self.mass + masses) * (output**2 - self.output**2) / 2 - self.mass * self.output * first
        gradient = self.network.gathered(np.stack((squares, -slopes, np.zeros(n))))
        lack = self.lack
        if self.charged:
            biases = mass * step.biases
            lack = lack - self.terms.penalty * slack * differences(step.sums[0]) * biases
            gradient[0] += gathered_differences(self.terms.penalty * biases**2 / 2)
        slacks = np.concatenate((turned**2 / (2 * weight), np.zeros(self.network.k)))
        return Aim(products, slacks, gradient, lack)

    def _strayed(self, products: Floats, step: Step, lengths: tuple[float, float], aimed: float) -> Floats:
        """Products moved towards the aim, where a longer step would leave them far from it."""
        slack, mass = (min(1.0, 1.08 * min(1.0, length) + 0.08) for length in lengths)
        reached = (self.point.multipliers + mass * step.multipliers) * (self.point.slacks + slack * step.slacks)
        low, high = 0.1 * aimed, 10 * aimed
        moved = np.where(reached > high, np.maximum(high - reached, -high), 0.0)
        strayed: Floats = products + np.where(reached < low, low - reached, moved)
        return strayed


def _unknown(sums: Floats) -> Floats:
    """Zero where sums are fixed: at the first node, and for the whole prior."""
    sums[:, 0] = 0.0
    sums[0, -1] = 0.0
    return sums


def _longest(amounts: Floats, changes: Floats) -> float:
    """Length of the longest step that leaves all amounts nonnegative."""
    steepest = float((-changes / amounts).max())
    return 1 / steepest if steepest > 0 else math.inf
