"""Findings: evidence of a claim, and the verdict that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Case", "Evidence", "Finding", "Verdict"]


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
    """Finding of one claim: its name and kind, the budget, and the evidence of its forms.

    The evidence of the false variant ends at the instance that refutes it; `seconds` is how long all of it took.
    """

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
        """Verdict of the evidence.

        A claim with a quantifier that no computation settles is never counted as holding; it can be refuted.
        """
        if not self.printed.stands and not (self.corrected and self.corrected.stands):
            return Verdict.REFUTED
        if self.quantifier:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.printed.stands else Verdict.CORRECTED

    @property
    def decisive(self) -> Evidence:
        """The evidence that the verdict rests on."""
        return self.corrected if self.corrected and not self.printed.stands else self.printed
