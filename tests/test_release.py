"""Releases of tables: every form of input, other columns as they are, groups, estimates, records."""

import gzip
import hashlib
import hmac
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asserting import assert_error, by_case
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import optrand
from optrand import estimate
from optrand.base import _strict_json
from optrand.errors import InvalidFile, InvalidInput
from optrand.release import Question, ReleaseRecord, _tables, load_release, randomize_table
from optrand.release._question import RANDOMIZERS
from optrand.release._rows import UniqueIds, column_ids, integer_ids
from optrand.release._tables import diagnose_table

ROWS = 300
LABELS = [0, 1, 2] * (ROWS // 3)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def release(source: str, target: str, *, key: bytes | None = None, **options: Any) -> ReleaseRecord:
    """Release numbers at epsilon 30, where a label changes with a probability below 1e-12, or as the options state."""
    files = {name: options.pop(name) for name in ("keep", "drop", "separator", "decimal", "force") if name in options}
    asked = {"column": "y", "epsilon": 30.0, **options}
    asked.setdefault("labels", range(3))
    numbers = not isinstance(next(iter(asked["labels"])), str)
    if numbers and not asked.keys() & {"randomizer", "loss", "outputs", "bias_penalty", "prior"}:
        asked["loss"] = "zero-one"
    with patch("os.urandom", (lambda size: key[:size]) if key else __import__("os").urandom):
        return randomize_table(source, target, Question(**asked), ledger=None, **files)


def lines(*cells: str, end: str = "\n", header: str = "y,c") -> bytes:
    return (end.join([header, *cells]) + end).encode()


# Forms of separated text

PLAIN = [f"{y},p{i}" for i, y in enumerate(LABELS)]
RELEASED = [[f"{y}.0", f"p{i}"] for i, y in enumerate(LABELS)]

FORMS: dict[str, tuple[bytes, list[list[str]]]] = {
    "plain": (lines(*PLAIN), RELEASED),
    "no last line end": (lines(*PLAIN)[:-1], RELEASED),
    "mark and carriage returns": (b"\xef\xbb\xbf" + lines(*PLAIN, end="\r\n"), RELEASED),
    "carriage returns alone": (lines(*PLAIN, end="\r"), RELEASED),
    "mixed ends": (lines(*PLAIN).replace(b"\n", b"\r\n", 50), RELEASED),
    "quoted": (lines(*[f'"{y}","p{i}"' for i, y in enumerate(LABELS)]), RELEASED),
    "blanks around": (lines(*[f" {y}\t,p{i}" for i, y in enumerate(LABELS)]), RELEASED),
    "numbers as written": (
        lines("0,a", "-0,b", "1.0,c", "1e0,d", "+1,e", "01,f", "1.,g", "0.2e1,h"),
        [["0.0", "a"], ["0.0", "b"], *([["1.0", cell] for cell in "cdefg"]), ["2.0", "h"]],
    ),
    "quotes with ends and separators": (
        lines('0,"a\nb"', '1,"say ""x"""', '2,"p,q"'),
        [["0.0", '"a\nb"'], ["1.0", '"say ""x"""'], ["2.0", '"p,q"']],
    ),
    "empty text and no text": (lines('0,""', "1,", "2,x"), [["0.0", '""'], ["1.0", ""], ["2.0", "x"]]),
    "a long cell": (
        lines("0," + "p" * 5_000_000, "1,q", "2,r"),
        [["0.0", "p" * 5_000_000], ["1.0", "q"], ["2.0", "r"]],
    ),
    "another encoding": (
        "y,c\n0,\xe9\n1,\xff\n2,x\n".encode("latin-1"),
        [["0.0", "\xe9"], ["1.0", "\xff"], ["2.0", "x"]],
    ),
    "a zero byte": (b"y,c\n0,\x00\n1,b\n2,c\n", [["0.0", "\x00"], ["1.0", "b"], ["2.0", "c"]]),
}


def split(content: bytes) -> list[list[str]]:
    """Cells as they are written. The tests' own cells hold a separator only if they are quoted."""
    text = content.decode("latin-1" if b"\xe9" in content else "utf-8")
    rows, start = [], 4
    assert text.startswith("y,c\n")
    while start < len(text):
        comma = text.index(",", start)
        end = text.index("\n", comma)
        while text[comma + 1 : end].count('"') % 2:
            end = text.index("\n", end + 1)
        rows.append([text[start:comma], text[comma + 1 : end]])
        start = end + 1
    return rows


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_text_of_every_form_is_read_and_written(name: str, packed: bool) -> None:
    content, expected = FORMS[name]
    if packed:
        # Members of a gzip file follow each other, and zeros may pad its end.
        half = len(content) // 2
        Path("in.csv.gz").write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]) + bytes(512))
    else:
        Path("in.csv").write_bytes(content)
    source = "in.csv.gz" if packed else "in.csv"
    if name == "no last line end":
        with pytest.warns(UserWarning, match="has no end"):
            record = release(source, "out.csv")
    else:
        record = release(source, "out.csv")
    assert split(Path("out.csv").read_bytes()) == expected
    assert (record.rows, record.table.rows) == (len(expected),) * 2  # type: ignore[union-attr]


