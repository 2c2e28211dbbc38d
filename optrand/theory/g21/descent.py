"""Gradient descent with noisy labels: Algorithms 5 and 6 ([G21], Theorem 9, Corollary 10, Proposition 11).

The steps of the proofs are tried in fractions, over all noisy labels. The rates, whose constants are unnamed, are tried
in one dimension with drawn labels: a mean less five standard errors is at most the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction as F
from functools import cache
from itertools import islice, product
from operator import mul
from random import Random
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from optrand.base._arithmetic import exp_bracket, log_bracket
from optrand.closed_forms import rr
from optrand.estimate import top_k_loss_weights
from optrand.theory._engine import TOLERANCE, Comparison, Draws, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory._shared import RATIOS, Row, Table, prior, push_forward, ratio_of_neighbours, shares, total
from optrand.theory.g21.response import ANY_NUMBER, kept_labels, table, top_k_rows, top_ks

UNNAMED = "the constant is not named, and all convex losses and distributions are meant"


@cache
def response_rows(k: int, ratio: F) -> Table:
    return np.array(top_k_rows((F(1, k),) * k, k, ratio))


def estimates(vectors: Table, ratio: F, *, plain: bool = False) -> Table:
    """Return eq. (7), a row for each noisy label, from the gradients of all labels.

    Gradients are divided by ``E + K - 1``, or by `K` if plain.
    """
    size = ratio + len(vectors) - 1
    mean = vectors.sum(axis=0) / (len(vectors) if plain else size)
    return size / (ratio - 1) * (vectors - mean)


def _square(vectors: Table) -> Table:
    return (vectors**2).sum(axis=1)


def _signs(ratios: tuple[F, ...]) -> tuple[Any, ...]:
    """Return all signs of up to four labels, and many labels of balanced signs, as gradients in one dimension."""
    ends = ((F(1),), (F(-1),))
    few = [grid(vectors=[np.array(v) for v in product(ends, repeat=k)], ratio=ratios) for k in range(2, 5)]
    return *few, grid(vectors=[np.array(ends * half) for half in (8, 32)], ratio=ratios[:2])


def _draw_gradients(draw: Random) -> Table:
    k, size = draw.randint(2, 8), draw.randint(1, 4)
    return np.array([[F(draw.randint(-9, 9)) for _ in range(size)] for _ in range(k)])


SMALL_RATIOS = tuple(map(F, ("2", "11/10", "4/3", "271/100", "1000001/1000000")))
"""Settings with budgets between 0 and 1, which the theorem is about."""

BOUNDED = *_signs(SMALL_RATIOS), draws(40, vectors=_draw_gradients, ratio=SMALL_RATIOS)
SMALL = "gradients of norm at most L, at least two labels, epsilon between 0 and 1"


@claim(
    "G21 Theorem 9: unbiased",
    *_signs(RATIOS),
    draws(40, vectors=_draw_gradients, ratio=RATIOS),
    grid(vectors=[np.array([[F(1)]])], ratio=RATIOS),
    given="any gradients, epsilon above 0",
)
@false("The same with the mean gradient of the `K` labels for their sum over ``E + K - 1``.", plain=True)
def estimate_is_unbiased(vectors: Table, ratio: F, *, plain: bool = False) -> Comparison:
    """The estimate of eq. (7), over the noisy labels of each label, has the gradient of the label as its mean."""
    return equal(response_rows(len(vectors), ratio) @ estimates(vectors, ratio, plain=plain), vectors)


@claim("G21 Theorem 9: mean square", *BOUNDED, given=SMALL)
@false("It has one of at most ``K**2 L**2 / epsilon**2``, which its variance keeps to.", factor=1)
def mean_square_is_bounded(vectors: Table, ratio: F, *, factor: int = 36) -> Comparison:
    """The estimate of eq. (7) has a mean square, and so a variance, of at most ``36 K**2 L**2 / epsilon**2``."""
    bound = F(factor * len(vectors) ** 2 * max(_square(vectors))) / log_bracket(ratio)[1] ** 2
    return at_most(response_rows(len(vectors), ratio) @ _square(estimates(vectors, ratio)), bound)


Path = tuple[float, ...]
"""Iterates in order, or one number for each label."""


def _follow(centres: Path, epsilon: float, labels: tuple[int, ...]) -> dict[Path, F]:
    """Return the probability of each sequence of iterates of Algorithm 5 on ``[0, 1]``, from 1.

    The losses are ``abs(w - c)``, one centre `c` for each label. The rows have the given labels.
    """
    k = len(centres)
    chances, weights = table(rr(range(k), epsilon)), top_k_loss_weights(range(k), [True] * k, epsilon)

    def move(drawn: tuple[Path, int]) -> Path:
        iterates, noisy = drawn
        signs = (1 if iterates[-1] >= centre else -1 for centre in centres)
        step = epsilon / (6 * k * math.sqrt(len(iterates))) * sum(map(mul, weights[noisy].tolist(), signs))
        return (*iterates, min(max(iterates[-1] - step, 0.0), 1.0))

    found: dict[Path, F] = {(1.0,): F(1)}
    for label in labels:
        found = push_forward((((w, v), p * q) for w, p in found.items() for v, q in enumerate(chances[label])), move)
    return found


@claim(
    "G21 Theorem 9: privacy",
    rows=(1, 2),
    epsilon=(0.7, 0.1, 0.99, 0.3, 1e-6),
    centres=((0.0, 1.0), (0.5, 0.5), (0.0, 0.5, 1.0)),
    given="each row seen once, losses abs(w - c) from w = 1, epsilon between 0 and 1",
)
@false("The same with two passes over the rows, each with noise of its own.", passes=2)
def descent_is_private(rows: int, epsilon: float, centres: Path, passes: int = 1) -> Comparison:
    """Algorithm 5, which looks at each row once, is epsilon-LabelDP: even all its iterates together are."""
    data_sets = product(range(len(centres)), repeat=rows)
    laws = {labels: _follow(centres, epsilon, labels * passes) for labels in data_sets}
    return at_most(ratio_of_neighbours(laws), exp_bracket(epsilon)[0])


@dataclass(frozen=True)
class Descent:
    """Labels of some law with losses ``lipschitz * abs(w - diameter * c)``, and a number of steps from the diameter."""

    centres: Path
    law: Path
    steps: int
    diameter: float = 1.0
    lipschitz: float = 1.0

    @property
    def unit(self) -> float:
        """``D L / sqrt(n)``."""
        return self.diameter * self.lipschitz / math.sqrt(self.steps)

    def follow(self, first: float, epsilon: float, sigma: float, runs: int) -> tuple[float, float]:
        """Return the mean excess risk, and its standard error, after steps of ``first / sqrt(t)`` times an estimate.

        That is eq. (7) with labels randomized at epsilon, or the gradient with Gaussian noise, at an infinite one.
        """
        w, centres = np.full(runs, self.diameter), self.diameter * np.array(self.centres)
        random = np.random.default_rng(0)
        rest, law = math.exp(-epsilon), np.array(self.law)
        size = 1 + (law.size - 1) * rest
        below = np.cumsum((law * (1 - rest) + rest) / size)[:-1]
        for t in range(1, self.steps + 1):
            # At a centre the gradient is that of the upper side.
            own = np.where(w[:, np.newaxis] >= centres, self.lipschitz, -self.lipschitz)
            drawn = own[np.arange(runs), below.searchsorted(random.random(runs))]
            estimate = (drawn * size - own.sum(axis=1) * rest) / (1 - rest) + sigma * random.standard_normal(runs)
            w = np.clip(w - first / math.sqrt(t) * estimate, 0.0, self.diameter)
        # The risk is piecewise linear, so that it is least at a centre.
        risks = [self.lipschitz * np.abs(at[:, np.newaxis] - centres) @ law for at in (w, centres)]
        excess = risks[0] - risks[1].min()
        return float(excess.mean()), float(excess.std(ddof=1) / math.sqrt(runs))


@cache
def with_responses(descent: Descent, epsilon: float, *, runs: int = 400) -> tuple[float, float]:
    """Return the mean excess risk of [G21], Algorithm 5, and its standard error."""
    first = descent.diameter * epsilon / (6 * len(descent.law) * descent.lipschitz)
    return descent.follow(first, epsilon, 0.0, runs)


LAWS: tuple[tuple[Path, Path], ...] = (
    ((0.0, 1.0), (1.0, 0.0)),
    ((0.0, 1.0), (0.6, 0.4)),
    ((0.0, 0.5, 1.0), (0.5, 0.1, 0.4)),
    ((0.0, 0.0, 1.0, 1.0), (0.7, 0.1, 0.1, 0.1)),
)
CONVEX = "convex L-Lipschitz loss, diameter D, epsilon between 0 and 1"


@claim(
    "G21 Theorem 9: rate",
    grid(
        descent=[Descent(*law, steps, *scale) for steps in (1, 2, 3, 6) for law in LAWS for scale in ((), (3.0, 2.0))],
        epsilon=(0.99, 0.1),
    ),
    grid(descent=[Descent(*LAWS[0], 2**10)], epsilon=[0.01]),
    grid(descent=[Descent(*law, 2**8) for law in LAWS], epsilon=[0.99]),
    given=f"{CONVEX}, the steps of the theorem",
    undecided=UNNAMED,
)
@corrected("The same with 1 + log(n) for log(n), which is 0 for one row.", plus=1)
@false("The same with 1 + log(n), and without 1 / epsilon.", plus=1, power=0)
def excess_is_bounded(descent: Descent, epsilon: float, plus: int = 0, power: int = 1) -> Comparison:
    """Algorithm 5 is within a constant (1 is tried) times ``D L K log(n) / (epsilon sqrt(n))`` of the least risk."""
    mean, error = with_responses(descent, epsilon)
    bound = len(descent.law) / epsilon**power * (plus + math.log(descent.steps)) * descent.unit
    return at_most(mean - 5 * error, bound, tolerance=TOLERANCE.floats)


@claim("G21 Corollary 10: labels replaced", *top_ks(40, most=7), given=ANY_NUMBER)
@false("The same if the label is replaced by one that is drawn from the prior, cut off.", uniform=False)
def replaced_labels_are_top_k(prior: Row, ratio: F, k: int, *, uniform: bool = True) -> Comparison:
    """Replacing a label by one of those kept, then randomized response on these, is RRTop-k."""
    kept, among = list(kept_labels(prior, k)), response_rows(k, ratio)
    other = np.array(shares([1 if uniform else prior[v] for v in kept])) @ among
    rows = [among[kept.index(y)] if y in kept else other for y in range(len(prior))]
    return equal(rows, np.array(top_k_rows(prior, k, ratio))[:, kept])


@dataclass(frozen=True, eq=False)
class Replaced:
    """Chances of examples, one row per feature, the `c` of their losses ``L abs(w - c)``, and which labels are kept."""

    mass: Table
    centres: Table
    kept: Table
    diameter: F = F(1)
    lipschitz: F = F(1)

    @property
    def unit(self) -> F:
        """``D L Pr[label not kept]``."""
        return self.diameter * self.lipschitz * total(self.mass[~self.kept])

    @property
    def risks(self) -> Table:
        """Risks, and those with labels replaced alike, at the breakpoints: all that is compared is linear between."""
        lost = (self.mass * ~self.kept).sum(axis=1, keepdims=True) / self.kept.sum(axis=1, keepdims=True)
        points = sorted({F(0), self.diameter, *self.centres.flat})
        masses = self.mass, (self.mass + lost) * self.kept
        return np.array([[self.lipschitz * total((p * abs(w - self.centres)).flat) for w in points] for p in masses])


def _draw_replaced(draw: Random) -> Replaced:
    features, k = draw.randint(1, 3), draw.randint(2, 4)
    diameter, lipschitz = F(draw.randint(1, 5)), F(draw.randint(1, 5), 2)
    chances = iter(prior(draw, features * k))
    mass = [[*islice(chances, k)] for _ in range(features)]
    centres = [[diameter * draw.randint(0, 4) / 4 for _ in range(k)] for _ in range(features)]
    kept = [draw.sample(range(k), draw.randint(1, k)) for _ in range(features)]
    inside = [[y in some for y in range(k)] for some in kept]
    return Replaced(np.array(mass), np.array(centres), np.array(inside), diameter, lipschitz)


@claim(
    "G21 Corollary 10: eq. 9",
    Draws(80, _draw_replaced),
    given="convex L-Lipschitz losses on an interval of length D, any labels kept",
)
@false("The same with ``D L Pr[label not kept]``.", factor=1)
def differences_change_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """With labels replaced, the difference of two points' risks changes by at most ``2 D L Pr[label not kept]``.

    So replacing labels hides no more than that of any point's distance from the least risk (eq. 10).
    """
    risks, replaced = given.risks
    return at_most(max(risks - replaced) - min(risks - replaced), factor * given.unit)


CLASSICAL = 2 * math.sqrt(2)
"""The constant `C` at which Dwork and Roth (2014), Theorem A.1, proves the corrected form: the distance is ``2 L``."""

LOGARITHM = math.log(1.25)
"""Summand beside ``log(1 / delta)`` in the corrected form."""


def _scale_noise(constant: float, epsilon: float, short: float, added: float) -> float:
    """Return ``C L sqrt(log(1 / delta) + added) / epsilon`` at `L = 1`, where delta is ``1 - short``."""
    return constant * math.sqrt(added - math.log1p(-short)) / epsilon


BUDGETS = (
    *(
        grid(
            constant=[constant],
            epsilon=[epsilon],
            short=[0.99, 0.5, 0.01, 0.001, *(1 - 10.0**-n for n in (3, 6, 12)), (epsilon / (10 * constant)) ** 2],
        )
        for constant in (CLASSICAL, 10.0, 1000.0)
        for epsilon in (0.99, 0.5, 0.01)
    ),
    draws(
        100,
        constant=lambda draw: CLASSICAL * draw.uniform(1, 3),
        epsilon=lambda draw: draw.uniform(0.001, 0.999),
        short=lambda draw: draw.random(),
    ),
)


def gaussian_tails(distance: float, sigma: float, epsilon: float) -> tuple[float, float]:
    r"""Return the two probabilities whose difference is the least delta of Gaussian noise for a distance.

    Two points at a distance :math:`\Delta`, each with noise :math:`N(0, \sigma^2 I)`, are :math:`(\epsilon,
    \delta)`-close if and only if, with :math:`\mu = \Delta / \sigma` (Balle and Wang, 2018, Theorem 8),

    .. math:: \Phi\Big(\frac\mu2 - \frac\epsilon\mu\Big) - e^\epsilon \, \Phi\Big(-\frac\mu2 -
              \frac\epsilon\mu\Big) \leq \delta.
    """
    mu = distance / sigma
    return float(ndtr(mu / 2 - epsilon / mu)), math.exp(epsilon + float(log_ndtr(-mu / 2 - epsilon / mu)))


@claim("G21 Proposition 11: privacy", *BUDGETS, given="norms of at most L, epsilon below 1, delta is `1 - short`")
@corrected("The same with ``log(1.25 / delta)``, from ``C = 2 sqrt(2)`` on.", added=LOGARITHM)
@false("As corrected, with half the noise: for a distance of `L`.", added=LOGARITHM, distance=4.0)
def noise_is_enough(constant: float, epsilon: float, short: float, added: float = 0, distance: float = 2) -> Comparison:
    """For a constant `C` and any epsilon and delta below 1, noise ``C L sqrt(log(1 / delta)) / epsilon`` is enough."""
    near, far = gaussian_tails(distance, _scale_noise(constant, epsilon, short, added), epsilon)
    return at_most(near - far, 1 - short, tolerance=TOLERANCE.floats)


@claim("G21 Proposition 11: sensitivity", *BOUNDED, given="gradients of norm at most L")
@false("They are at a distance of at most ``sqrt(2) L``, as orthogonal ones are.", square=2)
def gradients_are_near(vectors: Table, *, square: int = 4) -> Comparison:
    """Gradients of two labels are at a distance of at most ``2 L``."""
    gaps = vectors[:, np.newaxis] - vectors
    return at_most((gaps**2).sum(axis=2).max(), square * max(_square(vectors)))


@claim("G21 Proposition 11: mean square", *BOUNDED, given="gradients of norm at most L")
@false("The same without the projection.", project=False)
def projected_noise_is_small(vectors: Table, *, project: bool = True) -> Comparison:
    """The gradient and the projected noise (``sigma = L``) have a mean square of at most ``L**2 + K sigma**2``."""
    square, floats = float(max(_square(vectors))), vectors.astype(float)
    span = np.linalg.pinv(floats) @ floats if project else np.eye(floats.shape[1])
    return at_most(square * (1 + float(np.square(span).sum())), square * (1 + len(vectors)), tolerance=TOLERANCE.floats)


@cache
def with_gaussian_noise(descent: Descent, sigma: float, *, runs: int = 400) -> tuple[float, float]:
    """Return the mean excess risk of [G21], Algorithm 6: Gaussian noise in the space of all labels' gradients."""
    moment = math.hypot(descent.lipschitz, math.sqrt(len(descent.law)) * sigma)
    return descent.follow(descent.diameter / moment, math.inf, sigma, runs)


