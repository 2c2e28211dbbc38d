"""Output of a command: facts on the standard output, progress and one line of error on the other, an exit code."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from optrand.base._numerals import format_above
from optrand.errors import (
    AlreadySpent,
    Interrupted,
    InvalidFile,
    InvalidInput,
    NotCertified,
    OptrandError,
    OverBudget,
    SpentNote,
    missing_extra,
)

FAILED, WRONG_INPUT, UNVERIFIED, RELEASED, SPENT = 1, 2, 3, 4, 5

EXIT_CODES = """\b
Exit codes:
  0  done
  1  an error of the run, such as a full disk
  2  wrong usage or input, and nothing was written
  3  verification failed: not private, not unbiased, or no proof good enough
  4  released completely, but then a signal came or the output could not be written
  5  refused by the ledger, without a draw: already released, or over the budget"""

IN_OPTIONS = (
    (r"\bagain=True", "--again"),
    (r"\b(?:force|overwrite)=True", "--force"),
    (r"\boptrand\.release\.diagnose_table\(\)", "--diagnose"),
    (r"\bseparator=\.\.\.", "--separator"),
    (r"\bnulls=\.\.\.", "--nulls"),
    (r"\blabels=range\(53\)", "--labels 0:52"),
    (r"\blabels=\['yes', 'no'\]", "--labels yes,no"),
    (r"\btask='(\w+)'", r"--task \1"),
    (r"\boutputs=\[\.\.\.\]", "--outputs"),
    (r"\buse average\(released, mechanism, labels\), which undoes the bias, or release", "release"),
    (r" ?\(optrand\.feasible_output_set makes such a grid\)", ""),
    (r"\(optrand\.rr, or for numbers optrand\.debiased_rr or", "(--randomizer rr, or for numbers debiased-rr or"),
)
"""Patterns of advice in messages of the package, and the options of the command line in their place."""

EXIT_CODE_OF: tuple[tuple[Any, int], ...] = (
    ((InvalidFile, NotCertified), UNVERIFIED),
    (InvalidInput, WRONG_INPUT),
    ((AlreadySpent, OverBudget), SPENT),
    (OptrandError, FAILED),
)
"""Errors of the package, and their exit codes."""

Command = TypeVar("Command", bound=Callable[..., None])

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on the standard output, in place of lines.")]

_answer: ContextVar[dict[str, Any] | None] = ContextVar("answer", default=None)
"""JSON answer of the command, printed at its end. None if lines are printed."""

_released: ContextVar[str] = ContextVar("released")
"""Name of the table that the command has released. Empty before."""


def command_line(command: Command) -> Command:
    """Turn exceptions of a command into one line on the standard error and an exit code, and add ``--json``."""

    @functools.wraps(command)
    def wrapper(*args: Any, as_json: bool, **options: Any) -> None:
        _answer.set({} if as_json else None)
        _released.set("")
        try:
            message, code = _run(functools.partial(command, *args, **options))
            answer = _answer.get()
            if answer is not None:
                failure = {} if message is None else {"error": message}
                typer.echo(json.dumps({**answer, "exit": code, **failure}, allow_nan=False))
        except OSError as error:
            # The standard output is closed or full.
            code = RELEASED if _released.get() else FAILED
            if not isinstance(error, BrokenPipeError):
                typer.echo(f"error: {_after(_judge(error)[0])}", err=True)
            drop_unwritten()
        if code:
            raise typer.Exit(code)

    signature = inspect.signature(command, eval_str=True)
    flag = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
    wrapper.__signature__ = signature.replace(parameters=[*signature.parameters.values(), flag])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {**command.__annotations__, "as_json": AsJson}
    return wrapper  # type: ignore[return-value]


def _run(command: Callable[[], None]) -> tuple[str | None, int]:
    """Run a command, print the message of its error, and return message and exit code."""
    try:
        command()
    except typer.Exit as ended:
        return None, ended.exit_code
    except (typer.Abort, BrokenPipeError):
        raise
    except Exception as error:
        message, code = _judge(error)
        message = " ".join(". ".join((message, *_read_notes(error))).split())
        if _released.get():
            message, code = _after(message), RELEASED
        typer.echo(f"error: {message}", err=True)
        return message, code
    except BaseException as error:
        for each in _read_notes(error):
            note(each)
        raise
    return None, 0


def in_options(message: str) -> str:
    """Rewrite the advice in a message of the package from parameters of Python to options of the command line."""
    for advice, option in IN_OPTIONS:
        message = re.sub(advice, option, message)
    return message


def _after(message: str) -> str:
    """Return the message of an error that came after a release."""
    table = _released.get()
    return f"{message}. {table} had been released completely by then" if table else message


def drop_unwritten() -> None:
    """Drop output that cannot be written because its reader, such as `head`, has closed the pipe.

    The interpreter would try again at its end, and lose the exit code.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def note_release(target: Path) -> None:
    _released.set(str(target))


