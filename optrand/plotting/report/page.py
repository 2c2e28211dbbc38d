"""Page of a report: one file of HTML without network, script or font, which can be read aloud."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from html import escape

from optrand.base.numerals import shown_above
from optrand.certificates.certificate import Certificate
from optrand.mechanism.mechanism import Mechanism
from optrand.plotting.report import facts
from optrand.plotting.report.pictures import Shown, shown
from optrand.plotting.report.svg import STROKES, inline_svg
from optrand.plotting.subject import counted
from optrand.sampling.priors import BudgetSplit

__all__ = ["document", "facts_table", "labels_table", "report_page", "section"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy, by which a browser runs no script and fetches nothing."""

LOOK = f"""
:root {{ color-scheme: light; }}
body {{ margin: 0; background: #fff; color: #1a1a1a; font: 1rem/1.55 system-ui, sans-serif; }}
main {{ max-width: 54rem; margin: 0 auto; padding: 1.5rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: .5rem 0; }}
h2 {{ font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 1px solid #c8c8c8; }}
h3 {{ font-size: 1.05rem; margin: 2rem 0 .25rem; }}
.verdict {{ padding: .6rem 1rem; border-left: .4rem solid #00224e; background: #eef2f7; font-weight: 600; }}
.doubt {{ border-left-style: double; border-left-color: #8a1f11; background: #fbeeec; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; color: #4a4a4a; padding: .25rem 0; }}
th, td {{ padding: .25rem 1.25rem .25rem 0; border-bottom: 1px solid #e2e2e2; vertical-align: top; text-align: left; }}
.numbers th, .numbers td {{ text-align: right; white-space: nowrap; }}
td {{ overflow-wrap: anywhere; }}
figure {{ margin: .5rem 0 1.5rem; break-inside: avoid; }}
figcaption {{ color: #4a4a4a; }}
svg {{ display: block; width: 100%; height: auto; margin: .5rem auto; }}
svg * {{ {STROKES} }}
pre {{ background: #f4f4f4; padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }}
@media print {{ main {{ max-width: none; padding: 0; }} }}
"""


def report_page(
    mechanism: Mechanism,
    certificate: Certificate,
    *,
    name: str = "mechanism.json",
    parts: BudgetSplit | None = None,
) -> str:
    """Page of one mechanism, a whole HTML document: certificate, budget, labels and pictures.

    It has no scripts and no references to anything outside it, and equal mechanisms give equal pages. A picture that a
    mechanism does not have is replaced by the reason.

    Parameters
    ----------
    mechanism : Mechanism
    certificate : Certificate
        Of this mechanism: :func:`optrand.certify`.
    name : str
        File that readers are to verify.
    parts : BudgetSplit, optional
        Budgets of the prior and of the labels of the release that the mechanism drew; the page then states their total.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> mechanism = optrand.tabulate(optrand.solve(problem))
    >>> page = report_page(mechanism, optrand.certify(mechanism))
    >>> page[:15], page.count("<svg"), "<script" in page
    ('<!DOCTYPE html>', 7, False)
    """
    labels = counted(mechanism.labels.size, "label")
    title = f"A mechanism for {labels} at ε = {mechanism.epsilon:g}"
    if parts is not None:
        title = f"A release of {labels} at a total of ε = {shown_above(parts.total, 6)}"
    proven, sentence = facts.verdict(certificate)
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict{"" if proven else " doubt"}">{escape(sentence)}</p>',
        section("certificate", "Certificate", _certificate(mechanism, certificate, name)),
        section("budget", "Budget", _budget(mechanism, parts)),
        section("labels", "Labels", labels_table(mechanism)),
        section("pictures", "Pictures", "\n".join(_picture(entry, mechanism) for entry in shown(mechanism))),
    ]
    return document(title, sections)


def document(title: str, sections: Iterable[str]) -> str:
    """HTML document of a title and sections."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{LOOK}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def section(anchor: str, heading: str, content: str) -> str:
    """Section of a page, its content already HTML."""
    named = f'aria-labelledby="{anchor}-heading"'
    return f'<section id="{anchor}" {named}>\n<h2 id="{anchor}-heading">{escape(heading)}</h2>\n{content}\n</section>'


def _certificate(mechanism: Mechanism, certificate: Certificate, name: str) -> str:
    # The name of a file may hold octets that are no text; one that begins with a dash would be taken for an option.
    shown_name = name.encode(errors="replace").decode()
    file = shlex.quote(f"./{shown_name}" if shown_name.startswith("-") else shown_name)
    commands = f"optrand verify {file}\npython -m optrand.checker {file}"
    return (
        facts_table("What was asked, and what is proven of the answer", facts.certificate_facts(mechanism, certificate))
        + "<p>Nobody needs to trust this page, or the solver. Either command proves it again from the file; the second "
        f"shares no code with the first.</p>\n<pre><code>{escape(commands)}</code></pre>"
    )


def _budget(mechanism: Mechanism, parts: BudgetSplit | None) -> str:
    return facts_table("What was to be spent, and what is", facts.budget_facts(mechanism, parts)) + _paragraphs(
        facts.budget_sentences(mechanism, parts)
    )


def labels_table(mechanism: Mechanism) -> str:
    """Table of labels, or of some of them."""
    headings, rows = facts.label_rows(mechanism)
    k = mechanism.labels.size
    which = f"{len(rows)} of {k:,} labels, evenly spread" if len(rows) < k else counted(k, "label")
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide"><table class="numbers"><caption>{escape(which)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _picture(entry: Shown, mechanism: Mechanism) -> str:
    heading = f'<h3 id="{entry.name}">{escape(entry.words.heading)}</h3>'
    if entry.figure is None:
        return f"{heading}\n<p>Not drawn: {escape(entry.reason)}.</p>"
    told = " ".join(entry.figure.get_suptitle().split())
    size = f"{counted(mechanism.labels.size, 'label')}, {counted(mechanism.n, 'output')}"
    text = f"{told or size}. {entry.words.meaning}"
    drawn = inline_svg(entry.figure, name=entry.name, title=entry.words.heading, text=text)
    return f"{heading}\n<figure>\n{drawn}\n<figcaption>{escape(entry.words.meaning)}</figcaption>\n</figure>"


def facts_table(caption: str, rows: Sequence[tuple[str, str]]) -> str:
    """Table of facts, each with its name."""
    body = "\n".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(fact)}</td></tr>' for name, fact in rows)
    return f"<table><caption>{escape(caption)}</caption>\n<tbody>\n{body}\n</tbody></table>\n"


def _paragraphs(sentences: Iterable[str]) -> str:
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
