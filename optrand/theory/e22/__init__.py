"""[E22]: label privacy by clusters, with a curator and among peers."""

from optrand.theory.e22 import curator, losses, many_peers, matrices, peers

__all__ = ["CLAIMS"]

CLAIMS = (*curator.CLAIMS, *matrices.CLAIMS, *losses.CLAIMS, *peers.CLAIMS, *many_peers.CLAIMS)
