"""Problems, duals and tables of integers as plain JSON values, and back.

Reading goes through the constructors of :class:`~optrand.model.problem.Problem` and
:class:`~optrand.model.problem.Dual`, with all of their checks.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from optrand.base.strict_json import Document, fields, integer, listed, number, numbers, positions, rows
from optrand.errors import InvalidFile, InvalidInput
from optrand.model import losses
from optrand.model.losses import Loss, Tabulated
from optrand.model.outputs import Grid, Interval, Line, OutputSet
from optrand.model.problem import Dual, Problem
from optrand.model.table import Column, Table

__all__ = [
    "columns_document",
    "dual_document",
    "problem_document",
    "read_columns",
    "read_dual",
    "read_problem",
]


def problem_document(problem: Problem) -> Document:
    """Return the problem as plain JSON values.

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
    """Return the problem that :func:`problem_document` wrote; :class:`InvalidFile` if it is none."""
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
    """Return the dual as plain JSON values, its origin only where it is not 0."""
    if dual is None:
        return None
    origin = {"origin": dual.origin} if dual.origin else {}
    return {"alpha": dual.alpha.tolist(), "beta": dual.beta.tolist(), **origin}


def read_dual(document: object) -> Dual | None:
    """Return the dual that :func:`dual_document` wrote; :class:`InvalidFile` if it is none."""
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


def columns_document(table: Table) -> list[list[list[Any]]]:
    """Return columns of a table: for each output its steps, each a label's index and a height as digits.

    Examples
    --------
    >>> columns_document(Table.of_rows([0, 1], [0, 1], [[3, 1], [1, 3]]))
    [[[0, '3'], [1, '-2']], [[0, '1'], [1, '2']]]
    """
    return [[[y, str(height)] for y, height in column] for column in table.columns]


def read_columns(document: object) -> tuple[Column, ...]:
    """Return columns that :func:`columns_document` wrote.

    Raises
    ------
    InvalidFile
        They are no lists of pairs of an index and a whole number.
    """
    columns = []
    for at, steps in enumerate(listed(document, "columns")):
        pairs = rows(steps, f"columns[{at}]", 2)
        places = positions([y for y, _ in pairs], f"columns[{at}]")
        columns.append(tuple(zip(places, (_height(height, at) for _, height in pairs), strict=True)))
    return tuple(columns)


def _height(digits: object, at: int) -> int:
    """Return the integer of at most 4,000 digits, with a minus sign if it is negative."""
    if isinstance(digits, str) and digits[:1] == "-":
        return -integer(digits[1:], f"columns[{at}]")
    return integer(digits, f"columns[{at}]")
