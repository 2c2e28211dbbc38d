"""Labels in memory: the kind that goes in comes out, noise of the mechanism's own law, every cost on the record."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import optrand
from optrand.accounting import Ledger, Spent
from optrand.errors import AlreadySpent, InputChanged, InvalidInput, NotCertified, OverBudget, SpentNote
from optrand.release.arrays import Randomized
from optrand.release.declared import EvenGrid
from optrand.release.record import ReleaseRecord, load_release
from optrand.sampling.entropy import SeededEntropy

KEY = bytes(range(32))
NUMBERS = [0, 3, 3, 1, 0, 0, 2, 0]
NAMES = ["no", "yes", "no", "maybe", "no", "no", "yes", "no"]
CLASSES = ["yes", "no", "maybe"]

COLUMNS: dict[str, Any] = {
    "numpy int8": np.array(NUMBERS, np.int8),
    "numpy float32": np.array(NUMBERS, np.float32),
    "numpy of two dimensions": np.array(NUMBERS).reshape(2, 4),
    "masked": np.ma.array(NUMBERS),
    "list": NUMBERS,
    "pandas": pd.Series(NUMBERS, index=[f"r{i}" for i in range(8)], name="weeks"),
    "pandas Int64": pd.Series(NUMBERS, dtype="Int64"),
    "polars": pl.Series("weeks", NUMBERS),
    "arrow": pa.array(NUMBERS),
    "chunked": pa.chunked_array([NUMBERS[:3], NUMBERS[3:]]),
}

NAMED: dict[str, Any] = {
    "numpy text": np.array(NAMES),
    "numpy objects": np.array(NAMES, dtype=object),
    "list": NAMES,
    "pandas": pd.Series(NAMES),
    "pandas category": pd.Series(NAMES, dtype="category"),
    "polars": pl.Series("a", NAMES),
    "polars enum": pl.Series("a", NAMES, dtype=pl.Enum(["no", "maybe", "yes"])),
    "polars category": pl.Series("a", NAMES, dtype=pl.Categorical),
    "arrow": pa.array(NAMES),
    "arrow dictionary": pa.array(NAMES).dictionary_encode(),
}


def frames() -> list[Any]:
    public = {"id": ["a", "b", "c", "d", "e", "f", "g", "h"], "weeks": NUMBERS, "asks": NAMES}
    return [
        pa.table(public),
        pa.record_batch(public),
        pd.DataFrame(public, index=range(8, 0, -1)),
        pl.DataFrame(public),
    ]


def randomized(labels: Any, epsilon: Any = 1.0, **options: Any) -> Randomized:
    """Release under a known key, whether or not a histogram is possible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return optrand.randomize(labels, epsilon, **{"source": KEY, "ledger": None, **options})


def kind(given: Any) -> type:
    """Class of an object; arrays of Arrow have one for each type of cell."""
    return pa.Array if isinstance(given, pa.Array) else type(given)


def flat(labels: Any) -> list[Any]:
    return (
        list(np.asarray(labels).ravel())
        if isinstance(labels, np.ndarray)
        else list(labels.to_list() if hasattr(labels, "to_list") else labels)
    )


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "ledger.sqlite") as found:
        yield found


@pytest.mark.parametrize("given", COLUMNS.values(), ids=COLUMNS)
def test_numbers_come_back_as_the_kind_that_went_in(given):
    noisy, record = randomized(given, domain=range(4))
    assert kind(noisy) is kind(given)
    assert np.shape(noisy) == np.shape(given)
    outputs = set(record.mechanism.outputs.tolist())
    assert {float(getattr(v, "as_py", lambda v=v: v)()) for v in flat(noisy)} <= outputs
    if isinstance(given, pd.Series):
        assert noisy.index.equals(given.index)
        assert noisy.name == given.name
    assert record.rows == 8
    assert record.labels == (0.0, 1.0, 2.0, 3.0)


