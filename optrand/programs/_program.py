r"""Linear programs over the table of a randomizer, in the papers' units, with named rows and variables.

A :class:`Program` chooses ``M[y, o]``, the probability of output ``v_o`` for label ``y``:

.. math:: \min_M \sum_y p_y \sum_o M_{y o} \, g(v_o, y) \quad\text{subject to}\quad \sum_o M_{y o} = 1, \quad M \geq 0,

to notions of privacy and constraints (:mod:`optrand.programs._parts`) and to rows of one's own (:meth:`Program.add`).
:func:`lp1`, :func:`lp2` and :func:`algorithm1` are the programs of the papers, row for row as they are printed.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from optrand import losses
from optrand.base._suggestions import suggest_attributes
from optrand.base._validation import (
    Floats,
    check_epsilon,
    check_flag,
    check_labels,
    check_prior,
    check_values,
    expect,
    rectangular,
    suggest_parameters,
)
from optrand.errors import InvalidInput
from optrand.losses import Loss, Tabulated
from optrand.programs import _backends
from optrand.programs._certificate import Answer, Status
from optrand.programs._parts import Constraint, Privacy, Pure, Unbiased
from optrand.programs._rows import Entry, Model, Rows, Sense

if TYPE_CHECKING:
    import cvxpy
    import highspy


@suggest_attributes(
    {
        "add(name, coefficients, sense, bound)": "add_constraint subject_to",
        "solve().value": "gap objective optimal_value status value",
        "solve().duals": "dual dual_value dual_variables duals",
        "cvxpy()": "to_cvxpy variables",
        "highs()": "A b c to_highs",
        "write(path)": "save to_mps",
    }
)
class Program(Model):
    """A linear program over the table ``M[y, o]`` of a randomizer.

    Parameters
    ----------
    labels : (k,) array
        Increasing numbers.
    prior : (k,) array
        Probabilities of the labels.
    outputs : (n,) array
        Increasing numbers.
    loss : Loss, Tabulated or (k, n) array
        ``g(v_o, y)``, half the squared error by default.
    privacy : Privacy or sequence of them
        Notions that must all hold.
    constraints : sequence of Constraint
        Such as ``Unbiased()`` or ``BiasAtMost(0.5)``.
    maximize : bool
        Whether the expected loss is a gain to be maximised.

    Raises
    ------
    InvalidInput
        Invalid arguments, or more than 50 million coefficients. The message names a smaller form.

    Examples
    --------
    The least squared error of two labels at epsilon 1 with outputs 0, 1/2 and 1, and a row of one's own:

    >>> from optrand.programs import Program, Pure
    >>> program = Program([0, 1], [0.5, 0.5], [0, 0.5, 1], privacy=Pure(1.0))
    >>> round(program.solve().value, 6)
    0.125
    >>> _ = program.add("middle", [[0, 1, 0], [0, 0, 0]], "<=", 0.25)
    >>> answer = program.solve()
    >>> (
    ...     round(answer.value, 6),
    ...     round(float(answer.duals["middle"][0]), 6),
    ...     answer.certify().gap < 1e-9,
    ... )
    (0.130069, -0.017607, True)
    """

    def __init__(
        self,
        labels: ArrayLike,
        prior: ArrayLike,
        outputs: ArrayLike,
        *,
        loss: Loss | Tabulated | ArrayLike = losses.squared,
        privacy: Privacy | Sequence[Privacy],
        constraints: Sequence[Constraint] = (),
        maximize: bool = False,
    ) -> None:
        numbers = _check_increasing(check_labels(labels), "labels")
        shares = check_prior(prior, numbers)
        values = _check_increasing(check_values(outputs, "outputs"), "outputs")
        super().__init__(numbers, shares, values, maximize=check_flag(maximize, "maximize"))
        self.privacy: tuple[Privacy, ...] = _check_parts(privacy, Privacy, "privacy", "Pure(1.0)")
        self.constraints: tuple[Constraint, ...] = _check_parts(constraints, Constraint, "constraints", "Unbiased()")
        self.loss = _check_loss(loss, self.labels, self.outputs)
        # About 1.6 GB while the program is built.
        largest, count = 50_000_000, sum(notion.entries(self.k, self.n) for notion in self.privacy)
        if count > largest:
            raise InvalidInput(
                f"the rows of privacy for {self.k:,} labels and {self.n:,} outputs have {count:,} coefficients, some "
                f"{32 * count / 1e9:,.1f} GB, above the limit of {largest:,}: Pure(epsilon, form='floor'), fewer "
                "outputs, or a metric of neighbouring labels need fewer"
            )
        self.variable_names = tuple(f"M[y={y}, {v}]" for y in self.label_names for v in self.output_names)
        cells = np.arange(self.cells)
        self._append(Rows.of("sum", Sense.EQUAL, [(cells // self.n, cells, 1.0, 0.0)], 1.0, self.label_names))
        for constraint in self.constraints:
            self._append(*constraint.rows(self))
        for notion in self.privacy:
            stated = len(self.blocks)
            self._append(*notion.rows(self))
            self.private += tuple(self.blocks)[stated:]
            self.variable_names += notion.extra_names(self)
        cost = (self.prior[:, np.newaxis] * self.loss).ravel()
        self.cost = np.concatenate((cost, np.zeros(self.variables - self.cells)))

    def add(self, name: str, coefficients: ArrayLike, sense: str, bound: ArrayLike) -> Program:
        """Add rows ``sum_{y, o} coefficients[i, y, o] M[y, o]  sense  bound[i]`` to this program, and return it.

        Answers and mechanisms that were found before keep the program without these rows, and so does a
        ``copy.copy(program)`` that was made before.

        Parameters
        ----------
        name : str
            New name of the block, under which its multipliers are found.
        coefficients : (m, k, n) or (k, n) array
            Finite numbers. For one row the first axis may be omitted.
        sense : str
            ``"<="``, ``"=="`` or ``">="``.
        bound : float or (m,) array
            Right-hand sides.

        Raises
        ------
        InvalidInput
            A name that is empty or in use, or parts that do not fit the program.
        """
        k, n = self.k, self.n
        array = rectangular(coefficients, "coefficients", float)
        array = array[np.newaxis] if array.ndim == 2 else array
        if array.ndim != 3 or array.shape[1:] != (k, n) or not array.shape[0]:
            raise InvalidInput(
                f"coefficients have shape {np.shape(coefficients)}, expected (rows, {k}, {n}) or ({k}, {n}): one "
                "number per label and output"
            )
        right = rectangular(bound, "bound", float)
        if right.ndim > 1 or right.size not in (1, array.shape[0]):
            raise InvalidInput(
                f"bound has shape {right.shape} for {array.shape[0]} row(s), expected one number per row"
            )
        if not (np.isfinite(array).all() and np.isfinite(right).all()):
            raise InvalidInput("coefficients and bound must be finite numbers")
        expect(name, str, "the name of the rows", "a text")
        if not name or name in self.blocks:
            raise InvalidInput(f"the name {name!r} of the rows is empty or in use: choose another name")
        expect(sense, str, "sense", "'<=', '==' or '>=', the same for all rows")
        senses = {each.value: each for each in Sense}
        if sense not in senses:
            raise InvalidInput(f"sense is {sense!r}, expected one of {', '.join(map(repr, senses))}")
        rows = np.arange(array.shape[0])
        entries: list[Entry] = [(rows[:, np.newaxis], np.arange(k * n), array.reshape(rows.size, -1), 0.0)]
        self._append(Rows.of(name, senses[sense], entries, right, tuple(map(str, rows.tolist()))))
        self.added = (*self.added, name)
        return self

    def __repr__(self) -> str:
        """Return one line: sizes, and the names of the blocks."""
        aim = "maximise" if self.maximize else "minimise"
        return f"<Program: {aim} over {self.cost.size:,} variables, {self.rows:,} rows: {', '.join(self.blocks)}>"

    def cvxpy(self) -> tuple[cvxpy.Problem, cvxpy.Variable]:
        """Return the program as a problem of cvxpy and its variable, in the papers' units.

        Returns
        -------
        problem : cvxpy.Problem
            One constraint per block, in the order of its `blocks`.
        table : cvxpy.Variable
            Shape ``(k, n)``. For a program without a table: all variables.
        """
        import cvxpy

        table = cvxpy.Variable((self.k, self.n) if self.k else self.variables, nonneg=True)
        # Row by row, as the columns of the blocks are numbered.
        flat = cvxpy.vec(table, order="C") if self.k else table
        if self.k and self.variables > self.cells:
            flat = cvxpy.hstack([flat, cvxpy.Variable(self.variables - self.cells, nonneg=True)])
        constraints = list[Any]()
        for block in self.blocks.values():
            left, (low, high) = block.matrix(self.variables) @ flat, block.limits()
            if block.sense is Sense.LESS:
                constraints.append(left <= high)
            else:
                constraints.append(left == low if block.sense is Sense.EQUAL else left >= low)
        aim = cvxpy.Maximize if self.maximize else cvxpy.Minimize
        return cvxpy.Problem(aim(self.cost @ flat), constraints), table

    def highs(self) -> highspy.Highs:
        """Return the program as a model of HiGHS in the papers' units, with the names of rows and variables."""
        names = self.row_names(), self.variable_names
        model = *self.matrices(), self.cost, self.upper()
        return _backends.highs_model(*model, maximize=self.maximize, names=names)

    def write(self, path: str | Path) -> None:
        """Write the program as a file of other solvers: ``x.mps``, or ``x.lp``.

        Names are changed as the format requires: spaces to underscores in MPS, and brackets to parentheses in LP.

        Raises
        ------
        InvalidInput
            Another ending, or a folder that cannot be written.
        """
        import highspy

        target = Path(path)
        changes: dict[str, dict[int, Any]] = {
            ".mps": str.maketrans(" ", "_"),
            ".lp": str.maketrans({" ": None, "[": "(", "]": ")", "=": "_", ">": "~", "-": "m", "+": "p"}),
        }
        if target.suffix not in changes:
            raise InvalidInput(f"{target.name} ends in {target.suffix!r}, expected .mps or .lp")
        model = self.highs()
        lp = model.getLp()
        lp.row_names_ = [name.translate(changes[target.suffix]) for name in lp.row_names_]
        lp.col_names_ = [name.translate(changes[target.suffix]) for name in lp.col_names_]
        model.passModel(lp)
        refusal = f"{target} could not be written: check that its folder exists and can be written"
        try:
            # HiGHS ends the process if it cannot open an LP file.
            target.open("ab").close()
        except OSError as error:
            raise InvalidInput(refusal) from error
        if model.writeModel(str(target)) == highspy.HighsStatus.kError:
            raise InvalidInput(refusal)

    @suggest_parameters
    def solve(self, backend: str | _backends.Backend = "highs") -> Answer:
        """Return a backend's own answer, unchecked. :meth:`.Answer.certify` proves a bound.

        Parameters
        ----------
        backend : str or Backend
            ``"highs"``, ``"highs-simplex"``, ``"highs-ipm"``, or the name of any installed solver of cvxpy, such
            as ``"CLARABEL"`` or ``"SCIPY"``. For options, a :class:`~optrand.programs.Highs` or a
            :class:`~optrand.programs.Cvxpy`.

        Returns
        -------
        Answer
            Value, table and multipliers in the papers' units. Rows and objective are scaled by powers of two inside.

        Raises
        ------
        InvalidInput
            A backend that is not known or not installed.
        """
        engine = _backends.find(backend)
        rows, low, high = self.matrices()
        # Powers of two change no digit: a solution of the scaled program is one of the original.
        scale = _backends.row_scales(rows)
        unit = float(np.exp2(np.round(np.log2(np.abs(self.cost).max() or 1.0))))
        sign = -1.0 if self.maximize else 1.0
        scaled = sparse.csr_array(sparse.diags_array(scale) @ rows)
        form = _backends.Form(sign * self.cost / unit, scaled, low * scale, high * scale, self.upper())
        start = time.perf_counter()
        result = engine.run(form)
        seconds = time.perf_counter() - start
        # A solver that diverged may return numbers that are not finite, which are no point.
        point = result.x if np.isfinite(result.x).all() else np.zeros(0)
        has_value = point.size and result.status not in (Status.INFEASIBLE, Status.UNBOUNDED)
        value = float(self.cost @ point) if has_value else math.nan
        multipliers = np.zeros(self.rows)
        if result.multipliers.size and np.isfinite(result.multipliers).all():
            # Derivatives of the scaled cost by scaled right-hand sides, and of minus the objective of a maximisation.
            multipliers = sign * result.multipliers * scale * unit
        outcome = engine.name, result.status, result.message
        # A copy, since rows that are added to the program later belong to another question.
        return Answer(copy.copy(self), *outcome, value, point, multipliers, result.iterations, seconds)


