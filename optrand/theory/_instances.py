"""Label sets, priors and privacy ratios that several claims share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from random import Random
from typing import Any

from optrand.theory._engine import Draws

Row = tuple[Fraction, ...]
"""Labels, probabilities or other fractions."""

Table = Any
"""Fractions, integers or truth values in an array, of objects to NumPy and to type checkers."""

RATIOS = tuple(map(Fraction, ("2", "11/10", "272/100", "1000001/1000000", "3000", "235385266837019985")))
"""Privacy ratios ``E = exp(epsilon)``, up to about ``exp(40)``: a claim about epsilon, exactly, is one about ``E``."""


@dataclass(frozen=True)
class Setting:
    """Labels, increasing, a prior over them, and a privacy ratio ``E = exp(epsilon)`` above 1."""

    labels: tuple[Fraction, ...]
    prior: tuple[Fraction, ...]
    ratio: Fraction

    @property
    def k(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @property
    def floats(self) -> tuple[list[float], list[float]]:
        """Labels and prior as the package takes them."""
        return [float(y) for y in self.labels], [float(p) for p in self.prior]


def settings(count: int, *, most: int = 12) -> tuple[list[Setting], Draws]:
    """Return the edge cases of two to four labels, and `count` random settings of at most `most` labels."""
    return list(_edge_cases(most)), Draws(count, lambda draw: draw_setting(draw, most))


def _edge_cases(most: int) -> Iterator[Setting]:
    for k, ratio in product(range(2, min(most, 4) + 1), RATIOS):
        for weights in ([1] * k, [1] + [0] * (k - 1), [10**9] + [1] * (k - 1), list(range(k, 0, -1))):
            yield Setting(tuple(map(Fraction, range(k))), shares(weights), ratio)


def draw_setting(draw: Random, most: int) -> Setting:
    """Return a random setting of at most `most` labels."""
    k = draw.randint(2, most)
    ratio = 1 + Fraction(draw.randint(1, 999), 10 ** draw.randint(0, 4))
    return Setting(label_set(draw, k), prior(draw, k), ratio)


def label_set(draw: Random, k: int) -> tuple[Fraction, ...]:
    """Return increasing labels: a lattice, or of very unequal steps, negative ones and fractions among them."""
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
    """Return weights as parts of their sum."""
    whole = sum(weights)
    return tuple(Fraction(weight, whole) for weight in weights)
