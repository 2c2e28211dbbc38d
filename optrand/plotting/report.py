"""Reports: pages with a mechanism's certificate, budget and pictures, for people who do not run Python."""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import FigureBase

from optrand import losses
from optrand.base._arithmetic import float_above
from optrand.base._numerals import format_above, format_below, format_spent
from optrand.certificates._certificate import Certificate, certify
from optrand.errors import missing_extra
from optrand.mechanism._mechanism import Mechanism
from optrand.mechanism._released import Released
from optrand.model._problem import Problem, in_words
from optrand.plotting._releases import find_distinct, groups_figure
from optrand.plotting._saving import DRAWINGS, draw, render
from optrand.plotting._style import LIMITS, above, label_texts, spread, whole_figure, write_count
from optrand.plotting._table import class_names, extract_table, mechanism_in
from optrand.sampling._priors import BudgetSplit

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
except ModuleNotFoundError as error:
    raise missing_extra(error) or error from error

__all__ = ["group_report_page", "report_page"]

Facts = list[tuple[str, str]]


class Numbers(NamedTuple):
    """Table of numbers in columns. The first cell of a row is its name."""

    caption: str
    headings: list[str]
    rows: list[list[str]]


def report_page(subject: Mechanism | Released, certificate: Certificate, *, name: str = "mechanism.json") -> str:
    """Write the page of one mechanism, a whole HTML document: certificate, budget, labels and pictures.

    It has no scripts and no external references, and equal mechanisms have equal pages. A picture that a
    mechanism does not have is replaced by the reason.

    Parameters
    ----------
    subject : Mechanism or ReleaseRecord
        The page of a release also states its total budget, and the names of its classes.
    certificate : Certificate
        Certificate of the mechanism: :func:`optrand.certify`.
    name : str
        File for readers to verify.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], 1.0)
    >>> mechanism = optrand.solve(problem)
    >>> page = report_page(mechanism, optrand.certify(mechanism))
    >>> page[:15], page.count("<img"), "<script" in page
    ('<!DOCTYPE html>', 6, False)
    """
    mechanism: Mechanism = mechanism_in(subject)
    parts: BudgetSplit | None = None if subject is mechanism else subject.parts  # type: ignore[union-attr]
    labels = write_count(mechanism.labels.size, "label")
    title = f"A mechanism for {labels} at ε = {mechanism.epsilon:g}"
    if parts is not None:
        title = f"A release of {labels} at a total of ε = {format_above(parts.total, 6)}"
    return _render(
        title,
        mechanism=_describe(mechanism, certificate, classes=class_names(subject)),
        file=_quote(name),
        budget=budget_facts(mechanism, parts),
        odds=odds(mechanism),
        total=None if parts is None else repr(parts.total),
        pictures=[(name, _picture(draw(name, subject))) for name in DRAWINGS],
    )


