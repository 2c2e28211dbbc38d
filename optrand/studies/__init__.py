"""Many problems, inverse problems, worst cases, continuous priors, adaptive outputs and mixtures of bins.

============================  ====================================================================
:func:`solve_many`            many problems at once
:func:`sweep`                 problems over epsilons, penalties and label sets
:func:`smallest_epsilon`      least epsilon whose optimum reaches a loss
:func:`minimax`               least loss under the worst prior
:func:`adaptive_outputs`      few outputs, placed for the problem, at most a given share above the optimum
:func:`place_knots`           labels that represent a continuum of labels, placed for its prior
:func:`continuous_mechanism`  mechanism of a continuum of labels, by knots and unbiased rounding
:func:`decompose_paths`       mechanism as a mixture of randomized responses on bins
:func:`count_outputs`         number of outputs before rounding to floats
============================  ====================================================================
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.studies._adaptive import AdaptiveOutputs, adaptive_outputs
from optrand.studies._continuous import (
    ContinuousMechanism,
    ContinuousPrior,
    Knots,
    continuous_mechanism,
    place_knots,
)
from optrand.studies._many import Sweep, SweepRow, solve_many, sweep
from optrand.studies._paths import Path, Paths, count_outputs, decompose_paths
from optrand.studies._unknowns import EpsilonBracket, minimax, smallest_epsilon

__all__ = [
    "AdaptiveOutputs",
    "ContinuousMechanism",
    "ContinuousPrior",
    "EpsilonBracket",
    "Knots",
    "Path",
    "Paths",
    "Sweep",
    "SweepRow",
    "adaptive_outputs",
    "continuous_mechanism",
    "count_outputs",
    "decompose_paths",
    "minimax",
    "place_knots",
    "smallest_epsilon",
    "solve_many",
    "sweep",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
