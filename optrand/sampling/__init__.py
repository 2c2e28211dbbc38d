"""Exact draws from integer mechanisms, by table or by arcs; unbiased rounding of labels to knots."""

from optrand.sampling.drawing import LabelSampler
from optrand.sampling.intervals import ArcSampler
from optrand.sampling.keyed import KeyedEntropy, RecordStreams
from optrand.sampling.rounding import unbiased_rounding
from optrand.sampling.tables import Sampler

__all__ = ["ArcSampler", "KeyedEntropy", "LabelSampler", "RecordStreams", "Sampler", "unbiased_rounding"]
