"""[B23]: optimal unbiased randomizers, their structure, and what grids and estimated priors cost."""

from optrand.theory.b23 import grids

__all__ = ["CLAIMS"]

CLAIMS = (*grids.CLAIMS,)
