"""Tables: the labels as numbers, everything else as it was, and errors that tell nothing of what a cell holds."""

from __future__ import annotations

import csv
import gzip
import io
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand.errors import InvalidInput
from optrand.release.scan import Pass
from optrand.release.table import open_table, read_column, read_labels, suffix_of
from optrand.release.table_options import TableOptions, open_sink

BAD_LABEL = "at least one label in column 'y' is missing or no finite number"
"""All that is said of labels that are none."""


def csv_file(folder, content, name="in.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rewritten(path, label="y", values=None, *, name=None, options=None):
    """The bytes of a table with its labels replaced, by default by themselves."""
    options, target = options or TableOptions(), path.with_name(f"again.{name or path.name}")
    source = open_table(path, layout=options.layout)
    labels = np.unique(read_labels(path, label, layout=options.layout))
    randomizer = options.randomizer(source, label, labels, clip=False)
    rows = Pass(source=source, randomizer=randomizer, digest_key=b"k")
    given = None if values is None else iter(np.asarray(values, dtype=float).tolist())

    def draw(found, _):
        return found if given is None else np.array([next(given) for _ in found])

    sink = open_sink(source, randomizer, target, target, layout=options.released_layout)
    rows.replace(rows.scan(), [draw], sink)
    written = target.read_bytes()
    target.unlink()
    return written


def refused(path, label="y"):
    """The message with which a table is refused; neither it nor what led to it may repeat the cell 9173."""
    with pytest.raises(InvalidInput) as caught:
        read_labels(path, label)
    error = caught.value
    assert "9173" not in str(error)
    assert error.__suppress_context__ or error.__context__ is None
    return str(error)


# CSV: what survives


def test_labels_are_numbers_and_other_cells_are_text(tmp_path):
    path = csv_file(tmp_path, "id,y,note\n007,1, a \n1e3,1.0,NaN\n-0,01,null\n")
    assert read_labels(path, "y").tolist() == [1.0, 1.0, 1.0]
    assert rewritten(path, values=[2.5, -1e-05, 3.0]) == b"id,y,note\n007,2.5, a \n1e3,-1e-05,NaN\n-0,3.0,null\n"


def test_an_empty_cell_and_a_quoted_empty_one_stay_two_things(tmp_path):
    content = b'a,y,b\n,1,""\n"",2,\n'
    assert rewritten(csv_file(tmp_path, content), values=[1, 2]) == b'a,y,b\n,1.0,""\n"",2.0,\n'


def test_quoted_cells_with_commas_quotes_and_line_ends_survive(tmp_path):
    content = b'"a,b",y,c\n"x, ""y""",1,"two\nlines"\n"p\r\nq",2,5" pipe\n'
    written = rewritten(csv_file(tmp_path, content), values=[1, 2])
    assert list(csv.reader(io.StringIO(written.decode(), newline=""))) == [
        ["a,b", "y", "c"],
        ['x, "y"', "1.0", "two\nlines"],
        ["p\r\nq", "2.0", '5" pipe'],
    ]


def test_bytes_that_are_no_utf_8_survive(tmp_path):
    assert rewritten(csv_file(tmp_path, b"caf\xe9,y\n\xff,1\n")) == b"caf\xe9,y\n\xff,1.0\n"


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = csv_file(tmp_path, b"\xef\xbb\xbfy,a\r\n1,x\r\n\r\n2,z\r\n")
    assert read_labels(path, "y").tolist() == [1.0, 2.0]
    assert rewritten(path) == b"y,a\n1.0,x\n2.0,z\n"


def test_the_last_line_needs_no_line_end(tmp_path):
    assert rewritten(csv_file(tmp_path, "a,y\nx,1")) == b"a,y\nx,1.0\n"


def test_a_table_of_nothing_but_the_label(tmp_path):
    assert rewritten(csv_file(tmp_path, "y\n1\n0\n")) == b"y\n1.0\n0.0\n"


def test_other_columns_may_share_a_name(tmp_path):
    assert rewritten(csv_file(tmp_path, "a,a,y,\n1,2,3,4\n")) == b"a,a,y,\n1,2,3.0,4\n"


def test_label_cells_may_be_quoted_signed_and_padded(tmp_path):
    path = csv_file(tmp_path, 'y\n"1"\n+2\n 3\t\n-0.0\n.5\n5.\n1E1\n')
    labels = read_labels(path, "y")
    assert labels.tolist() == [1.0, 2.0, 3.0, 0.0, 0.5, 5.0, 10.0]
    assert not np.signbit(labels).any()


def test_noisy_labels_read_back_as_the_same_floats(tmp_path):
    values = np.array([0.1 + 0.2, -28.337, 1e-300, 52.0, 1 / 3])
    path = csv_file(tmp_path, "y\n" + "0\n" * 5)
    assert [float(line) for line in rewritten(path, values=values).split()[1:]] == values.tolist()


def test_gzip_both_ways_and_the_same_bytes_each_time(tmp_path):
    path = csv_file(tmp_path, gzip.compress(b"a,y\nx,1\n"), "in.csv.gz")
    first = rewritten(path)
    assert first == rewritten(path)
    assert gzip.decompress(first) == b"a,y\nx,1.0\n"


def test_a_table_longer_than_a_block_of_rows_keeps_its_order(tmp_path):
    rows = 150_000
    path = csv_file(tmp_path, "i,y\n" + "".join(f"{i},{i % 7}\n" for i in range(rows)))
    lines = rewritten(path, values=np.arange(rows)).decode().splitlines()
    assert lines[1:] == [f"{i},{i}.0" for i in range(rows)]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6))
