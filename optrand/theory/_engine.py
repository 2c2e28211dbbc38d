"""Claims as code: a statement, its instances, its hypothesis, and a false variant that the same code must refute.

A claim is a function of an instance that returns a :class:`Comparison`: one number is at most another, or equal to it.
:func:`check` tries it as printed, as corrected if the printed form has a slip, and in a deliberately false variant.
"""

from __future__ import annotations

import inspect
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np

from optrand.errors import OptrandError

Number = int | float | Fraction
Statement = Callable[..., "Comparison"]
Hypothesis = Callable[..., Any]

Space = Any
"""Instances of a claim, keyword arguments or one object each: a list, a function that lists them, or random ones."""


@dataclass(frozen=True)
class Tolerances:
    """Relative errors that claims allow to computations in floats."""

    floats: float = 1e-12  # means and products
    proven: float = 1e-9  # optima of the package, whose gaps are no larger, sums, quantiles, logarithms, inverses
    program: float = 1e-7  # the own tolerance of a linear-programming solver for feasibility
    cones: float = 1e-6  # interior-point methods, as a share of the loss or of the range of the outputs


TOLERANCE = Tolerances()


@dataclass(frozen=True)
class Comparison:
    """Two numbers, claimed to be equal if `alike`, and otherwise the left one to be at most the right one.

    Floats may differ by `tolerance`, a share of the larger side. A comparison is `exact` if neither a float nor a
    tolerance is involved.
    """

    left: Number
    right: Number
    alike: bool = False
    tolerance: float = 0.0
    exact: bool = True

    @cached_property
    def margin(self) -> float:
        """Distance from failing as a share of the larger side, for an equality minus the relative difference."""
        if self.left == self.right:
            return 0.0
        if math.inf in (abs(self.left), abs(self.right)):
            clearance = 1.0 if self.left < self.right else -1.0
        else:
            low, high = Fraction(self.left), Fraction(self.right)
            clearance = float((high - low) / max(abs(low), abs(high)))
        return -abs(clearance) if self.alike else clearance

    @property
    def holds(self) -> bool:
        """Whether the claim is true of these two numbers."""
        if not self.tolerance:
            return self.left == self.right if self.alike else self.left <= self.right
        return self.margin >= -self.tolerance


def at_most(left: Any, right: Any, *, tolerance: float = 0.0) -> Comparison:
    """Compare two numbers, or two arrays element by element, as `left <= right`.

    They may be nested sequences that broadcast as NumPy arrays do. The comparison is that of the pair that fails or
    comes nearest to failing. `tolerance` is the relative error that is allowed to computations in floats.

    Examples
    --------
    >>> at_most([1, 2], [1, 4]).holds, at_most([1, 2], 1).holds
    (True, False)
    """
    return _compare(left, right, tolerance, alike=False)


def equal(left: Any, right: Any, *, tolerance: float = 0.0) -> Comparison:
    """Compare two numbers, or two arrays element by element, as equal. Arguments are those of :func:`at_most`."""
    return _compare(left, right, tolerance, alike=True)


def _compare(left: Any, right: Any, tolerance: float, *, alike: bool) -> Comparison:
    pairs = list(np.broadcast(np.array(left, dtype=object), np.array(right, dtype=object)))
    numbers = [number.item() if isinstance(number, np.generic) else number for pair in pairs for number in pair]
    if not pairs or any(number != number for number in numbers):
        raise BlindCheck("a claim compares no numbers, or one that is NaN: the check means nothing")
    exact = not tolerance and not any(isinstance(number, float) for number in numbers)
    sides = zip(numbers[::2], numbers[1::2], strict=True)
    return min((Comparison(*pair, alike, tolerance, exact) for pair in sides), key=lambda one: (one.holds, one.margin))