def test_names_of_columns_are_kept_as_they_are() -> None:
    header = b',y,"p,q","say ""x""",\xff'
    Path("in.csv").write_bytes(header + b"\n0,1,2,3,4\n")
    release("in.csv", "out.csv")
    assert Path("out.csv").read_bytes() == header + b"\n0,1.0,2,3,4\n"


def test_a_file_that_packs_well_is_unpacked() -> None:
    content = lines(*["0,p"] * 2_000_000)
    Path("in.csv.gz").write_bytes(gzip.compress(content))
    assert len(content) / Path("in.csv.gz").stat().st_size > 300
    assert release("in.csv.gz", "out.csv", keep=()).rows == 2_000_000


@by_case(
    "suffix, separator, decimal", (".tsv", None, None), (".csv", ";", ","), (".tsv.gz", "|", None), (".csv", "\t", None)
)
def test_signs_are_kept_and_known_to_the_record(suffix: str, separator: Any, decimal: Any) -> None:
    sign, point = separator or "\t", decimal or "."
    content = "".join(f"{y}{point}5{sign}p{i}\n" for i, y in enumerate(LABELS))
    data = f"y{sign}c\n{content}".encode()
    Path("in" + suffix).write_bytes(gzip.compress(data) if "gz" in suffix else data)
    record = release("in" + suffix, "out" + suffix, labels=[0.5, 1.5, 2.5], separator=separator, decimal=decimal)
    written = Path("out" + suffix).read_bytes()
    assert (gzip.decompress(written) if "gz" in suffix else written) == data
    table = record.table
    assert table is not None
    assert (table.separator, table.decimal) == (sign, point)


MISSING = {"": 0, "NA": 1, "nan": 2, "N/A": 3, "null": 4}


@pytest.mark.parametrize("cell", MISSING)
def test_missing_numbers_in_text_are_dropped_or_passed_on(cell: str) -> None:
    Path("in.csv").write_bytes(lines("0,a", f"{cell},b", "2,c"))
    assert_error("at least one label in column 'y' is missing", release, "in.csv", "out.csv")
    assert release("in.csv", "dropped.csv", nulls="drop").rows == 2
    assert split(Path("dropped.csv").read_bytes()) == [["0.0", "a"], ["2.0", "c"]]
    record = release("in.csv", "passed.csv", nulls="pass")
    assert split(Path("passed.csv").read_bytes()) == [["0.0", "a"], ["", "b"], ["2.0", "c"]]
    assert (record.rows, record.table.rows) == (2, 3)  # type: ignore[union-attr]


def test_classes_of_text_may_be_named_like_what_is_missing() -> None:
    Path("in.csv").write_bytes(lines("N/A,a", ",b", "class,c"))
    record = release("in.csv", "out.csv", labels=["N/A", "class", None], nulls="class")
    assert split(Path("out.csv").read_bytes()) == [["N/A", "a"], ["", "b"], ["class", "c"]]
    assert record.labels == ("N/A", "class", None)


