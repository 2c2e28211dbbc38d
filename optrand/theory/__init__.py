"""Claims of the four papers, each as a check: a number, a picture, and a yes, a no or a "once mended".

A :mod:`~optrand.theory.claim` is a statement about :mod:`~optrand.theory.instances`: on each, one number is at most
another, or equal to it. :func:`check` tries it as printed, as corrected where it has a slip, and in a deliberately
false variant, on the same instances by the same code; the verdict follows from what was seen.
"""

from optrand.theory.catalogue import PAPERS, claims, find
from optrand.theory.checking import BlindCheck, Case, Evidence, Finding, Verdict, check
from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, equal, none, worst

__all__ = ["PAPERS", "Budget", "Claim", "Comparison", "at_most", "claims", "equal", "find", "none", "worst"]
__all__ += ["BlindCheck", "Case", "Evidence", "Finding", "Verdict", "check"]
