"""From a backend's floats to a point in rationals that keeps every row of its program.

1. Read the floats as multiples of a small power of two, negative ones as 0. Variables that rows force to 0 are 0.
2. Solve the equations exactly: one variable per equation takes the correction, chosen among large entries by a QR
   factorisation with column pivoting, so that the corrections are small and signs hold.
3. Mix with a strictly feasible point, treated in the same way, just enough that every inequality holds.

The strictly feasible point is the answer to one more linear program, which maximises the least slack. If its optimum is
below 0 its multipliers prove that the program has no feasible point at all.

If the proven gap is still too large, the answer is refined (:func:`refine`) and read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray
from scipy import linalg, sparse

from optrand.base._validation import Floats
from optrand.errors import Infeasible, NotCertified
from optrand.programs._backends import Backend, Form, Highs, highs_model, row_scales
from optrand.programs._certificate import Answer, Status, bound
from optrand.programs._rows import Model, Sense, rational

Point = list[fmpq]


def exact_points(answer: Answer, backend: Backend | None = None) -> Iterator[tuple[Point, Floats]]:
    """Yield points in rationals near a backend's answer that keep every row and sign, each with its multipliers.

    The first is the answer as it is, each further one a refinement of the one before.

    Raises
    ------
    Infeasible
        The program is proven to have no feasible point.
    NotCertified
        No such point was found: the backend has no answer, or nothing is strictly feasible.
    """
    program, multipliers = answer.program, answer.multipliers
    # With some ten thousand variables the interior point method finds a point of least violation in a quarter of the
    # time of HiGHS's default, the simplex method.
    engine = Highs("ipm") if backend is None or backend == Highs() else backend
    if not answer.point.size or answer.status is Status.INFEASIBLE:
        _prove_infeasible(program, engine)
        raise NotCertified(
            f"{answer.backend} has no answer (its status is {answer.message!r}), and no proof that none exists: pass "
            "another backend, or use less extreme numbers"
        )
    forced = find_forced_zeros(program)
    inside: tuple[Point, Point] | None = None
    point = _solve_equations(program, [rational(x) for x in answer.point.tolist()], forced)
    # Each refinement has a billionth of the error before it, down to that of floats.
    refinements = 3
    for _ in range(1 + refinements):
        slacks = _list_slacks(program, point)
        if min(slacks) >= 0:
            yield point, multipliers
        else:
            # One more linear program, solved once and only if the point needs it.
            inside = inside or _find_inside(program, forced, engine)
            yield _mix(point, slacks, *inside), multipliers
        refined = refine(program, point, slacks[-program.rows :], multipliers)
        if refined is None:
            return
        point, multipliers = _solve_equations(program, refined[0], forced), refined[1]


def find_forced_zeros(program: Model) -> NDArray[np.bool_]:
    """Return the variables that rows force to 0, such as the excesses of an (epsilon, 0)-private table.

    They are those of rows that bound a sum with positive coefficients by 0. Without them other rows may be such a sum:
    an output that a private table never gives for one label is never given for any other.

    Examples
    --------
    >>> from optrand.programs import lp1
    >>> program = lp1([0.5, 0.5], 1.0).add("no output 1 for label 0", [[0, 1], [0, 0]], "<=", 0)
    >>> find_forced_zeros(program).tolist()
    [False, True, False, True]
    """
    rows, low, high = program.matrices()
    # Sums of at most 0. Those of at least 0 are negated.
    sums = sparse.csr_array(sparse.vstack([rows[high == 0], -rows[low == 0]]))
    forced = np.zeros(rows.shape[1], dtype=bool)
    while True:
        # A sum without a negative coefficient has variables of 0 alone. Without these, others may be such sums.
        left = sums @ sparse.diags_array(1.0 - forced)
        positive = left[(left < 0).sum(axis=1) == 0]
        found = forced | ((positive > 0).sum(axis=0) > 0)
        if np.array_equal(found, forced):
            return forced
        forced = found


def _find_inside(program: Model, forced: NDArray[np.bool_], engine: Backend) -> tuple[Point, Point]:
    """Find a point with slack in every row that keeps the equations exactly. Return it with its slacks."""
    inner, violation, _ = _find_interior(program, forced, engine)
    if violation > 0:
        _prove_infeasible(program, engine)
    point = _solve_equations(program, [rational(x) for x in inner.tolist()], forced)
    return point, _list_slacks(program, point)


def _prove_infeasible(program: Model, engine: Backend) -> None:
    """Raise Infeasible if the multipliers of the least violation prove that no point is feasible."""
    # Multipliers of rows prove nothing about the program if variables are held at 0 beside its rows.
    _, violation, multipliers = _find_interior(program, np.zeros(program.variables, dtype=bool), engine)
    margin = bound(program, multipliers, without_cost=True)
    if violation > 0 and margin > 0:
        raise Infeasible(
            f"no randomizer keeps all rows of the program, proven by multipliers with a margin of {float(margin):.3g}: "
            f"the rows are {', '.join(program.blocks)}"
        )


def _find_interior(program: Model, forced: NDArray[np.bool_], backend: Backend) -> tuple[Floats, float, Floats]:
    """Find the point with the largest least slack. Return it with its largest violation and the multipliers of rows.

    Violations count as negative slack. Variables that are forced to 0, and rows of such variables alone, have no slack
    that counts.
    """
    rows, low, high = program.matrices()
    variables, count = program.variables, program.rows
    # Slack counts in units of what a variable can be at all: excesses that sum to at most 1e-10 have no slack beside
    # that of probabilities.
    sizes = _variable_sizes(rows, high)
    rows = sparse.csr_array(rows @ sparse.diags_array(sizes))
    scale = row_scales(rows)
    scaled, low, high = sparse.diags_array(scale) @ rows, low * scale, high * scale
    # Variables: the point, the least slack t from 0 to 1, and the largest violation s of at least 0.
    up, down = np.isfinite(high), np.isfinite(low)
    slackened = (low != high) & (abs(scaled) @ (1.0 - forced) > 0)
    one, column, ones, none = (
        sparse.csr_array(entries[:, np.newaxis])
        for entries in (slackened.astype(float), 1.0 - forced, np.ones(count), np.zeros(variables))
    )
    parts = [
        sparse.csr_array(sparse.hstack([scaled, one, -ones]))[up],
        sparse.csr_array(sparse.hstack([scaled, -one, ones]))[down],
        sparse.hstack([sparse.eye_array(variables), -column, none]),
        sparse.csr_array(sparse.hstack([sparse.diags_array(sizes), column, none]))[program.cells :],
    ]
    infinite = [np.full(part.shape[0], np.inf) for part in parts]
    form = Form(
        # A unit of violation costs a thousand times the gain of a unit of slack.
        np.concatenate((np.zeros(variables), [-1.0, 1e3])),
        sparse.csr_array(sparse.vstack(parts)),
        np.concatenate((-infinite[0], low[down], np.zeros(variables), -infinite[3])),
        np.concatenate((high[up], infinite[1], infinite[2], np.ones(infinite[3].size))),
        np.concatenate((np.where(forced, 0.0, np.inf), [1.0, np.inf])),
    )
    result = backend.run(form)
    if not result.x.size:
        raise NotCertified(
            f"{backend.name} found no point of least violation (its status is {result.message!r}): pass another "
            "backend, or use less extreme numbers"
        )
    # An equation is in both groups of rows, and its two multipliers add up.
    found = np.zeros(count)
    found[up] += result.multipliers[: up.sum()]
    found[down] += result.multipliers[up.sum() : up.sum() + down.sum()]
    multipliers = (-1.0 if program.maximize else 1.0) * found * scale
    return sizes * result.x[:variables], float(result.x[variables + 1]), multipliers


def _variable_sizes(rows: sparse.csr_array, high: Floats) -> Floats:
    """Return for each variable a power of two near the largest value that rows of positive coefficients leave it."""
    bounding = ((rows < 0).sum(axis=1) == 0) & (high > 0) & np.isfinite(high)
    # The largest coefficient over the limit of its row.
    shares = sparse.csr_array(sparse.diags_array(1 / np.maximum(high[bounding], 1e-300)) @ rows[bounding])
    most = np.clip(shares.max(axis=0).toarray().ravel(), 1.0, 1e300) if bounding.any() else np.ones(rows.shape[1])
    sizes: Floats = np.exp2(-np.round(np.log2(most)))
    return sizes


def _solve_equations(program: Model, near: Sequence[fmpq], forced: NDArray[np.bool_]) -> Point:
    """Return rationals near some numbers, 0 for variables that are forced to it, that keep all equations exactly."""
    # An entry is off by 1e-21 at most before the equations are solved.
    scale = 1 << 70
    point = [
        fmpq(0) if zero else max(fmpq(0), fmpq(round(x * scale), scale)) for x, zero in zip(near, forced, strict=True)
    ]
    floats = np.array([float(x) for x in point])
    blocks = [block for block in program.blocks.values() if block.sense is Sense.EQUAL]
    matrix = sparse.csr_array(sparse.vstack([block.matrix(program.variables) for block in blocks]))
    # The rank does not depend on the units of labels and outputs.
    rows = row_scales(matrix)[:, np.newaxis] * matrix.toarray()
    # Entries near 0 come last, since a correction may make them negative. Beyond 1e-3 size does not matter.
    weights = np.where(forced, 0.0, np.minimum(floats, 1e-3) + 1e-12)
    # Pivoting prefers columns that are large after weighting by the entry that would take a correction.
    factor, order = linalg.qr(rows * weights, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(factor)) > 1e-12 * abs(factor[0, 0])).sum())
    chosen = order[:rank].tolist()
    equations = [(dict(entries), limit) for block in blocks for _, entries, limit in block.exact(relaxed=False)]
    system = fmpq_mat(len(equations), rank + 1)
    for i, (entries, limit) in enumerate(equations):
        for column, j in enumerate(chosen):
            system[i, column] = entries.get(j, 0)
        system[i, rank] = limit - sum(a * point[j] for j, a in entries.items())
    reduced, pivots = system.rref()
    # Every column but the last has a pivot, unless no correction keeps all equations.
    if pivots != rank or reduced[rank - 1, rank - 1] == 0:
        raise NotCertified(
            "equations of the program contradict each other when they are solved exactly: subtract a constant from "
            "labels and outputs that are far from 0, and leave out rows '==' that follow from others"
        )
    for column, j in enumerate(chosen):
        point[j] += reduced[column, rank]
    return point


def _list_slacks(program: Model, point: Point) -> Point:
    """Return the slacks of signs, of upper ends and of rows."""
    return [*point, *(1 - x for x in point[program.cells :]), *(slack for *_, slack in program.slacks(point))]


def _mix(near: Point, slacks: Point, inside: Point, inner_slacks: Point) -> Point:
    """Return the point nearest to the first, on the segment to the inner one, that has no negative slack."""
    least = fmpq(0)
    for outer, inner in zip(slacks, inner_slacks, strict=True):
        if inner < 0 or (outer < 0 and inner == 0):
            raise NotCertified(
                "no point of the program keeps every row strictly, so rounding cannot be repaired: widen the outputs "
                "or relax a row a little, and subtract a constant from labels and outputs that are far from 0"
            )
        if outer < 0:
            # Slacks are linear on the segment: this one is 0 at that share of it.
            least = max(least, -outer / (inner - outer))
    # A few digits keep the integers of the table short.
    digits = 1 << (int(least.q).bit_length() - int(least.p).bit_length() + 12)
    share = min(fmpq(1), fmpq((least * digits).ceil(), digits))
    return [x if x == y else x + share * (y - x) for x, y in zip(near, inside, strict=True)]


def refine(
    program: Model, point: Sequence[fmpq], slacks: Sequence[fmpq], multipliers: Floats
) -> tuple[list[fmpq], Floats] | None:
    """Return a point and multipliers with smaller errors, or None if no correction was found.

    A backend keeps rows and reduced costs to some 1e-10 and no better, too little if the optimum is 1e-4, or
    if each of fifty labels may differ from the next by a factor. A step of iterative refinement solves the program
    for the correction of the answer, with residuals of rows and reduced costs scaled up to ordinary numbers, so
    that the backend's errors weigh a billionth in the sum (Gleixner, Steffy and Wolter, INFORMS Journal on Computing
    28, 2016, Algorithm 1).

    The point keeps the program's equations exactly. `slacks` are those of its rows, and multipliers derivatives of the
    optimal value by the right-hand sides.
    """
    rows, low, high = program.matrices()
    # Residuals of rows and reduced costs are scaled up by this. A power of two changes no digit.
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
        magnify * reduced,
        np.concatenate((magnify * (program.upper() - nearest), np.full(program.rows, np.inf))),
        lower=-magnify * np.concatenate((nearest, distances)),
    )
    # Numbers that were scaled up so far make the simplex method fail, which would also take the answer to a vertex.
    model.setOptionValue("run_crossover", "off")
    result = Highs("ipm").run_model(model)
    if not result.x.size or not result.multipliers.size:
        return None
    steps = result.x[: nearest.size].tolist()
    refined = [max(fmpq(0), x + rational(step) / int(magnify)) for x, step in zip(point, steps, strict=True)]
    return refined, multipliers + sign * unit / magnify * scales * result.multipliers
