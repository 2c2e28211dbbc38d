"""Mechanisms of programs: an exact table that keeps every row, its proof, and the document that holds both."""

from __future__ import annotations

import copy
import errno
import math
from collections.abc import Sequence
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
        if not self.program.cells:
            raise InvalidInput("a mechanism needs a program over a table")
        multipliers = np.array(self.multipliers, dtype=np.float64)
        if multipliers.shape != (self.program.rows,) or not np.isfinite(multipliers).all():
            raise InvalidInput(f"multipliers must be {self.program.rows} finite numbers, one per row of the program")
        multipliers.flags.writeable = False
        object.__setattr__(self, "multipliers", multipliers)
        if not np.array_equal(self.table.labels, self.program.labels):
            raise InvalidInput("labels of the table are not those of the program")
        if not np.isin(self.table.outputs, self.program.outputs).all():
            raise InvalidInput("the table has outputs that the program does not allow")
        for block, number, _, residual in self.program.residuals(self._point, self.program.plain):
            if block.violation(residual) > 0:
                raise InvalidInput(f"the table breaks the row {block.row_names()[number]} of the program")
        for name, _, kept in self._measures:
            if not kept:
                raise InvalidInput(f"the table does not keep {name}: the mechanism would not be private as stated")

    @cached_property
    def _point(self) -> list[fmpq]:
        """Probabilities of all outputs that the program allows, row by row."""
        places = {v: o for o, v in enumerate(self.program.outputs.tolist())}
        k, n = self.program.k, self.program.n
        point = [fmpq(0)] * (k * n)
        for v, column in zip(self.table.outputs.tolist(), self.table.weights.T, strict=True):
            for y, weight in enumerate(column):
                point[y * n + places[v]] = fmpq(weight, self.table.total)
        return point

    @cached_property
    def _measures(self) -> list[tuple[str, float, bool]]:
        prior = tuple(self.program.prior.tolist())
        names = [type(notion).__name__ for notion in self.program.privacy]
        return [
            (name, *notion.measure(self.table, prior)) for name, notion in zip(names, self.program.privacy, strict=True)
        ]

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
        return {
            "program": encode_program(self.program),
            "multipliers": encode_sparse(self.multipliers),
        }

    @classmethod
    def _decode(cls, content: Document) -> Self:
        program = decode_program(content["program"])
        table = Table.of_columns(program.labels, content["outputs"], read_columns(content["columns"]))
        return cls(program, table, decode_sparse(content["multipliers"], program.rows))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a file's bytes, which must be canonical, and otherwise as for any mechanism.

        Raises
        ------
        InvalidFile
            The file is damaged or edited, or its table violates its program.
        """
        mechanism = super().from_bytes(data)
        if _strict_json.canonical(mechanism._document) != data:
            raise InvalidFile("the file is not written as optrand writes it: save the mechanism again")
        return mechanism

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
    if not isinstance(program, Program):
        raise InvalidInput(f"program is of type {type(program).__name__}, expected a Program")
    if not program.k:
        raise InvalidInput(
            "the program has no table M[y, o] to draw from: program.solve().certify() bounds its optimum, and lp1 is "
            "the program over the table"
        )
    engine = find(backend)
    found = list[ProgramMechanism]()
    # A point is refined only while its proven gap is too large.
    for point, multipliers in exact_points(program.solve(engine), engine):
        found.append(_build_mechanism(program, point, multipliers))
        if found[-1].certificate.gap <= PROVEN:
            return found[-1]
    return min(found, key=lambda one: one.certificate.gap)


def _build_mechanism(program: Program, point: Sequence[fmpq], multipliers: Floats) -> ProgramMechanism:
    """Return the mechanism of a point in rationals that keeps every row."""
    k, n = program.k, program.n
    # The least common denominator makes all rows integers of one total.
    unit = lcm(*(int(x.q) for x in point[: k * n]))
    rows = [[int(x * unit) for x in point[y * n : (y + 1) * n]] for y in range(k)]
    return ProgramMechanism(program, Table.of_rows(program.labels, program.outputs, rows), multipliers)


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
    if not file.exists() or file.is_dir():
        error, code = (IsADirectoryError, errno.EISDIR) if file.is_dir() else (FileNotFoundError, errno.ENOENT)
        raise error(code, f"the mechanism is {missing(file)}: name a file of Mechanism.save", str(file))
    data = file.read_bytes()
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
        privacy=[_decode_part(part, notions) for part in document["privacy"]],
        constraints=[_decode_part(part, limits) for part in document["constraints"]],
        maximize=document["maximize"],
    )
    for rows in document["rows"]:
        coefficients = np.zeros((len(rows["bound"]), program.cells))
        for row, column, value in rows["coefficients"]:
            coefficients[row, column] = value
        program.add(rows["name"], coefficients.reshape(-1, program.k, program.n), rows["sense"], rows["bound"])
    return program


def _decode_part(document: Document, kinds: tuple[str, ...]) -> Any:
    parts = dict(document)
    kind = parts.pop("kind")
    if kind not in kinds:
        raise InvalidFile(f"the file names the part {str(kind)[:40]!r}, expected one of {', '.join(kinds)}")
    return getattr(_parts, kind)(**{name: _decode(value) for name, value in parts.items()})


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
