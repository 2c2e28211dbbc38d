"""[B23]: optimal unbiased randomizers, their structure, and the cost of grids and of estimated priors."""

__all__ = ["MODULES"]

MODULES = ("predictors", "structure", "gaps", "phases", "transformations", "grids", "release", "noise")
"""Modules with claims, in the order of the paper."""
