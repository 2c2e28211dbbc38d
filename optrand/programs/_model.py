"""Rows and variables of a linear program, without its solvers and the parts that it is built from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from flint import fmpq
from scipy import sparse

from optrand.base._validation import Floats
from optrand.programs._rows import Rows, Sense, Side


@dataclass(frozen=True)
class Variables:
    """The variables of a program: a table whose rows are distributions, and more variables between 0 and 1.

    Attributes
    ----------
    k, n : int
        Shape of the table, ``(0, 0)`` for a program without one.
    names : tuple of str
        Names of the table's entries row by row, and of the variables behind it.
    """

    k: int
    n: int
    names: tuple[str, ...]

    @property
    def cells(self) -> int:
        """Number of entries of the table."""
        return self.k * self.n


class Model:
    """A linear program: variables, an objective in floats, and named blocks of rows.

    Attributes
    ----------
    variables : Variables
    cost : (variables,) array
        Coefficients of the objective.
    maximize : bool
    blocks : dict of Rows
        By their names, in the order of the rows.
    """

    maximize: bool

    def _begin(self, variables: Variables, cost: Floats) -> None:
        self.variables = variables
        self.cost = cost
        self.blocks = dict[str, Rows]()

    def _append(self, block: Rows) -> None:
        """Add a block. If its name is taken, number it."""
        name, number = block.name, 1
        while name in self.blocks:
            number += 1
            name = f"{block.name} {number}"
        # A new dict, so that rows that are added to a program do not change a copy of it.
        self.blocks = {**self.blocks, name: replace(block, name=name)}

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(block.count for block in self.blocks.values())

    def matrices(self) -> tuple[sparse.csr_array, Floats, Floats]:
        """Return the coefficients of all rows in floats, and the lower and upper limits of the rows."""
        columns, blocks = len(self.variables.names), self.blocks.values()
        limits = [block.limits() for block in blocks]
        matrix = sparse.csr_array(sparse.vstack([block.matrix(columns) for block in blocks]))
        low, high = (np.concatenate(side) for side in zip(*limits, strict=True))
        return matrix, low, high

    def residuals(
        self, point: Sequence[fmpq], names: Iterable[str] | None = None
    ) -> Iterator[tuple[Rows, int, list[tuple[int, fmpq]], fmpq]]:
        """Generate block, number, coefficients and residual of each row at a point, exactly.

        The residual is the left side less the right side, with tightened exponentials. Rows of all blocks by default.
        """
        for name in self.blocks if names is None else names:
            block = self.blocks[name]
            for number, entries, limit in block.exact(Side.TIGHTENED):
                yield block, number, entries, sum((a * point[j] for j, a in entries), fmpq(0)) - limit

    def slacks(self, point: Sequence[fmpq]) -> list[fmpq]:
        """Return how far each row is from its limit at a point, exactly: below 0 if it is broken, 0 for equations."""
        signs = {Sense.LESS: -1, Sense.EQUAL: 0, Sense.GREATER: 1}
        return [signs[block.sense] * residual for block, _, _, residual in self.residuals(point)]

    def row_names(self) -> list[str]:
        """Return the names of all rows, such as ``privacy[0 > 1, v=-1.5]`` or ``mean[2]``."""
        return [block.row_name(i) for block in self.blocks.values() for i in range(block.count)]

    def split_duals(self, duals: Floats) -> dict[str, Floats]:
        """Cut multipliers of all rows into those of each block, in the block's shape."""
        ends = np.cumsum([block.count for block in self.blocks.values()])
        parts = np.split(duals, ends[:-1])
        return {name: part.reshape(self.blocks[name].shape) for name, part in zip(self.blocks, parts, strict=True)}

    def upper(self) -> Floats:
        """Return the variables' upper bounds: infinity for entries of the table, whose rows sum to 1, otherwise 1."""
        bounds = np.ones(len(self.variables.names))
        bounds[: self.variables.cells] = math.inf
        return bounds
