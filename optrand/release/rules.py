"""Randomizers for a prior by their names: each drawn as it is, neither mixed with another nor refused for its gap."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optrand.base.validation import integer
from optrand.closed_forms import gap_response, rr_top_k
from optrand.errors import InvalidInput
from optrand.model import losses
from optrand.model.losses import Loss
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Solution
from optrand.solvers import solve

__all__ = ["RULES", "Rule"]

RULES: dict[str, tuple[Loss | None, float | None]] = {
    "optimal": (None, None),
    "rr-with-prior": (losses.zero_one, 0.0),
    "rr-top-k": (losses.zero_one, 0.0),
    "rr-on-bins": (losses.squared, 0.0),
    "gap-response": (losses.squared, math.inf),
}
"""Names, each with its loss and its penalty on bias; of ``optimal`` those that are asked for."""


@dataclass(frozen=True)
class Rule:
    """Randomizer of a name, for any prior.

    Parameters
    ----------
    name : str
        One of :data:`RULES`.
    k : int, optional
        How many labels ``rr-top-k`` keeps; by default the best number, as ``rr-with-prior`` does.

    Raises
    ------
    InvalidInput
        Another name, or `k` for another than ``rr-top-k``.

    Examples
    --------
    >>> import optrand
    >>> solution = Rule("rr-top-k", k=2)(optrand.classification([0.5, 0.3, 0.2], 1.0))
    >>> solution.randomizer.outputs.tolist(), optrand.certify(solution).gap < 1e-12
    ([0.0, 1.0], True)
    """

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        """Check the name and `k`."""
        if self.name not in RULES:
            raise InvalidInput(f"the randomizer is {self.name!r}, expected one of {', '.join(RULES)}")
        if self.k is not None:
            if self.name != "rr-top-k":
                raise InvalidInput(f"k is the number of labels that rr-top-k keeps: leave it out with {self.name}")
            integer(self.k, "k", 1)

    @property
    def loss(self) -> Loss | None:
        """Loss that it is for; None for any."""
        return RULES[self.name][0]

    @property
    def bias_penalty(self) -> float | None:
        """Penalty on bias that it is for; None for any."""
        return RULES[self.name][1]

    @property
    def optimal(self) -> bool:
        """Whether it is the optimum of its problem whatever the prior."""
        return self.name not in ("rr-top-k", "gap-response")

    def check(self, question: Problem) -> None:
        """Refuse a problem that it does not answer, :class:`InvalidInput`."""
        if self.loss is not None and (question.loss, question.bias_penalty) != (self.loss, self.bias_penalty):
            raise InvalidInput(f"{self.name} is for another loss or another price of bias than is asked for")
        if self.k is not None:
            integer(self.k, "k", 1, question.k, why=", the number of labels")
        if self.name == "gap-response" and question.k > 1:
            self(question)

    def __call__(self, problem: Problem) -> Solution:
        """Answer to a problem.

        Raises
        ------
        InvalidInput
            Outputs where the answer has none.
        """
        if self.name == "rr-top-k" and self.k is not None:
            found = rr_top_k(problem.prior, self.k, problem.epsilon)
            outputs = problem.labels[found.randomizer.outputs.astype(np.intp)]
            randomizer = Randomizer(problem.labels, outputs, found.randomizer.matrix, problem.epsilon)
            return replace(found, problem=problem, randomizer=randomizer)
        if self.name == "gap-response" and problem.k > 1:
            found = gap_response(problem.labels, problem.prior, problem.epsilon)
            low, high = found.randomizer.outputs[[0, -1]].tolist()
            if low < problem.outputs.low or high > problem.outputs.high:
                raise InvalidInput(f"gap-response has outputs from {low:g} to {high:g}: leave the outputs out")
            return replace(found, problem=problem)
        return solve(problem)
