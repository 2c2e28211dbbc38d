"""[B23]: optimal unbiased randomizers, their structure, and what grids and estimated priors cost."""

from optrand.theory.b23 import attained, bayes, grids, structure, table, transformations

__all__ = ["CLAIMS"]

CLAIMS = (
    *bayes.CLAIMS,
    *table.CLAIMS,
    *structure.CLAIMS,
    *attained.CLAIMS,
    *transformations.CLAIMS,
    *grids.CLAIMS,
)
