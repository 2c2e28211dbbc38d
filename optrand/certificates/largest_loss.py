"""Functions of version 0.1 for the largest loss over labels, each with a :class:`DeprecationWarning`."""

from __future__ import annotations

import warnings
from typing import Any

from optrand.base.validation import Floats
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["certify_largest_loss", "label_losses"]


def certify_largest_loss(*arguments: Any) -> Certificate:
    """Certificate of the largest loss: use ``certify(..., worst_case=True)``."""
    _warn("certify_largest_loss(...)", "certify(..., worst_case=True)")
    proof: Certificate = certify(*arguments, worst_case=True)
    return proof


def label_losses(problem: Problem, answer: Randomizer | Mechanism) -> Floats:
    """Loss of each label: use ``answer.losses(bias_penalty=problem.bias_penalty)``."""
    _warn("label_losses(problem, answer)", "answer.losses(bias_penalty=problem.bias_penalty)")
    if problem.loss != losses.squared:
        raise InvalidInput(f"{problem.loss.name} is no loss of this function, expected squared loss")
    return answer.losses(bias_penalty=problem.bias_penalty)


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"optrand.{old} is now {new}; the old name goes in the next version", DeprecationWarning, stacklevel=3
    )
