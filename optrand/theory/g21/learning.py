"""Learning with randomized response, on all labels or on the likeliest ones ([G21], Theorem 9 and Corollary 10).

Labels are randomized by the package's tables and gradients weighed by its weights. The rates have unnamed constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, product
from operator import mul

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.closed_forms import rr, rr_top_k
from optrand.estimate import top_k_loss_weights
from optrand.model.solution import Solution
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.descent import FLOATS, UNNAMED, Descent, Outcome, rate, with_responses
from optrand.theory.g21.response import Law, laws
from optrand.theory.instances import Instance, prior, seeded, settings, shares
from optrand.theory.sums import largest_ratio, pushed, total

__all__ = ["Replaced", "top_k"]

Path = tuple[float, ...]
"""Iterates in order."""

Shares = tuple[Fraction, ...]

ROUNDING = 1e-9
"""What an integer table may differ from another one."""


def top_k(prior: Shares, k: int, epsilon: float) -> Solution:
    """RRTop-k of the package under a prior of fractions."""
    return rr_top_k([float(share) for share in prior], k, epsilon)


class Run(Instance, centres="losses abs(w - c) from w = 1 with c", rows="n"):
    """Some steps of Algorithm 5 on a small data set, on ``[0, 1]``."""

    centres: tuple[float, ...]
    epsilon: float
    rows: int

    def law(self, labels: tuple[int, ...]) -> dict[Path, Fraction]:
        """Probability of each sequence of iterates, on rows with these labels."""
        k = len(self.centres)
        table, weights = laws(rr(range(k), self.epsilon)), top_k_loss_weights(range(k), [True] * k, self.epsilon)

        def moved(drawn: tuple[Path, int]) -> Path:
            iterates, noisy = drawn
            signs = (1 if iterates[-1] >= centre else -1 for centre in self.centres)
            estimate = sum(map(mul, weights[noisy].tolist(), signs))
            size = self.epsilon / (6 * k * math.sqrt(len(iterates)))
            return (*iterates, min(max(iterates[-1] - size * estimate, 0.0), 1.0))

        found: dict[Path, Fraction] = {(1.0,): Fraction(1)}
        for label in labels:
            found = pushed((((w, v), p * q) for w, p in found.items() for v, q in table[label].items()), moved)
        return found


def _runs(budget: Budget) -> Iterator[Run]:
    for rows, epsilon in product(range(1, budget.pick(quick=3, full=5)), (0.7, 0.1, 0.99, 0.3, 1e-6)):
        yield from (Run(centres, epsilon, rows) for centres in ((0.0, 1.0), (0.5, 0.5), (0.0, 0.5, 1.0)))


@claim(
    "G21",
    "Theorem 9",
    part="privacy",
    on=_runs,
    given="convex loss, each row seen once, any steps, epsilon between 0 and 1",
    false=Variant("The same with two passes over the rows, each with noise of its own.", passes=2),
)
def descent_is_private(run: Run, passes: int = 1) -> Comparison:
    """Algorithm 5, which looks at each row once, is epsilon-LabelDP: even all its iterates together are."""
    datasets = product(range(len(run.centres)), repeat=run.rows)
    found = {labels: run.law(labels * passes) for labels in datasets}
    pairs = ((a, b) for a, b in product(found, repeat=2) if sum(x != y for x, y in zip(a, b, strict=True)) == 1)
    return at_most(max(largest_ratio([found[a], found[b]]) for a, b in pairs), exp_bracket(run.epsilon)[0])


class Learning(Instance):
    """Algorithm 5 on an interval, with the `k` labels that a prior keeps, or with all labels."""

    descent: Descent
    epsilon: float
    prior: Shares | None = None
    k: int | None = None

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """The mechanism."""
        if self.prior is None or self.k is None:
            return laws(rr(range(len(self.descent.law)), self.epsilon))
        return laws(top_k(self.prior, self.k, self.epsilon))

    def after(self, steps: int, *, runs: int = 400) -> Outcome:
        """Excess risk after so many steps."""
        table = np.array([[law.get(v, Fraction(0)) for v in range(len(self.laws))] for law in self.laws], dtype=float)
        return with_responses(replace(self.descent, steps=steps), table, self.epsilon, runs=runs)

    @cached_property
    def surely(self) -> float:
        """Excess risk, less five standard errors where descents are drawn."""
        return self.after(self.descent.steps).surely

    def bound(self, plus: int, factor: float = 0.0, *, epsilon: bool = True) -> float:
        """``D L (k (plus + log(n)) / (epsilon sqrt(n)) + factor Pr[label not kept])``."""
        scale = self.descent.diameter * self.descent.lipschitz
        slow = rate(self.descent) + plus * scale / math.sqrt(self.descent.steps)
        lost = max(0.0, 1 - math.fsum(self.descent.law[y] for y in self.laws[0]))
        return len(self.laws[0]) / (self.epsilon if epsilon else 1) * slow + factor * scale * lost


LAWS = (
    ((0.0, 1.0), (1.0, 0.0)),
    ((0.0, 1.0), (0.6, 0.4)),
    ((0.0, 0.5, 1.0), (0.5, 0.1, 0.4)),
    ((0.0, 0.0, 1.0, 1.0), (0.7, 0.1, 0.1, 0.1)),
)


def _learnings(budget: Budget) -> Iterator[Learning]:
    for steps, (centres, law), epsilon in product((1, 2, 3, 6), LAWS, (0.99, 0.1)):
        yield Learning(Descent(centres, law, steps), epsilon)
        yield Learning(Descent(centres, law, steps, diameter=3.0, lipschitz=2.0), epsilon)
    yield Learning(Descent(*LAWS[0], 2**10), 0.01)
    for power, (centres, law) in product(range(8, budget.pick(quick=12, full=18), 2), LAWS):
        yield Learning(Descent(centres, law, 2**power), 0.99)


@claim(
    "G21",
    "Theorem 9",
    part="rate",
    on=_learnings,
    given="convex L-Lipschitz loss, diameter D, epsilon between 0 and 1, the steps of the theorem",
    corrected=Variant("The same with 1 + log(n) for log(n), which is 0 for one row.", plus=1),
    false=Variant("The same with 1 + log(n), and without 1 / epsilon.", plus=1, epsilon=False),
    quantifier=UNNAMED,
)
def excess_is_bounded(learning: Learning, plus: int = 0, epsilon: bool = True) -> Comparison:
    """After `n` rows Algorithm 5 is at most a constant times ``D L K log(n) / (epsilon sqrt(n))`` from the least risk.

    The constant that is tried is 1. Means of descents that were drawn count less five standard errors.
    """
    return at_most(learning.surely, learning.bound(plus, epsilon=epsilon), tolerance=FLOATS)


def _long_learnings(budget: Budget) -> Iterator[Learning]:
    for steps in (512, *budget.pick(quick=(), full=(2_048, 8_192))):
        yield Learning(Descent((0.0, 1.0), (0.75, 0.25), steps), 0.99)
        yield Learning(Descent((0.0, 0.5, 1.0), (0.8, 0.1, 0.1), steps), 0.99)


@claim(
    "G21",
    "Theorem 9",
    part="trend",
    kind="ours",
    on=_long_learnings,
    given="as for the rate, with rows enough to come near the least risk",
    false=Variant("They divide it by 4: the rate with n in place of sqrt(n).", by=4),
    quantifier=UNNAMED,
)
def four_times_the_rows_halve_the_excess(learning: Learning, by: int = 2) -> Comparison:
    """The rate as a trend: four times the rows divide the distance from the least risk by 2, logarithms apart.

    Compared are the distance after ``4 n`` rows and half of that after `n`, times ``log(4 n) / log(n)``, with five
    standard errors of the difference.
    """
    n = learning.descent.steps
    before, after = (learning.after(steps, runs=1_600) for steps in (n, 4 * n))
    share = math.log(4 * n) / (by * math.log(n))
    return at_most(after.mean, share * before.mean + 5 * math.hypot(after.error, share * before.error))


class Kept(Instance):
    """A prior, the number of labels that are kept, and a budget."""

    prior: Shares
    k: int
    epsilon: float


def _kept(budget: Budget) -> Iterator[Kept]:
    drawn = settings(budget.pick(quick=20, full=1_500), most=7, seed=11)
    return (Kept(each.prior, k, math.log(each.ratio)) for each in drawn for k in range(1, each.k + 1))


@claim(
    "G21",
    "Corollary 10",
    part="labels replaced",
    on=_kept,
    given="any prior, any number of labels kept, epsilon above 0",
    false=Variant("The same where the label is replaced by one that is drawn from the prior, cut off.", uniform=False),
)
def replaced_labels_are_top_k(kept: Kept, uniform: bool = True) -> Comparison:
    """Replacing a label, then randomized response on those kept, is RRTop-k, and so epsilon-DP."""
    whole, among = laws(top_k(kept.prior, kept.k, kept.epsilon)), laws(rr(range(kept.k), kept.epsilon))
    labels = tuple(whole[0])
    drawn = [1 if uniform else kept.prior[v] for v in labels]
    stranger = {j: total(q * among[i][j] for i, q in enumerate(drawn)) / sum(drawn) for j in range(kept.k)}
    inner = [among[labels.index(y)] if y in labels else stranger for y in range(len(kept.prior))]
    alike = (
        equal(law[j], wanted[v], tolerance=ROUNDING, scale=1)
        for law, wanted in zip(inner, whole, strict=True)
        for j, v in enumerate(labels)
    )
    return worst(at_most(largest_ratio(inner), exp_bracket(kept.epsilon)[0]), *alike)


class Replaced(Instance, diameter="D", lipschitz="L"):
    """Chances of examples, a row a feature, the `c` of their losses ``L abs(w - c)``, and the labels that are kept."""

    mass: tuple[Shares, ...]
    centres: tuple[Shares, ...]
    kept: tuple[tuple[int, ...], ...]
    diameter: Fraction = Fraction(1)
    lipschitz: Fraction = Fraction(1)

    @cached_property
    def replaced(self) -> tuple[Shares, ...]:
        """Chances once each label that is not kept is replaced by one that is, all alike."""
        rows = []
        for mass, kept in zip(self.mass, self.kept, strict=True):
            share = (total(mass) - total(mass[y] for y in kept)) / len(kept)
            rows.append(tuple(mass[y] + share if y in kept else Fraction(0) for y in range(len(mass))))
        return tuple(rows)

    @property
    def unit(self) -> Fraction:
        """``D L Pr[label not kept]``."""
        inside = total(mass[y] for mass, kept in zip(self.mass, self.kept, strict=True) for y in kept)
        return self.diameter * self.lipschitz * (1 - inside)

    def risks(self, mass: tuple[Shares, ...]) -> list[Fraction]:
        """Risks at the breakpoints: all that is compared is piecewise linear between them."""
        examples = list(zip(chain(*mass), chain(*self.centres), strict=True))
        points = sorted({Fraction(0), self.diameter, *chain(*self.centres)})
        return [self.lipschitz * total(share * abs(w - centre) for share, centre in examples) for w in points]

    @cached_property
    def gaps(self) -> list[Fraction]:
        """Risks less those under replaced labels."""
        return [one - other for one, other in zip(self.risks(self.mass), self.risks(self.replaced), strict=True)]


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


FINITE = "convex L-Lipschitz losses on an interval of length D, any labels kept"


@claim(
    "G21",
    "Corollary 10",
    part="eq. 9",
    kind="text",
    on=_replaced,
    given=FINITE,
    false=Variant("It changes by at most ``D L Pr[label not kept]``.", factor=1),
)
def differences_change_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """With labels replaced, the difference of two points' risks changes by at most ``2 D L Pr[label not kept]``."""
    return at_most(max(given.gaps) - min(given.gaps), factor * given.unit)


