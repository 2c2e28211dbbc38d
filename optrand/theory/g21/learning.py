"""Learning with the likeliest labels only, and Gaussian noise instead ([G21], Corollary 10 and Proposition 11)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice, product
from random import Random

import numpy as np

from optrand.accounting.gaussian import delta_of_gaussian
from optrand.base.arithmetic import exp_bracket
from optrand.closed_forms import rr
from optrand.theory.engine import Comparison, at_most, claim, corrected, draws, equal, false, grid
from optrand.theory.g21.descent import (
    BOUNDED,
    CONVEX,
    FLOATS,
    UNNAMED,
    Descent,
    Gradients,
    Learning,
    Outcome,
    Path,
    rate,
)
from optrand.theory.g21.response import ROUNDING, Rows, Table, TopK, table, top_ks
from optrand.theory.instances import prior, shares
from optrand.theory.sums import largest_ratio, total


def _replace_labels(given: TopK, weights: list[Fraction]) -> Rows:
    """Return the table of randomized response on the kept labels, where other labels become kept ones by weights."""
    among, kept = table(rr(range(given.k), given.epsilon)), given.kept
    other = tuple(total(q * row[j] for q, row in zip(weights, among, strict=True)) for j in range(given.k))
    return tuple(among[kept.index(y)] if y in kept else other for y in range(given.size))


REPLACED = top_ks(10, most=7)


@claim("G21 Corollary 10: labels replaced", REPLACED, given="any prior, any number of labels kept, epsilon above 0")
@false("The same where the label is replaced by one that is drawn from the prior, cut off.", uniform=False)
def replaced_labels_are_top_k(given: TopK, *, uniform: bool = True) -> Comparison:
    """Replacing a label by one of those kept, then randomized response on these, is RRTop-k."""
    drawn = [Fraction(1) if uniform else given.prior[v] for v in given.kept]
    inner = _replace_labels(given, [weight / sum(drawn) for weight in drawn])
    wanted = [[row[v] for v in given.kept] for row in given.tabulated]
    return equal(inner, wanted, tolerance=ROUNDING, scale=1)


@claim("G21 Corollary 10: privacy", REPLACED, given="any prior, any number of labels kept, epsilon above 0")
@false("At 9/10 epsilon.", share=0.9)
def replaced_labels_are_private(given: TopK, share: float = 1.0) -> Comparison:
    """Replacing a label, then randomized response on those kept, is epsilon-DP."""
    inner = _replace_labels(given, [Fraction(1, given.k)] * given.k)
    return at_most(largest_ratio(inner), exp_bracket(share * given.epsilon)[0])


@dataclass(frozen=True)
class Replaced:
    """Chances of examples, a row a feature, the `c` of their losses ``L abs(w - c)``, and the labels that are kept."""

    mass: Rows
    centres: Rows
    kept: tuple[tuple[int, ...], ...]
    diameter: Fraction = Fraction(1)
    lipschitz: Fraction = Fraction(1)

    @property
    def inside(self) -> Table:
        """Whether labels are kept."""
        return np.array([[y in kept for y in range(len(row))] for row, kept in zip(self.mass, self.kept, strict=True)])

    @property
    def unit(self) -> Fraction:
        """``D L Pr[label not kept]``."""
        return self.diameter * self.lipschitz * (1 - total(np.array(self.mass)[self.inside]))

    @cached_property
    def risks(self) -> Table:
        """Risks, and those with labels replaced alike, at the breakpoints: all that is compared is linear between."""
        mass, inside, centres = np.array(self.mass), self.inside, np.array(self.centres)
        lost = ((mass * ~inside).sum(axis=1) / inside.sum(axis=1))[:, np.newaxis]
        points = sorted({Fraction(0), self.diameter, *centres.flat})
        masses = mass, (mass + lost) * inside
        return np.array([[self.lipschitz * total((p * abs(w - centres)).flat) for w in points] for p in masses])


def _certain_labels(_: int) -> Iterator[Replaced]:
    zero, one, third = Fraction(0), Fraction(1), Fraction(1, 3)
    yield Replaced(((zero, one),), ((zero, one),), ((0,),))
    yield Replaced(((zero, third), (1 - third, zero)), ((zero, one), (one, one)), ((0,), (0,)))


def _draw_replaced(draw: Random) -> Replaced:
    features, k = draw.randint(1, 3), draw.randint(2, 4)
    diameter, lipschitz = Fraction(draw.randint(1, 5)), Fraction(draw.randint(1, 5), 2)
    chances = iter(prior(draw, features * k))
    mass = tuple(tuple(islice(chances, k)) for _ in range(features))
    centres = tuple(tuple(diameter * draw.randint(0, 4) / 4 for _ in range(k)) for _ in range(features))
    kept = tuple(tuple(sorted(draw.sample(range(k), draw.randint(1, k)))) for _ in range(features))
    return Replaced(mass, centres, kept, diameter, lipschitz)


EXAMPLES = _certain_labels, draws(150, _draw_replaced)
FINITE = "convex L-Lipschitz losses on an interval of length D, any labels kept"


@claim("G21 Corollary 10: eq. 9", *EXAMPLES, given=FINITE)
@false("The same with ``D L Pr[label not kept]``.", factor=1)
def differences_change_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """With labels replaced, the difference of two points' risks changes by at most ``2 D L Pr[label not kept]``."""
    risks, replaced = given.risks
    return at_most(max(risks - replaced) - min(risks - replaced), factor * given.unit)