# Parquet

KINDS: dict[str, Any] = {
    "list": pa.array([[1, 2], None] * 150),
    "struct": pa.array([{"y": 7}] * ROWS),
    "map": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "nanoseconds": pa.array(range(ROWS), pa.timestamp("ns", tz="Europe/Vienna")),
    "duration": pa.array(range(ROWS), pa.duration("us")),
    "decimal": pa.array([Decimal("1.50")] * ROWS),
    "large": pa.array([2**62 + 1] * ROWS),
    "unsigned": pa.array([2**64 - 1] * ROWS, pa.uint64()),
    "fixed": pa.array([b"\xff\x00"] * ROWS, pa.binary(2)),
    "uuid": pa.array([bytes(16)] * ROWS, pa.uuid()),
    "nan": pa.array([math.nan, -0.0, None] * 100),
    "dictionary": pa.array(["a", None, "b"] * 100).dictionary_encode(),
    "null": pa.nulls(ROWS),
    "a.b": pa.array(range(ROWS), pa.int16()),
}


def test_every_other_column_of_parquet_keeps_its_type_and_values() -> None:
    table = pa.table({"y": LABELS, **KINDS})
    pq.write_table(table, "in.parquet")
    release("in.parquet", "out.parquet")
    made = pq.read_table("out.parquet")
    assert made.schema.names == table.schema.names
    for name in KINDS:
        assert made[name].type == table[name].type
        assert str(made[name].to_pylist()) == str(table[name].to_pylist())
    assert made["y"].to_pylist() == LABELS


def test_files_of_a_folder_may_differ_in_the_width_of_integers() -> None:
    for number, kind in enumerate((pa.int32(), pa.int64())):
        Path(f"in/part={number}").mkdir(parents=True)
        pq.write_table(
            pa.table({"y": pa.array(LABELS, kind), "z": pa.array(LABELS, kind)}), f"in/part={number}/a.parquet"
        )
    assert release("in", "out").rows == 2 * ROWS
    assert {path.parent.name for path in Path("out").rglob("*.parquet")} == {"part=0", "part=1"}
    assert pq.read_schema("out/part=0/a.parquet").field("z").type == pa.int64()
    pq.write_table(pa.table({"y": LABELS}), "in/part=1/a.parquet")
    assert_error("differ in their columns", release, "in", "again")


def test_batches_of_any_size_make_large_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema({"y": pa.int64()})
    for largest, groups in ((1 << 26, [280_000, 120_000]), (200_000, [40_000] * 10)):
        monkeypatch.setattr(_tables, "GROUP_BYTES", largest)
        path = Path(f"{largest}.parquet")
        with _tables.write_parquet(schema, path) as write:
            for _ in range(20):
                write(pa.record_batch({"y": range(20_000)}, schema))
        written = pq.ParquetFile(path).metadata
        assert [written.row_group(i).num_rows for i in range(written.num_row_groups)] == groups


def test_text_becomes_parquet_and_back() -> None:
    Path("in.csv").write_bytes(lines(*PLAIN))
    release("in.csv", "out.parquet", keep=["c"])
    assert pq.read_table("out.parquet")["c"].to_pylist() == [f"p{i}" for i in range(ROWS)]
    assert pq.read_schema("out.parquet").field("c").type == pa.string()
    Path("numbers.csv").write_bytes(lines("0,1", "1,2.50", "2,"))
    release("numbers.csv", "numbers.parquet")
    assert pq.read_table("numbers.parquet")["c"].to_pylist() == ["1", "2.50", None]
    release("out.parquet", "back.csv", drop=["c"])
    assert Path("back.csv").read_text().splitlines() == ["y", *(f"{y}.0" for y in LABELS)]


