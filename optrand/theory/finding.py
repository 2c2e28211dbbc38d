"""What was found of a claim: evidence, and the verdict that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Case", "Evidence", "Finding", "Verdict"]


class Verdict(Enum):
    """What the evidence says of a claim."""

    HOLDS = "holds"
    CORRECTED = "holds as corrected"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Case:
    """One instance, and what a form of a claim says of it.

    Attributes
    ----------
    instance : str
        What a reader needs to rebuild it.
    left, right : float
        The two sides.
    alike : bool
        Whether they are claimed equal, rather than the left one at most the right one.
    margin : float
        How far the claim is from failing there, as a share of the larger side.
    """

    instance: str
    left: float
    right: float
    alike: bool
    margin: float

    def __str__(self) -> str:
        between = "=" if self.alike else "<="
        return f"{self.instance}: {self.left:.10g} {between} {self.right:.10g}"


@dataclass(frozen=True)
class Evidence:
    """What one form of a claim said of the instances.

    Attributes
    ----------
    wording : str
        The form.
    tried : int
        The number of instances.
    exact : bool
        Whether all of them were decided without floats.
    worst : Case
        Where it fails most, or comes nearest to failing.
    broken : Case or None
        The first instance, and so about the smallest, of which the form is false.
    sides : tuple of (float, float)
        Left and right side of the instances, or of some hundreds evenly spread over them.
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
    """What was found of one claim.

    Attributes
    ----------
    claim : str
        The name of the claim.
    budget : str
        ``"quick"`` or ``"full"``.
    quantifier : str
        What no finite computation settles; empty for a claim that is decided.
    printed : Evidence
        Of the claim as it is printed.
    corrected : Evidence or None
        Of the claim as it should read, where it has a slip.
    false : Evidence
        Of a deliberately false variant, up to the instance that refutes it.
    seconds : float
        How long it took.
    """

    claim: str
    budget: str
    quantifier: str
    printed: Evidence
    corrected: Evidence | None
    false: Evidence
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """It follows from the evidence.

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
