"""[G21]: randomized response with a prior, learning with it, and its analysis."""

__all__ = ["MODULES"]

MODULES = (
    "response",
    "programs",
    "parallel",
    "learning",
    "gradients",
    "top_k_learning",
    "descent",
    "populations",
    "least_risk",
    "groups",
    "replication",
    "finite_classes",
    "debiased_losses",
    "debiased_risks",
    "complexity",
    "contraction",
)
