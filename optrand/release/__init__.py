"""Releases of private labels: requests (:class:`Question`), arrays, frames and tables, and their records.

==========================  ========================================================
:func:`randomize`           arrays, columns and frames in memory
:func:`randomize_table`     files and folders of any size, and frames of a Spark cluster
:func:`load_release`        the record of a release, verified again
:func:`diagnose_table`      counts of labels that a release would refuse, for their owner
:class:`Question`           request for one column
:class:`ReleaseRecord`      record of a release: costs, estimates, mechanisms
==========================  ========================================================
"""

import importlib
from typing import Any

from optrand.base._suggestions import missing_name
from optrand.errors import missing_extra

_HOMES = {
    "Question": "_question",
    "ReleaseRecord": "_record",
    "diagnose_table": "_tables",
    "load_release": "_record",
    "randomize": "_in_memory",
    "randomize_table": "_files",
}

__all__ = sorted(_HOMES)

FORMAT = "optrand.release"
"""Format that the file of a record states."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise missing_name(__name__, name, __all__)
    try:
        found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
