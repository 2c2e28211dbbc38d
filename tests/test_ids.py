"""Record ids: the same whatever holds them, none twice, and a digest of rows that no batch can change."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optrand.release.ids
from optrand.errors import InvalidInput
from optrand.release.ids import RowDigest, UniqueIds, column_ids, row_ids


def ids_of(*cells, kind=None, key=b"key"):
    return column_ids(pa.array(cells, kind), name="id", key=key)


def unique(*parts):
    with UniqueIds() as ids:
        for part in parts:
            ids.add(np.asarray(part, dtype=np.uint64).reshape(-1, 2))
        ids.check()


def test_an_integer_is_its_twos_complement_whatever_type_holds_it():
    for kind in (pa.int8(), pa.int32(), pa.int64(), pa.string(), pa.large_string()):
        cells = [7, -1, 0] if pa.types.is_integer(kind) else ["7", "-1", "0"]
        assert ids_of(*cells, kind=kind).tolist() == [[7, 0], [2**64 - 1, 0], [0, 0]]
    assert ids_of(b"7", b"7", kind=pa.binary()).tolist() == [[7, 0], [7, 0]]
    assert ids_of("7", "8", kind=pa.dictionary(pa.int8(), pa.string())).tolist() == [[7, 0], [8, 0]]


def test_other_text_is_hashed_with_the_key_and_never_meets_an_integer():
    texts = ["007", "+7", "7 ", "-0", "", "x", "9" * 19, "é"]
    found = ids_of(*texts)
    assert len({tuple(one) for one in found.tolist()}) == len(texts)
    assert (found[:, 1] >= 2**63).all()
    assert (found != ids_of(*texts, key=b"other")).any(axis=1).all()
    assert found.tolist() == ids_of(*(text.encode() for text in texts)).tolist()
    mixed = ids_of("5", "x", "6")
    assert mixed[[0, 2]].tolist() == [[5, 0], [6, 0]]
    assert mixed[1].tolist() == ids_of("x")[0].tolist()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (pa.array([1, None]), "at least one record id in column 'id' is missing"),
        (pa.array(["1", None]), "at least one record id in column 'id' is missing"),
        (pa.array([1.0]), "of type double, expected integers, text or bytes"),
        (pa.array([True]), "of type bool, expected integers, text or bytes"),
        (pa.array([2**63], pa.uint64()), r"integers of 2\*\*63 or more"),
    ],
)
def test_cells_that_are_no_ids_are_refused(cells, message):
    with pytest.raises(InvalidInput, match=message):
        column_ids(cells, name="id", key=b"")


@given(
    rows=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**63, 2**64 - 1])), max_size=20),
    data=st.data(),
)
def test_a_digest_does_not_depend_on_the_batches_and_depends_on_everything_else(rows, data):
    ids = np.array(rows, dtype=np.uint64).reshape(-1, 2)
    places = np.array(data.draw(st.lists(st.integers(-3, 9), min_size=len(rows), max_size=len(rows))), dtype=np.int32)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))

    def digest(ids, places, cuts=(), key=b"k"):
        one = RowDigest(key)
        for part in zip(np.split(ids, cuts), np.split(places, cuts), strict=True):
            one.add(*part)
        return one.hexdigest()

    whole = digest(ids, places)
    assert digest(ids, places, cuts) == whole
    assert digest(ids, places, key=b"l") != whole
    if rows:
        at = data.draw(st.integers(0, len(rows) - 1))
        for column in (0, 1):
            other = ids.copy()
            other[at, column] ^= np.uint64(1)
            assert digest(other, places) != whole
        moved = places.copy()
        moved[at] += 1
        assert digest(ids, moved) != whole
        assert digest(ids[:-1], places[:-1]) != whole


@given(
    parts=st.lists(
        st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0, 0, 2**63])), max_size=8)
        | st.tuples(st.integers(0, 300), st.integers(0, 150)).map(
            lambda run: [(i, 0) for i in range(run[0], run[0] + run[1])]
        ),
        max_size=5,
    ),
    held=st.sampled_from([1, 5, 1 << 18]),
)
def test_the_check_is_exact(parts, held):
    everything = [one for part in parts for one in part]
    before, optrand.release.ids.BUFFERED = optrand.release.ids.BUFFERED, held
    try:
        if len(set(everything)) == len(everything):
            unique(*parts)
        else:
            with pytest.raises(InvalidInput, match="at least two records have the same id"):
                unique(*parts)
    finally:
        optrand.release.ids.BUFFERED = before


def test_one_repeated_id_among_a_million_is_found_and_memory_stays_small():
    rng = np.random.default_rng(5)
    ids = np.zeros((1 << 20, 2), dtype=np.uint64)
    ids[:, 0] = rng.permutation(1 << 20).astype(np.uint64) * np.uint64(977)
    unique(*np.array_split(ids, 20))
    ids[-1] = ids[0]
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="at least two records"):
            unique(*np.array_split(ids, 20))
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def test_rows_that_count_up_need_no_file(tmp_path):
    with UniqueIds(tmp_path / "nowhere") as ids:
        for start in range(0, 1 << 20, 1 << 16):
            ids.add(row_ids(start, 1 << 16))
        ids.check()


def test_the_file_of_ids_has_no_name_and_goes_with_the_check(tmp_path, monkeypatch):
    monkeypatch.setattr(optrand.release.ids, "BUFFERED", 1)
    with UniqueIds(tmp_path) as ids:
        ids.add(np.array([[9, 0], [4, 0]], dtype=np.uint64))
        descriptor = ids._file.fileno()
        assert os.fstat(descriptor).st_mode & 0o777 == 0o600
        assert list(tmp_path.iterdir()) == []
        ids.check()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
