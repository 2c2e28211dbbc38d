"""Levels of a descent: nodes between labels, ever fewer, and what the ones of a level are to those of the next."""

from __future__ import annotations

from typing import NamedTuple

from optrand.base.validation import Floats
from optrand.model.randomizer import Indices

__all__ = ["Level"]

HEAVY = 4.0
"""Labels of more than so many times the mean prior, and gaps as wide, are not merged with their neighbours."""


class Level(NamedTuple):
    """Nodes of a level, and each node of the finer one as a mixture of two of them.

    Attributes
    ----------
    before : array
        Prior before each node.
    gaps : array
        Distance of the labels beside each node, in the unit of the kernel; of the last node, minus the last label.
    left, share : arrays
        For each node of the finer level the node before it, and the share of the next one.
    """

    before: Floats
    gaps: Floats
    left: Indices
    share: Floats

    def coarser(self, steep: float = 0.0) -> Level:
        """Every second node, the last one, and those beside heavy labels and in wide gaps.

        Wide are also those that are wider, `steep` times, than the distance to the nearer of the end labels.
        """
        from optrand.solvers.reduced_dual.strip import halved

        return Level(*halved(self.before, self.gaps, HEAVY, steep))

    def prolonged(self, sums: Floats) -> Floats:
        """Interpolate sums of the finer level."""
        return sums[self.left] * (1 - self.share) + sums[self.left + 1] * self.share
