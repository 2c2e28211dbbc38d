r"""Tabulation: from a randomizer in floats to an exact mechanism with integer masses of staircase columns.

Round the masses of the staircase columns :math:`(S_j, v_j, c_j)` of the table
(:func:`optrand.model.staircase.decompose`) to integers :math:`C_j`, and replace :math:`e^\epsilon` by a rational
:math:`R = 1 + q/d \leq e^\epsilon`:

.. math:: W_{y i} = \sum_{j : v_j = v_i} C_j \, (d + q\, [y \in S_j]).

This is private whatever the integers are, and normalised once every label is *covered* equally
(``docs/mathematics.md``, Proposition 13): rounding leaves labels short by a few units of 2\ :sup:`-100`, for which
singletons :math:`\{y\}` make up. Exact residuals of the means move the outputs, or on a grid refine the masses before
they are rounded; a share of two outputs takes out the last bits of bias (:mod:`optrand.mechanism.completion`).

Arcs are never written out as a table: :mod:`optrand.mechanism.flow_tabulation`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import overload

import numpy as np

from optrand.base.arithmetic import Integers, privacy_ratio
from optrand.base.validation import Floats
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.completion import Completion
from optrand.mechanism.flow_tabulation import tabulated_flow
from optrand.mechanism.mechanism import Mechanism
from optrand.model.exact_columns import deviations
from optrand.model.feasibility import movable_outputs, moved_outputs
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution
from optrand.model.staircase import Staircase, decompose, merged, rounding_noise
from optrand.model.table import Table

__all__ = ["tabulate"]

BITS = 100
"""Masses are integers that sum to about ``2**BITS``."""

TOLERANCE = 1e-6
"""Tolerance: largest probability mass that a row may need to become private."""


@overload
def tabulate(subject: Solution, /) -> Mechanism: ...
@overload
def tabulate(subject: Problem, randomizer: Randomizer, /, dual: Dual | None = ...) -> Mechanism: ...
def tabulate(
    subject: Solution | Problem, randomizer: Randomizer | None = None, /, dual: Dual | None = None
) -> Mechanism:
    """Exact mechanism nearest to a randomizer: private, normalised and, if the problem is unbiased, unbiased exactly.

    Parameters
    ----------
    subject : Solution or Problem
        A solution brings its randomizer and dual; a problem needs a randomizer beside it.
    randomizer : Randomizer
        Any design whose privacy is broken by rounding at most.
    dual : Dual, optional
        Kept in the mechanism, so that its optimality can be proven again.

    Returns
    -------
    Mechanism
        With :attr:`~optrand.mechanism.mechanism.Mechanism.arcs` if the randomizer has arcs.

    Raises
    ------
    NotCertified
        More than rounding keeps the table from being private, or the allowed outputs leave no room to take out the
        bias.

    Notes
    -----
    Cost ``O(k n)`` integer operations, and for unbiased problems a least-squares problem of ``k`` by ``n`` floats. Of
    arcs ``O(k + n)`` integers, and sparse systems of that size.

    Examples
    --------
    >>> import optrand
    >>> from optrand.solvers import design
    >>> mechanism = tabulate(design(optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)))
    >>> proof = optrand.certify(mechanism)
    >>> proof.epsilon <= 1.0, proof.bias, proof.gap < 1e-9
    (True, 0.0, True)
    """
    if isinstance(subject, Solution):
        problem, randomizer, dual = subject.problem, subject.randomizer, subject.dual
    elif not isinstance(subject, Problem):
        raise InvalidInput(
            f"tabulate needs a solution, or a problem and a randomizer, not a {type(subject).__name__}: "
            "tabulate(design(problem))"
        )
    elif randomizer is None:
        raise InvalidInput("tabulate(problem, randomizer) needs a randomizer beside the problem")
    else:
        problem = subject
    if not np.array_equal(problem.labels, randomizer.labels):
        raise InvalidInput("the randomizer's labels are not those of the problem")
    if randomizer.arcs is not None:
        columns = tabulated_flow(problem.within(randomizer.epsilon), randomizer.arcs)
        return Mechanism(problem, Table.of_arcs(problem.labels, *columns), dual)
    _check_private(problem, randomizer)
    arcs, ratio = _integers(problem, randomizer), privacy_ratio(problem.epsilon)
    if not problem.unbiased:
        outputs, weights = _table(arcs, ratio)
    elif isinstance(problem.outputs, Grid):
        outputs, weights = _completed(problem, *_table(_refined(problem, arcs, ratio), ratio), ratio)
    else:
        outputs, weights = _completed(problem, *_unbiased_outputs(problem, arcs, ratio), ratio)
    return Mechanism(problem, Table.of_rows(problem.labels, outputs, weights), dual)


def _check_private(problem: Problem, randomizer: Randomizer) -> None:
    matrix = randomizer.matrix
    lifted = np.maximum(matrix.max(axis=0) * math.exp(-problem.epsilon) - matrix, 0.0)
    needed = float(lifted.sum(axis=1).max())
    if needed > TOLERANCE or np.abs(matrix.sum(axis=1) - 1).max() > TOLERANCE:
        raise NotCertified(
            f"the table is not {problem.epsilon:g}-DP: a row would have to gain {needed:.3g} of probability, and "
            f"rounding accounts for {TOLERANCE:g} at most; optrand.audit(matrix, epsilon) tells where"
        )


def _integers(problem: Problem, randomizer: Randomizer) -> Staircase:
    """Staircase decomposition with integer masses; level sets that only rounding tells apart become one."""
    found = decompose(randomizer, math.exp(problem.epsilon), negligible=rounding_noise(problem.epsilon))
    unit = Fraction(2**BITS) / sum(map(Fraction, found.masses.tolist()), Fraction(0))
    return replace(found, masses=np.array([round(Fraction(c) * unit) for c in found.masses.tolist()], dtype=object))


def _table(arcs: Staircase, ratio: Fraction) -> tuple[Floats, Integers]:
    """Distinct outputs, increasing, and integer weights whose rows have one total; unused outputs are left out."""
    coverage = arcs.coverage
    return _used(*arcs.covered(coverage < coverage.max()).table(ratio.numerator, ratio.denominator))


def _used(outputs: Floats, weights: Integers) -> tuple[Floats, Integers]:
    used = weights.max(axis=0) > 0
    return outputs[used], weights[:, used]


def _refined(problem: Problem, arcs: Staircase, ratio: Fraction, rounds: int = 12) -> Staircase:
    """Masses changed, each by a share of itself, and free outputs moved, until coverage and means are right.

    Residuals are exact, changes the least in floats. On a grid each round gains about ten digits, down to the integer;
    where outputs move, down to their rounding.
    """
    best, least = arcs, math.inf
    for _ in range(rounds):
        width = float(np.abs(arcs.outputs - problem.labels[:, np.newaxis]).max()) or 1.0
        columns, coverage = arcs.columns(ratio.numerator, ratio.denominator), arcs.coverage
        total, most = int(columns[0].sum()), max(1, int(coverage.max()))
        missing = ((most - coverage) / most).astype(np.float64)
        residual = np.concatenate((missing, -_exact_biases(problem, arcs.outputs, columns) / width))
        size = float(np.abs(residual).max())
        if not size < least / 2:
            break
        best, least = arcs, size
        free = np.flatnonzero(movable_outputs(problem, arcs.outputs) & (not isinstance(problem.outputs, Grid)))
        cover = (np.where(arcs.members, arcs.masses, 0) / most).astype(np.float64)
        table = (columns / total).astype(np.float64)
        pull = table * (arcs.outputs - problem.labels[:, np.newaxis]) / width
        nothing = np.zeros((problem.k, free.size))
        system = np.block(
            [[cover, -np.ones((problem.k, 1)), nothing], [pull, np.zeros((problem.k, 1)), table[:, free]]]
        )
        change = np.linalg.lstsq(system, residual, rcond=1e-14)[0]
        shares = np.clip(change[: arcs.masses.size], -0.5, 1.0).tolist()
        masses = [c + round(Fraction(x) * c) for c, x in zip(arcs.masses.tolist(), shares, strict=True)]
        outputs = arcs.outputs.copy()
        outputs[free] += width * change[arcs.masses.size + 1 :]
        outputs = np.clip(outputs, problem.outputs.low, problem.outputs.high)
        arcs = replace(arcs, masses=np.array(masses, dtype=object), outputs=outputs)
    return best


def _unbiased_outputs(problem: Problem, arcs: Staircase, ratio: Fraction) -> tuple[Floats, Integers]:
    """Outputs moved until the exact means are right to a rounding; where that cannot be, masses change too."""
    outputs, weights = _table(arcs, ratio)
    table = (weights / weights[0].sum()).astype(np.float64)
    spread = float(np.ptp(problem.labels)) or 1.0
    best, least = outputs, math.inf
    for _ in range(6):
        biases = _exact_biases(problem, outputs, weights)
        size = float(np.abs(biases).max())
        if not size < least:
            break
        best, least = outputs, size
        outputs = moved_outputs(problem, table, outputs, -biases, movable_outputs(problem, outputs))
    if least > 1e-13 * spread and not movable_outputs(problem, best).all():
        return _table(_refined(problem, arcs, ratio), ratio)
    return _used(*merged(best, weights))


def _completed(problem: Problem, outputs: Floats, weights: Integers, ratio: Fraction) -> tuple[Floats, Integers]:
    """Table with means that are right exactly, by a share of two outputs (:mod:`optrand.mechanism.completion`)."""
    biases = deviations(weights, problem.labels, outputs)
    if not any(biases):
        return outputs, weights
    found = Completion.of_biases(problem, biases, ratio)
    if found is None:
        raise NotCertified(
            f"no mechanism near this table is unbiased: its largest bias is {float(max(map(abs, biases))):.3g}, and "
            f"the allowed outputs, from {problem.outputs.low:g} to {problem.outputs.high:g}, leave no room to take it "
            "out; let them reach a little further"
        )
    kept = found.kept / int(weights[0].sum())
    unit = math.lcm(kept.denominator, *(chance.denominator for chance in [*found.at_low, *found.at_high]))
    at_ends = [[int(unit * chance) for chance in chances] for chances in (found.at_low, found.at_high)]
    columns = np.hstack((weights * int(unit * kept), np.array(at_ends, dtype=object).T))
    return _used(*merged(np.append(outputs, [found.low, found.high]), columns))


def _exact_biases(problem: Problem, outputs: Floats, weights: Integers) -> Floats:
    """``E[M(y)] - y`` from exact sums, each rounded once; rows may have different totals."""
    return np.array([float(bias) for bias in deviations(weights, problem.labels, outputs)])
