"""Labels in memory: the kind that goes in comes out, noise of the mechanism's own law, every cost on the record."""

import math
import subprocess
import sys
import uuid
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from asserting import assert_error, by_case

import optrand
from optrand.accounting import Ledger, Spent
from optrand.errors import AlreadySpent, InputChanged, InvalidInput, NotCertified, OverBudget, SpentNote
from optrand.release._in_memory import Randomized
from optrand.release._question import Question
from optrand.release._record import ReleaseRecord, load_release

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
    "pandas index": pd.Index(NUMBERS, name="weeks"),
    "polars": pl.Series("weeks", NUMBERS),
    "arrow": pa.array(NUMBERS),
    "chunked": pa.chunked_array([NUMBERS[:3], NUMBERS[3:]]),
}

NAMED: dict[str, Any] = {
    "numpy text": np.array(NAMES),
    "numpy text of any length": np.array(NAMES, dtype=np.dtypes.StringDType()),
    "numpy objects": np.array(NAMES, dtype=object),
    "list": NAMES,
    "pandas": pd.Series(NAMES),
    "pandas category": pd.Series(NAMES, dtype="category"),
    "pandas index": pd.Index(NAMES, name="asks"),
    "pandas categorical": pd.Categorical(NAMES),
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


def randomized(data: Any, epsilon: Any = 1.0, *, key: bytes = KEY, **options: Any) -> Randomized:
    """Release under a known key, whether or not a histogram is possible."""
    with warnings.catch_warnings(), patch("os.urandom", lambda size: key[:size]):
        warnings.simplefilter("ignore", UserWarning)
        return optrand.randomize(data, epsilon, **{"ledger": None, **options})


def kind(given: Any) -> type:
    """Class of an object. Arrays of Arrow have one for each type of cell."""
    return pa.Array if isinstance(given, pa.Array) else type(given)


def flat(labels: Any) -> list[Any]:
    if isinstance(labels, np.ndarray):
        return list(labels.ravel())
    # Columns of polars have to_list alone.
    return list(next((getattr(labels, name)() for name in ("tolist", "to_list") if hasattr(labels, name)), labels))


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize("given", COLUMNS.values(), ids=COLUMNS)
def test_numbers_come_back_as_the_kind_that_went_in(given):
    noisy, record = randomized(given, labels=range(4))
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
    noisy, record = randomized(given, labels=CLASSES)
    assert kind(noisy) is kind(given)
    names = noisy.to_pylist() if isinstance(noisy, pa.Array) else flat(noisy)
    assert set(names) <= set(CLASSES)
    assert len(names) == 8
    assert record.labels == tuple(CLASSES)


@by_case(
    "given, classes",
    (np.array([True, False, False]), [True, False]),
    (np.array([7, 8, 7], np.int16), np.array([8, 7])),
    ([True, False, False], [False, True]),
    (pd.Series([7, 8, 7]), [7, 8]),
    (pl.Series([True, False]), [True, False]),
)
def test_booleans_and_integers_keep_their_type(given, classes):
    noisy, record = randomized(given, labels=classes, task="classification")
    assert set(flat(noisy)) <= set(classes)
    assert all(type(one) is type(other) for one, other in zip(flat(noisy), flat(given), strict=True))
    assert getattr(noisy, "dtype", None) == getattr(given, "dtype", None)
    assert record.labels == tuple(classes)


@by_case(
    "labels, task",
    (pd.Index(["a", "b"]), "classification"),
    (pl.Series(["a", "b"]), "classification"),
    (pa.array(["a", "b"]), "classification"),
    ({"a": 1, "b": 2}.keys(), "classification"),
    (np.array([True, False]), "classification"),
    (np.array([0, 1], dtype=object), "regression"),
    (pd.Series([0, 1]), "regression"),
    (iter([0, 1]), "regression"),
    ids=lambda given: type(given).__name__,
)
def test_labels_decide_on_the_task(labels, task):
    assert Question(labels=labels, epsilon=1.0).task == task


@pytest.mark.parametrize("given", frames(), ids=lambda given: f"{type(given).__module__}.{type(given).__name__}")
def test_a_frame_keeps_its_other_columns(given):
    noisy, record = randomized(given, labels=range(4), column="weeks", ids="id")
    assert type(noisy) is type(given)
    assert (record.column, record.ids) == ("weeks", ("id",))
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
        given, {"weeks": 1.0, "asks": 0.5}, column=["weeks", "asks"], labels={"weeks": range(4), "asks": CLASSES}
    )
    parts = [Fraction(part) for one in record.columns.values() for part in (one.parts.prior, one.parts.labels)]
    assert sum(parts) <= Fraction(record.epsilon) <= Fraction(1.5)
    assert (record["weeks"].epsilon, record["asks"].epsilon) == (1.0, 0.5)
    assert list(record) == ["weeks", "asks"]
    assert "asks" in record
    assert "id" not in record
    assert len(record) == 2
    with pytest.raises(InvalidInput, match=r"several columns: pass that of one, record\[column\]"):
        optrand.estimate.mean(noisy["weeks"], record)
    single = randomized(given, 0.5, column="asks", labels=CLASSES).table
    assert list(map(str, noisy["asks"])) == list(map(str, single["asks"]))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"nulls": {"week": "drop"}},
            "nulls names column 'week', which is not among those to release, 'weeks', 'asks'",
        ),
        ({"epsilon": {"weeks": 1.0, "asks": 1.0, "id": 1.0}}, "epsilon names column 'id'"),
        ({"epsilon": {"weeks": 1.0}}, "there is no epsilon for column 'asks'"),
        ({"labels": {"weeks": range(4), "ask": CLASSES}}, "labels names column 'ask'"),
        ({"labels": {"weeks": range(4)}}, "there are no labels for column 'asks'"),
        ({"clip": {"Weeks": True}}, "clip names column 'Weeks'"),
    ],
    ids=str,
)
def test_an_option_of_no_column_is_refused(options, match, ledger):
    given = {"epsilon": 1.0, "labels": {"weeks": range(4), "asks": CLASSES}, **options}
    with pytest.raises(InvalidInput, match=match):
        optrand.randomize(frames()[0], column=["weeks", "asks"], dataset="d", ledger=ledger, **given)
    assert not ledger.entries()


