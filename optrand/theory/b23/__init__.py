"""[B23]: optimal unbiased randomizers, their structure, and what grids and estimated priors cost."""

from optrand.theory.b23 import (
    attained,
    bayes,
    budgets,
    descent,
    exchange,
    extremes,
    feasibility,
    grids,
    mesh,
    noise,
    printed_program,
    priors,
    structure,
    table,
    transformations,
    walks,
)

__all__ = ["CLAIMS"]

CLAIMS = (
    *bayes.CLAIMS,
    *table.CLAIMS,
    *printed_program.CLAIMS,
    *structure.CLAIMS,
    *attained.CLAIMS,
    *transformations.CLAIMS,
    *exchange.CLAIMS,
    *grids.CLAIMS,
    *feasibility.CLAIMS,
    *mesh.CLAIMS,
    *extremes.CLAIMS,
    *priors.CLAIMS,
    *budgets.CLAIMS,
    *descent.CLAIMS,
    *walks.CLAIMS,
    *noise.CLAIMS,
)
