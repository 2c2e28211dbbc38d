"""Exact draws from integer mechanisms: from a table, or from arcs where a table would be large."""

from optrand.sampling.drawing import LabelSampler
from optrand.sampling.intervals import ArcSampler
from optrand.sampling.tables import Sampler

__all__ = ["ArcSampler", "LabelSampler", "Sampler"]