@claim("G21 Corollary 10: eq. 10", *EXAMPLES, given=FINITE)
@false("The same with ``D L Pr[label not kept]``.", factor=1)
def excess_grows_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """Replacing labels hides at most ``2 D L Pr[label not kept]`` of any point's distance from the least risk."""
    risks, replaced = given.risks
    return at_most(max(risks - replaced) - min(risks) + min(replaced), factor * given.unit)


def _top_k_learnings(_: int) -> Iterator[Learning]:
    falling = shares((3, 2, 1))
    for steps, law, k in product((1, 2, 3, 6), ((0.5, 0.3, 0.2), (0.0, 0.5, 0.5)), (1, 2, 3)):
        yield Learning(Descent((0.5, 0.0, 1.0), law, steps), 0.99, falling, k)
        yield Learning(Descent((0.0, 1.0, 1.0), law, steps, diameter=2.0, lipschitz=3.0), 0.1, falling, k)
    for power in (8, 10):
        yield Learning(Descent((0.0, 1.0, 0.5), (0.7, 0.2, 0.1), 2**power), 0.99, falling, 2)
    yield Learning(Descent((0.0, 1.0), (0.0, 1.0), 2**8), 0.99, shares((2, 1)), 1)


@claim("G21 Corollary 10: rate", _top_k_learnings, given=f"{CONVEX}, its steps for `k` labels", undecided=UNNAMED)
@corrected("The same with 1 + log(n) for log(n), which is 0 for one row.", plus=1)
@false("The same with 1 + log(n), and a half for the 2.", plus=1, factor=0.5)
def top_k_excess_is_bounded(learning: Learning, plus: int = 0, factor: float = 2.0) -> Comparison:
    """With `k` labels kept, the excess risk is ``O(D L (k log(n) / (epsilon sqrt(n)) + Pr[label not kept]))``."""
    return at_most(learning.surely, learning.bound(plus, factor), tolerance=FLOATS)


CLASSICAL = 2 * math.sqrt(2)
"""The constant `C` at which Dwork and Roth (2014), Theorem A.1, proves the corrected form: the distance is ``2 L``."""

LOGARITHM = math.log(1.25)
"""Summand beside ``log(1 / delta)`` in the corrected form."""

SMALL_BUDGETS = "gradients of norm at most L, epsilon and delta between 0 and 1"


