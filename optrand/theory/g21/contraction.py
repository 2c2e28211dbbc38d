"""Curves that are nowhere steep make no class more complex: the contraction inequality ([G21], Lemma 22)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most
from optrand.theory.g21.complexity import Function
from optrand.theory.instances import listed

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Curve:
    """A function of one number that is nowhere steeper than ``steepness``."""

    kind: str
    centre: Fraction
    steepness: Fraction

    def at(self, value: Fraction) -> Fraction:
        """Its value."""
        return _KINDS[self.kind](self.steepness * (value - self.centre))

    def __str__(self) -> str:
        return f"{self.kind} at {self.centre}"


_KINDS: dict[str, Callable[[Fraction], Fraction]] = {
    "constant 1": lambda _: Fraction(1),
    "falling line": lambda slope: -slope,
    "distance": abs,
    "hinge": lambda slope: max(slope, Fraction(0)),
    "clipped line": lambda slope: min(max(slope, Fraction(-1)), Fraction(1)),
    "hat": lambda slope: max(1 - abs(slope), Fraction(0)),
}


@dataclass(frozen=True)
class _Contraction:
    """Values of functions at the points of a sample, a curve for each point, and what they are no steeper than."""

    functions: tuple[Function, ...]
    curves: tuple[_Curve, ...]
    steepness: Fraction

    def correlation(self, *, curved: bool, absolute: bool = False) -> Fraction:
        """The mean over random signs of the largest correlation with them."""
        size = len(self.curves)
        rows = [self._curved(function) if curved else function for function in self.functions]
        total = Fraction(0)
        for signs in product((1, -1), repeat=size):
            sums = (sum((s * v for s, v in zip(signs, row, strict=True)), Fraction(0)) for row in rows)
            total += max(map(abs, sums) if absolute else sums)
        return total / (size << size)

    def _curved(self, function: Function) -> Function:
        return tuple(curve.at(value) for curve, value in zip(self.curves, function, strict=True))

    def __str__(self) -> str:
        functions = "; ".join(map(listed, self.functions))
        return f"values {functions}, L = {self.steepness}, curves {', '.join(map(str, self.curves))}"


def _contractions(budget: Budget) -> Iterator[_Contraction]:
    zero, one = Fraction(0), Fraction(1)
    for kind in _KINDS:
        for values in ((zero,), (zero, one), (-one, zero, Fraction(2))):
            yield _Contraction(tuple((value,) for value in values), (_Curve(kind, zero, one),), one)
    random = Random(22)  # noqa: S311
    for _ in range(budget.pick(quick=200, full=5_000)):
        size, steepness = random.randint(1, 5), Fraction(random.randint(1, 12), 4)
        functions = tuple(
            tuple(Fraction(random.randint(-6, 6), 3) for _ in range(size)) for _ in range(random.randint(1, 5))
        )
        curves = tuple(
            _Curve(random.choice(tuple(_KINDS)), Fraction(random.randint(-6, 6), 3), steepness) for _ in range(size)
        )
        yield _Contraction(functions, curves, steepness)


def curves_contract(contraction: _Contraction) -> Comparison:
    """Curves no steeper than L, one for each point, make a class at most L times as complex."""
    return at_most(contraction.correlation(curved=True), contraction.steepness * contraction.correlation(curved=False))


def curves_contract_absolutely(contraction: _Contraction) -> Comparison:
    """The same with the largest absolute correlation on both sides."""
    return at_most(
        contraction.correlation(curved=True, absolute=True),
        contraction.steepness * contraction.correlation(curved=False, absolute=True),
    )


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 22",
        hypothesis="finite classes",
        instances=_contractions,
        printed=curves_contract,
        false=curves_contract_absolutely,
    ),
)
