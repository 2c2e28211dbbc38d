"""``optrand ledger``: costs of all releases so far."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from optrand.cli.console import also, command_line, lines, say
from optrand.cli.options import LedgerName, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optrand.accounting import Charge, Spent

__all__ = ["ledger"]


@command_line
def ledger(
    path: LedgerName = None,
    dataset: Annotated[str | None, option("--dataset", "NAME", "Only releases of this dataset.")] = None,
    withdraw: Annotated[
        str | None, option("--withdraw", "ID", "Give up an unfinished release: erase its key. Its cost stays spent.")
    ] = None,
) -> None:
    """List every release with its cost, and the totals of each dataset and column.

    Every release that is listed is spent in full, also if it is unfinished or withdrawn.
    """
    from optrand.accounting import Ledger, default_path
    from optrand.accounting.ledger import SCHEMES, check_name
    from optrand.errors import InvalidInput

    chosen = str(default_path()) if path is None else path
    owner = None if dataset is None else check_name(dataset, "--dataset")
    found = Ledger(chosen) if chosen.startswith(SCHEMES) or os.path.lexists(chosen) else None
    name = chosen if found is None else found.name
    if withdraw is not None:
        if found is None:
            raise InvalidInput(f"there is no ledger {name}")
        found.withdraw(withdraw)
        say(f"withdrawn  {withdraw}")
    charges: Sequence[Charge] = () if found is None else found.entries(owner)
    also(**_document(charges, name))
    if not charges:
        lines(f"nothing was spent{'' if owner is None else f' on dataset {owner!r}'}, says {name}")
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


def _document(charges: Sequence[Charge], name: str) -> dict[str, Any]:
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
    return {"ledger": name, "entries": entries, "totals": totals}
