"""[G21]: randomized response with a prior, learning with it, and its analysis."""

from optrand.theory.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = ()
