"""Pictures of randomizers, and of the proof that one is best.

Nothing here shows a window or touches matplotlib's global state: each function returns a
:class:`matplotlib.figure.Figure`, which :func:`save_figure` writes whole or not at all. Every picture can be read in
grey, and no meaning rests on colour alone; what is too large to be seen one by one is shown in groups, and its title
says so. ``import optrand`` does not import this package.
"""

from optrand.plotting.figures import matrix_figure, mechanism_figure, paths_figure, pmf_figure
from optrand.plotting.optimality import dual_figure, flow_figure, joint_figure
from optrand.plotting.saving import save_figure

__all__ = [
    "dual_figure",
    "flow_figure",
    "joint_figure",
    "matrix_figure",
    "mechanism_figure",
    "paths_figure",
    "pmf_figure",
    "save_figure",
]
