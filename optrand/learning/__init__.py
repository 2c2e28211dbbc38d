"""Learning from private labels: their holder, plans of releases, and estimators that train on releases.

======================================  ==========================================================================
:class:`PrivateLabels`                  the true labels and the account of every row
:class:`LabelDPClassifier`              any classifier of scikit-learn, trained on private labels or a release
:class:`LabelDPRegressor`               the same for regressors and numbers
:class:`Stages`, :class:`DomainPrior`   plans of [G21]: LP-MST, and priors of clusters
:class:`OnePrior`, :class:`TwoStages`,  plans of numbers, with the optimal randomizers of [B23]
:class:`RowPriors`
:class:`Likelihood` and others          losses on releases
======================================  ==========================================================================

All of it needs scikit-learn (``pip install 'optrand[learning]'``), networks torch (:mod:`optrand.learning.torch`).
``import optrand`` does not import this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.errors import MissingExtra

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise MissingExtra("optrand.learning needs scikit-learn: pip install 'optrand[learning]'") from error

from optrand.learning._cluster_plans import Clusters, Peers
from optrand.learning._domain import Domain
from optrand.learning._estimators import LabelDPClassifier, LabelDPRegressor
from optrand.learning._likelihoods import LabelRelease, PriorRelease
from optrand.learning._number_plans import OnePrior, PublicClusters, RowPriors, TwoStages
from optrand.learning._plans import Alibi, Bits, DomainPrior, NearestNeighbour, Plan, Stages
from optrand.learning._private_labels import PrivateLabels
from optrand.learning._targets import BinaryBits, Debiased, Likelihood, NoisyLabels, SoftLabels, Target

__all__ = [
    "Alibi",
    "BinaryBits",
    "Bits",
    "Clusters",
    "Debiased",
    "Domain",
    "DomainPrior",
    "LabelDPClassifier",
    "LabelDPRegressor",
    "LabelRelease",
    "Likelihood",
    "NearestNeighbour",
    "NoisyLabels",
    "OnePrior",
    "Peers",
    "Plan",
    "PriorRelease",
    "PrivateLabels",
    "PublicClusters",
    "RowPriors",
    "SoftLabels",
    "Stages",
    "Target",
    "TwoStages",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
