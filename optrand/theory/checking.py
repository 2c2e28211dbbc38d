"""Checks: all forms of a claim, the false one among them, over the same instances by the same code."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec

from optrand.errors import MissingExtra, OptrandError
from optrand.theory.claim import Budget, Claim, Form, words
from optrand.theory.comparison import Comparison, Number
from optrand.theory.finding import Case, Evidence, Finding

__all__ = ["EXTRAS", "BlindCheck", "check"]

EXTRAS = {"clusters": "sklearn", "cvxpy": "cvxpy"}
"""Extras of the package that claims may need, and the module that tells whether one is installed."""

MOST_SIDES = 400


class BlindCheck(OptrandError):
    """A check compares what is no number, or does not refute the false variant of its claim: it means nothing."""


def check(claim: Claim, budget: Budget = Budget.QUICK) -> Finding:
    """Try a claim.

    Raises
    ------
    MissingExtra
        An optional dependency that the claim needs is not installed.
    BlindCheck
        The false variant of the claim was not refuted, or a side is no number: that would refute anything.

    Notes
    -----
    An instance is made once and asked by every form: by the printed and the corrected one always, by the false one
    until it is refuted.

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
        raise BlindCheck(
            f"{claim.name}: no instance refutes the false variant, {words(claim.false)!r}; the check sees nothing"
        )
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


@dataclass(eq=False)
class _Tally:
    """What one form has said so far."""

    form: Form
    exact: bool = True
    worst: Case | None = None
    broken: Case | None = None
    sides: list[tuple[float, float]] = field(default_factory=list)
    least: tuple[bool, float] = (True, float("inf"))

    def ask(self, instance: object) -> None:
        """Hear what the form says of an instance."""
        said = self.form(instance)
        sides = _float(said.left), _float(said.right)
        if any(map(math.isnan, sides)):
            raise BlindCheck(f"{words(self.form)!r} compares what is no number, at {instance}; the check sees nothing")
        self.exact &= said.exact
        self.sides.append(sides)
        rank = (said.holds, said.margin)
        if self.worst is None or rank < self.least:
            self.least, self.worst = rank, _case(instance, said)
        if self.broken is None and not said.holds:
            self.broken = _case(instance, said)

    def evidence(self) -> Evidence:
        """All of it."""
        if self.worst is None:
            raise BlindCheck(f"{words(self.form)!r} was tried on nothing")
        return Evidence(
            wording=words(self.form),
            tried=len(self.sides),
            exact=self.exact,
            worst=self.worst,
            broken=self.broken,
            sides=tuple(_spread(self.sides)),
        )


def _spread(sides: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    count = min(len(sides), MOST_SIDES)
    return (sides[i * len(sides) // count] for i in range(count))


def _case(instance: object, said: Comparison) -> Case:
    return Case(str(instance), _float(said.left), _float(said.right), said.alike, said.margin)


def _float(side: Number) -> float:
    try:
        return float(side)
    except OverflowError:
        return float("inf") if side > 0 else -float("inf")
