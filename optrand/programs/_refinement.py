"""Iterative refinement: the answer of a linear program beyond the digits of its backend.

A backend keeps rows and reduced costs to some 1e-10 and no better, which is much where the optimum is 1e-4, or where
each of fifty labels may differ from the next by a factor. A step solves the program for the correction of the answer,
with all that is left of rows and reduced costs scaled up to ordinary numbers, so that the backend's errors weigh a
billionth in the sum (Gleixner, Steffy and Wolter, INFORMS Journal on Computing 28, 2016, Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import fmpq
from scipy import sparse

from optrand.base._validation import Floats
from optrand.programs._backends import Highs, highs_model, row_scales
from optrand.programs._model import Model
from optrand.programs._rows import rational


def refine(
    program: Model, point: Sequence[fmpq], slacks: Sequence[fmpq], multipliers: Floats
) -> tuple[list[fmpq], Floats] | None:
    """Return a point and multipliers with smaller errors, or None if no correction was found.

    Parameters
    ----------
    program : Model
    point : (variables,) sequence of rationals
        Keeps the program's equations exactly.
    slacks : (rows,) sequence of rationals
        Those of the point, as :meth:`~optrand.programs._model.Model.slacks` has them.
    multipliers : (rows,) array
        Derivatives of the optimal value by the right-hand sides.
    """
    rows, low, high = program.matrices()
    # What is left of rows and reduced costs is scaled up by this. A power of two changes no digit.
    magnify = 2.0**30
    scales = row_scales(rows)
    sign = -1.0 if program.maximize else 1.0
    unit = float(np.abs(program.cost).max()) or 1.0
    # Each inequality as an equation with a slack: a point that leaves an active row pays the row's multiplier.
    upward = np.where(low == high, 0.0, np.where(np.isfinite(high), 1.0, -1.0))
    matrix = sparse.hstack([sparse.diags_array(scales) @ rows, sparse.diags_array(upward)])
    nearest = np.array([float(x) for x in point])
    distances = scales * np.array([float(slack) for slack in slacks])
    reduced = sign * np.concatenate((program.cost - rows.T @ multipliers, -upward * multipliers / scales)) / unit
    nothing = np.zeros(program.rows)
    # A slack below 0 has a lower bound above 0: the correction has to make up for it.
    model = highs_model(
        sparse.csr_array(matrix),
        nothing,
        nothing,
        cost=magnify * reduced,
        lower=-magnify * np.concatenate((nearest, distances)),
        upper=np.concatenate((magnify * (program.upper() - nearest), np.full(program.rows, np.inf))),
    )
    # Numbers that were scaled up so far make the simplex method fail, which would also take the answer to a vertex.
    model.setOptionValue("run_crossover", "off")
    result = Highs("ipm").run_model(model)
    if not result.x.size or not result.multipliers.size:
        return None
    steps = result.x[: nearest.size].tolist()
    refined = [max(fmpq(0), x + rational(step) / int(magnify)) for x, step in zip(point, steps, strict=True)]
    return refined, multipliers + sign * unit / magnify * scales * result.multipliers
