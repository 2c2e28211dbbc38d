"""[G21]: randomized response with a prior, learning with it, and its analysis."""

__all__ = ["MODULES"]

MODULES = (
    "response",
    "programs",
    "relaxation",
    "parallel",
    "gradients",
    "learning",
    "gaussian",
    "signs",
    "least_risk",
    "groups",
    "populations",
    "resampling",
    "finite_classes",
    "debiased",
    "complexity",
)