def test_noise_follows_the_id_and_not_the_order():
    labels = np.arange(400) % 5
    ids = np.array([f"person {i}" for i in range(400)])
    order = np.random.default_rng(0).permutation(400)
    prior = np.full(5, 0.2)
    first, record = randomized(labels, labels=range(5), ids=ids, prior=prior)
    second, again = randomized(labels[order], labels=range(5), ids=pl.Series(ids[order]), prior=prior)
    np.testing.assert_array_equal(first[order], second)
    assert record == again
    assert again.noisy_counts is None
    assert len(np.unique(first[labels == 1])) > 1
    other = randomized(labels, labels=range(5), ids=ids, prior=prior, key=bytes(32)).table
    assert (first != other).any()


def test_noise_has_the_law_of_the_mechanism():
    count = 60_000
    noisy, record = randomized(np.full(count, 2), labels=[2, 0, 1], prior=[0.2, 0.5, 0.3])
    table = record.mechanism
    # The prior is given in the order of the labels.
    assert table.problem.prior.tolist() == [0.5, 0.3, 0.2]
    chances = np.array([float(Fraction(int(w), int(table.total))) for w in table.weights[2]])
    seen = np.array([(noisy == output).mean() for output in table.outputs])
    assert np.isin(noisy, table.outputs).all()
    # Six standard deviations.
    assert (np.abs(seen - chances) <= 6 * np.sqrt(chances / count)).all()


def test_estimates_from_the_record(tmp_path):
    labels = np.repeat([0, 1, 2, 3], [9_000, 500, 3_000, 1_500])
    noisy, record = optrand.randomize(labels, 2.0, labels=range(4))
    assert record.epsilon == 2.0
    largest = max(record.estimates.counts) / 14_000
    # Expected under the noisy prior: the true labels may have more.
    told = f" (the noise on a share is expected to have standard deviation {largest:.2g} or less, at most "
    assert told in record.estimates.words
    found = optrand.estimate.histogram(noisy, record)
    assert (np.abs(found.shares * 14_000 - [9_000, 500, 3_000, 1_500]) <= 6 * np.array(record.estimates.counts)).all()
    mean = optrand.estimate.mean(noisy, record)
    assert abs(mean.value - labels.mean()) <= 6 * record.estimates.mean
    record.save(tmp_path / "weeks.release.json")
    assert load_release(tmp_path / "weeks.release.json") == record