@by_case(
    "options, words",
    ({"column": "Y"}, "did you mean 'y'"),
    ({"column": "z"}, "no column 'z': its schema names 2 columns"),
    ({"column": "c"}, "is of type string, expected numbers"),
    ({"ids": ("d",)}, "no column 'd'"),
    ({"groups": ("d",)}, "no column 'd'"),
    ({"keep": ["d"]}, "no column 'd'"),
    ({"keep": ["c"], "drop": ["c"]}, "not both"),
    ({"drop": ["y"]}, "'y' is not among them"),
    ({"separator": ";"}, "for separated text"),
)
def test_columns_that_are_not_there_are_refused(options: dict[str, Any], words: str) -> None:
    pq.write_table(pa.table({"y": LABELS, "c": ["p"] * ROWS}), "in.parquet")
    assert_error(words, release, "in.parquet", "out.parquet", **options)
    assert not list(Path().glob("*out*"))


def test_a_folder_named_by_the_label_discloses_it() -> None:
    Path("in/y=0").mkdir(parents=True)
    pq.write_table(pa.table({"c": [0]}), "in/y=0/a.parquet")
    assert_error("folders named by 'y', whose names disclose it", release, "in", "out")
    assert_error("stays there", release, "in", "out", column="c", drop=["y"], labels=[0])


def test_the_owner_counts_what_is_wrong() -> None:
    pq.write_table(pa.table({"y": [0.0, math.nan, None, math.inf, 7.0, 1.0]}), "in.parquet")
    found = diagnose_table("in.parquet", Question(column="y", labels=range(3), epsilon=1.0))
    assert found == {"rows": 6, "missing": 2, "not_numbers": 1, "undeclared": 1}


# Ids
def test_noise_is_that_of_the_record_in_any_order_and_any_format() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(ROWS)], "y": LABELS})
    noisy = {}
    for name, order in (
        ("a.csv", range(ROWS)),
        ("b.parquet", rng.permutation(ROWS)),
        ("c.csv.gz", rng.permutation(ROWS)),
    ):
        rows = frame.iloc[list(order)]
        rows.to_parquet(f"in.{name}", index=False) if "parquet" in name else rows.to_csv(f"in.{name}", index=False)
        release(
            f"in.{name}",
            f"out.{name}",
            epsilon=1.0,
            randomizer="rr",
            labels=range(3),
            ids=("id",),
            key=bytes(range(32)),
        )
        made = pd.read_parquet(f"out.{name}") if "parquet" in name else pd.read_csv(f"out.{name}")
        noisy[name] = dict(zip(made["id"], made["y"], strict=True))
    assert noisy["a.csv"] == noisy["b.parquet"] == noisy["c.csv.gz"]
    assert len(set(noisy["a.csv"].values())) == 3


@pytest.mark.parametrize("buffered", [1 << 18, 64])
@pytest.mark.parametrize("wide", [False, True])
def test_ids_are_compared_exactly(buffered: int, wide: bool) -> None:
    rng = np.random.default_rng(1)
    texts = pa.array([f"p{i}" for i in range(2000)])
    ids = column_ids([texts], ["id"], key=b"k") if wide else integer_ids(rng.permutation(2000).astype(np.uint64))
    others = integer_ids(np.arange(5000, 5100, dtype=np.uint64))
    for extra, same in ((None, False), (ids[1234:1235], True), (others, False)):
        with UniqueIds(buffered=buffered) as unique:
            for start in range(0, 2000, 70):
                unique.add(ids[start : start + 70])
            if extra is not None:
                unique.add(extra)
            if same:
                assert_error("the same id", unique.check)
            else:
                unique.check()


@pytest.mark.parametrize("end", [100, 1 << 63, 1 << 64])
def test_runs_of_ids_may_end_at_any_integer(end: int) -> None:
    # The greatest integer of 64 bits is the id -1.
    ids = integer_ids(np.arange(100, dtype=np.uint64) + np.uint64(end - 100))
    for extra, same in ((None, False), (ids[:1], True), (ids[-1:], True), (ids[70:], True)):
        with UniqueIds() as unique:
            unique.add(ids)
            if extra is not None:
                unique.add(extra)
            if same:
                assert_error("the same id", unique.check)
            else:
                unique.check()


