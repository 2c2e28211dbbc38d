"""Mistakes in public input: refused before anything is charged, in Python and on the command line.

A release is charged once and for ever, so a table or an option that cannot be released must be found before that. Each
test states the right value: the labels that are read, the share that is estimated, the cells that the released file
holds, or the exit code together with an empty ledger.
"""

import gzip
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from asserting import assert_error, by_case
from commands import invoke
from typer.testing import Result

import optrand
from optrand.accounting._ledger import Ledger
from optrand.baselines import UniformRR
from optrand.errors import InvalidInput, OverBudget
from optrand.learning import Domain, PrivateLabels
from optrand.release._cells import UNDECLARED, LabelColumn
from optrand.release._files import randomize_table
from optrand.release._question import Question
from optrand.release._tables import check_storable, check_writable, diagnose_table

ROWS = 300
LABELS = [0, 1, 2] * (ROWS // 3)

WRONG_INPUT = 2
"""Exit code."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("accounts").mkdir()
    return tmp_path


def invoked(source: str, target: str, *more: str, epsilon: str = "1", code: int | None = None) -> Result:
    options = ["--column", "y", "--labels", "0:2", "--epsilon", epsilon, "--dataset", "d"]
    result = invoke("randomize", source, target, *options, "--ledger", "accounts/ledger.sqlite", *more, code=code)
    assert "Traceback" not in result.output
    return result


def charges() -> int:
    """Count of releases in the ledger, finished or not."""
    return len(Ledger("accounts/ledger.sqlite").entries())


def run_job(source: str, target: str, **options: Any) -> Any:
    question = Question(column="y", labels=range(3), epsilon=1.0)
    return randomize_table(source, target, question, dataset="d", ledger="accounts/ledger.sqlite", **options)


def check_refused(source: str, target: str, words: str, *more: str, **options: Any) -> None:
    """Check that a release is refused in Python and on the command line, and that neither charged or wrote anything."""
    before = sorted(Path().rglob("*"))
    assert_error(words, run_job, source, target, **options)
    result = invoked(source, target, *more)
    assert result.exit_code == WRONG_INPUT, result.output
    assert charges() == 0
    assert sorted(path for path in Path().rglob("*") if path.parts[0] != "accounts") == [
        path for path in before if path.parts[0] != "accounts"
    ]


# Decimals: a decimal is the float nearest to its text
TENTHS = [Decimal(digit) / 10 for digit in range(1, 10)]


@by_case(
    "given",
    *[pa.array(TENTHS).cast(kind) for kind in (pa.decimal128(10, 1), pa.decimal256(40, 3))],
    *[pa.array(TENTHS).cast(kind).dictionary_encode() for kind in (pa.decimal128(10, 1), pa.decimal256(40, 3))],
    *[pl.Series("y", TENTHS), TENTHS, np.array(TENTHS, dtype=object), pd.Series(TENTHS)],
    ids=lambda given: str(getattr(given, "type", type(given))),
)
def test_every_tenth_is_read_from_a_column_of_decimals(given: Any) -> None:
    noisy, record = optrand.randomize(given, 1.0, labels=[digit / 10 for digit in range(1, 10)])
    assert (len(noisy), record.rows, getattr(noisy, "type", pa.float64())) == (9, 9, pa.float64())


def test_decimals_with_two_places_are_counted_as_they_are_written() -> None:
    hundredths = [Decimal(digit) / 100 for digit in range(1, 30)]
    Path("private").mkdir()
    pq.write_table(pa.table({"y": pa.array(hundredths, pa.decimal128(10, 2))}), "private/in.parquet")
    question = Question(column="y", labels=[digit / 100 for digit in range(1, 30)], epsilon=1.0)
    assert diagnose_table("private/in.parquet", question)["undeclared"] == 0
    assert randomize_table("private/in.parquet", "out.parquet", question).rows == 29


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("declared", [np.float16, np.float32, np.float64])
def test_narrow_floats_are_their_shortest_decimals_on_both_sides(kind: type, declared: type) -> None:
    tenths = [0.1, 0.3, 0.7]
    given = np.array(tenths * 5, kind)
    assert optrand.randomize(given, 1.0, labels=np.array(tenths, declared)).record.labels == (0.1, 0.3, 0.7)
    assert optrand.randomize(pa.array(given), 1.0, labels=tenths).record.rows == 15
    table = optrand.rr(np.array(tenths, declared), epsilon=1.0)
    assert table.sample(given).shape == (15,)
    assert np.isin(table.sample(kind(0.1)), tenths)

    domains = np.array(tenths, declared), pd.Series(tenths, dtype=declared), list(np.array(tenths, declared))
    for domain in domains:
        for given in (np.array(tenths, kind), pd.Series(tenths, dtype=kind), list(np.array(tenths, kind))):
            assert Domain.of(domain).codes(given).tolist() == [0, 1, 2]
    mixed = np.array([*np.array(tenths, kind), None], dtype=object)[:-1]
    assert Domain.of(tenths).codes(mixed).tolist() == [0, 1, 2]


def test_whole_narrow_floats_are_themselves() -> None:
    """As a float32 the shortest decimal of 2**30 is 1.0737418e9, another integer."""
    given = np.array([0, 2**30] * 50, np.float32)
    assert optrand.randomize(given, 1.0, labels=[0, 2**30]).record.labels == (0, 2**30)
    assert optrand.randomize(given, 1.0, labels=given[:2]).record.labels == (0, 2**30)
    assert Domain.of([0, 2**30]).codes(given).tolist() == [0, 1] * 50


NEXT = 2**53 + 1
"""The nearest float is 2**53."""

LARGE_INTEGERS: dict[str, Any] = {
    "array": np.array([0, NEXT]),
    "list": [0, NEXT],
    "unsigned": pa.array([0, NEXT], pa.uint64()),
    "dictionary": pa.array([0, NEXT]).dictionary_encode(),
    "category": pd.Series([0, NEXT], dtype="category"),
    "Int64": pd.Series([0, NEXT], dtype="Int64"),
    "polars": pl.Series([0, -NEXT]),
    "decimals": pa.array([Decimal(0), Decimal(NEXT)]),
    "decimals with places": pa.array([Decimal("0.00"), Decimal(f"{NEXT}.00")]),
    "list of decimals": [Decimal(0), Decimal(-NEXT)],
}


@pytest.mark.parametrize("name", LARGE_INTEGERS)
def test_labels_beyond_the_last_integer_that_floats_tell_apart_are_refused(name: str) -> None:
    for clip in (False, True):
        with pytest.raises(InvalidInput, match="no finite number that floats can tell apart"):
            optrand.randomize(LARGE_INTEGERS[name], 1.0, labels=[-(2**53), 0, 2**53], clip=clip)


@pytest.mark.parametrize("cell", ["9007199254740993", "-9007199254740993", " +09007199254740993.0", "9" * 5000])
def test_text_beyond_the_last_integer_that_floats_tell_apart_is_refused(cell: str) -> None:
    labels = ("--labels", "-9007199254740992,0,9007199254740992")
    Path("in.csv").write_text(f"y\n0\n{cell}\n")
    refused = invoked("in.csv", "out.csv", *labels)
    assert (refused.exit_code, charges()) == (WRONG_INPUT, 0)
    assert "no finite number that floats can tell apart" in refused.output
    assert not Path("out.csv").exists()
    Path("in.csv").write_text("y\n0\n9007199254740992\n-9007199254740992.0\n9.007199254740992e15\n")
    invoked("in.csv", "out.csv", *labels, code=0)


# The rule by which a label is a declared number
def places(values: Any, declared: Any) -> list[int]:
    return LabelColumn(Question(labels=declared, epsilon=1.0), pa.float64()).places(pa.array(values)).tolist()


@pytest.mark.parametrize(
    ("low", "high", "step", "digits"),
    [(0, 1.01, 0.01, 2), (-1, 1.01, 0.01, 2), (0, 52.1, 0.1, 1), (-100, 100, 0.01, 2), (1000, 1001, 0.001, 3)],
)
def test_a_range_of_numpy_declares_the_decimals_that_are_meant(
    low: float, high: float, step: float, digits: int
) -> None:
    declared = np.arange(low, high, step)
    written = np.array([float(f"{number:.{digits}f}") for number in declared])
    assert (written != declared).any(), "the range holds the decimals already and tests nothing"
    assert Domain.of(declared).codes(written).tolist() == list(range(declared.size))
    assert places(written, declared) == list(range(declared.size))
    assert places(written + 1e-6, declared) == [UNDECLARED] * declared.size


def test_labels_of_two_decimals_are_released_with_a_range_as_their_domain() -> None:
    given = np.round(np.random.default_rng(0).random(500), 2)
    for labels in (pl.Series(given), [0.1 + 0.2, 0.29, 1]):
        noisy, record = optrand.randomize(labels, 1.0, labels=np.arange(0, 1.01, 0.01))
        assert len(noisy) == record.rows == len(labels)


@by_case(
    "declared, label",
    # Half of a digit that somebody wrote, and numbers beside whole ones, are other numbers.
    ([0.0, 0.29], 0.2901),
    ([0.0, 0.29], 0.29000001),
    ([0.0, 1.0, 2.0], np.nextafter(1.0, 2.0)),
    ([0.0, 1e15], 0.5),
    ([0.0, 1e6 + 0.5], 1.0),
    ([0.1, np.nextafter(0.1, 1.0)], np.nextafter(np.nextafter(0.1, 1.0), 1.0)),
    ([0.5], np.nextafter(0.5, 1.0)),
)
def test_other_numbers_are_no_declared_ones(declared: list[float], label: float) -> None:
    values = np.array([label, declared[0]])
    assert places(values, declared) == [UNDECLARED, 0]


def test_neighbouring_floats_that_are_both_declared_stay_apart() -> None:
    near = np.array([0.1, np.nextafter(0.1, 1.0), 0.5])
    assert places(near, near) == [0, 1, 2]


# Copies of the labels that a frame or a file names as such
SECRET = np.array([1234567.25, 7654321.75, 5555555.5])
"""Labels whose bytes occur in a file by their cells alone."""


def secret_frame() -> pd.DataFrame:
    return pd.DataFrame({"y": np.tile(SECRET, 100), "z": range(ROWS)})


SECRET_OPTIONS = ("--column", "y", "--labels", ",".join(map(str, SECRET)), "--epsilon", "1", "--no-ledger")


def check_no_label(path: str) -> None:
    """Check that no column, statistic, dictionary or note of a released Parquet file holds a true label."""
    for column in pq.read_table(path).columns:
        if pa.types.is_floating(column.type):
            assert not np.isin(SECRET, column.to_numpy()).any()
    opened = pq.ParquetFile(path)
    for group in range(opened.metadata.num_row_groups):
        for number in range(opened.metadata.num_columns):
            found = opened.metadata.row_group(group).column(number).statistics
            assert found is None or not found.has_min_max or not {found.min, found.max} & set(SECRET.tolist())
    schema = opened.schema_arrow
    noted = str([schema.metadata, *(field.metadata for field in schema)])
    content = Path(path).read_bytes()
    for label in SECRET.tolist():
        assert str(label) not in noted
        assert np.float64(label).tobytes() not in content
        assert str(label).encode() not in content


def secret_released(source: str, target: str, *more: str, code: int | None = None) -> Result:
    return invoke("randomize", source, target, *SECRET_OPTIONS, *more, code=code)


def test_the_search_for_labels_finds_them() -> None:
    secret_frame().to_parquet("true.parquet", compression="none")
    assert_error(None, check_no_label, "true.parquet", error=AssertionError)


INDEXES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "index": (lambda frame: frame.set_index("y", drop=False), "__index_level_0__"),
    "levels": (lambda frame: frame.set_index(["z", "y"], drop=False), "__index_level_1__"),
    "levels, label first": (lambda frame: frame.set_index(["y", "z"], drop=False), "__index_level_0__"),
    "text": (lambda frame: frame.set_index(frame["y"].map(str).rename("y")), "__index_level_0__"),
}


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("target", ["out.parquet", "out.csv.gz"])
def test_an_index_of_the_labels_in_a_file_is_refused_until_it_is_dropped(name: str, target: str) -> None:
    make, copy = INDEXES[name]
    make(secret_frame()).to_parquet("in.parquet")
    assert copy in pq.read_schema("in.parquet").names
    question = Question(column="y", labels=SECRET, epsilon=1.0)
    with pytest.raises(InvalidInput, match=f"'{copy}' of in.parquet is an index of pandas that is named 'y'"):
        randomize_table("in.parquet", target, question, dataset="d", ledger="accounts/ledger.sqlite")
    refused = secret_released("in.parquet", target)
    assert (refused.exit_code, charges()) == (WRONG_INPUT, 0)
    assert not Path(target).exists()

    secret_released("in.parquet", target, "--drop", copy, code=0)
    if target.endswith(".parquet"):
        check_no_label(target)
        assert pd.read_parquet(target)["z"].tolist() == list(range(ROWS))
    else:
        content = Path(target).read_bytes()
        text = gzip.decompress(content) if target.endswith("gz") else content
        assert not any(str(label).encode() in text for label in SECRET.tolist())


@by_case(
    "make",
    lambda frame: frame.set_index("y"),
    lambda frame: frame.set_index("z"),
    lambda frame: frame.set_axis(pd.RangeIndex(ROWS, name="y"), axis=0),
    lambda frame: frame.assign(y=frame["y"].astype("category")),
    lambda frame: frame.rename_axis("y", axis=1),
    lambda frame: frame,
    ids=["the labels are the index", "public index", "range named like the labels", "category", "axis", "plain"],
)
def test_other_frames_are_released_and_read_by_pandas(make: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    private = make(secret_frame())
    private.attrs = {"true": SECRET.tolist()}
    private.to_parquet("in.parquet")
    secret_released("in.parquet", "out.parquet", code=0)
    check_no_label("out.parquet")
    noisy = pd.read_parquet("out.parquet").reset_index()
    assert noisy["z"].tolist() == list(range(ROWS))
    assert not np.isin(SECRET, noisy["y"]).any()


def in_memory() -> Iterator[tuple[str, Any, str | None]]:
    frame = secret_frame()
    yield "index", frame.set_index("y", drop=False), "y"
    yield "levels", frame.set_index(["z", "y"], drop=False), "y"
    yield "no name", frame.set_index("y", drop=False).rename_axis(None), "y"
    yield "another name", frame.set_index("y", drop=False).rename_axis("q"), "y"
    yield "levels without names", frame.set_index(["z", "y"], drop=False).rename_axis([None, None]), "y"
    yield "column", frame.set_index("y", drop=False)["y"], None
    yield "column without a name", frame.set_index("y", drop=False)["y"].rename(None), "y"
    yield "column, equal", pd.Series(frame["y"].to_numpy(), index=pd.Index(frame["y"].to_numpy())), None
    codes = pd.Index(frame["y"].astype("category"))
    yield "column of categories", pd.Series(frame["y"].to_numpy(), index=codes), None
    gaps = frame["y"].where(frame["z"] > 5)
    yield "with gaps", pd.Series(gaps.to_numpy(), index=pd.Index(gaps.to_numpy())), None


@pytest.mark.parametrize(("given", "label"), [pytest.param(*rest, id=name) for name, *rest in in_memory()])
def test_an_index_in_memory_that_keeps_the_labels_is_refused(given: Any, label: str | None) -> None:
    options = {"labels": SECRET, "dataset": "d", "ledger": "accounts/ledger.sqlite", "nulls": "pass"}
    with pytest.raises(InvalidInput, match=r"the index (is named|equals).*reset_index\(drop=True\)"):
        optrand.randomize(given, 1.0, column=label, **options)
    assert charges() == 0
    plain = given.reset_index(drop=True)
    assert optrand.randomize(plain, 1.0, column=label, **options).record.labels == tuple(np.sort(SECRET))


def test_row_numbers_are_no_copy_of_the_labels() -> None:
    assert optrand.randomize(pd.Series(range(4)), 1.0, labels=range(4)).record.rows == 4
    public = pd.Series([0, 1, 2, 3], index=["a", "b", "c", "d"])
    assert optrand.randomize(public, 1.0, labels=range(4)).table.index.tolist() == ["a", "b", "c", "d"]
    ordered = pd.DataFrame({"y": [3, 2, 1]}).set_index("y", drop=False).rename_axis(None)
    assert_error("the index equals the labels", optrand.randomize, ordered, 1.0, column="y", labels=range(4))


@by_case(
    "labels, copy, declared",
    ([3, 0, 2], ["3", "0", "2"], range(4)),
    ([3, 0, 2], [3.0, 0.0, 2.0], range(4)),
    ([0.5, 0.25, 0.5], ["0.50", "0.25", ".5"], [0.25, 0.5]),
    (np.array([0.1, 0.3, 0.2], np.float32), ["0.1", "0.3", "0.2"], [0.1, 0.2, 0.3]),
    (["3", "0", "2"], [3, 0, 2], list("0123")),
    ([True, False], ["True", "False"], [True, False]),
    (["no", "yes"], [" No", "YES"], ["yes", "no"]),
    ([3, None, 2], ["3", None, "2"], range(4)),
)
def test_a_copy_of_the_labels_is_known_in_any_type(labels: Any, copy: list[Any], declared: Any) -> None:
    options: dict[str, Any] = {"labels": declared, "nulls": "pass", "dataset": "d", "ledger": "accounts/ledger.sqlite"}
    assert_error("the index equals the labels", optrand.randomize, pd.Series(labels, index=copy), 1.0, **options)
    assert_error("the groups equal the labels", optrand.randomize, labels, 1.0, groups=copy, **options)
    assert charges() == 0
    other = pd.Index([copy[1], *copy[1:]])
    assert optrand.randomize(pd.Series(labels, index=other), 1.0, **options).table.index.equals(other)


def test_labels_at_even_distances_leave_no_range_in_the_notes_of_a_file() -> None:
    """For such an index pandas writes only the ends and the step, which reveal every label."""
    frame = pd.DataFrame({"y": [10.0 * number + 5 for number in range(ROWS)]}).set_index("y", drop=False)
    frame.index = pd.RangeIndex(5, 10 * ROWS + 5, 10, name="y")
    frame.to_parquet("in.parquet")
    assert b'"step": 10' in pq.read_schema("in.parquet").metadata[b"pandas"]
    labels = frame["y"].to_numpy()
    question = Question(column="y", labels=labels, epsilon=1.0, prior=np.full(ROWS, 1 / ROWS))
    randomize_table("in.parquet", "out.parquet", question)
    assert b"step" not in pq.read_schema("out.parquet").metadata[b"pandas"]
    assert pd.read_parquet("out.parquet").index.tolist() == list(range(ROWS))


# Values that a format cannot hold
def column_table(cells: Any, name: str = "c") -> pa.Table:
    return pa.table({"y": LABELS, name: cells})


UNWRITABLE: dict[str, Any] = {
    "list": pa.array([[1]] * ROWS),
    "struct": pa.array([{"a": 1}] * ROWS),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "uuid": pa.array([uuid.UUID(int=3).bytes] * ROWS, pa.uuid()),
    "unknown zone": pa.array([1] * ROWS, pa.timestamp("us", tz="Nowhere/Land")),
}


@pytest.mark.parametrize("name", UNWRITABLE)
@pytest.mark.parametrize("target", ["out.tsv.gz"])
def test_columns_that_csv_cannot_hold_are_refused_until_they_are_dropped(name: str, target: str) -> None:
    pq.write_table(column_table(UNWRITABLE[name]), "in.parquet")
    check_refused("in.parquet", target, "column 'c' is of type .*, which CSV cannot hold: drop it, or write Parquet")
    invoked("in.parquet", target, "--drop", "c", code=0)
    invoked("in.parquet", "out.parquet", "--again", code=0)
    assert pq.read_table("out.parquet")["c"].type == UNWRITABLE[name].type
    assert charges() == 2


WRITABLE: dict[str, tuple[Any, bytes]] = {
    "bytes of fixed size": (pa.array([b"\xff\x00"] * ROWS, pa.binary(2)), b"\xff\x00"),
    "dictionary of such": (pa.array([b"\xff\x00"] * ROWS, pa.binary(2)).dictionary_encode(), b"\xff\x00"),
    "bytes": (pa.array([b"\xff\x00"] * ROWS), b"\xff\x00"),
    "views of bytes": (pa.array([b"\xff\x00"] * ROWS, pa.binary_view()), b"\xff\x00"),
    "decimal": (pa.array([Decimal("1.50")] * ROWS), b"1.50"),
    "zone": (pa.array([0] * ROWS, pa.timestamp("s", tz="UTC")), b"1970-01-01 00:00:00.000Z"),
    "null": (pa.nulls(ROWS), b""),
}


@pytest.mark.parametrize("name", WRITABLE)
def test_columns_that_csv_can_hold_are_written(name: str) -> None:
    cells, text = WRITABLE[name]
    try:
        pq.write_table(column_table(cells), "in.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow cannot write such a column to Parquet")
    invoked("in.parquet", "out.csv", code=0)
    assert {line.split(b",")[1] for line in Path("out.csv").read_bytes().splitlines()[1:]} == {text}


def test_a_type_that_parquet_does_not_have_is_named() -> None:
    with pytest.raises(InvalidInput, match="'c' is of type struct<>, which Parquet cannot hold"):
        check_storable(pa.schema({"y": pa.int64(), "c": pa.struct([])}))
    check_writable(pa.timestamp("us", tz="Europe/Vienna"), "c")


def partitioned(folder: str) -> None:
    for state in ("CA", "TX"):
        Path(folder, f"state={state}").mkdir(parents=True)
        pq.write_table(column_table(range(ROWS)), f"{folder}/state={state}/part.parquet")


def test_a_partitioned_folder_is_released_as_a_folder_alone() -> None:
    partitioned("in")
    check_refused("in", "out.csv", "columns in the names of its folders: release it as a folder")
    invoked("in", "out", code=0)
    assert sorted(path.name for path in Path("out").iterdir()) == ["state=CA", "state=TX"]


def test_two_columns_of_one_name_are_refused_by_parquet_alone() -> None:
    Path("in.csv").write_text("y,c,c\n" + "".join(f"{y},p,q\n" for y in LABELS))
    check_refused("in.csv", "out.parquet", "two columns of one name: rename them, or write CSV")
    invoked("in.csv", "out.csv", code=0)
    assert Path("out.csv").read_text().splitlines()[1].endswith(",p,q")


@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_a_cell_that_parquet_cannot_hold_is_found_wherever_it_is(row: int) -> None:
    cells = [b"\xff" if number == row else b"p" for number in range(ROWS)]
    Path("in.csv").write_bytes(b"y,c\n" + b"".join(b"%d,%b\n" % pair for pair in zip(LABELS, cells, strict=True)))
    check_refused("in.csv", "out.parquet", "at least one cell is not UTF-8 text")
    invoked("in.csv", "out.parquet", "--drop", "c", code=0)
    invoked("in.csv", "out.csv", "--again", code=0)
    assert Path("out.csv").read_bytes().splitlines()[row + 1].endswith(b",\xff")


class OddSeries(pd.Series):
    """A class that is not made as pandas expects."""

    def __init__(self, *cells: Any, flavour: int = 0, **options: Any) -> None:
        if not flavour:
            raise TypeError("a flavour is needed")
        super().__init__(*cells, **options)

    @property
    def _constructor(self) -> Any:
        return OddSeries


@pytest.mark.parametrize("cells", [pa.array(["1", "2"], pa.string_view()), pc.run_end_encode(pa.array([1, 2]))])
def test_columns_in_memory_whose_rows_cannot_be_left_out_are_refused(cells: Any) -> None:
    table = pa.table({"y": [1, None], "c": cells})
    options = {"column": "y", "labels": [1, 2], "dataset": "d", "ledger": "accounts/ledger.sqlite"}
    try:
        table.filter(pa.array([True, False]))
    except pa.ArrowNotImplementedError:
        assert_error("they cannot be replaced", optrand.randomize, table, 1.0, nulls="drop", **options)
        assert charges() == 0
    assert optrand.randomize(table, 1.0, nulls="pass", **options).table["c"].to_pylist() == table["c"].to_pylist()


def test_a_class_of_its_own_is_rehearsed_before_it_is_charged() -> None:
    given = OddSeries([0, 1, 2], flavour=1)
    with pytest.raises(InvalidInput, match="type OddSeries, in which they cannot be replaced"):
        optrand.randomize(given, 1.0, labels=range(3), dataset="d", ledger="accounts/ledger.sqlite")
    assert charges() == 0


# Folders
@by_case(
    "source, target",
    *[("in", target) for target in ("in/released", "in/state=NV", "./in/../in/released", "link/released")],
    ("in/state=CA", "in"),
)
def test_an_output_inside_its_input_or_around_it_is_refused(source: str, target: str) -> None:
    partitioned("in")
    Path("link").symlink_to("in")
    check_refused(source, target, "noisy rows would be read as those of people")


def lake(kind: str) -> None:
    """Write a folder of two Parquet files, one of which its log has removed."""
    Path("lake/data/part=1").mkdir(parents=True)
    for name in ("current", "removed"):
        pq.write_table(column_table(range(ROWS)), f"lake/data/part=1/{name}.parquet")
    if kind == "Delta":
        Path("lake/_delta_log").mkdir()
        Path("lake/_delta_log/00000000000000000000.json").write_text(
            '{"remove":{"path":"data/part=1/removed.parquet"}}'
        )
    elif kind == "Hudi":
        Path("lake/.hoodie").mkdir()
    elif kind == "a stream of Spark":
        Path("lake/_spark_metadata").mkdir()
    elif kind == "Paimon":
        for name in ("snapshot", "manifest", "schema"):
            Path("lake", name).mkdir()
    else:
        Path("lake/metadata").mkdir()
        Path("lake/metadata", kind).write_text("{}")


ICEBERG = ("v1.metadata.json", "v1.gz.metadata.json", "00001-a.metadata.json.gz")


@pytest.mark.parametrize("kind", ["Delta", "Hudi", "a stream of Spark", "Paimon", *ICEBERG])
def test_a_table_whose_log_says_which_files_count_is_refused(kind: str) -> None:
    lake(kind)
    check_refused("lake", "out", "whose log lists the files that count")
    if kind != "Paimon":
        for part in ("lake/data", "lake/data/part=1"):
            check_refused(part, "out", "whose log lists the files that count")
        check_refused("lake/data/part=1/removed.parquet", "out.parquet", "whose log lists the files that count")


def test_a_folder_with_other_metadata_is_released() -> None:
    partitioned("in")
    Path("in/metadata").mkdir()
    Path("in/metadata/notes.json").write_text("{}")
    invoked("in", "out", code=0)


# Budgets
def test_several_columns_over_the_budget_are_refused_together() -> None:
    table = pa.table({"a": [0, 1] * 50, "b": [1, 0] * 50})
    options = {"column": ["a", "b"], "labels": [0, 1], "dataset": "d", "ledger": "accounts/ledger.sqlite"}
    with pytest.raises(OverBudget) as refused:
        optrand.randomize(table, 1.0, budget=1.5, **options)
    message = str(refused.value)
    assert "costs epsilon 2 and dataset 'd' has cost epsilon 0, together epsilon 2, over the budget of epsilon 1.5" in (
        message
    )
    assert message.endswith("it was not charged")
    assert not getattr(refused.value, "__notes__", [])
    assert charges() == 0
    assert optrand.randomize(table, 1.0, budget=2.0, **options).record.epsilon == 2.0
    assert Ledger("accounts/ledger.sqlite").spent("d").epsilon == 2


def test_a_column_that_was_released_before_stops_all_of_them() -> None:
    table = pa.table({"a": [0, 1] * 50, "b": [1, 0] * 50})
    options = {"labels": [0, 1], "dataset": "d", "ledger": "accounts/ledger.sqlite"}
    optrand.randomize(table, 1.0, column="b", **options)
    with pytest.raises(optrand.errors.AlreadySpent, match="column 'b'"):
        optrand.randomize(table, 1.0, column=["a", "b"], **options)
    assert charges() == 1
    with pytest.raises(OverBudget, match="costs epsilon 3 and dataset 'd' has cost epsilon 1, together epsilon 4"):
        optrand.randomize(table, 1.5, column=["a", "b"], prior=[0.5, 0.5], again=True, budget=3.9, **options)
    assert charges() == 1


@pytest.mark.parametrize("parts", [["0.1"] * 3, ["0.1", "0.2"], ["0.29", "0.01"], ["0.07"] * 4 + ["0.02"]])
def test_written_decimals_of_a_budget_add_up(parts: list[str]) -> None:
    assert sum(map(Fraction, parts)) == Fraction(3, 10)
    labels = PrivateLabels([0, 1, 1], 0.3, [0, 1])
    for part in parts:
        labels.release([0, 1, 2], UniformRR(2, float(part)))
    assert labels.spent.epsilon == Fraction(3, 10)
    assert_error(None, labels.release, [0], UniformRR(2, 1e-9), error=OverBudget)
    one = pa.array([0, 1] * 50)
    options = {"labels": [0, 1], "dataset": "d", "ledger": "accounts/ledger.sqlite", "budget": 0.3}
    for part in parts:
        optrand.randomize(one, float(part), column="y", again=True, **options)
    assert_error(None, optrand.randomize, one, 0.01, column="y", again=True, **options, error=OverBudget)


def test_a_prior_and_its_labels_add_up_to_what_is_written() -> None:
    released = optrand.randomize(np.array([0, 1] * 500), 0.3, labels=[0, 1], prior=0.1)
    parts = released.record.parts
    assert (parts.prior, parts.labels, released.record.epsilon) == (0.1, 0.2, 0.3)


# One question, stated in several ways
SAME: dict[str, tuple[list[str], dict[str, Any]]] = {
    "absolute": (["--labels", "0:2", "--loss", "absolute"], {"labels": range(3), "loss": "absolute"}),
    "absolute, its bias priced": (
        ["--labels", "0:2", "--loss", "absolute", "--outputs", "grid:5", "--bias-penalty", "2"],
        {"labels": range(3), "loss": "absolute", "outputs": 5, "bias_penalty": 2.0},
    ),
    "classes": (["--labels", "0:2", "--task", "classification"], {"labels": ["0", "1", "2"], "task": "classification"}),
    "interval": (
        ["--labels", "0:2", "--outputs", "interval:-9:9"],
        {"labels": range(3), "outputs": optrand.Interval(-9, 9)},
    ),
    "bins": (["--labels", "0:2", "--randomizer", "rr-on-bins"], {"labels": range(3), "randomizer": "rr-on-bins"}),
    "part for the prior": (["--labels", "0:2", "--prior", "0.25"], {"labels": range(3), "prior": 0.25}),
}


@pytest.mark.filterwarnings("ignore:no histogram")
@pytest.mark.parametrize("name", SAME)
def test_python_and_the_command_line_state_the_same_question(name: str) -> None:
    """Equal digests: a release that one has begun the other goes on with."""
    written, options = SAME[name]
    Path("in.csv").write_text("y\n" + "".join(f"{y}\n" for y in LABELS))
    question = Question(column="y", epsilon=1.0, **options)
    randomize_table("in.csv", "python.csv", question, dataset="d", ledger="accounts/ledger.sqlite")
    arguments = ["--column", "y", "--epsilon", "1", "--dataset", "d", "--again", "--ledger", "accounts/ledger.sqlite"]
    invoke("randomize", "in.csv", "command.csv", *written, *arguments, code=0)
    first, second = Ledger("accounts/ledger.sqlite").entries()
    assert (first.question, first.epsilon, first.prior_epsilon) == (
        second.question,
        second.epsilon,
        second.prior_epsilon,
    )


def test_a_gap_that_is_accepted_changes_no_randomizer() -> None:
    records = [optrand.randomize(["a", "b"] * 50, 1.0, labels=["a", "b"], gap=gap).record for gap in (1e-6, 1e-3)]
    assert records[0].randomizer == records[1].randomizer
    assert records[0].parts.prior == records[1].parts.prior == 0.0


# Missing labels
def test_not_a_number_in_a_file_is_a_missing_label() -> None:
    pq.write_table(pa.table({"y": [0.0, float("nan"), 1.0] * 100}), "in.parquet")
    check_refused("in.parquet", "out.parquet", "at least one label in column 'y' is missing")
    invoked("in.parquet", "out.parquet", "--nulls", "drop", code=0)
    assert pq.read_table("out.parquet").num_rows == 200


GAPS = ["a", "b", None] * 1000
NUMBERED = [1, 2, None] * 1000
TRUTHS = [True, False, None] * 1000
LARGE = [10**18 + 1, 10**18 + 2, None] * 1000
MASK = [False, False, True] * 1000

MISSING: dict[str, tuple[Any, list[Any]]] = {
    "Series": (pd.Series(GAPS), GAPS),
    "Series with NaN": (pd.Series(["a", "b", np.nan] * 1000, dtype=object), GAPS),
    "Series of Arrow's text": (pd.Series(GAPS, dtype=pd.ArrowDtype(pa.string())), GAPS),
    "Int64": (pd.Series(NUMBERED, dtype="Int64"), NUMBERED),
    "boolean": (pd.Series(TRUTHS, dtype="boolean"), TRUTHS),
    "category": (pd.Series(GAPS, dtype="category"), GAPS),
    "category of Int64": (pd.Series(NUMBERED, dtype="Int64").astype("category"), NUMBERED),
    "list": (GAPS, GAPS),
    "list of booleans": (TRUTHS, TRUTHS),
    "large Int64": (pd.Series(LARGE, dtype="Int64"), LARGE),
    "large category": (pd.Series(LARGE, dtype="Int64").astype("category"), LARGE),
    "polars": (pl.Series(GAPS), GAPS),
    "polars' integers": (pl.Series(NUMBERED, dtype=pl.Int8), NUMBERED),
    "polars' booleans": (pl.Series(TRUTHS), TRUTHS),
    "polars' Categorical": (pl.Series(GAPS, dtype=pl.Categorical), GAPS),
    "polars' Enum": (pl.Series(GAPS, dtype=pl.Enum(["a", "b"])), GAPS),
    "Arrow": (pa.array(GAPS), GAPS),
    "Arrow's chunks": (pa.chunked_array([NUMBERED[:3]] * 1000), NUMBERED),
    "Arrow's dictionary": (pa.array(GAPS).dictionary_encode(), GAPS),
    "masked text": (np.ma.array(["a", "b", "c"] * 1000, mask=MASK), GAPS),
    "masked integers": (np.ma.array([1, 2, 9] * 1000, mask=MASK), NUMBERED),
    "masked booleans": (np.ma.array([True, False, True] * 1000, mask=MASK), TRUTHS),
    "array of objects": (np.array(GAPS, dtype=object), GAPS),
}


def plain_cells(noisy: Any) -> list[Any]:
    """Cells as values of Python, None for missing ones."""
    cells = noisy.to_pylist() if hasattr(noisy, "to_pylist") else list(noisy)
    return [None if cell is None or cell is pd.NA or cell is np.ma.masked or cell != cell else cell for cell in cells]


@pytest.mark.parametrize(("nulls", "classes"), [("class", 3), ("pass", 2)])
@pytest.mark.parametrize("name", MISSING)
def test_missing_labels_are_a_class_or_left_out_of_estimates_and_keep_their_type(
    name: str, nulls: Any, classes: int
) -> None:
    given, cells = MISSING[name]
    # At epsilon 30 a label changes with a probability below 1e-12: the release is the table.
    noisy, record = optrand.randomize(given, 30.0, labels=cells[:classes], task="classification", nulls=nulls)
    # A dictionary reveals which labels occurred.
    assert type(noisy) is (pa.StringArray if name == "Arrow's dictionary" else type(given))
    assert plain_cells(noisy) == cells
    assert not any(isinstance(cell, float) for cell in plain_cells(noisy))
    found = optrand.estimate.histogram(noisy, record)
    assert found.shares == pytest.approx([1 / classes] * classes, abs=1e-9)
    assert found.size == 1000 * classes


def test_a_stranger_among_released_classes_is_still_refused() -> None:
    noisy, record = optrand.randomize(GAPS, 30.0, labels=["a", "b"], nulls="pass")
    assert_error("1 of 3000 released values are not labels", optrand.estimate.histogram, ["c", *noisy[1:]], record)
    _, without = optrand.randomize(["a", "b"] * 50, 30.0, labels=["a", "b"])
    assert_error("1 of 2 released values are not labels", optrand.estimate.histogram, ["a", None], without)


# Masks
MASKED = np.ma.masked_equal([0] * 3000 + [1] * 1000 + [9] * 6000, 9)
"""Three quarters of the labels that are there are 0. Behind the mask there are 9s, which are not labels."""


@pytest.mark.parametrize("nulls", ["drop", "pass"])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_masked_labels_are_left_out(nulls: Any, task: str) -> None:
    noisy, record = optrand.randomize(MASKED, 1.0, labels=[0, 1], task=task, nulls=nulls)
    assert (record.rows, len(noisy)) == (4000, 4000 if nulls == "drop" else 10_000)
    if nulls == "pass":
        assert np.array_equal(np.ma.getmaskarray(noisy), np.ma.getmaskarray(MASKED))
    # Five standard deviations of randomized response at epsilon 1 over 4,000 labels: 0.0086 / 0.46 each.
    assert optrand.estimate.histogram(noisy, record).shares == pytest.approx([0.75, 0.25], abs=0.1)


TABLE = optrand.rr([0, 1, 9], epsilon=1.0)


def test_masked_cells_of_what_was_released_are_left_out_of_estimates() -> None:
    released = np.ma.array([0, 1, 9, 9], mask=[False, False, False, True])
    found, plain = (optrand.estimate.histogram(cells, TABLE) for cells in (released, [0, 1, 9]))
    assert (found.size, found.shares.tolist()) == (3, plain.shares.tolist())


def test_an_array_whose_mask_hides_nothing_is_an_array() -> None:
    assert TABLE.sample(np.ma.array([0, 1, 9])).shape == (3,)
    assert len(PrivateLabels(np.ma.array([0, 1, 9]), 1.0, [0, 1, 9])) == 3


# A table that is neither a file nor a frame of Spark
@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "of type DataFrame, expected a path"), ({"separator": ";"}, "separator and decimal are for separated text")],
)
def test_frames_in_memory_are_no_tables_of_files(options: dict[str, str], words: str, tmp_path: Path) -> None:
    question, ledger = Question(column="y", labels=[0, 1], epsilon=1.0), Ledger(tmp_path / "ledger.sqlite")
    frame = pd.DataFrame({"y": [0, 1]})
    assert_error(words, randomize_table, frame, tmp_path / "noisy", question, dataset="d", ledger=ledger, **options)
    assert ledger.entries() == ()
    assert not list(tmp_path.glob("*noisy*"))
