"""Pictures of randomizers, of comparisons between them, and of the proof that one is best.

Every function `..._figure` has one contract:

``ax``
    Axes, a figure or a part of one to draw in. Axes are replaced by the picture, which may have panels, scales and
    legends of its own: make them by ``plt.subplots(layout="constrained")``. By default the picture is a new figure.
``labels``
    Labels that have a panel or a tick of their own; by default some, evenly spread.
``title``
    Whether the picture has one (off where a caption says it; of :func:`times_figure` its text).
``size``
    Width and height of a new figure in inches; its letters stay as large as they are, 8 or 9 points.

It returns the :class:`~matplotlib.figure.Figure`, or the :class:`~matplotlib.figure.SubFigure` in the place of `ax`:
its ``axes`` are the panels, for more to be drawn on them. :func:`save_figure` writes it. No function shows a window or
touches matplotlib's global state. Every picture can be read in grey; large tables are shown in groups, as the title
says. ``import optrand`` does not import this package.

Examples
--------
>>> import optrand
>>> from matplotlib.figure import Figure
>>> page = Figure(figsize=(7, 3), layout="constrained")
>>> left, right = page.subplots(1, 2)
>>> solution = optrand.debiased_rr([0, 1, 2], 1.0)
>>> noise = optrand.baselines.Laplace(optrand.Interval(0, 2), 1.0)
>>> parts = pmf_figure(solution, ax=left, title=False), pmf_figure(noise, ax=right, title=False, labels=[0, 1, 2])
>>> [len(part.axes) for part in parts], len(page.axes)
([3, 3], 6)
"""

from optrand.plotting.comparisons.composition import composition_figure
from optrand.plotting.comparisons.frontier import frontier_figure
from optrand.plotting.comparisons.kept import rr_with_prior_figure
from optrand.plotting.comparisons.moments import moments_figure
from optrand.plotting.comparisons.shares import shares_figure
from optrand.plotting.comparisons.times import times_figure
from optrand.plotting.figures import matrix_figure, mechanism_figure, paths_figure, pmf_figure
from optrand.plotting.gaps import chord_figure, gap_figure
from optrand.plotting.groups import groups_figure
from optrand.plotting.optimality import dual_figure, flow_figure, joint_figure
from optrand.plotting.phases import phases_figure
from optrand.plotting.saving import save_figure

__all__ = [
    "chord_figure",
    "composition_figure",
    "dual_figure",
    "flow_figure",
    "frontier_figure",
    "gap_figure",
    "groups_figure",
    "joint_figure",
    "matrix_figure",
    "mechanism_figure",
    "moments_figure",
    "paths_figure",
    "phases_figure",
    "pmf_figure",
    "rr_with_prior_figure",
    "save_figure",
    "shares_figure",
    "times_figure",
]
