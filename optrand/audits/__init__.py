"""Audits of third-party randomizers, given as tables of probabilities."""

from typing import TYPE_CHECKING

from optrand.audits._findings import Audit, Worst, audit
from optrand.base._suggestions import public_names

__all__ = ["Audit", "Worst", "audit"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
