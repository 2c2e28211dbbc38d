"""Tables of any size through a release: formats, columns, missing labels, inputs that change, processes that die."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optrand.errors import InputChanged, InvalidInput
from optrand.mechanism.mechanism import load
from optrand.release.baseline_job import BaselineJob
from optrand.release.batch import BatchRandomizer
from optrand.release.declared_sets import DeclaredClasses, DeclaredNumbers
from optrand.release.named import named_randomizer
from optrand.release.paths import mechanism_path
from optrand.release.publication import recover
from optrand.release.scan import Pass
from optrand.release.streams import records
from optrand.release.streams.csv_files import CsvSink
from optrand.release.streams.records import CsvFormat, RecordBlocks
from optrand.release.streams.source import digest_of
from optrand.release.table import open_table, read_column, read_labels
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions


def job_of(column="y", k=3, overwrite=False, **options):
    labels = np.arange(float(k))
    baseline = BaselineJob(labels=labels, randomizer=named_randomizer("rr", labels, epsilon=1.0))
    return TableJob(job=baseline, column=column, overwrite=overwrite, options=TableOptions(**options))


@pytest.fixture
def table(tmp_path):
    """Two hundred rows with labels 0, 1, 2 in column y."""
    path = tmp_path / "in.csv"
    path.write_text("id,y,note\n" + "".join(f"{i:03},{i * i % 3},n{i}\n" for i in range(200)))
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# Formats


def test_csv_becomes_parquet_and_parquet_csv_and_other_cells_stay(table, tmp_path):
    job_of().run(table, tmp_path / "out.parquet")
    released = pa.parquet.read_table(tmp_path / "out.parquet")
    assert [str(kind) for kind in released.schema.types] == ["string", "double", "string"]
    assert released["id"].to_pylist() == [f"{i:03}" for i in range(200)]
    job_of().run(tmp_path / "out.parquet", tmp_path / "back.tsv.gz")
    rows = list(
        csv.reader(io.StringIO(gzip.decompress((tmp_path / "back.tsv.gz").read_bytes()).decode()), delimiter="\t")
    )
    assert rows[0] == ["id", "y", "note"]
    assert [row[::2] for row in rows[1:]] == [[f"{i:03}", f"n{i}"] for i in range(200)]
    assert {row[1] for row in rows[1:]} <= {"0.0", "1.0", "2.0"}


def test_separators_and_decimal_commas_are_read_and_written(tmp_path):
    (tmp_path / "in.csv").write_text('id;y;note\n1;0,5;"a;b"\n2;1,5;c,d\n')
    layout = CsvFormat(separator=";", decimal=",")
    assert read_labels(tmp_path / "in.csv", "y", layout=layout).tolist() == [0.5, 1.5]
    labels = np.array([0.5, 1.5])
    job = BaselineJob(labels=labels, randomizer=named_randomizer("rr", labels, epsilon=1.0))
    TableJob(job=job, column="y", options=TableOptions(layout=layout)).run(tmp_path / "in.csv", tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id;y;note"
    assert lines[1] in ('1;0,5;"a;b"', '1;1,5;"a;b"')
    assert lines[2] in ("2;0,5;c,d", "2;1,5;c,d")
    TableJob(job=job, column="y", options=TableOptions(layout=layout)).run(tmp_path / "in.csv", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().splitlines()[1] in ("1\t0.5\ta;b", "1\t1.5\ta;b")
    (tmp_path / "points.csv").write_text("id;y\n1;0.5\n")
    assert read_column(tmp_path / "points.csv", "y", layout=layout).not_numbers == 1


@pytest.mark.parametrize("options", [{"separator": "ab"}, {"separator": '"'}, {"separator": "1"}, {"separator": "\n"}])
def test_separators_without_meaning_are_refused(options):
    with pytest.raises(InvalidInput, match="the separator is"):
        CsvFormat(**options)
    with pytest.raises(InvalidInput, match="the decimal point is"):
        CsvFormat(decimal=";")


CELLS = st.text(st.sampled_from('a1",\r\n \té'), max_size=5)


@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    size=st.sampled_from([1, 2, 3, 7, 64]),
)
def test_blocks_are_whole_records_wherever_the_file_is_cut(rows, end, quoting, size):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=end, quoting=quoting)
    writer.writerows([("a", "b"), *rows])
    data = stream.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "READ_SIZE", size)
        blocks = RecordBlocks(io.BytesIO(data), "x.csv", CsvFormat())
        found = list(blocks)
    assert b"".join(found) == data
    assert not blocks.cut
    read = [list(csv.reader(io.StringIO(block.decode(), newline=""))) for block in found]
    whole = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert [row for block in read for row in block if row] == [row for row in whole if row]


@pytest.mark.parametrize("content", ['a,y\n"x,1\n', 'a,y\nz,2\n"x"x,1\n', 'a,y\n"x""\n1\n'])
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_an_open_quote_is_refused_wherever_the_file_is_cut(tmp_path, monkeypatch, content, size):
    monkeypatch.setattr(records, "READ_SIZE", size)
    (tmp_path / "in.csv").write_text(content)
    with pytest.raises(InvalidInput, match="quoted cell that is never closed"):
        read_labels(tmp_path / "in.csv", "y")


def test_a_gzip_file_of_zeros_is_not_unpacked_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "UNPACKED_FREE", 1 << 20)
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(b"y\n" + b"1\n" * (1 << 22)))
    with pytest.raises(InvalidInput, match="unpacks to more than"):
        read_labels(tmp_path / "in.csv.gz", "y")
    wider = CsvFormat(unpacked_limit=1 << 24)
    assert read_labels(tmp_path / "in.csv.gz", "y", layout=wider).size == 1 << 22


def test_two_gzip_members_are_one_file(tmp_path):
    (tmp_path / "in.csv.gz").write_bytes(gzip.compress(b"y\n1\n") + gzip.compress(b"2\n") + b"\0" * 512)
    assert read_labels(tmp_path / "in.csv.gz", "y").tolist() == [1.0, 2.0]


def test_a_last_line_without_an_end_is_told_to_the_owner(tmp_path):
    (tmp_path / "in.csv").write_text("a,y\nx,2\nx,1")
    told = []
    job_of().run(tmp_path / "in.csv", tmp_path / "out.csv", warn=told.append)
    assert len(told) == 1
    assert "the last line of in.csv has no end" in told[0]
    with pytest.warns(UserWarning, match="has no end"):
        job_of(overwrite=True).run(tmp_path / "in.csv", tmp_path / "out.csv")


# Parquet


def test_a_partitioned_folder_becomes_one_with_the_same_files(tmp_path):
    for year in (2020, 2021):
        folder = tmp_path / "in" / f"year={year}"
        folder.mkdir(parents=True)
        for part in range(2):
            rows = pa.table({"id": [f"{year}-{part}-{i}" for i in range(50)], "y": [i % 3 for i in range(50)]})
            pa.parquet.write_table(rows, folder / f"{part}.parquet")
    (tmp_path / "in" / "_metadata").write_text("not a part")
    summary = job_of(id_column="id").run(tmp_path / "in", tmp_path / "out")
    assert summary.rows == 200
    for file in sorted((tmp_path / "in").rglob("*.parquet")):
        released = pa.parquet.ParquetFile(tmp_path / "out" / file.relative_to(tmp_path / "in")).read()
        assert released["id"].to_pylist() == pa.parquet.ParquetFile(file).read()["id"].to_pylist()
        assert set(released["y"].to_pylist()) <= {0.0, 1.0, 2.0}
    assert load(mechanism_path(tmp_path / "out")).n == 3
    with pytest.raises(InvalidInput, match="columns in the names of its folders"):
        job_of().run(tmp_path / "in", tmp_path / "out.csv")
    named = tmp_path / "in" / "y=1"
    named.mkdir()
    (tmp_path / "in" / "year=2020" / "0.parquet").rename(named / "0.parquet")
    with pytest.raises(InvalidInput, match="their names disclose labels"):
        job_of().run(tmp_path / "in", tmp_path / "other")


def test_an_id_may_not_come_again_in_another_file(tmp_path):
    (tmp_path / "in").mkdir()
    for part in range(2):
        pa.parquet.write_table(pa.table({"id": [4 * part, 4], "y": [0, 1]}), tmp_path / "in" / f"{part}.parquet")
    with pytest.raises(InvalidInput, match="at least two records have the same id"):
        job_of(id_column="id").run(tmp_path / "in", tmp_path / "out")
    assert names(tmp_path) == ["in"]
    pa.parquet.write_table(pa.table({"id": ["x"], "y": [1]}), tmp_path / "in" / "2.parquet")
    with pytest.raises(InvalidInput, match="differ in their columns or types"):
        job_of().run(tmp_path / "in", tmp_path / "out")


def test_what_pandas_notes_of_other_columns_is_kept_and_what_it_notes_of_labels_is_not(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"kind": pandas.Categorical(["b", "a", None]), "y": pandas.Categorical([2, 0, 2], categories=[0, 2, 9173])},
        index=pandas.Index([7, 8, 9], name="key"),
    )
    frame.attrs["mean"] = "9173"
    frame.to_parquet(tmp_path / "in.parquet")
    job_of().run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert b"9173" in (tmp_path / "in.parquet").read_bytes()
    assert b"9173" not in (tmp_path / "out.parquet").read_bytes()
    released = pandas.read_parquet(tmp_path / "out.parquet")
    assert released.index.tolist() == [7, 8, 9]
    assert released.index.name == "key"
    assert released["kind"].equals(frame["kind"])
    assert released["y"].dtype == np.float64


def test_dictionaries_that_differ_between_batches_keep_their_values(tmp_path):
    kinds = pa.chunked_array(
        [pa.array(["a", "b"] * 40_000).dictionary_encode(), pa.array(["c"] * 80_000).dictionary_encode()]
    )
    rows = pa.table({"kind": kinds.unify_dictionaries(), "none": pa.nulls(160_000), "y": np.arange(160_000) % 3})
    pa.parquet.write_table(rows, tmp_path / "in.parquet", row_group_size=50_000)
    job_of().run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    released = pa.parquet.read_table(tmp_path / "out.parquet")
    assert released.schema.field("kind").type == rows.schema.field("kind").type
    assert released.schema.field("none").type == pa.null()
    assert released["kind"].cast(pa.string()).equals(rows["kind"].cast(pa.string()))


# Columns and missing labels


def test_columns_are_kept_or_dropped_by_name_and_those_that_were_copied_are_told(table, tmp_path):
    for options, copied in (
        ({}, ("id", "note")),
        ({"keep": ("note",)}, ("note",)),
        ({"drop": ("note",)}, ("id",)),
        ({"keep": ()}, ()),
    ):
        summary = job_of(overwrite=True, **options).run(table, tmp_path / "out.csv")
        assert summary.copied == copied
        header = (tmp_path / "out.csv").read_text().splitlines()[0].split(",")
        assert header == [name for name in ("id", "y", "note") if name in (*copied, "y")]
    summary = job_of(overwrite=True, id_column="id", drop=("id",)).run(table, tmp_path / "out.csv")
    assert summary.copied == ("note",)
    for options, message in (
        ({"keep": ("z",)}, "no column 'z'"),
        ({"drop": ("z",)}, "no column 'z'"),
        ({"drop": ("y",)}, "cannot be dropped"),
    ):
        with pytest.raises(InvalidInput, match=message):
            job_of(overwrite=True, **options).run(table, tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match="not both"):
        TableOptions(keep=("a",), drop=("b",))


def test_missing_labels_are_refused_dropped_or_passed(tmp_path):
    (tmp_path / "in.csv").write_text("a,y\np,1\nq,\nr,2\n")
    with pytest.raises(InvalidInput, match="at least one label in column 'y' is missing"):
        job_of().run(tmp_path / "in.csv", tmp_path / "out.csv")
    assert job_of(nulls="drop").run(tmp_path / "in.csv", tmp_path / "dropped.csv").rows == 2
    assert [line[0] for line in (tmp_path / "dropped.csv").read_text().splitlines()] == ["a", "p", "r"]
    job_of(nulls="pass").run(tmp_path / "in.csv", tmp_path / "passed.csv")
    assert (tmp_path / "passed.csv").read_text().splitlines()[2] == "q,"
    job_of(nulls="pass").run(tmp_path / "in.csv", tmp_path / "passed.parquet")
    assert pa.parquet.read_table(tmp_path / "passed.parquet")["y"].null_count == 1
    (tmp_path / "in.csv").write_text("a,y\np,1\nq,x\n")
    for nulls in ("drop", "pass"):
        with pytest.raises(InvalidInput, match="at least one label"):
            job_of(nulls=nulls).run(tmp_path / "in.csv", tmp_path / "out.csv")
    (tmp_path / "in.csv").write_text("a,y\np,\n")
    with pytest.raises(InvalidInput, match="no rows with a label"):
        job_of(nulls="drop").run(tmp_path / "in.csv", tmp_path / "out.csv")


@pytest.mark.parametrize(
    ("classes", "column"),
    [
        (("no", "yes"), pa.array(["yes", "no", "yes"])),
        (("no", "yes"), pa.array(["yes", "no", "yes"]).dictionary_encode()),
        (("false", "true"), pa.array([True, False, True])),
        (("7", "-1"), pa.array([7, -1, 7], pa.int16())),
        (("no", None), pa.array(["no", None, "no"])),
    ],
    ids=str,
)
def test_classes_keep_the_type_of_their_column(tmp_path, classes, column):
    pa.parquet.write_table(pa.table({"y": column}), tmp_path / "in.parquet")
    nulls = "class" if None in classes else "refuse"
    job_of(k=2, classes=classes, nulls=nulls).run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    released = pa.parquet.read_table(tmp_path / "out.parquet")["y"]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    assert released.type == kind
    assert {None if cell is None else str(cell).lower() for cell in released.to_pylist()} <= set(classes)
    job_of(k=2, classes=classes, nulls=nulls).run(tmp_path / "out.parquet", tmp_path / "out.csv")
    cells = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert {cell or None for cell in cells} <= set(classes)
    if None not in classes:
        job_of(k=2, classes=classes).run(tmp_path / "out.csv", tmp_path / "again.csv")
        assert set((tmp_path / "again.csv").read_text().splitlines()[1:]) <= set(classes)


def test_classes_that_were_not_declared_are_refused_without_their_names(tmp_path):
    (tmp_path / "in.csv").write_text("y\nno\nsecret\n")
    with pytest.raises(InvalidInput, match="at least one label is not among the 2 declared ones") as caught:
        job_of(k=2, classes=("no", "yes")).run(tmp_path / "in.csv", tmp_path / "out.csv")
    assert "secret" not in str(caught.value)
    pa.parquet.write_table(pa.table({"y": [1, 2]}), tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match="does not hold the declared classes"):
        job_of(k=2, classes=("no", "yes")).run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    with pytest.raises(InvalidInput, match="no name twice"):
        DeclaredClasses(("a", "a"))
    with pytest.raises(InvalidInput, match="a class exactly if None"):
        job_of(k=2, classes=("no", "yes"), nulls="class").run(tmp_path / "in.csv", tmp_path / "out.csv")


# The batch function


def test_a_batch_randomizer_draws_by_group_and_id_and_can_be_pickled():
    class Sides:
        columns = ("side",)

        def codes(self, batch):
            return np.array([0 if side == "left" else 1 for side in batch["side"].to_pylist()])

    plain = BatchRandomizer(column="y", declared=DeclaredNumbers(np.arange(3.0)), id_column="id", nulls="pass")
    again = pickle.loads(pickle.dumps(plain))  # noqa: S301
    batch = pa.record_batch({"id": [5, 6, 7], "y": [2, None, 0], "side": ["left", "left", "right"]})
    seen = []

    def draw(group):
        return lambda values, ids: seen.append((group, values.tolist(), ids[:, 0].tolist())) or values + 10 * group

    assert again(batch, [draw(1)])["y"].to_pylist() == [12.0, None, 10.0]
    assert seen == [(1, [2.0, 0.0], [5, 7])]
    seen.clear()
    grouped = BatchRandomizer(
        column="y", declared=plain.declared, id_column="id", nulls="drop", grouping=Sides(), released=("y", "id")
    )
    found = grouped(batch, [draw(1), draw(2)])
    assert found.to_pydict() == {"id": [5, 7], "y": [12.0, 20.0]}
    assert seen == [(1, [2.0], [5]), (2, [0.0], [7])]


# Inputs that change, and what is expected of them


def changed(table, change, tmp_path, monkeypatch):
    """Run a job whose input is changed after the first pass, or as the second one writes."""
    write = CsvSink.write

    def late(sink, part, batch):
        change()
        write(sink, part, batch)

    with monkeypatch.context() as patch:
        patch.setattr(CsvSink, "write", late)
        with pytest.raises(InputChanged) as caught:
            job_of().run(table, tmp_path / "out.csv")
    assert names(tmp_path) == ["in.csv"]
    return str(caught.value)


@pytest.mark.parametrize("way", ["append", "truncate", "replace", "remove and write"])
def test_an_input_that_changes_while_it_is_read_is_refused(table, tmp_path, monkeypatch, way):
    content = table.read_bytes()

    def change():
        if way == "append":
            with table.open("ab") as stream:
                stream.write(b"999,1,x\n")
        elif way == "truncate":
            os.truncate(table, len(content) // 2)
        elif way == "replace":
            (tmp_path / "other").write_bytes(content)
            (tmp_path / "other").replace(table)
        else:
            table.unlink()
            table.write_bytes(content)

    assert "was changed or replaced while it was read" in changed(table, change, tmp_path, monkeypatch)


def test_labels_that_change_under_an_unchanged_stat_are_refused(table, monkeypatch):
    options, source = TableOptions(), open_table(table)
    rows = Pass(source=source, randomizer=options.randomizer(source, "y", np.arange(3.0), clip=False), digest_key=b"k")
    found = rows.scan()
    monkeypatch.setattr(type(source), "check_unchanged", lambda *_: None)
    for old, new in (("000,0,", "000,1,"), ("000,1,", "000,7,"), ("000,7,", "000,,")):
        table.write_text(table.read_text().replace(old, new))
        sink = CsvSink((table.parent / f"o{new}".replace(",", "")).open("wb"), [b"id", b"y", b"note"], CsvFormat())
        with pytest.raises(InputChanged, match="holds other labels or ids"):
            rows.replace(found, [lambda values, _: values], sink)


def test_expectations_are_held_before_anything_is_drawn(table, tmp_path):
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert digest_of(table) == digest
    job_of(expect_rows=200, expect_sha256=f"sha256:{digest.upper()}").run(table, tmp_path / "out.csv")
    for options, message in (
        ({"expect_rows": 201}, "has 200 rows, expected 201"),
        ({"expect_sha256": "0" * 64}, "is another"),
    ):
        with pytest.raises(InputChanged, match=message):
            job_of(**options).run(table, tmp_path / "other.csv")
    for options in ({"expect_rows": 0}, {"expect_rows": "1"}, {"expect_sha256": "x"}):
        with pytest.raises(InvalidInput):
            TableOptions(**options)


def test_a_private_input_makes_a_private_output(table, tmp_path):
    table.chmod(0o600)
    job_of().run(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600


# Processes that die, and memory

RUN = """
import os, sys, tempfile
import numpy as np
import pandas, pyarrow.compute, pyarrow.csv
from optrand.release.baseline_job import BaselineJob
from optrand.release.named import named_randomizer
from optrand.release.streams import csv_files
from optrand.release.table_job import TableJob
labels = np.arange(3.0)
baseline = BaselineJob(labels=labels, randomizer=named_randomizer("rr", labels, epsilon=1.0))
job = TableJob(job=baseline, column="y", overwrite=True)
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory() as elsewhere:
            job.run(sys.argv[1], f"{elsewhere}/out.csv")
        print(os.getpid(), flush=True)
        while True:
            job.run(sys.argv[1], sys.argv[2])
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


