"""Pictures of randomizers, of comparisons between them, and of proofs of optimality.

Every function ``..._figure`` draws at `ax`: in a figure or a part of one, or in the place of axes, which the picture
fills with panels, scales and legends of its own. Without `ax` it draws in a new figure. The axes stay above the picture
as an invisible line, with a title if one is set on them, and a second picture replaces the first. A figure without a
layout engine gets ``"constrained"``, which keeps letters apart. One that was chosen is kept.

The size of the place decides how titles and legends break, how many labels have a tick or a panel, and whether panels
stand side by side, on a column of 3.3 inches or a page of 7. Letters have 7 or 8 points and the font family
of the session. Paper is white, whatever the style of the session. Outputs whose largest probability is below 1e-9 are
left out, and are not counted in titles.

It returns the picture, a :class:`~matplotlib.figure.Figure`, or the :class:`~matplotlib.figure.SubFigure` in the place
of `ax`, whose ``axes`` are the panels. Their artists hold the numbers that are drawn, and have labels by which they are
found. ``picture.suptitle("")`` removes the title, such as for a caption in its place.

:func:`save_figure` writes a picture. No function shows a window or touches matplotlib's global state. Every picture can
be read in grey. ``import optrand`` does not import this package.

Examples
--------
>>> import optrand
>>> from matplotlib.figure import Figure
>>> page = Figure(figsize=(7, 3.5))
>>> left, right = page.subplots(1, 2)
>>> shape = pmf_figure(optrand.debiased_rr([0, 1, 2], 1.0), ax=left)
>>> noise = pmf_figure(
...     optrand.baselines.Laplace(optrand.Interval(0, 2), 1.0), labels=[0, 1, 2], ax=right
... )
>>> len(shape.axes), len(noise.axes), page.get_layout_engine() is not None
(3, 3, True)
>>> left.set_title("(a)").get_text()
'(a)'
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.plotting._comparisons import frontier_figure, moments_figure, times_figure
from optrand.plotting._randomizer import joint_figure, matrix_figure, pmf_figure
from optrand.plotting._releases import composition_figure, groups_figure, rr_with_prior_figure, shares_figure
from optrand.plotting._saving import save_figure
from optrand.plotting._structure import dual_figure, flow_figure, phases_figure

__all__ = [
    "composition_figure",
    "dual_figure",
    "flow_figure",
    "frontier_figure",
    "groups_figure",
    "joint_figure",
    "matrix_figure",
    "moments_figure",
    "phases_figure",
    "pmf_figure",
    "rr_with_prior_figure",
    "save_figure",
    "shares_figure",
    "times_figure",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
