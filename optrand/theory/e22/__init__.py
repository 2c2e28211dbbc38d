"""[E22]: label privacy by clusters, with a curator and among peers."""

from optrand.theory.claim import Claim

__all__ = ["CLAIMS"]

CLAIMS: tuple[Claim, ...] = ()
