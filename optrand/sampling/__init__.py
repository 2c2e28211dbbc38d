"""Exact draws from tables of integers, and unbiased rounding of labels to knots."""

from optrand.sampling.draw import Sampler
from optrand.sampling.keyed import KeyedEntropy, RecordStreams
from optrand.sampling.rounding import unbiased_rounding

__all__ = ["KeyedEntropy", "RecordStreams", "Sampler", "unbiased_rounding"]
