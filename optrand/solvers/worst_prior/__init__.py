"""Squared loss without a prior: the worst prior as a third sum of the reduced dual."""
