"""Solutions: a randomizer, its dual, and statistics of the solve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optrand.base.records import Record
from optrand.base.validation import Floats, frozen, real
from optrand.errors import InvalidInput
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.summary import Summary

__all__ = ["Dual", "Solution", "Stats"]


@dataclass(frozen=True, eq=False)
class Dual(Record):
    """Multipliers of the two families of constraints, one of each a label.

    Attributes
    ----------
    alpha : (k,) array
        Of ``sum_i M[y, i] = 1``; in units of the loss.
    beta : (k,) array
        Of ``E[M(y)] = y`` (or of the definition of the bias, at a finite penalty); loss per unit of the label. Zero
        where bias is free.
    origin : float
        The output from which `beta` is measured: far from zero, floats hold good multipliers only near the labels.

    Notes
    -----
    The sign is that of a minimisation: ``h_y(v) = p_y g(v, y) - alpha_y - beta_y (v - origin)`` is the reduced cost.
    Any numbers give a true bound (:mod:`optrand.certificates.certificate`).
    """

    alpha: Floats
    beta: Floats
    origin: float = 0.0

    def __post_init__(self) -> None:
        """Freeze, and refuse NaN or two lengths."""
        object.__setattr__(self, "origin", real(self.origin, "origin") + 0.0)
        # Adding 0 turns -0.0 into 0.0: equal duals have one digest.
        object.__setattr__(self, "alpha", frozen(frozen(self.alpha) + 0.0))
        object.__setattr__(self, "beta", frozen(frozen(self.beta) + 0.0))
        if self.alpha.ndim != 1 or self.alpha.shape != self.beta.shape:
            raise InvalidInput("a dual needs two vectors of one length, one entry a label")
        if not (np.isfinite(self.alpha).all() and np.isfinite(self.beta).all()):
            raise InvalidInput("a dual needs finite multipliers")

    def __eq__(self, other: object) -> bool:
        """Equal where all multipliers are."""
        return (
            isinstance(other, Dual)
            and self.origin == other.origin
            and np.array_equal(self.alpha, other.alpha)
            and np.array_equal(self.beta, other.beta)
        )

    def __hash__(self) -> int:
        """Hash of the multipliers."""
        return hash((self.alpha.tobytes(), self.beta.tobytes(), self.origin))

    def __repr__(self) -> str:
        """One line, without the multipliers."""
        return f"<Dual: multipliers of {self.alpha.size} labels>"


@dataclass(frozen=True)
class Stats:
    """Statistics of a solve.

    Attributes
    ----------
    solver : str
        Printed so that it can be built again.
    seconds : float
        Wall-clock time.
    iterations : int
        Rounds of the solver's own outermost loop.
    status : str
        Solver status; information, never proof.
    """

    solver: str
    seconds: float = 0.0
    iterations: int = 0
    status: str = "closed form"


@dataclass(frozen=True, eq=False)
class Solution(Record):
    """Candidate of a solver, in floats: a randomizer, and a dual that bounds its distance from the optimum.

    Attributes
    ----------
    problem : Problem
    randomizer : Randomizer
    dual : Dual or None
        Without one only privacy can be certified.
    stats : Stats
    """

    problem: Problem
    randomizer: Randomizer
    dual: Dual | None
    stats: Stats

    def __post_init__(self) -> None:
        """Refuse an answer to another question."""
        if not np.array_equal(self.problem.labels, self.randomizer.labels):
            raise InvalidInput("the randomizer's labels are not those of the problem")
        if self.dual is not None and self.dual.alpha.size != self.problem.k:
            raise InvalidInput("the dual does not have one entry per label of the problem")

    @property
    def value(self) -> float:
        """Objective at the randomizer, in floats."""
        return self.problem.value(self.randomizer)

    def summary(self, rows: int = 10_000) -> Summary:
        """Return numbers of this answer in plain words, in floats: :class:`~optrand.model.summary.Summary`.

        Parameters
        ----------
        rows : int
            Size of the group whose mean label is estimated.

        Examples
        --------
        >>> import optrand
        >>> from optrand.solvers import design
        >>> print(design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)).summary())
        labels                                3
        outputs                               4
        epsilon                               1
        half mean squared error               1.945447
        standard deviation of a noisy label   1.972535 (label units)
        ... of the mean of 10,000 rows        0.01972535 (label units)
        root mean squared bias                0 (label units)
        """
        design = self.randomizer
        figures = {"biases": design.biases, "variances": design.variances}
        return Summary.of(self.problem, outputs=design.n, value=self.value, rows=rows, **figures)

    def __eq__(self, other: object) -> bool:
        """Equal where problem, randomizer and dual are, however they were found."""
        return isinstance(other, Solution) and (self.problem, self.randomizer, self.dual) == (
            other.problem,
            other.randomizer,
            other.dual,
        )

    def __hash__(self) -> int:
        """Hash of problem and randomizer."""
        return hash((self.problem, self.randomizer))

    def __repr__(self) -> str:
        """One line, without the table."""
        proof = "with" if self.dual is not None else "without"
        return (
            f"<Solution: {self.problem.k} labels, {self.randomizer.n} outputs, epsilon {self.problem.epsilon:g}, "
            f"value {self.value:.7g}, {proof} dual>"
        )

    def _repr_html_(self) -> str:
        """Show the summary as a table, in a notebook."""
        return self.summary()._repr_html_()
