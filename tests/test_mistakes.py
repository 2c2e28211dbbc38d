"""Mistakes that people make: each is met by an error of ours that states the expected value, or a remedy."""

import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from asserting import assert_error
from commands import invoke

import optrand
from optrand import errors, plotting
from optrand.baselines import Laplace
from optrand.mechanism._tabulation import tabulate
from optrand.solvers import GridDual, design

LABELS, PRIOR = [0, 1, 2], [0.5, 0.3, 0.2]
PROBLEM = optrand.unbiased_regression(LABELS, PRIOR, 1.0)
SOLUTION = design(PROBLEM)
MECHANISM = optrand.solve(PROBLEM)

CALLS: list[tuple[str, Callable[[], object]]] = [
    (r"Interval\(-5, 5\) for all .* Grid\(\[-5, 5\]\)", lambda: optrand.regression(LABELS, PRIOR, 1, outputs=(-5, 5))),
    (r"expected Interval\(low, high\)", lambda: optrand.regression(LABELS, PRIOR, 1, outputs="line")),
    ("pass optrand.losses.absolute", lambda: optrand.regression(LABELS, PRIOR, 1, loss="absolute")),
    ("did you mean 'squared'", lambda: optrand.regression(LABELS, PRIOR, 1, loss="square")),
    ("expected one of optrand.losses", lambda: optrand.regression(LABELS, PRIOR, 1, loss=2)),
    (r"pass optrand.solvers.GridDual\(\)", lambda: optrand.solve(PROBLEM, "grid dual")),
    (r"pass optrand.solvers.GridDual\(\)", lambda: optrand.solve(PROBLEM, GridDual)),
    (r"pass optrand.solvers.ReducedDual\(\)", lambda: optrand.solve(PROBLEM, "reduced_dual")),
    ("such as ReducedDual", lambda: optrand.solve(PROBLEM, 7)),
    (r"solve needs a problem, not a list: make one by", lambda: optrand.solve([0, 1])),
    ("solve needs a problem, not a Solution", lambda: optrand.solve(SOLUTION)),
    (r"not a int: certify\(solve\(problem\)\)", lambda: optrand.certify(1)),
    (r"not a Solution: certify\(solve\(problem\)\)", lambda: optrand.certify(SOLUTION)),
    (r"a table of floats, optrand.audit\(matrix, epsilon\)", lambda: optrand.certify(np.eye(2))),
    (r"a Table: Table.of_rows\(labels, outputs, weights\)", lambda: optrand.Mechanism(PROBLEM, np.eye(3))),
    (r"tabulate\(design\(problem\)\)", lambda: tabulate([1])),
    ("solution is of type Problem, expected that of a solver", lambda: tabulate(PROBLEM)),
    ("dual is of type NoneType, expected a Dual", lambda: optrand.lower_bound(PROBLEM, None)),
    ("labels", lambda: optrand.unbiased_regression("abc", PRIOR, 1)),
    ("would do", lambda: optrand.unbiased_regression(LABELS, PRIOR, 1, outputs=optrand.Interval(0, 2))),
    ("there is no seed", lambda: MECHANISM.sample([0, 1], seed=7)),
    ("there is no seed", lambda: optrand.randomize([0, 1], 1.0, labels=[0, 1], seed=7)),
    (r"SeededEntropy\(seed\)", lambda: MECHANISM.sample([0, 1], source=7)),
    ("declare which labels can occur", lambda: optrand.randomize([0, 1], 1.0, ledger=None)),
    ("expected a list of numbers", lambda: optrand.studies.sweep(PROBLEM, epsilons=1.0)),
    ("problem is of type list, expected one of", lambda: optrand.studies.sweep([0], epsilons=[1.0])),
    ("problem number 0 is of type int", lambda: optrand.solve_many([1])),
    ("mechanism is of type Solution", lambda: optrand.estimate.histogram([0.3], SOLUTION)),
    ("rows is 0, expected an integer", lambda: MECHANISM.summary(0)),
    ("two vectors of one length", lambda: optrand.Dual([1], [1, 2])),
    ("a picture needs a mechanism", lambda: plotting.pmf_figure(5)),
    ("pass labels", lambda: plotting.pmf_figure(Laplace(LABELS, 1.0))),
    ("sweep is of type int", lambda: plotting.frontier_figure(5)),
    ("a row of the sweep is of type int", lambda: plotting.frontier_figure([5])),
    ("it needs a mechanism", lambda: plotting.joint_figure(SOLUTION.randomizer)),
    ("paths need a Mechanism", lambda: plotting.phases_figure(5)),
    ("a dict of functions of epsilon", lambda: plotting.moments_figure([1], PRIOR, epsilons=[1])),
    ("expected a function of epsilon", lambda: plotting.moments_figure({"a": 1}, PRIOR, epsilons=[1])),
    ("epsilons is of type float", lambda: plotting.rr_with_prior_figure(PRIOR, epsilons=1.0)),
    ("a row is of type int", lambda: plotting.times_figure([1], by="k", series="m")),
    ("a dict of mechanisms", lambda: plotting.composition_figure([MECHANISM])),
    (r"such as solve\(problem\)", lambda: plotting.composition_figure({"a": 1})),
    ("a dict of mechanisms", lambda: plotting.groups_figure(MECHANISM)),
    ("expected that of optrand.estimate", lambda: plotting.shares_figure(MECHANISM)),
    ("expected a figure", lambda: plotting.save_figure(5, "x.png")),
    ("name a .png, .svg or .pdf file", lambda: plotting.save_figure(plotting.pmf_figure(SOLUTION), "x.jpg")),
]


