"""Report: one page with a mechanism's certificate, budget and pictures, for people who do not run Python."""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import cache
from types import MappingProxyType

import numpy as np
from matplotlib.figure import FigureBase

from optrand import losses
from optrand.base.arithmetic import float_above
from optrand.base.numerals import shown_above, shown_below, shown_spent
from optrand.certificates.certificate import Certificate, certify
from optrand.errors import missing_extra
from optrand.mechanism.mechanism import Mechanism
from optrand.model.outputs import in_words
from optrand.model.problem import Problem
from optrand.plotting._style import LIMITS, above, number_texts, spread, write_count
from optrand.plotting._table import chances_to_keep
from optrand.plotting.randomizer import find_distinct, groups_figure
from optrand.plotting.saving import DRAWINGS, draw, render, whole_figure
from optrand.sampling.priors import BudgetSplit
from optrand.studies.paths import count_outputs

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined, Template
except ModuleNotFoundError as error:
    raise missing_extra(error) or error from error

__all__ = ["group_report_page", "report_page"]

LOSSES = {
    "squared": "half the mean squared error",
    "absolute": "the mean absolute error",
    "poisson_log": "the mean Poisson log loss",
    "zero_one": "the probability that the output is the label (the higher the better)",
}

TRUST = (
    "Nobody needs to trust this page, or the solver. Either command proves it again from the file; the second shares "
    "no code with the first."
)

NEIGHBOURS = (
    "Neighbouring tables differ in one label, which is in one group: the priors of all groups cost as much as one. "
    "Groups are public, and were not computed from labels."
)

WORDS = MappingProxyType(
    {
        "pmf": (
            "The possible outputs of each label",
            "One panel per label: a stem for every output, or the density of many, as high as its probability. The "
            "dotted line stands at the label itself, the triangle, which classes do not have, at the mean of its "
            "output.",
        ),
        "matrix": (
            "The table, and its staircase signature",
            "A row for every label, a column for every output, dark if likely. Inside the outline are the entries that "
            "are the highest of their output: no two of one output differ by a factor of more than exp(ε).",
        ),
        "joint": (
            "Joint distribution of labels and outputs",
            "How likely each pair of a label and a released number is when labels follow the prior. Above and beside "
            "it are the distributions of either.",
        ),
        "flow": (
            "The flow of probability",
            "Every output favours the labels under one arc, by a factor of exp(ε). Arcs are as wide as their mass, and "
            "as dark as their output is high.",
        ),
        "phases": (
            "A public random number, then a private bin",
            "A number that everybody may know is drawn first. It cuts the labels into bins, the bands between the "
            "lines. Each bin has an output, the bar of its own shade: that of the label's own bin is exp(ε) times as "
            "likely as each other one.",
        ),
        "dual": (
            "The proof, drawn",
            "The cost of the best private column at each output. The curve is nowhere further below zero than its "
            "title states, and that bounds how much less anything else that is private can lose; it touches zero "
            "where a mechanism that is the best of all has its outputs.",
        ),
    }
)
"""Headings of the pictures, and their meanings, which also stand for a picture that cannot be seen."""

Facts = list[tuple[str, str]]


@dataclass(frozen=True)
class Numbers:
    """Table of numbers in columns; the first cell of a row is its name."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """Picture with an id, words above and below it, and a text to be read aloud; or the reason why it is missing.

    `source` is a ``data:`` address, `width` the largest width in inches.
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
    """Part of a page under a heading of its own, in the order of its fields.

    `verdict` is whether all guarantees are proven, with a sentence about it; `caption` is that of the facts.
    """

    anchor: str
    heading: str
    verdict: tuple[bool, str] | None = None
    caption: str = ""
    facts: Sequence[tuple[str, str]] = ()
    sentences: Sequence[str] = ()
    commands: str = ""
    numbers: Numbers | None = None
    pictures: Sequence[Picture] = ()


# Pages


