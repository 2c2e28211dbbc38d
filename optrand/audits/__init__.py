"""Audits of other people's randomizers, given as tables of probabilities."""

from optrand.audits.findings import Audit, Worst, audit

__all__ = ["Audit", "Worst", "audit"]
