"""Checks: all forms of a claim, the false one among them, over the same instances by the same code."""

from __future__ import annotations

import math
import time
from importlib.util import find_spec

from optrand.errors import MissingExtra, OptrandError
from optrand.theory.claim import Budget, Claim, Form, words
from optrand.theory.comparison import Number
from optrand.theory.finding import Case, Evidence, Finding

__all__ = ["EXTRAS", "BlindCheck", "check"]

EXTRAS = {"clusters": "sklearn", "cvxpy": "cvxpy"}
"""Extras of the package that claims may need, and the module that tells whether one is installed."""

MOST_SIDES = 400


class BlindCheck(OptrandError):
    """A check compares what is no number, or does not refute the false variant of its claim: it means nothing."""


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
    >>> finding = check(claim)
    >>> finding.verdict.value, finding.printed.exact, finding.false.stands
    ('holds', True, False)
    >>> print(check(last_step).printed.broken)
    a = 1, b = 1, c = 2: 0.6666666667 <= 0.5
    """
    for extra in claim.needs:
        if find_spec(EXTRAS[extra]) is None:
            raise MissingExtra(f"{claim.name} needs {EXTRAS[extra]}: pip install 'optrand[{extra}]'")
    start = time.perf_counter()
    printed, false = _Tally(claim.printed), _Tally(claim.false)
    corrected = None if claim.corrected is None else _Tally(claim.corrected)
    for instance in claim.instances(budget):
        printed.ask(instance)
        if corrected is not None:
            corrected.ask(instance)
        if false.broken is None:
            false.ask(instance)
    if false.broken is None:
        told = f"no instance refutes the false variant, {words(claim.false)!r}; the check sees nothing"
        raise BlindCheck(f"{claim.name}: {told}")
    return Finding(
        claim=claim.name,
        kind=claim.kind,
        budget=budget.value,
        quantifier=claim.quantifier,
        printed=printed.evidence(),
        corrected=None if corrected is None else corrected.evidence(),
        false=false.evidence(),
        seconds=time.perf_counter() - start,
    )


class _Tally:
    """Comparisons of one form so far."""

    def __init__(self, form: Form) -> None:
        self.form, self.exact = form, True
        self.worst: Case | None = None
        self.broken: Case | None = None
        self.sides: list[tuple[float, float]] = []
        self.least = (True, math.inf)

    def ask(self, instance: object) -> None:
        said = self.form(instance)
        sides = _float(said.left), _float(said.right)
        if any(map(math.isnan, sides)):
            raise BlindCheck(f"{words(self.form)!r} compares what is no number, at {instance}; the check sees nothing")
        self.exact &= said.exact
        self.sides.append(sides)
        rank = (said.holds, said.margin)
        breaks = self.broken is None and not said.holds
        if self.worst is None or rank < self.least or breaks:
            case = Case(str(instance), *sides, said.alike, said.margin)
            self.broken = case if breaks else self.broken
            if self.worst is None or rank < self.least:
                self.least, self.worst = rank, case

    def evidence(self) -> Evidence:
        if self.worst is None:
            raise BlindCheck(f"{words(self.form)!r} was tried on nothing")
        tried = len(self.sides)
        count = min(tried, MOST_SIDES)
        spread = tuple(self.sides[i * tried // count] for i in range(count))
        return Evidence(words(self.form), tried, self.exact, self.worst, self.broken, spread)


def _float(side: Number) -> float:
    try:
        return float(side)
    except OverflowError:
        return math.inf if side > 0 else -math.inf