@pytest.mark.parametrize(("message", "call"), CALLS, ids=range(len(CALLS)))
def test_calls_say_what_to_do(message: str, call: Callable[[], object]) -> None:
    assert_error(message, call)


def test_files_that_are_not_there_are_named_with_what_is_near(tmp_path: Path) -> None:
    MECHANISM.save(tmp_path / "mechanism.json")
    with pytest.raises(FileNotFoundError, match=r"not there, but .*mechanism.json is"):
        optrand.load(tmp_path / "mechanisms.json")
    assert_error("a folder, not a file", optrand.load, tmp_path, error=IsADirectoryError)
    assert_error("make it first", MECHANISM.save, tmp_path / "none" / "mechanism.json", error=FileNotFoundError)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "people.csv").write_text("id,Weeks worked\n1,0\n2,1\n")
    (tmp_path / "semicolons.csv").write_text("id;weeks\n1;0\n2;1\n")
    (tmp_path / "prior.csv").write_text("0,5\n1,3\n2,2\n")
    return tmp_path


RANDOMIZE = ("--labels", "0:1", "--epsilon", "1", "--dataset", "d")
SWEEP = ("sweep", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1")
COMMANDS = [
    ("did you mean 'Weeks worked'", ("randomize", "people.csv", "o.csv", "--column", "weeks_worked", *RANDOMIZE)),
    ("holds semicolons: name the separator", ("randomize", "semicolons.csv", "o.csv", "--column", "weeks", *RANDOMIZE)),
    ("not there, but people.csv is", ("randomize", "peoples.csv", "o.csv", "--column", "y", *RANDOMIZE)),
    ("make it first", ("randomize", "people.csv", "no/o.csv", "--column", "Weeks worked", *RANDOMIZE)),
    ("a folder, not a file", ("verify", ".")),
    (
        "not there, but prior.csv is",
        ("solve", "--labels", "0:2", "--prior", "priors.csv", "--epsilon", "1", "-o", "m.json"),
    ),
    ("make it first", ("solve", "--labels", "0:2", "--prior", "prior.csv", "--epsilon", "1", "-o", "no/m.json")),
    (".csv or .parquet, name such a file", (*SWEEP, "-o", "s.xlsx")),
    ("has no ending", (*SWEEP, "-o", "s")),
]


@pytest.mark.parametrize(("message", "arguments"), COMMANDS, ids=range(len(COMMANDS)))
@pytest.mark.usefixtures("here")
def test_commands_say_what_to_do(message: str, arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments, code=2)
    assert message in result.stderr


def test_a_sweep_is_written_as_its_name_says(here: Path) -> None:
    from pyarrow import parquet

    invoke(*SWEEP, "-o", "s.parquet", code=0)
    (row,) = parquet.read_table(here / "s.parquet").to_pylist()
    assert row["status"] == "certified"
    assert row["value"] == pytest.approx(MECHANISM.value)


# Numbers that mean something
def test_a_summary_states_the_noise_of_one_label_and_of_a_mean() -> None:
    found = MECHANISM.summary(rows=400)
    # Without bias half the mean squared error is half the variance.
    assert found.deviation == pytest.approx(math.sqrt(2 * MECHANISM.value))
    assert found.mean_deviation == pytest.approx(found.deviation / 20)
    assert found.bias == 0
    biased = optrand.rr_on_bins(LABELS, PRIOR, 1.0).summary()
    assert (biased.deviation**2 + biased.bias**2) / 2 == pytest.approx(biased.value)
    classes = optrand.rr_with_prior(PRIOR, 1.0)
    assert classes.summary().kept == pytest.approx(classes.value)
    assert classes.summary().deviation is None


SHOWN = (
    *(PROBLEM, MECHANISM.table, SOLUTION.dual, MECHANISM, MECHANISM.certificate, optrand.Grid(np.arange(100.0))),
    optrand.studies.sweep(PROBLEM, bias_penalties=[0.0, math.inf]),
)


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: type(shown).__name__)
def test_objects_are_shown_in_a_line_and_equal_their_pickles(shown: object) -> None:
    assert len(repr(shown)) <= 200
    assert "\n" not in repr(shown)
    again = pickle.loads(pickle.dumps(shown))  # noqa: S301
    assert again == shown
    assert hash(again) == hash(shown)
    assert shown != 3


