"""[Z25]: labels as vectors of bits, and what is learned from them."""

from optrand.theory.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = ()
