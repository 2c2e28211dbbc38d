"""Many claims at once, on several processes, and what was found before taken from a folder."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from joblib import Memory, Parallel, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool

import optrand
from optrand.errors import InvalidInput, MissingExtra
from optrand.theory.catalogue import claims
from optrand.theory.checking import BlindCheck, Finding, check
from optrand.theory.claim import Budget, Claim

__all__ = ["NotFound", "Outcome", "code_digest", "run"]


@dataclass(frozen=True)
class NotFound:
    """Reason why there is no finding of a claim: its check is `blind`, it `failed`, or an extra is missing."""

    claim: str
    reason: str
    blind: bool = False
    failed: bool = False


Outcome = Finding | NotFound


def run(
    chosen: Sequence[Claim], budget: Budget = Budget.QUICK, *, jobs: int | None = None, kept: str | Path | None = None
) -> Iterator[Outcome]:
    """Try claims, by default on as many processes as processors, and yield one outcome a claim, in their order.

    In a folder `kept` findings are kept as they are made, and those of the same code not made again. They are pickles:
    name a folder of your own.

    Raises
    ------
    InvalidInput
        A number of jobs without meaning, or a file that is no folder.
    """
    if jobs is not None and jobs < 1:
        raise InvalidInput(f"jobs is {jobs}, expected at least 1")
    if kept is not None and Path(kept).exists() and not Path(kept).is_dir():
        raise InvalidInput(f"{kept} is not a folder of findings: name another one, or delete it")
    folder = None if kept is None else Path(kept) / "findings"
    workers = min(jobs or os.cpu_count() or 1, len(chosen))
    if workers <= 1:
        yield from (_outcome(claim, budget, folder) for claim in chosen)
        return
    calls = (delayed(_named)(claim.name, budget, folder) for claim in chosen)
    made = Parallel(workers, return_as="generator", batch_size=1)(calls)
    for i in range(len(chosen)):
        try:
            yield next(made)
        except BrokenProcessPool:
            reason = "a process was ended from outside, or for want of memory: try again, with less beside it"
            yield from (NotFound(each.name, reason, failed=True) for each in chosen[i:])
            return


@cache
def code_digest() -> str:
    """Digest of every source file of the package: findings of other code are made again."""
    root = Path(optrand.__file__).parent
    files = sorted((path.relative_to(root).as_posix(), path.read_bytes()) for path in root.rglob("*.py"))
    return hashlib.sha256(repr(files).encode()).hexdigest()


def _named(name: str, budget: Budget, folder: Path | None) -> Outcome:
    _end_with(os.getppid())
    return _outcome(next(claim for claim in claims() if claim.name == name), budget, folder)


@cache
def _end_with(employer: int) -> None:
    """End this process with the one that it works for, which would else leave it waiting for its next claim."""

    def watch() -> None:
        while os.getppid() == employer:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcome(claim: Claim, budget: Budget, folder: Path | None) -> Outcome:
    try:
        found = Memory(folder, verbose=0).cache(_found, ignore=["claim"])
        finding: Finding = found(claim.name, budget.value, code_digest(), claim)
        return finding
    except (BlindCheck, MissingExtra) as error:
        return NotFound(claim.name, str(error), blind=isinstance(error, BlindCheck))
    except Exception as error:
        # One check that breaks off takes no other with it.
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {error}"
        return NotFound(claim.name, f"its check broke off, {' '.join(told.split())}", failed=True)


def _found(name: str, budget: str, digest: str, claim: Claim) -> Finding:  # noqa: ARG001
    """Finding of a claim: name, budget and digest tell :class:`joblib.Memory` whether it is there already."""
    return check(claim, Budget(budget))
