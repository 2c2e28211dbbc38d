"""Optimal label-differential-privacy randomizers, with proofs.

State a problem, solve it, certify the answer, turn it into an exact mechanism, and release labels with it:

>>> import optrand
>>> problem = optrand.unbiased_regression(labels=[0, 1, 2], prior=[0.5, 0.3, 0.2], epsilon=1.0)
>>> solution = optrand.solve(problem)
>>> mechanism = optrand.tabulate(solution)
>>> proof = optrand.certify(mechanism).require(gap=1e-9)
>>> proof.epsilon <= 1.0, round(proof.upper, 6)
(True, 1.945447)
>>> noisy = mechanism.sample([0, 2, 1, 1])
>>> noisy.shape
(4,)
"""

from optrand import _moved, baselines, errors, estimate, solvers
from optrand.certificates.certificate import Certificate, certify, lower_bound
from optrand.certificates.largest_loss import certify_largest_loss as certify_largest_loss
from optrand.certificates.largest_loss import label_losses as label_losses
from optrand.closed_forms import RRWithPriorBatch, debiased_rr, rr, rr_top_k, rr_with_prior, rr_with_prior_batch
from optrand.errors import Infeasible, InvalidFile, InvalidInput, NotCertified, OptrandError
from optrand.mechanism.mechanism import Mechanism, load
from optrand.mechanism.paths import decompose_paths
from optrand.mechanism.tabulation import tabulate
from optrand.model import losses
from optrand.model.outputs import Grid, Interval, Line, feasible_output_set
from optrand.model.problem import Problem, classification, regression, unbiased_range, unbiased_regression
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution, Stats
from optrand.sampling.rounding import unbiased_rounding
from optrand.solvers import rr_on_bins, solve
from optrand.studies.adaptive import AdaptiveOutputs, adaptive_outputs
from optrand.studies.continuous import ContinuousMechanism, KnotCount, continuous_mechanism, knot_sweep
from optrand.studies.inverse import EpsilonBracket, smallest_epsilon
from optrand.studies.knots import ContinuousPrior, Knots, place_knots
from optrand.studies.sweeps import Sweep, SweepRow, sweep
from optrand.studies.worst_case import Minimax, minimax

__all__ = [
    "AdaptiveOutputs",
    "Certificate",
    "ContinuousMechanism",
    "ContinuousPrior",
    "Dual",
    "EpsilonBracket",
    "Grid",
    "Infeasible",
    "Interval",
    "InvalidFile",
    "InvalidInput",
    "KnotCount",
    "Knots",
    "Line",
    "Mechanism",
    "Minimax",
    "NotCertified",
    "OptrandError",
    "Problem",
    "RRWithPriorBatch",
    "Randomizer",
    "Solution",
    "Stats",
    "Sweep",
    "SweepRow",
    "adaptive_outputs",
    "baselines",
    "certify",
    "classification",
    "continuous_mechanism",
    "debiased_rr",
    "decompose_paths",
    "errors",
    "estimate",
    "feasible_output_set",
    "knot_sweep",
    "load",
    "losses",
    "lower_bound",
    "minimax",
    "place_knots",
    "regression",
    "rr",
    "rr_on_bins",
    "rr_top_k",
    "rr_with_prior",
    "rr_with_prior_batch",
    "smallest_epsilon",
    "solve",
    "solvers",
    "sweep",
    "tabulate",
    "unbiased_range",
    "unbiased_regression",
    "unbiased_rounding",
]

__version__ = "0.1.0"

_moved.install()
__getattr__ = _moved.moved_name
