"""[G21]: randomized response with a prior, learning with it, and its analysis."""

__all__ = ["MODULES"]

MODULES = (
    "response",
    "programs",
    "parallel",
    "descent",
    "learning",
    "lower_bounds",
    "populations",
    "finite_classes",
    "debiased",
)
"""Modules that declare claims, in the order of the paper."""
