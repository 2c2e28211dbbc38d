"""Learning with the likeliest labels only, and Gaussian noise instead ([G21], Corollary 10 and Proposition 11)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, islice, product

import numpy as np

from optrand.accounting.gaussian import delta_of_gaussian
from optrand.base.arithmetic import exp_bracket
from optrand.closed_forms import rr
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.descent import (
    CONVEX,
    FLOATS,
    PLUS,
    Descent,
    Gradients,
    Learning,
    Outcome,
    bounded_gradients,
    of_rates,
    rate,
)
from optrand.theory.g21.response import ROUNDING, Rows, Table, TopK, table, top_ks
from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import largest_ratio, total

__all__ = ["Replaced", "with_gaussian_noise"]


@claim(
    "G21 Corollary 10: labels replaced",
    on=lambda budget: top_ks(budget.pick(quick=20, full=1_500), most=7, seed=11),
    given="any prior, any number of labels kept, epsilon above 0",
    sides=("largest ratio, or a probability of the composition", "exp(epsilon), or that probability by RRTop-k"),
    false=Variant("The same where the label is replaced by one that is drawn from the prior, cut off.", uniform=False),
)
def replaced_labels_are_top_k(given: TopK, uniform: bool = True) -> Comparison:
    """Replacing a label, then randomized response on those kept, is RRTop-k, and so epsilon-DP."""
    among, kept = table(rr(range(given.k), given.epsilon)), given.kept
    drawn = [1 if uniform else given.prior[v] for v in kept]
    stranger = [total(q * row[j] for q, row in zip(drawn, among, strict=True)) / sum(drawn) for j in range(given.k)]
    inner = [among[kept.index(y)] if y in kept else stranger for y in range(given.size)]
    wanted = ([row[v] for v in kept] for row in given.tabulated)
    alike = (equal(*pair, tolerance=ROUNDING, scale=1) for pair in zip(chain(*inner), chain(*wanted), strict=True))
    return worst(at_most(largest_ratio(inner), exp_bracket(given.epsilon)[0]), *alike)


class Replaced(Instance, diameter="D", lipschitz="L"):
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


def _replaced(budget: Budget) -> Iterator[Replaced]:
    zero, one, third = Fraction(0), Fraction(1), Fraction(1, 3)
    yield Replaced(((zero, one),), ((zero, one),), ((0,),))
    yield Replaced(((zero, third), (1 - third, zero)), ((zero, one), (one, one)), ((0,), (0,)))
    random = seeded(10)
    for _ in range(budget.pick(quick=300, full=10_000)):
        features, k = random.randint(1, 3), random.randint(2, 4)
        diameter, lipschitz = Fraction(random.randint(1, 5)), Fraction(random.randint(1, 5), 2)
        chances = iter(prior(random, features * k))
        mass = tuple(tuple(islice(chances, k)) for _ in range(features))
        centres = tuple(tuple(diameter * random.randint(0, 4) / 4 for _ in range(k)) for _ in range(features))
        kept = tuple(tuple(sorted(random.sample(range(k), random.randint(1, k)))) for _ in range(features))
        yield Replaced(mass, centres, kept, diameter, lipschitz)


ONCE = Variant("The same with ``D L Pr[label not kept]``.", factor=1)
SMALL = Variant("The same with 1 + log(n), and a half for the 2.", plus=1, factor=0.5)
FINITE = "convex L-Lipschitz losses on an interval of length D, any labels kept"
of_replaced = partial(claim, "G21", kind="text", on=_replaced, given=FINITE, false=ONCE)


@of_replaced("Corollary 10: eq. 9", sides=("change of the difference of two risks", "bound"))
def differences_change_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """With labels replaced, the difference of two points' risks changes by at most ``2 D L Pr[label not kept]``."""
    risks, replaced = given.risks
    return at_most(max(risks - replaced) - min(risks - replaced), factor * given.unit)


@of_replaced("Corollary 10: eq. 10", sides=("change of the distance from the least risk", "bound"))
def excess_grows_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """Replacing labels hides at most ``2 D L Pr[label not kept]`` of any point's distance from the least risk."""
    risks, replaced = given.risks
    return at_most(max(risks - replaced) - min(risks) + min(replaced), factor * given.unit)


