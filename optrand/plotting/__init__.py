"""Pictures of randomizers, and of the proof that one is best.

Each function returns a :class:`matplotlib.figure.Figure`, for :func:`save_figure`; none shows a window or touches
matplotlib's global state. Every picture can be read in grey; large tables are shown in groups, as the title says.
``import optrand`` does not import this package.
"""

from optrand.plotting.comparisons.composition import composition_figure
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
    "gap_figure",
    "groups_figure",
    "joint_figure",
    "matrix_figure",
    "mechanism_figure",
    "paths_figure",
    "phases_figure",
    "pmf_figure",
    "save_figure",
]
