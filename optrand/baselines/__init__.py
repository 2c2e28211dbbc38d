"""The randomizers that the papers compare with, and those that are not finite channels over labels."""

from optrand.baselines.alibi import Alibi
from optrand.baselines.laplace import DiscreteLaplace, Laplace
from optrand.baselines.protocol import ExactRandomizer, FloatRandomizer, LabelRandomizer, Moments
from optrand.baselines.staircase import DiscreteStaircase, Staircase
from optrand.baselines.vector import UnaryBits

__all__ = [
    "Alibi",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "ExactRandomizer",
    "FloatRandomizer",
    "LabelRandomizer",
    "Laplace",
    "Moments",
    "Staircase",
    "UnaryBits",
]
