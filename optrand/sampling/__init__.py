"""Exact draws from tables of integers, and unbiased rounding of labels to knots."""

from typing import TYPE_CHECKING

from optrand.base.suggestions import public_names
from optrand.sampling.draw import Sampler
from optrand.sampling.entropy import SeededEntropy, SystemEntropy
from optrand.sampling.keyed import KeyedEntropy, RecordStreams
from optrand.sampling.rounding import unbiased_rounding

__all__ = ["KeyedEntropy", "RecordStreams", "Sampler", "SeededEntropy", "SystemEntropy", "unbiased_rounding"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
