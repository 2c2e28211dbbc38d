"""Optimal label-differential-privacy randomizers, with proofs.

State a problem, solve it, look at the proof, and release labels with the mechanism.

>>> import optrand
>>> problem = optrand.unbiased_regression(
...     labels=[0, 1, 2], prior=[0.5, 0.3, 0.2], epsilon=1.0
... )
>>> mechanism = optrand.solve(problem)
>>> proof = mechanism.certificate.require(gap=1e-9)
>>> proof.epsilon <= 1.0, round(proof.upper, 6)
(True, 1.945447)
>>> mechanism.sample([0, 2, 1, 1]).shape
(4,)

============================  ===========================================================================
:func:`classification`        problem: keep a class as often as possible
:func:`unbiased_regression`   problem: unbiased noisy numbers of least squared error
:func:`regression`            problem: noisy numbers, biased or with a bias penalty
:func:`feasible_output_set`   grid of outputs on which an unbiased randomizer exists, [B23] Algorithm 2
:func:`mesh_size`             number of its outputs that a tolerance needs, [B23] Lemma 8
:func:`adaptive_outputs`      few outputs, placed for a problem
:func:`unbiased_range`        smallest interval with an unbiased randomizer
:class:`Problem`              labels, prior, epsilon, loss, outputs and bias penalty
:class:`Grid`                 outputs from a list
:class:`Interval`             outputs within limits
:mod:`losses`                 squared, absolute, Poisson and zero-one loss, and tables of numbers
:func:`solve`                 best mechanism of a problem, with the dual that proves it
:func:`solve_many`            many problems at once
:func:`unbiased_vectors`      unbiased noisy one-hot vectors of classes
:class:`Dual`                 multipliers of the rows and means
:func:`rr`                    randomized response
:func:`rr_top_k`              randomized response on the k likeliest labels, [G21]
:func:`rr_with_prior`         best randomizer of classes, [G21]
:func:`rr_on_bins`            least squared error, biased, [GKK23]
:func:`debiased_rr`           debiased randomized response, [B23]
:func:`certify`               exact proof of privacy, bias and distance from the optimum
:class:`Certificate`          the proven bounds
:func:`lower_bound`           bound on the loss of every private randomizer, from a dual
:func:`audit`                 exact epsilon and bias of any table of probabilities
:class:`Mechanism`            integer table, private by construction: sampled, saved, loaded
:class:`Table`                labels, outputs and integer weights of a mechanism
:func:`load`                  saved mechanism, verified again
:func:`unbiased_rounding`     numbers rounded to one of two neighbours, right on average
:func:`continuous_mechanism`  mechanism of a continuum of labels: rounding, then a table
:func:`randomize`             private release of an array or a column of a frame
:func:`load_release`          saved record of a release, verified again
:mod:`estimate`               means, histograms and losses from a release
:mod:`learning`               models of private labels
:mod:`plotting`               pictures and reports
:mod:`baselines`              randomizers that the papers compare with
:mod:`closed_forms`           randomizers that need no solver
:mod:`programs`               the papers' linear programs, for every notion of privacy, with proofs
:mod:`solvers`                algorithms and their options
:mod:`studies`                sweeps, worst priors, inverse problems, continuous priors
:mod:`states`                 event-level reports of ad measurement
:mod:`vectors`                decoders and subsets of classes
:mod:`errors`                 exceptions
============================  ===========================================================================
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers find names by these aliases. Those of an ``__all__`` would fill pages of ``help(optrand)``.
    from optrand import baselines as baselines
    from optrand import closed_forms as closed_forms
    from optrand import errors as errors
    from optrand import estimate as estimate
    from optrand import learning as learning
    from optrand import losses as losses
    from optrand import plotting as plotting
    from optrand import programs as programs
    from optrand import solvers as solvers
    from optrand import states as states
    from optrand import studies as studies
    from optrand import vectors as vectors
    from optrand.audits import audit as audit
    from optrand.certificates._bound import lower_bound as lower_bound
    from optrand.certificates._certificate import Certificate as Certificate
    from optrand.certificates._certificate import certify as certify
    from optrand.closed_forms import debiased_rr as debiased_rr
    from optrand.closed_forms import rr as rr
    from optrand.closed_forms import rr_top_k as rr_top_k
    from optrand.closed_forms import rr_with_prior as rr_with_prior
    from optrand.mechanism import Mechanism as Mechanism
    from optrand.model._meshes import feasible_output_set as feasible_output_set
    from optrand.model._meshes import mesh_size as mesh_size
    from optrand.model._problem import Dual as Dual
    from optrand.model._problem import Grid as Grid
    from optrand.model._problem import Interval as Interval
    from optrand.model._problem import Problem as Problem
    from optrand.model._problem import classification as classification
    from optrand.model._problem import regression as regression
    from optrand.model._problem import unbiased_range as unbiased_range
    from optrand.model._problem import unbiased_regression as unbiased_regression
    from optrand.model._table import Table as Table
    from optrand.programs._mechanism import load as load
    from optrand.release._in_memory import randomize as randomize
    from optrand.release._record import load_release as load_release
    from optrand.sampling import unbiased_rounding as unbiased_rounding
    from optrand.solvers import rr_on_bins as rr_on_bins
    from optrand.solvers import solve as solve
    from optrand.studies import adaptive_outputs as adaptive_outputs
    from optrand.studies import continuous_mechanism as continuous_mechanism
    from optrand.studies import solve_many as solve_many
    from optrand.vectors import unbiased_vectors as unbiased_vectors

__version__ = "0.1.0"

_HOMES = {
    name: f"optrand.{home}"
    for home, names in {
        "audits": "audit",
        "certificates._bound": "lower_bound",
        "certificates._certificate": "Certificate certify",
        "closed_forms": "debiased_rr rr rr_top_k rr_with_prior",
        "mechanism": "Mechanism",
        "model._meshes": "feasible_output_set mesh_size",
        "model._problem": "Dual Grid Interval Problem classification regression unbiased_range unbiased_regression",
        "model._table": "Table",
        "programs._mechanism": "load",
        "release._in_memory": "randomize",
        "release._record": "load_release",
        "sampling": "unbiased_rounding",
        "solvers": "rr_on_bins solve",
        "studies": "adaptive_outputs continuous_mechanism solve_many",
        "vectors": "unbiased_vectors",
    }.items()
    for name in names.split()
}
"""Module of each function and class of this package."""

_LISTED = {"baselines", "closed_forms", "errors", "estimate", "learning", "losses", "plotting"}
_LISTED |= {"programs", "solvers", "states", "studies", "vectors"}
"""Packages and modules that the overview lists."""

_MODULES = _LISTED | {"accounting", "audits", "base", "certificates", "data"}
_MODULES |= {"mechanism", "model", "release", "sampling", "theory"}
"""All packages and modules of this package."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first used. ``import *`` imports none of them."""
    if name not in {*_MODULES, *_HOMES}:
        from optrand.base._suggestions import missing_name

        raise missing_name(__name__, name, [*_HOMES, *_MODULES])
    try:
        module = importlib.import_module(_HOMES.get(name, f"optrand.{name}"))
    except ModuleNotFoundError as error:
        from optrand.errors import missing_extra

        raise missing_extra(error) or error from error
    found: Any = module if name in _MODULES else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the names of the overview, and those that every module has."""
    every = {name for name, value in globals().items() if name.startswith("__") and not callable(value)}
    return sorted({*_HOMES, *_LISTED} | every)
