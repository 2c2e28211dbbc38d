"""Randomizers in closed form, each an exact mechanism with a dual that bounds its distance from the optimum.

=====================  =========================  ==============================================================
:func:`rr`             randomized response        optimal for classification under the uniform prior
:func:`rr_top_k`       [G21], Algorithm 1         optimal if `k` is the one that RRWithPrior chooses
:func:`rr_with_prior`  [G21], Algorithm 2         optimal for classification
:func:`debiased_rr`    [B23], Definition 23       unbiased, optimal on the line for two labels or a large epsilon
:func:`gap_response`   a public gap, then a bit   unbiased, optimal on the line for two labels or a small epsilon
:func:`two_ends`       two outputs                unbiased, optimal in the narrowest interval that allows it
=====================  =========================  ==============================================================

:func:`gap_response_is_optimal` decides exactly up to which epsilon.
:func:`rr_with_prior_batch` answers many priors at once, for training loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.closed_forms._regression import debiased_rr, gap_response, gap_response_is_optimal, two_ends
from optrand.closed_forms._response import RRWithPriorBatch, rr, rr_top_k, rr_with_prior, rr_with_prior_batch

__all__ = [
    "RRWithPriorBatch",
    "debiased_rr",
    "gap_response",
    "gap_response_is_optimal",
    "rr",
    "rr_top_k",
    "rr_with_prior",
    "rr_with_prior_batch",
    "two_ends",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
