"""Claims of the four papers as code, each tried on instances, with a verdict that the evidence must confirm.

A claim states of each instance that one number is at most another, or equal to it. :func:`check` tries it as printed,
as corrected if it has a slip, and in a deliberately false variant, on the same instances by the same code.
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.theory._catalogue import PAPERS, claims, find
from optrand.theory._engine import (
    BlindCheck,
    Case,
    Claim,
    Comparison,
    Evidence,
    Finding,
    Verdict,
    at_most,
    check,
    equal,
)

__all__ = ["PAPERS", "BlindCheck", "Case", "Claim", "Comparison", "Evidence", "Finding", "Verdict", "at_most", "check"]
__all__ += ["claims", "equal", "find"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
