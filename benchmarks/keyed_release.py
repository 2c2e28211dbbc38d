"""One keyed release of a table in a process of its own, which says how far it has come and may be killed anywhere.

``python -m benchmarks.keyed_release TABLE OUTPUT LEDGER [--stop-at STAGE FILE]``: a table with the columns `id` and
`weeks`, read twice, charged to a ledger, and published with its mechanism. The same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from optrand.accounting import Entry, Ledger, Request, Spent
from optrand.accounting.charge import State
from optrand.base.compiling import leave_uncompiled
from optrand.errors import AlreadySpent, InputChanged, OptrandError
from optrand.mechanism.mechanism import Mechanism
from optrand.release.publication import Publication, recover
from optrand.release.scan import Pass
from optrand.release.table import open_table
from optrand.release.table_options import TableOptions, open_sink
from optrand.sampling.keyed import KeyedEntropy, RecordStreams

__all__ = ["ALREADY_SPENT", "CHANGED", "DONE", "FAILED", "LABELS", "REFUSED", "STAGES", "released"]

LABELS = 53
EPSILON, OF_THE_PRIOR = Fraction(1), Fraction(1, 20)
DATASET, COLUMN, IDS = "census", "weeks", "id"
KEY = bytes(range(32))
"""Injected in place of one of the operating system, so that two runs may be compared."""

DONE, FAILED, REFUSED, CHANGED, ALREADY_SPENT = 0, 1, 2, 3, 5
STAGES = ("started", "charged", "prior", "solved", "written", "publishing", "published")

Tell = Callable[[str], object]


def released(table: Path, output: Path, ledger: Ledger, tell: Tell) -> None:
    """Release a table, or go on with what an earlier run has left."""
    if _finished(output, ledger):
        tell("published")
        return
    rows = _rows(table, ledger)
    with Publication(output, release="keyed") as publication:
        scan = rows.scan(temporary=publication.folder)
        parts = {"prior": Spent(OF_THE_PRIOR), "labels": Spent(EPSILON - OF_THE_PRIOR)}
        configuration = hashlib.sha256(f"{COLUMN} {LABELS} {EPSILON}".encode()).hexdigest()
        request = Request(DATASET, COLUMN, parts, configuration, scan.digest, str(output))
        with ledger.begin(request, key=KEY) as entry:
            tell("charged")
            mechanism = _mechanism(entry, scan.counts.sum(axis=0), tell)
            beside = output.with_name(f"{output.name}.mechanism.json")
            mechanism.save(publication.stage(beside))
            digest = publication.digest(beside)
            entry.keep_mechanism(digest)
            tell("solved")
            streams = RecordStreams(entry.subkey("labels", mechanism=digest))
            staged = publication.stage(output)
            sink = open_sink(rows.source, rows.randomizer, output, staged, layout=None)
            rows.replace(scan, [lambda values, ids: mechanism.sample_records(values, ids, streams)], sink)
            tell("written")
            entry.publishing(str(publication.folder))
            tell("publishing")
            publication.publish()
            tell("published")
            entry.complete()


def _finished(output: Path, ledger: Ledger) -> bool:
    """Whether all is published, by an earlier run or with what it left; the ledger is told."""
    waiting = [charge for charge in ledger.entries() if charge.state == State.PUBLISHING]
    # Before the ledger says so, nothing can have been published.
    if waiting and (recover(output).state == "finished" or output.exists()):
        with ledger.resume(waiting[0].release) as entry:
            entry.complete()
        return True
    return False


def _rows(table: Path, ledger: Ledger) -> Pass:
    source = open_table(table)
    options = TableOptions(id_column=IDS)
    randomizer = options.randomizer(source, COLUMN, np.arange(float(LABELS)), clip=False)
    secret = ledger.digest_key
    return Pass(source=source, randomizer=randomizer, digest_key=secret, id_key=secret)


def _mechanism(entry: Entry, counts: ArrayLike, tell: Tell) -> Mechanism:
    """The optimal mechanism for the noisy histogram, which is drawn unless the ledger has it."""
    from optrand import certify, solve, tabulate, unbiased_regression
    from optrand.sampling.priors import private_histogram

    if entry.prior is None:
        source = KeyedEntropy(entry.subkey("prior"))
        entry.keep_prior(private_histogram(counts, float(OF_THE_PRIOR), source=source))
    tell("prior")
    noisy = np.maximum(np.array(entry.prior, dtype=np.float64), 1.0)
    labels = np.arange(float(LABELS))
    solution = solve(unbiased_regression(labels, noisy / noisy.sum(), float(EPSILON - OF_THE_PRIOR)))
    mechanism = tabulate(solution)
    certify(mechanism).require(gap=1e-6)
    return mechanism


def main(arguments: Sequence[str]) -> int:
    """Release one table; the exit code tells done, refused, changed or spent."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("table", "output", "ledger"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--stop-at", nargs=2, metavar=("STAGE", "FILE"), help="wait at a stage until a file is there")
    given = parser.parse_args(arguments)
    stage, go = given.stop_at or (None, None)

    def tell(reached: str) -> None:
        print(reached, flush=True)
        while reached == stage and not Path(go).exists():
            time.sleep(0.005)

    leave_uncompiled(LABELS)
    tell("started")
    try:
        with Ledger.open(given.ledger) as ledger:
            released(given.table, given.output, ledger, tell)
    except AlreadySpent as error:
        code, problem = ALREADY_SPENT, error
    except InputChanged as error:
        code, problem = CHANGED, error
    except (OptrandError, OSError) as error:
        code, problem = REFUSED, error
    else:
        return DONE
    print(problem, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
