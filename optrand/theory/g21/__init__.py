"""[G21]: randomized response with a prior, learning with it, and its analysis."""

__all__ = ["MODULES"]

MODULES = (
    "response",
    "programs",
    "parallel",
    "gradients",
    "learning",
    "descent",
    "least_risk",
    "groups",
    "populations",
    "finite_classes",
    "debiased",
    "complexity",
)
