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

import importlib
from typing import TYPE_CHECKING, Any

from optrand import _moved, baselines, closed_forms, errors, estimate, solvers, studies, vectors
from optrand.certificates.certificate import Certificate, certify, lower_bound
from optrand.certificates.largest_loss import certify_largest_loss as certify_largest_loss
from optrand.certificates.largest_loss import label_losses as label_losses
from optrand.closed_forms import debiased_rr, rr, rr_top_k, rr_with_prior
from optrand.mechanism import Mechanism, load, tabulate
from optrand.model import losses
from optrand.model.outputs import Grid, Interval, feasible_output_set
from optrand.model.problem import Problem, classification, regression, unbiased_range, unbiased_regression
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Dual, Solution
from optrand.solvers import rr_on_bins, solve
from optrand.studies import solve_many
from optrand.vectors import unbiased_vectors

if TYPE_CHECKING:
    from optrand.audits import audit as audit
    from optrand.release.arrays import randomize as randomize

__all__ = [
    "Certificate",
    "Dual",
    "Grid",
    "Interval",
    "Mechanism",
    "Problem",
    "Randomizer",
    "Solution",
    "audit",
    "baselines",
    "certify",
    "classification",
    "closed_forms",
    "debiased_rr",
    "errors",
    "estimate",
    "feasible_output_set",
    "learning",
    "load",
    "losses",
    "lower_bound",
    "plotting",
    "randomize",
    "regression",
    "rr",
    "rr_on_bins",
    "rr_top_k",
    "rr_with_prior",
    "solve",
    "solve_many",
    "solvers",
    "states",
    "studies",
    "tabulate",
    "unbiased_range",
    "unbiased_regression",
    "unbiased_vectors",
    "vectors",
]

__version__ = "0.1.0"

_moved.install()


def __getattr__(name: str) -> Any:
    """Import audit, learning, plotting, randomize and states, which load much, when they are first asked for.

    What version 0.1 had here is found, too.
    """
    if name in ("learning", "plotting", "states"):
        return importlib.import_module(f"optrand.{name}")
    if name == "audit":
        return importlib.import_module("optrand.audits").audit
    if name == "randomize":
        return importlib.import_module("optrand.release.arrays").randomize
    return _moved.moved_name(name)
