"""Problems, duals and tables of integers as plain JSON values, and back.

Reading goes through the constructors of :class:`~optrand.model.problem.Problem`,
:class:`~optrand.model.solution.Dual` and :class:`~optrand.model.arcs.IntegerArcs`, with all of their checks.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from optrand.base.arithmetic import Integers
from optrand.base.strict_json import Document, fields, integers, number, numbers, positions, rows
from optrand.errors import InvalidFile, InvalidInput
from optrand.model import losses
from optrand.model.arcs import IntegerArcs
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Grid, Interval, Line, OutputSet
from optrand.model.problem import Problem
from optrand.model.solution import Dual

__all__ = ["TABLES", "dual_document", "problem_document", "read_dual", "read_problem", "read_table", "table_document"]

TABLES = ("weights", "arcs")
"""Fields that can hold a table of integers; a file has one of them."""


def problem_document(problem: Problem) -> Document:
    """Problem as plain JSON values.

    Raises
    ------
    InvalidInput
        A loss of the user's own, which a name cannot bring back.

    Examples
    --------
    >>> from optrand.model.problem import unbiased_regression
    >>> document = problem_document(unbiased_regression([0, 1], [0.5, 0.5], 1.0))
    >>> document["loss"], document["bias_penalty"], document["outputs"]
    ({'name': 'squared'}, 'inf', {'kind': 'line'})
    """
    return {
        "labels": problem.labels.tolist(),
        "prior": problem.prior.tolist(),
        "epsilon": problem.epsilon,
        "loss": _loss_document(problem.loss),
        "bias_penalty": "inf" if problem.unbiased else problem.bias_penalty,
        "outputs": _outputs_document(problem.outputs),
    }


def _loss_document(loss: Loss | Tabulated) -> Document:
    if isinstance(loss, Tabulated):
        return {"name": loss.name, "entries": loss.entries.tolist()}
    if losses.by_name.get(loss.name) != loss:
        raise InvalidInput(
            f"the loss {loss.name!r} is not one of optrand.model.losses, so a file cannot name it: use losses.Tabulated"
        )
    return {"name": loss.name}


def _outputs_document(outputs: OutputSet) -> Document:
    if isinstance(outputs, Grid):
        return {"kind": "grid", "values": outputs.values.tolist()}
    if isinstance(outputs, Interval):
        return {"kind": "interval", "low": outputs.low, "high": outputs.high}
    return {"kind": "line"}


def read_problem(document: object) -> Problem:
    """Problem that :func:`problem_document` wrote; :class:`InvalidFile` if it is none."""
    parts = fields(document, "problem", ["labels", "prior", "epsilon", "loss", "bias_penalty", "outputs"])
    penalty = parts["bias_penalty"]
    try:
        outputs = _read_outputs(parts["outputs"])
        return Problem(
            numbers(parts["labels"], "problem.labels"),  # type: ignore[arg-type]
            numbers(parts["prior"], "problem.prior"),  # type: ignore[arg-type]
            number(parts["epsilon"], "problem.epsilon"),
            _read_loss(parts["loss"], outputs),
            math.inf if penalty == "inf" else number(penalty, "problem.bias_penalty"),
            outputs,
        )
    except InvalidInput as error:
        raise InvalidFile(f"the file's problem has no meaning: {error}") from error


def _read_loss(document: object, outputs: OutputSet) -> Loss | Tabulated:
    if isinstance(document, dict) and document.get("name") == "tabulated":
        entries = fields(document, "problem.loss", ["name", "entries"])["entries"]
        width = outputs.values.size if isinstance(outputs, Grid) else 0
        table = rows(entries, "problem.loss.entries", width)
        return Tabulated(
            [numbers(row, f"problem.loss.entries[{y}]") for y, row in enumerate(table)]  # type: ignore[arg-type]
        )
    name = fields(document, "problem.loss", ["name"])["name"]
    if not isinstance(name, str) or name not in losses.by_name:
        known = ", ".join([*losses.by_name, "tabulated"])
        raise InvalidFile(f"problem.loss.name is not a known loss, expected one of {known}")
    return losses.by_name[name]


def _read_outputs(document: object) -> OutputSet:
    where = "problem.outputs"
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "grid":
        grid = numbers(fields(document, where, ["kind", "values"])["values"], f"{where}.values")
        if any(left >= right for left, right in pairwise(grid)):
            raise InvalidFile(f"{where}.values must strictly increase")
        return Grid(grid)  # type: ignore[arg-type]
    if kind == "interval":
        ends = fields(document, where, ["kind", "low", "high"])
        return Interval(number(ends["low"], f"{where}.low"), number(ends["high"], f"{where}.high"))
    if fields(document, where, ["kind"])["kind"] != "line":
        raise InvalidFile(f"{where}.kind is unknown, expected line, interval or grid")
    return Line()


def dual_document(dual: Dual | None) -> Document | None:
    """Dual as plain JSON values, its origin only where it is not 0."""
    if dual is None:
        return None
    origin = {"origin": dual.origin} if dual.origin else {}
    return {"alpha": dual.alpha.tolist(), "beta": dual.beta.tolist(), **origin}


def read_dual(document: object) -> Dual | None:
    """Dual that :func:`dual_document` wrote; :class:`InvalidFile` if it is none."""
    if document is None:
        return None
    moved = isinstance(document, dict) and "origin" in document
    parts = fields(document, "dual", ["alpha", "beta", *(["origin"] if moved else [])])
    origin = number(parts["origin"], "dual.origin") if moved else 0.0
    if moved and not origin:
        raise InvalidFile("dual.origin is 0.0, which is said by leaving it out")
    alpha, beta = (numbers(parts[name], f"dual.{name}") for name in ("alpha", "beta"))
    try:
        return Dual(np.array(alpha), np.array(beta), origin)
    except InvalidInput as error:
        raise InvalidFile(f"the file's dual has no meaning: {error}") from error


def table_document(table: Integers | IntegerArcs) -> Document:
    """Table of integers as the one field of a file that holds it: `weights` row by row, or `arcs` column by column.

    Examples
    --------
    >>> table_document(IntegerArcs(2, [0, 1], [0, 1], [0, 1], [7, 7]))
    {'arcs': {'first': [0, 1], 'last': [0, 1], 'at': [0, 1], 'masses': ['7', '7']}}
    """
    if isinstance(table, IntegerArcs):
        intervals = {"first": table.first.tolist(), "last": table.last.tolist(), "at": table.at.tolist()}
        return {"arcs": {**intervals, "masses": [str(mass) for mass in table.masses.tolist()]}}
    return {"weights": [[str(weight) for weight in row] for row in table.tolist()]}


def read_table(content: Document, k: int, n: int) -> Integers | IntegerArcs:
    """Table that :func:`table_document` wrote, for `k` labels and `n` outputs.

    Raises
    ------
    InvalidFile
        It is none.
    InvalidInput
        Arcs that do not fit together.
    """
    if "arcs" not in content:
        table = rows(content["weights"], "weights", n)
        return np.array([integers(row, f"weights[{y}]") for y, row in enumerate(table)], dtype=object)
    parts = fields(content["arcs"], "arcs", ["first", "last", "at", "masses"])
    first, last, at = (positions(parts[name], f"arcs.{name}") for name in ("first", "last", "at"))
    masses = np.array(integers(parts["masses"], "arcs.masses"), dtype=object)
    return IntegerArcs(k, first, last, at, masses)  # type: ignore[arg-type]
