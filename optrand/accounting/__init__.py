"""What was spent of privacy, and on what: an exact odometer, a durable ledger, and the keys of releases.

The ledger needs a POSIX system and a local disk: the locks of network file systems may not hold.
"""

from optrand.accounting.entry import Entry
from optrand.accounting.gaussian import delta_of_gaussian, least_sigma
from optrand.accounting.ledger import Ledger, default_path
from optrand.accounting.odometer import Odometer
from optrand.accounting.request import Request
from optrand.accounting.secrets import Vault
from optrand.accounting.spent import Spent

__all__ = [
    "Entry",
    "Ledger",
    "Odometer",
    "Request",
    "Spent",
    "Vault",
    "default_path",
    "delta_of_gaussian",
    "least_sigma",
]