def test_ids_of_text_are_their_macs_in_every_layout() -> None:
    key = bytes(range(32))
    texts = [
        *[b"", b"a", b"a\0", b"\0", b"-", b"007", b"x" * 15, b"x" * 16, b"x" * 17, b"x" * 1024, b"y" * 1025],
        b"z" * 5000,
    ]
    cipher = Cipher(algorithms.AES(hmac.digest(key, b"texts", "sha256")), modes.CBC(bytes(16)))
    expected = []
    for text in texts:
        # The length, then the text: the last block of the chain is the MAC.
        mac = cipher.encryptor().update(len(text).to_bytes(16, "little") + text + bytes(-len(text) % 16))[-16:]
        if len(text) > 1024:
            mac = hashlib.blake2b(text, digest_size=16, key=key).digest()
        expected.append([int.from_bytes(mac[:8], "little"), int.from_bytes(mac[8:], "little") | 1 << 63])
    mixed, written = [*texts[:3], b"7", *texts[3:], b"-12"], [*expected[:3], [7, 0], *expected[3:], [2**64 - 12, 0]]
    for kind in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        column = pa.array(mixed, pa.binary()).cast(kind)
        assert column_ids([column], ["id"], key=key).tolist() == written
        assert column_ids([column.slice(2, 5)], ["id"], key=key).tolist() == written[2:7]
        assert [column_ids([column.slice(i, 1)], ["id"], key=key).tolist() for i in range(14)] == [
            [id_] for id_ in written
        ]
        assert column_ids([column.slice(0, 0)], ["id"], key=key).shape == (0, 2)
    fixed = pa.array([b"abcd", b"efgh", b"ijkl"], pa.binary(4))
    hashed = column_ids([fixed.cast(pa.binary())], ["id"], key=key).tolist()
    assert column_ids([fixed.slice(1)], ["id"], key=key).tolist() == hashed[1:]


@by_case(
    "columns, words",
    ([pa.array([1.5])], "of type double"),
    ([pa.array([1, None])], "is missing"),
    ([pa.array(["a"]), pa.array([None], pa.string())], "is missing"),
    ([pa.array([[1]])], "of type list"),
)
def test_ids_that_identify_nobody_are_refused(columns: Any, words: str) -> None:
    assert_error(words, column_ids, columns, ["id", "b"][: len(columns)], key=b"k")


# Groups

STATES = {"CA": ([0.5, 0.48, 0.01, 0.01], 9000), "NY": ([0.01, 0.01, 0.48, 0.5], 8000), "VT": ([0.25] * 4, 30)}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    rows = [(state, y) for state, (chances, n) in STATES.items() for y in rng.choice(4, n, p=chances)]
    frame = pd.DataFrame(rows, columns=["state", "y"])
    return frame.assign(c=frame["y"].map(dict(enumerate("abcd"))))


@pytest.mark.parametrize("classes", [False, True])
def test_groups_have_their_own_mechanisms_and_estimates_are_right(classes: bool) -> None:
    frame = people()
    frame.to_parquet("in.parquet")
    declared = {"column": "c", "labels": list("abcd")} if classes else {"labels": range(4), "loss": "squared"}
    record = release("in.parquet", "out.parquet", epsilon=2.0, groups=("state",), **declared)
    assert (record.epsilon, list(record.mechanisms)) == (2.0, ['["CA"]', '["NY"]', '["VT"]'])
    assert record.relative_loss is not None
    assert record.relative_loss < 0.99
    noisy = pd.read_parquet("out.parquet")
    loaded = load_release("out.parquet.release.json")
    found = estimate.histogram(noisy["c" if classes else "y"], loaded, groups=noisy)
    true = np.bincount(frame["y"], minlength=4) / len(frame)
    assert (np.abs(found.shares - true) <= 6 * found.noise_errors).all()
    # By the definition, from the true labels.
    total = np.zeros(4)
    for group, mechanism in loaded.mechanisms.items():
        assert optrand.certify(mechanism).epsilon <= loaded.parts.labels
        indicators = estimate.Debiasing.of(mechanism).values(np.eye(4))
        table = mechanism.randomizer.matrix
        variances = table @ indicators**2 - (table @ indicators) ** 2
        total += variances[frame["y"][frame["state"] == json.loads(group)[0]]].sum(axis=0)
    assert np.array(loaded.estimates.counts) == pytest.approx(np.sqrt(total), rel=0.15)
    for groups, words in (
        (None, "pass their columns"),
        (frame["state"][:-1], "another number of rows"),
        (frame["state"].replace("VT", "ME"), "does not have"),
        ({"st": frame["state"]}, "missing for state"),
    ):
        assert_error(words, estimate.histogram, noisy["c" if classes else "y"], loaded, groups=groups)
    with pytest.raises(InvalidInput, match="by groups of state"):
        _ = loaded.mechanism


