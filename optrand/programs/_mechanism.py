"""Mechanisms of programs: an exact table that keeps every row, its proof, and the document that holds both."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, fields
from functools import cached_property
from math import lcm
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from flint import fmpq

from optrand.base import _strict_json
from optrand.base._strict_json import Document
from optrand.base._suggestions import missing
from optrand.base._validation import Floats, expect
from optrand.certificates._certificate import PROVEN
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism._file_format import read_columns
from optrand.mechanism._mechanism import ExactMechanism, Mechanism
from optrand.model._table import Table
from optrand.programs import _parts
from optrand.programs._backends import Backend, find
from optrand.programs._certificate import ProgramCertificate, bound, exact_cost
from optrand.programs._exact_point import exact_points
from optrand.programs._program import Program


@dataclass(frozen=True, eq=False)
class ProgramMechanism(ExactMechanism[ProgramCertificate]):
    """Exact randomizer that keeps every row of a program, with multipliers that bound the program's optimum.

    Parameters
    ----------
    program : Program
    table : Table
        Its labels are the program's, its outputs some of the program's.
    multipliers : (rows,) array
        Derivatives of the optimal value by the right-hand sides. Any multipliers give a valid bound, good ones a tight
        bound.

    Raises
    ------
    InvalidInput
        A table that breaks a row or a notion of privacy, decided in integers, or parts that do not fit.

    Examples
    --------
    >>> from optrand.programs import MaximalLeakage, Program
    >>> mechanism = solve_program(
    ...     Program([0, 1], [0.5, 0.5], [0, 1], privacy=MaximalLeakage(0.5))
    ... )
    >>> mechanism.certificate.gap < 1e-9, mechanism.certificate.realised[0][1] <= 0.5
    (True, True)
    >>> round(mechanism.value, 6), mechanism.sample([0, 1, 1]).shape
    (0.08782, (3,))
    """

    FORMAT = "optrand.program"
    QUESTION = ("program", "multipliers")

    program: Program
    table: Table
    multipliers: Floats

    def __post_init__(self) -> None:
        """Check that the table keeps every row and every notion of privacy."""
        # Rows that are added to the program later belong to another question.
        object.__setattr__(self, "program", copy.copy(self.program))
        multipliers = np.array(self.multipliers, dtype=np.float64)
        if multipliers.shape != (self.program.rows,) or not np.isfinite(multipliers).all():
            raise InvalidInput(f"multipliers must be {self.program.rows} finite numbers, one per row of the program")
        multipliers.flags.writeable = False
        object.__setattr__(self, "multipliers", multipliers)
        if not np.array_equal(self.table.labels, self.program.labels):
            raise InvalidInput("labels of the table are not those of the program")
        if not np.isin(self.table.outputs, self.program.outputs).all():
            raise InvalidInput("the table has outputs that the program does not allow")
        # The rows of a notion of privacy have rounded exponentials. Its own test, below, has none.
        stated = [name for name in self.program.blocks if name not in self.program.private]
        for block, number, _, slack in self.program.slacks(self._point, stated):
            if slack < 0:
                raise InvalidInput(f"the table breaks the row {block.row_names()[number]} of the program")
        for name, _, kept in self._measures:
            if not kept:
                raise InvalidInput(f"the table does not keep {name}: the mechanism would not be private as stated")

    @cached_property
    def _point(self) -> list[fmpq]:
        """Probabilities of all outputs that the program allows, row by row."""
        point = [fmpq(0)] * self.program.cells
        places = np.searchsorted(self.program.outputs, self.table.outputs).tolist()
        for o, column in zip(places, self.table.weights.T, strict=True):
            for y, weight in enumerate(column):
                point[y * self.program.n + o] = fmpq(weight, self.table.total)
        return point

    @cached_property
    def _measures(self) -> list[tuple[str, float, bool]]:
        prior = tuple(self.program.prior.tolist())
        return [(type(notion).__name__, *notion.measure(self.table, prior)) for notion in self.program.privacy]

    def certify(self) -> ProgramCertificate:
        """Compute the certificate again from the program, the table and the multipliers alone.

        Raises
        ------
        InvalidInput
            If rows were added to the program of this mechanism, which its table was never checked against.
        """
        if self.program.rows != self.multipliers.size:
            raise InvalidInput(
                "rows were added to the program of a mechanism, which its table may break: add them to the program "
                "that was solved, and solve it again"
            )
        # Variables behind the table have no cost.
        value = exact_cost(self.program.cost[: len(self._point)], self._point)
        realised = tuple((name, number) for name, number, _ in self._measures)
        return ProgramCertificate.of(self.program, value, bound(self.program, self.multipliers), realised=realised)

    @property
    def prior(self) -> Floats:
        """Probabilities of the labels."""
        return self.program.prior

    @property
    def value(self) -> float:
        """Objective, rounded to the unfavourable side."""
        return self.certificate.value

    def _encode_question(self) -> Document:
        places = np.flatnonzero(self.multipliers).tolist()
        multipliers = [[place, float(self.multipliers[place])] for place in places]
        return {"program": encode_program(self.program), "multipliers": multipliers}

    @classmethod
    def _decode(cls, content: Document) -> Self:
        program = decode_program(content["program"])
        table = Table.of_columns(program.labels, content["outputs"], read_columns(content["columns"]))
        multipliers = np.zeros(program.rows)
        for place, value in content["multipliers"]:
            multipliers[place] = value
        return cls(program, table, multipliers)

    def __repr__(self) -> str:
        """Return one line."""
        notions = ", ".join(type(notion).__name__ for notion in self.program.privacy)
        return f"<ProgramMechanism: {self.table.k} labels, {self.table.n} outputs, {notions}>"


def solve_program(program: Program, backend: str | Backend = "highs") -> ProgramMechanism:
    """Solve a program and return an exact mechanism that keeps every row, with its proof.

    Parameters
    ----------
    program : Program
    backend : str or Backend
        As in :meth:`~optrand.programs.Program.solve`.

    Raises
    ------
    Infeasible
        No randomizer keeps all rows, which the backend's multipliers prove.
    NotCertified
        No exact table was found. The message gives the reason.
    InvalidInput
        A program without a table.
    """
    if not program.k:
        raise InvalidInput(
            "the program has no table M[y, o] to draw from: program.solve().certify() bounds its optimum, and lp1 is "
            "the program over the table"
        )
    engine = find(backend)
    found = list[ProgramMechanism]()
    for point, multipliers in exact_points(program.solve(engine), engine):
        # The least common denominator makes all rows integers of one total.
        unit = lcm(*(int(x.q) for x in point[: program.cells]))
        weights = [int(x * unit) for x in point[: program.cells]]
        rows = [weights[start : start + program.n] for start in range(0, program.cells, program.n)]
        found.append(ProgramMechanism(program, Table.of_rows(program.labels, program.outputs, rows), multipliers))
        # A point is refined only while its proven gap is too large.
        if found[-1].certificate.gap <= PROVEN:
            break
    return min(found, key=lambda one: one.certificate.gap)


def load(path: str | PathLike[str]) -> Mechanism | ProgramMechanism:
    """Load a saved mechanism and verify it again.

    Raises
    ------
    InvalidFile
        The file holds no mechanism, a damaged one, or one that violates its program.
    InvalidInput
        `path` is not a path.
    OSError
        The file cannot be read. The message names a similar one.
    """
    expect(path, (str, PathLike), "path", "the path of a file of Mechanism.save")
    file = Path(path)
    try:
        data = file.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        message = f"the mechanism is {missing(file)}: name a file of Mechanism.save"
        raise type(error)(error.errno, message, str(file)) from None
    kind = ProgramMechanism if _strict_json.read_format(data) == ProgramMechanism.FORMAT else Mechanism
    return kind.from_bytes(data)


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
    document: Document = {"kind": type(part).__name__}
    for name in (each.name for each in fields(part)):
        value = getattr(part, name)
        document[name] = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(part, _parts.Pairwise):
        document["epsilons"] = [["inf" if e == math.inf else e for e in row] for row in document["epsilons"]]
    return document


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
    program = Program(
        document["labels"],
        document["prior"],
        document["outputs"],
        loss=document["loss"],
        privacy=[_decode_part(part, _parts.Privacy) for part in document["privacy"]],
        constraints=[_decode_part(part, _parts.Constraint) for part in document["constraints"]],
        maximize=document["maximize"],
    )
    for rows in document["rows"]:
        coefficients = np.zeros((len(rows["bound"]), program.cells))
        for row, column, value in rows["coefficients"]:
            coefficients[row, column] = value
        program.add(rows["name"], coefficients.reshape(-1, program.k, program.n), rows["sense"], rows["bound"])
    return program


def _decode_part(document: Document, base: type) -> Any:
    parts = dict(document)
    name = parts.pop("kind")
    kind = getattr(_parts, name, None)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise InvalidFile(f"the file names the part {name[:40]!r}, which is no {base.__name__} of optrand.programs")
    if kind is _parts.Pairwise:
        # Infinity is a text.
        parts["epsilons"] = np.array(parts["epsilons"], dtype=float)
    return kind(**parts)
