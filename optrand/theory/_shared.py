"""Settings, sums and laws that several claims share: in fractions or, where chances are floats, in floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations, product
from operator import ne
from random import Random
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from optrand.base._validation import Floats
from optrand.theory._engine import Draws

Key = TypeVar("Key", bound=Hashable)
Image = TypeVar("Image", bound=Hashable)

Chances = NDArray[Any]
"""Floats, or fractions in an array of objects."""

Row = tuple[Fraction, ...]
"""Labels, probabilities or other fractions."""

Table = Any
"""Fractions, integers or truth values in an array, of objects to NumPy and to type checkers."""

RATIOS = tuple(map(Fraction, ("2", "11/10", "272/100", "1000001/1000000", "3000", "235385266837019985")))
"""Privacy ratios ``E = exp(epsilon)``, up to about ``exp(40)``: claims about epsilon are exact as ones about ``E``."""


@dataclass(frozen=True)
class Setting:
    """Labels, increasing, a prior over them, and a privacy ratio ``E = exp(epsilon)`` above 1."""

    labels: tuple[Fraction, ...]
    prior: tuple[Fraction, ...]
    ratio: Fraction

    @property
    def k(self) -> int:
        return len(self.labels)

    @property
    def floats(self) -> tuple[list[float], list[float]]:
        """Labels and prior as the package takes them."""
        return [float(y) for y in self.labels], [float(p) for p in self.prior]


def settings(count: int, *, most: int = 12) -> tuple[list[Setting], Draws]:
    """Return the edge cases of two to four labels, and `count` random settings of at most `most` labels."""
    edges = [
        Setting(tuple(map(Fraction, range(k))), shares(weights), ratio)
        for k, ratio in product(range(2, min(most, 4) + 1), RATIOS)
        for weights in ([1] * k, [1] + [0] * (k - 1), [10**9] + [1] * (k - 1), list(range(k, 0, -1)))
    ]
    return edges, Draws(count, lambda draw: draw_setting(draw, most))


def draw_setting(draw: Random, most: int) -> Setting:
    k = draw.randint(2, most)
    return Setting(label_set(draw, k), prior(draw, k), draw_ratio(draw))


def draw_ratio(draw: Random) -> Fraction:
    return 1 + Fraction(draw.randint(1, 999), 10 ** draw.randint(0, 4))


def label_set(draw: Random, k: int) -> tuple[Fraction, ...]:
    """Return increasing labels: a lattice, or very unequal steps, negative numbers and fractions among them."""
    if draw.random() < 0.3:
        return tuple(map(Fraction, range(k)))
    steps = [Fraction(draw.randint(1, 10 ** draw.choice((0, 1, 3))), draw.choice((1, 1, 7))) for _ in range(k)]
    return tuple(accumulate(steps[:-1], initial=Fraction(draw.randint(-20, 20))))


def prior(draw: Random, k: int) -> tuple[Fraction, ...]:
    """Return a prior over `k` labels: flat, rough, with zeros, or almost all on one label."""
    kind = draw.randrange(4)
    if kind == 0:
        return shares([1] * k)
    weights = [draw.randint(1, 100) for _ in range(k)]
    if kind == 2:
        weights = [weight * draw.randint(0, 1) for weight in weights]
    if kind == 3:
        weights[draw.randrange(k)] *= 10**6
    return shares(weights if any(weights) else [1] * k)


def shares(weights: Sequence[Fraction | int]) -> tuple[Fraction, ...]:
    whole = sum(weights)
    return tuple(Fraction(weight, whole) for weight in weights)


def total(numbers: Iterable[Fraction]) -> Fraction:
    """Return the sum of fractions, a fraction even for no numbers."""
    return sum(numbers, Fraction(0))


def dot(first: Iterable[Fraction | int], second: Iterable[Fraction | int]) -> Fraction:
    return sum((Fraction(a * b) for a, b in zip(first, second, strict=True)), Fraction(0))


def times(numbers: Iterable[Fraction]) -> Fraction:
    return math.prod(numbers, start=Fraction(1))


def largest_ratio(laws: Sequence[Mapping[Key, Fraction]] | Sequence[Sequence[Fraction]]) -> Fraction | float:
    """Return the largest ratio of the probabilities of one outcome under two laws, infinite if one of them is 0."""
    tables: list[Mapping[Any, Fraction]] = [law if isinstance(law, Mapping) else dict(enumerate(law)) for law in laws]
    rows = ([table.get(outcome, Fraction(0)) for table in tables] for outcome in set().union(*tables))
    ends = [(min(chances), max(chances)) for chances in rows]
    return max((high / low if low else math.inf for low, high in ends if high), default=Fraction(1))


def ratio_of_neighbours(laws: Mapping[tuple[int, ...], Mapping[Key, Fraction]]) -> Fraction | float:
    """Return the largest ratio of two laws of data sets that differ in one label, by the labels of each data set."""
    pairs = combinations(laws, 2)
    return max(largest_ratio([laws[a], laws[b]]) for a, b in pairs if sum(map(ne, a, b)) == 1)


def push_forward(law: Iterable[tuple[Key, Fraction]], image: Callable[[Key], Image]) -> dict[Image, Fraction]:
    """Compute the law of a function of an outcome. Outcomes may come more than once."""
    found: dict[Image, Fraction] = {}
    for outcome, chance in law:
        seen = image(outcome)
        found[seen] = found.get(seen, Fraction(0)) + chance
    return found


def binomial(n: int, chance: float) -> Floats:
    """Return the probabilities of ``0 ... n`` successes, in floats."""
    found: Floats = stats.binom.pmf(np.arange(n + 1), n, chance)
    return found


def bit_sums(chances: Chances) -> Chances:
    """Return the probabilities of ``0 ... n`` ones among `n` independent bits, whose chances are the last axis."""
    found: Chances = np.ones((*chances.shape[:-1], 1), dtype=chances.dtype)
    for chance in np.moveaxis(chances, -1, 0)[..., np.newaxis]:
        none = np.zeros_like(chance)
        found = np.concatenate((found * (1 - chance), none), -1) + np.concatenate((none, found * chance), -1)
    return found