@pytest.mark.parametrize("given", NAMED.values(), ids=NAMED)
def test_names_come_back_as_names(given):
    noisy, record = randomized(given, classes=CLASSES)
    assert kind(noisy) is kind(given)
    names = noisy.to_pylist() if isinstance(noisy, pa.Array) else flat(noisy)
    assert set(names) <= set(CLASSES)
    assert len(names) == 8
    assert record.circumstances.classes == tuple(CLASSES)
    assert record.circumstances.task == "classification"


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (np.array([True, False, False]), [True, False]),
        (np.array([7, 8, 7], np.int16), [8, 7]),
        ([True, False, False], [False, True]),
        (pd.Series([7, 8, 7]), [7, 8]),
        (pl.Series([True, False]), [True, False]),
    ],
)
def test_booleans_and_integers_keep_their_type(given, classes):
    noisy, record = randomized(given, classes=classes)
    assert set(flat(noisy)) <= set(classes)
    assert all(type(one) is type(other) for one, other in zip(flat(noisy), flat(given), strict=True))
    assert getattr(noisy, "dtype", None) == getattr(given, "dtype", None)
    assert record.circumstances.classes == tuple(classes)


@pytest.mark.parametrize("given", frames(), ids=lambda given: f"{type(given).__module__}.{type(given).__name__}")
def test_a_frame_keeps_its_other_columns(given):
    noisy, record = randomized(given, domain=range(4), column="weeks", ids="id")
    assert type(noisy) is type(given)
    assert (record.circumstances.column, record.circumstances.id_column) == ("weeks", "id")
    for name, before in (("id", given["id"]), ("asks", given["asks"])):
        after = noisy[name]
        assert after.to_pylist() == before.to_pylist() if hasattr(after, "to_pylist") else list(after) == list(before)
    if isinstance(given, pd.DataFrame):
        assert noisy.index.equals(given.index)
        assert list(noisy.columns) == list(given.columns)
        assert given["weeks"].tolist() == NUMBERS


@pytest.mark.parametrize("given", frames(), ids=lambda given: f"{type(given).__module__}.{type(given).__name__}")
def test_several_columns_cost_the_sum(given):
    noisy, record = randomized(
        given,
        {"weeks": 1.0, "asks": 0.5},
        column=["weeks", "asks"],
        domain={"weeks": range(4)},
        classes={"asks": CLASSES},
    )
    parts = [Fraction(part) for one in record.columns.values() for part in (one.parts.prior, one.parts.labels)]
    assert sum(parts) <= Fraction(record.epsilon) <= Fraction(1.5)
    assert (record["weeks"].epsilon, record["asks"].epsilon) == (1.0, 0.5)
    assert not record.private
    assert record.exact
    single = randomized(given, 0.5, column="asks", classes=CLASSES).table
    assert list(map(str, noisy["asks"])) == list(map(str, single["asks"]))


def test_noise_follows_the_id_and_not_the_order():
    labels = np.arange(400) % 5
    ids = np.array([f"person {i}" for i in range(400)])
    order = np.random.default_rng(0).permutation(400)
    prior = np.full(5, 0.2)
    first, record = randomized(labels, domain=range(5), ids=ids, public_prior=prior)
    second, again = randomized(labels[order], domain=range(5), ids=pl.Series(ids[order]), public_prior=prior)
    np.testing.assert_array_equal(first[order], second)
    assert record == again
    assert len(np.unique(first[labels == 1])) > 1
    other = randomized(labels, domain=range(5), ids=ids, public_prior=prior, source=bytes(32)).table
    assert (first != other).any()


@pytest.mark.parametrize("source", [SeededEntropy(3), KEY], ids=["seeded", "keyed"])
def test_noise_has_the_law_of_the_mechanism(source):
    count = 60_000
    noisy, record = randomized(
        np.full(count, 2), domain=[2, 0, 1], public_prior=[0.2, 0.5, 0.3], source=source, ids=None
    )
    table = record.mechanism
    # The prior is given in the order of the domain.
    assert table.problem.prior.tolist() == [0.5, 0.3, 0.2]
    chances = np.array([float(Fraction(int(w), int(table.total))) for w in table.weights[2]])
    seen = np.array([(noisy == output).mean() for output in table.outputs])
    assert seen.sum() == 1
    # Six standard deviations.
    assert (np.abs(seen - chances) <= 6 * np.sqrt(chances / count)).all()


def test_seeded_noise_is_not_private_and_that_of_the_system_is():
    assert not randomized(NUMBERS, domain=range(4), source=SeededEntropy(1)).record.private
    assert not randomized(NUMBERS, domain=range(4)).record.private
    for entropy in (None, "keyed", "system"):
        record = randomized(NUMBERS, domain=range(4), source=None, entropy=entropy).record
        assert record.private
        assert record.circumstances.entropy == (entropy or "system")
        assert not record.circumstances.ledger