def _judge(error: Exception) -> tuple[str, int]:
    """Return the message of an error, and the exit code."""
    if isinstance(error, ModuleNotFoundError):
        error = missing_extra(error) or error
    if isinstance(error, Interrupted):
        return in_options(str(error)), RELEASED if error.released else FAILED
    for kinds, code in EXIT_CODE_OF:
        if isinstance(error, kinds):
            return in_options(str(error)), code
    if isinstance(error, MemoryError):
        return "not enough memory", FAILED
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        # An OSError without a number has a message of this package.
        reason = error.strerror or (str(error) if type(error) is OSError else type(error).__name__)
        return f"{reason}{where}", FAILED
    # The message of an unforeseen error may hold a label, its place in the code does not.
    trace = traceback.extract_tb(error.__traceback__)
    origin = f"{Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else "?"
    return f"internal error: {type(error).__name__} in {origin}. Please report it", FAILED


def _read_notes(error: BaseException) -> list[str]:
    notes = (in_options(note) for note in getattr(error, "__notes__", ()) if isinstance(note, SpentNote))
    return [note[:1].upper() + note[1:] for note in notes]


class Announce:
    """Progress of a command by stages and rows: a spinner on a terminal, else a line every few seconds."""

    every = 10.0

    def __init__(self, bar: Progress) -> None:
        self._bar, self._task = bar, bar.add_task("starting", total=None)
        self._stage, self._begun = "starting", time.monotonic()

    def __call__(self, stage: str) -> None:
        self._stage, self._begun = stage, time.monotonic()
        self._bar.update(self._task, description=stage)

    def rows(self, done: int) -> None:
        rate = done / max(time.monotonic() - self._begun, 1e-3)
        self._bar.update(self._task, description=f"{self._stage}: {done:,} rows, {rate:,.0f} per second")

    def print_lines(self, over: threading.Event) -> None:
        """Print a line every :attr:`every` seconds, also in a long stage, until the command is over."""
        (task,) = self._bar.tasks
        while not over.wait(self.every):
            typer.echo(f"{task.description} ({task.elapsed or 0:.0f} s)", err=True)


@contextmanager
def progress() -> Iterator[Announce]:
    """Show progress and elapsed time on the standard error."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    over = threading.Event()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        announce = Announce(bar)
        if not console.is_terminal:
            threading.Thread(target=announce.print_lines, args=(over,), daemon=True).start()
        try:
            yield announce
        finally:
            over.set()


def print_line(line: str) -> None:
    """Print a line, or keep it among the notes of a JSON answer."""
    answer = _answer.get()
    if answer is None:
        typer.echo(line)
    else:
        answer.setdefault("notes", []).append(line)


def print_rows(*rows: str) -> None:
    """Print a table. A JSON answer has other members for it."""
    if _answer.get() is None:
        for row in rows:
            typer.echo(row)


def show(facts: Mapping[str, object], *, each: str | None = None) -> None:
    """Print facts, one per line.

    In a JSON answer they are members, or one more element of the list `each`. If a fact is a pair, the JSON answer has
    its first part, a number or several, and the lines have the second, its words.
    """
    answer = _answer.get()
    if answer is not None:
        firsts = {name: fact[0] if isinstance(fact, tuple) else fact for name, fact in facts.items()}
        members = {name.replace(" ", "_"): _plain(fact) for name, fact in firsts.items()}
        if each is None:
            answer.update(members)
        else:
            answer.setdefault(each, []).append(members)
        return
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        typer.echo(f"{name:<{width}}  {fact[1] if isinstance(fact, tuple) else fact}")


def add_members(**members: object) -> None:
    """Add members to a JSON answer, in place of those in words. Do nothing if lines are printed."""
    answer = _answer.get()
    if answer is not None:
        answer.update({name: _plain(fact) for name, fact in members.items()})


def _plain(fact: object) -> object:
    """Convert a fact to its JSON value. Infinities become text."""
    if isinstance(fact, Mapping):
        return {str(name): _plain(one) for name, one in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(one) for one in fact]
    known = fact is None or isinstance(fact, str | int) or (isinstance(fact, float) and math.isfinite(fact))
    return fact if known else str(fact)


def note(message: str, *, kind: str = "note") -> None:
    """Print a note on the standard error, with its advice in options of the command line."""
    typer.echo(f"{kind}: {in_options(message)}", err=True)


def gap_words(gap: float) -> str:
    return format_above(gap, 3) if math.isfinite(gap) else "unknown: no bound was proven"


def show_version(wanted: bool) -> None:
    """Print the version and exit if it is wanted."""
    if wanted:
        from importlib.metadata import version

        typer.echo(f"optrand {version('optrand')}")
        raise typer.Exit


def general_options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Optimal label-differential-privacy randomizers, with proofs."""


def run(app: Callable[[], None]) -> None:
    """Run the command line. A request to terminate ends it in good order, with temporary files removed."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: sys.exit(FAILED))
    if sys.stdout is None:
        # The caller has closed it. Writing must fail, as to a full disk.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    try:
        _answer_usage(app)
    except OSError as error:
        typer.echo(f"error: {error.strerror}", err=True)
        sys.exit(FAILED)
    finally:
        drop_unwritten()


def _answer_usage(app: Callable[[], None]) -> None:
    """Run the command line. Answer wrong usage also in JSON if `--json` is given."""
    try:
        app()
    except SystemExit as ended:
        message = getattr(ended.__context__, "format_message", None)
        if message is not None and "--json" in sys.argv:
            typer.echo(json.dumps({"exit": WRONG_INPUT, "error": " ".join(message().split())}))
        raise
