"""Many claims at once, each on a process of its own, and what was found before taken from a file."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from optrand.errors import InvalidInput, MissingExtra
from optrand.theory.catalogue import claims
from optrand.theory.checking import BlindCheck, check
from optrand.theory.claim import Budget, Claim
from optrand.theory.finding import Finding
from optrand.theory.kept import keep, kept_findings

__all__ = ["NotFound", "Outcome", "run"]


@dataclass(frozen=True)
class NotFound:
    """Why there is no finding of a claim.

    Attributes
    ----------
    claim : str
        Its name.
    reason : str
        What to install, that its check sees nothing, or where it broke off.
    blind : bool
        Whether the check did not refute the false variant of the claim.
    failed : bool
        Whether the check broke off: an error that it does not know, or a process that was ended.
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
    """Try claims, several at a time.

    Parameters
    ----------
    chosen : sequence of Claim
    budget : Budget
    jobs : int, optional
        How many at a time; by default as many as there are processors. One, or a single claim, needs no other process.
    kept : path, optional
        Every finding is added to this file as soon as it is made, and those that it has are not made again.

    Yields
    ------
    Finding or NotFound
        One a claim, in their order.

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
    # A fresh interpreter each: one that was copied from a program with threads may hang.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=fresh, initializer=_end_in_time) as pool:
        futures: list[Future[Outcome]] = [pool.submit(_named, name, budget) for name in names]
        try:
            for name, future in zip(names, futures, strict=True):
                yield _result(name, future)
        finally:
            # Of a run that ends early nothing more is begun.
            pool.shutdown(cancel_futures=True)


def _result(name: str, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        # What other processes had found by then is still handed on.
        reason = "a process was ended from outside, or for want of memory: try again, with less beside it"
        return NotFound(name, reason, failed=True)


def _end_in_time() -> None:
    """An interrupt ends a worker at once, and so does the end of the process that it works for, which tells the user.

    A worker whose employer was killed would else wait for its next claim for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_employer, daemon=True).start()


def _end_with_employer() -> None:
    employer = multiprocessing.parent_process()
    if employer is not None:
        employer.join()
        os._exit(1)


def _named(name: str, budget: Budget) -> Outcome:
    return _outcome(next(claim for claim in claims() if claim.name == name), budget)


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
