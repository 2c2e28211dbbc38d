"""Whether a small noisy empirical risk means a small risk: Theorem 17 of [G21], on finite classes, exactly.

It takes Lemma 21 for functions into [0, 1], an interval that debiased losses leave. The deviation term lacks how far
they are apart; without it the theorem and its consequence for the empirical risk minimizer are false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from operator import mul

from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.complexity import Deviations, Function, exceeded, log_term, rademacher, samples
from optrand.theory.g21.debiased import TopK
from optrand.theory.instances import RATIOS, Instance, prior, seeded, shares
from optrand.theory.sums import total

__all__ = ["Learning"]

ROUNDING = 1e-9
"""What the weights and the tables of the package are forgiven, as a share of the sum of the weights."""

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)


class Learning(Instance, steepness="L", joint="chances", size="n"):
    """A finite class, losses ``L abs(f(x) - c)`` up to 1, chances of features and labels, and what is released of them.

    Rows are functions (`functions`) and features. Released labels and debiased losses are those of the package: of its
    integer tables, and its weights, taken as they are.
    """

    functions: tuple[Function, ...]
    centres: tuple[Function, ...]
    steepness: Fraction
    joint: tuple[Function, ...]
    responses: tuple[TopK, ...]
    size: int
    beta: Fraction

    def losses(self, function: Function, feature: int) -> Function:
        """Losses of a function's prediction at a feature, under every label."""
        return tuple(min(self.steepness * abs(function[feature] - c), Fraction(1)) for c in self.centres[feature])

    @cached_property
    def risks(self) -> Function:
        """Mean loss of each function on true labels."""
        features = range(len(self.joint))
        return tuple(total(total(map(mul, self.joint[x], self.losses(f, x))) for x in features) for f in self.functions)

    @cached_property
    def released(self) -> Function:
        """Chances of features and released labels, feature by feature."""
        pairs = zip(self.joint, self.responses, strict=True)
        return tuple(
            total(p * r.tabulated[y][v] for y, p in enumerate(chances)) for chances, r in pairs for v in r.kept
        )

    @cached_property
    def debiased(self) -> tuple[Function, ...]:
        """Debiased losses on these, a row a function."""
        points = list(enumerate(self.responses))
        return tuple(tuple(chain(*(r.weighed(self.losses(f, x)).values() for x, r in points))) for f in self.functions)

    @cached_property
    def noisy(self) -> list[tuple[Function, Fraction]]:
        """Noisy empirical risks of the functions, with probabilities."""
        drawn = samples(self.released, self.size)
        return [(tuple(total(map(mul, f, counts)) / self.size for f in self.debiased), p) for counts, p in drawn]

    @cached_property
    def complexity(self) -> Fraction:
        """Rademacher complexity ``R`` of the functions."""
        return rademacher(self.functions, list(map(total, self.joint)), self.size)

    def slope(self, others: int = 1) -> Fraction:
        """``L (1 + k p) / (1 - k p)``, or without ``k p`` in the numerator."""
        response = self.responses[0]
        return self.steepness * (1 + others * response.k * response.other) / response.left

    @cached_property
    def outside(self) -> Fraction:
        """Probability of a label that is not kept."""
        return 1 - total(p[y] for p, each in zip(self.joint, self.responses, strict=True) for y in each.kept)

    def near(self, off: Deviations, *, spread: bool, outside: int = 1, times: int = 1) -> Comparison:
        """How often deviations exceed `times` the bound of Theorem 17, its root with a factor or without, and beta."""
        offset = 2 * self.slope() * self.complexity + outside * self.outside
        root = times * self.responses[0].spread if spread else Fraction(times)
        squared = root**2 * log_term(self.beta, self.size)
        return at_most(exceeded(off, times * offset, squared), self.beta)


def _one_function(response: TopK, label: int, *, size: int, beta: Fraction) -> Learning:
    """The function 0 on one feature, which always has the same label; that label alone is lost, by 1."""
    only = tuple(Fraction(y == label) for y in range(len(response.prior)))
    return Learning(((Fraction(0),),), (only,), Fraction(1), (only,), (response,), size, beta)


def _settings(budget: Budget) -> Iterator[Learning]:
    for labels, k in ((2, 2), (2, 1), (3, 3), (3, 2), (1, 1)):
        for ratio in RATIOS[:-1]:
            response = TopK(shares([1] * labels), k, ratio)
            for size, beta in ((1, HALF), (2, Fraction(9, 10)), (1, TENTH), (4, TENTH)):
                yield from (_one_function(response, y, size=size, beta=beta) for y in range(labels))
    for size in budget.pick(quick=(100,), full=(100, 400)):
        yield _one_function(TopK((HALF, HALF), 2, Fraction(272, 100)), 1, size=size, beta=TENTH)
    yield from _randomly(budget, 18)


def _randomly(budget: Budget, seed: int) -> Iterator[Learning]:
    random = seeded(seed)

    def predictions(count: int) -> Function:
        return tuple(Fraction(random.randint(0, 4), 4) for _ in range(count))

    for _ in range(budget.pick(quick=60, full=1_500)):
        features, labels = random.randint(1, 2), random.randint(2, 3)
        joint = prior(random, features * labels)
        k, ratio = random.randint(1, labels), 1 + Fraction(random.randint(1, 300), 10 ** random.randint(0, 2))
        yield Learning(
            functions=tuple(predictions(features) for _ in range(random.randint(1, 4))),
            centres=tuple(predictions(labels) for _ in range(features)),
            steepness=Fraction(random.randint(1, 6), 4),
            joint=tuple(joint[x * labels : (x + 1) * labels] for x in range(features)),
            responses=tuple(TopK(prior(random, labels), k, ratio) for _ in range(features)),
            size=random.randint(1, 4),
            beta=random.choice((HALF, Fraction(9, 10), TENTH)),
        )


