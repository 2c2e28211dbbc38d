"""Facts of a report in words and numbers, as text that is yet to be escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np

from optrand.base.arithmetic import float_above
from optrand.base.numerals import shown_above, shown_below, shown_spent
from optrand.certificates.certificate import Certificate
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import count_outputs
from optrand.model import losses
from optrand.model.outputs import in_words
from optrand.model.problem import Problem
from optrand.plotting.style import above, number_texts, spread
from optrand.sampling.priors import BudgetSplit

__all__ = ["budget_facts", "budget_sentences", "certificate_facts", "label_rows", "verdict"]

ROWS = 21
"""Largest number of labels that are listed."""

LOSSES = {
    "squared": "half the mean squared error",
    "absolute": "the mean absolute error",
    "poisson_log": "the mean Poisson log loss",
    "zero_one": "the probability that the output is the label (the higher the better)",
}

Facts = list[tuple[str, str]]


def verdict(proof: Certificate) -> tuple[bool, str]:
    """Verdict of a certificate, whether all is proven that can be, and its sentence.

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
    """Facts of the problem, and of the certificate of the answer."""
    problem = mechanism.problem
    optimum = (
        f"between {shown_below(proof.lower)} and {shown_above(proof.upper)}"
        if math.isfinite(proof.gap)
        else "no range was proven"
    )
    found = [
        ("Labels", f"{problem.k:,}, from {problem.labels[0]:g} to {problem.labels[-1]:g}"),
        ("Outputs", f"{mechanism.n:,}, {in_words(problem.outputs)}{_drawn_as(mechanism)}"),
        ("Objective", _objective(problem)),
        ("Optimal value", optimum),
        ("Gap", f"at most {above(proof.gap, 2)} of the value" if math.isfinite(proof.gap) else "unknown"),
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
    """Facts of the budget: of the whole release if its parts are known, and of the mechanism, stated and verified."""
    ratio = mechanism.realised_ratio
    digits = Context(prec=20, rounding=ROUND_CEILING).divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    whole = (
        [] if parts is None else [("Total ε", f"{parts.total!r} nats: prior {parts.prior!r}, labels {parts.labels!r}")]
    )
    return [
        *whole,
        ("ε asked for", f"{mechanism.epsilon!r} nats"),
        (
            "ε realised",
            f"{shown_spent(mechanism.realised_epsilon, mechanism.epsilon)} nats, rounded up; verified in integers",
        ),
        ("Largest ratio", f"{digits}, rounded up: of two labels, how much likelier one of them makes an output"),
        ("δ", "0: the promise has no exceptions"),
    ]


def budget_sentences(mechanism: Mechanism, parts: BudgetSplit | None = None) -> Sequence[str]:
    """Meaning of the budget for somebody whose label is released, and for whoever releases it."""
    ratio = mechanism.realised_ratio
    likely = math.ceil(1000 * ratio / (1 + ratio)) / 1000
    return (
        "Whatever anybody knows beforehand, one released number changes the odds between any two labels of a person by "
        f"a factor of at most {above(float_above(ratio), 4)}. What was as likely as not becomes at most {likely:.1%} "
        f"likely, and no less than {1 - likely:.1%}.",
        "Every further release of the same label spends the budget again: the factors multiply, the epsilons add up.",
        "This is the budget of the mechanism alone. If its prior was computed from the private labels themselves, what "
        "that spent is to be added; the file does not say where its prior came from."
        if parts is None
        else f"These factors are the mechanism's. With the prior the release has spent {parts.total!r} nats in all.",
        "Privacy is that of the label. Whatever else is known or released about a person is outside this promise.",
    )


def label_rows(mechanism: Mechanism) -> tuple[list[str], list[list[str]]]:
    """Headings and one row a label, or for some of them, spread evenly."""
    problem, channel = mechanism.problem, mechanism.randomizer
    rows = spread(problem.k, ROWS)
    names = number_texts(problem.labels[rows])
    shares = [f"{share:.4g}" for share in problem.prior[rows]]
    if problem.loss == losses.zero_one:
        kept = [mechanism.outputs == label for label in problem.labels[rows]]
        chances = [float(channel.matrix[row, same].sum()) for row, same in zip(rows, kept, strict=True)]
        return ["Label", "Prior", "Kept with probability"], _columns(names, shares, [f"{c:.4g}" for c in chances])
    # Rounding to a billionth of the outputs' size: what is left of a zero in floats says nothing.
    unit = 10.0 ** math.floor(math.log10(float(np.abs(channel.outputs).max()) or 1.0) - 9)
    means = [f"{round(mean / unit) * unit:.10g}" for mean in channel.means[rows].tolist()]
    deviations = [f"{deviation:.6g}" for deviation in np.sqrt(channel.variances[rows])]
    return ["Label", "Prior", "Mean output", "Standard deviation"], _columns(names, shares, means, deviations)


def _columns(*columns: Sequence[str]) -> list[list[str]]:
    return [[cell.replace("-", "\N{MINUS SIGN}") for cell in row] for row in zip(*columns, strict=True)]
