"""The linear programs of the papers, and of one's own, as objects: stated, solved by any backend, and proven.

====================================  =================================================================================
:func:`lp1`, :func:`lp2`              [G21], proof of Theorem 3
:func:`algorithm1`                    [B23], Algorithm 1 (ComputeOptUnbiasedRand)
:class:`Program`                      any loss, outputs, notion of privacy, constraints and rows
:class:`Pure`, :class:`Pairwise`,     notions of privacy
:func:`Metric`, :func:`Sensitive`,
:class:`Approximate`,
:class:`MaximalLeakage`,
:class:`PointwiseMaximalLeakage`
:class:`Unbiased`,                    constraints
:class:`BiasAtMost`,
:class:`ProbabilityAtMost`
:class:`Answer`, :class:`Status`      a backend's own answer
:class:`Highs`, :class:`Cvxpy`        backends with options
====================================  =================================================================================
"""

from typing import TYPE_CHECKING

from optrand.base._suggestions import public_names
from optrand.programs._backends import Cvxpy, Highs
from optrand.programs._certificate import Answer, ProgramCertificate, Status
from optrand.programs._parts import (
    Approximate,
    BiasAtMost,
    MaximalLeakage,
    Metric,
    Pairwise,
    PointwiseMaximalLeakage,
    ProbabilityAtMost,
    Pure,
    Sensitive,
    Unbiased,
)
from optrand.programs._program import Program, algorithm1, lp1, lp2

__all__ = [
    "Answer",
    "Approximate",
    "BiasAtMost",
    "Cvxpy",
    "Highs",
    "MaximalLeakage",
    "Metric",
    "Pairwise",
    "PointwiseMaximalLeakage",
    "ProbabilityAtMost",
    "Program",
    "ProgramCertificate",
    "Pure",
    "Sensitive",
    "Status",
    "Unbiased",
    "algorithm1",
    "lp1",
    "lp2",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_names(__name__, __all__)
