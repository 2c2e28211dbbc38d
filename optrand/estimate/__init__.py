"""Estimates from a release: means, histograms, and losses for training.

All are post-processing of the outputs and of the :class:`~optrand.Mechanism` that drew them, and cost no privacy.
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.estimate._averages import (
    Estimate,
    IntervalMethod,
    Spread,
    average,
    hoeffding,
    mean,
    normal,
    output_numbers,
)
from optrand.estimate._debiasing import Debiasing, loss_weights, top_k_loss_weights, unbiased_values
from optrand.estimate._histograms import Histogram, histogram, project_to_simplex

__all__ = [
    "Debiasing",
    "Estimate",
    "Histogram",
    "IntervalMethod",
    "Spread",
    "average",
    "histogram",
    "hoeffding",
    "loss_weights",
    "mean",
    "normal",
    "output_numbers",
    "project_to_simplex",
    "top_k_loss_weights",
    "unbiased_values",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