FINITE = "losses in [0, 1], L-Lipschitz in the prediction; finite classes and finitely many features"


@claim(
    "G21",
    "Theorem 17",
    on=_settings,
    given=FINITE,
    corrected=Variant(
        "The same with ``(1 + (k - 2) p) / (1 - k p)`` times the root: so far apart can debiased losses be.",
        spread=True,
    ),
    false=Variant(
        "The same with that factor, and without the probability of a label that is not kept.", spread=True, outside=0
    ),
)
def noisy_risks_are_near_risks(learning: Learning, spread: bool = False, outside: int = 1) -> Comparison:
    """All noisy empirical risks are near the risks: within ``2 slope R + sqrt(log(2 / beta) / (2 n)) + outside``.

    But for probability beta; ``slope = L (1 + k p) / (1 - k p)``, and ``outside`` is the probability of a label that is
    not kept. Compared are the probability that some risk is further off, and beta.
    """
    off = ((max(abs(a - b) for a, b in zip(noisy, learning.risks, strict=True)), p) for noisy, p in learning.noisy)
    return learning.near(off, spread=spread, outside=outside)


def _minimizers(budget: Budget) -> Iterator[Learning]:
    """Two functions of which noise makes the worse one look better, or strangers do; then random classes."""
    zero, one = Fraction(0), Fraction(1)
    ends = ((zero,), (one,))
    both = TopK((HALF, HALF), 2, Fraction(2))
    yield Learning(ends, ((zero, one),), one, ((HALF, HALF),), (both,), 2, HALF)
    rare = Fraction(1, 100)
    yield Learning(ends, ((zero, one),), one, ((1 - rare, rare),), (both,), 200, Fraction(1, 10**7))
    first = TopK((Fraction(2, 3), Fraction(1, 3)), 1, Fraction(3000))
    joint = ((zero, Fraction(3, 5)), (Fraction(2, 5), zero))
    yield Learning(((zero, one), (one, zero)), ((zero, one),) * 2, one, joint, (first, first), 24, HALF)
    yield from _randomly(budget, 27)


@claim(
    "G21",
    "Theorem 17",
    part="empirical risk minimizer",
    kind="text",
    on=_minimizers,
    given=FINITE,
    corrected=Variant("The same with the factor of Theorem 17 as corrected.", spread=True),
    false=Variant("It exceeds it by at most that bound itself, as corrected.", spread=True, times=1),
)
def minimizers_lose_twice_the_bound(learning: Learning, spread: bool = False, times: int = 2) -> Comparison:
    """The least noisy empirical risk has a risk that exceeds the least by at most twice the bound of Theorem 17.

    But for probability beta. Of several minimizers the worst one counts.
    """
    risks, least = learning.risks, min(learning.risks)
    chosen = (
        (max(r for r, seen in zip(risks, noisy, strict=True) if seen == min(noisy)), p) for noisy, p in learning.noisy
    )
    return learning.near(((risk - least, p) for risk, p in chosen), spread=spread, times=times)


def _small(budget: Budget) -> Iterator[Learning]:
    ends = ((Fraction(0),), (Fraction(1),))
    both, three = TopK((HALF, HALF), 2, Fraction(3)), TopK(shares([1] * 3), 3, Fraction(10))
    plain = replace(_one_function(both, 1, size=1, beta=HALF), functions=ends)
    yield from (plain, replace(plain, size=3), replace(plain, steepness=Fraction(2)))
    yield replace(_one_function(three, 0, size=1, beta=HALF), functions=ends)
    yield from _randomly(budget, 26)


@claim(
    "G21",
    "Theorem 17",
    part="equation 25",
    kind="text",
    on=_small,
    given=FINITE,
    false=Variant("The same with ``L / (1 - k p)``.", others=0),
)
def debiased_losses_are_hardly_more_complex(learning: Learning, others: int = 1) -> Comparison:
    """Debiased losses on released labels are at most ``L (1 + k p) / (1 - k p)`` times as complex as the functions."""
    found = rademacher(learning.debiased, learning.released, learning.size)
    return at_most(found, learning.slope(others) * learning.complexity, tolerance=ROUNDING)


@claim(
    "G21",
    "Lemma 20",
    on=_settings,
    given="losses in [0, 1]; any function, any distribution",
    false=Variant("The same with ``1 - p`` times that chance.", lost=1),
)
def only_other_labels_cost(learning: Learning, lost: int = 0) -> Comparison:
    """The risk of the debiased loss on released labels is off by at most the chance of a label that is not kept."""
    means = (total(map(mul, learning.released, each)) for each in learning.debiased)
    error = max(abs(risk - mean) for risk, mean in zip(learning.risks, means, strict=True))
    most = (1 - lost * learning.responses[0].other) * learning.outside
    return Comparison(error, most, tolerance=ROUNDING, scale=learning.responses[0].spread)
