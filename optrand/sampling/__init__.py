"""Exact draws from tables of integers, private priors, and unbiased rounding of labels to knots."""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.sampling._draw import Sampler
from optrand.sampling._entropy import KeyedEntropy, RecordStreams, SeededEntropy, SystemEntropy
from optrand.sampling._priors import BudgetSplit, private_prior, split_budget
from optrand.sampling._rounding import unbiased_rounding

__all__ = [
    "BudgetSplit",
    "KeyedEntropy",
    "RecordStreams",
    "Sampler",
    "SeededEntropy",
    "SystemEntropy",
    "private_prior",
    "split_budget",
    "unbiased_rounding",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
