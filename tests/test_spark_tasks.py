"""What tasks of a Spark release do with a partition, without Spark: sums of rows, reports, and what is never said."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optrand
from optrand.errors import InvalidInput
from optrand.release.account import NoLedger
from optrand.release.baseline_job import BaselineJob
from optrand.release.batch import BatchRandomizer
from optrand.release.declared_sets import DeclaredNumbers
from optrand.release.job import LabelJob
from optrand.release.spark.release import terms_of
from optrand.release.spark.rows import RowSums, digest_rows
from optrand.release.spark.tasks import Drawing, Report, Secret, checking_ids, counting
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions
from optrand.sampling.keyed import RecordStreams

KEY = bytes(range(32))
LABELS = np.arange(4.0)
REPLACE = BatchRandomizer(column="y", declared=DeclaredNumbers(LABELS), id_column="id")
HELD = SimpleNamespace(value=Drawing(Secret(KEY), Secret(KEY[::-1])))


def rows_of(ids, places):
    halves = np.array([[one % 2**64, one >> 64] for one in ids], dtype=np.uint64).reshape(-1, 2)
    return halves, np.array(places, dtype=np.int32)


def digest(ids, places):
    return digest_rows(KEY, RowSums.of(KEY, *rows_of(ids, places)))


tables = st.dictionaries(st.integers(0, 2**128 - 1), st.integers(-1, 5), min_size=1, max_size=12)


@given(tables, st.randoms(use_true_random=False), st.integers(0, 12))
def test_sums_depend_on_neither_order_nor_partition(table, shuffled, cut):
    items = list(table.items())
    shuffled.shuffle(items)
    parts = [RowSums.of(KEY, *rows_of(*zip(*part, strict=True))) for part in (items[:cut], items[cut:]) if part]
    total = sum(parts, RowSums.none())
    assert digest_rows(KEY, total) == digest(list(table), list(table.values()))
    assert RowSums.from_bytes(total.rows, total.to_bytes()).to_bytes() == total.to_bytes()


@given(tables, st.integers(0, 11), st.integers(-1, 5))
def test_sums_change_with_any_label_id_or_row(table, at, place):
    ids, places = list(table), list(table.values())
    at %= len(ids)
    whole = digest(ids, places)
    if places[at] != place:
        assert digest(ids, [*places[:at], place, *places[at + 1 :]]) != whole
    assert digest([*ids[:at], (ids[at] + 1) % 2**128, *ids[at + 1 :]], places) != whole
    assert digest([*ids, ids[at]], [*places, places[at]]) != whole


def test_labels_that_change_places_change_the_sums_of_labels_alone():
    one, other = (RowSums.of(KEY, *rows_of([1, 2], places)) for places in ([0, 1], [1, 0]))
    assert one.ids.tolist() == other.ids.tolist()
    assert one.labels.tolist() != other.labels.tolist()
    assert RowSums.of(KEY, rows_of([1, 2], [0, 0])[0]).ids.tolist() == one.ids.tolist()


def reported(task, batches):
    """Report of a task, as the driver reads it."""
    rows = [SimpleNamespace(**row) for batch in task(batches) for row in batch.to_pylist()]
    return Report.collected(rows, LABELS.size)


def test_counts_and_sums_of_batches_are_those_of_the_table():
    table = pa.table({"id": np.arange(100), "y": np.arange(100) % 4, "x": np.zeros(100)})
    found = reported(counting(REPLACE, HELD), table.to_batches(max_chunksize=7))
    assert found.counts.tolist() == [25, 25, 25, 25]
    assert (found.sums.rows, found.released, found.refused) == (100, 100, None)
    distinct = pa.table({"id": np.arange(99, -1, -1), "count": np.ones(100, dtype=np.int64)})
    ids = reported(checking_ids("id", HELD), distinct.to_batches(max_chunksize=9))
    assert (ids.refused, ids.sums.ids.tolist()) == (None, found.sums.ids.tolist())


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ({"id": [1, 2], "y": [0.0, 71.5]}, "declared"),
        ({"id": [1, None], "y": [0.0, 1.0]}, "record id in column 'id' is missing"),
        ({"id": [1, 2], "y": [0.0, None]}, "at least one label in column 'y' is missing"),
        ({"id": [0.5, 2], "y": [0.0, 1.0]}, "expected integers, text or bytes as record ids"),
    ],
)
def test_refusals_are_reported_after_all_rows_and_repeat_no_cell(batch, words):
    seen = []

    def batches():
        for rows in (batch, {"id": [8, 9], "y": [2.0, 3.0]}):
            seen.append(len(rows))
            yield pa.record_batch(rows)

    found = reported(counting(REPLACE, HELD), batches())
    assert words in found.refused
    assert "71" not in found.refused
    assert len(seen) == 2


def test_ids_that_occur_twice_are_reported():
    found = reported(checking_ids("id", HELD), [pa.record_batch({"id": ["a", "b"], "count": [1, 2]})])
    assert "same id" in found.refused


def test_an_error_of_a_task_repeats_no_cell():
    def failing():
        yield pa.record_batch({"id": [1], "y": [1.0]})
        raise ValueError("a label is 71.5")

    with pytest.raises(RuntimeError, match="failed with ValueError") as failed:
        list(counting(REPLACE, HELD)(failing()))
    assert "71" not in str(failed.value)
    assert failed.value.__suppress_context__


def test_secrets_are_sent_and_never_printed():
    mechanism = optrand.tabulate(optrand.rr(LABELS, epsilon=1.0))
    sent = Drawing(Secret(KEY), Secret(KEY), Secret(KEY), mechanism, private=True)
    for shown in (repr(sent), str(sent), f"{sent.labels_key}"):
        assert "Secret()" in shown
        assert KEY.hex() not in shown
        assert repr(KEY)[2:-1] not in shown
    ids = rows_of(range(4), LABELS)[0]
    drawn = pickle.loads(pickle.dumps(sent)).draw(LABELS, ids)  # noqa: S301
    assert drawn.tolist() == mechanism.sample_records(LABELS, ids, RecordStreams(KEY)).tolist()
    with pytest.raises(InvalidInput, match="no key yet"):
        HELD.value.draw(LABELS, ids)


def question(job, **options):
    task = TableJob(job=job, column="y", options=TableOptions(id_column="id", **options))
    return terms_of(task, 1000, input_digest="0" * 64, output=Path("out"))


def test_configurations_differ_wherever_what_is_drawn_may():
    job = LabelJob(labels=LABELS, epsilon=1.0)
    noise = BaselineJob(labels=LABELS, randomizer=optrand.tabulate(optrand.rr(LABELS, epsilon=1.0)))
    asked = [
        question(job),
        question(job, nulls="drop"),
        question(LabelJob(labels=LABELS, epsilon=2.0)),
        question(LabelJob(labels=np.arange(5000.0), epsilon=1.0)),
        question(LabelJob(labels=np.append(np.arange(4999.0), 5001.0), epsilon=1.0)),
        question(LabelJob(labels=LABELS, epsilon=1.0, clip=True)),
        question(noise),
    ]
    assert len({one.configuration for one in asked}) == len(asked)
    assert question(LabelJob(labels=LABELS, epsilon=1.0)).configuration == asked[0].configuration


def test_parts_of_the_cost_add_up_to_epsilon():
    parts = question(LabelJob(labels=LABELS, epsilon=1.0)).parts
    assert set(parts) == {"prior", "labels"}
    assert parts["prior"].epsilon + parts["labels"].epsilon <= 1
    noise = BaselineJob(labels=LABELS, randomizer=optrand.tabulate(optrand.rr(LABELS, epsilon=1.0)))
    assert {name: part.epsilon for name, part in question(noise).parts.items()} == {"labels": 1}


def test_releases_without_a_ledger_share_no_key():
    asked = question(LabelJob(labels=LABELS, epsilon=1.0))
    entries = [NoLedger().begin(asked) for _ in range(2)]
    assert len({entry.subkey("labels") for entry in entries}) == 2
    assert all(entry.private for entry in entries)
    assert not NoLedger(key=KEY).begin(asked).private
    for entry in entries:
        entry.complete()
        with pytest.raises(InvalidInput):
            entry.subkey("labels")