@claim(
    "G21",
    "Corollary 10",
    part="eq. 10",
    kind="text",
    on=_replaced,
    given=FINITE,
    false=Variant("It hides at most ``D L Pr[label not kept]``.", factor=1),
)
def excess_grows_by_two(given: Replaced, factor: int = 2) -> Comparison:
    """Replacing labels hides at most ``2 D L Pr[label not kept]`` of any point's distance from the least risk."""
    least, replaced = min(given.risks(given.mass)), min(given.risks(given.replaced))
    return at_most(max(given.gaps) - least + replaced, factor * given.unit)


def _top_k_learnings(budget: Budget) -> Iterator[Learning]:
    falling = shares((3, 2, 1))
    for steps, law, k in product((1, 2, 3, 6), ((0.5, 0.3, 0.2), (0.0, 0.5, 0.5)), (1, 2, 3)):
        yield Learning(Descent((0.5, 0.0, 1.0), law, steps), 0.99, falling, k)
        yield Learning(Descent((0.0, 1.0, 1.0), law, steps, diameter=2.0, lipschitz=3.0), 0.1, falling, k)
    for power in range(8, budget.pick(quick=12, full=18), 2):
        yield Learning(Descent((0.0, 1.0, 0.5), (0.7, 0.2, 0.1), 2**power), 0.99, falling, 2)
    yield Learning(Descent((0.0, 1.0), (0.0, 1.0), 2**8), 0.99, shares((2, 1)), 1)


@claim(
    "G21",
    "Corollary 10",
    part="rate",
    on=_top_k_learnings,
    given="convex L-Lipschitz loss, diameter D, epsilon between 0 and 1, the steps of Theorem 9 with `k` for `K`",
    corrected=Variant("The same with 1 + log(n) for log(n), which is 0 for one row.", plus=1),
    false=Variant("The same with 1 + log(n), and a half for the 2.", plus=1, factor=0.5),
    quantifier=UNNAMED,
)
def top_k_excess_is_bounded(learning: Learning, plus: int = 0, factor: float = 2.0) -> Comparison:
    """With `k` labels kept, the excess risk is ``O(D L (k log(n) / (epsilon sqrt(n)) + Pr[label not kept]))``.

    The constants that are tried are 1, and the 2 of the proof.
    """
    return at_most(learning.surely, learning.bound(plus, factor), tolerance=FLOATS)
