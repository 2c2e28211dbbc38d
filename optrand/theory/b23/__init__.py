"""[B23]: optimal unbiased randomizers for regression."""

__all__ = ["MODULES"]

MODULES = ("predictors", "structure", "transformations", "grids", "release", "noise")
"""Modules that declare claims, in the order of the paper."""
