"""Page of a release by groups: what it spent in all, and the certificate of every mechanism that drew labels."""

from __future__ import annotations

from collections.abc import Mapping

from optrand.base.numerals import shown_above
from optrand.certificates.certificate import certify
from optrand.mechanism.mechanism import Mechanism
from optrand.plotting.groups import groups_figure, pooled
from optrand.plotting.report import facts
from optrand.plotting.report.document import FactTable, Section, Verdict, document, drawn
from optrand.plotting.report.page import labels_table
from optrand.plotting.subject import counted
from optrand.sampling.priors import BudgetSplit

__all__ = ["group_report_page"]

NEIGHBOURS = (
    "Neighbouring tables differ in one label, which is in one group: the priors of all groups cost as much as one. "
    "Groups are public, and were not computed from labels."
)


def group_report_page(
    mechanisms: Mapping[str, Mechanism], parts: BudgetSplit, *, relative_loss: float | None = None
) -> str:
    """Page of a release by groups, a whole HTML document of the form of :func:`.report_page`.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By their groups, such as :attr:`.ReleaseRecord.mechanisms`.
    parts : BudgetSplit
        Budgets of all priors and of the labels.
    relative_loss : float, optional
        Expected objective, as a share of that of one randomizer for all rows.

    Examples
    --------
    >>> from optrand import rr
    >>> table = rr([0, 1], 1.0)
    >>> page = group_report_page({"a": table, "b": table}, BudgetSplit(0.05, 1.0))
    >>> page.count("<img"), page.count("<h2")
    (1, 3)
    """
    distinct = [(one, names, certify(one)) for one, names in pooled(mechanisms)]
    title = f"A release by {counted(len(mechanisms), 'group')} at a total of ε = {shown_above(parts.total, 6)}"
    budget = [
        ("Total ε", f"{parts.total!r} nats: priors {parts.prior!r}, labels {parts.labels!r}"),
        ("Mechanisms", f"{len(distinct)} for {counted(len(mechanisms), 'group')}; a row is in one group alone"),
    ]
    if relative_loss is not None:
        budget.append(("Objective", f"{shown_above(relative_loss, 4)} of that of one randomizer for all rows"))
    meaning = (
        "A row for each mechanism, with the groups whose labels it drew: the prior that it was made for, estimated "
        "privately, and the noise that it adds to each label."
    )
    figure = groups_figure(mechanisms, total=parts.total)
    picture = drawn(figure, name="groups", heading="", meaning=meaning, told=figure.get_suptitle())
    sections = [Section("budget", "Groups and budget", facts=FactTable("What was spent", budget), pictures=[picture])]
    for place, (mechanism, names, proof) in enumerate(distinct):
        asked = FactTable("What was asked, and what is proven", facts.certificate_facts(mechanism, proof))
        heading, verdict = f"Mechanism {place + 1}: {', '.join(names)}", Verdict(*facts.verdict(proof))
        numbers = labels_table(mechanism)
        sections.append(Section(f"mechanism-{place}", heading, verdict, asked, numbers=numbers))
    sections.append(Section("meaning", "What it means", sentences=[NEIGHBOURS]))
    return document(title, sections)