def grid(**values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return all combinations of values, the last name varying fastest."""
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def cases(names: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return given rows of values, each row in the order of the names."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


@dataclass(frozen=True)
class Draws:
    """Random instances, `count` of them. The generator of each is seeded with its number."""

    count: int
    draw: Callable[[random.Random], Any]

    def __call__(self, times: int = 1) -> list[Any]:
        """List the instances, or `times` as many."""
        return [self.draw(random.Random(number)) for number in range(self.count * times)]  # noqa: S311


def draws(count: int, **values: Sequence[Any] | Callable[..., Any]) -> Draws:
    """Return random instances with one of several values for each name.

    A function in place of the values draws one itself, by a generator and those values before it that it names.
    """

    def draw(generator: random.Random) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in values.items():
            found[name] = _apply(value, found, generator) if callable(value) else generator.choice(value)
        return found

    return Draws(count, draw)


def write_value(value: Any) -> str:
    """Write a value as a reader would type it: fractions bare, rows in brackets, dataclasses with their fields."""
    if isinstance(value, np.ndarray):
        return write_value(value.tolist())
    if isinstance(value, list | tuple | range):
        return f"({', '.join(map(write_value, value))})"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {write_value(each)}" for name, each in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({write_value(_list_fields(value))})"
    return str(getattr(value, "__name__", value))


def _list_fields(value: Any) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


class Verdict(Enum):
    """Verdict of the evidence on a claim."""

    HOLDS = "holds"
    CORRECTED = "holds as corrected"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Form:
    """One wording of a claim: its text, the function that compares, and the hypothesis on an instance."""

    wording: str
    compare: Statement
    where: Hypothesis | None = None


@cache
def _list_instances(space: Callable[..., Iterable[Any]], *times: int) -> list[Any]:
    """List a space once, so that claims which share it share the results cached in its instances."""
    return list(space(*times))


@dataclass(eq=False)
class Claim:
    """A claim of a paper, as :func:`claim` declares it."""

    declared: ClassVar[dict[str, Claim]] = {}

    name: str  # paper, number and part: "G21 Theorem 9: variance"
    spaces: tuple[Space, ...]
    given: str  # hypothesis in words, and how the claim is tried
    undecided: str  # a quantifier that no computation settles, such as an unnamed constant, or empty
    printed: Form
    corrected: Form | None = None
    false: Form | None = None  # must be refuted on the same instances

    def __call__(self, *instance: Any, **values: Any) -> Comparison:
        """Compare the two sides as printed, or with other arguments than the printed ones."""
        return self.printed.compare(*instance, **values)

    @property
    def paper(self) -> str:
        """Key of the paper."""
        return self.name.split(" ", 1)[0]

    @property
    def number(self) -> str:
        """Number or section in the paper: ``"Theorem 9"``."""
        return self.name.split(" ", 1)[1].split(": ", 1)[0]

    @property
    def verdict(self) -> Verdict:
        """The verdict that is declared: undecided, holds as corrected if there is a corrected form, or holds."""
        if self.undecided:
            return Verdict.UNDECIDED
        return Verdict.CORRECTED if self.corrected else Verdict.HOLDS

    def instances(self, times: int = 1) -> Iterator[Any]:
        """Yield the instances, the same each time, whether or not the hypothesis holds for them."""
        for space in self.spaces:
            if isinstance(space, Draws):
                yield from _list_instances(space, times)
            else:
                yield from _list_instances(space) if callable(space) else space


def claim(
    name: str, *spaces: Space, given: str, where: Hypothesis | None = None, undecided: str = "", **values: Iterable[Any]
) -> Callable[[Statement], Claim]:
    """Declare a claim by the function that compares its two sides, whose docstring is the printed wording.

    Spaces of instances come small ones first, and a grid of `values` last. `given` is the hypothesis in words, and
    `where` as code: other instances are not tried. See :class:`Claim` for the name and for `undecided`.

    Examples
    --------
    >>> @claim("B23 Lemma 99", number=range(1, 6), given="positive integers")
    ... @false("Twice a number is at most its square.", factor=2)
    ... def squares(number: int, factor: int = 1) -> Comparison:
    ...     '''No number is larger than its square.'''
    ...     return at_most(factor * number, number**2)
    >>> squares(number=3).holds, check(squares).verdict.value, str(check(squares).false.broken)
    (True, 'holds', 'number = 1: 2 <= 1')
    >>> del Claim.declared["B23 Lemma 99"]
    """
    every = (*spaces, grid(**values)) if values else spaces

    def declare(compare: Statement) -> Claim:
        documented = inspect.getdoc(compare) or "(The wording is a docstring, which Python drops under -OO.)"
        forms = {"printed": Form(" ".join(documented.split("\n\n")[0].split()), compare, where)}
        for kind, (wording, other, hypothesis, changes) in getattr(compare, "forms", {}).items():
            forms[kind] = Form(wording, partial(other, **changes), hypothesis or where)
        Claim.declared[name] = Claim(name, every, given, undecided, **forms)
        return Claim.declared[name]

    return declare


def _add_form(
    kind: str, wording: str, compare: Statement | None = None, *, where: Hypothesis | None = None, **changes: Any
) -> Callable[[Statement], Statement]:
    def add(printed: Statement) -> Statement:
        vars(printed).setdefault("forms", {})[kind] = wording, compare or printed, where, changes
        return printed

    return add


corrected = partial(_add_form, "corrected")
"""Add the corrected form to a claim: its wording, and `changes` of arguments, another hypothesis or function."""

false = partial(_add_form, "false")
"""Add the false variant to a claim, which every check must refute. Arguments are those of :func:`corrected`."""


@cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def _apply(function: Callable[..., Any], instance: Any, *first: Any) -> Any:
    """Call a function with those values of an instance that it names, or with the one object that the instance is."""
    if not isinstance(instance, Mapping):
        return function(instance)
    fixed = function.keywords if isinstance(function, partial) else {}
    return function(*first, **{name: instance[name] for name in instance.keys() & _parameters(function) - fixed.keys()})


class BlindCheck(OptrandError):
    """A check means nothing: no instance fulfils the hypothesis, or none refutes the false variant of the claim."""


@dataclass(frozen=True)
class Case:
    """One instance, and the comparison there."""

    given: Any
    comparison: Comparison

    @property
    def instance(self) -> str:
        """Instance as text, that of an object by its fields alone."""
        return write_value(_list_fields(self.given) if is_dataclass(self.given) else self.given)

    def __str__(self) -> str:
        left, right = (_float(side) for side in (self.comparison.left, self.comparison.right))
        return f"{self.instance}: {left:.10g} {'=' if self.comparison.alike else '<='} {right:.10g}"


@dataclass(frozen=True)
class Evidence:
    """Evidence on one form: the number of instances `tried`, the `worst` one and the first that contradicts it."""

    tried: int
    exact: bool
    worst: Case
    broken: Case | None


@dataclass(frozen=True)
class Finding:
    """Evidence on the forms of one claim, that on the false variant up to the instance that refutes it."""

    claim: Claim
    printed: Evidence
    corrected: Evidence | None
    false: Evidence
    seconds: float

    @property
    def decisive(self) -> Evidence:
        """The evidence on which the verdict rests."""
        return self.corrected if self.corrected and self.printed.broken else self.printed

    @property
    def verdict(self) -> Verdict:
        """Verdict of the evidence: a claim with a quantifier that no computation settles can only be refuted."""
        if self.decisive.broken:
            return Verdict.REFUTED
        if self.claim.undecided:
            return Verdict.UNDECIDED
        return Verdict.CORRECTED if self.printed.broken else Verdict.HOLDS


def check(claim: Claim, times: int = 1) -> Finding:
    """Try all forms of a claim on its instances, with `times` as many random ones.

    Raises
    ------
    BlindCheck
        No instance fulfils the hypothesis of a form, none refutes the false variant, or a number is NaN.

    Examples
    --------
    >>> from optrand.theory import check, find
    >>> claim, last_step = find(paper="B23", number="Proposition 7")
    >>> check(claim).verdict.value, str(check(last_step).printed.broken)
    ('holds', 'a = 1, b = 1, c = 2: 0.6666666667 <= 0.5')
    """
    if claim.false is None:
        raise BlindCheck(f"{claim.name} has no false variant: declare one with @false")
    start, instances = time.perf_counter(), list(claim.instances(times))
    printed = _try(claim, claim.printed, instances)
    corrected = _try(claim, claim.corrected, instances) if claim.corrected else None
    false = _try(claim, claim.false, instances, until_broken=True)
    if false.broken is None:
        raise BlindCheck(f"{claim.name}: no instance refutes the false variant, {claim.false.wording!r}")
    return Finding(claim, printed, corrected, false, time.perf_counter() - start)


def _try(claim: Claim, form: Form, instances: Iterable[Any], *, until_broken: bool = False) -> Evidence:
    """Compare the sides of one form on the instances that fulfil its hypothesis."""
    cases, broken = [], None
    for instance in instances:
        if form.where is None or _apply(form.where, instance):
            cases.append(Case(instance, _apply(form.compare, instance)))
            if broken is None and not cases[-1].comparison.holds:
                broken = cases[-1]
                if until_broken:
                    break
    if not cases:
        raise BlindCheck(f"{claim.name}: no instance fulfils the hypothesis of {form.wording!r}")
    worst = min(cases, key=lambda case: (case.comparison.holds, case.comparison.margin))
    return Evidence(len(cases), all(case.comparison.exact for case in cases), worst, broken)


def _float(side: Number) -> float:
    try:
        return float(side)
    except OverflowError:
        return math.inf if side > 0 else -math.inf
