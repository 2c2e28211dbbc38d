"""Pictures as files: one, or every picture of a mechanism in a folder."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from matplotlib.figure import FigureBase

from optrand.base._files import refuse_target, write_atomically
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.plotting._randomizer import joint_figure, matrix_figure, pmf_figure
from optrand.plotting._structure import dual_figure, flow_figure, phases_figure
from optrand.plotting._style import fix_style, whole_figure

UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
"""Endings of a picture, and the metadata that omit the date in each format."""

DRAWINGS: dict[str, Callable[[Mechanism | Released], FigureBase]] = {
    "pmf": pmf_figure,
    "matrix": matrix_figure,
    "joint": joint_figure,
    "flow": flow_figure,
    "phases": phases_figure,
    "dual": dual_figure,
}
"""Pictures of a mechanism, by the names of their files."""


def draw(name: str, mechanism: Mechanism | Released) -> FigureBase | str:
    """Draw one of :data:`DRAWINGS`, or return the reason why this mechanism does not have it."""
    try:
        return DRAWINGS[name](mechanism)
    except (InvalidInput, NotCertified) as reason:
        return str(reason)


def save_figure(figure: FigureBase, path: str | os.PathLike[str]) -> None:
    """Write a picture atomically, in the format of its ending ``.png``, ``.svg`` or ``.pdf``, without a date.

    A file of that name is replaced, as matplotlib does. If the picture took the place of axes, the whole figure is
    written.

    Raises
    ------
    InvalidInput
        The path has another ending, or is a symbolic link, a folder or a device.
    OSError
        An error of the operating system. No file is left behind.
    """
    ending = check_ending(path)
    write_atomically(path, render(figure, ending), overwrite=True)


def render(figure: FigureBase, ending: str) -> bytes:
    """Encode a picture, or the whole figure of which it is a part, in the format of an ending."""
    picture = io.BytesIO()
    with fix_style():
        whole_figure(figure).savefig(picture, format=ending[1:], dpi=200, metadata=UNDATED[ending])
    return picture.getvalue()


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of a picture's name, in lower case. Raise InvalidInput if it is of no format."""
    suffix = Path(path).suffix.lower()
    if suffix not in UNDATED:
        ending = f"as {suffix}" if suffix else "without an ending to its name"
        raise InvalidInput(f"a picture cannot be written {ending}: name a .png, .svg or .pdf file")
    return suffix


ENDINGS = (".png", ".pdf")
"""Formats of the pictures in a gallery."""


def gallery(
    mechanism: Mechanism | Released,
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> tuple[list[Path], dict[str, str]]:
    """Draw every picture of a mechanism, as pixels and as lines, into a folder, which is made if its parent exists.

    Return the files, and the names of the pictures that it does not have, with the reasons. All are drawn before the
    first is written, and `announce` is called with the name of each before. Raise :class:`InvalidInput`, with nothing
    written, if the path cannot be a folder, or a picture exists and `overwrite` is false.
    """
    folder = Path(directory)
    if not folder.is_dir() and (folder.exists() or not folder.parent.is_dir()):
        wrong = folder if folder.exists() else folder.parent
        raise InvalidInput(f"{wrong} is not a folder: choose another name for the gallery")
    for name, ending in product(DRAWINGS, ENDINGS):
        refuse_target(folder / f"{name}{ending}", overwrite=overwrite)
    drawn = dict[str, FigureBase]()
    left_out = dict[str, str]()
    for name in DRAWINGS:
        announce(name)
        figure = draw(name, mechanism)
        if isinstance(figure, str):
            left_out[name] = figure
        else:
            drawn[name] = figure
    folder.mkdir(exist_ok=True)
    pictures = {folder / f"{name}{ending}": figure for name, figure in drawn.items() for ending in ENDINGS}
    for path, figure in pictures.items():
        announce(path.name)
        save_figure(figure, path)
    return list(pictures), left_out
