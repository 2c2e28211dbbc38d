r"""Answers of backends, and certificates: a bound from any multipliers, and the exact value of a point.

Let a minimisation have rows ``A x <= b`` (and ``>=``, ``==``), a table whose rows are distributions, and further
variables from 0 to 1. For *any* multipliers `d` with the right signs every feasible `x` has

.. math:: c \cdot x \;\geq\; b \cdot d + \sum_y \min_o \, (c - A^\top d)_{y o} + \sum_j \min(0, (c - A^\top d)_j).

*Proof.* ``c @ x = d @ (A x) + (c - A' d) @ x``. The first term is at least ``b @ d``, by the signs. Each row of the
table is a distribution, so it costs at least its cheapest entry, and each further variable lies between 0 and 1. Here
multipliers of a wrong sign are taken for 0, slightly negative reduced costs lower the bound instead of being ignored,
and coefficients ``value * exp(power)`` are rounded so that the row is relaxed.

If the bound of the program without a cost is above 0, there is no feasible point: that is the proof of infeasibility.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, Self

import numpy as np
from flint import fmpq

from optrand.base._arithmetic import float_above, float_below
from optrand.base._numerals import format_above
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import Floats
from optrand.certificates._certificate import Proof
from optrand.programs._rows import Model, Sense, rational


@dataclass(frozen=True, kw_only=True)
class ProgramCertificate(Proof):
    """Proven facts of a point and of the program that it answers.

    Attributes
    ----------
    lower, upper, maximised, findings
        As in :class:`~optrand.certificates._certificate.Proof`.
    violation : float
        Largest violation of a row or of a sign, relative to the largest coefficient of the row, rounded up. Of an
        exact table it is 0.
    realised : tuple of (str, float)
        For each notion of privacy its name and the table's own number, rounded up. Empty for points in floats.
    """

    violation: float = 0.0
    realised: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, program: Model, value: Fraction | None, limit: Fraction, **facts: Any) -> Self:
        """Round the value of a point, if there is one, and the bound of the minimisation."""
        if program.maximize:
            lower, upper = -math.inf if value is None else float_below(value), float_above(-limit)
        else:
            lower, upper = float_below(limit), math.inf if value is None else float_above(value)
        return cls(lower=lower, upper=upper, maximised=program.maximize, **facts)

    def _facts(self) -> list[str]:
        return [f"{name} {format_above(number, 8)}" for name, number in self.realised]


def fraction(x: fmpq) -> Fraction:
    """Return a rational of flint as one of Python."""
    return Fraction(int(x.p), int(x.q))


def bound(program: Model, multipliers: Floats, *, without_cost: bool = False) -> Fraction:
    """Bound the optimum of the program as a minimisation, from any multipliers, in rationals.

    A maximisation is taken for the minimisation of minus its objective. Multipliers are derivatives of the optimal
    value by the right-hand sides, as in answers. `without_cost` leaves out the objective: a result above 0 then proves
    that no point is feasible.
    """
    sign = -1 if program.maximize else 1
    cost = [fmpq(0) if without_cost else rational(sign * c) for c in program.cost.tolist()]
    total, start = fmpq(0), 0
    for block in program.blocks.values():
        duals = sign * multipliers[start : start + block.count]
        start += block.count
        if block.name == "sum":
            # Implied: each row of the table is a distribution.
            continue
        useful = duals != 0
        if block.sense is not Sense.EQUAL:
            useful &= (duals < 0) == (block.sense is Sense.LESS)
        # A relaxed row has no fewer feasible points, so that a bound for it is one for the row itself.
        for i, entries, limit in block.exact(relaxed=True, chosen=useful):
            price = rational(float(duals[i]))
            total += price * limit
            for column, coefficient in entries:
                cost[column] -= price * coefficient
    cells, n = program.cells, program.n
    # The cheapest entry of each distribution, and of a variable from 0 to 1 the cheaper end.
    total += sum((min(cost[y : y + n]) for y in range(0, cells, n or 1)), fmpq(0))
    total += sum((c for c in cost[cells:] if c < 0), fmpq(0))
    return fraction(total)


def exact_cost(cost: Floats, point: Sequence[fmpq]) -> Fraction:
    """Return the objective at a point from the costs of its entries."""
    total = sum((rational(c) * x for c, x in zip(cost.tolist(), point, strict=True) if c and x != 0), fmpq(0))
    return fraction(total)


def largest_violation(program: Model, point: Sequence[fmpq]) -> Fraction:
    """Return the largest violation of a row or sign at a point, in units of the row's largest coefficient."""
    # Entries of the table have no upper limit of their own: their rows sum to 1.
    worst = max([fmpq(0), *(-x for x in point), *(x - 1 for x in point[program.cells :])])
    for _, _, entries, slack in program.slacks(point):
        if slack < 0:
            worst = max(worst, -slack / max((abs(a) for _, a in entries), default=fmpq(1)))
    return fraction(worst)


