"""Optimal unbiased and penalised randomizers on the line: a convex flow over arcs, solved by an interior point."""
