"""Measurements of a randomizer without multipliers: privacy, rows, biases, allowed outputs and its loss.

Float randomizers are checked to :data:`TOLERANCE`. Mechanisms are private and normalised exactly, and their means are
checked to :data:`ROUNDED`. The loss is that of the mechanism or of the exact repair
(:mod:`optrand.certificates.exact_loss`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.base.arithmetic import exp_bracket, float_above, log_above
from optrand.base.numerals import shown_above
from optrand.base.validation import Floats
from optrand.certificates import exact_loss
from optrand.mechanism.mechanism import Mechanism
from optrand.model.kept import content, kept
from optrand.model.outputs import Grid
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer

__all__ = ["ROUNDED", "TOLERANCE", "Measurements"]

TOLERANCE = 1e-9
"""Tolerance of a float randomizer's rows, means and ratios, as a share of their scale."""

ROUNDED = 2.0**-40
"""Tolerance of the biases of a mechanism, whose outputs were rounded to floats, as a share of the labels' range."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of one randomizer as an answer to a problem.

    Attributes
    ----------
    value : float
        Objective of the minimisation, of the randomizer or its exact repair, rounded up; infinite if there are
        findings.
    epsilon : float
        Privacy loss, rounded up.
    bias : float
        Largest ``|E[M(y)] - y|``, rounded up.
    findings : tuple of str
        Reasons why it is not feasible.
    """

    value: float
    epsilon: float
    bias: float
    findings: tuple[str, ...]

    @classmethod
    def refused(cls, finding: str) -> Measurements:
        """Measurements of an answer that cannot be measured."""
        return cls(math.inf, math.inf, math.inf, (finding,))

    @classmethod
    def of_randomizer(cls, problem: Problem, randomizer: Randomizer) -> Measurements:
        """Measure a float randomizer: residuals within :data:`TOLERANCE` of their scale are repaired, and no more."""
        if not np.array_equal(problem.labels, randomizer.labels):
            return cls.refused("the randomizer's labels are not those of the problem")
        key = content(problem, randomizer.outputs, *randomizer.numbers), randomizer.epsilon
        return kept(randomizer, "_facts", key, lambda: cls._of_floats(problem, randomizer))

    @classmethod
    def _of_floats(cls, problem: Problem, randomizer: Randomizer) -> Measurements:
        ratio = randomizer.ratio_above
        realised = math.inf if ratio is None else log_above(ratio)
        with np.errstate(over="ignore", invalid="ignore"):
            worst = float(np.abs(randomizer.rows - 1).max())
        least, bias = randomizer.extremes[0].min(), float_above(randomizer.largest_bias)
        findings = []
        if not least >= 0:
            findings.append(f"a probability is negative ({least:.3g})")
        if not worst <= TOLERANCE:
            findings.append(f"a row sums to 1 only within {shown_above(worst, 3)}")
        if realised > problem.epsilon * (1 + TOLERANCE) + TOLERANCE * 1e-6:
            findings.append(f"not {problem.epsilon:g}-DP: the realised epsilon is {shown_above(realised, 10)}")
        findings += _bias_findings(problem, bias, TOLERANCE)
        findings += _output_findings(problem, randomizer.outputs)
        return cls._with_value(realised, bias, findings, lambda: exact_loss.of_randomizer(problem, randomizer))

    @classmethod
    def of_mechanism(cls, problem: Problem, mechanism: Mechanism) -> Measurements:
        """Measure a mechanism in exact arithmetic; its loss is taken with biases within :data:`ROUNDED` repaired."""
        if not np.array_equal(problem.labels, mechanism.problem.labels):
            return cls.refused("the mechanism's labels are not those of the problem")
        ratio = mechanism.realised_ratio
        private = ratio <= exp_bracket(problem.epsilon)[0]
        findings = [] if private else [f"not {problem.epsilon:g}-DP in exact arithmetic"]
        findings += _bias_findings(problem, mechanism.bias, ROUNDED)
        findings += _output_findings(problem, mechanism.outputs)
        value = lambda: exact_loss.of_mechanism(problem, mechanism)  # noqa: E731
        return cls._with_value(log_above(ratio), mechanism.bias, findings, value)

    @classmethod
    def _with_value(
        cls, epsilon: float, bias: float, findings: list[str], value: Callable[[], Fraction | None]
    ) -> Measurements:
        """Measurements with the value, which is computed only where nothing was found."""
        if findings:
            return cls(math.inf, epsilon, bias, tuple(findings))
        exact = value()
        if exact is None:
            return cls(math.inf, epsilon, bias, ("the allowed outputs leave no room to make its rows and means exact",))
        above = float_above(exact)
        return cls(above, epsilon, bias, () if above < math.inf else ("its loss overflows in floats",))


def _bias_findings(problem: Problem, bias: float, tolerance: float) -> list[str]:
    scale = float(np.ptp(problem.labels)) or abs(float(problem.labels[0])) or 1.0
    if problem.unbiased and not bias <= tolerance * scale:
        return [f"biased by up to {shown_above(bias, 3)} where no bias is allowed"]
    return []


def _output_findings(problem: Problem, outputs: Floats) -> list[str]:
    allowed = (outputs >= problem.outputs.low) & (outputs <= problem.outputs.high)
    if isinstance(problem.outputs, Grid):
        allowed = np.isin(outputs, problem.outputs.values)
    if problem.loss.positive_outputs:
        allowed &= outputs > 0
    outside = int((~allowed).sum())
    return [f"{outside} output(s) lie outside the allowed set"] if outside else []