def report_page(
    mechanism: Mechanism,
    certificate: Certificate,
    *,
    name: str = "mechanism.json",
    parts: BudgetSplit | None = None,
) -> str:
    """Write the page of one mechanism, a whole HTML document: certificate, budget, labels and pictures.

    It has no scripts and no references to anything outside it, and equal mechanisms give equal pages. A picture that a
    mechanism does not have is replaced by the reason.

    Parameters
    ----------
    mechanism : Mechanism
    certificate : Certificate
        Certificate of this mechanism: :func:`optrand.certify`.
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
    ('<!DOCTYPE html>', 6, False)
    """
    labels = write_count(mechanism.labels.size, "label")
    title = f"A mechanism for {labels} at ε = {mechanism.epsilon:g}"
    if parts is not None:
        title = f"A release of {labels} at a total of ε = {shown_above(parts.total, 6)}"
    sections = [
        Section(
            "certificate",
            "Certificate",
            caption="The problem, and the proven facts of its answer",
            facts=certificate_facts(mechanism, certificate),
            sentences=[TRUST],
            commands=_commands(name),
        ),
        Section(
            "budget",
            "Budget",
            caption="The requested budget, and the realised one",
            facts=budget_facts(mechanism, parts),
            sentences=budget_sentences(mechanism, parts),
        ),
        Section("labels", "Labels", numbers=label_numbers(mechanism)),
        Section("pictures", "Pictures", pictures=[_picture(name, mechanism) for name in DRAWINGS]),
    ]
    return _document(title, sections, verdict(certificate))


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
    distinct = [(one, names, certify(one)) for one, names in find_distinct(mechanisms)]
    title = f"A release by {write_count(len(mechanisms), 'group')} at a total of ε = {shown_above(parts.total, 6)}"
    budget = [
        ("Total ε", f"{parts.total!r} nats: priors {parts.prior!r}, labels {parts.labels!r}"),
        ("Mechanisms", f"{len(distinct)} for {write_count(len(mechanisms), 'group')}; a row is in one group alone"),
    ]
    if relative_loss is not None:
        budget.append(("Objective", f"{shown_above(relative_loss, 4)} of that of one randomizer for all rows"))
    meaning = (
        "A row for each mechanism, with the groups whose labels it drew: the prior that it was made for, estimated "
        "privately, and the noise that it adds to each label."
    )
    figure = groups_figure(mechanisms, total=parts.total)
    picture = Picture("groups", "", meaning, f"{figure.get_suptitle()}. {meaning}", *_embed(figure))
    sections = [
        Section("budget", "Groups and budget", caption="The budget that was spent", facts=budget, pictures=[picture])
    ]
    for place, (mechanism, names, proof) in enumerate(distinct):
        sections.append(
            Section(
                f"mechanism-{place}",
                f"Mechanism {place + 1}: {', '.join(names)}",
                verdict(proof),
                caption="The problem, and the proven facts of its answer",
                facts=certificate_facts(mechanism, proof),
                numbers=label_numbers(mechanism),
            )
        )
    sections.append(Section("meaning", "Meaning", sentences=[NEIGHBOURS]))
    return _document(title, sections)


@cache
def _template() -> Template:
    loader = PackageLoader("optrand.plotting", "")
    return Environment(autoescape=True, loader=loader, undefined=StrictUndefined).get_template("template.html")


def _document(title: str, sections: Sequence[Section], first: tuple[bool, str] | None = None) -> str:
    """Write the document of a title, a verdict below it, and sections; all text is escaped."""
    return _template().render(title=title, sections=sections, first=first) + "\n"


def _commands(name: str) -> str:
    # The name of a file may hold octets that are not text. If it began with a dash, it would be read as an option.
    shown_name = name.encode(errors="replace").decode()
    file = shlex.quote(f"./{shown_name}" if shown_name.startswith("-") else shown_name)
    return f"optrand verify {file}\npython -m optrand.checker {file}"


def _picture(name: str, mechanism: Mechanism) -> Picture:
    """Draw one picture of a mechanism, or give the reason why it is missing."""
    heading, meaning = WORDS[name]
    drawn = draw(name, mechanism)
    if isinstance(drawn, str):
        return Picture(name, heading, meaning, reason=drawn)
    text = f"{heading}: {' '.join(drawn.get_suptitle().split())}. {meaning}"
    return Picture(name, heading, meaning, text, *_embed(drawn))


def _embed(figure: FigureBase) -> tuple[str, float]:
    """Return the address of a figure in vectors, equal for equal figures, and its width in inches."""
    source = "data:image/svg+xml;base64," + base64.b64encode(render(figure, ".svg")).decode()
    return source, float(whole_figure(figure).get_figwidth())


# Facts, as text that is yet to be escaped


def verdict(proof: Certificate) -> tuple[bool, str]:
    """Return whether all guarantees are proven, and a sentence about it.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0)
    >>> ok, sentence = verdict(optrand.certify(optrand.solve(problem)))
    >>> ok, sentence[:31]
    (True, 'Verified: private and feasible,')
    """
    if proof.findings:
        return False, f"Not certified: {'; '.join(proof.findings)}."
    if not math.isfinite(proof.gap):
        return False, "Verified: private and feasible. How close to the best it is was not proven."
    best = "none is better" if proof.gap == 0 else f"none is better by more than a share of {above(proof.gap, 2)}"
    return True, f"Verified: private and feasible, and of all private mechanisms that answer this question {best}."


