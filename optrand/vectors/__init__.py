"""Unbiased one-hot vectors of class labels: the best private randomizer for a prior, with its proof.

Cross entropy is linear in a one-hot label, and so is its gradient: a vector with the mean ``e_y`` makes unbiased
gradients of it, whose noise is what :func:`unbiased_vectors` makes least. :func:`best_decoder` gives any channel its
best unbiased vectors.
"""

from optrand.vectors.decoders import Decoder, best_decoder
from optrand.vectors.optimum import unbiased_vectors
from optrand.vectors.subsets import UnbiasedVectors

__all__ = ["Decoder", "UnbiasedVectors", "best_decoder", "unbiased_vectors"]
