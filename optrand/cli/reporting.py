"""What a command tells: facts on the standard output, progress and one line of error on the other, an exit code."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from optrand.errors import InvalidFile, InvalidInput, NotCertified, OptrandError

if TYPE_CHECKING:
    from optrand.release.declared import PublicPrior

__all__ = [
    "EXIT_CODES",
    "FAILED",
    "UNVERIFIED",
    "WRONG_INPUT",
    "progress",
    "reported",
    "show",
    "tell_prior",
    "told_gap",
]

FAILED, WRONG_INPUT, UNVERIFIED = 1, 2, 3

EXIT_CODES = """\b
Exit codes:
  0  done
  1  an error of the run, such as a full disk
  2  wrong usage or input; nothing was written
  3  verification failed: not private, not unbiased, or no proof good enough"""

Command = TypeVar("Command", bound=Callable[..., None])


def reported(command: Command) -> Command:
    """Turn what a command raises into one line on the standard error and an exit code."""

    @functools.wraps(command)
    def wrapper(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
        except (InvalidFile, NotCertified) as error:
            _stop(str(error), UNVERIFIED)
        except InvalidInput as error:
            _stop(str(error), WRONG_INPUT)
        except OptrandError as error:
            _stop(str(error), FAILED)
        except MemoryError:
            _stop("not enough memory", FAILED)
        except BrokenPipeError:
            # Whoever reads the output has read enough, as `head` does. What is left in the buffer goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            _stop(f"{error.strerror or type(error).__name__}{where}", FAILED)
        except (typer.Exit, typer.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            # The message of an error that nobody foresaw may hold a label; where it happened does not.
            _stop(f"internal error: {type(error).__name__} in {_origin(error)}; please report it", FAILED)

    return wrapper  # type: ignore[return-value]


def _stop(message: str, code: int) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _origin(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """What is being done and for how long, on the standard error, if a person is looking; gone when it is over."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda stage: bar.update(task, description=stage)


def show(facts: dict[str, object]) -> None:
    """Print facts, one a line, under one another."""
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        typer.echo(f"{name:<{width}}  {fact}")


def tell_prior(path: Path, prior: PublicPrior) -> None:
    """Say that a prior is taken as public, and which labels it leaves out."""
    typer.echo(f"note: {path} is taken as public; if it was computed from private labels, use `optrand randomize`")
    if prior.absent:
        typer.echo(f"note: {prior.absent} label(s) are not in {path}: their prior is 0")


def told_gap(gap: float) -> str:
    """A verified gap in words."""
    return f"{gap:.3g}" if math.isfinite(gap) else "unknown: no bound was proven"