def test_any_text_survives_as_the_standard_library_reads_it(tmp_path_factory, rows):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "y", "b"])
    writer.writerows([left, 1, right] for left, right in rows)
    path = csv_file(tmp_path_factory.mktemp("any"), stream.getvalue())
    read = list(csv.reader(io.StringIO(rewritten(path).decode(), newline="")))
    assert read == [["a", "y", "b"], *([left, "1.0", right] for left, right in rows)]
    assert rewritten(csv_file(path.parent, rewritten(path), "again.csv")) == rewritten(path)


# CSV: what is refused, without a word about a cell


def test_a_missing_label_column_is_refused_without_naming_the_others(tmp_path):
    # A table without a header: the "names" are somebody's cells.
    assert "names 2 others" in refused(csv_file(tmp_path, "9173,x\n1,2\n"))


def test_a_repeated_label_column_is_refused(tmp_path):
    assert "2 columns named 'y'" in refused(csv_file(tmp_path, "y,a,y\n9173,2,3\n"))


@pytest.mark.parametrize("cell", ["9173x", "0x9173", "9_173", "nan", "inf", "-", "1,2", "9173 9173", "٣", "true"])
def test_labels_that_are_no_numbers_are_refused_and_counted_on_request_alone(tmp_path, cell):
    path = csv_file(tmp_path, f'a,y\nx,1\nx,"{cell}"\n')
    assert BAD_LABEL in refused(path)
    found = read_column(path, "y")
    assert (found.numbers.tolist(), found.rows, found.missing, found.not_numbers) == ([1.0], 2, 0, 1)


@pytest.mark.parametrize("cell", ["", '""', " ", '"\t"'])
def test_missing_labels_are_refused_and_counted_on_request_alone(tmp_path, cell):
    path = csv_file(tmp_path, f"a,y\nx,{cell}\nx,9173\n")
    assert BAD_LABEL in refused(path)
    found = read_column(path, "y")
    assert (found.numbers.tolist(), found.rows, found.missing, found.not_numbers) == ([9173.0], 2, 1, 0)


def test_a_blank_line_is_a_missing_label_where_there_is_one_column(tmp_path):
    path = csv_file(tmp_path, "y\n1\n\n2\n")
    assert BAD_LABEL in refused(path)
    assert read_column(path, "y").missing == 1


def test_a_label_beyond_floats_is_refused(tmp_path):
    path = csv_file(tmp_path, "y\n9173e999\n")
    assert BAD_LABEL in refused(path)
    assert read_column(path, "y").not_numbers == 1


def test_a_refusal_is_the_same_whatever_is_wrong_and_however_often(tmp_path):
    contents = ["y\n\n1\n2\n", "y\n\n\n\n", "y\n1\n2\n9173x\n", "y\n9173e999\nx\n\n"]
    messages = {refused(csv_file(tmp_path, content)) for content in contents}
    assert len(messages) == 1
    table = {"y": pa.array([None, None, 9173])}, {"y": pa.array([9173.0, math.nan, None])}, {"y": pa.array([2**60])}
    assert messages == {refused(parquet_file(tmp_path, columns)) for columns in table}


@pytest.mark.parametrize("content", ["a,y\n1\n9173,2\n", "a,y\n1,9173,5\n2,3\n", "a,y\n1,2\n9173\n4,5,6\n"])
def test_ragged_rows_are_refused(tmp_path, content):
    # How many there are may be how many labels hold a comma.
    assert "at least one row with more or fewer cells than its header" in refused(csv_file(tmp_path, content))