def _check_parts(parts: object, kind: type[Any], name: str, example: str) -> tuple[Any, ...]:
    """Return the parts of a program, one or several."""
    given = tuple(parts) if isinstance(parts, Iterable) else (parts,)
    for part in given:
        if not isinstance(part, kind):
            described = f"the class {part.__name__}" if isinstance(part, type) else f"of type {type(part).__name__}"
            raise InvalidInput(f"{name} is {described}, expected an object of optrand.programs, such as {example}")
    return given


def _check_increasing(numbers: Floats, name: str) -> Floats:
    if (np.diff(numbers) <= 0).any():
        raise InvalidInput(f"{name} of a program must strictly increase: sort them, and the prior and loss with them")
    return numbers


def _check_loss(loss: Loss | Tabulated | ArrayLike, labels: Floats, outputs: Floats) -> Floats:
    if not isinstance(loss, Loss | Tabulated):
        loss = Tabulated(rectangular(loss, "loss", float))
    if isinstance(loss, Loss) and loss.positive_outputs and (outputs[0] <= 0 or labels[0] < 0):
        raise InvalidInput(f"{loss.name} needs outputs above 0 and labels of at least 0")
    return loss.table(labels, outputs)


@suggest_parameters
def lp1(prior: ArrayLike, epsilon: float, *, form: str = "pairwise") -> Program:
    r"""Return LP1 of [G21], proof of Theorem 3: the largest probability that the output is the label.

    .. math:: \max_M \sum_y p_y M_{y y} \quad\text{s.t.}\quad M_{y o} \leq e^\epsilon M_{z o}, \quad
              \sum_o M_{y o} = 1, \quad M \geq 0.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the classes ``0 ... K-1``.
    epsilon : float
        In nats.
    form : str
        ``"pairwise"``, as printed, or ``"floor"``. See :class:`~optrand.programs.Pure`.

    Notes
    -----
    The printed form has ``K**2 (K - 1)`` rows of privacy. With 40 classes HiGHS does not finish within a minute, while
    ``form="floor"``, which has the same tables, takes a second.

    Examples
    --------
    >>> answer = lp1([0.5, 0.3, 0.2], 1.0).solve()
    >>> round(answer.value, 6), answer.certify().gap < 1e-9
    (0.584847, True)
    """
    shares = check_prior(prior)
    classes = np.arange(shares.size)
    return Program(classes, shares, classes, loss=np.eye(shares.size), privacy=Pure(epsilon, form=form), maximize=True)


