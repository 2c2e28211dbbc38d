"""Gradients weighed by the noise of a label are unbiased, and of bounded variance ([G21], Theorem 9).

Algorithm 5 asks a label by randomized response and weighs the gradients of all labels by eq. (7). The steps of the
proof that bound this estimate are tried here, in fractions, over all noisy labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, product

import numpy as np

from optrand.base.arithmetic import log_bracket
from optrand.closed_forms import rr
from optrand.estimate import loss_weights, top_k_loss_weights
from optrand.mechanism.tabulation import tabulate
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import Rows, top_k_rows
from optrand.theory.instances import RATIOS, Instance, seeded
from optrand.theory.sums import total

__all__ = ["SMALL_RATIOS", "Gradients", "bounded_gradients", "response_rows"]

Vector = tuple[Fraction, ...]

WEIGHTS = 1e-12
"""What the weights of the package, floats, are forgiven, as a share of the largest."""

SMALL_RATIOS = tuple(Fraction(text) for text in ("2", "11/10", "4/3", "271/100", "1000001/1000000"))
"""Of budgets between 0 and 1, for which the theorem speaks."""


def response_rows(k: int, ratio: Fraction) -> Rows:
    """Randomized response on `k` labels, as a table."""
    return top_k_rows((Fraction(1, k),) * k, k, ratio)


class Gradients(Instance, vectors="gradients"):
    """The gradients of all labels at one point, and a privacy ratio."""

    vectors: tuple[Vector, ...]
    ratio: Fraction

    @property
    def k(self) -> int:
        """Number of labels."""
        return len(self.vectors)

    @cached_property
    def squared_lipschitz(self) -> Fraction:
        """Largest square of a gradient's norm."""
        return max(map(_squared, self.vectors))

    def estimate(self, noisy: int, *, plain: bool = False) -> Vector:
        """Eq. (7), where the sum of all gradients is divided by ``E + K - 1``, or by `K` for a plain mean."""
        size = self.ratio + self.k - 1
        mean = [total(entries) / (self.k if plain else size) for entries in zip(*self.vectors, strict=True)]
        own = self.vectors[noisy]
        return tuple(size / (self.ratio - 1) * (entry - of) for entry, of in zip(own, mean, strict=True))

    @cached_property
    def moments(self) -> tuple[Fraction, Fraction]:
        """Largest variance of the estimate, and its largest mean square, over the labels."""
        squares = [_squared(self.estimate(noisy)) for noisy in range(self.k)]
        seconds = [_dot(chances, squares) for chances in response_rows(self.k, self.ratio)]
        means = map(_squared, self.vectors)
        return max(second - mean for second, mean in zip(seconds, means, strict=True)), max(seconds)

    def bound(self, *, factor: int = 36, power: int = 2) -> Fraction:
        """``factor * K**power * L**2 / epsilon**2``, or hardly less."""
        return Fraction(factor * self.k**power) * self.squared_lipschitz / log_bracket(self.ratio)[1] ** 2


def _squared(vector: Vector) -> Fraction:
    return _dot(vector, vector)


def _dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return total(x * y for x, y in zip(one, other, strict=True))


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


def bounded_gradients(budget: Budget) -> Iterator[Gradients]:
    """Of budgets for which the theorem speaks."""
    return _gradients(SMALL_RATIOS, budget.pick(quick=100, full=3_000))


def _few_gradients(budget: Budget) -> Iterator[Gradients]:
    return islice(_gradients(RATIOS[:5], 0), 0, None, budget.pick(quick=7, full=1))


ANY = "any gradients, epsilon above 0"

SMALL = "gradients of norm at most L, at least two labels, epsilon between 0 and 1"

PLAIN = Variant(
    "The same with the mean gradient over the `K` labels subtracted, rather than the sum over ``E + K - 1``.",
    plain=True,
)


@claim("G21", "Theorem 9: unbiased", kind="text", on=_any_gradients, given=ANY, false=PLAIN)
def estimate_is_unbiased(given: Gradients, *, plain: bool = False) -> Comparison:
    """The estimate of eq. (7), over the noisy labels of each label, has the gradient of the label as its mean."""
    entries = list(zip(*(given.estimate(noisy, plain=plain) for noisy in range(given.k)), strict=True))
    means = (_dot(chances, each) for chances in response_rows(given.k, given.ratio) for each in entries)
    return worst(*map(equal, means, chain(*given.vectors)))


@claim("G21", "Theorem 9: weights", kind="ours", on=_few_gradients, given=ANY, false=PLAIN)
def weights_are_eq_7(given: Gradients, *, plain: bool = False) -> Comparison:
    """The weights of losses that the package makes for randomized response, in two ways, are those of eq. (7).

    Over the noisy labels of its integer table they are the gradient of the label in the mean.
    """
    epsilon, labels, vectors = math.log(given.ratio), np.arange(given.k), np.array(given.vectors, dtype=float)
    mechanism = tabulate(rr(labels, epsilon))
    wanted = np.array([given.estimate(noisy, plain=plain) for noisy in range(given.k)], dtype=float)
    ways = loss_weights(mechanism), top_k_loss_weights(labels, labels >= 0, epsilon)
    gaps = [weights @ vectors - wanted for weights in ways]
    gaps += [mechanism.randomizer.matrix @ weights @ vectors - vectors for weights in ways]
    return at_most(float(np.abs(gaps).max()), 2 * WEIGHTS * max(1.0, float(np.abs(wanted).max())))


FACTOR = Variant("It has one of at most ``K**2 L**2 / epsilon**2``, which its variance keeps to.", factor=1)

POWER = Variant("It has a variance of at most ``36 K L**2 / epsilon**2``.", power=1)


@claim("G21", "Theorem 9: variance", kind="text", on=bounded_gradients, given=SMALL, false=POWER)
def variance_is_bounded(given: Gradients, *, power: int = 2) -> Comparison:
    """The estimate of eq. (7) has a variance of at most ``36 K**2 L**2 / epsilon**2``.

    (The proof has constants to spare: of all that is tried here, nothing exceeds a 36th of that.)
    """
    return at_most(given.moments[0], given.bound(power=power))


@claim("G21", "Theorem 9: mean square", kind="text", on=bounded_gradients, given=SMALL, false=FACTOR)
def mean_square_is_bounded(given: Gradients, *, factor: int = 36) -> Comparison:
    """The estimate itself has a mean square of at most ``36 K**2 L**2 / epsilon**2``.

    That, rather than its variance, is what the theorem that the proof cites asks for.
    """
    return at_most(given.moments[1], given.bound(factor=factor))
