"""``optrand ledger``: what releases have cost so far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optrand.cli.console import also, lines, reported, say
from optrand.cli.options import LedgerFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optrand.accounting import Charge, Spent

__all__ = ["ledger"]


@reported
def ledger(
    path: LedgerFile = None,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Only releases of one.")] = None,
    withdraw: Annotated[
        str | None,
        typer.Option(
            "--withdraw", metavar="ID", help="Give up an unfinished release: its key is erased, its cost stays spent."
        ),
    ] = None,
) -> None:
    """List every release that was charged, with what it cost, and the totals of each dataset and column.

    Whatever its state is, all of a release is spent: nothing is ever refunded.
    """
    from optrand.accounting import Ledger, default_path
    from optrand.accounting.ledger import check_name
    from optrand.errors import InvalidInput

    chosen = default_path() if path is None else path
    name = None if dataset is None else check_name(dataset, "--dataset")
    exists = chosen.exists() or chosen.is_symlink()
    if withdraw is not None:
        if not exists:
            raise InvalidInput(f"there is no ledger {chosen}")
        Ledger(chosen).withdraw(withdraw)
        say(f"withdrawn  {withdraw}")
    charges: Sequence[Charge] = Ledger(chosen).entries(name) if exists else ()
    also(**_document(charges, chosen))
    if not charges:
        lines(f"nothing was spent{'' if name is None else f' on dataset {name!r}'}, says {chosen}")
        return
    for charge in charges:
        parts = ", ".join(f"{part} {spent}" for part, spent in charge.parts.items())
        told = f"{charge.begun}  {charge.dataset}, column {charge.label!r}: {charge.total} ({parts}); "
        lines(f"{told}{charge.status}; to {charge.output}; release {charge.id}")
    for (table, column), total in _totals(charges).items():
        lines(f"total of {table}, {f'column {column!r}' if column is not None else 'all columns'}: {total}")


def _totals(charges: Sequence[Charge]) -> dict[tuple[str, str | None], Spent]:
    """Return totals of each column, and of each dataset of more than one."""
    from optrand.accounting import Spent

    totals: dict[tuple[str, str | None], Spent] = {}
    for charge in charges:
        for unit in ((charge.dataset, charge.label), (charge.dataset, None)):
            totals[unit] = totals.get(unit, Spent()) + charge.total
    several = {table for table, _ in totals if sum(table == other for other, _ in totals) > 2}
    return {unit: total for unit, total in totals.items() if unit[1] is not None or unit[0] in several}


def _document(charges: Sequence[Charge], path: Path) -> dict[str, Any]:
    entries = [
        {
            "release": charge.id,
            "dataset": charge.dataset,
            "label": charge.label,
            "begun": charge.begun,
            "state": charge.status,
            "output": charge.output,
            "epsilon": str(charge.epsilon),
            "prior_epsilon": str(charge.prior_epsilon),
        }
        for charge in charges
    ]
    totals = [
        {"dataset": table, "label": column, "epsilon": str(total.epsilon)}
        for (table, column), total in _totals(charges).items()
    ]
    return {"ledger": str(path), "entries": entries, "totals": totals}
