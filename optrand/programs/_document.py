"""Programs as plain JSON values, and back. Reading goes through the constructors, with all of their checks."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from optrand.base._strict_json import Document
from optrand.base._validation import Floats
from optrand.errors import InvalidFile
from optrand.programs import _constraints, _privacy
from optrand.programs._program import Program


def encode_program(program: Program) -> Document:
    """Return the parts that a program is built from."""
    return {
        "labels": program.labels.tolist(),
        "prior": program.prior.tolist(),
        "outputs": program.outputs.tolist(),
        "loss": program.loss.tolist(),
        "maximize": program.maximize,
        "privacy": [_encode_part(notion) for notion in program.privacy],
        "constraints": [_encode_part(constraint) for constraint in program.constraints],
        "rows": [_encode_rows(program, name) for name in program.added],
    }


def _encode_part(part: Any) -> Document:
    return {"kind": type(part).__name__, **{each.name: _encode(getattr(part, each.name)) for each in fields(part)}}


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _encode(value.tolist())
    if isinstance(value, list):
        return [_encode(each) for each in value]
    return "inf" if value == math.inf else value


def _encode_rows(program: Program, name: str) -> Document:
    block = program.blocks[name]
    places = zip(block.row.tolist(), block.column.tolist(), block.value.tolist(), strict=True)
    return {
        "name": name,
        "sense": block.sense.value,
        "coefficients": [list(place) for place in places],
        "bound": block.bound.tolist(),
    }


def decode_program(document: Document) -> Program:
    """Build the program whose parts :func:`encode_program` wrote."""
    notions = ("Approximate", "MaximalLeakage", "Pairwise", "PointwiseMaximalLeakage", "Pure")
    limits = ("BiasAtMost", "ProbabilityAtMost", "Unbiased")
    program = Program(
        document["labels"],
        document["prior"],
        document["outputs"],
        loss=document["loss"],
        privacy=[_decode_part(part, _privacy, notions) for part in document["privacy"]],
        constraints=[_decode_part(part, _constraints, limits) for part in document["constraints"]],
        maximize=document["maximize"],
    )
    k, n = program.variables.k, program.variables.n
    for rows in document["rows"]:
        coefficients = np.zeros((len(rows["bound"]), k * n))
        for row, column, value in rows["coefficients"]:
            coefficients[row, column] = value
        program.add(rows["name"], coefficients.reshape(-1, k, n), rows["sense"], rows["bound"])
    return program


def _decode_part(document: Document, module: Any, kinds: tuple[str, ...]) -> Any:
    parts = dict(document)
    kind = parts.pop("kind")
    if kind not in kinds:
        raise InvalidFile(f"the file names the part {str(kind)[:40]!r}, expected one of {', '.join(kinds)}")
    return getattr(module, kind)(**{name: _decode(value) for name, value in parts.items()})


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(each) for each in value]
    return math.inf if value == "inf" else value


def encode_sparse(numbers: Floats) -> list[list[Any]]:
    """Return places and values of the numbers other than 0."""
    places = np.flatnonzero(numbers)
    return [[int(place), float(numbers[place])] for place in places]


def decode_sparse(pairs: list[list[Any]], size: int) -> Floats:
    """Return an array with the numbers that :func:`encode_sparse` wrote."""
    numbers = np.zeros(size)
    for place, value in pairs:
        numbers[place] = value
    return numbers
