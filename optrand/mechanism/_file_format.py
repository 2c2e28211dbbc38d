"""Problems, duals and tables of integers as plain JSON values, and back.

Reading builds objects, whose constructors check everything. A value of another form may raise any error. The caller,
:meth:`~optrand.mechanism._mechanism.ExactMechanism.from_bytes`, turns errors into `InvalidFile`. Then it encodes the
object and compares, so that a value of another form is refused even if it could be read.
"""

from __future__ import annotations

import math
from typing import Any

from optrand import losses
from optrand.base._strict_json import Document
from optrand.errors import InvalidInput
from optrand.losses import Loss, Tabulated
from optrand.model._problem import Dual, Grid, Interval, Line, OutputSet, Problem
from optrand.model._table import Column, Table


def problem_document(problem: Problem) -> Document:
    """Return the problem as plain JSON values. Raise `InvalidInput` if its loss is the user's own."""
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
            f"the loss {loss.name!r} is not one of optrand.losses, so a file cannot name it: use losses.Tabulated"
        )
    return {"name": loss.name}


def _outputs_document(outputs: OutputSet) -> Document:
    if isinstance(outputs, Grid):
        return {"kind": "grid", "values": outputs.values.tolist()}
    if isinstance(outputs, Interval):
        return {"kind": "interval", "low": outputs.low, "high": outputs.high}
    return {"kind": "line"}


def read_problem(document: Any) -> Problem:
    """Build the problem that :func:`problem_document` wrote."""
    penalty = document["bias_penalty"]
    return Problem(
        document["labels"],
        document["prior"],
        document["epsilon"],
        _read_loss(document["loss"]),
        math.inf if penalty == "inf" else penalty,
        _read_outputs(document["outputs"]),
    )


def _read_loss(document: Any) -> Loss | Tabulated:
    name = document["name"]
    return Tabulated(document["entries"]) if name == "tabulated" else losses.by_name[name]


def _read_outputs(document: Any) -> OutputSet:
    if document["kind"] == "grid":
        return Grid(document["values"])
    if document["kind"] == "interval":
        return Interval(document["low"], document["high"])
    return Line()


def dual_document(dual: Dual | None) -> Document | None:
    """Return the dual as plain JSON values, its origin only if it is not 0."""
    if dual is None:
        return None
    origin = {"origin": dual.origin} if dual.origin else {}
    return {"alpha": dual.alpha.tolist(), "beta": dual.beta.tolist(), **origin}


def read_dual(document: Any) -> Dual | None:
    """Build the dual that :func:`dual_document` wrote."""
    return None if document is None else Dual(document["alpha"], document["beta"], document.get("origin", 0.0))


def columns_document(table: Table) -> list[list[list[Any]]]:
    """Return columns of a table: for each output its steps, each a label's index and a height as digits."""
    return [[[y, str(height)] for y, height in column] for column in table.columns]


def read_columns(document: Any) -> tuple[Column, ...]:
    """Return columns that :func:`columns_document` wrote."""
    return tuple(tuple((y, int(height)) for y, height in column) for column in document)
