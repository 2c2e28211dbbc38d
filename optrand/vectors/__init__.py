"""Unbiased one-hot vectors of class labels: the best private randomizer for a prior, with its proof.

Cross entropy and its gradient are linear in a one-hot label, so a vector with the mean ``e_y`` gives unbiased
gradients. :func:`unbiased_vectors` minimises their noise. :func:`best_decoder` computes the best unbiased vectors for
any channel.
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.vectors._decoders import Decoder, best_decoder
from optrand.vectors._design import unbiased_vectors
from optrand.vectors._subsets import UnbiasedVectors

__all__ = ["Decoder", "UnbiasedVectors", "best_decoder", "unbiased_vectors"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
