r"""Certificates of linear programs over a table: a bound from any multipliers, and the exact value of a point.

Let a minimisation have rows ``A x <= b`` (and ``>=``, ``==``), a table whose rows are distributions, and further
variables from 0 to 1. For *any* multipliers `d` with the right signs every feasible `x` has

.. math:: c \cdot x \;\geq\; b \cdot d + \sum_y \min_o \, (c - A^\top d)_{y o} + \sum_j \min(0, (c - A^\top d)_j).

*Proof.* ``c @ x = d @ (A x) + (c - A' d) @ x``. The first term is at least ``b @ d``, by the signs. Each row of the
table is a distribution, so it costs at least its cheapest entry, and each further variable lies between 0 and 1. Here
multipliers of a wrong sign are taken for 0, a reduced cost that is a little negative is charged, never forgiven, and
coefficients ``value * exp(power)`` are rounded so that the row is relaxed.

If the bound of the program without a cost is above 0, there is no feasible point: that is the proof of infeasibility.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from optrand.base.arithmetic import float_above, float_below
from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import Floats
from optrand.errors import NotCertified
from optrand.programs.model import Model
from optrand.programs.rows import Rows, Sense, Side

__all__ = ["ProgramCertificate", "bound", "certify_point", "exact_cost", "largest_violation"]

CLOSE = 1e-9
"""Largest violation of a row, relative to its largest coefficient, of a point in floats that counts as feasible."""


@dataclass(frozen=True)
class ProgramCertificate:
    """Proven facts of a point and of the program that it answers.

    Attributes
    ----------
    value : float
        Objective at the point, rounded to the unfavourable side.
    bound : float
        What no feasible point passes, rounded to the safe side; infinite if the multipliers prove nothing.
    violation : float
        Largest violation of a row or of a sign, relative to the largest coefficient of the row, rounded up. Of an
        exact table it is 0.
    maximize : bool
        Whether the program is a maximisation.
    realised : tuple of (str, float)
        For each notion of privacy its name and the table's own number, rounded up; empty for points in floats.
    findings : tuple of str
        Reasons why the point is not feasible; empty if it is.
    """

    value: float
    bound: float
    violation: float
    maximize: bool
    realised: tuple[tuple[str, float], ...] = ()
    findings: tuple[str, ...] = ()

    @property
    def lower(self) -> float:
        """Lower end of an interval that holds the optimum if the point is feasible."""
        return self.value if self.maximize else self.bound

    @property
    def upper(self) -> float:
        """Upper end of that interval."""
        return self.bound if self.maximize else self.value

    @property
    def gap(self) -> float:
        """``upper - lower`` relative to the value, absolute if that is 0, and rounded up. It is never negative."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            return math.inf
        difference = Fraction(self.upper) - Fraction(self.lower)
        return float_above(max(Fraction(0), difference) / (abs(Fraction(self.value)) or 1))

    def require(self, gap: float = 1e-9) -> ProgramCertificate:
        """Return this certificate, or raise if the point is not feasible or the gap is larger.

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

    def __bool__(self) -> bool:
        """Refuse to be a condition."""
        raise TypeError("the truth of a certificate is ambiguous: call .require(gap=1e-9), or compare .gap")

    def __str__(self) -> str:
        """Summary in one line."""
        facts = [f"optimum in [{shown_below(self.lower, 10)}, {shown_above(self.upper, 10)}]"]
        facts.append(f"gap {shown_above(self.gap, 2)}")
        facts += [f"{name} {shown_above(number, 8)}" for name, number in self.realised]
        facts.append("not feasible: " + "; ".join(self.findings) if self.findings else "feasible")
        return "; ".join(facts)


def bound(program: Model, multipliers: Floats, *, without_cost: bool = False) -> Fraction:
    """Bound the optimum of the program as a minimisation, from any multipliers, in rationals.

    Parameters
    ----------
    program : Model
        A maximisation is taken for the minimisation of minus its objective.
    multipliers : (rows,) array
        Derivatives of the optimal value by the right-hand sides, as in answers.
    without_cost : bool
        Whether to leave out the objective: a result above 0 then proves that no point is feasible.
    """
    sign = -1 if program.maximize else 1
    cost = [Fraction(0)] * program.cost.size if without_cost else [sign * Fraction(c) for c in program.cost.tolist()]
    total, start = Fraction(0), 0
    for block in program.blocks.values():
        duals = sign * multipliers[start : start + block.count]
        start += block.count
        if block.name == "sum":
            # Implied: each row of the table is a distribution.
            continue
        useful = _right_sign(block, duals)
        for i, entries, limit in block.exact(Side.RELAXED, useful):
            price = Fraction(float(duals[i]))
            total += price * limit
            for column, coefficient in entries:
                cost[column] -= price * coefficient
    cells, n = program.variables.cells, program.variables.n
    total += sum(min(cost[y : y + n]) for y in range(0, cells, n or 1))
    return total + sum(c for c in cost[cells:] if c < 0)


def _right_sign(block: Rows, duals: Floats) -> NDArray[np.bool_]:
    useful: NDArray[np.bool_] = duals != 0
    if block.sense is not Sense.EQUAL:
        useful &= (duals < 0) == (block.sense is Sense.LESS)
    return useful


def exact_cost(program: Model, point: Iterable[Fraction]) -> Fraction:
    """Return the objective at a point."""
    return sum((Fraction(c) * x for c, x in zip(program.cost.tolist(), point, strict=True) if c and x), Fraction(0))


def largest_violation(program: Model, point: Sequence[Fraction]) -> Fraction:
    """Return the largest violation of a row or sign at a point, in units of the row's largest coefficient."""
    worst = max([Fraction(0), *(-x for x in point), *(x - 1 for x in point[program.variables.cells :])])
    for block in program.blocks.values():
        for _, entries, limit in block.exact(Side.TIGHTENED):
            excess = sum((a * point[j] for j, a in entries), Fraction(0)) - limit
            if block.sense is Sense.EQUAL:
                excess = abs(excess)
            elif block.sense is Sense.GREATER:
                excess = -excess
            if excess > 0:
                worst = max(worst, excess / max((abs(a) for _, a in entries), default=Fraction(1)))
    return worst


def certify_point(program: Model, floats: Floats, multipliers: Floats, *, reason: str) -> ProgramCertificate:
    """Prove a bound from a backend's multipliers, and measure how far its point is from feasible.

    Parameters
    ----------
    program : Model
    floats : array
        A value for each variable; empty if the backend has none.
    multipliers : (rows,) array
    reason : str
        Finding of the certificate if there is no point.
    """
    findings = list[str]()
    limit = bound(program, multipliers)
    value, violation = math.nan, math.inf
    if floats.size:
        point = [Fraction(x) for x in floats.tolist()]
        exact, violation = exact_cost(program, point), float_above(largest_violation(program, point))
        value = float_below(exact) if program.maximize else float_above(exact)
        if violation > CLOSE:
            findings.append(f"a row is violated by {shown_above(violation, 3)} of its largest coefficient")
    else:
        findings.append(reason)
    proven = float_above(-limit) if program.maximize else float_below(limit)
    return ProgramCertificate(value, proven, violation, program.maximize, (), tuple(findings))
