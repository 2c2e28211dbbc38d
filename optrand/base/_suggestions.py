"""Answers to names that do not exist: the nearest name that does, or the one for a word of another library.

The words are those of cvxpy, scikit-learn, OpenDP, diffprivlib and POT.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

T = TypeVar("T")

NAMES = {
    "baselines": "anonymize exponential exponential_mechanism gaussian measurements mechanisms noise",
    "baselines.DiscreteLaplace": "geometric",
    "baselines.Laplace": "add_noise laplacian laplace_mechanism make_laplace",
    "baselines.Staircase": "staircase_mechanism",
    "Mechanism": "compose composition draw measurement result sample solution",
    "Problem": "minimize maximize optimize variable",
    "accounting.Ledger": "budget budget_accountant budget_tracker",
    "accounting.Odometer": "accountant",
    "adaptive_outputs": "adaptive_grid",
    "certify": "prove verify check proof",
    "data.weeks_worked_path": "census datasets fetch_census load_census load_data load_dataset load_weeks_worked "
    "weeks_worked",
    "debiased_rr": "unbiased_rr debias",
    "classification": "classify",
    "errors": "exceptions privacy_leak_warning",
    "__version__": "version",
    "errors.Infeasible": "infeasible_error",
    "errors.OverBudget": "budget_error budget_exceeded",
    "errors.SolverFailed": "solver_error",
    "estimate": "frequencies frequency metrics tools variance confidence_interval",
    "estimate.histogram": "prior_from estimate_prior prior",
    "learning": "fit models predict train",
    "learning.LabelDPClassifier": "classifier dp_classifier label_dp label_dp_logistic_regression logistic_regression "
    "random_forest_classifier",
    "learning.LabelDPRegressor": "dp_regressor label_dp_regression linear_regression random_forest_regressor regressor "
    "ridge",
    "learning.PrivateLabels": "private_dataset",
    "feasible_output_set": "algorithm2",
    "load": "open read",
    "losses": "loss",
    "mesh_size": "mesh",
    "losses.Tabulated": "cross_entropy custom hinge huber",
    "losses.absolute": "absolute_loss mae",
    "losses.poisson_log": "poisson",
    "losses.squared": "least_squares mse squared_loss",
    "plotting": "figure heatmap plot show",
    "plotting.frontier_figure": "frontier",
    "plotting.matrix_figure": "matrix",
    "plotting.pmf_figure": "pmf",
    "plotting.save_figure": "save save_fig",
    "programs": "constraints linprog parameter",
    "programs.Approximate": "approx approximate_dp",
    "programs.Cvxpy": "clarabel ecos gurobi mosek osqp scs",
    "programs.Highs": "glpk highspy",
    "randomize": "add_privacy privatize randomise randomizer",
    "rr": "binary generalized_randomized_response grr k_ary_randomized_response krr make_randomized_response "
    "make_randomized_response_bool randomized_response uniform_rr",
    "rr_on_bins": "bin_response",
    "sampling.SeededEntropy": "random_state rng seed set_seed",
    "solve": "linear_programming lp",
    "solvers.ReducedDual": "flow interior_point",
    "solvers.choose": "available available_solvers installed_solvers",
    "studies.minimax": "worst_prior",
    "studies.smallest_epsilon": "binary_search calibrate find_epsilon inverse least_epsilon minimum_epsilon",
    "studies.sweep": "grid_search",
    "unbiased_regression": "regress unbiased",
    "unbiased_rounding": "urr round",
}
"""Public names, and other words for each, in lower case."""

HOMES = {
    "accounting": "Ledger Odometer Spent",
    "baselines": "DiscreteLaplace Laplace Staircase UnaryBits",
    "estimate": "histogram mean",
    "learning": "LabelDPClassifier LabelDPRegressor PrivateLabels",
    "losses": "Tabulated absolute poisson_log squared zero_one",
    "plotting": "frontier_figure matrix_figure pmf_figure save_figure",
    "programs": "Cvxpy Highs Program algorithm1 lp1 lp2",
    "solvers": "GridDual ReducedDual",
    "studies": "minimax smallest_epsilon sweep",
}
"""Names one level further inside, for which people look at the top."""

PARAMETERS = {
    "backend": "method solver",
    "bias_penalty": "alpha bias_weight lam penalty",
    "column": "col columns label name target",
    "epsilon": "eps privacy_budget",
    "epsilons": "eps epsilon",
    "ax": "axes axis figure",
    "estimator": "base_estimator model",
    "knots": "n_bins n_knots",
    "n": "n_outputs size",
    "tolerance": "gap tol",
    "executor": "n_jobs pool processes workers",
    "gap": "tol tolerance",
    "again": "force spend_again",
    "force": "exist_ok overwrite",
    "labels": "bounds categories classes domain k n_classes range values",
    "ledger": "accountant budget_accountant",
    "loss": "cost objective target value",
    "outputs": "bounds domain grid mesh range",
    "prior": "counts p pmf priors probabilities public_prior weights",
    "randomizer": "mechanism method",
    "random_state": "generator rng seed",
    "solver": "algorithm backend method",
}
"""Words for parameters of ours: the first that a function has is named."""

ADVICE = {
    "delta": "a program has one, not a problem: optrand.programs.Approximate(epsilon, delta)",
    "max_iter max_iters tol tolerance warm_start abstol reltol eps_abs gp": "options of an algorithm are fields of its "
    "class in optrand.solvers, and each answer has its proven gap: mechanism.certificate.require(gap=1e-9)",
    "generator random_state rng seed": "there is no seed: noise that others can draw again is not private. Leave it "
    "out, or in an experiment pass source=optrand.sampling.SeededEntropy(seed)",
    "figsize size width height": "make the figure and pass it: ax=matplotlib.pyplot.figure(figsize=(3.3, 2.8))",
    "filename path save savefig save_path": "a picture is returned: optrand.plotting.save_figure(figure, path)",
    "time_limit": "many problems have one: optrand.solve_many(problems, time_limit=seconds)",
    "verbose": "nothing is printed: mechanism.summary() describes an answer",
}
"""Sentences about parameters that nothing here has."""


def nearby(name: str, known: Iterable[str]) -> str:
    """Return the sentence part that names the nearest of some public names, or all of them if no name is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name.casefold(), names, n=1)
    return f"did you mean {near[0]!r}?" if near else "expected one of " + ", ".join(map(repr, names))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the name that differs in case, spaces and punctuation only, or else in few letters, if there is one.

    It reveals next to nothing that was not given.

    Examples
    --------
    >>> nearest_name("weeks_worked", ["id", "Weeks worked "]), nearest_name("weeks", ["id"])
    ('Weeks worked ', None)
    """
    bare = {_bare(each): each for each in reversed(list(known))}
    near = difflib.get_close_matches(_bare(name), bare, n=1, cutoff=0.75) if _bare(name) else []
    return bare[near[0]] if near else None


def missing(path: Path) -> str:
    """Describe a path that is no file: a folder, something else, or missing, with the nearest name that exists."""
    if path.is_dir():
        return "a folder, not a file"
    if path.exists():
        return "not a regular file"
    if not path.parent.is_dir():
        return f"not there, nor is its folder {path.parent}"
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"not there, but {path.with_name(near[0])} is" if near else "not there"


def missing_name(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have: with the nearest that exists, if one is near."""
    return AttributeError(
        f"module {module!r} has no attribute {name!r}" + ("" if name.startswith("_") else _found(module, name, names))
    )


