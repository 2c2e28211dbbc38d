"""Subjects of pictures: the randomizer to draw, and words for it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from optrand.base.validation import values as checked_values
from optrand.baselines.additive import Additive
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import HasRandomizer, merge_neighbours
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.table import Table

__all__ = ["Drawable", "HasRandomizer", "counted", "drawn_table", "has_means", "problem_of"]


Drawable = Randomizer | HasRandomizer | Additive
"""Randomizer or mechanism; or additive noise of :mod:`optrand.baselines`, drawn for some of its labels."""

FINE = 1201
"""Outputs that noise is rounded to, which are then shown in bins."""

TAILS = 5.0
"""Standard deviations of unclipped noise that are shown beyond the labels; what lies further is in the last bins."""


def drawn_table(subject: Drawable, labels: ArrayLike | None = None) -> Randomizer:
    """Randomizer to draw, without the outputs that never occur.

    The columns of a mechanism that are split between neighbouring floats are drawn as one
    (:func:`optrand.mechanism.paths.merge_neighbours`).

    Additive noise, which has a channel for every label of an interval, is rounded to a fine grid for those in `labels`.
    """
    if isinstance(subject, Additive):
        return _rounded_noise(subject, labels)
    if isinstance(subject, Mechanism) and subject.arcs is not None:
        merged = Table.of_arcs(subject.labels, *merge_neighbours(subject), subject.ratio)
        subject = Mechanism(subject.problem, merged)
    source = getattr(subject, "randomizer", None)
    table = subject if isinstance(subject, Randomizer) else source
    if not isinstance(table, Randomizer):
        raise InvalidInput(
            f"a picture needs a mechanism, a Randomizer or additive noise, not a {type(subject).__name__}"
        )
    return table.without_unused_outputs()


def _rounded_noise(subject: Additive, labels: ArrayLike | None) -> Randomizer:
    if labels is None:
        raise InvalidInput(f"{type(subject).__name__} takes every label of an interval: pass labels, those to draw")
    rows = np.unique(checked_values(labels, "labels"))
    if subject.clip is not None:
        low, high = subject.clip.low, subject.clip.high
    else:
        reach = TAILS * math.sqrt(subject.noise.variance) * subject.unit
        low, high = float(rows[0]) - reach, float(rows[-1]) + reach
    return subject.discretised(rows, np.linspace(low, high, FINE))


def problem_of(subject: object) -> Problem:
    """Return the problem that a mechanism answers."""
    if not isinstance(subject, Mechanism):
        raise InvalidInput(f"this picture shows a prior too: it needs a mechanism, not a {type(subject).__name__}")
    return subject.problem


def has_means(subject: object) -> bool:
    """Whether the outputs are numbers, and not the names of classes."""
    problem = getattr(subject, "problem", None)
    return not (isinstance(problem, Problem) and problem.loss == losses.zero_one)


def counted(count: int, noun: str) -> str:
    """Number and noun, in the singular or the plural.

    Examples
    --------
    >>> counted(1, "label"), counted(10_000, "label")
    ('1 label', '10,000 labels')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
