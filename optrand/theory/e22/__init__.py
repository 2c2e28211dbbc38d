"""[E22]: label privacy by clusters, with a curator and among peers."""

__all__ = ["MODULES"]

MODULES = ("curator", "losses", "risks", "peers", "association")
"""Modules that declare claims, in the order of the paper."""
