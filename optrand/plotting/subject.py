"""Subjects of pictures: the randomizer to draw, and words for it."""

from __future__ import annotations

from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import HasRandomizer
from optrand.model import losses
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["HasRandomizer", "counted", "drawn_table", "has_means", "problem_of"]


def drawn_table(subject: Randomizer | HasRandomizer) -> Randomizer:
    """Randomizer to draw, without the outputs that never occur, and columns split between floats as one."""
    source = subject.design if isinstance(subject, Mechanism) else getattr(subject, "randomizer", None)
    table = subject if isinstance(subject, Randomizer) else source
    if not isinstance(table, Randomizer):
        raise InvalidInput(
            f"a picture needs a Randomizer, or a mechanism or solution that has one, not a {type(subject).__name__}"
        )
    return table.without_unused_outputs()


def problem_of(subject: object) -> Problem:
    """Problem that a subject answers."""
    problem = getattr(subject, "problem", None)
    if not isinstance(problem, Problem):
        raise InvalidInput(
            f"this picture shows a prior too: it needs a mechanism or a solution, not a {type(subject).__name__}"
        )
    return problem


def has_means(subject: Randomizer | HasRandomizer) -> bool:
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