def certificate_facts(mechanism: Mechanism, proof: Certificate) -> Facts:
    """Return the facts of the problem, and of the certificate of the answer."""
    problem = mechanism.problem
    proven = math.isfinite(proof.gap)
    optimum = f"between {shown_below(proof.lower)} and {shown_above(proof.upper)}" if proven else "no range was proven"
    found = [
        ("Labels", f"{problem.k:,}, from {problem.labels[0]:g} to {problem.labels[-1]:g}"),
        ("Outputs", f"{mechanism.n:,}, {in_words(problem.outputs)}{_drawn_as(mechanism)}"),
        ("Objective", _objective(problem)),
        ("Optimal value", optimum),
        ("Gap", f"at most {above(proof.gap, 2)} of the value" if proven else "unknown"),
        ("Arithmetic", "exact, every rounding in the safe direction"),
        ("Digest", mechanism.digest),
    ]
    if problem.loss != losses.zero_one:
        found.insert(-2, ("Largest bias", f"at most {above(proof.bias, 2)}, in units of the labels"))
    return found


def _drawn_as(mechanism: Mechanism) -> str:
    """Return how many outputs the pictures show, if these are fewer."""
    count = count_outputs(mechanism)
    return "" if count == mechanism.n else f"; {count:,} in the pictures, where two neighbouring floats are one"


def _objective(problem: Problem) -> str:
    loss = LOSSES.get(problem.loss.name, f"the mean {problem.loss.name} loss")
    if problem.unbiased:
        return f"{loss}, of all mechanisms without bias"
    if problem.bias_penalty:
        return f"{loss}, and {problem.bias_penalty / 2:g} times the mean squared bias"
    return loss


def budget_facts(mechanism: Mechanism, parts: BudgetSplit | None = None) -> Facts:
    """Return the budget, stated and verified: of the mechanism, and of the whole release if its parts are known."""
    ratio = mechanism.realised_ratio
    digits = Context(prec=20, rounding=ROUND_CEILING).divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    spent = shown_spent(mechanism.realised_epsilon, mechanism.epsilon)
    found = [
        ("ε requested", f"{mechanism.epsilon!r} nats"),
        ("ε realised", f"{spent} nats, rounded up; verified in integers"),
        ("Largest ratio", f"{digits}, rounded up: of two labels, how much likelier one of them makes an output"),
        ("δ", "0: the promise has no exceptions"),
    ]
    if parts is not None:
        found.insert(0, ("Total ε", f"{parts.total!r} nats: prior {parts.prior!r}, labels {parts.labels!r}"))
    return found


def budget_sentences(mechanism: Mechanism, parts: BudgetSplit | None = None) -> Sequence[str]:
    """Return the meaning of the budget for somebody whose label is released, and for whoever releases it."""
    ratio = mechanism.realised_ratio
    likely = math.ceil(1000 * ratio / (1 + ratio)) / 1000
    return (
        "Whatever anybody knows beforehand, one released number changes the odds between any two labels of a person by "
        f"a factor of at most {above(float_above(ratio), 4)}. A probability of one half becomes at most {likely:.1%} "
        f"and at least {1 - likely:.1%}.",
        "Every further release of the same label spends the budget again: the factors multiply, the epsilons add up.",
        "This is the budget of the mechanism alone. If its prior was computed from the private labels themselves, the "
        "budget of the prior must be added; the file does not record the origin of its prior."
        if parts is None
        else f"These factors are the mechanism's. With the prior the release has spent {parts.total!r} nats in all.",
        "Privacy is that of the label. Whatever else is known or released about a person is outside this promise.",
    )


def label_numbers(mechanism: Mechanism) -> Numbers:
    """Return a table with one row per label, or for some labels, evenly spread."""
    problem, channel = mechanism.problem, mechanism.randomizer
    rows = spread(problem.k, LIMITS.listed)
    caption = write_count(problem.k, "label")
    if rows.size < problem.k:
        caption = f"{rows.size} of {problem.k:,} labels, evenly spread"
    names = number_texts(problem.labels[rows])
    shares = [f"{share:.4g}" for share in problem.prior[rows]]
    if problem.loss == losses.zero_one:
        chances = [f"{chance:.4g}" for chance in chances_to_keep(channel)[rows]]
        return Numbers(caption, ["Label", "Prior", "Kept with probability"], _typeset(names, shares, chances))
    # Round to a billionth of the outputs' size, so that float residues of zero vanish.
    unit = 10.0 ** math.floor(math.log10(float(np.abs(channel.outputs).max()) or 1.0) - 9)
    means = [f"{round(mean / unit) * unit:.10g}" for mean in channel.means[rows].tolist()]
    deviations = [f"{deviation:.6g}" for deviation in np.sqrt(channel.variances[rows])]
    headings = ["Label", "Prior", "Mean output", "Standard deviation"]
    return Numbers(caption, headings, _typeset(names, shares, means, deviations))


def _typeset(*columns: Sequence[str]) -> list[list[str]]:
    return [[cell.replace("-", "\N{MINUS SIGN}") for cell in row] for row in zip(*columns, strict=True)]
