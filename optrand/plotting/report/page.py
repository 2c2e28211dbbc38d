"""Page of one mechanism: certificate, budget, labels and pictures."""

from __future__ import annotations

import shlex

from optrand.base.numerals import shown_above
from optrand.certificates.certificate import Certificate
from optrand.mechanism.mechanism import Mechanism
from optrand.plotting.report import facts
from optrand.plotting.report.document import FactTable, NumberTable, Picture, Section, Verdict, document, drawn
from optrand.plotting.report.pictures import Shown, shown
from optrand.plotting.subject import counted
from optrand.sampling.priors import BudgetSplit

__all__ = ["labels_table", "report_page"]

TRUST = (
    "Nobody needs to trust this page, or the solver. Either command proves it again from the file; the second shares "
    "no code with the first."
)


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
    >>> mechanism = optrand.solve(problem)
    >>> page = report_page(mechanism, optrand.certify(mechanism))
    >>> page[:15], page.count("<img"), "<script" in page
    ('<!DOCTYPE html>', 7, False)
    """
    labels = counted(mechanism.labels.size, "label")
    title = f"A mechanism for {labels} at ε = {mechanism.epsilon:g}"
    if parts is not None:
        title = f"A release of {labels} at a total of ε = {shown_above(parts.total, 6)}"
    asked = FactTable(
        "What was asked, and what is proven of the answer", facts.certificate_facts(mechanism, certificate)
    )
    spent = FactTable("What was to be spent, and what is", facts.budget_facts(mechanism, parts))
    sections = [
        Section("certificate", "Certificate", facts=asked, sentences=[TRUST], commands=_commands(name)),
        Section("budget", "Budget", facts=spent, sentences=facts.budget_sentences(mechanism, parts)),
        Section("labels", "Labels", numbers=labels_table(mechanism)),
        Section("pictures", "Pictures", pictures=[_picture(entry, mechanism) for entry in shown(mechanism)]),
    ]
    return document(title, sections, first=Verdict(*facts.verdict(certificate)))


def _commands(name: str) -> str:
    # The name of a file may hold octets that are no text; one that begins with a dash would be taken for an option.
    shown_name = name.encode(errors="replace").decode()
    file = shlex.quote(f"./{shown_name}" if shown_name.startswith("-") else shown_name)
    return f"optrand verify {file}\npython -m optrand.checker {file}"


def labels_table(mechanism: Mechanism) -> NumberTable:
    """Table of labels, or of some of them."""
    headings, rows = facts.label_rows(mechanism)
    k = mechanism.labels.size
    which = f"{len(rows)} of {k:,} labels, evenly spread" if len(rows) < k else counted(k, "label")
    return NumberTable(which, headings, rows)


def _picture(entry: Shown, mechanism: Mechanism) -> Picture:
    heading, meaning = entry.words.heading, entry.words.meaning
    if entry.figure is None:
        return Picture(entry.name, heading, meaning, reason=entry.reason)
    size = f"{counted(mechanism.labels.size, 'label')}, {counted(mechanism.n, 'output')}"
    told = " ".join(entry.figure.get_suptitle().split()) or size
    return drawn(entry.figure, name=entry.name, heading=heading, meaning=meaning, told=f"{heading}: {told}")