class Status(Enum):
    """Status that a backend reports. It is information, never a proof."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "stopped at a limit of time or iterations"
    FAILED = "failed"


@suggest_attributes(
    {
        "value": "fun objective opt_value",
        "table": "matrix variables x",
        "duals": "dual dual_value",
        "certify().gap": "certificate gap",
        "status": "optimal success",
        "seconds, iterations": "nit solver_stats",
    }
)
@dataclass(frozen=True, eq=False)
class Answer:
    """A backend's own answer, in the papers' units and unchecked.

    Attributes
    ----------
    program : Model
    backend : str
        Name of the backend.
    status : Status
    message : str
        The backend's own words.
    value : float
        Objective at :attr:`point`. NaN if there is no point, or if the status is infeasible or unbounded.
    point : array
        All variables: the table row by row, and the variables behind it. Empty if there is no point. With a status
        other than optimal it is where the backend stopped.
    multipliers : array
        For every row the derivative of the optimal value by its right-hand side. Zeros if the backend returns none.
    iterations : int
    seconds : float
        Run time of the backend alone.
    """

    program: Model
    backend: str
    status: Status
    message: str
    value: float
    point: Floats
    multipliers: Floats
    iterations: int
    seconds: float

    @property
    def table(self) -> Floats:
        """Probabilities ``M[y, o]`` as the backend has them, shape ``(k, n)``, NaN if it has no table."""
        if not self.point.size:
            return np.full((self.program.k, self.program.n), np.nan)
        return self.point[: self.program.cells].reshape(self.program.k, self.program.n)

    @property
    def duals(self) -> dict[str, Floats]:
        """Multipliers by the name of their block, each in the block's shape.

        A multiplier is the derivative of the optimal value by the right-hand side of its row. In a minimisation it is
        at most 0 for a row ``<=`` and at least 0 for a row ``>=``. In a maximisation the signs are reversed.
        """
        blocks = self.program.blocks.values()
        parts = np.split(self.multipliers, np.cumsum([block.count for block in blocks])[:-1])
        return {block.name: part.reshape(block.shape) for block, part in zip(blocks, parts, strict=True)}

    def certify(self) -> ProgramCertificate:
        """Return a proven bound of the optimum from the multipliers, and the largest violation at the point."""
        program, limit = self.program, bound(self.program, self.multipliers)
        if math.isnan(self.value):
            reason = f"{self.backend} has no answer, its status is {self.status.value}: {self.message}"
            return ProgramCertificate.of(program, None, limit, violation=math.inf, findings=(reason,))
        point = [rational(x) for x in self.point.tolist()]
        violation = float_above(largest_violation(program, point))
        # A point in floats that is closer than this counts as feasible.
        finding = f"a row is violated by {format_above(violation, 3)} of its largest coefficient"
        findings = (finding,) if violation > 1e-9 else ()
        value = exact_cost(program.cost, point)
        return ProgramCertificate.of(program, value, limit, violation=violation, findings=findings)

    def __repr__(self) -> str:
        """Return one line."""
        value = "" if math.isnan(self.value) else f", value {self.value:.9g}"
        return f"<Answer of {self.backend}: {self.status.value}{value}, {self.seconds:.3g} s>"