def _learnings(budget: Budget) -> Iterator[Learning]:
    falling = shares((3, 2, 1))
    for steps, law, k in product((1, 2, 3, 6), ((0.5, 0.3, 0.2), (0.0, 0.5, 0.5)), (1, 2, 3)):
        yield Learning(Descent((0.5, 0.0, 1.0), law, steps), 0.99, falling, k)
        yield Learning(Descent((0.0, 1.0, 1.0), law, steps, diameter=2.0, lipschitz=3.0), 0.1, falling, k)
    for power in range(8, budget.pick(quick=12, full=18), 2):
        yield Learning(Descent((0.0, 1.0, 0.5), (0.7, 0.2, 0.1), 2**power), 0.99, falling, 2)
    yield Learning(Descent((0.0, 1.0), (0.0, 1.0), 2**8), 0.99, shares((2, 1)), 1)


@of_rates(
    "Corollary 10: rate",
    on=_learnings,
    given=f"{CONVEX}, its steps for `k` labels",
    sides=("excess risk", "bound"),
    corrected=PLUS,
    false=SMALL,
)
def top_k_excess_is_bounded(learning: Learning, plus: int = 0, factor: float = 2.0) -> Comparison:
    """With `k` labels kept, the excess risk is ``O(D L (k log(n) / (epsilon sqrt(n)) + Pr[label not kept]))``."""
    return at_most(learning.surely, learning.bound(plus, factor), tolerance=FLOATS)


CLASSICAL = 2 * math.sqrt(2)
"""The constant `C` at which Dwork and Roth (2014), Theorem A.1, proves the corrected form: the distance is ``2 L``."""

LOGARITHM = math.log(1.25)
"""What is added to ``log(1 / delta)`` where it is corrected."""

SMALL_BUDGETS = "gradients of norm at most L, epsilon and delta between 0 and 1"
MORE = Variant("The same with ``log(1.25 / delta)``, from ``C = 2 sqrt(2)`` on.", added=LOGARITHM)
HALVED = Variant("As corrected, with half the noise: for a distance of `L`.", added=LOGARITHM, distance=4.0)
BOTH = Variant("The same with ``log(1.25 / delta)``, there and in the noise.", added=LOGARITHM)
FLAT = Variant("The same with ``log(1.25 / delta)`` and without ``1 / epsilon``.", added=LOGARITHM, power=0)


