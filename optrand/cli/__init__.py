"""The command line: solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory.

An error is one line on the standard error and an exit code, never a traceback, which could show a private label.
"""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from optrand.cli._console import EXIT_CODES, FAILED, UNVERIFIED, WRONG_INPUT, general_options, run
from optrand.cli._releasing import estimate, ledger, randomize
from optrand.cli._solving import plot, solve, sweep
from optrand.cli._verifying import audit, theory, verify

__all__ = ["FAILED", "UNVERIFIED", "WRONG_INPUT", "app", "main"]

OTHER_WORDS = {
    "audit": "epsilon test",
    "estimate": "histogram mean statistics",
    "ledger": "account accountant budget history spent",
    "plot": "draw gallery page picture report reports show",
    "randomize": "privatize randomise release",
    "solve": "mechanism optimize",
    "verify": "certify check checker prove validate",
}
"""Synonyms of each command."""


class Commands(TyperGroup):
    """Group of commands that are also suggested for synonyms of their names."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first argument, or suggest the one of which it is a synonym."""
        meant = next((name for name, words in OTHER_WORDS.items() if args[0] in words.split()), None)
        if meant is not None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    # typer's own report of a crash prints local variables, labels among them.
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    callback=general_options,
)

for _command in (solve, sweep, verify, audit, randomize, estimate, plot, ledger, theory):
    app.command(epilog=EXIT_CODES)(_command)


class WithoutPandas:
    """Import hook that hides pandas, which Arrow would load to recognise its objects: 0.3 s and 40 MB a command."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas, and leave all other modules to the next hook."""
        if name == "pandas":
            raise ModuleNotFoundError(f"no command uses {name}")


def main() -> None:
    """Run the command line. A request to terminate ends it in good order, with temporary files removed."""
    sys.meta_path.insert(0, WithoutPandas)
    run(app)
