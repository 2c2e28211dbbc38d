"""Pictures of randomizers: a probability mass function a label, the table with its signature, the mixture of paths.

Nothing here shows a window or touches matplotlib's global state: each function returns a
:class:`matplotlib.figure.Figure`, which :func:`save_figure` writes whole or not at all. Every picture can be read in
grey, and no meaning rests on colour alone. ``import optrand`` does not import this package.
"""

from __future__ import annotations

import io
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import matplotlib
from matplotlib.figure import Figure

from optrand import losses
from optrand.errors import InvalidInput
from optrand.files import write_atomically
from optrand.path_decomposition import decompose_paths
from optrand.plotting.paths import draw_paths
from optrand.plotting.stems import draw_pmfs, shown_labels
from optrand.plotting.style import STYLE
from optrand.plotting.table import draw_matrix
from optrand.problem import Problem
from optrand.randomizer import Randomizer

if TYPE_CHECKING:
    from optrand.certificate import Certificate

__all__ = ["matrix_figure", "mechanism_figure", "paths_figure", "pmf_figure", "save_figure"]

UNDATED: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".png": {}, ".svg": {"Date": None}}
"""The endings that a picture may have, and what keeps the date out of each."""


class HasRandomizer(Protocol):
    """A mechanism or a solution."""

    @property
    def randomizer(self) -> Randomizer:
        """The channel in floats."""
        ...


def pmf_figure(subject: Randomizer | HasRandomizer) -> Figure:
    """One probability mass function a label, one below the other, as in [B23]_, Figure 2.

    The dotted line stands at the label, the triangle at the mean output (not for classes, which have no mean). A stem
    ends in a filled circle where its label makes the output likeliest, in an empty one where it makes it least likely,
    with a ratio of ``exp(epsilon)`` between the two, and in a diamond otherwise.

    Parameters
    ----------
    subject : Randomizer, Mechanism or Solution

    Returns
    -------
    Figure
        Of all labels, or of up to six spread evenly over them; its title says which.

    Raises
    ------
    InvalidInput
        A subject that has no randomizer.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> figure = pmf_figure(debiased_rr(range(53), 1.0))
    >>> figure.get_suptitle()
    'Labels 0, 13, 26, 39, 52 of 53, ε = 1'
    >>> len(figure.axes)
    5

    References
    ----------
    .. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
    """
    table = _table(subject)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 1.2 + 0.95 * shown_labels(table).size), layout="constrained")
        listed = draw_pmfs(figure, table, means=_has_means(subject))
        figure.suptitle(f"{listed}, ε = {table.epsilon:g}", fontsize=9)
    return figure


def matrix_figure(subject: Randomizer | HasRandomizer) -> Figure:
    """The table as a heat map, and beside it where each probability stands in its column ([B23]_, Definition 10).

    Rows are labels and columns the outputs that occur, both in increasing order and equally wide whatever their values.
    The shades of the heat map are logarithmic.

    Parameters
    ----------
    subject : Randomizer, Mechanism or Solution

    Returns
    -------
    Figure
        With the heat map first among its axes and the signature second.

    Raises
    ------
    InvalidInput
        A subject that has no randomizer.

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> figure = matrix_figure(debiased_rr([0, 1, 2], 1.0))
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['Probability of each output', 'Staircase signature']

    References
    ----------
    .. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
    """
    table = _table(subject)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.9), layout="constrained")
        draw_matrix(figure, table)
    return figure


