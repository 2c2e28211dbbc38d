"""Gradient descent with labels of randomized response: privacy and rates of Algorithm 5 ([G21], Theorem 9).

The steps of the proof are tried in fractions, over all noisy labels; the rates, whose constants are unnamed, in one
dimension: of a few steps all noisy labels are followed, of many some are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import islice, product
from operator import mul, ne

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import exp_bracket, log_bracket
from optrand.base.validation import Floats
from optrand.closed_forms import rr, rr_top_k
from optrand.estimate import loss_weights, top_k_loss_weights
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import Rows, Table, table, top_k_rows
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import largest_ratio, pushed

__all__ = ["Descent", "Gradients", "Learning", "Outcome", "bounded_gradients", "rate", "with_responses"]

SMALL_RATIOS = tuple(Fraction(text) for text in ("2", "11/10", "4/3", "271/100", "1000001/1000000"))
"""Of budgets between 0 and 1, for which the theorem speaks."""

MOST_PATHS = 5_000
"""Up to so many sequences of noisy labels are followed, all of them; beyond, descents are drawn."""

FLOATS = 1e-12
"""What the means of descents are forgiven beside their standard errors."""

UNNAMED = "the constant is not named, and all convex losses and distributions are meant"


def response_rows(k: int, ratio: Fraction) -> Table:
    """Randomized response on `k` labels."""
    return np.array(top_k_rows((Fraction(1, k),) * k, k, ratio))


class Gradients(Instance, vectors="gradients"):
    """The gradients of all labels at one point, and a privacy ratio."""

    vectors: tuple[tuple[Fraction, ...], ...]
    ratio: Fraction

    @cached_property
    def table(self) -> Table:
        """The gradients, a row a label."""
        return np.array(self.vectors)

    @property
    def squares(self) -> Table:
        """Squares of their norms; the largest is that of the Lipschitz constant."""
        squares: Table = (self.table**2).sum(axis=1)
        return squares

    def estimates(self, *, plain: bool = False) -> Table:
        """Eq. (7), a row a noisy label; the gradients' sum is divided by ``E + K - 1``, or by `K` for a plain mean."""
        size = self.ratio + len(self.table) - 1
        mean = self.table.sum(axis=0) / (len(self.table) if plain else size)
        estimates: Table = size / (self.ratio - 1) * (self.table - mean)
        return estimates

    @cached_property
    def moments(self) -> tuple[Fraction, Fraction]:
        """Largest variance of the estimate, and its largest mean square, over the labels."""
        seconds = response_rows(len(self.table), self.ratio) @ (self.estimates() ** 2).sum(axis=1)
        return max(seconds - self.squares), max(seconds)

    def bound(self, *, factor: int = 36, power: int = 2) -> Fraction:
        """``factor * K**power * L**2 / epsilon**2``, or hardly less."""
        return Fraction(factor * len(self.table) ** power * max(self.squares)) / log_bracket(self.ratio)[1] ** 2