def test_answers_to_different_questions_differ() -> None:
    other = optrand.solve(optrand.unbiased_regression(LABELS, [0.2, 0.3, 0.5], 1.0))
    assert other != SOLUTION
    assert SOLUTION.dual != other.dual


def test_a_notebook_shows_the_summary_as_a_table() -> None:
    page = MECHANISM._repr_html_()
    assert page.startswith("<table>")
    assert page.count("<tr>") == len(MECHANISM.summary().facts)


def test_what_people_hold_in_their_hands_prints_as_one_line() -> None:
    noisy, record = optrand.randomize([0, 1, 2] * 500, 1.0, labels=range(53))
    shown = {
        "<ReleaseRecord: epsilon 1.0 (prior ": record,
        "<Estimate: ": optrand.estimate.mean(noisy, record),
        "<Histogram: 53 labels, 1,500 released values>": optrand.estimate.histogram(noisy, record),
        "<Audit: 2 labels, 2 outputs, epsilon 0.510826, stated 1>": optrand.audit([[0.5, 0.5], [0.3, 0.7]], 1.0),
        "<UnbiasedVectors: 3 classes, ": optrand.unbiased_vectors([0.5, 0.25, 0.25], 1.0),
        "<Sweep: 1 rows, 1 certified>": optrand.studies.sweep(SOLUTION.problem, epsilons=[1.0]),
    }
    for start, it in shown.items():
        assert repr(it).startswith(start), repr(it)
        assert len(repr(it)) < 240
        assert "\n" not in repr(it)


# Errors cross processes.
def errors_of_every_kind() -> list[errors.OptrandError]:
    """One of each class, those with attributes with all of them."""
    made = {
        "AlreadySpent": errors.AlreadySpent("spent before", spent=1.5),
        "Interrupted": errors.Interrupted("stopped", released=True),
        "NotCertified": errors.NotCertified("no proof", certificate="a certificate", mechanism="a mechanism"),
        "SomeFailed": errors.SomeFailed("some failed", [1, errors.Interrupted("stopped", released=False)]),
    }
    kinds = [getattr(errors, name) for name in errors.__all__ if name != "SpentNote"]
    return [made[kind.__name__] if kind.__name__ in made else kind("a message") for kind in kinds]


def test_an_error_arrives_without_what_cannot_be_pickled() -> None:
    error = errors.NotCertified("no proof", certificate="a certificate", mechanism=lambda: None)
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (str(again), again.certificate, again.mechanism) == ("no proof", "a certificate", None)
    assert again.__notes__ == ["a note"]


@pytest.mark.parametrize("error", errors_of_every_kind(), ids=lambda error: type(error).__name__)
def test_errors_are_pickled_with_all_that_they_say(error: errors.OptrandError) -> None:
    error.add_note(errors.SpentNote("nothing was spent"))
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert again.args == error.args
        assert isinstance(again.__notes__[0], errors.SpentNote)
        assert sorted(map(repr, vars(again).items())) == sorted(map(repr, vars(error).items()))
        assert getattr(again, "msg", "") == getattr(error, "msg", "")
