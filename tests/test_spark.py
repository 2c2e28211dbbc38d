"""Releases on Spark: the labels of one machine, whatever happens to workers; what is refused; where the key is not."""

from __future__ import annotations

import base64
import dataclasses
import errno
import json
import os
import signal
import urllib.request
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cluster import MISSING, cluster

import optrand
from optrand.accounting.ledger import Ledger
from optrand.errors import AlreadySpent, InputChanged, InvalidFile, InvalidInput
from optrand.release.account import LedgerAccount, NoLedger
from optrand.release.baseline_job import BaselineJob
from optrand.release.batch import BatchRandomizer
from optrand.release.declared_sets import DeclaredNumbers
from optrand.release.job import LabelJob
from optrand.release.publication import Publication
from optrand.release.spark import randomize
from optrand.release.spark.tasks import Drawing, Secret, writing
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions
from optrand.sampling.keyed import RecordStreams, subkey

if MISSING and "CI" not in os.environ:
    # CI never skips: there, what is missing is an error.
    pytest.skip(f"no tests on Spark without {' and '.join(MISSING)}", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KEY = bytes(range(100, 132))
RELEASE = "7d9a4c5e-0000-4000-8000-000000000000"
LABELS = np.arange(5.0)
ROWS = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def session(folder):
    with cluster(folder) as started:
        yield started


@pytest.fixture
def job():
    return BaselineJob(labels=LABELS, randomizer=optrand.tabulate(optrand.rr(LABELS, epsilon=1.0)))


def private(seed=0, **columns):
    drawn = np.random.default_rng(seed)
    ids = drawn.permutation(ROWS) * 3 - 1000
    cells = {"person": ids, "weeks": drawn.integers(0, 5, ROWS), "of another": drawn.random(ROWS)}
    return pa.table({**cells, **columns})


def frame_of(session, table, folder):
    """Frame of four files, read as at least four partitions."""
    folder.mkdir()
    for part in range(4):
        size = table.num_rows // 4
        pq.write_table(table.slice(part * size, size), folder / f"{part}.parquet")
    return session.read.parquet(str(folder))


def task(job, **options):
    return TableJob(job=job, column="weeks", options=TableOptions(**{"id_column": "person", **options}))


def by_id(table):
    return table.sort_by("person").to_pydict()


def on_one_machine(table, mechanism_file):
    """Release of the whole table as one batch, under the same key and for the same mechanism."""
    mechanism = optrand.load(mechanism_file)
    digest = optrand.release.streams.source.digest_of(mechanism_file)
    key = subkey(KEY, release=RELEASE, dataset="", column="weeks", purpose="labels", mechanism=digest)
    replace = BatchRandomizer(column="weeks", declared=DeclaredNumbers(LABELS), id_column="person")
    draws = [lambda values, ids: mechanism.sample_records(values, ids, RecordStreams(key))]
    return pa.Table.from_batches([replace(table.combine_chunks().to_batches()[0], draws)])


def test_a_killed_worker_changes_no_label_and_no_key_is_told(session, folder, tmp_path):
    table, armed, killed = private(), tmp_path / "armed", tmp_path / "killed"

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

    read = frame_of(session, table, tmp_path / "private")
    frame = read.mapInArrow(kill_once, read.schema)
    output = tmp_path / "noisy"
    record = randomize(
        frame,
        output,
        task(LabelJob(labels=LABELS, epsilon=1.0)),
        account=NoLedger(key=KEY, release=RELEASE),
        announce=lambda words: armed.touch() if words == "drawing labels" else None,
    )
    assert killed.exists()
    released = pq.read_table(output)
    assert (record.epsilon, record.rows, record.private, released.num_rows) == (1.0, ROWS, False, ROWS)
    assert record.circumstances.entropy == "keyed"
    assert uuid.UUID(record.circumstances.release) == uuid.UUID(RELEASE)
    record.verify_table(output)
    assert optrand.certify(record.mechanism).epsilon <= record.parts.labels
    mechanism_file = tmp_path / "noisy.mechanism.json"
    assert by_id(released) == by_id(on_one_machine(table, mechanism_file))
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"armed", "killed", "noisy", "noisy.mechanism.json", "noisy.release.json", "private"}
    digest = optrand.release.streams.source.digest_of(mechanism_file)
    names = {"release": RELEASE, "dataset": "", "column": "weeks"}
    keys = (KEY, subkey(KEY, **names, purpose="labels", mechanism=digest), subkey(KEY, **names, purpose="prior"))
    check_secrets(session, folder, keys)


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
    """All that the interface says of queries."""
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


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("person", -1000, "the same id"),
        ("person", None, "record id in column 'person' is missing"),
        ("weeks", None, "at least one label in column 'weeks' is missing"),
        ("weeks", 9174, "declared"),
    ],
)
def test_what_cannot_be_released_is_refused_before_anything_is_drawn(session, job, tmp_path, column, value, words):
    table = with_cell(private(), column, 2000, value)
    frame, told = frame_of(session, table, tmp_path / "private"), []
    with pytest.raises(InvalidInput, match=words) as refused:
        randomize(frame, tmp_path / "noisy", task(job), announce=told.append)
    assert "9174" not in str(refused.value)
    assert "1000" not in str(refused.value)
    assert told == ["reading the table"]
    assert {path.name for path in tmp_path.iterdir()} == {"private"}


