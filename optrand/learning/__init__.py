"""Learning from private labels: their holder, what is released of them, and estimators that train on it.

:class:`PrivateLabels`, its releases, the plans and convex learning need nothing more; the estimators and their targets
need scikit-learn (``pip install 'optrand[learning]'``), networks torch (:mod:`optrand.learning.torch`). ``import
optrand`` does not import this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optrand.errors import MissingExtra
from optrand.learning.convex import LPRRSGD, ConvexFit, LPNormalSGD, top_k_priors
from optrand.learning.domain import Domain
from optrand.learning.finite_class import FiniteFit, least_risk
from optrand.learning.holder import PrivateLabels
from optrand.learning.linear_losses import AbsoluteLoss, LogisticLoss, SquaredLoss
from optrand.learning.plans import Alibi, Bits, Clusters, DomainPrior, NearestNeighbour, Peers, Stages
from optrand.learning.regression_plans import OnePrior, PublicClusters, TwoStages
from optrand.learning.release import CentralRelease, LabelRelease, PeerLabelRelease, PriorRelease

if TYPE_CHECKING:
    from optrand.learning.classifier import LabelDPClassifier
    from optrand.learning.likelihood import BinaryBits, Debiased, Likelihood, NoisyLabels, SoftLabels
    from optrand.learning.regressor import LabelDPRegressor

__all__ = [
    "LPRRSGD",
    "AbsoluteLoss",
    "Alibi",
    "BinaryBits",
    "Bits",
    "CentralRelease",
    "Clusters",
    "ConvexFit",
    "Debiased",
    "Domain",
    "DomainPrior",
    "FiniteFit",
    "LPNormalSGD",
    "LabelDPClassifier",
    "LabelDPRegressor",
    "LabelRelease",
    "Likelihood",
    "LogisticLoss",
    "NearestNeighbour",
    "NoisyLabels",
    "OnePrior",
    "PeerLabelRelease",
    "Peers",
    "PriorRelease",
    "PrivateLabels",
    "PublicClusters",
    "SoftLabels",
    "SquaredLoss",
    "Stages",
    "TwoStages",
    "least_risk",
    "top_k_priors",
]

LAZY = {
    "BinaryBits": "likelihood",
    "Debiased": "likelihood",
    "LabelDPClassifier": "classifier",
    "LabelDPRegressor": "regressor",
    "Likelihood": "likelihood",
    "NoisyLabels": "likelihood",
    "SoftLabels": "likelihood",
}
"""Modules of the names that need scikit-learn."""


def __getattr__(name: str) -> Any:
    """Import what needs scikit-learn when it is first asked for."""
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"{name} needs scikit-learn: pip install 'optrand[learning]'") from error
    return getattr(importlib.import_module(f"optrand.learning.{LAZY[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