def mechanism_figure(subject: Randomizer | HasRandomizer, certificate: Certificate | None = None) -> Figure:
    """The whole of a mechanism in one picture: its probability mass functions, its table, its signature, and a caption.

    Parameters
    ----------
    subject : Mechanism, Solution or Randomizer
    certificate : Certificate, optional
        Adds the certified gap, and the privacy loss that was verified, to the caption.

    Returns
    -------
    Figure

    Raises
    ------
    InvalidInput
        A subject that has no randomizer.

    Examples
    --------
    >>> from optrand.certificate import certify
    >>> from optrand.closed_forms import debiased_rr
    >>> coin = debiased_rr([0, 1], 1.0)
    >>> mechanism_figure(coin).get_suptitle()
    'ε = 1, 2 labels, 2 outputs'
    """
    table = _table(subject)
    with matplotlib.rc_context(STYLE):
        heights = [1.0 + 0.85 * shown_labels(table).size, 3.6]
        figure = Figure(figsize=(7.2, 0.4 + sum(heights)), layout="constrained")
        figure.suptitle(_caption(table, certificate), fontsize=10)
        grid = figure.add_gridspec(2, 1, height_ratios=heights)
        upper, lower = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
        upper.suptitle(draw_pmfs(upper, table, means=_has_means(subject)), fontsize=9)
        draw_matrix(lower, table)
    return figure


def paths_figure(subject: Randomizer | HasRandomizer) -> Figure:
    """A randomizer as the mixture of randomized responses on bins that it is, one strip a component.

    A strip is as high as the weight of its component. Lines cut it into bins, and the shade of a bin is the output that
    it produces: a label draws a strip, whatever the label is, and then mostly the output of its own bin there.

    Parameters
    ----------
    subject : Mechanism, Solution or Randomizer
        With interval columns (:func:`optrand.decompose_paths`).

    Returns
    -------
    Figure
        Of all components, or of those at 400 evenly spread heights; its title counts them.

    Raises
    ------
    InvalidInput
        A subject without a randomizer, or with columns that are no intervals.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> paths_figure(optrand.tabulate(optrand.solve(problem))).get_suptitle()
    'A mixture of 3 randomized responses on 2 to 3 bins: 4 labels, ε = 2'
    """
    paths = decompose_paths(subject)
    few, many = int(paths.bins.min()), int(paths.bins.max())
    bins = _counted(many, "bin") if few == many else f"{few:,} to {many:,} bins"
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        draw_paths(figure, paths)
        mixture = f"A mixture of {len(paths):,} randomized responses" if len(paths) > 1 else "Randomized response"
        figure.suptitle(
            f"{mixture} on {bins}: {_counted(paths.labels.size, 'label')}, ε = {math.log(paths.ratio):g}", fontsize=9
        )
    return figure


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
    suffix = Path(path).suffix.lower()
    if suffix not in UNDATED:
        ending = f"as {suffix}" if suffix else "without an ending to its name"
        raise InvalidInput(f"a picture cannot be written {ending}: name a .png, .svg or .pdf file")
    picture = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(picture, format=suffix[1:], dpi=200, metadata=UNDATED[suffix])
    write_atomically(path, picture.getvalue(), overwrite=overwrite)


def _table(subject: Randomizer | HasRandomizer) -> Randomizer:
    """The randomizer to draw, without the outputs that never occur."""
    table = subject if isinstance(subject, Randomizer) else getattr(subject, "randomizer", None)
    if not isinstance(table, Randomizer):
        raise InvalidInput(
            f"a picture needs a Randomizer, or a mechanism or solution that has one, not a {type(subject).__name__}"
        )
    return table.without_unused_outputs()


def _has_means(subject: Randomizer | HasRandomizer) -> bool:
    """Whether the outputs are numbers, and not the names of classes."""
    problem = getattr(subject, "problem", None)
    return not (isinstance(problem, Problem) and problem.loss == losses.zero_one)


def _caption(table: Randomizer, certificate: Certificate | None) -> str:
    parts = [f"ε = {table.epsilon:g}", _counted(table.k, "label"), _counted(table.n, "output")]
    if certificate is not None:
        known = math.isfinite(certificate.gap)
        parts.append(f"certified gap {certificate.gap:.2g}" if known else "no certified gap")
        parts.append(f"realised ε {certificate.epsilon:.6g}")
    return ", ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("s" if count > 1 else "")
