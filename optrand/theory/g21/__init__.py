"""[G21]: randomized response with a prior, learning with it, and its analysis."""

from optrand.theory.g21 import (
    complexity,
    contraction,
    debiased_losses,
    debiased_risks,
    finite_classes,
    gaussian,
    gradients,
    groups,
    learning,
    least_risk,
    parallel,
    populations,
    programs,
    relaxation,
    replication,
    resampling,
    response,
    signs,
    top_k_learning,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    *response.CLAIMS,
    *programs.CLAIMS,
    *relaxation.CLAIMS,
    *parallel.CLAIMS,
    *learning.CLAIMS,
    *gradients.CLAIMS,
    *top_k_learning.CLAIMS,
    *gaussian.CLAIMS,
    *populations.CLAIMS,
    *signs.CLAIMS,
    *least_risk.CLAIMS,
    *groups.CLAIMS,
    *replication.CLAIMS,
    *resampling.CLAIMS,
    *finite_classes.CLAIMS,
    *debiased_losses.CLAIMS,
    *debiased_risks.CLAIMS,
    *complexity.CLAIMS,
    *contraction.CLAIMS,
)
