"""Exact mechanisms, whatever question they answer: their table, draws, file and digest.

The sampler reads the table that was verified and nothing else.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optrand.base import strict_json
from optrand.base.arithmetic import Integers
from optrand.base.files import write_atomically
from optrand.base.records import Record
from optrand.base.strict_json import Document
from optrand.base.suggestions import missing
from optrand.base.validation import Floats
from optrand.certificates.proof import Proof
from optrand.errors import InvalidFile
from optrand.mechanism import file_format
from optrand.model.table import Table
from optrand.sampling import Sampler
from optrand.sampling.entropy import EntropySource, RecordEntropy, without_seed

__all__ = ["ExactMechanism", "read_file"]

AnyProof = TypeVar("AnyProof", bound=Proof, covariant=True)


class ExactMechanism(Record, ABC, Generic[AnyProof]):
    """Base of mechanisms: an exact table with its proof, which is drawn from and saved.

    A subclass is a dataclass with the field :attr:`table`, whose constructor checks everything.
    """

    table: Table
    FORMAT: ClassVar[str]
    """Format that files state."""

    QUESTION: ClassVar[Sequence[str]]
    """Fields of a file beside those of the table."""

    @abstractmethod
    def certify(self) -> AnyProof:
        """Compute the certificate from the question, the table and the multipliers alone."""

    @cached_property
    def certificate(self) -> AnyProof:
        """Proven bounds of the optimum and the table's own privacy, computed once; see :func:`optrand.certify`."""
        return self.certify()

    @property
    def labels(self) -> Floats:
        """Increasing labels, one per row of :attr:`weights`."""
        return self.table.labels

    @property
    def outputs(self) -> Floats:
        """Increasing outputs, one per column of :attr:`weights`."""
        return self.table.outputs

    @property
    def n(self) -> int:
        """Number of outputs."""
        return self.table.n

    @property
    def total(self) -> int:
        """Sum of the weights of each row."""
        return self.table.total

    @property
    def weights(self) -> Integers:
        """Table of integers, shape ``(k, n)``, read-only and written out on first use."""
        return self.table.weights

    @property
    def matrix(self) -> Floats:
        """Probabilities in floats, shape ``(k, n)``. Draws use the exact table."""
        return self.table.matrix

    @cached_property
    def sampler(self) -> Sampler:
        """Sampler of the table; prepared once."""
        return Sampler(self.table)

    @without_seed
    def sample(self, values: ArrayLike, *, source: EntropySource | None = None) -> Floats:
        """Draw one output for every label in `values`, with exactly the probabilities of the table.

        Parameters
        ----------
        values : array of labels, any shape
        source : EntropySource, optional
            By default the operating system, the only choice for a release.

        Returns
        -------
        array of outputs, of the shape of `values`

        Raises
        ------
        InvalidInput
            Values that are not labels; the message tells neither which nor how many.
        """
        return self.sampler.sample(values, source=source)

    def sample_records(self, values: ArrayLike, ids: NDArray[np.uint64], streams: RecordEntropy) -> Floats:
        """Draw one output for every label, the same for the same record in any batch, order or partition.

        Parameters
        ----------
        values : (n,) array of labels
        ids : (n, 2) array of uint64
            Ids of the records, distinct over the whole release.
        streams : RecordEntropy
            Such as :class:`~optrand.sampling.keyed.RecordStreams`.

        Returns
        -------
        (n,) array of outputs

        Raises
        ------
        InvalidInput
            As from :meth:`sample`, or ids of another type or number.
        """
        return self.sampler.sample_records(values, ids, streams)

    @abstractmethod
    def _encode_question(self) -> Document:
        """Return what the mechanism answers and its multipliers, as plain JSON values by the names in `QUESTION`."""

    @classmethod
    @abstractmethod
    def _decode(cls, content: Document, outputs: Any) -> Self:
        """Build the mechanism of a file's content."""

    @cached_property
    def _document(self) -> Document:
        content = {
            **self._encode_question(),
            "outputs": self.outputs.tolist(),
            "columns": file_format.columns_document(self.table),
        }
        return strict_json.sealed(content, kind=self.FORMAT)

    @property
    def digest(self) -> str:
        """Digest ``sha256:...`` of the file's content, by which a ledger identifies the mechanism."""
        return str(self._document["digest"])

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the mechanism as canonical JSON, atomically; :func:`optrand.load` reads it back and verifies it again.

        Raises
        ------
        InvalidInput
            `path` is a symbolic link, or exists without `overwrite`, or the problem's loss is the user's own and has no
            name.
        OSError
            As from the operating system; nothing is left behind.
        """
        write_atomically(path, strict_json.canonical(self._document), overwrite=overwrite)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a file's bytes: build the mechanism, with all of its checks, encode it, and compare the content.

        White space and the order of fields may differ.

        Raises
        ------
        InvalidFile
            The file is damaged, unknown, written by a newer optrand, or holds a table that does not keep its promise,
            whatever its digest is.
        """
        content = strict_json.unsealed(data, [*cls.QUESTION, "outputs", "columns"], kind=cls.FORMAT)
        mechanism = cls._decode(content, strict_json.numbers(content["outputs"], "outputs"))
        written = {name: mechanism._document[name] for name in content}
        if strict_json.canonical(written) != strict_json.canonical(content):
            raise InvalidFile(
                "the file is not written as save() writes it, and the digest of its mechanism is another: look for "
                "-0.0 in place of 0.0"
            )
        return mechanism

    def __eq__(self, other: object) -> bool:
        """Compare every field of the file."""
        return type(other) is type(self) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash the digest."""
        return hash(self.digest)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a saved mechanism.

    Raises
    ------
    OSError
        The file cannot be read; the message names a near one.
    """
    file = Path(path)
    if not file.exists() or file.is_dir():
        kind, code = (IsADirectoryError, errno.EISDIR) if file.is_dir() else (FileNotFoundError, errno.ENOENT)
        raise kind(code, f"the mechanism is {missing(file)}: name a file of Mechanism.save", str(file))
    return file.read_bytes()
