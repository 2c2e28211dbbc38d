"""Gradients weighed by the noise of a label are unbiased, and of bounded variance ([G21], Theorem 9).

Algorithm 5 asks a label by randomized response and weighs the gradients of all labels by eq. (7). The steps of the
proof that bound this estimate are tried here, in fractions, over all noisy labels; what comes of it is in
:mod:`optrand.theory.g21.learning`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from random import Random

import numpy as np

from optrand.base.arithmetic import log_bracket
from optrand.base.validation import Floats
from optrand.closed_forms import rr
from optrand.estimate import loss_weights, top_k_loss_weights
from optrand.mechanism.tabulation import tabulate
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.g21.response import Rows, top_k_rows
from optrand.theory.instances import RATIOS

__all__ = ["CLAIMS", "SMALL_RATIOS", "Gradients", "response_rows"]

Vector = tuple[Fraction, ...]

WEIGHTS = 1e-9
"""What the weights of the package, floats, are forgiven, as a share of the largest."""

SMALL_RATIOS = tuple(Fraction(text) for text in ("2", "11/10", "4/3", "271/100", "1000001/1000000"))
"""Of budgets between 0 and 1, for which the theorem speaks."""


def response_rows(k: int, ratio: Fraction) -> Rows:
    """Randomized response on `k` labels, as a table."""
    return top_k_rows((Fraction(1, k),) * k, k, ratio)


@dataclass(frozen=True)
class Gradients:
    """The gradients of all labels at one point, and a privacy ratio.

    Examples
    --------
    >>> given = Gradients(((Fraction(1),), (Fraction(-1),)), Fraction(3))
    >>> [[str(entry) for entry in given.estimate(noisy)] for noisy in (0, 1)]
    [['2'], ['-2']]
    """

    vectors: tuple[Vector, ...]
    ratio: Fraction

    def __str__(self) -> str:
        shown = ", ".join("(" + ", ".join(map(str, vector)) + ")" for vector in self.vectors[:8])
        more = f", ... {len(self.vectors)} labels" if len(self.vectors) > 8 else ""
        return f"gradients {shown}{more}, E = {self.ratio}"

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.vectors)

    @cached_property
    def squared_lipschitz(self) -> Fraction:
        """The largest square of a gradient's norm."""
        return max(map(_squared, self.vectors))

    def estimate(self, noisy: int, *, total: Fraction | None = None) -> Vector:
        """Eq. (7), where `total` is what the sum of all gradients is divided by, as printed ``E + K - 1``."""
        size = self.ratio + self.k - 1
        mean = [sum(entries, Fraction(0)) / (total or size) for entries in zip(*self.vectors, strict=True)]
        own = self.vectors[noisy]
        return tuple(size / (self.ratio - 1) * (entry - of) for entry, of in zip(own, mean, strict=True))

    def expected(self, *, total: Fraction | None = None) -> tuple[Vector, ...]:
        """The mean of the estimate over the noisy labels, for each label."""
        entries = list(zip(*(self.estimate(noisy, total=total) for noisy in range(self.k)), strict=True))
        return tuple(tuple(_dot(chances, each) for each in entries) for chances in response_rows(self.k, self.ratio))

    @cached_property
    def moments(self) -> tuple[Fraction, Fraction]:
        """The largest variance of the estimate, and its largest mean square, over the labels."""
        squares = [_squared(self.estimate(noisy)) for noisy in range(self.k)]
        seconds = [_dot(chances, squares) for chances in response_rows(self.k, self.ratio)]
        means = map(_squared, self.vectors)
        return max(second - mean for second, mean in zip(seconds, means, strict=True)), max(seconds)

    def bound(self, *, factor: int = 36, power: int = 2) -> Fraction:
        """``factor * K**power * L**2 / epsilon**2``, or hardly less."""
        highest = log_bracket(self.ratio)[1]
        return Fraction(factor * self.k**power) * self.squared_lipschitz / (highest * highest)


def _squared(vector: Vector) -> Fraction:
    return _dot(vector, vector)


def _dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(one, other, strict=True)), Fraction(0))


def _gradients(ratios: tuple[Fraction, ...], count: int) -> Iterator[Gradients]:
    """All signs of up to four labels, many labels of balanced signs, random vectors."""
    signs = (Fraction(1), Fraction(-1))
    for k, ratio in itertools.product(range(2, 5), ratios):
        yield from (
            Gradients(tuple((sign,) for sign in chosen), ratio) for chosen in itertools.product(signs, repeat=k)
        )
    for k, ratio in itertools.product((16, 64), ratios[:2]):
        yield Gradients(tuple((signs[y % 2],) for y in range(k)), ratio)
    random = Random(9)  # noqa: S311
    for number in range(count):
        k, size = random.randint(2, 8), random.randint(1, 4)
        vectors = tuple(tuple(Fraction(random.randint(-9, 9)) for _ in range(size)) for _ in range(k))
        yield Gradients(vectors, ratios[number % len(ratios)])


