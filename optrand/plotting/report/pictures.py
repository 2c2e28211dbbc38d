"""Pictures of a report, those of :mod:`optrand.plotting.gallery`, with their meanings in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from matplotlib.figure import FigureBase

from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.mechanism import Mechanism
from optrand.plotting.gallery import DRAWINGS

__all__ = ["WORDS", "Shown", "Words", "shown"]


@dataclass(frozen=True)
class Words:
    """Heading and meaning of one kind of picture; the meaning stands for a picture that cannot be seen."""

    heading: str
    meaning: str


WORDS = MappingProxyType(
    {
        "pmf": Words(
            "What each label may become",
            "One panel a label: a stem for every output, or a bar for a bin of many, as high as its probability. The "
            "dotted line stands at the label itself, the triangle, which classes do not have, at the mean of what is "
            "released in its place.",
        ),
        "matrix": Words(
            "The table, and its staircase signature",
            "A row for every label, a column for every output. To the left are the probabilities; to the right, which "
            "of them are the highest of their output (U) and which the lowest (L): no two of one output differ by a "
            "factor of more than exp(ε).",
        ),
        "joint": Words(
            "Labels and what is released, together",
            "How likely each pair of a label and a released number is when labels follow the prior. Above and beside "
            "it are the distributions of either.",
        ),
        "flow": Words(
            "The flow of probability",
            "Every output favours the labels under one arc, by a factor of exp(ε). Arcs are as wide as their mass, and "
            "as dark as their output is high.",
        ),
        "paths": Words(
            "A mixture of randomized responses",
            "The same mechanism as strips, each as high as its share. One strip is drawn whatever the label is, and in "
            "it the label's own bin is exp(ε) times as likely to give the output as each other bin.",
        ),
        "phases": Words(
            "Bins and outputs by a public phase",
            "A number that everybody may know, the phase, is drawn first, with the density above. It cuts the labels "
            "into bins, one shade each. To the right are the outputs of these bins, in units of the labels: that of "
            "the label's own bin is exp(ε) times as likely as each other one.",
        ),
        "dual": Words(
            "The proof, drawn",
            "What the best private column at each output would cost. The curve is nowhere further below zero than its "
            "title says, and that bounds how much less anything else that is private can lose; it touches zero where a "
            "mechanism that is the best of all has its outputs.",
        ),
    }
)
"""Words by the names of :data:`optrand.plotting.gallery.DRAWINGS`."""


@dataclass(frozen=True)
class Shown:
    """Picture of one mechanism, or the reason why there is none."""

    name: str
    words: Words
    figure: FigureBase | None
    reason: str = ""


def shown(mechanism: Mechanism) -> Iterator[Shown]:
    """Every picture of a mechanism.

    Examples
    --------
    >>> import optrand
    >>> mechanism = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
    >>> [(entry.name, entry.figure is not None) for entry in shown(mechanism)][:3]
    [('pmf', True), ('matrix', True), ('joint', False)]
    """
    for name, draw in DRAWINGS.items():
        try:
            yield Shown(name, WORDS[name], draw(mechanism))
        except (InvalidInput, NotCertified) as error:
            yield Shown(name, WORDS[name], None, str(error))
