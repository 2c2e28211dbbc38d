"""Many claims at once, on several processes, and what was found before taken from a file."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool

from optrand.errors import InvalidInput, MissingExtra
from optrand.theory.catalogue import claims
from optrand.theory.checking import BlindCheck, check
from optrand.theory.claim import Budget, Claim
from optrand.theory.finding import Finding
from optrand.theory.kept import keep, kept_findings

__all__ = ["NotFound", "Outcome", "run"]


@dataclass(frozen=True)
class NotFound:
    """Reason why there is no finding of a claim.

    `blind` tells that the check did not refute the false variant, `failed` that it broke off: by an error that it does
    not know, or with a process that was ended.
    """

    claim: str
    reason: str
    blind: bool = False
    failed: bool = False


Outcome = Finding | NotFound


def run(
    chosen: Sequence[Claim],
    budget: Budget = Budget.QUICK,
    *,
    jobs: int | None = None,
    kept: str | os.PathLike[str] | None = None,
) -> Iterator[Outcome]:
    """Try claims, several at a time, and yield one outcome a claim, in their order.

    Parameters
    ----------
    chosen : sequence of Claim
    budget : Budget
    jobs : int, optional
        The number of processes; by default that of processors. One, or a single claim, needs no other process.
    kept : path, optional
        A file to which findings are added as they are made, and whose findings are not made again.

    Raises
    ------
    InvalidInput
        A number of jobs without meaning, or a file of something else.

    Examples
    --------
    >>> from optrand.theory import find
    >>> [finding.verdict.value for finding in run(find(number="Proposition 7"), jobs=1)]
    ['holds', 'holds as corrected']
    """
    if jobs is not None and jobs < 1:
        raise InvalidInput(f"jobs is {jobs}, expected at least 1")
    before = {} if kept is None else kept_findings(kept, budget)
    left = [claim for claim in chosen if claim.name not in before]
    workers = min(jobs or os.cpu_count() or 1, len(left))
    if workers <= 1:
        made: Iterator[Outcome] = (_outcome(claim, budget) for claim in left)
    else:
        made = _on_processes([claim.name for claim in left], budget, workers)
    for claim in chosen:
        if claim.name in before:
            yield before[claim.name]
            continue
        outcome = next(made)
        if kept is not None and isinstance(outcome, Finding):
            keep(kept, outcome)
        yield outcome


def _on_processes(names: Sequence[str], budget: Budget, workers: int) -> Iterator[Outcome]:
    found = Parallel(workers, return_as="generator", batch_size=1)(delayed(_named)(name, budget) for name in names)
    for i in range(len(names)):
        try:
            yield next(found)
        except BrokenProcessPool:
            reason = "a process was ended from outside, or for want of memory: try again, with less beside it"
            yield from (NotFound(each, reason, failed=True) for each in names[i:])
            return


def _named(name: str, budget: Budget) -> Outcome:
    _end_with(os.getppid())
    return _outcome(next(claim for claim in claims() if claim.name == name), budget)


@cache
def _end_with(employer: int) -> None:
    """End this process with the one that it works for, which would else leave it waiting for its next claim."""

    def watch() -> None:
        while os.getppid() == employer:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcome(claim: Claim, budget: Budget) -> Outcome:
    try:
        return check(claim, budget)
    except (BlindCheck, MissingExtra) as error:
        return NotFound(claim.name, str(error), blind=isinstance(error, BlindCheck))
    except Exception as error:
        # One check that breaks off takes no other with it.
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"
        return NotFound(claim.name, f"its check broke off, {' '.join(told.split())}", failed=True)
