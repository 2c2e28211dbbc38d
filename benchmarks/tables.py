"""Tables of any size with the histogram of weeks worked, written batch by batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from optrand.data import weeks_worked_counts_path
from optrand.release.declared import parse_labels, read_prior

__all__ = ["write_table"]

BLOCK = 1 << 20
SPREAD = 6364136223846793005
"""Odd: its multiples modulo a power of two are distinct, and out of order."""


def write_table(path: Path, rows: int, *, ids: str = "integer") -> None:
    """Write columns `id`, `weeks` and `age` as CSV or Parquet, by the end of the name."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("id", pa.int64() if ids == "integer" else pa.string()), ("weeks", pa.int8()), ("age", pa.int8())]
    )
    prior = read_prior(weeks_worked_counts_path(), parse_labels("0:52")).probabilities
    rng = np.random.default_rng(rows)
    writer: Any = pq.ParquetWriter(path, schema) if path.suffix == ".parquet" else pyarrow.csv.CSVWriter(path, schema)
    with writer:
        for start in range(0, rows, BLOCK):
            places = np.arange(start, min(rows, start + BLOCK), dtype=np.uint64)
            spread = ((places * np.uint64(SPREAD)) & np.uint64((1 << 62) - 1)).astype(np.int64)
            names = pa.array(spread) if ids == "integer" else pa.array([f"u{each:x}" for each in spread.tolist()])
            weeks = rng.choice(prior.size, places.size, p=prior).astype(np.int8)
            ages = rng.integers(0, 90, places.size).astype(np.int8)
            writer.write(pa.record_batch([names, pa.array(weeks), pa.array(ages)], schema=schema))


def main(arguments: Sequence[str]) -> int:
    """Write one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("rows", type=int)
    parser.add_argument("ids", choices=("integer", "text"))
    given = parser.parse_args(arguments)
    write_table(given.path, given.rows, ids=given.ids)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
