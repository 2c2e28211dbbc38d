"""Claims of the four papers, each as a check: a number, a picture, and a yes, a no or a "once mended".

A claim is a statement about instances: on each, one number is at most another, or equal to it. :func:`check` tries the
claim as printed, as corrected where it has a slip, and a deliberately false variant, on the same instances by the same
code; the verdict follows from what was seen.

======================================  ======================================================
:mod:`~optrand.theory.comparison`       what a claim says of one instance
:mod:`~optrand.theory.claim`            a claim: statement, hypothesis, instances, false variant
:mod:`~optrand.theory.finding`          evidence, and the verdict that follows from it
:mod:`~optrand.theory.checking`         from a claim to a finding
:mod:`~optrand.theory.instances`        labels, priors and budgets that claims are tried on
:mod:`~optrand.theory.catalogue`        all claims, and how one is found by name
:mod:`~optrand.theory.running`          many claims at once
:mod:`~optrand.theory.kept`             what was found before
:mod:`~optrand.theory.writing`          findings as text and as a table
:mod:`~optrand.theory.pictures`         a claim's two sides against each other
:mod:`~optrand.theory.g21`              [G21]: randomized response with a prior
:mod:`~optrand.theory.e22`              [E22]: clusters
:mod:`~optrand.theory.z25`              [Z25]: labels as vectors
:mod:`~optrand.theory.b23`              [B23]: unbiased randomizers
======================================  ======================================================
"""

from optrand.theory.catalogue import PAPERS, claims, find
from optrand.theory.checking import BlindCheck, check
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst
from optrand.theory.finding import Case, Evidence, Finding, Verdict

__all__ = [
    "PAPERS",
    "BlindCheck",
    "Budget",
    "Case",
    "Claim",
    "Comparison",
    "Evidence",
    "Finding",
    "Verdict",
    "at_most",
    "check",
    "claims",
    "equal",
    "find",
    "none",
    "worst",
]