TWO_LAWS: tuple[tuple[Path, Path], ...] = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.6, 0.2, 0.2))


@claim(
    "G21 Proposition 11: rate",
    *(
        grid(descent=[Descent(*law, steps, *scale)], epsilon=[epsilon], short=(1e-6, 0.5, 0.99999))
        for law in TWO_LAWS
        for steps in (2, 8, 32)
        for epsilon, *scale in ((0.99, 1.0, 1.0), (0.1, 3.0, 2.0))
    ),
    grid(descent=[Descent(*law, 2**power) for law in TWO_LAWS for power in (6, 8)], epsilon=[0.99], short=[0.99999]),
    grid(descent=[Descent((0.0, 1.0), (1.0, 0.0), 2**9)], epsilon=(0.1, 0.001), short=(0.5, 0.99999)),
    given=f"{CONVEX}, delta too, n above 1, C = 2 sqrt(2)",
    undecided=UNNAMED,
)
@corrected("The same with ``log(1.25 / delta)``, there and in the noise.", added=LOGARITHM)
@false("The same with ``log(1.25 / delta)`` and without ``1 / epsilon``.", added=LOGARITHM, power=0)
def noisy_excess(descent: Descent, epsilon: float, short: float, added: float = 0, power: int = 1) -> Comparison:
    """Algorithm 6 is ``O(D L sqrt(K log(1 / delta)) log(n) / (epsilon sqrt(n)))`` from the least risk."""
    price = math.sqrt(len(descent.law) * (added - math.log1p(-short))) / epsilon**power
    mean, error = with_gaussian_noise(descent, descent.lipschitz * _scale_noise(CLASSICAL, epsilon, short, added))
    return at_most(mean - 5 * error, price * math.log(descent.steps) * descent.unit, tolerance=TOLERANCE.floats)
