"""Instances that print themselves: label sets, priors and privacy ratios; seeded, so that each can be made again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import accumulate, chain, product
from random import Random
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from optrand.theory.engine import Space, draws

__all__ = ["RATIOS", "Instance", "Setting", "label_set", "prior", "seeded", "settings", "shares", "typed"]

RATIOS = tuple(
    Fraction(text) for text in ("2", "11/10", "4/3", "272/100", "10", "1000001/1000000", "3000", "235385266837019985")
)
"""Privacy ratios ``E = exp(epsilon)``, up to about ``exp(40)``: a claim about epsilon, exactly, is one about ``E``."""


@dataclass_transform(frozen_default=True)
class Instance:
    """Base of instances: subclasses are frozen dataclasses whose text is made of their fields.

    A class may rename fields in that text; ``""`` leaves a value without its name, `ratio` is printed as ``E``, and a
    field that is None or not in the repr is left out.

    Examples
    --------
    >>> class Bits(Instance, odds="exp(epsilon/2)"):
    ...     eta: tuple[Fraction, ...]
    ...     odds: Fraction
    >>> print(Bits((Fraction(1, 2), Fraction(1, 2)), Fraction(2)))
    eta = (1/2, 1/2), exp(epsilon/2) = 2
    """

    _names: ClassVar[dict[str, str]] = {"ratio": "E"}

    def __init_subclass__(cls, **names: str) -> None:
        cls._names = cls._names | names
        dataclass(frozen=True)(cls)

    def __str__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}  # type: ignore[arg-type]
        named = ((self._names.get(name, name), value) for name, value in values.items() if value is not None)
        return ", ".join(f"{name} = {typed(value)}" if name else f"{value}" for name, value in named)


def typed(value: Any) -> str:
    """A value as a reader would type it: fractions bare, rows in brackets, instances and functions with their names."""
    if isinstance(value, np.ndarray):
        return typed(value.tolist())
    if isinstance(value, list | tuple | range):
        return f"({', '.join(map(typed, value))})"
    if isinstance(value, Instance):
        return f"{type(value).__name__}({value})"
    return str(getattr(value, "__name__", value))


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


def settings(count: int, *, most: int = 12) -> Space:
    """Return the edge cases of two to four labels, then `count` random settings of at most `most` labels."""
    return lambda times: chain(_edge_cases(most), draws(count, lambda draw: _draw_setting(draw, most))(times))


def _edge_cases(most: int) -> Iterator[Setting]:
    for k, ratio in product(range(2, min(most, 4) + 1), RATIOS):
        for weights in ([1] * k, [1] + [0] * (k - 1), [10**9] + [1] * (k - 1), list(range(k, 0, -1))):
            yield Setting(tuple(map(Fraction, range(k))), shares(weights), ratio)


def _draw_setting(draw: Random, most: int) -> Setting:
    k = draw.randint(2, most)
    ratio = 1 + Fraction(draw.randint(1, 999), 10 ** draw.randint(0, 4))
    return Setting(label_set(draw, k), prior(draw, k), ratio)


def label_set(random: Random, k: int) -> tuple[Fraction, ...]:
    """Increasing labels: a lattice, or of very unequal steps, negative ones and fractions among them."""
    if random.random() < 0.3:
        return tuple(map(Fraction, range(k)))
    steps = [Fraction(random.randint(1, 10 ** random.choice((0, 1, 3))), random.choice((1, 1, 7))) for _ in range(k)]
    return tuple(accumulate(steps[:-1], initial=Fraction(random.randint(-20, 20))))


def prior(random: Random, k: int) -> tuple[Fraction, ...]:
    """A prior over `k` labels: flat, rough, with zeros, or almost all on one label."""
    kind = random.randrange(4)
    if kind == 0:
        return shares([1] * k)
    weights = [random.randint(1, 100) for _ in range(k)]
    if kind == 2:
        weights = [weight * random.randint(0, 1) for weight in weights]
    if kind == 3:
        weights[random.randrange(k)] *= 10**6
    return shares(weights if any(weights) else [1] * k)


def seeded(seed: int) -> Random:
    """Random numbers that are the same each time."""
    return Random(seed)  # noqa: S311


def shares(weights: Sequence[int]) -> tuple[Fraction, ...]:
    """Weights as parts of their sum."""
    return tuple(Fraction(weight, sum(weights)) for weight in weights)
