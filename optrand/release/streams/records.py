"""Bytes of a CSV file in blocks of whole records, unpacked and with their quotes checked on the way."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from optrand.errors import InvalidInput

__all__ = ["BLOCK_SIZE", "CsvFormat", "RecordBlocks"]

BLOCK_SIZE = 1 << 22
"""Bytes of a block; no record may be longer."""

READ_SIZE = 1 << 20

UNPACKED_RATIO, UNPACKED_FREE = 100, 1 << 28
"""By default a gzip file may unpack to so many times what was read of it, and to so many bytes in any case."""

GZIP_MAGIC = b"\x1f\x8b"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class CsvFormat:
    r"""The way a file of separated values is written.

    Parameters
    ----------
    separator : str
        One ASCII character between cells; by default a comma, or a tab in ``.tsv``.
    decimal : str
        The decimal point of labels, ``.`` or ``,``.
    unpacked_limit : int, optional
        How many bytes a gzip file may unpack to; by default a hundred times its size, or 256 MiB if that is more.

    Raises
    ------
    InvalidInput
        A separator that cells or numbers need themselves, or a decimal point of another kind.

    Examples
    --------
    >>> CsvFormat(separator=";", decimal=",").separator
    ';'
    """

    separator: str = ","
    decimal: str = "."
    unpacked_limit: int | None = None

    def __post_init__(self) -> None:
        """Check the characters."""
        known = len(self.separator) == 1 and self.separator.isascii() and not self.separator.isalnum()
        if not known or self.separator in '"\r\n.+- \\\0':
            raise InvalidInput(
                f"the separator is {self.separator!r}, expected one character such as a comma, ';', '|' or a tab"
            )
        if self.decimal not in (".", ","):
            raise InvalidInput(f"the decimal point is {self.decimal!r}, expected '.' or ','")
        if self.unpacked_limit is not None and self.unpacked_limit < 1:
            raise InvalidInput(f"the limit on unpacked bytes is {self.unpacked_limit}, expected at least 1")


class RecordBlocks:
    """Blocks of whole records of an open file.

    Parameters
    ----------
    stream : binary file
    name : str
        For errors.
    layout : CsvFormat

    Attributes
    ----------
    cut : bool
        Whether the last record, once it has been read, had no line end.
    """

    def __init__(self, stream: BinaryIO, name: str, layout: CsvFormat) -> None:
        self.name, self.layout, self.cut = name, layout, False
        separator = re.escape(layout.separator.encode())
        closed = rb'"(?:[^"]++|"")*+"'
        field = rb"(?:" + closed + rb'|(?!")[^' + separator + rb"\r\n]*+)"
        # A carriage return that ends the data so far may be half of a line end.
        self._records = re.compile(
            rb"(?:(?:" + field + separator + rb")*+" + field + rb"(?:\r\n|\n|\r(?!\n|\Z)))*+", re.DOTALL
        )
        self._last = re.compile(rb"(?:" + field + separator + rb")*+" + field + rb"(?:\r\n?|\n)?")
        self._stray = re.compile(rb"(?:" + field + separator + rb")*+" + closed + rb'[^"' + separator + rb"\r\n]")
        self._pieces = self._unpacked(stream)

    def __iter__(self) -> Iterator[bytes]:
        """Yield blocks of whole records; the first begins with the header, without a byte-order mark.

        Raises
        ------
        InvalidInput
            A damaged gzip file or one that unpacks to too much, UTF-16, no data at all, a record longer than
            :data:`BLOCK_SIZE`, or a quoted cell that is not closed or goes on behind its closing quote.
        """
        held = self._beginning()
        if not held.strip():
            raise InvalidInput(f"{self.name} is empty, expected a header and rows")
        for piece in itertools.chain((b"",), self._pieces):
            held += piece
            end = self._whole(held)
            if end:
                yield held[:end]
                held = held[end:]
            elif len(held) > BLOCK_SIZE:
                raise self._too_long(held)
        if held:
            # The regular expression leaves a last record without a line end, or with a lone carriage return.
            if self._last.fullmatch(held) is None:
                raise self._misquoted()
            self.cut = not held.endswith((b"\n", b"\r"))
            yield held

    def _beginning(self) -> bytes:
        """First bytes of the header, without a byte-order mark and blank lines."""
        data = b""
        while len(data) < 3 and (piece := next(self._pieces, b"")):
            data += piece
        if data.startswith(UTF_16_MARKS):
            raise InvalidInput(f"{self.name} is UTF-16 text: save it as UTF-8")
        data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        while not data and (piece := next(self._pieces, b"")):
            data = piece.lstrip(b"\r\n")
        return data

    def _too_long(self, data: bytes) -> InvalidInput:
        if b'"' in data:
            return self._misquoted()
        return InvalidInput(f"{self.name} cannot be read as CSV: a line of it is longer than {BLOCK_SIZE} bytes")

    def _whole(self, data: bytes) -> int:
        """Length of the whole records at the beginning of some data."""
        if b'"' not in data:
            # Mixed line ends may be cut at any of them; a lone carriage return at the end may be half of one.
            return data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1
        match = self._records.match(data)
        end = match.end() if match else 0
        if self._stray.match(data, end):
            raise self._misquoted()
        return end

    def _misquoted(self) -> InvalidInput:
        # Read on regardless, the text up to the next quote would become one public cell, labels and all.
        return InvalidInput(
            f"{self.name} has a quoted cell that is never closed, or that goes on after its closing quote: write a "
            'quote inside a quoted cell as ""'
        )

    def _unpacked(self, stream: BinaryIO) -> Iterator[bytes]:
        first = stream.read(READ_SIZE)
        if not first.startswith(GZIP_MAGIC):
            while first:
                yield first
                first = stream.read(READ_SIZE)
            return
        packed, unpacked = 0, 0
        for data, used in self._inflated(first, stream):
            packed, unpacked = packed + used, unpacked + len(data)
            limit = self.layout.unpacked_limit or max(UNPACKED_RATIO * packed, UNPACKED_FREE)
            if unpacked > limit:
                raise InvalidInput(
                    f"{self.name} unpacks to more than {limit} bytes: raise the limit on unpacked bytes if it is right"
                )
            yield data

    def _inflated(self, data: bytes, stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
        """Unpacked pieces of all members of a gzip file, and how many packed bytes each took."""
        try:
            member = zlib.decompressobj(wbits=31)
            while True:
                before = len(data)
                piece = member.decompress(data, READ_SIZE)
                data = member.unused_data if member.eof else member.unconsumed_tail
                yield piece, before - len(data)
                if member.eof:
                    # Zeros may pad the end of a file.
                    data = (data or stream.read(READ_SIZE)).lstrip(b"\0")
                    while not data and (more := stream.read(READ_SIZE)):
                        data = more.lstrip(b"\0")
                    if not data:
                        return
                    member = zlib.decompressobj(wbits=31)
                elif not data:
                    data = stream.read(READ_SIZE)
                    if not data:
                        raise InvalidInput(f"{self.name} is a damaged gzip file: it cannot be unpacked")
        except zlib.error:
            raise InvalidInput(f"{self.name} is a damaged gzip file: it cannot be unpacked") from None
