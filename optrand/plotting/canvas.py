"""Canvas of a picture: a figure of its own, or the place of axes in a figure of the caller's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from numpy.typing import ArrayLike, NDArray

from optrand.base.validation import Floats
from optrand.base.validation import values as checked_values
from optrand.errors import InvalidInput
from optrand.plotting.style import spread

__all__ = ["Place", "Size", "canvas", "chosen"]

Place = Axes | FigureBase | None
"""Where a picture goes: the place of axes, a figure or a part of one, or, for None, a new figure."""

Size = tuple[float, float] | None
"""Width and height in inches, or None for those that suit the picture."""


@contextmanager
def canvas(
    look: Any, ax: Place, size: Size, natural: tuple[float, float], *, title: bool = True
) -> Iterator[FigureBase]:
    """Figure to draw in, in a style, and without its title at the end unless one is wanted.

    Parameters
    ----------
    look : mapping
        Settings of matplotlib while the picture is drawn.
    ax, size
        As callers of a drawing function give them.
    natural : (float, float)
        Size of a new figure without `size`, in inches.
    title : bool

    Raises
    ------
    InvalidInput
        Something to draw in that is none, a size beside it, or a size that is none.
    """
    inches = natural if size is None else _checked_size(size)
    if ax is not None and size is not None:
        raise InvalidInput("size is that of a new figure: leave it out with ax, whose figure has one")
    with matplotlib.rc_context(look):
        figure = Figure(figsize=inches, layout="constrained") if ax is None else _place(ax)
        yield figure
        if not title:
            figure.suptitle("", in_layout=False)


def _place(ax: object) -> FigureBase:
    if isinstance(ax, FigureBase):
        return ax
    if not isinstance(ax, Axes):
        raise InvalidInput(f"ax is of type {type(ax).__name__}, expected Axes or a figure of matplotlib, or None")
    place, figure = ax.get_subplotspec(), ax.get_figure()
    if place is None or figure is None:
        raise InvalidInput("ax has no place in a grid, which the picture could take: make it with plt.subplots")
    ax.remove()
    return figure.add_subfigure(place)


def _checked_size(size: object) -> tuple[float, float]:
    inches = checked_values(size, "size")  # type: ignore[arg-type]
    if inches.size != 2 or not (inches > 0).all():
        raise InvalidInput("size has to be a width and a height in inches, such as (6.4, 4)")
    return float(inches[0]), float(inches[1])


def chosen(labels: Floats, wanted: ArrayLike | None, most: int) -> NDArray[np.intp]:
    """Rows of the labels to show: those wanted, in increasing order, or at most so many, evenly spread.

    Raises
    ------
    InvalidInput
        Numbers that are no labels.

    Examples
    --------
    >>> chosen(np.arange(10.0), [7, 2], 4).tolist(), chosen(np.arange(10.0), None, 4).tolist()
    ([2, 7], [0, 3, 6, 9])
    """
    if wanted is None:
        return spread(labels.size, most)
    numbers = np.unique(checked_values(wanted, "labels"))
    rows = np.searchsorted(labels, numbers)
    strange = ~np.isin(numbers, labels)
    if strange.any():
        near = labels[np.abs(labels - numbers[strange][0]).argmin()]
        raise InvalidInput(f"labels to show: {numbers[strange][0]:g} is none of the labels, the nearest is {near:g}")
    return rows.astype(np.intp)
