"""A claim of a paper: its statement, its hypothesis, where it is tried, and a false variant of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

from optrand.theory.comparison import Comparison

__all__ = ["Budget", "Claim", "Form", "Stated", "Variant", "claim", "plain", "words"]

T = TypeVar("T")

Form = Callable[[Any], Comparison]
"""One wording of a claim: what it says of an instance. The first paragraph of its docstring is the wording."""


class Budget(Enum):
    """Amount of instances that are tried."""

    QUICK = "quick"
    FULL = "full"

    def pick(self, *, quick: T, full: T) -> T:
        """The one of two amounts that this budget buys."""
        return quick if self is Budget.QUICK else full


@dataclass(frozen=True)
class Claim:
    """One claim, or one part of a claim, as something that can be tried.

    Its `instances`, of a budget, are the same each time, small ones first; the text of one is enough to rebuild it. A
    form tells what the claim says of one: as `printed`, in a deliberately `false` variant, which a check must refute,
    and as `corrected`, where the printed form has a slip. Its `sides` are the quantities that a form compares, left and
    right, as the axes of a picture name them. A `quantifier` is what no finite computation settles, such as an unnamed
    constant. It `needs` extras of the package.
    """

    paper: str
    number: str
    hypothesis: str
    instances: Callable[[Budget], Iterable[Any]]
    printed: Form
    false: Form
    corrected: Form | None = None
    part: str = ""
    sides: tuple[str, str] = ("left side of the claim", "right side of the claim")
    quantifier: str = ""
    needs: tuple[str, ...] = ()
    kind: Literal["numbered", "text", "ours"] = "numbered"

    @property
    def name(self) -> str:
        """``B23 Lemma 8``, or ``G21 Theorem 9: variance``."""
        return f"{self.paper} {self.number}" + (f": {self.part}" if self.part else "")

    @property
    def key(self) -> str:
        """The name in lower case with hyphens, for files and the command line: ``b23-lemma-8``."""
        return plain(self.name).replace(" ", "-")

    @property
    def statement(self) -> str:
        """The claim in the package's own words."""
        return words(self.printed)

    @property
    def decidable(self) -> bool:
        """Whether the instances settle it, as far as instances can."""
        return not self.quantifier


class Variant:
    """A false or corrected form: its wording, and the printed form called with `changes`, or another one."""

    def __init__(self, wording: str, form: Form | None = None, **changes: Any) -> None:
        self.wording, self.form, self.changes = wording, form, changes


class Stated(Generic[T]):
    """A declared claim: called, it is the printed form; its methods declare the other ones."""

    declared: ClassVar[list[Stated[Any]]] = []

    def __init__(self, printed: Callable[..., Comparison], **facts: Any) -> None:
        self.printed, self.facts = printed, facts
        for name, fact in facts.items():
            if isinstance(fact, Variant):
                facts[name] = partial(fact.form or printed, **fact.changes)
                facts[name].__doc__ = fact.wording
        self.declared.append(self)

    def __call__(self, instance: T, **changes: Any) -> Comparison:
        """Compare the two sides as printed, or with other arguments than the printed ones."""
        return self.printed(instance, **changes)

    def false(self, form: Callable[[T], Comparison]) -> Callable[[T], Comparison]:
        """Declare the false variant."""
        self.facts["false"] = form
        return form

    def corrected(self, form: Callable[[T], Comparison]) -> Callable[[T], Comparison]:
        """Declare the corrected form."""
        self.facts["corrected"] = form
        return form

    @property
    def claim(self) -> Claim:
        """The claim with all its forms."""
        return Claim(printed=self.printed, **self.facts)


def claim(
    *name: str, on: Callable[[Budget], Iterable[T]], given: str, **facts: Any
) -> Callable[[Callable[[T], Comparison]], Stated[T]]:
    """Declare a claim by the function that states it as printed.

    Its name is ``"G21 Theorem 9: variance"``, or ``"G21", "Theorem 9: variance"``. It is tried `on` its instances,
    `given` its hypothesis; further facts are those of :class:`Claim`, `false` and `corrected` being a :class:`Variant`,
    `sides` the names of the two quantities, and the `kind` by default what the number tells: that of an equation, a
    section or an appendix is ``"text"``.

    Examples
    --------
    >>> @claim("B23 Lemma 99", on=lambda _: range(1, 6), given="integers", false=Variant("Twice too.", factor=2))
    ... def squares(number: int, factor: int = 1) -> Comparison:
    ...     '''No number is larger than its square.'''
    ...     return Comparison(factor * number, number**2)
    >>> squares(3).holds, squares.claim.false(1).holds, words(squares.claim.false)
    (True, False, 'Twice too.')
    """
    paper, _, rest = " ".join(name).partition(" ")
    number, _, part = rest.partition(": ")
    kind = "text" if number.startswith(("Equation", "Section", "Appendix")) else "numbered"
    whole = {"paper": paper, "number": number, "part": part, "hypothesis": given, "instances": on, "kind": kind} | facts
    return lambda printed: Stated(printed, **whole)


def plain(name: str) -> str:
    """A name without capitals and signs."""
    return re.sub(r"[^a-z0-9.]+", " ", name.lower()).strip()


def words(form: Form) -> str:
    """The first paragraph of a form's docstring, on one line."""
    if form.__doc__ is None:
        return "(The wording is a docstring, which Python drops under -OO.)"
    return " ".join(inspect.cleandoc(form.__doc__).split("\n\n")[0].split())
