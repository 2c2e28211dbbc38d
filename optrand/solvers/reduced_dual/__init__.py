"""Optimal unbiased randomizers on the line: an interior point on a strip of arcs, level by level."""
