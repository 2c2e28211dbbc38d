r"""Most expected utility under an epsilon and a channel capacity: one cone program, and a bound by its multipliers.

The capacity of a channel is the least, over distributions `w` of the outputs, of the largest divergence of a row from
`w`. So a table keeps within `c` bits if and only if some `w` has :math:`\sum_i M[y, i] \log_2 (M[y, i] / w_i) \leq c`
for every row: convex in table and `w` together.

For any inputs `r` and numbers with :math:`\sum_y r_y 2^{b_{y i}} \leq 1` at each output,

.. math:: c \geq I(r; M) \geq \sum_{y i} r_y M[y, i] \, b_{y i}

holds of every table within the capacity. With a multiplier this constraint turns the utility into another one, whose
certified optimum over private randomizers bounds the optimum under both (``docs/mathematics.md``, Channels of limited
capacity). Its best `r`, multiplier and `b` are read off the solution of the program; the bound holds for any others.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import float_above
from optrand.base.validation import Floats
from optrand.errors import SolverFailed
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid
from optrand.model.problem import Problem, regression
from optrand.solvers import solve
from optrand.states.channel import GAP, balance

__all__ = ["bound_utility", "solve_limited"]

MARGIN = 1e-7
"""Share of the capacity that is left unused, as a margin for rounding to an exact mechanism."""

TOLERANCE = 1e-11
"""Relative gap and feasibility at which the engine stops. If it cannot reach them, it returns its last point."""

SLACK = 1e-12
"""Bits by which logarithms are lowered, so that the constraint holds in spite of their rounding."""

NOISE = 2.0**-48
"""Share by which sums of products are raised, so that their rounding loosens the bound and never breaks it."""

TINY = 1e-30
"""Least entry of a table whose logarithms are taken."""


def solve_limited(problem: Problem, capacity: float) -> tuple[Floats, Floats, float]:
    """Find a table of nearly maximal utility within both limits, inputs that attain its capacity, and a bound.

    The bound is certified and holds for the utility of all tables within both limits.

    Parameters
    ----------
    problem : Problem
        On a grid, its loss minus the utility.
    capacity : float
        Bits, above 0.

    Raises
    ------
    SolverFailed
        The engine has no answer.
    """
    worth = _worth(problem)
    raw, inputs, multiplier = _solve_cones(worth, math.exp(problem.epsilon), capacity)
    private = _make_private(raw, math.exp(problem.epsilon))
    constant = np.zeros_like(private)
    constant[:, int(np.argmax(worth.sum(axis=0)))] = 1.0
    # The information of a mixture with a constant channel is at most its share of the table.
    bits = balance(private, GAP * min(1.0, capacity), inputs=inputs).upper
    inside = constant + min(1.0, capacity * (1 - MARGIN) / bits) * (private - constant)
    # The constraint that touches the information at the raw table. For unused outputs, the ratios of the small entries
    # left by the interior point are as good as any.
    cut = inputs[:, np.newaxis] * (np.log2(raw / (inputs @ raw)) - SLACK)
    return inside, inputs, bound_utility(problem, capacity, cut, multiplier)


def bound_utility(problem: Problem, capacity: float, cut: Floats, multiplier: float) -> float:
    r"""Bound the utility of every private randomizer within the capacity from above, by any multiplier.

    Parameters
    ----------
    problem : Problem
    capacity : float
    cut : (k, n) array
        Numbers ``r_y b_yi`` with :math:`\sum_y r_y 2^{b_{y i}} \leq 1` at each output.
    multiplier : float
        At least 0.
    """
    worth, k = _worth(problem), problem.k
    noise = NOISE * (np.abs(worth) + multiplier * np.abs(cut))
    loss = Tabulated(-k * (worth - multiplier * cut + noise))
    outputs = Grid(_outputs(problem))
    proof = solve(
        regression(problem.labels, np.full(k, 1 / k), problem.epsilon, loss=loss, outputs=outputs)
    ).certificate
    # Inputs sum to 1 up to rounding.
    allowed = Fraction(capacity) * (1 + Fraction(NOISE))
    return float_above(Fraction(multiplier) * allowed - Fraction(proof.lower))


def _outputs(problem: Problem) -> Floats:
    return problem.outputs.values if isinstance(problem.outputs, Grid) else problem.labels


def _worth(problem: Problem) -> Floats:
    """Return the utility of each entry of a table, weighted by the prior, shape ``(k, n)``."""
    worth: Floats = -problem.prior[:, np.newaxis] * problem.loss_table(_outputs(problem))
    return worth


def _solve_cones(worth: Floats, ratio: float, capacity: float) -> tuple[Floats, Floats, float]:
    """Solve the cone program. Return a table with entries above 0, inputs, and the price of a bit."""
    import cvxpy

    scale = float(np.abs(worth).max()) or 1.0
    table = cvxpy.Variable(worth.shape)
    floor, share = cvxpy.Variable((1, worth.shape[1])), cvxpy.Variable((1, worth.shape[1]))
    each = np.ones((worth.shape[0], 1))
    limit = cvxpy.sum(cvxpy.rel_entr(table, each @ share), axis=1) <= capacity * math.log(2)
    private = [table >= each @ floor, table <= ratio * each @ floor, cvxpy.sum(table, axis=1) == 1]
    utility = cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(worth / scale, table)))
    program = cvxpy.Problem(utility, [limit, *private, cvxpy.sum(share) == 1])
    options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE)
    with warnings.catch_warnings():
        # An answer short of the tolerance is judged by the certificate.
        warnings.simplefilter("ignore")
        try:
            program.solve(solver="CLARABEL", max_iter=300, **options)
        except cvxpy.error.SolverError as error:
            raise SolverFailed(f"Clarabel has no answer: {error}") from error
    if table.value is None or limit.dual_value is None:
        raise SolverFailed(f"Clarabel ended with the status {program.status} and no answer to read")
    prices = np.maximum(limit.dual_value, 0.0)
    inputs = prices / prices.sum() if prices.sum() > 0 else np.full(prices.size, 1 / prices.size)
    return np.maximum(table.value, TINY), inputs, float(prices.sum()) * scale * math.log(2)


def _make_private(table: Floats, ratio: float) -> Floats:
    """Lift entries to the largest of their column over the ratio, and normalise rows."""
    used = np.where(table.max(axis=0) > 1e-9, np.maximum(table, 0.0), 0.0)
    lifted = np.maximum(used, used.max(axis=0) / ratio)
    private: Floats = lifted / lifted.sum(axis=1, keepdims=True)
    return private