@pytest.mark.parametrize(
    "content",
    [
        'a,y\n"5 pipe,1\nx,9173\n',  # never closed: would hide the second label in a public cell
        'a,y\n"5 pipe,9173\n"6 pipe,2\n',  # closed by the next stray quote, three cells later
        'a,y\n"x" ,9173\n',
    ],
)
def test_stray_quotes_are_refused(tmp_path, content):
    assert "quoted cell that is never closed, or that goes on" in refused(csv_file(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_refused(tmp_path, content):
    assert "is empty" in refused(csv_file(tmp_path, content))


def test_a_header_alone_is_refused(tmp_path):
    assert "no rows" in refused(csv_file(tmp_path, "a,y\n"))


@pytest.mark.parametrize("damage", [slice(None, -6), slice(0, 12)])
def test_a_damaged_gzip_file_is_refused(tmp_path, damage):
    packed = gzip.compress(b"a,y\n" + b"x,9173\n" * 100)
    assert "damaged gzip" in refused(csv_file(tmp_path, packed[damage], "in.csv.gz"))


def test_other_kinds_of_file_are_refused(tmp_path):
    assert "of no known kind" in refused(csv_file(tmp_path, "y\n1\n", "in.xlsx"))
    assert "is not there" in refused(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder, not a file" in refused(tmp_path / "folder.csv")
    assert "is UTF-16" in refused(csv_file(tmp_path, "a,y\n1,9173\n".encode("utf-16")))


def test_a_record_longer_than_a_block_is_refused_without_its_text(tmp_path, monkeypatch):
    monkeypatch.setattr("optrand.release.streams.records.BLOCK_SIZE", 1 << 10)
    monkeypatch.setattr("optrand.release.streams.records.READ_SIZE", 1 << 9)
    assert "quoted cell" in refused(csv_file(tmp_path, 'a,y\nx,1\n"' + "9173\n" * 1000 + '",2\n'))
    assert "longer than" in refused(csv_file(tmp_path, "a,y\nx,1\n" + "9173" * 1000 + ",2\n"))


def test_suffixes_are_read_whatever_their_case():
    assert [suffix_of(name) for name in ("A.CSV", "a.csv.GZ", "x/a.b.Parquet")] == [".csv", ".csv.gz", ".parquet"]


# Parquet


def parquet_file(folder, columns, name="in.parquet", metadata=None):
    path = folder / name
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pa.parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_parquet_columns_keep_their_types_values_and_order(tmp_path):
    columns = {
        "id": pa.array(["007", None, ""]),
        "y": pa.array([1, 2, 3], pa.int8()),
        "when": pa.array([0, None, 2], pa.timestamp("ms", tz="UTC")),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int16())),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
    path = parquet_file(tmp_path, columns)
    (tmp_path / "out.parquet").write_bytes(rewritten(path, values=[0.5, 1.5, 2.5]))
    read = pa.parquet.read_table(tmp_path / "out.parquet")
    assert read.column_names == list(columns)
    assert read.column("y").to_pylist() == [0.5, 1.5, 2.5]
    for name in ("id", "when", "list", "kind"):
        assert read.column(name).combine_chunks().equals(pa.parquet.read_table(path).column(name).combine_chunks())
        assert read.schema.field(name).type == columns[name].type


def test_nothing_that_the_file_says_of_its_labels_survives(tmp_path):
    columns = {"y": pa.array([3, 1, 3]).dictionary_encode(), "a": pa.array([1, 2, 3])}
    path = parquet_file(tmp_path, columns, metadata={"mean of y": "9173"})
    assert read_labels(path, "y").tolist() == [3.0, 1.0, 3.0]
    written = rewritten(path, values=[0.0, 0.0, 0.0])
    assert b"9173" not in written
    assert b"9173" in path.read_bytes()
    assert pa.parquet.read_schema(io.BytesIO(written)).field("y").type == pa.float64()


@pytest.mark.parametrize(
    "labels",
    [
        pa.array([0.1, 2], pa.float64()),
        pa.array([0.1, 2], pa.float32()),
        pa.array(["0.1", "2"]).cast(pa.decimal128(9, 2)),
    ],
    ids=lambda labels: str(labels.type),
)
def test_parquet_numbers_of_any_kind_are_labels(tmp_path, labels):
    assert read_labels(parquet_file(tmp_path, {"y": labels}), "y").tolist() == [0.1, 2.0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pa.array(["9173", "2"]), "of type string"),
        (pa.array([True, False]), "of type bool"),
        (pa.array([9173, None]), BAD_LABEL),
        (pa.array([9173.0, float("nan")]), BAD_LABEL),
        (pa.array([9173, 2**53 + 1]), BAD_LABEL),
        (pa.array([9173, -(2**53) - 1]), BAD_LABEL),
        (pa.array([9173, 2**64 - 1], pa.uint64()), BAD_LABEL),
        (pa.array([], pa.int64()), "no rows"),
    ],
)
def test_parquet_labels_that_are_none_are_refused(tmp_path, labels, message):
    assert message in refused(parquet_file(tmp_path, {"y": labels}))


def test_a_missing_or_repeated_parquet_column_is_refused(tmp_path):
    assert "has no column 'y'" in refused(parquet_file(tmp_path, {"x": pa.array([9173])}))
    twice = pa.Table.from_arrays([pa.array([9173]), pa.array([2])], names=["y", "y"])
    assert "2 columns named 'y'" in refused(parquet_file(tmp_path, twice))


def test_a_damaged_parquet_file_is_refused(tmp_path):
    path = parquet_file(tmp_path, {"y": pa.array([9173])})
    path.write_bytes(path.read_bytes()[:-9])
    assert "cannot be read as Parquet" in refused(path)


def test_the_folders_above_a_parquet_file_add_no_columns(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    assert open_table(parquet_file(folder, {"y": pa.array([1])})).names == ("y",)
