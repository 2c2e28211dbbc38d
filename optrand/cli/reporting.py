"""Output of a command: facts on the standard output, progress and one line of error on the other, an exit code."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from optrand.base.numerals import shown_above
from optrand.errors import AlreadySpent, InvalidFile, InvalidInput, NotCertified, OptrandError, OverBudget, SpentNote

if TYPE_CHECKING:
    from optrand.release.declared import PublicPrior
    from optrand.release.diagnosis import Diagnosis
    from optrand.release.record import ReleaseRecord

__all__ = [
    "EXIT_CODES",
    "FAILED",
    "SPENT",
    "UNVERIFIED",
    "WRONG_INPUT",
    "progress",
    "reported",
    "show",
    "tell_diagnosis",
    "tell_prior",
    "tell_total",
    "tell_warning",
    "told_gap",
]

FAILED, WRONG_INPUT, UNVERIFIED, SPENT = 1, 2, 3, 5

EXIT_CODES = """\b
Exit codes:
  0  done
  1  an error of the run, such as a full disk
  2  wrong usage or input; nothing was written
  3  verification failed: not private, not unbiased, or no proof good enough
  5  the ledger refuses: already released, or over the budget; nothing was drawn"""

CODES = {(InvalidFile, NotCertified): UNVERIFIED, (InvalidInput,): WRONG_INPUT, (AlreadySpent, OverBudget): SPENT}
"""Exit codes of our own errors; of all others it is :data:`FAILED`."""

Command = TypeVar("Command", bound=Callable[..., None])


def reported(command: Command) -> Command:
    """Turn what a command raises into one line on the standard error and an exit code."""

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:
            # The reader, such as `head`, has closed the pipe: the rest of the buffer is dropped.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except Exception as error:
            message, code = _judged(error)
            typer.echo(f"error: {' '.join('; '.join((message, *_spent(error))).split())}", err=True)
            raise typer.Exit(code) from None
        except BaseException as error:
            for note in _spent(error):
                typer.echo(f"note: {note}", err=True)
            raise

    return wrapper  # type: ignore[return-value]


def _judged(error: Exception) -> tuple[str, int]:
    """Message of an error, and the exit code."""
    if isinstance(error, OptrandError):
        return str(error), next((code for kinds, code in CODES.items() if isinstance(error, kinds)), FAILED)
    if isinstance(error, MemoryError):
        return "not enough memory", FAILED
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror or type(error).__name__}{where}", FAILED
    # The message of an unforeseen error may hold a label; where it happened does not.
    return f"internal error: {type(error).__name__} in {_origin(error)}; please report it", FAILED


def _spent(error: BaseException) -> list[str]:
    """Notes of our own on an error; those of others may hold a label."""
    return [note for note in getattr(error, "__notes__", ()) if isinstance(note, SpentNote)]


def _origin(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Progress and elapsed time on the standard error, if a person is looking; gone when it is over."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage: bar.update(task, description=stage)


def show(facts: Mapping[str, object], *, err: bool = False) -> None:
    """Print facts, one a line, under one another; on the standard error if asked."""
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        typer.echo(f"{name:<{width}}  {fact}", err=err)


def tell_prior(path: Path, prior: PublicPrior) -> None:
    """Say that a prior is taken as public, and which labels it leaves out."""
    typer.echo(f"note: {path} is taken as public; if it was computed from private labels, use `optrand randomize`")
    if prior.absent:
        typer.echo(f"note: {prior.absent} label(s) are not in {path}: their prior is 0")


def tell_total(record: ReleaseRecord | None) -> None:
    """Say what the release of a record has spent in all."""
    if record is not None:
        typer.echo(f"total epsilon  {record.epsilon!r}: prior {record.parts.prior!r}, labels {record.parts.labels!r}")


def tell_diagnosis(found: Diagnosis, declared: int) -> None:
    """Tell the owner of the labels, on the standard error, what a release would refuse; end with 2 if anything."""
    from optrand.release.diagnosis import WARNING

    typer.echo(f"note: {WARNING}", err=True)
    facts = {
        "rows": found.rows,
        "missing": found.missing,
        "no numbers": found.not_numbers,
        "not declared": f"{found.undeclared} (not among the {declared} labels)",
    }
    show(facts, err=True)
    typer.echo("nothing was released and nothing spent", err=True)
    if not found.fine:
        raise typer.Exit(WRONG_INPUT)


def tell_warning(message: str) -> None:
    """Tell the owner of the labels, on the standard error, what is suspicious about a table."""
    typer.echo(f"warning: {message}", err=True)


def told_gap(gap: float) -> str:
    """A verified gap in words, rounded up."""
    return shown_above(gap, 3) if math.isfinite(gap) else "unknown: no bound was proven"