@pytest.mark.parametrize("classes", [["yes", "no", "maybe"], [7, 5, 9]], ids=str)
def test_a_histogram_of_classes_by_their_names(classes):
    labels = pd.Series(np.repeat(classes, [6_000, 3_000, 1_000]))
    noisy, record = optrand.randomize(labels, 2.0, labels=classes, task="classification", randomizer="rr")
    found = optrand.estimate.histogram(noisy, record)
    assert (np.abs(found.shares * 10_000 - [6_000, 3_000, 1_000]) <= 6 * np.array(record.estimates.counts)).all()
    share = optrand.estimate.average(noisy, record, [0.0, 1.0, 0.0])
    assert share.value == pytest.approx(found.shares[1], abs=1e-9)
    assert_error(r"1 of 2 released values|mixes types", optrand.estimate.histogram, [classes[0], "other"], record)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 0.1, 0.7, 1.0])
def test_the_realised_epsilon_is_within_the_budget(epsilon):
    record = randomized(NUMBERS, epsilon, labels=range(4)).record
    assert (1 - 1e-9) * epsilon < record.realised_epsilon <= record.epsilon == epsilon


def test_a_single_label_has_a_loss_and_an_epsilon_of_zero_without_a_sign():
    record = randomized([2.0, 2.0], labels=[2.0]).record
    assert math.copysign(1.0, record.realised_epsilon) == math.copysign(1.0, record.noisy_label_loss) == 1.0


def test_masked_cells_and_nulls_of_pandas_are_missing():
    given = np.ma.array(NUMBERS, mask=[0, 1, 0, 0, 0, 0, 1, 0])
    assert_error("missing", randomized, given, labels=range(4))
    kept, record = randomized(given, labels=range(4), nulls="drop")
    assert (len(kept), record.rows, np.ma.getmaskarray(kept).any()) == (6, 6, False)
    passed, record = randomized(given, labels=range(4), nulls="pass")
    assert (passed.mask.tolist(), record.rows) == (given.mask.tolist(), 6)
    for dtype, cells, classes in (("boolean", [True, None, False], [True, False]), ("Int64", [1, None, 2], [1, 2])):
        series = pd.Series(cells, dtype=dtype)
        assert randomized(series, labels=classes, task="classification", nulls="pass").table.dtype == series.dtype
    names, record = randomized(["no", None, "yes"], labels=["yes", "no", None], nulls="class")
    assert record.rows == 3
    assert set(names) <= {"yes", "no", None}


@pytest.mark.parametrize(
    "given",
    [["no", math.nan, "yes", None], np.array(["no", np.nan, "yes", None], dtype=object)],
    ids=["list", "array of objects"],
)
def test_nan_among_names_is_missing(given):
    with pytest.raises(InvalidInput, match="at least one label in column 'labels' is missing: "):
        randomized(given, labels=["yes", "no"])
    noisy, record = randomized(given, labels=["yes", "no"], nulls="pass")
    assert [name is None for name in noisy] == [False, True, False, True]
    assert record.rows == 2
    assert len(randomized(given, labels=["yes", "no"], nulls="drop").table) == 2


def test_a_row_without_one_of_several_labels_is_dropped_as_a_whole():
    frame = pd.DataFrame({"i": range(4), "a": [1, None, 0, 1], "b": ["x", "y", None, "x"]})
    noisy, record = randomized(frame, 1.0, column=["a", "b"], labels={"a": [0, 1], "b": ["x", "y"]}, nulls="drop")
    assert noisy["i"].tolist() == [0, 3]
    assert (record["a"].rows, record["b"].rows) == (2, 2)


