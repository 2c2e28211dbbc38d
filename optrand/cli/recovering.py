"""``optrand recover``: what an interrupted release has left is finished or withdrawn."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from optrand.cli.reporting import also, reported, show

__all__ = ["recover"]


@reported
def recover(
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The table that was to be released.")],
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="By default $XDG_STATE_HOME/optrand/ledger.sqlite."),
    ] = None,
    withdraw: Annotated[
        bool,
        typer.Option("--withdraw", help="Give up a release that could go on. What it has cost remains spent."),
    ] = False,
) -> None:
    """Finish or withdraw what an interrupted release of a table has left, and say what it has spent.

    What had begun to take its final name is finished; what had not is removed. The command that began the release goes
    on with it at no further cost, unless you say --withdraw.
    """
    from optrand.accounting import Ledger, Spent, default_path
    from optrand.release.recovery import recover as recovered

    path = default_path() if ledger is None else ledger
    with ExitStack() as stack:
        exists = path.exists() or path.is_symlink()
        opened = stack.enter_context(Ledger.open(path)) if exists or ledger is not None else None
        found = recovered(target, opened, withdraw=withdraw)
        charges = [] if opened is None else [one for one in opened.entries() if one.output == str(target.absolute())]
    spent = Spent.total(one.total for one in charges)
    told = {"nothing": "nothing was left of an interrupted release", "withdrawn": "what was staged is gone"}
    facts: dict[str, object] = {
        "table": target,
        "state": told.get(found.state, f"finished: {', '.join(found.files)}"),
        "spent": f"{spent}, on {len(charges)} release(s) to this name, says {path}"
        if charges
        else f"nothing, says {path}",
    }
    if found.unfinished:
        facts["unfinished"] = f"{', '.join(found.unfinished)}: the same command goes on, or give it up with --withdraw"
    show(facts)
    also(
        state=found.state,
        release=found.release,
        files=found.files,
        unfinished=found.unfinished,
        spent=spent.document(),
        releases={one.release: one.state.value for one in charges},
    )