@suggest_parameters
def lp2(prior: ArrayLike, epsilon: float) -> Program:
    r"""Return LP2 of [G21], proof of Theorem 3: a relaxation of LP1 with the diagonal ``q[y] = M[y, y]`` alone.

    .. math:: \max_q \sum_y p_y q_y \quad\text{s.t.}\quad q_y + e^{-\epsilon} \sum_{z \neq y} q_z \leq 1, \quad q \geq
              0.

    The rows imply ``q[y] <= 1`` as well.

    Parameters
    ----------
    prior : (K,) array
        Probabilities of the classes.
    epsilon : float
        In nats.

    Examples
    --------
    >>> program = lp2([0.5, 0.3, 0.2], 1.0)
    >>> program.row_names()[0], round(program.solve().value, 6)
    ('kept[0]', 0.584847)
    """
    shares, budget = check_prior(prior), check_epsilon(epsilon)
    classes = np.arange(shares.size)
    row, column = classes[:, np.newaxis], classes[np.newaxis, :]
    powers = np.where(row == column, 0.0, -budget)
    rows = Rows.of("kept", Sense.LESS, [(row, column, 1.0, powers)], 1.0, tuple(map(str, classes.tolist())))
    program, none = object.__new__(Program), np.zeros(0)
    Model.__init__(program, none, none, none, maximize=True)
    program.privacy, program.constraints = (), ()
    program.variable_names, program.cost = tuple(f"q[y={y}]" for y in classes), shares
    program._append(rows)
    return program


