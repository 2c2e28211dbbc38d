"""The command line: solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory.

Errors are one line on the standard error and an exit code, never a traceback, which could show a private label.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Annotated

import typer

from optrand.cli._console import EXIT_CODES, FAILED, UNVERIFIED, WRONG_INPUT, drop_unwritten
from optrand.cli._releasing import estimate, ledger, randomize
from optrand.cli._solving import plot, solve, sweep
from optrand.cli._verifying import audit, theory, verify

__all__ = ["FAILED", "UNVERIFIED", "WRONG_INPUT", "app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    # typer's own report of a crash prints local variables, labels among them.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
)

for _command in (solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory):
    app.command(epilog=EXIT_CODES)(_command)


def main() -> None:
    """Run the command line; a request to terminate ends it in good order, temporary files removed."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: sys.exit(FAILED))
    if sys.stdout is None:
        # Closed by the caller: whatever is written to it fails, as to a full disk.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    try:
        _run()
    except OSError as error:
        typer.echo(f"error: {error.strerror}", err=True)
        sys.exit(FAILED)
    finally:
        drop_unwritten()


def _run() -> None:
    """Run the command line; answer wrong usage in JSON, too, if `--json` is given."""
    try:
        app()
    except SystemExit as ended:
        message = getattr(ended.__context__, "format_message", None)
        if message is not None and "--json" in sys.argv:
            typer.echo(json.dumps({"exit": WRONG_INPUT, "error": " ".join(message().split())}))
        raise


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"optrand {version('optrand')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Optimal label-differential-privacy randomizers, with proofs."""
