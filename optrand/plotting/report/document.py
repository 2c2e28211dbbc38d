"""HTML document of a report, from what it says: one file without network, script or font, which can be read aloud."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import matplotlib
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from matplotlib.figure import FigureBase

from optrand.plotting.saving import whole_figure
from optrand.plotting.style import STYLE

__all__ = ["FactTable", "NumberTable", "Picture", "Section", "Verdict", "document", "drawn"]


@dataclass(frozen=True)
class Verdict:
    """Whether all is proven that can be, and the sentence that says so."""

    proven: bool
    sentence: str


@dataclass(frozen=True)
class FactTable:
    """Facts, each with its name."""

    caption: str
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class NumberTable:
    """Numbers in columns; the first cell of a row is its name."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """Picture with its meaning in words, or the reason why there is none.

    Attributes
    ----------
    name, heading : str
        An id, unique on a page, and what stands above the picture, if anything.
    meaning, text : str
        What stands below it, and what is read aloud in its place.
    source : str
        The picture itself, as a ``data:`` address; none is not drawn.
    width : float
        Inches, at most.
    reason : str
    """

    name: str
    heading: str
    meaning: str
    text: str = ""
    source: str = ""
    width: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class Section:
    """Part of a page under a heading of its own, in the order of its fields."""

    anchor: str
    heading: str
    verdict: Verdict | None = None
    facts: FactTable | None = None
    sentences: Sequence[str] = ()
    commands: str = ""
    numbers: NumberTable | None = None
    pictures: Sequence[Picture] = ()


def drawn(figure: FigureBase, *, name: str, heading: str, meaning: str, told: str) -> Picture:
    """Figure as a picture of a page, in vectors and equal for equal figures.

    Parameters
    ----------
    figure : Figure, or the part of one, which is then drawn whole
    name, heading, meaning : str
        As in :class:`Picture`.
    told : str
        What is shown, in few words, for readers who do not see it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> picture = drawn(Figure(figsize=(1, 1)), name="empty", heading="", meaning="No more.", told="An empty square")
    >>> picture.text, picture.source[:26], picture.width
    ('An empty square. No more.', 'data:image/svg+xml;base64,', 1.0)
    """
    whole, file = whole_figure(figure), io.BytesIO()
    with matplotlib.rc_context(STYLE):
        whole.savefig(file, format="svg", metadata={"Date": None})
    source = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
    return Picture(name, heading, meaning, f"{told}. {meaning}", source, float(whole.get_figwidth()))


@cache
def _template() -> Template:
    loader = PackageLoader("optrand.plotting.report", "")
    return Environment(autoescape=True, loader=loader, undefined=StrictUndefined).get_template("template.html")


def document(title: str, sections: Iterable[Section], *, first: Verdict | None = None) -> str:
    """HTML document of a title, a verdict below it, and sections; all text is escaped.

    Examples
    --------
    >>> page = document("<b>", [Section("a", "A", sentences=["1 & 2"])])
    >>> "<h1>&lt;b&gt;</h1>" in page, "<p>1 &amp; 2</p>" in page
    (True, True)
    """
    return _template().render(title=title, sections=list(sections), first=first) + "\n"
