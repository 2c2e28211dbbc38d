"""Optima at a rational privacy ratio, proven in rationals."""

from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.studies.exact.optimum import ExactOptimum, exact_optimum

__all__ = ["ExactOptimum", "RationalMechanism", "exact_optimum"]
