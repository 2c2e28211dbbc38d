"""Pictures as files: atomic writes, raster or vector, without a date."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure, FigureBase, SubFigure

from optrand.base.files import write_atomically
from optrand.errors import InvalidInput
from optrand.plotting.style import STYLE

__all__ = ["check_ending", "save_figure", "whole_figure"]

UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
"""Endings that a picture may have, and the metadata that keep the date out of each."""


def save_figure(figure: FigureBase, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a picture atomically, in the format of its ending ``.png``, ``.svg`` or ``.pdf``, without a date.

    Of a picture that took the place of axes all of their figure is written.

    Raises
    ------
    InvalidInput
        Another ending, or a file that exists without `overwrite`.
    OSError
        As from the operating system; nothing is left behind.
    """
    suffix = check_ending(path)
    picture = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        whole_figure(figure).savefig(picture, format=suffix[1:], dpi=200, metadata=UNDATED[suffix])
    write_atomically(path, picture.getvalue(), overwrite=overwrite)


def whole_figure(figure: FigureBase) -> Figure:
    """Figure that a picture is, or is a part of."""
    if isinstance(figure, Figure):
        return figure
    whole = figure.canvas.figure if isinstance(figure, SubFigure) else None
    if not isinstance(whole, Figure):
        raise InvalidInput(f"figure is of type {type(figure).__name__}, expected a figure of matplotlib")
    return whole


def check_ending(path: str | os.PathLike[str]) -> str:
    """Ending of a picture's name, in lower case.

    Raises
    ------
    InvalidInput
        Another one than ``.png``, ``.svg`` or ``.pdf``.

    Examples
    --------
    >>> check_ending("weeks.PNG")
    '.png'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in UNDATED:
        ending = f"as {suffix}" if suffix else "without an ending to its name"
        raise InvalidInput(f"a picture cannot be written {ending}: name a .png, .svg or .pdf file")
    return suffix