def _found(module: str, name: str, names: Iterable[str]) -> str:
    own = {_bare(each): f"{module}.{each}" for each in names}
    ours = {_bare(each): f"optrand.{home}.{each}" for home, inside in HOMES.items() for each in inside.split()}
    ours |= {_bare(word): f"optrand.{path}" for path, words in NAMES.items() for word in words.split()}
    known = {**ours, **own}
    near = [_bare(name)] if _bare(name) in known else difflib.get_close_matches(_bare(name), own, n=1, cutoff=0.75)
    return f": did you mean {known[near[0]]}?" if near else ""


def public_names(module: str, names: Iterable[str]) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module, which suggest and list its public names."""
    public = sorted(names)

    def refuse(name: str) -> NoReturn:
        raise missing_name(module, name, public)

    def list_names() -> list[str]:
        return sorted([*public, *(name for name in vars(sys.modules[module]) if name.startswith("__"))])

    return refuse, list_names


def suggest_attributes(words: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Make objects of a class answer the attributes that other libraries have.

    Parameters
    ----------
    words : mapping
        Our expressions, each with the words for it, separated by spaces.
    """
    answers = {word: answer for answer, each in words.items() for word in each.split()}

    def refuse(self: object, name: str) -> NoReturn:
        answer = answers.get(name)
        if answer is None and not name.startswith("_"):
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            answer = next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)
        hint = f": did you mean {answer}?" if answer else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def extend(kind: type[T]) -> type[T]:
        # Not in the class's body, where type checkers would take any attribute to exist.
        kind.__getattr__ = refuse  # type: ignore[attr-defined]
        return kind

    return extend


def advise(name: str, parameters: list[str]) -> str:
    """Return the sentence part about a parameter that a function does not have."""
    for parameter in parameters:
        if name in PARAMETERS.get(parameter, "").split():
            return f"did you mean {parameter!r}?"
    return next((advice for words, advice in ADVICE.items() if name in words.split()), nearby(name, parameters))


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
