"""Proven bounds of an optimum, the part that all certificates share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, Self

from optrand.base.arithmetic import float_above
from optrand.base.numerals import shown_above, shown_below
from optrand.errors import NotCertified

__all__ = ["Proof"]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Interval that holds an optimum, between the value of an answer and a bound that no answer passes.

    Attributes
    ----------
    lower, upper : float
        Ends of the interval, rounded outward; infinite if nothing was proven.
    maximised : bool
        Whether larger values are better, so that the answer's own value is `lower` and the bound is `upper`.
    findings : tuple of str
        Reasons why the answer is not feasible; empty if it is.
    """

    lower: float
    upper: float
    maximised: bool = False
    findings: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """Objective at the answer, rounded to the unfavourable side."""
        return self.lower if self.maximised else self.upper

    @property
    def bound(self) -> float:
        """Bound that no feasible answer passes, rounded to the safe side."""
        return self.upper if self.maximised else self.lower

    @property
    def gap(self) -> float:
        """Gap ``upper - lower`` relative to the value, absolute if that is 0, and rounded up. It is never negative."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        difference = Fraction(self.upper) - Fraction(self.lower)
        return float_above(max(Fraction(0), difference) / (abs(Fraction(self.value)) or 1))

    def require(self, gap: float = 1e-9) -> Self:
        """Return this certificate, or raise if it does not prove feasibility and a relative gap of at most `gap`.

        Raises
        ------
        NotCertified
            With the reason, and this certificate attached.
        """
        if self.findings:
            raise NotCertified("; ".join(self.findings), certificate=self)
        if not self.gap <= gap:
            raise NotCertified(
                f"the verified gap is {shown_above(self.gap, 3)}, more than the {gap:.3g} that was required: the "
                f"optimum lies between {shown_below(self.lower, 10)} and {shown_above(self.upper, 10)}",
                certificate=self,
            )
        return self

    def __bool__(self) -> NoReturn:
        """Refuse to be true or false: a certificate that proves nothing is an object, too."""
        raise TypeError("a certificate is neither true nor false: use its require(gap=...), which raises if it fails")

    def _facts(self) -> list[str]:
        """Return the further facts of the summary."""
        return []

    def __str__(self) -> str:
        """Summarize in one line."""
        interval = f"optimum in [{shown_below(self.lower, 10)}, {shown_above(self.upper, 10)}]"
        verdict = "not feasible: " + "; ".join(self.findings) if self.findings else "feasible"
        return "; ".join([f"{interval}, gap {shown_above(self.gap, 2)}", *self._facts(), verdict])