def test_a_table_without_groups_is_a_table_of_one_group() -> None:
    frame = people().assign(one="x")
    frame.to_parquet("in.parquet")
    key = bytes(range(32))
    alone = release("in.parquet", "a.parquet", labels=range(4), epsilon=2.0, loss="squared", key=key)
    grouped = release("in.parquet", "b.parquet", labels=range(4), epsilon=2.0, groups=("one",), loss="squared", key=key)
    assert (alone.noisy_counts, alone.mechanism) == (grouped.noisy_counts, grouped.mechanism)
    assert pq.read_table("a.parquet").equals(pq.read_table("b.parquet"))


def test_columns_in_the_names_of_folders_make_groups() -> None:
    for state, part in people().groupby("state"):
        Path("in", f"state={state}").mkdir(parents=True)
        pq.write_table(pa.table({"y": part["y"].to_numpy()}), f"in/state={state}/0.parquet")
    record = release("in", "out", labels=range(4), groups=("state",))
    assert list(record.mechanisms) == ['["CA"]', '["NY"]', '["VT"]']
    assert pq.read_schema("out/state=NY/0.parquet").names == ["y"]


# Randomizers

TASKS: dict[str, tuple[dict[str, Any], float]] = {
    **{
        name: ({"randomizer": name, "labels": range(4)}, 2.0 if name in ("gap-response", "rr-top-k") else 1e-6)
        for name in RANDOMIZERS
    },
    "rr-top-k:2": ({"randomizer": "rr-top-k:2", "labels": list("abcd")}, 1.0),
    "rr": ({"randomizer": "rr", "labels": list("abcd")}, 1e-6),
    "debiased-rr": ({"randomizer": "debiased-rr", "labels": range(4)}, math.inf),
    "minimax": ({"randomizer": "minimax", "labels": range(4)}, 1e-6),
    "values": ({"outputs": [-6, -1, 1, 2, 9], "labels": range(4), "bias_penalty": math.inf}, 1e-6),
    "poisson": (
        {"loss": "poisson", "outputs": optrand.Interval(0.5, 4), "labels": range(4), "bias_penalty": None},
        1e-6,
    ),
    "absolute": ({"loss": "absolute", "labels": range(4), "bias_penalty": None}, 1e-6),
    "grid": ({"outputs": 9, "labels": range(4), "bias_penalty": math.inf}, 1e-6),
    "table": (
        {
            "loss": optrand.losses.Tabulated(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))),
            "labels": list("abcd"),
        },
        1e-6,
    ),
    "public": ({"prior": [0.25] * 4, "labels": range(4)}, 1e-6),
}


@pytest.mark.filterwarnings("ignore:no histogram")
@pytest.mark.parametrize("name", TASKS)
def test_every_randomizer_and_problem_is_released_with_its_proof(name: str) -> None:
    options, gap = TASKS[name]
    people().to_parquet("in.parquet")
    record = release(
        "in.parquet", "out.parquet", epsilon=2.0, column="c" if options["labels"] == list("abcd") else "y", **options
    )
    assert record.gap <= gap
    assert record.realised_epsilon <= record.epsilon == 2.0
    assert optrand.certify(record.mechanism).epsilon <= record.parts.labels
    bought = name not in ("rr", "debiased-rr", "minimax", "public")
    assert (record.noisy_counts is not None) == (record.parts.prior > 0) == bought
    loaded = load_release("out.parquet.release.json")
    assert loaded == record
    loaded.verify_table("out.parquet")


