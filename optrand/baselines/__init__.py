"""The randomizers that the papers compare with, and those that are not finite channels over labels."""

from optrand.baselines.protocol import ExactRandomizer, FloatRandomizer, LabelRandomizer, Moments

__all__ = ["ExactRandomizer", "FloatRandomizer", "LabelRandomizer", "Moments"]