def _any_gradients(budget: Budget) -> Iterator[Gradients]:
    yield from _gradients(RATIOS, budget.pick(quick=100, full=3_000))
    yield from (Gradients(((Fraction(1),),), ratio) for ratio in RATIOS)


def _bounded_gradients(budget: Budget) -> Iterator[Gradients]:
    return _gradients(SMALL_RATIOS, budget.pick(quick=100, full=3_000))


def estimate_is_unbiased(given: Gradients) -> Comparison:
    """The estimate of eq. (7), over the noisy labels of each label, has the gradient of the label as its mean."""
    return _as_expected(given, None)


def estimate_by_plain_mean_is_unbiased(given: Gradients) -> Comparison:
    """The same where the mean gradient over the `K` labels is subtracted, rather than the sum over ``E + K - 1``."""
    return _as_expected(given, Fraction(given.k))


def _as_expected(given: Gradients, total: Fraction | None) -> Comparison:
    means = itertools.chain(*given.expected(total=total))
    return worst(*map(equal, means, itertools.chain(*given.vectors)))


def weights_are_eq_7(given: Gradients) -> Comparison:
    """The weights of losses that the package makes for randomized response, in two ways, are those of eq. (7)."""
    return _as_weighed(given, None)


def weights_are_with_plain_mean(given: Gradients) -> Comparison:
    """They are those with the mean gradient over the `K` labels, rather than the sum over ``E + K - 1``."""
    return _as_weighed(given, Fraction(given.k))


def _as_weighed(given: Gradients, total: Fraction | None) -> Comparison:
    epsilon = math.log(given.ratio)
    labels = np.arange(given.k)
    gradients = np.array([[float(entry) for entry in vector] for vector in given.vectors])
    wanted = [given.estimate(noisy, total=total) for noisy in range(given.k)]
    scale = 2 * max(Fraction(1), *map(abs, itertools.chain(*wanted)))
    tables: tuple[Floats, ...] = (
        loss_weights(tabulate(rr(labels, epsilon))),
        top_k_loss_weights(labels, np.ones(given.k, dtype=bool), epsilon),
    )
    return worst(
        *(
            equal(float(found), entry, tolerance=WEIGHTS, scale=scale)
            for table in tables
            for row, vector in zip(table @ gradients, wanted, strict=True)
            for found, entry in zip(row, vector, strict=True)
        )
    )


def _few_gradients(budget: Budget) -> Iterator[Gradients]:
    return itertools.islice(_gradients(RATIOS[:5], 0), 0, None, budget.pick(quick=4, full=1))


def variance_is_bounded(given: Gradients) -> Comparison:
    r"""The estimate of eq. (7) has a variance of at most ``36 K**2 L**2 / epsilon**2``.

    (The proof has constants to spare: of all that is tried here, nothing exceeds a 36th of that.)
    """
    return at_most(given.moments[0], given.bound())


def variance_grows_like_k(given: Gradients) -> Comparison:
    """It has a variance of at most ``36 K L**2 / epsilon**2``."""
    return at_most(given.moments[0], given.bound(power=1))


def mean_square_is_bounded(given: Gradients) -> Comparison:
    """The estimate itself has a mean square of at most ``36 K**2 L**2 / epsilon**2``.

    That, rather than its variance, is what the theorem that the proof cites asks for.
    """
    return at_most(given.moments[1], given.bound())


def mean_square_is_bounded_without_factor(given: Gradients) -> Comparison:
    """It has a mean square of at most ``K**2 L**2 / epsilon**2``, which its variance keeps to."""
    return at_most(given.moments[1], given.bound(factor=1))


CLAIMS = (
    Claim(
        paper="G21",
        number="Theorem 9",
        part="unbiased",
        hypothesis="any gradients, epsilon above 0",
        instances=_any_gradients,
        printed=estimate_is_unbiased,
        false=estimate_by_plain_mean_is_unbiased,
    ),
    Claim(
        paper="G21",
        number="Theorem 9",
        part="weights",
        hypothesis="any gradients, epsilon above 0",
        instances=_few_gradients,
        printed=weights_are_eq_7,
        false=weights_are_with_plain_mean,
    ),
    Claim(
        paper="G21",
        number="Theorem 9",
        part="variance",
        hypothesis="gradients of norm at most L, at least two labels, epsilon between 0 and 1",
        instances=_bounded_gradients,
        printed=variance_is_bounded,
        false=variance_grows_like_k,
    ),
    Claim(
        paper="G21",
        number="Theorem 9",
        part="mean square",
        hypothesis="gradients of norm at most L, at least two labels, epsilon between 0 and 1",
        instances=_bounded_gradients,
        printed=mean_square_is_bounded,
        false=mean_square_is_bounded_without_factor,
    ),
)
