"""Releases on Spark: the labels of one machine, also if workers fail, refusals, and places without the key."""

import base64
import errno
import json
import os
import signal
import urllib.request
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asserting import assert_error, by_case
from spark_cluster import MISSING, cluster

import optrand
from optrand.accounting import Ledger
from optrand.errors import AlreadySpent, InputChanged, InvalidInput
from optrand.release import Question, ReleaseRecord, _files, load_release, randomize_table
from optrand.release import _batches as orchestrator
from optrand.release._batches import Account, Listener, Table
from optrand.release._rows import Groups
from optrand.release._spark import _task, _total, _write_labels

if MISSING and "CI" not in os.environ:
    # CI never skips: there, a missing package is an error.
    pytest.skip(f"no tests on Spark without {' and '.join(MISSING)}", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KEY = bytes(range(100, 132))
ROWS = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(folder):
    """One process: by day nothing depends on workers of their own, which triple the time."""
    with cluster(folder, "local[2]") as started:
        yield started


@pytest.fixture
def two_workers(folder):
    with cluster(folder) as started:
        yield started


def question(**options):
    return Question(**{"column": "weeks", "labels": range(5), "epsilon": 1.0, "ids": ("person",), **options})


def private(seed=0, **columns):
    drawn = np.random.default_rng(seed)
    ids = drawn.permutation(ROWS) * 3 - 1000
    cells = {"person": ids, "weeks": drawn.integers(0, 5, ROWS), "of another": drawn.random(ROWS)}
    return pa.table({**cells, "state": ["CA", None, "NY"] * (ROWS // 3), **columns})


def frame_of(session, table, folder):
    """Frame of four files, read as at least four partitions."""
    folder.mkdir()
    for part in range(4):
        size = table.num_rows // 4
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return session.read.parquet(str(folder))


def by_id(table):
    return table.sort_by("person").to_pydict()


def with_key(monkeypatch):
    """Give every release the same id and key, so that two engines draw for one release."""
    monkeypatch.setattr(os, "urandom", lambda size: KEY[:size])


@pytest.mark.nightly
def test_a_killed_worker_changes_no_label_and_no_key_is_told(two_workers, folder, tmp_path, monkeypatch):
    """Groups and missing labels included: the same labels as on one machine, under the same key."""
    cells = private()["weeks"].to_pylist()
    cells[17] = cells[1000] = None
    table = private(weeks=pa.array(cells))
    armed, killed = tmp_path / "armed", tmp_path / "killed"

    def kill_once(batches):
        for batch in batches:
            if armed.exists():
                try:
                    os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    os.kill(virtual_machine(), signal.SIGKILL)
            yield batch

    read = frame_of(two_workers, table, tmp_path / "private")
    frame = read.mapInArrow(kill_once, read.schema)
    asked = question(groups=("state",), nulls="drop")
    with_key(monkeypatch)
    listener = Listener(stage=lambda words: armed.touch() if words == "drawing labels" else None)
    record = randomize_table(frame, tmp_path / "noisy", asked, ledger=None, listener=listener)
    pq.write_table(table, tmp_path / "one.parquet")
    alone = randomize_table(tmp_path / "one.parquet", tmp_path / "alone.parquet", asked, ledger=None)
    assert killed.exists()
    assert (record.rows, record.epsilon, record.mechanisms) == (ROWS - 2, 1.0, alone.mechanisms)
    record.verify_table(tmp_path / "noisy")
    assert by_id(pq.read_table(tmp_path / "noisy")) == by_id(pq.read_table(tmp_path / "alone.parquet"))
    assert load_release(tmp_path / "noisy.release.json") == record
    check_secrets(two_workers, folder, [KEY])


def virtual_machine():
    """Process of the executor that this worker belongs to."""
    process = os.getppid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


def check_secrets(session, folder, keys):
    shown = pages(session)
    # Both have seen the release: they name its functions.
    logged = [path.read_bytes() for path in (folder / "events").rglob("*") if path.is_file()]
    for seen in (shown, b"".join(logged)):
        assert b"write_labels" in seen
    files = [path for name in ("events", "home/work", "local") for path in (folder / name).rglob("*") if path.is_file()]
    contents = {"pages": shown, **{str(path): path.read_bytes() for path in files}}
    told = [
        where for where, content in contents.items() for key in keys if any(f in content for f in written_forms(key))
    ]
    assert told == []


def pages(session):
    """All that the interface shows of queries."""
    context = session.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/sql?length=100"
    with urllib.request.urlopen(address) as sql:  # noqa: S310
        return sql.read()


def written_forms(key):
    """A key as bytes, hexadecimal, a list, and the part of base64 that does not depend on where it starts."""
    coded = [base64.b64encode(bytes(start) + key)[4 if start else 0 : 36] for start in range(3)]
    listed = [json.dumps(list(key))[1:-1], str(list(key))[1:-1].replace(" ", "")]
    return [key, key.hex().encode(), key.hex().upper().encode(), *coded, *(text.encode() for text in listed)]


@pytest.mark.parametrize("start", range(3))
def test_every_form_of_a_key_is_found(start):
    content = base64.b64encode(bytes([9] * start) + KEY + b"and more")
    assert any(form in content for form in written_forms(KEY))


def with_cell(table, column, row, value):
    cells = table[column].to_pylist()
    cells[row] = value
    return table.set_column(table.schema.names.index(column), column, pa.array(cells, table[column].type))


@by_case(
    "column, value, words",
    ("person", -1000, "the same id"),
    ("person", None, "record id in column 'person' is missing"),
    ("weeks", None, "at least one label in column 'weeks' is missing"),
    ("weeks", 9174, "declared"),
)
def test_what_cannot_be_released_is_refused_before_anything_is_charged(session, tmp_path, column, value, words):
    table = with_cell(private(), column, 2000, value)
    frame, ledger = frame_of(session, table, tmp_path / "private"), Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(InvalidInput, match=words) as refused:
        randomize_table(frame, tmp_path / "noisy", question(), dataset="d", ledger=ledger)
    assert "9174" not in str(refused.value)
    assert "1000" not in str(refused.value)
    assert not ledger.entries()
    assert {path.name for path in tmp_path.iterdir()} == {"private", "ledger.sqlite"}


def test_a_frame_that_changes_between_the_passes_is_refused(session, tmp_path):
    changed = tmp_path / "changed"

    def read(batches):
        for batch in batches:
            cells = batch.column("weeks").to_pylist()
            if changed.exists() and cells:
                cells[0] = (cells[0] + 1) % 5
            at = batch.schema.names.index("weeks")
            yield batch.set_column(at, "weeks", pa.array(cells, batch.column("weeks").type))

    given = frame_of(session, private(), tmp_path / "private")
    frame = given.mapInArrow(read, given.schema)
    listener = Listener(stage=lambda words: changed.touch() if words == "drawing labels" else None)
    with pytest.raises(InputChanged, match="held other labels or ids"):
        randomize_table(frame, tmp_path / "noisy", question(), ledger=None, listener=listener)
    assert {path.name for path in tmp_path.iterdir()} == {"private", "changed"}


def test_text_ids_missing_labels_dropped_columns_and_force(session, tmp_path):
    table = with_cell(private(), "weeks", 17, None)
    names = pa.array([f"person {number}" for number in table["person"].to_pylist()])
    frame = frame_of(session, table.set_column(0, "person", names), tmp_path / "private")
    asked = question(nulls="pass")
    options = {"ledger": None, "drop": ("person", "state")}
    record = randomize_table(frame, tmp_path / "noisy", asked, **options)
    released = pq.read_table(tmp_path / "noisy")
    assert (released.schema.names, released["weeks"].null_count) == (["weeks", "of another"], 1)
    assert set(released["weeks"].drop_null().to_pylist()) <= set(record.mechanism.outputs)
    assert (record.rows, record.table.rows, released.num_rows) == (ROWS - 1, ROWS, ROWS)
    assert_error("exists", randomize_table, frame, tmp_path / "noisy", asked, **options)
    second = randomize_table(frame.coalesce(1), tmp_path / "noisy", asked, **options, force=True)
    second.verify_table(tmp_path / "noisy")
    assert len(list((tmp_path / "noisy").iterdir())) == 1


def test_a_release_that_broke_off_goes_on_with_the_same_noise_and_is_paid_once(session, tmp_path, monkeypatch):
    frame, first = frame_of(session, private(), tmp_path / "private"), []

    def fail(folder, *_, **__):
        first.append(pq.read_table(folder / "table"))
        raise OSError(errno.ENOSPC, "the disk is full")

    ledger = Ledger(tmp_path / "ledger.sqlite")
    options = {"dataset": "census", "ledger": ledger}
    with monkeypatch.context() as broken:
        broken.setattr(_files, "publish", fail)
        assert_error("disk is full", randomize_table, frame, tmp_path / "noisy", question(), error=OSError, **options)
    assert not (tmp_path / "noisy").exists()
    record = randomize_table(frame.repartition(3), tmp_path / "noisy", question(), **options)
    with pytest.raises(AlreadySpent, match="for epsilon 1 in total"):
        randomize_table(frame, tmp_path / "again", question(), **options)
    assert ledger.spent("census", "weeks").epsilon == 1
    assert by_id(pq.read_table(tmp_path / "noisy")) == by_id(first[0])
    assert record.dataset == "census"


def test_attempts_of_a_task_write_files_of_their_own_with_equal_labels(tmp_path):
    table, account = private(), Account(None, None)
    mechanism = optrand.rr(range(5), 1.0)
    asked = question(randomizer=mechanism)
    reader = orchestrator.make_reader(Table(table), [asked], account)
    planned = (asked, Groups(), np.array([ROWS]), None)
    fits, _ = orchestrator.find_mechanisms(*planned)
    record = ReleaseRecord.of(*planned, fits, None, release="0" * 32, dataset=None)
    drawer = replace(reader, records=(record,), keys=(record.label_keys(KEY),))
    work = partial(_write_labels, drawer, ("person", "weeks"), tmp_path / "attempts")
    write = _task(SimpleNamespace(value=work), "write")
    batches = table.to_batches(max_chunksize=700)
    assert_error("a disk that all machines share", list, write(batches), error=OSError)
    (tmp_path / "attempts").mkdir()
    reports = [json.loads(next(iter(write(each)))["report"][0].as_py()) for each in (batches, batches[::-1])]
    sums = [_total(report["sums"]).tolist() for report in reports]
    assert (sums[0], sums[0][0]) == (sums[1], ROWS)
    first, second = (tmp_path / "attempts" / report["files"][0] for report in reports)
    assert first != second
    assert by_id(pq.read_table(first)) == by_id(pq.read_table(second))
    assert first.stat().st_mode & 0o777 == 0o600
    assert all(str(list(KEY)) not in repr(each) and repr(KEY) not in repr(each) for each in (work, drawer))

    def break_off():
        yield batches[0]
        raise OSError(errno.EIO, "the input is gone")

    assert_error("the input is gone", list, write(break_off()), error=OSError)
    assert {path.name for path in (tmp_path / "attempts").iterdir()} == {first.name, second.name}


def test_what_cannot_be_written_is_refused_before_it_is_charged(session, tmp_path):
    from pyspark.sql import functions

    table = private().slice(0, 400)
    rich = table.append_column("list", pa.array([[1, 2]] * 400)).append_column("struct", pa.array([{"a": 1}] * 400))
    frame = frame_of(session, rich, tmp_path / "private")
    (tmp_path / "taken").mkdir()
    empty = frame.withColumn("nothing", functions.from_json(functions.lit("{}"), "struct<>"))
    options = {"dataset": "census", "ledger": Ledger(tmp_path / "ledger.sqlite")}
    for given, name, asked, words in (
        (frame, "noisy.csv", question(), "a release on Spark is a folder of Parquet files"),
        (frame, "taken", question(), "exists"),
        (frame, "noisy", question(ids=()), "name columns that identify a record"),
        (frame, "noisy", question(column="none"), "no column 'none'"),
        (empty, "noisy", question(), "column 'nothing' is of type struct<>, which Parquet cannot hold"),
        (table, "noisy", question(), "of type Table"),
    ):
        assert_error(words, randomize_table, given, tmp_path / name, asked, **options)
    assert_error("not an absolute path", randomize_table, frame, "noisy", question(), **options)
    assert options["ledger"].entries() == ()
    record = randomize_table(empty, tmp_path / "noisy", question(), drop=("nothing",), **options)
    released = by_id(pq.read_table(tmp_path / "noisy"))
    assert (released["list"], released["struct"]) == ([[1, 2]] * 400, [{"a": 1}] * 400)
    assert record.rows == 400