def with_gaussian_noise(descent: Descent, sigma: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    """Return the mean excess risk of [G21], Algorithm 6: Gaussian noise in the space of all labels' gradients."""
    random, below = np.random.default_rng(seed), np.cumsum(descent.law)[:-1]
    moment = math.hypot(descent.lipschitz, math.sqrt(len(descent.law)) * sigma)
    w = np.full(runs, descent.diameter)
    for t in range(1, descent.steps + 1):
        gradient = descent.gradients(w)[np.arange(runs), below.searchsorted(random.random(runs))]
        estimate = gradient + sigma * random.standard_normal(runs)
        w = descent.moved(w, descent.diameter / (moment * math.sqrt(t)) * estimate)
    return descent.excess(w)


def _scale_noise(constant: float, epsilon: float, short: float, added: float) -> float:
    """Return ``C L sqrt(log(1 / delta) + added) / epsilon`` at `L = 1`; delta is `short` of 1."""
    return constant * math.sqrt(added - math.log1p(-short)) / epsilon


SHORT = (0.99, 0.9, 0.5, 0.1, 0.01, 0.001, *(1 - 10.0**-power for power in (3, 5, 9, 12)))
BUDGETS = (
    *(
        grid(constant=[constant], epsilon=[epsilon], short=[*SHORT, (epsilon / (10 * constant)) ** 2])
        for constant in (CLASSICAL, 10.0, 100.0, 1000.0)
        for epsilon in (0.99, 0.5, 0.1, 0.01)
    ),
    draws(
        300,
        lambda draw: {
            "constant": CLASSICAL * draw.uniform(1, 3),
            "epsilon": draw.uniform(0.001, 0.999),
            "short": draw.random(),
        },
    ),
)


@claim("G21 Proposition 11: privacy", *BUDGETS, given=f"{SMALL_BUDGETS}; delta is `short` of 1")
@corrected("The same with ``log(1.25 / delta)``, from ``C = 2 sqrt(2)`` on.", added=LOGARITHM)
@false("As corrected, with half the noise: for a distance of `L`.", added=LOGARITHM, distance=4.0)
def noise_is_enough(
    constant: float, epsilon: float, short: float, *, added: float = 0.0, distance: float = 2.0
) -> Comparison:
    """For a constant `C` and any epsilon and delta below 1, noise ``C L sqrt(log(1 / delta)) / epsilon`` is enough."""
    reached = delta_of_gaussian(distance, _scale_noise(constant, epsilon, short, added), epsilon)
    return at_most(reached, 1 - short, tolerance=FLOATS)


@claim("G21 Proposition 11: sensitivity", *BOUNDED, given="gradients of norm at most L")
@false("They are at a distance of at most ``sqrt(2) L``, as orthogonal ones are.", square=2)
def gradients_are_near(given: Gradients, *, square: int = 4) -> Comparison:
    """Gradients of two labels are at a distance of at most ``2 L``."""
    gaps = given.table[:, np.newaxis] - given.table
    return at_most((gaps**2).sum(axis=2).max(), square * max(given.squares))


@claim("G21 Proposition 11: mean square", *BOUNDED, given="gradients of norm at most L")
@false("The same without the projection.", project=False)
def projected_noise_is_small(given: Gradients, *, project: bool = True) -> Comparison:
    """The gradient and the projected noise (``sigma = L``) have a mean square of at most ``L**2 + K sigma**2``."""
    square, vectors = float(max(given.squares)), given.table.astype(float)
    span = np.linalg.pinv(vectors) @ vectors if project else np.eye(vectors.shape[1])
    return at_most(square * (1 + float(np.square(span).sum())), square * (1 + len(vectors)), tolerance=FLOATS)


TWO_LAWS: tuple[tuple[Path, Path], ...] = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.6, 0.2, 0.2))
NOISY = (
    *(
        grid(descent=[Descent(centres, law, steps, size, slope)], epsilon=[epsilon], short=(1e-6, 0.5, 0.99999))
        for centres, law in TWO_LAWS
        for steps in (2, 8, 64)
        for epsilon, size, slope in ((0.99, 1.0, 1.0), (0.1, 3.0, 2.0))
    ),
    grid(descent=[Descent(*law, 2**power) for law in TWO_LAWS for power in (8, 10)], epsilon=[0.99], short=[0.99999]),
    grid(descent=[Descent((0.0, 1.0), (1.0, 0.0), 2**9)], epsilon=(0.1, 0.001), short=(0.5, 0.99999)),
)


@cache
def _learn_with_noise(descent: Descent, sigma: float) -> float:
    return with_gaussian_noise(descent, sigma).surely


@claim("G21 Proposition 11: rate", *NOISY, given=f"{CONVEX}, delta too, n above 1; C = 2 sqrt(2)", undecided=UNNAMED)
@corrected("The same with ``log(1.25 / delta)``, there and in the noise.", added=LOGARITHM)
@false("The same with ``log(1.25 / delta)`` and without ``1 / epsilon``.", added=LOGARITHM, power=0)
def noisy_excess_is_bounded(
    descent: Descent, epsilon: float, short: float, *, added: float = 0.0, power: int = 1
) -> Comparison:
    """Algorithm 6 is ``O(D L sqrt(K log(1 / delta)) log(n) / (epsilon sqrt(n)))`` from the least risk."""
    price = math.sqrt(len(descent.law) * (added - math.log1p(-short))) / epsilon**power
    sigma = descent.lipschitz * _scale_noise(CLASSICAL, epsilon, short, added)
    return at_most(_learn_with_noise(descent, sigma), price * rate(descent), tolerance=FLOATS)
