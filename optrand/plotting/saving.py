"""Pictures as files: raster and vector, whole or not at all, and without a date."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from optrand.base.files import write_atomically
from optrand.errors import InvalidInput
from optrand.plotting.style import STYLE

__all__ = ["check_ending", "save_figure"]

UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
"""The endings that a picture may have, and what keeps the date out of each."""


def save_figure(figure: Figure, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a picture, whole or not at all, in the format that its name ends in.

    Parameters
    ----------
    figure : Figure
    path : path
        Ends in ``.png``, ``.svg`` or ``.pdf``.
    overwrite : bool
        Whether an existing file may be replaced.

    Raises
    ------
    InvalidInput
        Another ending, or a target that may not be written.
    OSError
        As from the operating system; nothing is left behind.

    Notes
    -----
    No date is written.
    """
    suffix = check_ending(path)
    picture = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(picture, format=suffix[1:], dpi=200, metadata=UNDATED[suffix])
    write_atomically(path, picture.getvalue(), overwrite=overwrite)


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a picture's name, in lower case.

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
