"""Digest of all public options that decide what is drawn: a release that is resumed has the same."""

from __future__ import annotations

import dataclasses
import hashlib
from fractions import Fraction
from typing import Any

import numpy as np

from optrand.base import strict_json
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.model.losses import Loss

__all__ = ["configuration_digest"]


def configuration_digest(**options: object) -> str:
    """SHA-256 of options: jobs, texts, numbers, arrays, sequences and dataclasses of these.

    Fields whose metadata say ``{"draws": False}`` are left out.

    Raises
    ------
    InvalidInput
        An option of another type.

    Examples
    --------
    >>> from optrand.release.job import LabelJob
    >>> one, same = (LabelJob(labels=[0, 1], epsilon=1.0, max_gap=gap) for gap in (1e-6, 1.0))
    >>> other = LabelJob(labels=[0, 1], epsilon=2.0)
    >>> configuration_digest(job=one) == configuration_digest(job=same)
    True
    >>> configuration_digest(job=one) == configuration_digest(job=other)
    False
    """
    return hashlib.sha256(strict_json.canonical({name: _plain(value) for name, value in options.items()})).hexdigest()


def _plain(value: object) -> Any:
    """Value as JSON in which every value has one form; types are told apart."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float | np.floating):
        return ["float", float(value).hex()]
    if isinstance(value, int | np.integer | Fraction):
        return ["number", str(value)]
    if isinstance(value, Loss):
        return ["loss", value.name]
    if isinstance(value, Mechanism):
        return ["Mechanism", value.digest]
    if isinstance(value, np.ndarray):
        return ["array", list(value.shape), [_plain(item) for item in value.ravel().tolist()]]
    if isinstance(value, list | tuple):
        return ["list", [_plain(item) for item in value]]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = (one for one in dataclasses.fields(value) if one.metadata.get("draws", True))
        return [type(value).__name__, {one.name: _plain(getattr(value, one.name)) for one in kept}]
    raise InvalidInput(f"an option is of type {type(value).__name__}, which no ledger can compare with an earlier one")
