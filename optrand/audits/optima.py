"""Optimum that an audited randomizer is compared with, of the class of its own bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from optrand.base.arithmetic import float_above
from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import Floats
from optrand.certificates.certificate import Certificate
from optrand.model.problem import Problem, classification, regression
from optrand.solvers import solve

__all__ = ["Comparison", "of_classes", "of_numbers"]


@dataclass(frozen=True)
class Comparison:
    """Value of a randomizer under a prior, beside the certified optimum.

    Attributes
    ----------
    value : Fraction
        Half the mean squared error; of classes the probability that the output is the label.
    optimum : Certificate
        Its `lower` and `upper` enclose the optimum at `epsilon`.
    epsilon : float
        Budget of the optimum: the stated one, or the realised one where that is larger.
    kind : str
        ``"unbiased"``, ``"biased"`` or ``"classes"``.
    """

    value: Fraction
    optimum: Certificate
    epsilon: float
    kind: str

    @property
    def gap(self) -> float:
        """Distance from the optimum at most, relative to the randomizer's own value and absolute where that is 0."""
        away = self.value - Fraction(self.optimum.lower)
        if self.kind == "classes":
            away = Fraction(self.optimum.upper) - self.value
        return float_above(max(away, Fraction(0)) / (abs(self.value) or 1))

    def __str__(self) -> str:
        """Value and gap in one line."""
        best = f"the best {'' if self.kind == 'classes' else self.kind + ' '}randomizer at epsilon {self.epsilon:g}"
        ends = f"between {shown_below(self.optimum.lower, 6)} and {shown_above(self.optimum.upper, 6)}"
        if self.kind == "classes":
            value = f"probability of the true class {shown_below(self.value, 6)}"
        else:
            value = (
                f"half squared error {shown_above(self.value, 6)} (root mean square {math.sqrt(2 * self.value):.4g})"
            )
        return f"{value}; {best} has {ends}, so it is at most {shown_above(100 * self.gap, 3)} % from the optimum"


def of_numbers(labels: Floats, prior: Floats, losses: list[Fraction], epsilon: float, *, unbiased: bool) -> Comparison:
    """Compare expected losses of labels with the optimum on the real line."""
    problem = regression(labels, prior, epsilon, bias_penalty=math.inf if unbiased else 0.0)
    kind = "unbiased" if unbiased else "biased"
    return Comparison(_expected(prior, losses), _bounds(problem), epsilon, kind)


def of_classes(prior: Floats, hits: list[Fraction], epsilon: float) -> Comparison:
    """Compare the probabilities that each class stays as it is with the most that is possible."""
    return Comparison(_expected(prior, hits), _bounds(classification(prior, epsilon)), epsilon, "classes")


def _expected(prior: Floats, values: list[Fraction]) -> Fraction:
    return sum((Fraction(p) * one for p, one in zip(prior.tolist(), values, strict=True)), Fraction(0))


def _bounds(problem: Problem) -> Certificate:
    return solve(problem).certificate.require(gap=math.inf)
