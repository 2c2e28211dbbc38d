"""A backend's own answer to a program, and the certificate for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import Floats
from optrand.programs._certificate import ProgramCertificate, certify_point
from optrand.programs._model import Model


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
        Objective at :attr:`point`; NaN if there is no point, or if the status is infeasible or unbounded.
    point : array
        All variables: the table row by row, and the variables behind it. Empty if there is no point. With a status
        other than optimal it is where the backend stopped.
    multipliers : array
        For every row the derivative of the optimal value by its right-hand side. Empty if the backend returns none.
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
        """Probabilities ``M[y, o]`` as the backend has them, shape ``(k, n)``."""
        variables = self.program.variables
        return self.point[: variables.cells].reshape(variables.k, variables.n)

    @property
    def duals(self) -> dict[str, Floats]:
        """Multipliers by the name of their block, each in the block's shape.

        A multiplier is the derivative of the optimal value by the right-hand side of its row. In a minimisation it is
        at most 0 for a row ``<=`` and at least 0 for a row ``>=``; in a maximisation the other way round.
        """
        return self.program.split_duals(self.multipliers)

    def certify(self) -> ProgramCertificate:
        """Return a proven bound of the optimum from the multipliers, and how far the point is from feasible."""
        reason = f"{self.backend} has no answer, its status is {self.status.value}: {self.message}"
        point = self.point[:0] if math.isnan(self.value) else self.point
        return certify_point(self.program, point, self.multipliers, reason=reason)

    def __repr__(self) -> str:
        """Return one line."""
        value = "" if math.isnan(self.value) else f", value {self.value:.9g}"
        return f"<Answer of {self.backend}: {self.status.value}{value}, {self.seconds:.3g} s>"
