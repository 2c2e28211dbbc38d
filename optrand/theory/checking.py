"""Checks: all forms of a claim, the false one among them, over the same instances; findings, and their verdicts."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from optrand.errors import MissingExtra, OptrandError
from optrand.theory.claim import Budget, Claim, Form, words
from optrand.theory.comparison import Number

__all__ = ["BlindCheck", "Case", "Evidence", "Finding", "Verdict", "check"]


class BlindCheck(OptrandError):
    """A check compares what is no number, or does not refute the false variant of its claim: it means nothing."""


class Verdict(Enum):
    """Verdict of the evidence on a claim."""

    HOLDS = "holds"
    CORRECTED = "holds as corrected"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Case:
    """One instance, as a reader rebuilds it, and the sides that a form compares there, claimed equal or not."""

    instance: str
    left: float
    right: float
    alike: bool
    margin: float

    def __str__(self) -> str:
        return f"{self.instance}: {self.left:.10g} {'=' if self.alike else '<='} {self.right:.10g}"


@dataclass(frozen=True)
class Evidence:
    """Evidence of one form of a claim, of so many instances, `exact` if all were decided without floats.

    It fails most, or comes nearest to failing, at `worst`; `broken` is the first instance, and so about the smallest,
    of which it is false. The sides are those of the instances, or of some hundreds evenly spread over them.
    """

    wording: str
    tried: int
    exact: bool
    worst: Case
    broken: Case | None
    sides: tuple[tuple[float, float], ...]

    @property
    def stands(self) -> bool:
        """Whether no instance contradicts the form."""
        return self.broken is None


@dataclass(frozen=True)
class Finding:
    """Evidence of the forms of one claim, that of the false variant up to the instance that refutes it."""

    claim: str
    kind: str
    budget: str
    quantifier: str
    printed: Evidence
    corrected: Evidence | None
    false: Evidence
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Verdict of the evidence: with a quantifier that no computation settles, a claim can only be refuted."""
        if not self.decisive.stands:
            return Verdict.REFUTED
        if self.quantifier:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.printed.stands else Verdict.CORRECTED

    @property
    def decisive(self) -> Evidence:
        """The evidence that the verdict rests on."""
        return self.corrected if self.corrected and not self.printed.stands else self.printed


def check(claim: Claim, budget: Budget = Budget.QUICK) -> Finding:
    """Try a claim: an instance is made once and asked by every form, by the false one until it is refuted.

    Raises
    ------
    MissingExtra
        An optional dependency that the claim needs is not installed.
    BlindCheck
        The false variant of the claim was not refuted, or a side is no number: that would refute anything.

    Examples
    --------
    >>> from optrand.theory import check, find
    >>> claim, last_step = find(paper="B23", number="Proposition 7")
    >>> check(claim).verdict.value, str(check(last_step).printed.broken)
    ('holds', 'a = 1, b = 1, c = 2: 0.6666666667 <= 0.5')
    """
    for extra in claim.needs:
        module = {"clusters": "sklearn"}.get(extra, extra)
        if find_spec(module) is None:
            raise MissingExtra(f"{claim.name} needs {module}: pip install 'optrand[{extra}]'")
    start = time.perf_counter()
    printed, false = _Tally(claim.printed), _Tally(claim.false)
    corrected = _Tally(claim.corrected) if claim.corrected else None
    for instance in claim.instances(budget):
        for form in (printed, corrected, None if false.broken else false):
            if form:
                form.ask(instance)
    if false.broken is None:
        told = f"no instance refutes the false variant, {words(claim.false)!r}; the check sees nothing"
        raise BlindCheck(f"{claim.name}: {told}")
    forms = printed.evidence(), corrected.evidence() if corrected else None, false.evidence()
    return Finding(claim.name, claim.kind, budget.value, claim.quantifier, *forms, time.perf_counter() - start)


class _Tally:
    """Comparisons of one form so far: the worst, the first that fails, and the sides of all."""

    worst: Case
    broken: Case | None = None
    least = (True, math.inf)
    exact = True

    def __init__(self, form: Form) -> None:
        self.form = form
        self.sides: list[tuple[float, float]] = []

    def ask(self, instance: object) -> None:
        said = self.form(instance)
        sides = _float(said.left), _float(said.right)
        if any(map(math.isnan, sides)):
            raise BlindCheck(f"{words(self.form)!r} compares what is no number, at {instance}; the check sees nothing")
        self.exact &= said.exact
        self.sides.append(sides)
        rank = (said.holds, said.margin)
        if rank < self.least or not (said.holds or self.broken):
            case = Case(str(instance), *sides, said.alike, said.margin)
            self.broken = self.broken or (None if said.holds else case)
            if rank < self.least:
                self.least, self.worst = rank, case

    def evidence(self) -> Evidence:
        tried, count = len(self.sides), min(len(self.sides), 400)
        spread = tuple(self.sides[i * tried // count] for i in range(count))
        return Evidence(words(self.form), tried, self.exact, self.worst, self.broken, spread)


def _float(side: Number) -> float:
    try:
        return float(side)
    except OverflowError:
        return math.inf if side > 0 else -math.inf
