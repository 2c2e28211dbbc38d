"""[G21]: randomized response with a prior, learning with it, and its analysis."""

from optrand.theory.g21 import gradients, learning, parallel, programs, relaxation, response

__all__ = ["CLAIMS"]

CLAIMS = (
    *response.CLAIMS,
    *programs.CLAIMS,
    *relaxation.CLAIMS,
    *parallel.CLAIMS,
    *learning.CLAIMS,
    *gradients.CLAIMS,
)