def test_a_saved_mechanism_is_drawn_with() -> None:
    people().to_parquet("in.parquet")
    mechanism = optrand.solve(optrand.unbiased_regression(range(4), [0.25] * 4, 1.5))
    record = release("in.parquet", "out.parquet", labels=range(4), epsilon=2.0, randomizer=mechanism)
    assert (record.mechanism, record.epsilon) == (mechanism, 1.5)
    for options, words in (({"labels": range(3)}, "other labels"), ({"labels": range(4), "epsilon": 1.0}, "raise it")):
        assert_error(words, release, "in.parquet", "again.parquet", randomizer=mechanism, **{"epsilon": 2.0, **options})


# Records
@pytest.fixture
def saved() -> Path:
    people().to_parquet("in.parquet")
    release("in.parquet", "out.parquet", labels=range(4), epsilon=2.0, groups=("state",), loss="squared")
    return Path("out.parquet.release.json")


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "total": lambda d: d.update(epsilon=1.0),
    "parts": lambda d: d["parts"].update(labels=3.0),
    "an integer for a float": lambda d: d.update(bias=0),
    "rows as text": lambda d: d.update(rows="30"),
    "more rows": lambda d: d.update(rows=d["rows"] + 1),
    "release": lambda d: d.update(release="7"),
    "another label": lambda d: d["labels"].append(9.0),
    "fewer counts": lambda d: d["noisy_counts"].pop(),
    "a name that leads away": lambda d: d["table"].update(name="../out.parquet"),
    "a digest that is none": lambda d: d["table"].update(sha256="0"),
    "no mechanisms": lambda d: d.update(mechanisms=[], mechanism_of_group=[]),
    "a group of another width": lambda d: d["mechanism_of_group"].append(['["CA", "x"]', 0]),
    "a group that is no list": lambda d: d["mechanism_of_group"].append(["CA", 0]),
    "an unknown field": lambda d: d["estimates"].update(more=1.0),
    "a lacking field": lambda d: d["estimates"].pop("mean"),
    "a mechanism of another epsilon": lambda d: d["mechanisms"][0]["problem"].update(epsilon=9.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_record_that_was_changed_is_refused_even_with_a_right_digest(saved: Path, name: str) -> None:
    document = json.loads(saved.read_text())
    CHANGES[name](document)
    document.pop("digest")
    saved.write_bytes(_strict_json.canonical({**document, "digest": _strict_json.digest(document)}))
    assert_error(None, load_release, saved, error=InvalidFile)


def test_a_table_of_another_byte_is_not_that_of_the_release(saved: Path) -> None:
    record = load_release(saved)
    data = bytearray(Path("out.parquet").read_bytes())
    data[100] ^= 1
    Path("out.parquet").write_bytes(data)
    assert_error("is not the table of this release", record.verify_table, "out.parquet", error=InvalidFile)
    assert_error(r"not there, but out\.parquet is", record.verify_table, "outt.parquet")
    assert_error(r"is not there.*expected the record", load_release, "none.release.json")


def test_nothing_in_a_record_is_computed_from_the_labels_but_what_is_paid_for() -> None:
    """Two tables that differ in every label, and by chance have the same noisy histogram, have the same record."""
    question = Question(column="y", labels=range(3), epsilon=1.0, prior=[0.2, 0.3, 0.5])
    records = []
    for name, cells in (("a", LABELS), ("b", LABELS[::-1])):
        pq.write_table(pa.table({"y": cells}), f"{name}.parquet")
        with patch("os.urandom", lambda size: bytes(size)):
            record = randomize_table(f"{name}.parquet", f"{name}.out.parquet", question, ledger=None)
        records.append(json.loads(Path(f"{name}.out.parquet.release.json").read_text()))
        assert record.noisy_counts is None
    for document in records:
        del document["table"], document["digest"]
    assert records[0] == records[1]
