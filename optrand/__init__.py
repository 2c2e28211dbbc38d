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

===========================  ===========================================================================
:func:`classification`       problem: keep a class as often as possible
:func:`unbiased_regression`  problem: unbiased noisy numbers of least squared error
:func:`regression`           problem: noisy numbers at a price of bias
:func:`feasible_output_set`  grid of outputs on which an unbiased randomizer exists
:func:`unbiased_range`       least range of outputs that allows no bias
:class:`Problem`             labels, prior, epsilon, loss, outputs and bias penalty
:class:`Grid`                outputs from a list
:class:`Interval`            outputs within limits
:mod:`losses`                squared, absolute, Poisson and zero-one loss, and tables of numbers
:func:`solve`                best randomizer of a problem, with the dual that proves it
:func:`solve_many`           many problems at once
:func:`unbiased_vectors`     unbiased noisy one-hot vectors of classes
:class:`Solution`            problem, randomizer in floats and dual: a claim
:class:`Randomizer`          finite channel from labels to outputs
:class:`Dual`                multipliers of the rows and means
:func:`rr`                   randomized response
:func:`rr_top_k`             randomized response on the k likeliest labels, [G21]
:func:`rr_with_prior`        best randomizer of classes, [G21]
:func:`rr_on_bins`           least squared error with bias, [GKK23]
:func:`debiased_rr`          debiased randomized response, [B23]
:func:`certify`              exact proof of privacy, bias and distance from the optimum
:class:`Certificate`         what was proven
:func:`lower_bound`          loss that no private randomizer undercuts, from a dual
:func:`audit`                exact epsilon and bias of anybody's table of probabilities
:func:`tabulate`             exact integer mechanism of a solution
:class:`Mechanism`           integer table, private by construction: sampled, saved, loaded
:func:`load`                 saved mechanism, verified again
:func:`randomize`            private release of an array or a column of a frame
:mod:`estimate`              means, histograms and losses from a release
:mod:`learning`              models of private labels
:mod:`plotting`              pictures and reports
:mod:`baselines`             randomizers that the papers compare with
:mod:`closed_forms`          randomizers that need no solver
:mod:`solvers`               algorithms and their options
:mod:`studies`               sweeps, worst priors, inverse problems, continuous priors, optima in rationals
:mod:`states`                event-level reports of ad measurement
:mod:`vectors`               decoders and subsets of classes
:mod:`errors`                exceptions
===========================  ===========================================================================

Each name is imported when it is first asked for: ask for names one by one, not for ``*``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from optrand import _moved

if TYPE_CHECKING:
    from optrand import baselines, closed_forms, errors, estimate, learning, plotting, solvers, states, studies, vectors
    from optrand.audits import audit
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
    from optrand.release.arrays import randomize
    from optrand.solvers import rr_on_bins, solve
    from optrand.studies import solve_many
    from optrand.vectors import unbiased_vectors

    # For type checkers alone: of names in ``__all__`` ``help(optrand)`` prints page after page.
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

_HOMES = {
    name: f"optrand.{home}"
    for home, names in {
        "audits": "audit",
        "certificates.certificate": "Certificate certify lower_bound",
        "certificates.largest_loss": "certify_largest_loss label_losses",
        "closed_forms": "debiased_rr rr rr_top_k rr_with_prior",
        "mechanism": "Mechanism load tabulate",
        "model.outputs": "Grid Interval feasible_output_set",
        "model.problem": "Problem classification regression unbiased_range unbiased_regression",
        "model.randomizer": "Randomizer",
        "model.solution": "Dual Solution",
        "release.arrays": "randomize",
        "solvers": "rr_on_bins solve",
        "studies": "solve_many",
        "vectors": "unbiased_vectors",
    }.items()
    for name in names.split()
}
"""Module of every function and class here."""

_MODULES = {
    name: f"optrand.{above}{name}"
    for above, names in {
        "": "accounting audits base baselines certificates closed_forms data errors estimate learning mechanism model "
        "plotting release sampling solvers states studies theory vectors",
        "model.": "losses",
    }.items()
    for name in names.split()
}
"""Every package and module here."""

_INNER = {
    "accounting",
    "audits",
    "base",
    "certificates",
    "certify_largest_loss",
    "data",
    "label_losses",
    "mechanism",
    "model",
    "release",
    "sampling",
    "theory",
}
"""What is found here, but belongs to no first look at the package."""

_moved.install()


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for; what version 0.1 had here is found, too."""
    if name in _MODULES:
        found: Any = importlib.import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        return _moved.moved_name(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The names of the overview above, and what every module has."""
    every = {name for name, value in globals().items() if name.startswith("__") and not callable(value)}
    return sorted(({*_HOMES, *_MODULES} - _INNER) | every)
