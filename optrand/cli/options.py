"""Options that commands share, read by :mod:`optrand.release.decimals`: typer's own types take ``1_0`` for 10."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from optrand.base.validation import epsilon as checked_epsilon
from optrand.errors import InvalidInput
from optrand.release.decimals import number, whole

__all__ = [
    "BiasPenalty",
    "Epsilon",
    "Force",
    "Labels",
    "Outputs",
    "Prior",
    "Saved",
    "read_epsilon",
    "read_gap",
    "read_penalty",
    "read_several",
]

LABEL_FORMS = "LOW:HIGH[:STEP] with both ends in, a list such as 1,2.5,7, or @FILE."

MAX_NUMBERS = 10_000
"""A longer range is more likely a step where the number of steps belongs."""

Labels = Annotated[str, typer.Option("--labels", metavar="SET", help=f"The declared set of labels: {LABEL_FORMS}")]
Epsilon = Annotated[str, typer.Option("--epsilon", metavar="NATS", help="The privacy budget, above 0 and at most 700.")]
Prior = Annotated[
    Path, typer.Option("--prior", metavar="FILE", help="Two columns: label, count or probability. Taken as PUBLIC.")
]
Outputs = Annotated[
    str,
    typer.Option(
        "--outputs",
        metavar="SET",
        help="Where outputs may lie: line, interval:LOW:HIGH, or grid:N, evenly spaced as debiased randomized "
        "response would spread them.",
    ),
]
BiasPenalty = Annotated[
    str,
    typer.Option(
        "--bias-penalty",
        metavar="PENALTY",
        help="What half a squared bias costs, beside half a squared error: from 0 (no care for bias) to inf (no bias).",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Saved = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved mechanism, or the record of a release, OUT.release.json.")
]


def read_epsilon(text: str, name: str = "--epsilon") -> float:
    """A privacy budget."""
    return checked_epsilon(number(text, name, "a number above 0 (nats)"), name)


def read_penalty(text: str, name: str = "--bias-penalty") -> float:
    """A bias penalty."""
    expected = "a number from 0 to inf"
    penalty = math.inf if text == "inf" else number(text, name, expected)
    if penalty < 0:
        raise InvalidInput(f"{name} is {text!r}, expected {expected}")
    return penalty + 0.0


def read_gap(text: str, name: str = "--gap") -> float:
    """A relative gap."""
    expected = "a share of at least 0, such as 1e-6"
    gap = number(text, name, expected)
    if gap < 0:
        raise InvalidInput(f"{name} is {text!r}, expected {expected}")
    return gap


def read_several(text: str, name: str, one: Callable[[str, str], float]) -> list[float]:
    """Numbers separated by commas, each read by `one`, and ranges ``LOW:HIGH:N`` of `N` evenly spaced ones.

    Raises
    ------
    InvalidInput
        Something that `one` refuses, or a range of another form.

    Examples
    --------
    >>> read_several("0,1:3:5,inf", "--bias-penalty", read_penalty)
    [0.0, 1.0, 1.5, 2.0, 2.5, 3.0, inf]
    """
    found: list[float] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == 1:
            found.append(one(part, name))
            continue
        count = whole(ends[2]) if len(ends) == 3 else None
        if count is None or not 2 <= count <= MAX_NUMBERS:
            raise InvalidInput(f"{name} holds {part!r}, expected LOW:HIGH:N with a whole N from 2 to {MAX_NUMBERS}")
        low, high = (one(end, name) for end in ends[:2])
        if not low < high < math.inf:
            raise InvalidInput(f"{name} holds {part!r}, expected a finite range that runs upwards")
        found += [low + (high - low) * i / (count - 1) for i in range(count - 1)] + [high]
    return found