def with_gaussian_noise(descent: Descent, sigma: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    """Mean excess risk of [G21], Algorithm 6: Gaussian noise in the space of all labels' gradients, the whole line."""
    random, below = np.random.default_rng(seed), np.cumsum(descent.law)[:-1]
    moment = math.hypot(descent.lipschitz, math.sqrt(len(descent.law)) * sigma)
    w = np.full(runs, descent.diameter)
    for t in range(1, descent.steps + 1):
        gradient = descent.gradients(w)[np.arange(runs), below.searchsorted(random.random(runs))]
        estimate = gradient + sigma * random.standard_normal(runs)
        w = descent.moved(w, descent.diameter / (moment * math.sqrt(t)) * estimate)
    return descent.excess(w)


class Noise(Instance, constant="C", short="1 - delta"):
    """A constant `C` and a budget; `delta` by what it is short of 1."""

    constant: float
    epsilon: float
    short: float

    def logarithm(self, added: float) -> float:
        """``log(1 / delta) + added``."""
        return added - math.log1p(-self.short)

    def sigma(self, added: float) -> float:
        """``C L sqrt(log(1 / delta) + added) / epsilon`` at `L = 1`."""
        return self.constant * math.sqrt(self.logarithm(added)) / self.epsilon


def _noises(budget: Budget) -> Iterator[Noise]:
    for constant, epsilon in product((CLASSICAL, 10.0, 100.0, 1000.0), (0.99, 0.5, 0.1, 0.01)):
        shorts = (0.99, 0.9, 0.5, 0.1, 0.01, 0.001, *(1 - 10.0**-power for power in (3, 5, 9, 12)))
        yield from (Noise(constant, epsilon, short) for short in (*shorts, (epsilon / (10 * constant)) ** 2))
    random = seeded(12)
    for _ in range(budget.pick(quick=300, full=30_000)):
        yield Noise(CLASSICAL * random.uniform(1, 3), random.uniform(0.001, 0.999), random.random())


@claim(
    "G21 Proposition 11: privacy",
    on=_noises,
    given=SMALL_BUDGETS,
    sides=("delta of the Gaussian noise", "delta that was asked"),
    corrected=MORE,
    false=HALVED,
)
def noise_is_enough(noise: Noise, *, added: float = 0.0, distance: float = 2.0) -> Comparison:
    """For a constant `C` and any epsilon and delta below 1, noise ``C L sqrt(log(1 / delta)) / epsilon`` is enough."""
    reached = delta_of_gaussian(distance, noise.sigma(added), noise.epsilon)
    return at_most(reached, 1 - noise.short, tolerance=FLOATS)


of_gradients = partial(claim, "G21", kind="text", on=bounded_gradients, given="gradients of norm at most L")
ORTHOGONAL = Variant("They are at a distance of at most ``sqrt(2) L``, as orthogonal ones are.", square=2)


@of_gradients(
    "Proposition 11: sensitivity",
    sides=("largest squared distance of two gradients", "squared bound"),
    false=ORTHOGONAL,
)
def gradients_are_near(given: Gradients, *, square: int = 4) -> Comparison:
    """Gradients of two labels are at a distance of at most ``2 L``."""
    gaps = given.table[:, np.newaxis] - given.table
    return at_most((gaps**2).sum(axis=2).max(), square * max(given.squares))


@of_gradients(
    "Proposition 11: mean square",
    sides=("mean square of gradient and noise", "bound"),
    false=Variant("The same without the projection.", project=False),
)
def projected_noise_is_small(given: Gradients, *, project: bool = True) -> Comparison:
    """The gradient and the projected noise (``sigma = L``) have a mean square of at most ``L**2 + K sigma**2``."""
    square, vectors = float(max(given.squares)), given.table.astype(float)
    span = np.linalg.pinv(vectors) @ vectors if project else np.eye(vectors.shape[1])
    return at_most(square * (1 + float(np.square(span).sum())), square * (1 + len(vectors)), tolerance=FLOATS)


class Noisy(Instance, descent="", noise=""):
    """Algorithm 6 on an interval."""

    descent: Descent
    noise: Noise


def _noisy(budget: Budget) -> Iterator[Noisy]:
    laws = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.6, 0.2, 0.2))
    for steps, law, short in product((2, 8, 64), laws, (1e-6, 0.5, 0.99999)):
        yield Noisy(Descent(*law, steps), Noise(CLASSICAL, 0.99, short))
        yield Noisy(Descent(*law, steps, diameter=3.0, lipschitz=2.0), Noise(CLASSICAL, 0.1, short))
    for power, law in product(range(8, budget.pick(quick=11, full=17), 2), laws):
        yield Noisy(Descent(*law, 2**power), Noise(CLASSICAL, 0.99, 0.99999))
    for epsilon, short in ((0.1, 0.99999), (0.001, 0.5)):
        yield Noisy(Descent((0.0, 1.0), (1.0, 0.0), 2**9), Noise(CLASSICAL, epsilon, short))


@of_rates(
    "Proposition 11: rate",
    on=_noisy,
    given=f"{CONVEX}, delta too, n above 1",
    sides=("excess risk", "bound"),
    corrected=BOTH,
    false=FLAT,
)
def excess_is_bounded(noisy: Noisy, *, added: float = 0.0, power: int = 1) -> Comparison:
    """Algorithm 6 is ``O(D L sqrt(K log(1 / delta)) log(n) / (epsilon sqrt(n)))`` from the least risk."""
    descent, noise = noisy.descent, noisy.noise
    price = math.sqrt(len(descent.law) * noise.logarithm(added)) / noise.epsilon**power
    found = with_gaussian_noise(descent, descent.lipschitz * noise.sigma(added)).surely
    return at_most(found, price * rate(descent), tolerance=FLOATS)