@pytest.mark.parametrize("package", ["cryptography", "pyarrow"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, tmp_path):
    script = f"""
import sys
sys.modules[{package!r}] = None
import optrand
try:
    optrand.randomize([0, 1] * 50, 1.0, labels=[0, 1], dataset="d", ledger={str(tmp_path / "ledger")!r})
except optrand.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{package} is not installed: pip install 'optrand[release]'\n"
    assert not Ledger(tmp_path / "ledger").entries()


def test_clipping_a_bias_and_a_single_label():
    beyond = [-4, 0, 9, 2]
    assert_error("not among the 4 declared", randomized, beyond, labels=range(4))
    assert randomized(beyond, labels=range(4), clip=True).record.rows == 4
    bins = randomized(NUMBERS, labels=range(4), bias_penalty=0.0).record
    assert bins.estimates.mean is None
    assert randomized([5, 5], labels=[5]).table == [5, 5]


def test_two_numbers_are_two_labels_and_no_range(ledger):
    with pytest.raises(InvalidInput, match=r"Two numbers are two labels, and a range is labels=range\(53\)"):
        randomized([0, 5, 20], labels=(0, 20), dataset="d", ledger=ledger)
    assert not ledger.entries()
    assert randomized([0, 20], labels=(0, 20)).record.labels == (0.0, 20.0)
    assert randomized([0, 5, 20], labels=range(21)).record.rows == 3


def test_what_cannot_be_estimated_is_said():
    with pytest.warns(UserWarning, match="no histogram") as told:
        optrand.randomize(NUMBERS, 1.0, labels=range(4), bias_penalty=0.0, prior=[0.97, 0.01, 0.01, 0.01])
    assert told[0].filename == __file__


@by_case(
    "options, told",
    ({"bias_penalty": 0.0}, " under a uniform prior: the mechanism has 2 outputs for 4 labels"),
    ({"bias_penalty": 0.0, "prior": [1.0, 0.0, 0.0, 0.0]}, ": the mechanism has 1 output for 4 labels"),
    ({"randomizer": "rr-top-k:2"}, " under a uniform prior: the mechanism has 2 outputs for 4 labels"),
)
def test_a_warning_that_is_an_error_costs_nothing(ledger, options, told):
    options = {"labels": range(4), "dataset": "d", "ledger": ledger, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=f"^no histogram, no loss of a label{told}"):
            optrand.randomize(NUMBERS, 1.0, **options)
    assert not ledger.entries()
    with pytest.warns(UserWarning, match="no histogram") as given:
        optrand.randomize(NUMBERS, 1.0, **options)
    assert [warning.filename for warning in given] == [__file__]


def test_a_gap_is_refused_before_it_is_charged_unless_told(ledger):
    options = {"labels": range(4), "bias_penalty": 1e200, "dataset": "d", "ledger": ledger}
    assert_error("gap", randomized, NUMBERS, error=NotCertified, **options)
    assert not ledger.entries()
    assert isinstance(randomized(NUMBERS, gap=1.0, **options).record, ReleaseRecord)


@pytest.mark.parametrize(
    ("epsilon", "options"),
    [(1.0, {"bias_penalty": 0, "outputs": optrand.Interval(-5, 9)}), (1.0, {"outputs": [-9, 9]}), (1e-12, {})],
)
def test_minimax_is_solved_before_it_is_charged(ledger, epsilon, options):
    with pytest.raises((InvalidInput, NotCertified)):
        optrand.randomize(
            NUMBERS, epsilon, labels=range(4), randomizer="minimax", dataset="d", ledger=ledger, **options
        )
    assert not ledger.entries()


@by_case("labels, told", ([0.5, 1.5], "of type float"), ([1, "a"], "of type int and str"), ([None], "missing"))
def test_names_are_of_one_type(labels, told):
    words = f"^labels that are names are {told}, expected all text, all integers or"
    assert_error(words, optrand.randomize, [1, 1], 1.0, labels=labels, task="classification")


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], ["yes", "no"]], ids=str)
def test_a_column_of_booleans_holds_true_and_false_alone(classes):
    for given in (np.array([True, False]), pa.array([True, None]), pd.Series([True, False], dtype="boolean")):
        with pytest.raises(InvalidInput, match="is of type bool, which does not hold the declared labels"):
            optrand.randomize(given, 1.0, labels=classes, task="classification", nulls="pass")


def test_what_exports_arrow_comes_back_as_an_arrow_table():
    """DuckDB's relations, narwhals' frames, and any object with the PyCapsule protocol."""
    duckdb, narwhals = pytest.importorskip("duckdb"), pytest.importorskip("narwhals")
    table = pa.table({"y": NUMBERS, "z": range(8)})
    with duckdb.connect() as database:
        relation = database.from_arrow(table)
        for given in (relation, narwhals.from_native(table), table.to_reader()):
            noisy, record = randomized(given, column="y", labels=range(4))
            assert isinstance(noisy, pa.Table)
            assert (noisy["z"].to_pylist(), record.rows) == (list(range(8)), 8)


@by_case(
    "given",
    *[range(4), pd.Index([0, 1, 2, 3]), pd.array([0, 1, 2, 3]), np.arange(4, dtype=">i4")],
    *[np.arange(4, dtype=">f4"), pd.Series([0, 1, 0, 2], dtype=pd.SparseDtype("int64", 0))],
    *[pa.array(np.arange(4, dtype=np.float16)), pa.array([0, 1, 2, 3]).dictionary_encode()],
    pc.run_end_encode(pa.array([0, 1, 1, 3])),
    ids=lambda given: f"{type(given).__name__} {getattr(given, 'dtype', '')}",
)
def test_other_columns_of_numbers_are_read(given):
    noisy, record = randomized(given, labels=range(4))
    assert (len(noisy), record.rows) == (4, 4)


@by_case(
    "classes",
    pa.array(["a", None, "b"], pa.string_view()),
    pa.array([b"a", None, b"b"]),
    pa.array(["a", None, "b"], pa.large_string()),
    pc.run_end_encode(pa.array(["a", None, "b"])),
    ids=lambda given: str(given.type),
)
def test_text_of_every_layout_is_a_class(classes):
    noisy, record = randomized(classes, 30.0, labels=["a", "b"], nulls="pass")
    plain = [cell.decode() if isinstance(cell, bytes) else cell for cell in noisy.to_pylist()]
    assert (plain, record.rows) == (["a", None, "b"], 2)


def test_integers_that_pandas_has_made_floats_are_classes_still():
    noisy, record = randomized(pd.Series([7, None, 8] * 50), 30.0, labels=[7, 8], task="classification", nulls="pass")
    assert noisy.dropna().tolist() == [7, 8] * 50
    assert optrand.estimate.histogram(noisy, record).shares == pytest.approx([0.5, 0.5], abs=1e-9)


SIZES = ["low", "mid", "high"]


@by_case(
    "categories, ordered, found",
    (SIZES, True, (SIZES, True)),
    # The list may be in the order in which labels occurred.
    (SIZES, False, (["mid", "high", "low"], False)),
    ([*SIZES, "none"], True, (["mid", "high", "low"], False)),
)
def test_categories_are_the_declared_labels(categories, ordered, found):
    given = pd.Series(pd.Categorical(["low", "high", "low"], categories, ordered=ordered))
    noisy = randomized(given, labels=["mid", "high", "low"]).table
    assert (noisy.cat.categories.tolist(), noisy.cat.ordered) == found


def test_a_categorical_of_numbers_is_released_as_floats():
    given = pd.DataFrame({"y": pd.Series([0, None, 2, 3], dtype="category")})
    noisy, record = randomized(given, column="y", labels=range(4), nulls="pass")
    assert (noisy["y"].dtype, noisy["y"].isna().tolist()) == (np.float64, [False, True, False, False])
    assert set(noisy["y"].dropna()) <= set(record.mechanism.outputs)
    classes = randomized(given["y"], labels=range(4), task="classification", nulls="pass").table
    assert classes.cat.categories.tolist() == [0, 1, 2, 3]


@by_case(
    "labels, kind",
    ([Decimal("0.5"), Decimal(1)], "Decimal"),
    ([date(2020, 1, 1)], "date"),
    (np.array(["2020-01-01"], "M8[ns]"), "datetime64"),
    (pd.to_datetime(["2020-01-01"]), "datetime64"),
)
def test_declared_labels_of_another_type_are_named_by_it(labels, kind):
    words = f"^labels hold values of type {kind}, expected numbers or text: convert"
    assert_error(words, optrand.randomize, [1, 1], 1.0, labels=labels)


def test_a_column_that_is_not_there_is_answered_by_the_nearest_name():
    frame = {"class": NAMES, "y": NUMBERS, 7: NUMBERS}
    for given in (pd.DataFrame(frame), pl.DataFrame({str(name): cells for name, cells in frame.items()})):
        with pytest.raises(InvalidInput, match=r"0 columns named 'clas' among 3, .* \(did you mean 'class'\?\)$"):
            optrand.randomize(given, 1.0, column="clas", labels=CLASSES)
        with pytest.raises(InvalidInput, match=r"0 columns named 'weeks' among 3, expected one$"):
            optrand.randomize(given, 1.0, column="weeks", labels=CLASSES)


def test_estimates_of_a_frame_ask_for_its_column():
    frame = pd.DataFrame({"weeks": NUMBERS})
    noisy, record = randomized(frame, column="weeks", labels=range(4))
    for given in (noisy, pl.DataFrame(noisy), pa.table(noisy)):
        for call in (optrand.estimate.mean, optrand.estimate.histogram):
            assert_error(r"^released is a \w+: pass its column, frame\['weeks'\]$", call, given, record)


def test_not_a_number_is_a_missing_label():
    for given in (np.array([0.0, math.nan, 1.0]), pl.Series([0.0, math.nan, 1.0]), pa.array([0.0, math.nan, 1.0])):
        assert len(randomized(given, labels=[0, 1], nulls="drop").table) == 2
        assert randomized(given, labels=[0, 1], nulls="pass").record.rows == 2


def test_ids_are_uuids_dates_or_several_columns():
    uuids = [uuid.UUID(int=i) for i in range(8)]
    dates = pa.array(range(8), pa.date32())
    for ids in (pd.Series(uuids), pa.array([each.bytes for each in uuids], pa.uuid()), dates, np.array(uuids)):
        assert randomized(NUMBERS, labels=range(4), ids=ids).record.ids == ("ids",)
    frame = pd.DataFrame({"y": NUMBERS, "a": [0, 0, 0, 0, 1, 1, 1, 1], "b": [0, 1, 2, 3] * 2})
    assert randomized(frame, column="y", labels=range(4), ids=["a", "b"]).record.ids == ("a", "b")
    assert_error("the same id", randomized, frame, column="y", labels=range(4), ids=["a"])


def test_groups_are_dates_or_numbers_with_gaps():
    frame = pd.DataFrame(
        {"y": NUMBERS * 500, "g": [1.0, None] * 2000, "d": pd.to_datetime(["2020-01-01", "2021-02-03"] * 2000)}
    )
    for name, values in (("g", ["[null]", '["1"]']), ("d", None)):
        record = randomized(frame, column="y", labels=range(4), groups=name).record
        assert len(record.mechanisms) == 2
        assert values is None or list(record.mechanisms) == values


def test_every_option_may_differ_by_column():
    frame = pd.DataFrame({"a": [0, 9, 1], "b": ["x", "y", "x"]})
    _, record = randomized(
        frame,
        column=["a", "b"],
        labels={"a": [0, 1], "b": ["x", "y"]},
        clip={"a": True},
        bias_penalty={"a": 0.0},
        randomizer={"b": "rr-with-prior"},
    )
    assert record["a"].bias > 0
    assert record["b"].randomizer.startswith("rr-with-prior")


@pytest.mark.parametrize("given", [3, None])
def test_what_is_no_path_of_a_record_is_refused_by_its_type(given):
    assert_error(f"path is of type {type(given).__name__}, expected the path of the record", load_release, given)


def test_records_of_a_frame_are_saved_and_loaded(tmp_path):
    frame = pd.DataFrame({"a": [0, 1] * 500, "b": ["x", "y"] * 500, "g": ["p", "q"] * 500})
    noisy, record = randomized(frame, 30.0, column=["a", "b"], labels={"a": [0, 1], "b": ["x", "y"]}, groups="g")
    record.save(tmp_path / "frame.release.json")
    loaded = load_release(tmp_path / "frame.release.json")
    assert (loaded, loaded.epsilon) == (record, 60.0)
    found = optrand.estimate.histogram(noisy["b"], loaded["b"], groups=noisy)
    assert found.shares == pytest.approx([0.5, 0.5], abs=1e-6)


class TestLedger:
    def test_a_release_is_charged_in_full_and_once(self, ledger):
        frame = pd.DataFrame({"weeks": NUMBERS})
        _, record = optrand.randomize(frame, 1.0, column="weeks", labels=range(4), dataset="census", ledger=ledger)
        assert record.dataset == "census"
        spent = ledger.spent("census", "weeks").epsilon
        assert spent == Fraction(str(record.parts.prior)) + Fraction(str(record.parts.labels)) == 1
        (entry,) = ledger.entries()
        assert entry.state == "complete"
        assert (entry.id, entry.key, entry.record) == (record.release, None, None)
        # A Series of that name is the same column.
        with pytest.raises(AlreadySpent):
            optrand.randomize(frame["weeks"], 1.0, labels=range(4), dataset="census", ledger=ledger)
        with pytest.raises(OverBudget):
            optrand.randomize(
                frame["weeks"], 1.0, labels=range(4), dataset="census", ledger=ledger, again=True, budget=1.5
            )
        assert ledger.spent("census").epsilon == spent
        optrand.randomize(
            frame["weeks"], 1.0, labels=range(4), dataset="census", ledger=ledger, again=True, budget=Spent(2.0)
        )
        assert ledger.spent("census").epsilon == 2 * spent

    @pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32])
    def test_budgets_are_numbers_of_numpy_too(self, ledger, tmp_path, kind):
        options = {"column": ["a", "b"], "labels": [0, 1], "dataset": "census", "ledger": ledger}
        frame = pd.DataFrame({"a": [0, 1] * 50, "b": [1, 0] * 50})
        record = optrand.randomize(frame, {"a": kind(1), "b": 2.0}, budget=kind(3), **options).record
        assert [ledger.spent("census", name).epsilon for name in "ab"] == [1, 2]
        record.save(tmp_path / "frame.release.json")
        assert load_release(tmp_path / "frame.release.json")["a"].epsilon == 1.0
        assert_error(None, optrand.randomize, frame, kind(1), again=True, budget=kind(3), **options, error=OverBudget)

    def test_the_users_own_is_the_default(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        optrand.randomize(NUMBERS, 1.0, labels=range(4), dataset="census")
        assert Ledger().spent("census").epsilon == 1
        record = optrand.randomize(NUMBERS, 1.0, labels=range(4), dataset="census", ledger=None).record
        assert record.dataset is None

    def test_a_release_that_broke_off_goes_on_with_the_same_noise(self, ledger, monkeypatch):
        labels = np.arange(300) % 4
        options = {"labels": range(4), "dataset": "census", "ledger": ledger}
        drawn = []

        def broken(self, *_):
            drawn.append(pa.chunked_array([parts[0] for parts in self._noisy]))
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("optrand.release._batches.Sink.close", broken)
            with pytest.raises(KeyboardInterrupt) as caught:
                optrand.randomize(labels, 1.0, **options)
        assert any(isinstance(note, SpentNote) and "goes on" in note for note in caught.value.__notes__)
        (before,) = ledger.entries()
        assert (before.state, before.open) == ("drawn", True)
        assert_error(None, optrand.randomize, (labels + 1) % 4, 1.0, **options, error=InputChanged)
        with pytest.raises(AlreadySpent, match="the command that began it goes on with it"):
            optrand.randomize(labels, 1.5, **options)
        noisy, record = optrand.randomize(labels, 1.0, **options)
        assert noisy.tolist() == drawn[0].to_pylist()
        (after,) = ledger.entries()
        assert (after.id, after.state) == (before.id, "complete") == (record.release, "complete")
        assert ledger.spent("census").epsilon == 1


SECRET = 31337
REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "unknown task": (NUMBERS, {"labels": range(4), "task": "classes"}),
    "task of another type": (NUMBERS, {"labels": range(4), "task": ["classification"]}),
    "names for a regression": (NAMES, {"labels": CLASSES, "task": "regression"}),
    "floats as classes": (NUMBERS, {"labels": [0.0, 0.5], "task": "classification"}),
    "classes without a missing one": (NUMBERS, {"labels": range(4), "task": "classification", "nulls": "class"}),
    "categories are not declared": (pd.Series(NAMES, dtype="category"), {}),
    "undeclared": ([0, SECRET], {"labels": range(4)}),
    "undeclared class": (["no", f"{SECRET}"], {"labels": CLASSES}),
    "missing": ([0, None, SECRET], {"labels": range(4)}),
    "only missing": (np.ma.array([1, 2], mask=True), {"labels": range(4), "nulls": "drop"}),
    "mixed": ([0, "1", SECRET], {"labels": range(4)}),
    "booleans among numbers": ([True, 3], {"labels": range(4)}),
    "numbers as text": (["0", "1"], {"labels": range(4)}),
    "complex": (np.array([1j]), {"labels": range(4)}),
    "dates": (np.array(["2020-01-01"], "M8[D]"), {"labels": range(4)}),
    "a number": (3, {"labels": range(4)}),
    "lazy": (pl.LazyFrame({"y": NUMBERS}), {"labels": range(4), "column": "y"}),
    "column twice": (pd.DataFrame([[0, 1]], columns=["y", "y"]), {"labels": range(4), "column": "y"}),
    "a set of columns": (pd.DataFrame({"y": NUMBERS}), {"labels": range(4), "column": {"y"}}),
    "a list in a list": (pd.DataFrame({"y": NUMBERS}), {"labels": range(4), "column": [["y"]]}),
    "clipped classes": (NAMES, {"labels": CLASSES, "clip": True}),
    "biased classes": (NAMES, {"labels": CLASSES, "bias_penalty": 0.0}),
    "domain as set": (NUMBERS, {"labels": {0, 1, 2, 3}}),
    "booleans in domain": (NUMBERS, {"labels": [False, True, 2, 3]}),
    "classes of a number": (NAMES, {"labels": 3}),
    "classes of a text": (NAMES, {"labels": "no"}),
    "classes of two types": (NAMES, {"labels": ["no", 1]}),
    "float classes": ([1.5], {"labels": [1.5], "task": "classification"}),
    "class that an Enum lacks": (pl.Series(["no"], dtype=pl.Enum(["no", "maybe"])), {"labels": CLASSES}),
    "undecodable class": (NAMES, {"labels": [*CLASSES, "\ud800"]}),
    "randomizer and prior": (NUMBERS, {"labels": range(4), "randomizer": "rr", "prior": [0.25] * 4}),
    "text for numbers": (np.array([1.5, 2.5]), {"labels": ["a", "b"]}),
    "too few ids": (NUMBERS, {"labels": range(4), "ids": [1, 2]}),
    "repeated ids": (NUMBERS, {"labels": range(4), "ids": [1, 2, 3, 4, 5, 6, 7, 7]}),
    "missing ids": (NUMBERS, {"labels": range(4), "ids": [1, 2, 3, 4, 5, 6, 7, None]}),
    "ids by name in an array": (NUMBERS, {"labels": range(4), "ids": "id"}),
    "ids of labels": (pd.DataFrame({"y": range(4)}), {"labels": range(4), "column": "y", "ids": "y"}),
}


@pytest.mark.parametrize(("given", "options"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_in_words_without_a_label(given, options):
    with pytest.raises(InvalidInput) as caught:
        randomized(given, **options)
    told = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert str(SECRET) not in told
    assert "spent" not in " ".join(getattr(caught.value, "__notes__", []))


def test_without_a_ledger_no_record_is_written_out(monkeypatch):
    monkeypatch.setattr(ReleaseRecord, "to_bytes", lambda _: pytest.fail("the record was serialised"))
    noisy, record = optrand.randomize([0, 1, 2] * 20, 1.0, labels=range(3))
    assert (len(noisy), record.rows) == (60, 60)
