"""Claims of the four papers, each as a check: a number, a picture, and a yes, a no or a "once mended".

A claim is a statement about instances: on each, one number is at most another, or equal to it. :func:`check` tries the
claim as printed, as corrected where it has a slip, and a deliberately false variant, on the same instances by the same
code; the verdict follows from what was seen.

A claim is declared by the function that states it (:mod:`~optrand.theory.claim`), of instances that print themselves
(:mod:`~optrand.theory.instances`), as a :mod:`~optrand.theory.comparison` of two numbers. Papers are
:mod:`~optrand.theory.g21`, :mod:`~optrand.theory.e22`, :mod:`~optrand.theory.z25` and :mod:`~optrand.theory.b23`; the
:mod:`~optrand.theory.catalogue` finds their claims, and :mod:`~optrand.theory.running` tries many at once.
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