@pytest.mark.parametrize("column", ["weeks", "person"])
def test_a_frame_that_changes_between_the_passes_is_refused(session, job, tmp_path, column):
    changed = tmp_path / "changed"

    def read(batches):
        for batch in batches:
            cells = batch.column(column).to_pylist()
            if changed.exists() and cells:
                cells[0] = cells[0] - 1 if column == "person" else (cells[0] + 1) % 5
            at = batch.schema.names.index(column)
            yield batch.set_column(at, column, pa.array(cells, batch.column(column).type))

    given = frame_of(session, private(), tmp_path / "private")
    frame = given.mapInArrow(read, given.schema)
    with pytest.raises(InputChanged, match="held other labels or ids"):
        randomize(
            frame,
            tmp_path / "noisy",
            task(job),
            announce=lambda words: changed.touch() if words == "drawing labels" else None,
        )
    assert {path.name for path in tmp_path.iterdir()} == {"private", "changed"}


def test_text_ids_missing_labels_and_dropped_columns(session, job, tmp_path):
    table = private()
    table = with_cell(table, "weeks", 17, None)
    names = pa.array([f"person {number}" for number in table["person"].to_pylist()])
    table = table.set_column(0, "person", names)
    frame = frame_of(session, table, tmp_path / "private")
    record = randomize(frame, tmp_path / "noisy", task(job, nulls="pass", drop=("person",)))
    released = pq.read_table(tmp_path / "noisy")
    assert (released.schema.names, released["weeks"].null_count) == (["weeks", "of another"], 1)
    assert released.num_rows == ROWS
    assert set(released["weeks"].drop_null().to_pylist()) <= set(
        optrand.load(tmp_path / "noisy.mechanism.json").outputs
    )
    assert (record.private, record.rows, record.table.rows) == (True, ROWS - 1, ROWS)


def test_a_release_replaces_an_earlier_one_as_a_whole(session, job, tmp_path):
    frame, output = frame_of(session, private(), tmp_path / "private"), tmp_path / "noisy"
    first = randomize(frame, output, task(job))
    with pytest.raises(InvalidInput, match="exists"):
        randomize(frame, output, task(job))
    first.verify_table(output)
    second = randomize(frame.coalesce(1), output, dataclasses.replace(task(job), overwrite=True))
    second.verify_table(output)
    with pytest.raises(InvalidFile, match="not the table of this release"):
        first.verify_table(output)
    assert len(list(output.iterdir())) == 1
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"noisy", "noisy.mechanism.json", "noisy.release.json", "private"}


def test_a_release_that_broke_off_goes_on_with_the_same_noise_and_is_paid_once(session, job, tmp_path, monkeypatch):
    frame, first = frame_of(session, private(), tmp_path / "private"), []

    def fail(publication, **_):
        first.append(pq.read_table(next(path for path in publication.folder.iterdir() if list(path.glob("part-*")))))
        raise OSError(errno.ENOSPC, "the disk is full")

    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        account = LedgerAccount(ledger, "census")
        with monkeypatch.context() as broken:
            broken.setattr(Publication, "publish", fail)
            with pytest.raises(OSError, match="disk is full"):
                randomize(frame, tmp_path / "noisy", task(job), account=account)
        assert not (tmp_path / "noisy").exists()
        record = randomize(frame.repartition(3), tmp_path / "noisy", task(job), account=account)
        with pytest.raises(AlreadySpent, match="for epsilon 1 in total"):
            randomize(frame, tmp_path / "again", task(job), account=account)
        assert ledger.spent("census", "weeks").epsilon == 1
    assert by_id(pq.read_table(tmp_path / "noisy")) == by_id(first[0])
    assert (record.circumstances.dataset, record.circumstances.ledger, record.private) == ("census", True, True)


def test_attempts_of_a_task_write_files_of_their_own_with_equal_labels(job, tmp_path):
    replace = BatchRandomizer(column="weeks", declared=DeclaredNumbers(LABELS), id_column="person")
    drawing = Drawing(Secret(KEY), Secret(KEY), Secret(KEY), job.randomizer)
    write = writing(replace, SimpleNamespace(value=drawing), str(tmp_path / "attempts"))
    batches = private().to_batches(max_chunksize=700)
    with pytest.raises(OSError, match="a disk that all machines share"):
        list(write(batches))
    (tmp_path / "attempts").mkdir()
    reports = [next(iter(write(each))).to_pylist()[0] for each in (batches, batches[::-1])]
    assert reports[0]["sums"] == reports[1]["sums"]
    first, second = (tmp_path / "attempts" / report["file"] for report in reports)
    assert first != second
    assert by_id(pq.read_table(first)) == by_id(pq.read_table(second))
    assert first.stat().st_mode & 0o777 == 0o600

    def breaking():
        yield batches[0]
        raise OSError(errno.EIO, "the input is gone")

    with pytest.raises(OSError, match="the input is gone"):
        list(write(breaking()))
    assert {path.name for path in (tmp_path / "attempts").iterdir()} == {first.name, second.name}


def test_options_that_frames_do_not_have_are_refused(session, job, tmp_path):
    frame = session.range(3)
    for wrong, words in (
        (task(job, id_column=None), "name a column of record ids"),
        (task(job, expect_sha256="0" * 64), "frames have no layout"),
        (task(job), "no column 'weeks'"),
    ):
        with pytest.raises(InvalidInput, match=words):
            randomize(frame, tmp_path / "noisy", wrong)
    with pytest.raises(InvalidInput, match="of type Table"):
        randomize(private(), tmp_path / "noisy", task(job))
    (tmp_path / "taken").mkdir()
    whole = session.createDataFrame(private().slice(0, 4))
    for path, words in ((Path("noisy"), "not an absolute path"), (tmp_path / "taken", "exists")):
        with pytest.raises(InvalidInput, match=words):
            randomize(whole, path, task(job))
