"""Gallery: every picture of one mechanism, as pixels and as lines, in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from optrand.base.files import refuse_target
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.plotting import (
    dual_figure,
    flow_figure,
    joint_figure,
    matrix_figure,
    paths_figure,
    phases_figure,
    pmf_figure,
    save_figure,
)
from optrand.plotting.saving import check_ending

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["DRAWINGS", "Gallery", "gallery", "refuse_gallery"]

DRAWINGS: Mapping[str, Callable[..., FigureBase]] = MappingProxyType(
    {
        "pmf": pmf_figure,
        "matrix": matrix_figure,
        "joint": joint_figure,
        "flow": flow_figure,
        "paths": paths_figure,
        "phases": phases_figure,
        "dual": dual_figure,
    }
)
"""Figures of a mechanism, by the names of the files."""

ENDINGS = (".png", ".pdf")


@dataclass(frozen=True)
class Gallery:
    """Files of the pictures of one mechanism, and the pictures that it does not have.

    Attributes
    ----------
    pictures : tuple of Path
    left_out : tuple of (str, str)
        Names and reasons.
    """

    pictures: tuple[Path, ...]
    left_out: tuple[tuple[str, str], ...]


def gallery(
    mechanism: Mechanism,
    directory: str | os.PathLike[str],
    *,
    endings: tuple[str, ...] = ENDINGS,
    overwrite: bool = False,
    announce: Callable[[str], None] = lambda _: None,
) -> Gallery:
    """Draw every picture of a mechanism, all of them before the first is written.

    Parameters
    ----------
    mechanism : Mechanism
    directory : path
        Made if it does not exist; its parent must.
    endings : tuple of str
        Formats, of ``.png``, ``.svg`` and ``.pdf``; by default one of pixels and one of lines.
    overwrite : bool
        Whether existing pictures may be replaced.
    announce : callable
        Called with the name of each picture before it is drawn.

    Raises
    ------
    InvalidInput
        A picture that exists, or another ending; then nothing is written.
    OSError
        As from the operating system.

    Examples
    --------
    >>> import tempfile
    >>> import optrand
    >>> from optrand.plotting.gallery import gallery
    >>> mechanism = optrand.solve(optrand.classification([0.5, 0.3, 0.2], 1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = gallery(mechanism, folder, endings=(".svg",))
    >>> [path.name for path in made.pictures]
    ['pmf.svg', 'matrix.svg', 'dual.svg']
    >>> dict(made.left_out)["joint"]
    'classes have no distance, and so no mean squared error: draw a pmf or the matrix'
    """
    folder = Path(directory)
    refuse_gallery(folder, endings=endings, overwrite=overwrite)
    figures, left_out = dict[str, "FigureBase"](), list[tuple[str, str]]()
    for name, draw in DRAWINGS.items():
        announce(name)
        try:
            figures[name] = draw(mechanism)
        except (InvalidInput, NotCertified) as reason:
            left_out.append((name, str(reason)))
    folder.mkdir(exist_ok=True)
    pictures = [(figure, folder / f"{name}{ending}") for name, figure in figures.items() for ending in endings]
    for figure, path in pictures:
        announce(path.name)
        save_figure(figure, path, overwrite=overwrite)
    return Gallery(tuple(path for _, path in pictures), tuple(left_out))


def refuse_gallery(
    directory: str | os.PathLike[str], *, endings: tuple[str, ...] = ENDINGS, overwrite: bool = False
) -> None:
    """Raise if a gallery cannot be made there, for callers who would learn it only after a long solve.

    Raises
    ------
    InvalidInput
        Neither a folder nor the name of a new one, another ending, or a picture that exists without `overwrite`.
    """
    folder = Path(directory)
    if not folder.is_dir() and (folder.exists() or not folder.parent.is_dir()):
        wrong = f"{folder} is" if folder.exists() else f"{folder.parent} is"
        raise InvalidInput(f"{wrong} not a folder: choose another name for the gallery")
    for ending in endings:
        check_ending(f"picture{ending}")
        for name in DRAWINGS:
            refuse_target(folder / f"{name}{ending}", overwrite=overwrite)
