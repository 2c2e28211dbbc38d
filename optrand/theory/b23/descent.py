"""Projected gradient descent with a biased and noisy oracle ([B23], Lemma 15), by exact enumeration of its paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most

__all__ = ["CLAIMS", "Descent"]

TRIPLES = ((3, 0, 3), (3, 4, 5), (4, 3, 5), (5, 12, 13), (8, 15, 17))
"""Whole numbers with ``a**2 + b**2 == c**2``, so that the printed step size is a rational."""


@dataclass(frozen=True)
class Descent:
    r"""Descent on ``[0, R]`` from one of its ends; the oracle adds a bias and, evenly, plus or minus `sigma`.

    Attributes
    ----------
    slope : Fraction
        `L`.
    bias, sigma, root : Fraction
        With :math:`\mathtt{root}^2 = (L + \alpha)^2 + \sigma^2`.
    steps : int
        The square root of `T`.
    target : Fraction
        Where the loss is least.
    curved : bool
        ``L (w - target)**2 / (2 R)`` in place of ``L |w - target|``.
    away : bool
        The bias points away from the target; else always down.
    """

    slope: Fraction
    bias: Fraction
    sigma: Fraction
    root: Fraction
    steps: int
    target: Fraction
    curved: bool = False
    away: bool = True
    reach: Fraction = Fraction(1)

    def __str__(self) -> str:
        loss = "L (w - c)^2 / (2 R)" if self.curved else "L |w - c|"
        towards = "away from c" if self.away else "upward"
        return (
            f"{loss} on [0, {self.reach}], L = {self.slope}, c = {self.target}, bias {self.bias} {towards}, "
            f"sigma = {self.sigma}, T = {self.steps**2}, from {self.start}"
        )

    @property
    def start(self) -> Fraction:
        """The end that is farther from the target."""
        return self.reach if 2 * self.target <= self.reach else Fraction(0)

    @property
    def step(self) -> Fraction:
        """The printed step size, ``R / sqrt(((L + alpha)**2 + sigma**2) T)``."""
        return self.reach / (self.root * self.steps)

    def loss(self, w: Fraction) -> Fraction:
        """Convex, with slopes of at most `L` on the interval."""
        if self.curved:
            return self.slope * (w - self.target) ** 2 / (2 * self.reach)
        return self.slope * abs(w - self.target)

    def gradient(self, w: Fraction) -> Fraction:
        """Of the loss, with the bias."""
        side = (w > self.target) - (w < self.target)
        true = self.slope * (w - self.target) / self.reach if self.curved else self.slope * side
        return true - self.bias * (side or 1) if self.away else true - self.bias

    @cached_property
    def excess(self) -> Fraction:
        """The expected loss of the mean of all `T` places, over all paths; the least loss is 0."""
        time = self.steps**2
        paths: Counter[tuple[Fraction, Fraction]] = Counter({(self.start, self.start): 1})
        noises = (-self.sigma, self.sigma) if self.sigma else (Fraction(0),)
        for _ in range(time - 1):
            after: Counter[tuple[Fraction, Fraction]] = Counter()
            for (w, total), count in paths.items():
                for noise in noises:
                    moved = min(max(w - self.step * (self.gradient(w) + noise), Fraction(0)), self.reach)
                    after[moved, total + moved] += count
            paths = after
        losses = (self.loss(total / time) * count for (_, total), count in paths.items())
        return sum(losses, Fraction(0)) / sum(paths.values())

    @property
    def rate(self) -> Fraction:
        """``R L / sqrt(T) * sqrt(1 + 2 alpha / L + (alpha**2 + sigma**2) / L**2)``."""
        return self.reach * self.root / self.steps


def _descents(budget: Budget) -> Iterator[Descent]:
    zero, one = Fraction(0), Fraction(1)
    yield Descent(one, zero, zero, one, 1, zero)
    yield from (Descent(one, 2 * one, zero, 3 * one, steps, zero) for steps in (1, 2, 10, 30))
    random = Random(81)  # noqa: S311
    for (total, sigma, root), curved, away in product(TRIPLES, (False, True), (False, True)):
        for _ in range(budget.pick(quick=3, full=8)):
            bias = Fraction(random.randint(0, 4 * total - 1), 4)
            steps = random.randint(1, budget.pick(quick=3, full=4) if sigma else 12)
            target = Fraction(random.randint(0, 4), 4)
            rest = (Fraction(sigma), Fraction(root), steps, target)
            yield Descent(total - bias, bias, *rest, curved=curved, away=away)


def descent_comes_near(descent: Descent) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T) + alpha R."""
    return at_most(descent.excess, descent.rate + descent.bias * descent.reach)


def descent_forgets_the_bias(descent: Descent) -> Comparison:
    """The expected excess loss is at most R sqrt(((L + alpha)^2 + sigma^2) / T)."""
    return at_most(descent.excess, descent.rate)


@dataclass(frozen=True)
class _Place:
    """A place on ``[0, R]``, where ``alpha w / 2`` and ``-alpha w / 2`` are to be made small."""

    bias: Fraction
    reach: Fraction
    w: Fraction

    def __str__(self) -> str:
        return f"alpha = {self.bias}, R = {self.reach}, w = {self.w}"

    @property
    def excesses(self) -> tuple[Fraction, Fraction]:
        """Of the two losses; an oracle that always says 0 has a bias of alpha / 2 for either, and tells nothing."""
        return self.bias * self.w / 2, self.bias * (self.reach - self.w) / 2


def _places(budget: Budget) -> Iterator[_Place]:
    random = Random(82)  # noqa: S311
    yield from (_Place(Fraction(1), Fraction(1), Fraction(i, 4)) for i in range(5))
    for _ in range(budget.pick(quick=100, full=2_000)):
        reach = Fraction(random.randint(1, 50), 7)
        yield _Place(Fraction(random.randint(1, 50), 3), reach, reach * Fraction(random.randint(0, 100), 100))


def both_losses_exceed(place: _Place) -> Comparison:
    """Anywhere the smaller of the two excess losses is at least alpha R / 4."""
    return at_most(place.bias * place.reach / 4, min(place.excesses))


def one_loss_exceeds(place: _Place) -> Comparison:
    """Anywhere the larger of the two excess losses is at least alpha R / 4."""
    return at_most(place.bias * place.reach / 4, max(place.excesses))


def one_loss_exceeds_by_more(place: _Place) -> Comparison:
    """Anywhere the larger of the two excess losses is at least 3 alpha R / 8."""
    return at_most(3 * place.bias * place.reach / 8, max(place.excesses))


CLAIMS = (
    Claim(
        paper="B23",
        number="Lemma 15",
        hypothesis="one dimension, two convex losses, noise of two values, biases that do harm; T up to 900",
        instances=_descents,
        printed=descent_comes_near,
        false=descent_forgets_the_bias,
    ),
    Claim(
        paper="B23",
        number="Lemma 15",
        part="tightness",
        hypothesis="losses alpha w / 2 and -alpha w / 2 on [0, R], which an oracle of bias alpha / 2 makes look alike",
        instances=_places,
        printed=both_losses_exceed,
        corrected=one_loss_exceeds,
        false=one_loss_exceeds_by_more,
    ),
)
