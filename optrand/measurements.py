"""What can be measured of a randomizer without multipliers: privacy, rows, biases, allowed outputs and its loss.

A design in floats is forgiven its own rounding, within :data:`TOLERANCE`; the privacy, rows and biases of a mechanism
are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optrand.exact import exp_bracket, float_above, log_above
from optrand.mechanism import Mechanism
from optrand.outputs import Grid
from optrand.pricing import exact as exact_pricing
from optrand.problem import Problem
from optrand.randomizer import Randomizer
from optrand.solution import Dual
from optrand.validation import Floats

__all__ = ["TOLERANCE", "Measurements"]

TOLERANCE = 1e-9
"""A float matrix counts as feasible while rows, means and ratios are off by at most this share of their scale."""

ROUNDING = 2.0**-48
"""A share of a ratio that may be rounding: of two probabilities, of their quotient, and of its logarithm."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured of one randomizer, in the light of a problem.

    Attributes
    ----------
    value : float
        The objective of the minimisation; infinite if anything was found.
    epsilon : float
        The privacy loss, rounded up.
    biases, rows : (k,) arrays
        ``E[M(y)] - y``, and what each row sums to, less 1.
    findings : tuple of str
        What keeps it from being a feasible answer.
    """

    value: float
    epsilon: float
    biases: Floats
    rows: Floats
    findings: tuple[str, ...]

    @property
    def bias(self) -> float:
        """The largest one, whatever its sign."""
        return float(np.abs(self.biases).max())

    def overspends(self, problem: Problem) -> bool:
        """Whether the budget is exceeded by more than a ratio of two floats may be off by rounding."""
        # Of epsilon itself the last digit is a share of the ratio that grows with it.
        rounding = ROUNDING * (1 + problem.epsilon) * math.exp(problem.epsilon)
        return math.expm1(self.epsilon) > math.expm1(problem.epsilon) + rounding

    def charged(self, problem: Problem, dual: Dual) -> float:
        """What the multipliers charge for rows that miss 1, and for biases where none is allowed: at least that much.

        A randomizer that is feasible but for rounding may lose less than any that is feasible: by this at most.
        """
        charges = np.abs(dual.alpha) * np.abs(self.rows)
        if problem.unbiased:
            charges = charges + np.abs(dual.beta) * np.abs(self.biases)
        return float(charges.sum()) * (1 + TOLERANCE)

    @classmethod
    def refused(cls, finding: str) -> Measurements:
        """Nothing was measured."""
        return cls(math.inf, math.inf, np.array([math.inf]), np.array([math.inf]), (finding,))

    @classmethod
    def of_randomizer(cls, problem: Problem, randomizer: Randomizer) -> Measurements:
        """Measure a design in floats: residuals within :data:`TOLERANCE` of their scale are forgiven, and no more."""
        if not np.array_equal(problem.labels, randomizer.labels):
            return cls.refused("the randomizer's labels are not those of the problem")
        ratio = randomizer.realised_ratio
        realised = math.inf if ratio == math.inf else log_above(Fraction(ratio) * (1 + Fraction(1, 2**51)))
        with np.errstate(over="ignore", invalid="ignore"):
            biases, rows = randomizer.biases, randomizer.rows - 1
            worst = float(np.abs(rows).max())
        least = randomizer.extremes[0].min()
        findings = []
        if not least >= 0:
            findings.append(f"a probability is negative ({least:.3g})")
        if not worst <= TOLERANCE:
            findings.append(f"a row sums to 1 only within {worst:.3g}")
        if realised > problem.epsilon * (1 + TOLERANCE) + TOLERANCE * 1e-6:
            findings.append(f"not {problem.epsilon:g}-DP: the realised epsilon is {realised:.10g}")
        findings += _bias_findings(problem, biases, randomizer.outputs)
        findings += _output_findings(problem, randomizer.outputs)
        value = math.inf
        if not findings:
            value, overflows = _value(problem, randomizer)
            findings += overflows
        return cls(value, realised, biases, rows, tuple(findings))

    @classmethod
    def of_mechanism(cls, problem: Problem, mechanism: Mechanism, *, exact: bool) -> Measurements:
        """Measure an integer table: rows and ratios without rounding."""
        if not np.array_equal(problem.labels, mechanism.problem.labels):
            return cls.refused("the mechanism's labels are not those of the problem")
        ratio = mechanism.realised_ratio
        private = ratio <= exp_bracket(problem.epsilon)[0]
        biases = np.array([float_above(abs(bias)) for bias in mechanism.exact_biases])
        findings = [] if private else [f"not {problem.epsilon:g}-DP in exact arithmetic"]
        findings += _bias_findings(problem, biases, mechanism.outputs)
        findings += _output_findings(problem, mechanism.outputs)
        value = math.inf
        if not findings and exact:
            value = float_above(exact_pricing.value(problem, mechanism))
        elif not findings:
            value, overflows = _value(problem, mechanism.randomizer)
            findings += overflows
        return cls(value, log_above(ratio), biases, np.zeros(problem.k), tuple(findings))


def _value(problem: Problem, randomizer: Randomizer) -> tuple[float, list[str]]:
    """The value of the minimisation in floats, and the finding that floats cannot hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = problem.sign * problem.value(randomizer)
    return (value, []) if math.isfinite(value) else (math.inf, ["its loss overflows in floats"])


def _bias_findings(problem: Problem, biases: Floats, outputs: Floats) -> list[str]:
    bias = float(np.abs(biases).max())
    scale = float(np.ptp(problem.labels)) or abs(float(problem.labels[0])) or 1.0
    # Outputs are floats: far from 0 they cannot make means any better.
    if problem.unbiased and not bias <= TOLERANCE * scale + 4 * float(np.spacing(np.abs(outputs).max())):
        return [f"biased by up to {bias:.3g} where no bias is allowed"]
    return []


def _output_findings(problem: Problem, outputs: Floats) -> list[str]:
    allowed = (outputs >= problem.outputs.low) & (outputs <= problem.outputs.high)
    if isinstance(problem.outputs, Grid):
        allowed = np.isin(outputs, problem.outputs.values)
    if problem.loss.positive_outputs:
        allowed &= outputs > 0
    outside = int((~allowed).sum())
    return [f"{outside} output(s) lie outside the allowed set"] if outside else []
