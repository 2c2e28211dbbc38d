"""Squared loss on the line or an interval: an interior point on candidate arcs, level by level."""
