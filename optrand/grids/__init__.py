"""Placement of outputs and knots.

===========================  =================================================================
:func:`feasible_output_set`  evenly spaced outputs on which an unbiased randomizer exists
:func:`adaptive_outputs`     few outputs, placed for the problem, that lose at most a given share
:func:`place_knots`          labels that stand for a continuum of labels, placed for its prior
===========================  =================================================================

Both placements rest on the exact dynamic programme of :mod:`optrand.grids.placement`.
"""

from optrand.grids.adaptive import AdaptiveOutputs, adaptive_outputs
from optrand.grids.knots import ContinuousPrior, Knots, place_knots
from optrand.model.outputs import feasible_output_set

__all__ = [
    "AdaptiveOutputs",
    "ContinuousPrior",
    "Knots",
    "adaptive_outputs",
    "feasible_output_set",
    "place_knots",
]
