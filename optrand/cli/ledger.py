"""``optrand ledger``: what releases have cost so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optrand.cli.reporting import also, lines, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optrand.accounting import Spent
    from optrand.accounting.charge import Charge

__all__ = ["ledger"]


@reported
def ledger(
    path: Annotated[
        Path | None,
        typer.Option("--ledger", metavar="FILE", help="By default $XDG_STATE_HOME/optrand/ledger.sqlite."),
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Only releases of one.")] = None,
) -> None:
    """List every release that was charged, with what it cost, and the totals of each dataset and column.

    Whatever its state is, all of a release is spent: nothing is ever refunded.
    """
    from optrand.accounting import Ledger, default_path
    from optrand.accounting.request import checked_name

    chosen = default_path() if path is None else path
    name = None if dataset is None else checked_name(dataset, "--dataset")
    charges: Sequence[Charge] = ()
    if chosen.exists() or chosen.is_symlink():
        with Ledger.open(chosen) as opened:
            charges = [charge for charge in opened.entries() if name in (None, charge.dataset)]
    also(**_document(charges, chosen))
    if not charges:
        lines(f"nothing was spent{'' if name is None else f' on dataset {name!r}'}, says {chosen}")
        return
    for charge in charges:
        parts = ", ".join(f"{part} {spent}" for part, spent in charge.parts.items())
        note = "" if charge.private else ", NOT private: its key was given"
        told = f"{charge.begun}  {charge.dataset}, column {charge.column!r}: {charge.total} ({parts}); "
        lines(f"{told}{charge.state}{note}; to {charge.output}; release {charge.release}")
    for (table, column), total in _totals(charges).items():
        lines(f"total of {table}, {f'column {column!r}' if column is not None else 'all columns'}: {total}")


def _totals(charges: Sequence[Charge]) -> dict[tuple[str, str | None], Spent]:
    """Totals of each column, and of each dataset of more than one."""
    from optrand.accounting import Spent

    totals: dict[tuple[str, str | None], Spent] = {}
    for charge in charges:
        for unit in ((charge.dataset, charge.column), (charge.dataset, None)):
            totals[unit] = totals.get(unit, Spent()) + charge.total
    several = {table for table, _ in totals if sum(table == other for other, _ in totals) > 2}
    return {unit: total for unit, total in totals.items() if unit[1] is not None or unit[0] in several}


def _document(charges: Sequence[Charge], path: Path) -> dict[str, Any]:
    entries = [
        {
            "release": charge.release,
            "dataset": charge.dataset,
            "column": charge.column,
            "begun": charge.begun,
            "state": charge.state.value,
            "private": charge.private,
            "output": charge.output,
            "parts": {name: part.document() for name, part in charge.parts.items()},
        }
        for charge in charges
    ]
    totals = [
        {"dataset": table, "column": column, **total.document()} for (table, column), total in _totals(charges).items()
    ]
    return {"ledger": str(path), "entries": entries, "totals": totals}
