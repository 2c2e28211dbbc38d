"""A numbered claim of a paper: its statement, its hypothesis, where it is tried, and a false variant of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from optrand.theory.comparison import Comparison

__all__ = ["Budget", "Claim", "Form", "words"]

T = TypeVar("T")

Form = Callable[[Any], Comparison]
"""One wording of a claim: what it says of an instance. The first paragraph of its docstring is the wording."""


class Budget(Enum):
    """How much is tried.

    Examples
    --------
    >>> Budget.QUICK.pick(quick=20, full=2_000)
    20
    """

    QUICK = "quick"
    FULL = "full"

    def pick(self, *, quick: T, full: T) -> T:
        """The one of two amounts that this budget buys."""
        return quick if self is Budget.QUICK else full


@dataclass(frozen=True)
class Claim:
    """One claim, or one part of a claim, as something that can be tried.

    Parameters
    ----------
    paper : str
        The key of a paper, such as ``"B23"``.
    number : str
        As printed: ``"Lemma 8"``.
    part : str
        Which part of the claim, in a word or two; empty for a claim that is checked as one.
    hypothesis : str
        What the claim assumes.
    instances : callable
        From a budget to what the claim is tried on, the same each time, small instances first. The text of an instance
        is what a reader needs to rebuild it.
    printed : callable
        From an instance to what the claim, as printed, says of it. The first paragraph of its docstring is the
        statement.
    false : callable
        The same of a deliberately false variant: a check that does not refute it sees nothing.
    corrected : callable, optional
        The same of the claim as it should read, where the printed form has a slip.
    quantifier : str
        What no finite computation settles, such as an unnamed constant; empty for a claim that is decided.
    needs : tuple of str
        Optional dependencies without which it cannot run: names of extras.
    """

    paper: str
    number: str
    hypothesis: str
    instances: Callable[[Budget], Iterable[Any]]
    printed: Form
    false: Form
    corrected: Form | None = None
    part: str = ""
    quantifier: str = ""
    needs: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        """``B23 Lemma 8``, or ``G21 Theorem 9: variance``."""
        return f"{self.paper} {self.number}" + (f": {self.part}" if self.part else "")

    @property
    def key(self) -> str:
        """The name in lower case with hyphens, for files and the command line: ``b23-lemma-8``."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")

    @property
    def statement(self) -> str:
        """What the claim says, in the package's own words."""
        return words(self.printed)

    @property
    def decidable(self) -> bool:
        """Whether the instances settle it, as far as instances can."""
        return not self.quantifier


def words(form: Form) -> str:
    """The first paragraph of a form's docstring, on one line."""
    if form.__doc__ is None:
        return "(The wording is a docstring, which Python drops under -OO.)"
    text = inspect.cleandoc(form.__doc__)
    return " ".join(text.split("\n\n")[0].split())
