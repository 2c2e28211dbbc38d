"""Interval staircase columns as arcs on a line: in floats, in integers, and what follows from them without a table."""

from optrand.model.arcs import Arcs, Indices
from optrand.model.integer_arcs import IntegerArcs
from optrand.model.interval_channel import IntervalChannel

__all__ = ["Arcs", "Indices", "IntegerArcs", "IntervalChannel"]
