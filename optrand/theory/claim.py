"""Declarations of claims on instances that are one object, see :mod:`optrand.theory.engine`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
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
        self.made.false = engine.Form(_wording(form), form, None)
        return form

    def corrected(self, form: Callable[[Any], Comparison]) -> Callable[[Any], Comparison]:
        """Declare the corrected form."""
        self.made.corrected = engine.Form(_wording(form), form, None)
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

    def declare(printed: Callable[..., Comparison]) -> Stated:
        forms = {"printed": engine.Form(_wording(printed), printed, None)}
        for kind, variant in (("corrected", corrected), ("false", false)):
            if variant is not None:
                forms[kind] = engine.Form(variant.wording, partial(variant.form or printed, **variant.changes), None)
        spaces = (lambda times: on(Budget.FULL if times > 1 else Budget.QUICK),)
        return Stated(printed, engine.Claim(" ".join(name), spaces, given, quantifier, forms))

    return declare


def _wording(form: Callable[..., Comparison]) -> str:
    return " ".join((form.__doc__ or "").split("\n\n")[0].split())
