"""Privacy accounting: exact sums, an odometer for rows, and a durable ledger of releases."""

from typing import TYPE_CHECKING

from optrand.accounting._ledger import Charge, Ledger, State, default_path
from optrand.accounting._spent import Odometer, Spent
from optrand.base._suggestions import public_names

__all__ = ["Charge", "Ledger", "Odometer", "Spent", "State", "default_path"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