def _gradients(ratios: tuple[Fraction, ...], count: int) -> Iterator[Gradients]:
    """All signs of up to four labels, many labels of balanced signs, random vectors."""
    signs = ((Fraction(1),), (Fraction(-1),))
    for k, ratio in product(range(2, 5), ratios):
        yield from (Gradients(vectors, ratio) for vectors in product(signs, repeat=k))
    yield from (Gradients(signs * (k // 2), ratio) for k, ratio in product((16, 64), ratios[:2]))
    random = seeded(9)
    for number in range(count):
        k, size = random.randint(2, 8), random.randint(1, 4)
        vectors = tuple(tuple(Fraction(random.randint(-9, 9)) for _ in range(size)) for _ in range(k))
        yield Gradients(vectors, ratios[number % len(ratios)])


def _any_gradients(budget: Budget) -> Iterator[Gradients]:
    yield from _gradients(RATIOS, budget.pick(quick=100, full=3_000))
    yield from (Gradients(((Fraction(1),),), ratio) for ratio in RATIOS)


def _few_gradients(budget: Budget) -> Iterator[Gradients]:
    return islice(_gradients(RATIOS[:5], 0), 0, None, budget.pick(quick=7, full=1))


def bounded_gradients(budget: Budget) -> Iterator[Gradients]:
    """Of budgets for which the theorem speaks."""
    return _gradients(SMALL_RATIOS, budget.pick(quick=100, full=3_000))


PLAIN = Variant("The same with the mean gradient of the `K` labels for their sum over ``E + K - 1``.", plain=True)
PASSES = Variant("The same with two passes over the rows, each with noise of its own.", passes=2)
of_any = partial(claim, "G21", given="any gradients, epsilon above 0", false=PLAIN)


@of_any(
    "Theorem 9: unbiased",
    kind="text",
    on=_any_gradients,
    sides=("mean of the estimate, by coordinate", "gradient of the label, by coordinate"),
)
def estimate_is_unbiased(given: Gradients, *, plain: bool = False) -> Comparison:
    """The estimate of eq. (7), over the noisy labels of each label, has the gradient of the label as its mean."""
    means = response_rows(len(given.table), given.ratio) @ given.estimates(plain=plain)
    return worst(*map(equal, means.flat, given.table.flat))


@of_any(
    "Theorem 9: weights",
    kind="ours",
    on=_few_gradients,
    sides=("largest distance from eq. (7)", "rounding that is forgiven"),
)
def weights_are_eq_7(given: Gradients, *, plain: bool = False) -> Comparison:
    """The weights of losses that the package makes for randomized response, in two ways, are those of eq. (7)."""
    epsilon, labels, vectors = math.log(given.ratio), np.arange(len(given.table)), given.table.astype(float)
    mechanism, wanted = rr(labels, epsilon), given.estimates(plain=plain).astype(float)
    ways = loss_weights(mechanism) @ vectors, top_k_loss_weights(labels, labels >= 0, epsilon) @ vectors
    gaps = [found for way in ways for found in (way - wanted, mechanism.matrix @ way - vectors)]
    return at_most(float(np.abs(gaps).max()), 2 * FLOATS * max(1.0, float(np.abs(wanted).max())))


SMALL = "gradients of norm at most L, at least two labels, epsilon between 0 and 1"
of_bounded = partial(claim, "G21", kind="text", on=bounded_gradients, given=SMALL)
FACTOR = Variant("It has one of at most ``K**2 L**2 / epsilon**2``, which its variance keeps to.", factor=1)


@of_bounded(
    "Theorem 9: variance",
    sides=("variance of the estimate", "bound"),
    false=Variant("It has a variance of at most ``36 K L**2 / epsilon**2``.", power=1),
)
def variance_is_bounded(given: Gradients, *, power: int = 2) -> Comparison:
    """The estimate of eq. (7) has a variance of at most ``36 K**2 L**2 / epsilon**2``."""
    return at_most(given.moments[0], given.bound(power=power))


@of_bounded("Theorem 9: mean square", sides=("mean square of the estimate", "bound"), false=FACTOR)
def mean_square_is_bounded(given: Gradients, *, factor: int = 36) -> Comparison:
    """The estimate itself has a mean square of at most ``36 K**2 L**2 / epsilon**2``."""
    return at_most(given.moments[1], given.bound(factor=factor))


Path = tuple[float, ...]
"""Iterates in order."""


class Run(Instance, centres="losses abs(w - c) from w = 1 with c", rows="n"):
    """Some steps of Algorithm 5 on a small data set, on ``[0, 1]``."""

    centres: Path
    epsilon: float
    rows: int

    def law(self, labels: tuple[int, ...]) -> dict[Path, Fraction]:
        """Probability of each sequence of iterates, on rows with these labels."""
        k = len(self.centres)
        chances, weights = table(rr(range(k), self.epsilon)), top_k_loss_weights(range(k), [True] * k, self.epsilon)

        def moved(drawn: tuple[Path, int]) -> Path:
            iterates, noisy = drawn
            signs = (1 if iterates[-1] >= centre else -1 for centre in self.centres)
            step = self.epsilon / (6 * k * math.sqrt(len(iterates))) * sum(map(mul, weights[noisy].tolist(), signs))
            return (*iterates, min(max(iterates[-1] - step, 0.0), 1.0))

        found: dict[Path, Fraction] = {(1.0,): Fraction(1)}
        for label in labels:
            found = pushed((((w, v), p * q) for w, p in found.items() for v, q in enumerate(chances[label])), moved)
        return found


def _runs(budget: Budget) -> Iterator[Run]:
    for rows, epsilon in product(range(1, budget.pick(quick=3, full=5)), (0.7, 0.1, 0.99, 0.3, 1e-6)):
        yield from (Run(centres, epsilon, rows) for centres in ((0.0, 1.0), (0.5, 0.5), (0.0, 0.5, 1.0)))


@claim(
    "G21 Theorem 9: privacy",
    on=_runs,
    given="each row seen once, any steps, epsilon between 0 and 1",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    false=PASSES,
)
def descent_is_private(run: Run, passes: int = 1) -> Comparison:
    """Algorithm 5, which looks at each row once, is epsilon-LabelDP: even all its iterates together are."""
    found = {labels: run.law(labels * passes) for labels in product(range(len(run.centres)), repeat=run.rows)}
    pairs = (pair for pair in product(found, repeat=2) if sum(map(ne, *pair)) == 1)
    return at_most(max(largest_ratio([found[a], found[b]]) for a, b in pairs), exp_bracket(run.epsilon)[0])


class Outcome(Instance):
    """A mean, and its standard error: 0 where all that can happen was followed."""

    mean: float
    error: float = 0.0

    @property
    def surely(self) -> float:
        """Lower bound of the mean: five standard errors below it."""
        return self.mean - 5 * self.error


class Descent(Instance, centres="losses L abs(w - D c) with c", diameter="D", lipschitz="L", steps="n"):
    """Labels of some law with losses ``lipschitz * abs(w - diameter * c)``, and so many steps from the diameter."""

    centres: tuple[float, ...]
    law: tuple[float, ...]
    steps: int
    diameter: float = 1.0
    lipschitz: float = 1.0

    def excess(self, w: Floats, chances: Floats | None = None) -> Outcome:
        """Excess risk of points with these chances, or of equally many descents: the least is at one of the centres."""
        centres = self.diameter * np.array(self.centres)
        risks = [self.lipschitz * np.abs(at[:, np.newaxis] - centres) @ np.array(self.law) for at in (w, centres)]
        excess: Floats = risks[0] - risks[1].min()
        if chances is not None:
            return Outcome(float(chances @ excess))
        return Outcome(float(excess.mean()), float(excess.std(ddof=1) / math.sqrt(w.size)))

    def gradients(self, w: Floats) -> Floats:
        """Gradients at points, shape (points, labels); at a centre, that of the upper side."""
        above = w[:, np.newaxis] >= self.diameter * np.array(self.centres)
        return np.where(above, self.lipschitz, -self.lipschitz)

    def moved(self, w: Floats, towards: Floats) -> Floats:
        """Points after a step, put back where they left the interval."""
        return np.clip(w - towards, 0.0, self.diameter)


def rate(descent: Descent) -> float:
    """``D L log(n) / sqrt(n)``."""
    return descent.diameter * descent.lipschitz * math.log(descent.steps) / math.sqrt(descent.steps)


def with_responses(descent: Descent, table: Floats, epsilon: float, *, runs: int = 400, seed: int = 0) -> Outcome:
    """Mean excess risk of [G21], Algorithm 5, with randomized response on the labels that a table can give."""
    kept = np.flatnonzero(table.any(axis=0))
    noisy = (np.array(descent.law) @ table)[kept]
    noisy /= noisy.sum()
    size, first = math.expm1(epsilon) + kept.size, descent.diameter * epsilon / (6 * kept.size * descent.lipschitz)
    random, below, chances = np.random.default_rng(seed), noisy.cumsum()[:-1], None
    labels: Iterable[NDArray[np.intp]] = (below.searchsorted(random.random(runs)) for _ in range(descent.steps))
    if kept.size**descent.steps <= MOST_PATHS:
        paths = np.array(list(product(range(kept.size), repeat=descent.steps)))
        labels, chances, runs = paths.T, noisy[paths].prod(axis=1), len(paths)
    w = np.full(runs, descent.diameter)
    for t, drawn in enumerate(labels, 1):
        own = descent.gradients(w)[:, kept]
        estimate = (own[np.arange(runs), drawn] - own.sum(axis=1) / size) * size / math.expm1(epsilon)
        w = descent.moved(w, first / math.sqrt(t) * estimate)
    return descent.excess(w, chances)


class Learning(Instance):
    """Algorithm 5 on an interval, with the `k` labels that a prior keeps, or with all labels."""

    descent: Descent
    epsilon: float
    prior: tuple[Fraction, ...] | None = None
    k: int | None = None

    @cached_property
    def table(self) -> Rows:
        """The mechanism."""
        if self.prior is None or self.k is None:
            return table(rr(range(len(self.descent.law)), self.epsilon))
        return table(rr_top_k(list(map(float, self.prior)), self.k, self.epsilon))

    def after(self, steps: int, *, runs: int = 400) -> Outcome:
        """Excess risk after so many steps."""
        return with_responses(
            replace(self.descent, steps=steps), np.array(self.table, dtype=float), self.epsilon, runs=runs
        )

    @cached_property
    def surely(self) -> float:
        """Excess risk, less five standard errors where descents are drawn."""
        return self.after(self.descent.steps).surely

    def bound(self, plus: int, factor: float = 0.0, *, epsilon: bool = True) -> float:
        """``D L (k (plus + log(n)) / (epsilon sqrt(n)) + factor Pr[label not kept])``."""
        kept, scale = [p for p, v in zip(self.descent.law, self.table[0], strict=True) if v], self.descent.diameter
        scale *= self.descent.lipschitz
        slow = rate(self.descent) + plus * scale / math.sqrt(self.descent.steps)
        return len(kept) / (self.epsilon if epsilon else 1) * slow + factor * scale * max(0.0, 1 - math.fsum(kept))


LAWS = (
    ((0.0, 1.0), (1.0, 0.0)),
    ((0.0, 1.0), (0.6, 0.4)),
    ((0.0, 0.5, 1.0), (0.5, 0.1, 0.4)),
    ((0.0, 0.0, 1.0, 1.0), (0.7, 0.1, 0.1, 0.1)),
)


def _learnings(budget: Budget) -> Iterator[Learning]:
    for steps, law, epsilon in product((1, 2, 3, 6), LAWS, (0.99, 0.1)):
        yield from (Learning(Descent(*law, steps, *scale), epsilon) for scale in ((1.0, 1.0), (3.0, 2.0)))
    yield Learning(Descent(*LAWS[0], 2**10), 0.01)
    for power, law in product(range(8, budget.pick(quick=12, full=18), 2), LAWS):
        yield Learning(Descent(*law, 2**power), 0.99)


CONVEX = "convex L-Lipschitz loss, diameter D, epsilon between 0 and 1"
PLUS = Variant("The same with 1 + log(n) for log(n), which is 0 for one row.", plus=1)
FLAT = Variant("The same with 1 + log(n), and without 1 / epsilon.", plus=1, epsilon=False)
QUARTER = Variant("They divide it by 4: the rate with n in place of sqrt(n).", by=4)
of_rates = partial(claim, "G21", quantifier=UNNAMED)


@of_rates(
    "Theorem 9: rate",
    on=_learnings,
    given=f"{CONVEX}, the steps of the theorem",
    sides=("excess risk", "bound"),
    corrected=PLUS,
    false=FLAT,
)
def excess_is_bounded(learning: Learning, plus: int = 0, epsilon: bool = True) -> Comparison:
    """Algorithm 5 is within a constant (1 is tried) times ``D L K log(n) / (epsilon sqrt(n))`` of the least risk."""
    return at_most(learning.surely, learning.bound(plus, epsilon=epsilon), tolerance=FLOATS)


def _long_learnings(budget: Budget) -> Iterator[Learning]:
    laws = ((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.8, 0.1, 0.1))
    for steps, law in product((512, *budget.pick(quick=(), full=(2_048, 8_192))), laws):
        yield Learning(Descent(*law, steps), 0.99)


@of_rates(
    "Theorem 9: trend",
    kind="ours",
    on=_long_learnings,
    given="as for the rate, rows enough to come near the least risk",
    sides=("excess risk at four times the rows", "share of the excess risk before, and five errors"),
    false=QUARTER,
)
def four_times_the_rows_halve_the_excess(learning: Learning, by: int = 2) -> Comparison:
    """The rate as a trend: four times the rows divide the distance from the least risk by 2, logarithms apart."""
    n = learning.descent.steps
    before, after = (learning.after(steps, runs=1_600) for steps in (n, 4 * n))
    share = math.log(4 * n) / (by * math.log(n))
    return at_most(after.mean, share * before.mean + 5 * math.hypot(after.error, share * before.error))