@suggest_parameters
def algorithm1(
    labels: ArrayLike, prior: ArrayLike, epsilon: float, outputs: ArrayLike, *, form: str = "pairwise"
) -> Program:
    r"""Return the program of Algorithm 1 of [B23], ComputeOptUnbiasedRand, for half the squared error.

    .. math:: \min_M \sum_y p_y \sum_o M_{y o} \tfrac12 (v_o - y)^2 \quad\text{s.t.}\quad
              M_{y o} \leq e^\epsilon M_{z o}, \quad \sum_o M_{y o} = 1, \quad \sum_o M_{y o} v_o = y, \quad M \geq 0.

    Parameters
    ----------
    labels, prior : (k,) arrays
        Increasing numbers, and their probabilities.
    epsilon : float
        In nats.
    outputs : (n,) array
        Increasing numbers, such as ``optrand.feasible_output_set(labels, epsilon, n).values`` (Algorithm 2).
    form : str
        ``"pairwise"``, as printed, or ``"floor"``.

    Notes
    -----
    For another loss, other constraints or another notion of privacy use :class:`~optrand.programs.Program`. Outputs
    anywhere on the line need no program: :func:`optrand.unbiased_regression`.

    Examples
    --------
    >>> program = algorithm1([0, 1, 2], [0.5, 0.3, 0.2], 1.0, [-1.5, 0, 1, 2, 3.5])
    >>> program.row_names()[3:5], float(program.cost[0])
    (['mean[0]', 'mean[1]'], 0.5625)
    """
    return Program(labels, prior, outputs, privacy=Pure(epsilon, form=form), constraints=[Unbiased()])