def group_report_page(
    mechanisms: Mapping[str, Mechanism], parts: BudgetSplit, *, relative_loss: float | None = None
) -> str:
    """Write the page of a release by groups: its cost, and the certificate of every mechanism that drew labels.

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
    distinct = [_describe(one, certify(one), names) for one, names in find_distinct(mechanisms)]
    title = f"A release by {write_count(len(mechanisms), 'group')} at a total of ε = {format_above(parts.total, 6)}"
    budget = [
        ("Total ε", f"{parts.total!r} nats: priors {parts.prior!r}, labels {parts.labels!r}"),
        ("Mechanisms", f"{len(distinct)} for {write_count(len(mechanisms), 'group')}, and each row is in one group"),
    ]
    if relative_loss is not None:
        budget.append(("Objective", f"{format_above(relative_loss, 4)} of that of one randomizer for all rows"))
    groups = _picture(groups_figure(mechanisms, total=parts.total))
    return _render(title, mechanism=None, mechanisms=distinct, budget=budget, groups=groups)


def _render(title: str, **content: object) -> str:
    """Write the document. All text is escaped."""
    loader = PackageLoader("optrand.plotting", "")
    page = Environment(autoescape=True, loader=loader, undefined=StrictUndefined).get_template("template.html")
    return page.render(title=title, **content) + "\n"


def _describe(
    mechanism: Mechanism, proof: Certificate, groups: Sequence[str] = (), classes: Sequence[str] = ()
) -> dict[str, object]:
    facts, numbers = certificate_facts(mechanism, proof), label_numbers(mechanism, classes)
    return {"verdict": verdict(proof), "facts": facts, "numbers": numbers, "names": groups}


def _quote(name: str) -> str:
    # The name of a file may hold octets that are not text. A name that begins with a dash would be read as an option.
    shown_name = name.encode(errors="replace").decode()
    return shlex.quote(f"./{shown_name}" if shown_name.startswith("-") else shown_name)


def _picture(drawn: FigureBase | str) -> dict[str, object]:
    """Describe a picture in vectors, equal for equal figures, by its `source`, or by the reason why it is missing."""
    if isinstance(drawn, str):
        return {"source": None, "reason": drawn}
    source = "data:image/svg+xml;base64," + base64.b64encode(render(drawn, ".svg")).decode()
    # Width in inches.
    width = float(whole_figure(drawn).get_figwidth())
    return {"source": source, "width": width, "title": " ".join(drawn.get_suptitle().split())}


def verdict(proof: Certificate) -> tuple[bool, str]:
    """Return whether all guarantees are proven, and a sentence about it."""
    if proof.findings:
        return False, f"Not certified: {', and '.join(proof.findings)}."
    if not math.isfinite(proof.gap):
        return False, "Verified: private and feasible. Its distance from the optimum was not proven."
    best = "none is better" if proof.gap == 0 else f"none is better by more than a share of {above(proof.gap, 2)}"
    return True, f"Verified: private and feasible, and of all private mechanisms that answer this question {best}."


def certificate_facts(mechanism: Mechanism, proof: Certificate) -> Facts:
    """Return the facts of the problem, and of the certificate of the answer."""
    problem = mechanism.problem
    proven = math.isfinite(proof.gap)
    optimum = (
        f"between {format_below(proof.lower)} and {format_above(proof.upper)}" if proven else "no range was proven"
    )
    drawn = extract_table(mechanism).n
    merged = f" ({drawn:,} in the pictures, which join neighbouring floats)" if drawn < mechanism.n else ""
    found = [
        ("Labels", f"{problem.k:,}, from {problem.labels[0]:g} to {problem.labels[-1]:g}"),
        ("Outputs", f"{mechanism.n:,}, {in_words(problem.outputs)}{merged}"),
        ("Objective", _objective(problem)),
        ("Optimal value", optimum),
        ("Gap", f"at most {above(proof.gap, 2)} of the value" if proven else "unknown"),
        ("Arithmetic", "exact, every rounding in the safe direction"),
        ("Digest", mechanism.digest),
    ]
    if problem.loss != losses.zero_one:
        found.insert(-2, ("Largest bias", f"at most {above(proof.bias, 2)}, in units of the labels"))
    return found


def _objective(problem: Problem) -> str:
    names = {
        "squared": "half the mean squared error",
        "absolute": "the mean absolute error",
        "poisson_log": "the mean Poisson log loss",
        "zero_one": "the probability that the output is the label (the higher the better)",
    }
    loss = names.get(problem.loss.name, f"the mean {problem.loss.name} loss")
    if problem.unbiased:
        return f"{loss}, of all mechanisms without bias"
    if problem.bias_penalty:
        return f"{loss}, and {problem.bias_penalty / 2:g} times the mean squared bias"
    return loss


def budget_facts(mechanism: Mechanism, parts: BudgetSplit | None = None) -> Facts:
    """Return the budget, stated and verified: of the mechanism, and of the whole release if its parts are known."""
    ratio = format_above(mechanism.realised_ratio, 20)
    spent = format_spent(mechanism.realised_epsilon, mechanism.epsilon)
    found = [
        ("ε requested", f"{mechanism.epsilon!r} nats"),
        ("ε realised", f"{spent} nats, rounded up, verified in integers"),
        ("Largest ratio", f"{ratio}, rounded up, of an output's probabilities under two labels"),
        ("δ", "0: the promise has no exceptions"),
    ]
    if parts is not None:
        found.insert(0, ("Total ε", f"{parts.total!r} nats: prior {parts.prior!r}, labels {parts.labels!r}"))
    return found


def odds(mechanism: Mechanism) -> dict[str, str]:
    """Return by how much one released number changes odds, and a probability of one half, all rounded outward."""
    ratio = mechanism.realised_ratio
    likely = math.ceil(1000 * ratio / (1 + ratio)) / 1000
    return {"factor": above(float_above(ratio), 4), "most": f"{likely:.1%}", "least": f"{1 - likely:.1%}"}


def label_numbers(mechanism: Mechanism, classes: Sequence[str] = ()) -> Numbers:
    """Return a table with one row per label, by its name if it has one, or for some labels, evenly spread."""
    problem, channel = mechanism.problem, mechanism.randomizer
    rows = spread(problem.k, LIMITS.listed)
    caption = write_count(problem.k, "label")
    if rows.size < problem.k:
        caption = f"{rows.size} of {problem.k:,} labels, evenly spread"
    names = label_texts(problem.labels, rows, classes)
    shares = [f"{share:.4g}" for share in problem.prior[rows]]
    if problem.loss == losses.zero_one:
        chances = [f"{chance:.4g}" for chance in np.abs(mechanism.losses(losses.zero_one))[rows]]
        return Numbers(caption, ["Label", "Prior", "Kept with probability"], _typeset(names, shares, chances))
    # Round to a billionth of the outputs' size, so that float residues of zero vanish.
    unit = 10.0 ** math.floor(math.log10(float(np.abs(channel.outputs).max()) or 1.0) - 9)
    means = [f"{round(mean / unit) * unit:.10g}" for mean in channel.means[rows].tolist()]
    deviations = [f"{deviation:.6g}" for deviation in np.sqrt(channel.variances[rows])]
    headings = ["Label", "Prior", "Mean output", "Standard deviation"]
    return Numbers(caption, headings, _typeset(names, shares, means, deviations))


def _typeset(*columns: Sequence[str]) -> list[list[str]]:
    return [[cell.replace("-", "\N{MINUS SIGN}") for cell in row] for row in zip(*columns, strict=True)]
