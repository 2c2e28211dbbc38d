"""The randomizers that the papers compare with, and those that are not finite channels over labels."""

from typing import TYPE_CHECKING

from optrand.base.suggestions import public_names
from optrand.baselines.additive import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from optrand.baselines.cluster import ClusterPriorRelease, ClusterPriorRR, ClusterPriors, ClusterRelease, ClusterRR
from optrand.baselines.groups import Groups
from optrand.baselines.peer_to_peer import PeerPrivacy, PeerRelease, PeerToPeer, lemma9, theorem3
from optrand.baselines.randomization import LabelRandomization, UniformRR
from optrand.baselines.vector import Alibi, LatticeAlibi, UnaryBits
from optrand.model.protocol import ExactRandomizer, FloatRandomizer, LabelRandomizer, Moments

__all__ = [
    "Alibi",
    "ClusterPriorRR",
    "ClusterPriorRelease",
    "ClusterPriors",
    "ClusterRR",
    "ClusterRelease",
    "DiscreteLaplace",
    "DiscreteStaircase",
    "ExactRandomizer",
    "FloatRandomizer",
    "Groups",
    "LabelRandomization",
    "LabelRandomizer",
    "Laplace",
    "LatticeAlibi",
    "Moments",
    "PeerPrivacy",
    "PeerRelease",
    "PeerToPeer",
    "Staircase",
    "UnaryBits",
    "UniformRR",
    "lemma9",
    "theorem3",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
