"""[E22]: label privacy by clusters, with a curator and among peers."""

from optrand.theory.e22 import (
    association,
    budgets,
    curator,
    deviations,
    distortion,
    distributions,
    draws,
    labels_alone,
    losses,
    many_peers,
    matrices,
    peer_risks,
    peers,
    residuals,
    risks,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    *curator.CLAIMS,
    *labels_alone.CLAIMS,
    *distributions.CLAIMS,
    *budgets.CLAIMS,
    *matrices.CLAIMS,
    *losses.CLAIMS,
    *distortion.CLAIMS,
    *deviations.CLAIMS,
    *risks.CLAIMS,
    *residuals.CLAIMS,
    *peers.CLAIMS,
    *draws.CLAIMS,
    *many_peers.CLAIMS,
    *peer_risks.CLAIMS,
    *association.CLAIMS,
)
