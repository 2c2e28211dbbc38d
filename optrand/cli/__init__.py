"""The command line: solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory.

Errors are one line on the standard error and an exit code, never a traceback, which could show a private label.
"""

from __future__ import annotations

import typer

from optrand.cli._console import EXIT_CODES, FAILED, UNVERIFIED, WRONG_INPUT, general_options, run
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
    callback=general_options,
)

for _command in (solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory):
    app.command(epilog=EXIT_CODES)(_command)


def main() -> None:
    """Run the command line; a request to terminate ends it in good order, temporary files removed."""
    run(app)
