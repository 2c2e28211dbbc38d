"""Names of other libraries, and misspelt ones, are answered with ours. Type checkers still see no such names."""

import importlib
import inspect
import re
from functools import reduce

import numpy as np
import pytest
from asserting import assert_error, by_case

import optrand
from optrand import errors
from optrand.base import _suggestions
from optrand.base._validation import suggest_parameters
from optrand.learning import LabelDPRegressor, PrivateLabels
from optrand.programs import lp1

PROBLEM = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
MECHANISM = optrand.solve(PROBLEM)
SWEEP = optrand.studies.sweep(PROBLEM)
PROGRAM = lp1([0.5, 0.3, 0.2], 1.0)

PUBLIC = ["accounting", "audits", "baselines", "closed_forms", "data", "estimate", "learning", "losses", "plotting"]
PUBLIC += ["programs", "release", "sampling", "solvers", "states", "studies", "theory", "vectors"]


@by_case(
    "where, name, answer",
    (optrand, "Laplace", "optrand.baselines.Laplace"),
    (optrand, "RRWithPrior", "optrand.rr_with_prior"),
    (optrand, "LabelDPRegressor", "optrand.learning.LabelDPRegressor"),
    (optrand, "make_randomized_response", "optrand.rr"),
    (optrand, "k_RR", "optrand.rr"),
    (optrand, "GridDual", "optrand.solvers.GridDual"),
    (optrand, "Tabulated", "optrand.losses.Tabulated"),
    (optrand, "BudgetAccountant", "optrand.accounting.Ledger"),
    (optrand.baselines, "laplace", "optrand.baselines.Laplace"),
    (optrand.programs, "LP1", "optrand.programs.lp1"),
    (optrand.studies, "find_epsilon", "optrand.studies.smallest_epsilon"),
    (optrand.losses, "mse", "optrand.losses.squared"),
    (optrand.data, "load_census", "optrand.data.weeks_worked_path"),
    (optrand, "version", "optrand.__version__"),
    (MECHANISM, "rng", "sample(values, source=optrand.sampling.SeededEntropy(seed))"),
    (PROBLEM, "solve", "optrand.solve(problem)"),
    (PROBLEM, "eps", "epsilon"),
    (MECHANISM, "gap", "certificate.gap"),
    (MECHANISM, "probabilities", "matrix"),
    (MECHANISM, "randomise", "sample(values)"),
    (MECHANISM, "sampel", "sample"),
    (MECHANISM.certificate, "status", "require(gap=1e-9)"),
    (PROGRAM, "subject_to", "add(name, coefficients, sense, bound)"),
    (PROGRAM.solve(), "fun", "value"),
    (SWEEP, "to_frame", "pandas.DataFrame(sweep.records())"),
    (SWEEP, "values", "arrays()"),
)
def test_an_attribute_of_another_library_is_answered(where: object, name: str, answer: str) -> None:
    assert_error(rf"did you mean {re.escape(answer)}\?$", getattr, where, name, error=AttributeError)


def test_a_name_that_is_near_nothing_is_not_answered() -> None:
    for where in (optrand.programs, MECHANISM):
        with pytest.raises(AttributeError, match=r"^(?!.*did you mean)"):
            _ = where.xyzzy  # type: ignore[union-attr, attr-defined]
        assert not hasattr(where, "__array_interface__")


@by_case(
    "call, answer",
    (lambda: optrand.rr([0, 1], eps=1.0), "'epsilon'"),
    (lambda: optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0, grid=[0, 1]), "'outputs'"),
    (lambda: optrand.regression([0, 1], [0.5, 0.5], 1.0, penalty=1), "'bias_penalty'"),
    (lambda: optrand.solve(PROBLEM, verbose=True), "mechanism.summary()"),
    (lambda: optrand.solve(PROBLEM, tol=1e-9), "require(gap=1e-9)"),
    (lambda: optrand.solve_many([PROBLEM], n_jobs=2), "'executor'"),
    (lambda: optrand.randomize([0, 1], 1.0, domain=[0, 1]), "'labels'"),
    (lambda: optrand.randomize(["a", "b"], 1.0, classes=["a", "b"]), "'labels'"),
    (lambda: optrand.randomize([0, 1], 1.0, label="y", labels=[0, 1]), "'column'"),
    (lambda: optrand.release.randomize_table("a.csv", "b.csv", None, overwrite=True), "'force'"),
    (lambda: optrand.release.Question(label="y", labels=[0, 1], epsilon=1.0), "'column'"),
    (lambda: optrand.randomize([0, 1], 1.0, labels=[0, 1], random_state=0), "SeededEntropy(seed)"),
    (lambda: MECHANISM.sample([0], random_state=0), "SeededEntropy(seed)"),
    (lambda: PrivateLabels([0, 1], eps=1.0, labels=[0, 1]), "'epsilon'"),
    (lambda: LabelDPRegressor(None, 1.0, seed=1), "'random_state'"),
    (lambda: optrand.audit(MECHANISM.matrix, eps=1.0), "'epsilon'"),
)
def test_a_parameter_of_another_library_is_answered(call: object, answer: str) -> None:
    assert_error(re.escape(answer), call)


@by_case(
    "call, answer",
    (lambda: optrand.certify(PROBLEM, MECHANISM), "certify(mechanism"),
    (lambda: optrand.studies.sweep(PROBLEM, [0.5]), "sweep(problem, *, epsilons"),
    (lambda: optrand.audit(MECHANISM.matrix), "missing a required argument: 'epsilon'"),
    (lambda: optrand.rr_top_k([0.5, 0.5], 1.0, k=2), "multiple values for argument 'k'"),
    (lambda: PrivateLabels([0, 1], 1.0), "PrivateLabels(y, epsilon"),
)
def test_arguments_that_do_not_fit_are_answered_with_the_parameters(call: object, answer: str) -> None:
    assert_error(re.escape(answer), call, error=errors.UnknownParameter)


def test_a_type_error_inside_a_function_stays_what_it_is() -> None:
    @suggest_parameters
    def add(left: int, right: object) -> int:
        return left + right  # type: ignore[operator, no-any-return]

    assert_error("unsupported operand", add, 1, "2", error=TypeError)


def test_every_answer_exists() -> None:
    inside = [f"{home}.{name}" for home, names in _suggestions.HOMES.items() for name in names.split()]
    for path in [*_suggestions.NAMES, *inside]:
        assert reduce(getattr, path.split("."), optrand) is not None, path


def test_no_word_hides_a_name_or_has_two_answers() -> None:
    words = [_suggestions._bare(word) for each in _suggestions.NAMES.values() for word in each.split()]
    names = [_suggestions._bare(name) for each in _suggestions.HOMES.values() for name in each.split()]
    assert len({*words, *names}) == len(words) + len(names)
    for parameter, each in _suggestions.PARAMETERS.items():
        assert parameter not in each.split()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_module_lists_what_is_public(name: str) -> None:
    module = importlib.import_module(f"optrand.{name}")
    assert {each for each in dir(module) if not each.startswith("__")} == set(module.__all__)
    assert inspect.getdoc(module)


def test_wrapped_functions_keep_their_signatures() -> None:
    assert list(inspect.signature(optrand.rr).parameters) == ["labels", "epsilon"]
    assert LabelDPRegressor(None, 1.0).get_params()["epsilon"] == 1.0
    assert np.isfinite(optrand.solve(PROBLEM, solver=None).value)
    assert set(errors.__all__) <= set(dir(errors))