def test_estimates_from_the_record(tmp_path):
    labels = np.repeat([0, 1, 2, 3], [9_000, 500, 3_000, 1_500])
    noisy, record = optrand.randomize(labels, 2.0, domain=range(4), source=SeededEntropy(5))
    assert record.epsilon == 2.0
    found = optrand.estimate.histogram(noisy, record)
    assert (np.abs(found.shares * 14_000 - [9_000, 500, 3_000, 1_500]) <= 6 * np.array(record.estimates.counts)).all()
    mean = optrand.estimate.mean(noisy, record)
    assert abs(mean.value - labels.mean()) <= 6 * record.estimates.mean
    record.save(tmp_path / "weeks.release.json")
    assert load_release(tmp_path / "weeks.release.json") == record


@pytest.mark.parametrize("classes", [["yes", "no", "maybe"], [7, 5, 9]], ids=str)
def test_a_histogram_of_classes_by_their_names(classes):
    labels = pd.Series(np.repeat(classes, [6_000, 3_000, 1_000]))
    noisy, record = optrand.randomize(labels, 2.0, classes=classes, randomizer="rr", source=SeededEntropy(5))
    found = optrand.estimate.histogram(noisy, record)
    assert (np.abs(found.shares * 10_000 - [6_000, 3_000, 1_000]) <= 6 * np.array(record.estimates.counts)).all()
    share = optrand.estimate.average(noisy, record, [0.0, 1.0, 0.0])
    assert share.value == pytest.approx(found.shares[1], abs=1e-9)
    with pytest.raises(InvalidInput, match="1 of 2 released values"):
        optrand.estimate.histogram([classes[0], "other"], record)


def test_missing_labels():
    given = np.ma.array(NUMBERS, mask=[0, 1, 0, 0, 0, 0, 1, 0])
    with pytest.raises(InvalidInput, match="missing"):
        randomized(given, domain=range(4))
    kept, record = randomized(given, domain=range(4), nulls="drop")
    assert (len(kept), record.rows, record.circumstances.nulls) == (6, 6, "drop")
    assert not np.ma.getmaskarray(kept).any()
    passed, record = randomized(given, domain=range(4), nulls="pass")
    assert np.ma.getmaskarray(passed).tolist() == np.ma.getmaskarray(given).tolist()
    assert record.rows == 6
    for dtype, cells, classes in (("boolean", [True, None, False], [True, False]), ("Int64", [1, None, 2], [1, 2])):
        series = pd.Series(cells, dtype=dtype)
        assert randomized(series, classes=classes, nulls="pass").table.dtype == series.dtype
    category = pd.Series([1, None, 2], dtype="category")
    assert len(randomized(category, domain=[1, 2], nulls="drop").table) == 2
    names = ["no", None, "yes", "no", None, "no"]
    noisy, record = randomized(names, classes=["yes", "no", None], nulls="class")
    assert (len(noisy), record.rows) == (6, 6)
    assert set(noisy) <= {"yes", "no", None}


def test_a_row_without_one_of_several_labels_is_dropped_as_a_whole():
    frame = pd.DataFrame({"i": range(4), "a": [1, None, 0, 1], "b": ["x", "y", None, "x"]})
    noisy, record = randomized(
        frame, 1.0, column=["a", "b"], domain={"a": [0, 1]}, classes={"b": ["x", "y"]}, nulls="drop"
    )
    assert noisy["i"].tolist() == [0, 3]
    assert (record["a"].rows, record["b"].rows) == (2, 2)


def test_clipping_and_other_problems():
    beyond = [-4, 0, 9, 2]
    with pytest.raises(InvalidInput, match="not among the 4 declared"):
        randomized(beyond, domain=range(4))
    assert randomized(beyond, domain=range(4), clip=True).record.rows == 4
    bins = randomized(NUMBERS, domain=range(4), bias_penalty=0.0).record
    assert bins.estimates.mean is None
    grid = randomized(NUMBERS, domain=range(4), outputs=EvenGrid(9), loss=optrand.losses.absolute).record
    assert grid.mechanism.problem.loss == optrand.losses.absolute
    assert optrand.certify(grid.mechanism).require(gap=1e-6).epsilon <= grid.parts.labels
    noise = randomized(NUMBERS, domain=range(4), randomizer="discrete-laplace").record
    assert (noise.parts.prior, noise.epsilon, noise.estimates.histogram) == (0.0, 1.0, False)
    response = randomized(NAMES, classes=CLASSES, randomizer="rr").record
    assert response.mechanism.outputs.tolist() == [0, 1, 2]
    assert randomized([5, 5], domain=[5]).table == [5, 5]


