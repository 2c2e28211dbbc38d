"""Randomizers that the papers compare with, and those that are not finite channels over labels."""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.baselines._additive import DiscreteLaplace, DiscreteStaircase, Laplace, Staircase
from optrand.baselines._cluster import ClusterPriorRelease, ClusterPriorRR, ClusterPriors, ClusterRelease, ClusterRR
from optrand.baselines._groups import Groups
from optrand.baselines._peer_to_peer import PeerPrivacy, PeerRelease, PeerToPeer, lemma9, theorem3, theorem3_flip
from optrand.baselines._randomization import LabelRandomization, UniformRR
from optrand.baselines._vector import Alibi, LatticeAlibi, UnaryBits
from optrand.model._randomizer import LabelRandomizer, Moments

__all__ = [
    "Alibi",
    "ClusterPriorRR",
    "ClusterPriorRelease",
    "ClusterPriors",
    "ClusterRR",
    "ClusterRelease",
    "DiscreteLaplace",
    "DiscreteStaircase",
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
    "theorem3_flip",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
