"""Shared parts of cone programs over arcs: the arcs, and labels and outputs measured so that numbers are about one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from optrand.base.validation import Floats
from optrand.model.arcs import Indices
from optrand.model.problem import Problem

__all__ = ["ArcProgram"]


@dataclass(frozen=True, eq=False)
class ArcProgram(ABC):
    """A program over some interval columns of a problem.

    Parameters
    ----------
    problem : Problem
        Outputs on the line or an interval.
    first, last : (n,) arrays of int
        The interval of labels of each arc, both ends in.
    """

    problem: Problem
    first: Indices
    last: Indices

    @property
    def k(self) -> int:
        """The number of labels."""
        return self.problem.k

    @property
    def n(self) -> int:
        """The number of arcs."""
        return self.first.size

    @property
    @abstractmethod
    def centre(self) -> float:
        """Origin from which labels and outputs are measured."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Unit in which labels and outputs are measured; losses in its square."""

    @cached_property
    def labels(self) -> Floats:
        """The labels from :attr:`centre` in :attr:`unit`."""
        labels: Floats = (self.problem.labels - self.centre) / self.unit
        return labels

    @cached_property
    def box(self) -> tuple[float, float]:
        """The ends of the outputs, measured likewise; infinite on the line."""
        outputs = self.problem.outputs
        return (outputs.low - self.centre) / self.unit, (outputs.high - self.centre) / self.unit
