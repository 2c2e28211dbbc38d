"""Comparisons of several things at once, for claims on instances that are one object."""

from __future__ import annotations

from dataclasses import replace

from optrand.theory.engine import Comparison, Number, at_most, equal

__all__ = ["Comparison", "Number", "at_most", "equal", "none", "worst"]


def none(found: int) -> Comparison:
    """The claim that nothing was found of what is claimed not to exist."""
    return Comparison(found, 0)


def worst(*comparisons: Comparison) -> Comparison:
    """Of several things that a claim says of one instance, the one that fails, or comes nearest to it."""
    least = min(comparisons, key=lambda each: (each.holds, each.margin + each.tolerance))
    return replace(least, exact=all(each.exact for each in comparisons))
