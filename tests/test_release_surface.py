"""What a release can be asked for, from the command line and from Python, and what is said of it afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import optrand
from optrand import estimate
from optrand.accounting import Ledger
from optrand.cli import app
from optrand.errors import InvalidFile, InvalidInput
from optrand.release import publication
from optrand.release.arrays import randomize
from optrand.release.batch import BatchRandomizer
from optrand.release.record import load_release
from optrand.release.rules import RULES, Rule
from optrand.release.stated_groups import stated_groups

KEY = bytes(range(32))
STATES = {"CA": ([0.5, 0.48, 0.01, 0.01], 900), "NY": ([0.01, 0.01, 0.48, 0.5], 800), "VT": ([0.25] * 4, 30)}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    rows = [(state, y) for state, (chances, n) in STATES.items() for y in rng.choice(4, n, p=chances)]
    return pd.DataFrame(rows, columns=["state", "y"]).assign(c=lambda frame: frame["y"].map(dict(enumerate("abcd"))))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    people().to_csv("in.csv", index=False)
    return tmp_path


def invoked(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def released(*more: str, code: int = 0, account: tuple[str, ...] = ("--no-ledger",), target: str = "out.csv"):
    return invoked("randomize", "in.csv", target, "--epsilon", "2", *account, *more, code=code)


NUMBERS, CLASSES = ("--label", "y", "--labels", "0:3"), ("--label", "c", "--classes", "a,b,c,d")


# Randomizers and problems by name


@pytest.mark.parametrize(
    ("options", "gap"),
    [
        ((*NUMBERS, "--minimax"), 1e-6),
        ((*NUMBERS, "--minimax", "--outputs", "interval:-1:4", "--bias-penalty", "3"), 1e-6),
        ((*NUMBERS, "--randomizer", "optimal"), 1e-6),
        ((*NUMBERS, "--randomizer", "gap-response"), 2.0),
        ((*NUMBERS, "--outputs", "values:-6,-1,1,2,9"), 1e-6),
        ((*NUMBERS, "--loss", "poisson", "--outputs", "interval:0.5:4"), 1e-6),
        ((*NUMBERS, "--loss", "@loss.csv", "--outputs", "values:0,3"), 1e-6),
        ((*CLASSES, "--randomizer", "rr-top-k", "--k", "2"), 1.0),
        ((*CLASSES, "--randomizer", "rr-top-k"), 1e-6),
        ((*CLASSES, "--loss", "@costs.csv"), 1e-6),
    ],
)
def test_every_problem_and_randomizer_is_released_with_its_proof(here, options, gap):
    (here / "loss.csv").write_text("0,3\n1,2\n2,1\n3,0\n")
    (here / "costs.csv").write_text("\n".join(",".join(str(abs(i - j)) for j in range(4)) for i in range(4)))
    answer = json.loads(released(*options, "--json").stdout)
    assert float(answer["verified_gap"]) <= gap
    assert load_release("out.csv.release.json").epsilon <= 2
    invoked("verify", "out.csv.release.json", "--table", "out.csv")


@pytest.mark.usefixtures("here")
def test_a_minimax_release_needs_no_prior_and_says_so():
    released(*NUMBERS, "--minimax")
    record = load_release("out.csv.release.json")
    assert record.prior.startswith("none: minimax")
    assert record.randomizer.startswith("minimax: Mechanism")
    assert record.noisy_counts is None
    proof = optrand.certify(record.mechanism, worst_case=True).require(gap=1e-9)
    best = optrand.studies.minimax(range(4), 2.0)
    assert proof.upper == pytest.approx(best.upper, rel=1e-9)
    assert record.estimates.label**2 / 2 == pytest.approx(proof.upper, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*CLASSES, "--minimax"), "use rr, which is minimax for classes"),
        ((*NUMBERS, "--minimax", "--randomizer", "rr"), "two randomizers"),
        ((*NUMBERS, "--minimax", "--outputs", "grid:9"), "not a grid"),
        ((*NUMBERS, "--minimax", "--prior-epsilon", "0.1"), "means nothing to 'minimax'"),
        ((*CLASSES, "--k", "2"), "leave it out"),
        ((*CLASSES, "--randomizer", "rr-top-k", "--k", "5"), "from 1 to 4"),
        ((*CLASSES, "--randomizer", "rr-top-k", "--k", "no"), "expected a whole number"),
        ((*CLASSES, "--randomizer", "rr-on-bins"), "have no order"),
        ((*NUMBERS, "--loss", "@in.csv", "--outputs", "values:0,3"), "a cell in row 1 of in.csv is not a number"),
        ((*NUMBERS, "--loss", "@missing.csv"), "cannot be read"),
    ],
)
def test_what_does_not_go_together_is_refused(here, options, words):
    assert words in released(*options, code=2).stderr
    assert not list(here.glob("out*"))


@pytest.mark.filterwarnings("ignore:no histogram")
@pytest.mark.parametrize("name", [*RULES, "minimax", "rr"])
def test_the_same_names_are_known_to_python(name):
    classes = RULES.get(name, (None,))[0] == optrand.losses.zero_one or name == "rr"
    declared = {"classes": list("abcd")} if classes else {"domain": range(4)}
    noisy, record = randomize(people()["c" if classes else "y"], 2.0, **declared, randomizer=name, source=KEY)
    assert optrand.certify(record.mechanism).epsilon <= record.parts.labels
    assert len(noisy) == len(people())
    assert record.prior.startswith("none") == (name in ("minimax", "rr"))
    assert record.randomizer.startswith(f"{name}: ") == (name != "rr")


@pytest.mark.filterwarnings("ignore:no histogram")
def test_labels_that_are_kept_can_be_numbered():
    two = randomize(people()["c"], 2.0, classes=list("abcd"), randomizer="rr-top-k", k=2, source=KEY)
    assert two.record.mechanism.outputs.size == 2
    for options in ({"k": 2}, {"randomizer": "rr-top-k", "k": "2"}, {"randomizer": "rr-top-k", "k": 5}):
        with pytest.raises(InvalidInput):
            randomize(people()["c"], 2.0, classes=list("abcd"), **options)
    with pytest.raises(InvalidInput, match="expected one of optimal"):
        Rule("rr")
    with pytest.raises(InvalidInput, match="leave the outputs out"):
        Rule("gap-response")(optrand.unbiased_regression([0, 1, 3], [0.3, 0.4, 0.3], 2.0, outputs=[-1, 0, 1, 3, 4]))


# Groups in memory


def grouped(given, **options):
    return randomize(given, 2.0, **{"column": "y", "domain": range(4), "groups": "state", "source": KEY} | options)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_frame_is_released_by_groups_for_one_epsilon(kind):
    given = kind(people())
    noisy, record = grouped(given)
    assert type(noisy) is type(given)
    assert record.epsilon == 2.0
    assert record.circumstances.groups == ("state",)
    assert list(record.mechanisms) == ['["CA"]', '["NY"]', '["VT"]']
    assert record.relative_loss < 0.99
    for state, (_, mechanism) in zip(STATES, record.mechanisms.items(), strict=True):
        rows = np.asarray(noisy["y"])[people()["state"] == state]
        assert set(rows) <= set(mechanism.outputs)
        assert optrand.certify(mechanism).epsilon <= record.parts.labels


def test_groups_are_a_column_several_or_an_array():
    frame = people()
    one = grouped(frame)
    named = grouped(frame, groups=frame["state"].to_numpy())
    assert named.record.circumstances.groups == ("groups",)
    assert named.table["y"].tolist() == one.table["y"].tolist()
    assert grouped(frame, groups=["state", "c"]).record.circumstances.groups == ("state", "c")
    alone = randomize(frame["y"].tolist(), 2.0, domain=range(4), groups=frame["state"].tolist(), source=KEY)
    assert set(alone.record.mechanisms) == set(one.record.mechanisms)


@pytest.mark.parametrize(
    "options",
    [
        {"groups": "y"},
        {"groups": "nobody"},
        {"groups": ["state", "state"]},
        {"groups": np.zeros(3, int)},
        {"groups": np.zeros(1730)},
        {"randomizer": "rr"},
        {"public_prior": [0.25] * 4},
    ],
)
def test_groups_that_mean_nothing_are_refused(options):
    with pytest.raises(InvalidInput):
        grouped(people(), **options)


def test_rows_without_a_label_leave_their_group():
    frame = people().astype({"y": "Int64"})
    frame.loc[frame["state"] == "VT", "y"] = None
    frame.loc[5, "y"] = None
    noisy, record = grouped(frame, nulls="drop")
    assert len(noisy) == record.rows == len(frame) - 31
    assert record.estimates.histogram
    kept, record = grouped(frame, nulls="pass")
    assert kept["y"].isna().tolist() == frame["y"].isna().tolist()


@pytest.mark.usefixtures("here")
def test_groups_that_broke_off_go_on_with_the_same_noise(monkeypatch):
    options = {"dataset": "people", "ledger": "ledger.sqlite", "source": None}
    with monkeypatch.context() as patched:
        patched.setattr("optrand.release.columns.Columns._replaced", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            grouped(people(), **options)
    with Ledger.open("ledger.sqlite") as ledger:
        (before,) = ledger.entries()
    assert set(before.priors) == set(before.mechanisms)
    with pytest.raises(optrand.errors.InputChanged):
        grouped(people().assign(state="CA"), **options)
    grouped(people(), **options)
    with Ledger.open("ledger.sqlite") as ledger:
        (after,) = ledger.entries()
    assert (after.release, after.priors) == (before.release, before.priors)


# Estimates over groups


def true_noise_errors(frame, record):
    """Standard errors of the shares of labels by the definition, from the labels that nobody else knows."""
    total = np.zeros(4)
    for group, mechanism in record.mechanisms.items():
        indicators = estimate.Debiasing.of(mechanism).values(np.eye(4))
        table = mechanism.randomizer.matrix
        variances = table @ indicators**2 - (table @ indicators) ** 2
        total += variances[frame["y"][frame["state"] == json.loads(group)[0]]].sum(axis=0)
    return np.sqrt(total) / len(frame)


@pytest.mark.parametrize("classes", [False, True])
def test_estimates_over_groups_are_right_and_as_precise_as_stated(classes):
    frame = pd.concat([people()] * 10, ignore_index=True)
    declared = {"classes": list("abcd"), "domain": None, "column": "c"} if classes else {}
    true = np.bincount(frame["y"], minlength=4) / len(frame)
    noisy, record = grouped(frame, **declared)
    column = noisy["c" if classes else "y"]
    found = estimate.histogram(column, record, groups=noisy)
    assert found.size == len(frame)
    assert found.shares.sum() == pytest.approx(1)
    assert (np.abs(found.shares - true) <= 5 * found.noise_errors).all()
    # What is stated is of the noisy prior, and near the truth; what is estimated from noisy labels is rougher.
    exact = true_noise_errors(frame, record)
    assert np.array(record.estimates.counts) / len(frame) == pytest.approx(exact, rel=0.05)
    assert found.noise_errors == pytest.approx(exact, rel=0.3)
    assert (found.standard_errors > found.noise_errors).all()
    assert found.projected.min() >= 0
    if not classes:
        mean = estimate.mean(column, record, groups=frame["state"])
        assert abs(mean.value - frame["y"].mean()) <= 5 * mean.noise_error
        assert mean.noise_error == pytest.approx(record.estimates.mean, rel=0.1)
        assert mean.value == pytest.approx(column.mean())
    of_all = estimate.average(column, record, [0, 0, 1, 1], groups={"state": frame["state"]})
    assert of_all.value == pytest.approx(found.shares[2:].sum())


def test_one_mechanism_for_all_groups_is_one_estimate():
    table = optrand.tabulate(optrand.rr(range(3), 1.0))
    values = table.sample(np.arange(300) % 3)
    with pytest.raises(InvalidInput, match="leave out groups"):
        estimate.mean(values, table, groups=["a"] * 300)
    noisy, record = randomize(np.arange(300) % 3, 1.0, domain=range(3), source=KEY)
    with pytest.raises(InvalidInput, match="leave out groups"):
        estimate.histogram(noisy, record, groups=["a"] * 300)


def test_estimates_refuse_groups_that_are_not_those_of_the_release():
    frame = people()
    noisy, record = grouped(frame)
    cases = [
        (None, "pass their columns"),
        (frame["state"][:-1], "expected one for each"),
        (frame["state"].replace("VT", "ME"), "does not know"),
        ({"st": frame["state"]}, "missing for state"),
    ]
    for groups, words in cases:
        with pytest.raises(InvalidInput, match=words):
            estimate.histogram(noisy["y"], record, groups=groups)
    with pytest.raises(InvalidInput, match="by groups of state"):
        _ = record.mechanism
    for name in ("CA", '["CA", "x"]', "[1]", "{"):
        with pytest.raises(InvalidFile):
            stated_groups(("state",), [name])


def test_the_record_of_groups_is_estimated_drawn_and_reported(here):
    released(*CLASSES, "--group", "state")
    answer = json.loads(invoked("estimate", "out.csv.release.json", "out.csv", "--json").stdout)
    true = np.bincount(people()["y"], minlength=4) / len(people())
    assert all(
        abs(one["share"] - share) <= 5 * one["error"] for one, share in zip(answer["histogram"], true, strict=True)
    )
    assert answer["groups"] == "3 by state"
    invoked("plot", "out.csv.release.json", "-o", "groups.svg")
    invoked("report", "out.csv.release.json", "-o", "groups.html")
    page = (here / "groups.html").read_text()
    assert "at a total of ε = 2" in page
    assert all(state in page for state in STATES)
    assert "<script" not in page
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "take one of its files" in invoked("gallery", "out.csv.release.json", "-o", "g", code=2).stderr
    assert not (here / "g").exists()


# Folders whose names are columns


@pytest.mark.usefixtures("here")
def test_columns_in_the_names_of_folders_make_groups():
    for state, part in people().groupby("state"):
        folder = Path("in", f"state={state}")
        folder.mkdir(parents=True)
        pa.parquet.write_table(pa.table({"y": part["y"].to_numpy()}), folder / "0.parquet")
    arguments = ("--label", "y", "--labels", "0:3", "--epsilon", "2", "--no-ledger", "--group", "state")
    invoked("randomize", "in", "out", *arguments)
    record = load_release("out.release.json")
    assert [one.group for one in record.randomizers] == ['["CA"]', '["NY"]', '["VT"]']
    assert pa.parquet.read_schema("out/state=NY/0.parquet").names == ["y"]
    invoked("estimate", "out.release.json", "out")
    told = invoked("randomize", "in", "ids", *arguments[:-2], "--id", "state", code=2)
    assert "ids must be unique" in told.stderr


# Runs that are stopped


LEDGER = ("--dataset", "people")


def test_a_run_that_was_killed_as_it_published_is_finished_by_the_next_with_exit_code_0(here):
    child = os.fork()
    if child == 0:
        taken = publication.take_name
        calls = iter(range(9))
        publication.take_name = lambda *names: os._exit(9) if next(calls) == 1 else taken(*names)
        released(*NUMBERS, account=LEDGER)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not (here / "out.csv").exists()
    again = released(*NUMBERS, account=LEDGER)
    assert "is finished now" in again.stdout
    invoked("verify", "out.csv.release.json", "--table", "out.csv")
    assert released(*NUMBERS, account=LEDGER, target="second.csv", code=5).stderr


def test_a_signal_before_the_end_says_that_nothing_was_released_and_what_was_spent(here, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(BatchRandomizer, "__call__", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        told = released(*NUMBERS, account=LEDGER, code=1).stderr
    assert told.startswith("error: stopped by SIGTERM: nothing was released")
    assert "epsilon 2 was charged to dataset 'people'" in told
    assert "the same command goes on from there" in told
    assert not list(here.glob("out*"))
    released(*NUMBERS, account=LEDGER)


@pytest.mark.usefixtures("here")
def test_a_signal_while_files_take_their_names_says_that_all_was_released(monkeypatch):
    publish = publication.Publication.publish

    def interrupted(self, **options):
        os.kill(os.getpid(), signal.SIGINT)
        publish(self, **options)

    monkeypatch.setattr(publication.Publication, "publish", interrupted)
    # In the background of a shell the signal is ignored, by a release as well.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        told = released(*NUMBERS, account=LEDGER, code=4).stderr
    finally:
        signal.signal(signal.SIGINT, before)
    assert told.startswith("error: stopped by SIGINT: the release was complete by then")
    invoked("verify", "out.csv.release.json", "--table", "out.csv")
