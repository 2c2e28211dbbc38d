"""One keyed release of a table in a process of its own, which says how far it has come and may be killed anywhere.

``python -m benchmarks.keyed_release TABLE OUTPUT LEDGER [--stop-at STAGE FILE]``: column `weeks` of a table with ids in
the column `id`. The same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from optrand.base.lean import lean_process
from optrand.errors import AlreadySpent, InputChanged, OptrandError
from optrand.release.job import LabelJob
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions

__all__ = ["ALREADY_SPENT", "CHANGED", "CHARGED", "DATASET", "DONE", "DRAWING", "REFUSED", "STARTED", "WRITTEN"]

LABELS = 53
DATASET = "census"
KEY = bytes(range(32))
"""Injected in place of one of the operating system, so that two runs may be compared."""

DONE, REFUSED, CHANGED, ALREADY_SPENT = 0, 2, 3, 5
STARTED, CHARGED, DRAWING, WRITTEN = "started", "estimating the prior", "drawing labels", "writing"
"""Stages: imported; charged, nothing drawn; the first pass has ended; all is written, and nothing published."""


def main(arguments: Sequence[str]) -> int:
    """Release one table; the exit code tells done, refused, changed or spent."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("table", "output", "ledger"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--stop-at", nargs=2, metavar=("STAGE", "FILE"), help="wait at a stage until a file is there")
    given = parser.parse_args(arguments)
    stage, go = given.stop_at or (None, "")

    def tell(reached: str) -> None:
        print(reached, flush=True)
        while reached == stage and not Path(go).exists():
            time.sleep(0.005)

    lean_process(LABELS)
    tell(STARTED)
    job = TableJob(
        job=LabelJob(labels=np.arange(float(LABELS)), epsilon=1.0),
        column="weeks",
        options=TableOptions(id_column="id"),
    )
    try:
        job.run(given.table, given.output, dataset=DATASET, ledger=given.ledger, key=KEY, announce=tell, warn=print)
    except (OptrandError, OSError) as error:
        print(error, file=sys.stderr)
        return (
            ALREADY_SPENT
            if isinstance(error, AlreadySpent)
            else CHANGED
            if isinstance(error, InputChanged)
            else REFUSED
        )
    print("published")
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
