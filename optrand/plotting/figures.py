"""Pictures of a table: a probability mass function a label, the matrix with its signature, the mixture of paths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike

from optrand.base.numerals import shown_above
from optrand.mechanism.paths import decompose_paths
from optrand.model.randomizer import Randomizer
from optrand.plotting.canvas import Place, Size, canvas, chosen
from optrand.plotting.paths import draw_paths
from optrand.plotting.stems import PANELS, draw_pmfs
from optrand.plotting.style import STYLE, above
from optrand.plotting.subject import Drawable, HasRandomizer, counted, drawn_table, has_means
from optrand.plotting.table import draw_matrix

if TYPE_CHECKING:
    from optrand.certificates.certificate import Certificate

__all__ = ["matrix_figure", "mechanism_figure", "paths_figure", "pmf_figure"]


def pmf_figure(
    subject: Drawable, *, labels: ArrayLike | None = None, ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    """Probability mass functions of up to six labels, one below the other, as in [B23], Figure 2.

    The dotted line stands at the label, the triangle at the mean output (not for classes). A stem ends in a filled
    circle where its label makes the output likeliest, in an empty one where it makes it least likely, with a ratio of
    ``exp(epsilon)`` between the two, and in a diamond otherwise.

    Parameters
    ----------
    subject : Mechanism, Randomizer, or additive noise of optrand.baselines with `labels`

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> figure = pmf_figure(debiased_rr(range(53), 1.0))
    >>> figure.get_suptitle()
    'Labels 0, 13, 26, 39, 52 of 53, ε = 1'
    >>> len(figure.axes)
    5
    """
    table = drawn_table(subject, labels)
    shown = chosen(table.labels, labels, PANELS)
    with canvas(STYLE, ax, size, (6.4, 1.2 + 0.95 * shown.size), title=title) as figure:
        listed = draw_pmfs(figure, table, shown, means=has_means(subject))
        figure.suptitle(f"{listed}, ε = {table.epsilon:g}", fontsize=9)
    return figure


def matrix_figure(
    subject: Drawable, *, labels: ArrayLike | None = None, ax: Place = None, title: bool = True, size: Size = None
) -> FigureBase:
    """Heat map of the table, and beside it the place of each probability in its column ([B23], Definition 10).

    Rows are labels and columns the outputs that occur, increasing and equally wide. Shades are logarithmic.

    Parameters
    ----------
    subject : Mechanism, Randomizer, or additive noise of optrand.baselines with `labels`

    Examples
    --------
    >>> from optrand.closed_forms import debiased_rr
    >>> figure = matrix_figure(debiased_rr([0, 1, 2], 1.0))
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['Probability of each output', 'Staircase signature']
    """
    table = drawn_table(subject, labels)
    with canvas(STYLE, ax, size, (7.2, 4.1), title=title) as figure:
        figure.suptitle(_caption(table, None), fontsize=9)
        draw_matrix(figure, table, labels)
    return figure


def mechanism_figure(
    subject: Drawable,
    certificate: Certificate | None = None,
    *,
    total: float | None = None,
    labels: ArrayLike | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """Overview of a mechanism: its probability mass functions, its table, its signature, and a caption.

    Parameters
    ----------
    subject : Mechanism or Randomizer
    certificate : Certificate, optional
        Adds the certified gap and the verified privacy loss to the caption.
    total : float, optional
        Budget of the whole release, of a prior too, in nats; the caption then begins with it.

    Examples
    --------
    >>> from optrand.certificates.certificate import certify
    >>> from optrand.closed_forms import debiased_rr
    >>> coin = debiased_rr([0, 1], 1.0)
    >>> mechanism_figure(coin).get_suptitle()
    'ε = 1, 2 labels, 2 outputs'
    """
    table = drawn_table(subject, labels)
    shown = chosen(table.labels, labels, PANELS)
    heights = [1.0 + 0.85 * shown.size, 3.6]
    with canvas(STYLE, ax, size, (7.2, 0.4 + sum(heights)), title=title) as figure:
        whole = "" if total is None else f"total ε = {shown_above(total, 6)}, of which the mechanism's "
        figure.suptitle(f"{whole}{_caption(table, certificate)}", fontsize=10 if total is None else 8)
        grid = figure.add_gridspec(2, 1, height_ratios=heights)
        upper, lower = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
        upper.suptitle(draw_pmfs(upper, table, shown, means=has_means(subject)), fontsize=9)
        draw_matrix(lower, table, labels)
    return figure


def paths_figure(
    subject: Randomizer | HasRandomizer,
    *,
    labels: ArrayLike | None = None,
    ax: Place = None,
    title: bool = True,
    size: Size = None,
) -> FigureBase:
    """Mixture of randomized responses on bins, one strip a component.

    A strip is as high as the weight of its component, and drawn with that probability whatever the label is. Lines cut
    it into bins, whose shades are their outputs; the label's own bin is ``exp(epsilon)`` times as likely as each other
    one. Of many components those at 400 evenly spread heights are shown, as the title says.

    Parameters
    ----------
    subject : Mechanism or Randomizer
        With interval columns (:func:`optrand.mechanism.decompose_paths`).

    Raises
    ------
    InvalidInput
        Columns that are no intervals.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression(range(4), [0.4, 0.3, 0.2, 0.1], 2.0)
    >>> paths_figure(optrand.solve(problem)).get_suptitle()
    'A mixture of 3 randomized responses on 2 to 3 bins: 4 labels, ε = 2'
    """
    paths = decompose_paths(subject)
    few, many = int(paths.bins.min()), int(paths.bins.max())
    bins = counted(many, "bin") if few == many else f"{few:,} to {many:,} bins"
    with canvas(STYLE, ax, size, (7.2, 4.2), title=title) as figure:
        draw_paths(figure, paths, labels)
        mixture = f"A mixture of {len(paths):,} randomized responses" if len(paths) > 1 else "Randomized response"
        figure.suptitle(
            f"{mixture} on {bins}: {counted(paths.labels.size, 'label')}, ε = {math.log(paths.ratio):g}", fontsize=9
        )
    return figure


def _caption(table: Randomizer, certificate: Certificate | None) -> str:
    parts = [f"ε = {table.epsilon:g}", counted(table.k, "label"), counted(table.n, "output")]
    if certificate is not None:
        known = math.isfinite(certificate.gap)
        parts.append(f"certified gap {above(certificate.gap, 2)}" if known else "no certified gap")
        parts.append(f"realised ε ≤ {above(certificate.epsilon, 6)}")
    return ", ".join(parts)