def test_what_cannot_be_estimated_is_said():
    with pytest.warns(UserWarning, match="no histogram"):
        optrand.randomize(NUMBERS, 1.0, domain=range(4), bias_penalty=0.0, public_prior=[0.97, 0.01, 0.01, 0.01])


def test_a_gap_is_refused_unless_told():
    options = {"domain": range(4), "bias_penalty": 1e200}
    with pytest.raises(NotCertified, match="gap") as caught:
        randomized(NUMBERS, **options)
    assert any("has spent" in note for note in caught.value.__notes__)
    assert isinstance(randomized(NUMBERS, gap=1.0, **options).record, ReleaseRecord)


class TestLedger:
    def test_a_release_is_charged_in_full_and_once(self, ledger):
        frame = pd.DataFrame({"weeks": NUMBERS})
        _, record = optrand.randomize(frame, 1.0, column="weeks", domain=range(4), dataset="census", ledger=ledger)
        assert record.private
        assert (record.circumstances.dataset, record.circumstances.ledger) == ("census", True)
        assert record.circumstances.entropy == "keyed"
        spent = ledger.spent("census", "weeks").epsilon
        assert spent == Fraction(record.parts.prior) + Fraction(record.parts.labels) <= 1
        (entry,) = ledger.entries()
        assert entry.state == "complete"
        assert entry.mechanisms[""] == record.mechanism.digest
        assert entry.priors[""] == record.noisy_counts
        # A Series of that name is the same column.
        with pytest.raises(AlreadySpent):
            optrand.randomize(frame["weeks"], 1.0, domain=range(4), dataset="census", ledger=ledger)
        with pytest.raises(OverBudget):
            optrand.randomize(
                frame["weeks"], 1.0, domain=range(4), dataset="census", ledger=ledger, spend_again=True, budget=1.5
            )
        assert ledger.spent("census").epsilon == spent
        optrand.randomize(
            frame["weeks"], 1.0, domain=range(4), dataset="census", ledger=ledger, spend_again=True, budget=Spent(2.0)
        )
        assert ledger.spent("census").epsilon == 2 * spent

    def test_the_users_own_is_the_default(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        optrand.randomize(NUMBERS, 1.0, domain=range(4), dataset="census")
        with Ledger.open() as found:
            assert 0.99 < found.spent("census").epsilon <= 1
        record = optrand.randomize(NUMBERS, 1.0, domain=range(4), dataset="census", ledger=None).record
        assert (record.circumstances.dataset, record.circumstances.ledger) == ("census", False)

    def test_a_release_that_broke_off_goes_on_with_the_same_noise(self, ledger, monkeypatch):
        labels = np.arange(300) % 4
        options = {"domain": range(4), "dataset": "census", "ledger": ledger, "source": KEY}
        drawn = []

        def broken(self, *_):
            drawn.append(self)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(optrand.Mechanism, "sample_records", broken)
            with pytest.raises(KeyboardInterrupt) as caught:
                optrand.randomize(labels, 1.0, **options)
        assert drawn
        assert any(isinstance(note, SpentNote) and "goes on" in note for note in caught.value.__notes__)
        (before,) = ledger.entries()
        with pytest.raises(InputChanged):
            optrand.randomize(labels[::-1], 1.0, **options)
        optrand.randomize(labels, 1.0, **options)
        (after,) = ledger.entries()
        assert (after.release, after.priors, after.mechanisms) == (before.release, before.priors, before.mechanisms)
        assert after.state == "complete"

    def test_nothing_is_charged_where_one_of_several_columns_is_refused(self, ledger):
        frame = pl.DataFrame({"a": NUMBERS, "b": NUMBERS})
        options = {"dataset": "census", "ledger": ledger}
        optrand.randomize(frame, 1.0, column="b", domain=range(4), **options)
        before = len(ledger.entries())
        with pytest.raises(AlreadySpent):
            optrand.randomize(frame, 1.0, column=["a", "b"], domain=range(4), **options)
        with pytest.raises(InvalidInput):
            optrand.randomize(frame, 1.0, column=["a"], domain=range(3), **options)
        assert len(ledger.entries()) == before

    def test_noise_of_the_system_is_charged_and_cannot_go_on(self, ledger):
        record = optrand.randomize(
            NUMBERS, 1.0, domain=range(4), dataset="census", ledger=ledger, entropy="system"
        ).record
        assert (record.private, record.circumstances.entropy) == (True, "system")
        (entry,) = ledger.entries()
        assert not entry.resumable

    @pytest.mark.parametrize(
        "options",
        [
            {"dataset": None},
            {"source": SeededEntropy(1)},
            {"dataset": " "},
            {"dataset": 7},
            {"spend_again": "no"},
            {"budget": -1.0},
            {"ledger": 7},
        ],
        ids=str,
    )
    def test_what_no_ledger_takes(self, ledger, options):
        with pytest.raises(InvalidInput):
            optrand.randomize(NUMBERS, 1.0, **{"domain": range(4), "dataset": "census", "ledger": ledger, **options})
        assert not ledger.entries()


SECRET = 31337
REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "no declared set": (NUMBERS, {}),
    "two declared sets": (NUMBERS, {"domain": range(4), "classes": [0, 1, 2, 3]}),
    "categories are not declared": (pd.Series(NAMES, dtype="category"), {}),
    "undeclared": ([0, SECRET], {"domain": range(4)}),
    "undeclared class": (["no", f"{SECRET}"], {"classes": CLASSES}),
    "missing": ([0, None, SECRET], {"domain": range(4)}),
    "nan": (np.array([0.0, math.nan]), {"domain": range(4), "nulls": "pass"}),
    "only missing": (np.ma.array([1, 2], mask=True), {"domain": range(4), "nulls": "drop"}),
    "empty": ([], {"domain": range(4)}),
    "ragged": ([[0, 1], [SECRET]], {"domain": range(4)}),
    "mixed": ([0, "1", SECRET], {"domain": range(4)}),
    "booleans among numbers": ([True, 3], {"domain": range(4)}),
    "numbers as text": (["0", "1"], {"domain": range(4)}),
    "booleans as numbers": (np.array([True]), {"domain": range(4)}),
    "floats as classes": (np.array([0.0, 1.0]), {"classes": [0, 1]}),
    "text for integers": (np.array([0, 1]), {"classes": ["0", "1"]}),
    "integers for booleans": (np.array([True, False]), {"classes": [0, 1]}),
    "integers for text": (np.array(["0", "1"]), {"classes": [0, 1]}),
    "complex": (np.array([1j]), {"domain": range(4)}),
    "dates": (np.array(["2020-01-01"], "M8[D]"), {"domain": range(4)}),
    "a number": (3, {"domain": range(4)}),
    "a text": ("0", {"domain": range(4)}),
    "a dict": ({"a": 1}, {"domain": range(4)}),
    "lazy": (pl.LazyFrame({"y": NUMBERS}), {"domain": range(4), "column": "y"}),
    "frame without column": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4)}),
    "unknown column": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4), "column": "z"}),
    "column twice": (pd.DataFrame([[0, 1]], columns=["y", "y"]), {"domain": range(4), "column": "y"}),
    "columns of an array": (NUMBERS, {"domain": range(4), "column": ["a", "b"]}),
    "no columns": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4), "column": []}),
    "a set of columns": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4), "column": {"y"}}),
    "a list in a list": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4), "column": [["y"]]}),
    "the same column twice": (pd.DataFrame({"y": NUMBERS}), {"domain": range(4), "column": ["y", "y"]}),
    "flag as text": (NUMBERS, {"domain": range(4), "clip": "no"}),
    "flag as number": (NUMBERS, {"domain": range(4), "clip": 1}),
    "other flag": (NUMBERS, {"domain": range(4), "spend_again": "no"}),
    "policy": (NUMBERS, {"domain": range(4), "nulls": "ignore"}),
    "class of missing numbers": (NUMBERS, {"domain": range(4), "nulls": "class"}),
    "clipped classes": (NAMES, {"classes": CLASSES, "clip": True}),
    "biased classes": (NAMES, {"classes": CLASSES, "bias_penalty": 0.0}),
    "domain as text": (NUMBERS, {"domain": "0:3"}),
    "domain as set": (NUMBERS, {"domain": {0, 1, 2, 3}}),
    "ragged domain": (NUMBERS, {"domain": [[0], [1, 2]]}),
    "masked domain": (NUMBERS, {"domain": np.ma.array(range(4))}),
    "repeated domain": (NUMBERS, {"domain": [0, 1, 2, 3, 3]}),
    "booleans in domain": (NUMBERS, {"domain": [False, True, 2, 3]}),
    "classes of a number": (NAMES, {"classes": 3}),
    "classes of a text": (NAMES, {"classes": "no"}),
    "classes of two types": (NAMES, {"classes": ["no", 1]}),
    "repeated classes": (NAMES, {"classes": [*CLASSES, "no"]}),
    "no classes": (NAMES, {"classes": []}),
    "float classes": ([1.5], {"classes": [1.5]}),
    "class that an Enum lacks": (pl.Series(["no"], dtype=pl.Enum(["no", "maybe"])), {"classes": CLASSES}),
    "undecodable class": (NAMES, {"classes": [*CLASSES, "\ud800"]}),
    "prior of another length": (NUMBERS, {"domain": range(4), "public_prior": [0.5, 0.5]}),
    "ragged prior": (NUMBERS, {"domain": range(4), "public_prior": [[0.5], [0.25, 0.25]]}),
    "prior and part": (NUMBERS, {"domain": range(4), "public_prior": [0.25] * 4, "prior_epsilon": 0.1}),
    "prior that takes all": (NUMBERS, {"domain": range(4), "prior_epsilon": 1.0}),
    "loss by name": (NUMBERS, {"domain": range(4), "loss": "absolute"}),
    "loss without a solver": (NUMBERS, {"domain": range(4), "loss": optrand.losses.absolute}),
    "randomizer and prior": (NUMBERS, {"domain": range(4), "randomizer": "rr", "public_prior": [0.25] * 4}),
    "inexact noise": (NUMBERS, {"domain": range(4), "randomizer": "laplace"}),
    "unknown randomizer": (NUMBERS, {"domain": range(4), "randomizer": "best"}),
    "randomizer of another kind": (NUMBERS, {"domain": range(4), "randomizer": 7}),
    "noise for classes": (NAMES, {"classes": CLASSES, "randomizer": "discrete-laplace"}),
    "outputs as text": (NUMBERS, {"domain": range(4), "outputs": "line"}),
    "too few ids": (NUMBERS, {"domain": range(4), "ids": [1, 2]}),
    "repeated ids": (NUMBERS, {"domain": range(4), "ids": [1, 2, 3, 4, 5, 6, 7, 7]}),
    "missing ids": (NUMBERS, {"domain": range(4), "ids": [1, 2, 3, 4, 5, 6, 7, None]}),
    "ids by name in an array": (NUMBERS, {"domain": range(4), "ids": "id"}),
    "float ids": (NUMBERS, {"domain": range(4), "ids": np.arange(8.0)}),
    "ids of labels": (pd.DataFrame({"y": range(4)}), {"domain": range(4), "column": "y", "ids": "y"}),
    "entropy": (NUMBERS, {"domain": range(4), "entropy": "quantum"}),
    "short key": (NUMBERS, {"domain": range(4), "source": b"key"}),
    "source of another kind": (NUMBERS, {"domain": range(4), "source": 7}),
    "key for the system": (NUMBERS, {"domain": range(4), "entropy": "system"}),
    "source for a key": (NUMBERS, {"domain": range(4), "entropy": "keyed", "source": SeededEntropy(1)}),
    "budget without a ledger": (NUMBERS, {"domain": range(4), "budget": 1.0}),
    "again without a ledger": (NUMBERS, {"domain": range(4), "spend_again": True}),
}


@pytest.mark.parametrize(("given", "options"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_in_words_without_a_label(given, options):
    with pytest.raises(InvalidInput) as caught:
        randomized(given, **options)
    told = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert str(SECRET) not in told
    assert "spent" not in " ".join(getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1", True, None, {"z": 1.0}])
def test_an_epsilon_without_meaning(epsilon):
    with pytest.raises(InvalidInput):
        randomized(NUMBERS, epsilon, domain=range(4))
