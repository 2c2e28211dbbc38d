"""Interval staircase columns as arcs on a line: in floats, in integers, and what follows from them without a table."""

from optrand.arcs.arcs import Arcs, Indices
from optrand.arcs.channel import IntervalChannel
from optrand.arcs.integers import IntegerArcs

__all__ = ["Arcs", "Indices", "IntegerArcs", "IntervalChannel"]
