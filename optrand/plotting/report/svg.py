"""Figures as pieces of a page: SVG that shares nothing with other figures and refers to nothing outside."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib
from matplotlib.figure import FigureBase

from optrand.plotting.saving import whole_figure
from optrand.plotting.style import STYLE

__all__ = ["STROKES", "inline_svg"]

STROKES = "stroke-linejoin: round; stroke-linecap: butt;"
"""Matplotlib's style of strokes, which each figure would otherwise state for the whole page."""

LEFT_OUT = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->|<style[^>]*>.*?</style>", re.DOTALL)
OPENING = re.compile(r'<svg [^>]*?viewBox="(?P<box>[^"]*)"[^>]*>', re.DOTALL)


def inline_svg(figure: FigureBase, *, name: str, title: str, text: str) -> str:
    """Figure as an ``svg`` element of an HTML page, as wide as the page allows, without fonts; equal for equal figures.

    Parameters
    ----------
    figure : Figure, or the part of one, which is then drawn whole
    name : str
        Prefix of every id, unique on a page.
    title, text : str
        Name and description, for readers who do not see the figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> svg = inline_svg(Figure(figsize=(1, 1)), name="empty", title="Nothing", text="An empty square & no more.")
    >>> print(svg[: svg.index("</desc>")].split("<title", 1)[1])
     id="empty-title">Nothing</title>
    <desc id="empty-text">An empty square &amp; no more.
    """
    whole, picture = whole_figure(figure), io.StringIO()
    with matplotlib.rc_context(STYLE):
        whole.savefig(picture, format="svg", metadata={"Date": None})
    drawn = LEFT_OUT.sub("", picture.getvalue())
    opening = OPENING.search(drawn)
    if opening is None:  # pragma: no cover
        raise RuntimeError("matplotlib wrote an SVG of an unknown form")
    inside = drawn[opening.end() : drawn.rindex("</svg>")]
    inside = re.sub(r'\bid="', f'id="{name}-', inside)
    inside = re.sub(r'href="#', f'href="#{name}-', inside).replace("url(#", f"url(#{name}-")
    return (
        f'<svg role="img" viewBox="{opening["box"]}" style="max-width: {whole.get_figwidth():g}in" '
        f'aria-labelledby="{name}-title" aria-describedby="{name}-text">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-text">{escape(text)}</desc>{inside}</svg>'
    )
