"""The bundled table is as its README describes it."""

import csv
import gzip
import hashlib
from collections import Counter

import pytest

from optrand.data import WEEKS_LABEL, weeks_worked_counts_path, weeks_worked_path

DIGEST = "e9699826afb9a1e44a2ae14d19b70bbf8114dd10891b05bc77b6cf8076cf048c"


@pytest.fixture(scope="module")
def rows():
    with gzip.open(weeks_worked_path(), "rt", newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_table_has_its_shape_and_its_columns(rows):
    assert len(rows) == 20_000
    assert list(rows[0]) == ["age", "class_of_worker", "education", "marital_status", WEEKS_LABEL]
    assert all(None not in row and None not in row.values() for row in rows)


def test_the_label_is_a_week_count_with_spikes_at_both_ends(rows):
    weeks = Counter(int(row[WEEKS_LABEL]) for row in rows)
    assert sorted(weeks) == list(range(53))
    # In the whole file 48.1 % are at 0 and 35.2 % at 52. 20,000 rows keep that to within a percent point.
    assert weeks[0] / len(rows) == pytest.approx(0.481, abs=0.01)
    assert weeks[52] / len(rows) == pytest.approx(0.352, abs=0.01)


def test_the_content_is_the_one_that_the_readme_names():
    content = gzip.decompress(weeks_worked_path().read_bytes())
    assert hashlib.sha256(content).hexdigest() == DIGEST
    assert DIGEST in weeks_worked_path().with_name("README.md").read_text(encoding="utf-8")


def test_the_bundle_is_small():
    assert weeks_worked_path().stat().st_size < 1_000_000


def test_the_counts_are_of_the_whole_file_and_cover_the_sample(rows):
    with weeks_worked_counts_path().open(newline="", encoding="utf-8") as stream:
        counts = {int(row["label"]): int(row["count"]) for row in csv.DictReader(stream)}
    assert list(counts) == list(range(53))
    assert sum(counts.values()) == 199_523
    assert (counts[0], counts[52]) == (95_983, 70_314)
    sample = Counter(int(row[WEEKS_LABEL]) for row in rows)
    assert all(sample[label] <= counts[label] for label in counts)
