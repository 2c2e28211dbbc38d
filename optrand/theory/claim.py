"""Declarations of claims on instances that are one object, see :mod:`optrand.theory.engine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

from optrand.theory import engine
from optrand.theory.engine import Comparison

__all__ = ["Budget", "Stated", "Variant", "claim"]

T = TypeVar("T")


class Budget(Enum):
    """Amount of instances that are tried."""

    QUICK = "quick"
    FULL = "full"

    def pick(self, *, quick: T, full: T) -> T:
        """Return the one of two amounts that this budget buys."""
        return quick if self is Budget.QUICK else full


class Variant:
    """A false or corrected form: its wording, and the printed form called with `changes`, or another one."""

    def __init__(self, wording: str, form: Callable[..., Comparison] | None = None, **changes: Any) -> None:
        self.wording, self.form, self.changes = wording, form, changes


class Stated:
    """A declared claim: called, it is the printed form; its methods declare the other ones."""

    def __init__(self, printed: Callable[..., Comparison], made: engine.Claim) -> None:
        self.printed, self.made = printed, made

    def __call__(self, instance: Any, **changes: Any) -> Comparison:
        """Compare the two sides as printed, or with other arguments than the printed ones."""
        return self.printed(instance, **changes)

    def false(self, form: Callable[[Any], Comparison]) -> Callable[[Any], Comparison]:
        """Declare the false variant."""
        self.made.refute(_wording(form), lambda instance: form(instance))
        return form

    def corrected(self, form: Callable[[Any], Comparison]) -> Callable[[Any], Comparison]:
        """Declare the corrected form."""
        self.made.correct(_wording(form), lambda instance: form(instance))
        return form


def claim(
    *name: str,
    on: Callable[[Budget], Iterable[Any]],
    given: str,
    quantifier: str = "",
    false: Variant | None = None,
    corrected: Variant | None = None,
    **_: Any,
) -> Callable[[Callable[..., Comparison]], Stated]:
    """Declare a claim by the function that states it as printed."""

    def space(times: int) -> Iterable[dict[str, Any]]:
        return ({"instance": each} for each in on(Budget.FULL if times > 1 else Budget.QUICK))

    def declare(printed: Callable[..., Comparison]) -> Stated:
        def compare(instance: Any) -> Comparison:
            return printed(instance)

        compare.__doc__ = printed.__doc__
        made = engine.claim(" ".join(name), space, given=given, undecided=quantifier)(compare)
        for variant, add in ((corrected, made.correct), (false, made.refute)):
            if variant is not None:
                form = variant.form or printed
                add(variant.wording, lambda instance, form=form, v=variant: form(instance, **v.changes))
        return Stated(printed, made)

    return declare


def _wording(form: Callable[..., Comparison]) -> str:
    return " ".join((form.__doc__ or "").split("\n\n")[0].split())
