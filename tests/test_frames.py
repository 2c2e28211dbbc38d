"""Arrays and frames: labels out as Arrow, others in, everything else as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from optrand.errors import InvalidInput
from optrand.release.frames import opened

FLOATS = pa.array([1.5, 2.5, None])
TEXTS = pa.array(["a", "b", "a"])

COLUMNS: list[tuple[Any, list[Any]]] = [
    (np.array([1, 2, 3], np.int8), [1, 2, 3]),
    (np.array([0.5, np.nan, 3]), [0.5, None, 3]),
    (np.array([True, False, True]), [True, False, True]),
    (np.array(["p", "q", "p"]), ["p", "q", "p"]),
    (np.ma.array([1, 2, 3], mask=[False, True, False]), [1, None, 3]),
    ([1, None, 3], [1, None, 3]),
    (("p", None, "q"), ["p", None, "q"]),
    (pa.array([1, None, 3]), [1, None, 3]),
    (pa.chunked_array([[1], [None, 3]]), [1, None, 3]),
    (pa.array(["p", "q", "p"]).dictionary_encode(), ["p", "q", "p"]),
    (pd.Series([1, None, 3], index=[7, 8, 9], name="y"), [1, None, 3]),
    (pd.Series(["p", None, "q"]), ["p", None, "q"]),
    (pd.Series([3, 1, 3], dtype="category"), [3, 1, 3]),
    (pd.Series([1, None, 3], dtype="Int64"), [1, None, 3]),
    (pl.Series("y", [1, None, 3]), [1, None, 3]),
    (pl.Series("y", ["p", "q", "p"], dtype=pl.Categorical), ["p", "q", "p"]),
]


def cells(found: Any) -> list[Any]:
    return [None if cell is not None and cell != cell else cell for cell in found.to_pylist()]


@pytest.mark.parametrize(("given", "expected"), COLUMNS, ids=lambda item: type(item).__name__)
def test_a_column_is_read_and_its_kind_returned(given: Any, expected: list[Any]) -> None:
    column = opened(given)
    assert cells(column.labels) == expected
    assert column.rows == 3
    noisy = column.replaced(FLOATS)
    assert isinstance(
        noisy, list if isinstance(given, tuple) else pa.Array if isinstance(given, pa.Array) else type(given)
    )
    assert cells(opened(noisy).labels) == [1.5, 2.5, None]


def frames() -> list[Any]:
    public = {"i": [1, 2, 3], "y": ["p", "q", "q"]}
    return [pa.table(public), pa.record_batch(public), pd.DataFrame(public), pl.DataFrame(public)]


@pytest.mark.parametrize("given", frames(), ids=lambda given: f"{type(given).__module__}.{type(given).__name__}")
def test_a_frame_keeps_its_other_columns_and_the_rows_that_are_kept(given: Any) -> None:
    frame = opened(given, "y")
    assert frame.labels.to_pylist() == ["p", "q", "q"]
    assert frame.arrow("i").to_pylist() == [1, 2, 3]
    whole, part = frame.replaced(TEXTS), frame.replaced(TEXTS[:2], np.array([True, False, True]))
    for noisy, rows, labels in ((whole, [1, 2, 3], ["a", "b", "a"]), (part, [1, 3], ["a", "b"])):
        assert type(noisy) is type(given)
        assert opened(noisy, "i").labels.to_pylist() == rows
        assert opened(noisy, "y").labels.to_pylist() == labels
        assert list(
            getattr(noisy, "column_names", None) or noisy.columns
            if not isinstance(noisy, pa.RecordBatch)
            else noisy.schema.names
        ) == ["i", "y"]
    assert frame.labels.to_pylist() == ["p", "q", "q"]


def test_metadata_and_categories_do_not_survive() -> None:
    table = pa.table({"y": pa.array(["p", "q"]).dictionary_encode()}).replace_schema_metadata({"count of p": "1"})
    noisy = opened(table, "y").replaced(pa.array(["a", "a"]))
    assert noisy.schema.metadata is None
    assert noisy.schema.field("y").type == pa.string()
    frame = pd.DataFrame({"y": pd.Categorical(["p", "q"])})
    frame.attrs["count of p"] = 1
    noisy = opened(frame, "y").replaced(pa.array(["a", "a"]))
    assert not noisy.attrs
    assert noisy["y"].cat.categories.tolist() == ["a"]
    assert frame.attrs


def test_an_index_stays() -> None:
    frame = pd.DataFrame({"y": [1, 2, 3]}, index=["r", "s", "t"])
    noisy = opened(frame, "y").replaced(pa.array([0.5, 1.5]), np.array([True, False, True]))
    assert noisy["y"].to_dict() == {"r": 0.5, "t": 1.5}


def test_classes_keep_their_types() -> None:
    assert opened(np.array([3, 7], np.int16)).replaced(pa.array([7, 7], pa.int16())).dtype == np.int16
    assert opened(np.array([True, False])).replaced(pa.array([False, False])).dtype == np.bool_
    assert opened(np.array(["p", "q"])).replaced(pa.array(["q", "q"])).dtype.kind == "U"
    assert opened(pd.Series([3, 7], dtype="int16")).replaced(pa.array([7, 7], pa.int16())).dtype == np.int16
    assert opened(pl.Series([3, 7], dtype=pl.Int16)).replaced(pa.array([7, 7], pa.int16())).dtype == pl.Int16


def test_shapes_stay_and_masks_are_kept() -> None:
    given = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    noisy = opened(given).replaced(pa.array([7, None, 8, 9]))
    assert noisy.shape == (2, 2)
    assert noisy.mask.tolist() == given.mask.tolist()
    assert noisy.dtype == np.int64


@pytest.mark.parametrize(
    ("given", "column", "words"),
    [
        (7, None, "expected an array"),
        ("secret", None, "expected an array"),
        (pl.LazyFrame({"y": [1]}), "y", "collect it first"),
        (pa.table({"y": [1]}), None, "column="),
        (np.arange(3), "y", "leave out column"),
        (pa.table({"x": [1]}), "y", "0 columns named"),
        (pd.DataFrame([[1, 2]], columns=["y", "y"]), "y", "2 columns named"),
        ([[1, 2], [3]], None, "ragged"),
        (["secret", 7], None, "expected"),
        (np.array([1 + 2j]), None, "expected numbers"),
        (np.array(["2026-01-01"], "datetime64[D]"), None, "expected numbers"),
        (np.array([object()]), None, "mixes types"),
    ],
)
def test_what_cannot_be_read_is_named_and_no_label_repeated(given: Any, column: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as raised:
        opened(given, column).labels  # noqa: B018
    assert "secret" not in str(raised.value)