def test_a_process_that_is_killed_at_random_moments_leaves_one_whole_release(table, tmp_path):
    """Twelve kills of a process that releases a table over and over, each time in place of the release before."""
    output, rng, published = tmp_path / "out.csv", random.Random(7), 0
    command = [sys.executable, "-c", RUN, table, output]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        for kill in range(12):
            table.write_text("id,y,note\n" + "".join(f"{i:03},{i % 3},run {kill}\n" for i in range(2000)))
            print("go", file=process.stdin)
            child = int(process.stdout.readline())
            for _ in range(10_000 if kill % 3 == 0 else 0):
                if output.exists():
                    break
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.1))
            os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "dead\n"
            if output.exists():
                assert len(read_labels(output, "y")) == 2000
                assert mechanism_path(output).exists()
            recover(output)
            assert [name for name in names(tmp_path) if name.startswith(".")] == []
            assert output.exists() == mechanism_path(output).exists()
            if output.exists():
                assert len(read_labels(output, "y")) == 2000
                json.loads(mechanism_path(output).read_text())
                published += 1
        process.stdin.close()
    assert published > 0


MEMORY = """
import resource, sys
import numpy as np
import pandas
from optrand.release.scan import Pass
from optrand.release.table import open_table
from optrand.release.table_options import TableOptions, open_sink
from pathlib import Path
source, target = open_table(sys.argv[1]), Path(sys.argv[2])
randomizer = TableOptions(id_column="id").randomizer(source, "y", np.arange(3.0), clip=False)
rows = Pass(source=source, randomizer=randomizer, digest_key=b"k")
sink = open_sink(source, randomizer, target, target, layout=None)
rows.replace(rows.scan(), [lambda values, _: values], sink)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path, suffix):
    peaks = []
    for rows in (400_000, 2_400_000):
        ids = (np.arange(rows) * 6364136223846793005) & (2**62 - 1)
        made = pa.table({"id": ids, "y": np.arange(rows) % 3, "x": np.arange(rows) / 7})
        path = tmp_path / f"{rows}.{suffix}"
        pa.parquet.write_table(made, path, row_group_size=50_000) if suffix == "parquet" else pa.csv.write_csv(
            made, path
        )
        command = [sys.executable, "-c", MEMORY, path, tmp_path / f"out{rows}.{suffix}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout))
        assert (tmp_path / f"out{rows}.{suffix}").stat().st_size > 10 * rows
    # 2 million rows more are 48 MB in memory as columns, and 16 MB of ids. The smaller table fills all buffers.
    assert peaks[1] < peaks[0] + 48
