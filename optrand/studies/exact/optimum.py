"""Optima at a rational privacy ratio: exact on grids, enclosed to any number of digits on the line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

from optrand.base.arithmetic import exp_bracket
from optrand.base.validation import integer
from optrand.certificates.rational import RationalDual, enclosure
from optrand.errors import InvalidInput, NotCertified
from optrand.mechanism.rational_mechanism import RationalMechanism
from optrand.model import losses
from optrand.model.outputs import Grid, Line
from optrand.model.problem import Problem
from optrand.solvers import solve
from optrand.studies.exact.grids import optimum_on_grid
from optrand.studies.exact.interior import centred, intervals, tightest
from optrand.studies.exact.nodes import Nodes, Point, connected, newton, supported

__all__ = ["ExactOptimum", "exact_optimum"]

LARGEST = 64
"""Limit of the number of labels."""

AGREEMENT = Fraction(1, 1 << 50)
"""Distance of the ratio from ``exp(epsilon)``, over epsilon and the ratio, that is rounding of either."""


@dataclass(frozen=True)
class ExactOptimum:
    """Optimum of a problem at a rational privacy ratio, between two proven rationals.

    Attributes
    ----------
    problem : Problem
        Its labels and prior are the rationals that their floats are; the prior is not divided by its sum.
    ratio : Fraction
        Ratio of the mechanism, in place of ``exp(problem.epsilon)``.
    lower, upper : Fraction
        Bounds of the optimal value, that of the mechanism among them. On a grid they are equal.
    mechanism : RationalMechanism
        Private at `ratio` and unbiased where the problem asks for it, exactly.
    dual : RationalDual
        Multipliers of the other bound, which :func:`optrand.certificates.rational.lower_bound` computes again.
    pivots : int
        Exact pivots after the solution in floats; 0 on the line.
    """

    problem: Problem
    ratio: Fraction
    lower: Fraction
    upper: Fraction
    mechanism: RationalMechanism
    dual: RationalDual
    pivots: int = 0

    @property
    def gap(self) -> Fraction:
        """Relative gap ``(upper - lower) / |upper|``, absolute where that is 0."""
        return (self.upper - self.lower) / (abs(self.upper) or 1)

    @property
    def bits(self) -> int:
        """Binary digits of the total of the mechanism's weights."""
        return self.mechanism.total.bit_length()


def exact_optimum(problem: Problem, *, ratio: Fraction, digits: int = 30) -> ExactOptimum:
    """Optimum at a rational privacy ratio, exact on a grid and enclosed to many digits on the line.

    Parameters
    ----------
    problem : Problem
        Of at most 64 labels. On a grid any loss of rational values, without bias or with free bias; on the line squared
        loss without bias.
    ratio : Fraction or int
        Largest ratio of two probabilities of one output: ``exp(problem.epsilon)`` to within rounding, and above 1.
    digits : int
        On the line the relative gap is at most ``10**-digits``, 1 to 200.

    Raises
    ------
    InvalidInput
        A problem or a ratio of another kind.
    Infeasible
        A grid that has an unbiased mechanism at ``exp(problem.epsilon)`` and none at the ratio.
    MissingExtra
        Without python-flint.
    NotCertified
        An enclosure that stayed wider than asked for.

    Notes
    -----
    On a grid: the simplex method in rationals from the basis that a solution in floats suggests. On the line: Newton's
    method on the equations of the intervals in use, and where floats do not identify these an interior-point method in
    as many digits. Neither is trusted: :func:`optrand.certificates.rational.enclosure` proves both ends
    (``docs/mathematics.md``, section 16).

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.classification([0.5, 0.25, 0.25], math.log(3))
    >>> best = exact_optimum(problem, ratio=Fraction(3))
    >>> best.lower == best.upper, str(best.upper)
    (True, '3/5')
    >>> line = optrand.unbiased_regression([0, 1, 3], [0.5, 0.25, 0.25], math.log(3))
    >>> best = exact_optimum(line, ratio=Fraction(3))
    >>> best.gap < Fraction(1, 10**30), best.mechanism.ratio, set(best.mechanism.biases), f"{float(best.upper):.12f}"
    (True, Fraction(3, 1), {Fraction(0, 1)}, '3.561491673104')
    """
    exact = _checked_ratio(problem, ratio)
    places = integer(digits, "digits", 1)
    if places > 200:
        raise InvalidInput(f"digits is {places}, expected 1 to 200")
    _check(problem)
    if isinstance(problem.outputs, Grid):
        mechanism, dual, pivots = optimum_on_grid(solve(problem), exact)
        lower, upper = enclosure(problem, mechanism, dual, exact, bits=0)
        if problem.sign < 0:
            lower, upper = -upper, -lower
        found = ExactOptimum(problem, exact, lower, upper, mechanism, dual, pivots)
        if found.gap:
            raise NotCertified("the exact optimum is not proven: report this problem")
        return found
    best: ExactOptimum | None = None
    for mechanism, dual in _attempts(problem, exact, places):
        lower, upper = enclosure(problem, mechanism, dual, exact, bits=_bits(problem, places))
        found = ExactOptimum(problem, exact, lower, upper, mechanism, dual)
        if found.gap * 10**places <= 1:
            return found
        best = found if best is None or found.gap < best.gap else best
    raise NotCertified(
        f"the optimum is enclosed to {'no' if best is None else f'{float(best.gap):.1e}'} relative gap, not to "
        f"1e-{places}: ask for fewer digits"
    )


def _bits(problem: Problem, digits: int) -> int:
    """Binary digits of numbers on the line: three times those asked for, and the range of the numbers."""
    least = float(min(problem.prior[problem.prior > 0]))
    return 10 * digits + 160 - 2 * max(math.frexp(least)[1], -64) + int(4 * problem.epsilon)


def _attempts(problem: Problem, ratio: Fraction, digits: int) -> Iterator[tuple[RationalMechanism, RationalDual]]:
    """Mechanisms and multipliers on the line, the quickest first."""
    if problem.k == 1:
        label, zero = Fraction(float(problem.labels[0])), Fraction(0)
        yield RationalMechanism((label,), (label,), ((1,),)), RationalDual((zero,), (zero,))
        return
    nodes, solution = Nodes(problem, ratio, _bits(problem, digits)), solve(problem)
    arcs = solution.randomizer.arcs
    if arcs is not None and solution.dual is not None:
        used = sorted(set(zip(arcs.first.tolist(), (arcs.last + 1).tolist(), strict=True)))
        point = Point.of_dual(nodes, solution.dual, used)
        near = tightest(point)
        if supported(point) and newton(point):
            yield point.mechanism(), point.dual()
        point = centred(nodes, digits + digits // 2, near)
        if connected(point):
            yield point.mechanism(), point.dual()
    point = centred(nodes, digits + digits // 2, intervals(problem.k))
    yield point.mechanism(), point.dual()


def _checked_ratio(problem: Problem, ratio: object) -> Fraction:
    if not isinstance(ratio, Rational) or isinstance(ratio, bool):
        raise InvalidInput(
            f"ratio is of type {type(ratio).__name__}, expected a rational number such as Fraction(3) or "
            "Fraction('2.7'): an irrational exp(epsilon) has no exact optimum, optrand.certify bounds that"
        )
    exact = Fraction(ratio)
    if exact <= 1:
        raise InvalidInput(f"ratio is {exact}, expected a number above 1")
    low, high = exp_bracket(problem.epsilon)
    slack = AGREEMENT * exact * Fraction(max(problem.epsilon, 1e-9))
    if not low - slack <= exact <= high + slack:
        raise InvalidInput(
            f"ratio is {float(exact):.12g} and exp(epsilon) {float(low):.12g}: state the problem with epsilon = "
            "math.log(ratio)"
        )
    return exact


def _check(problem: Problem) -> None:
    if problem.k > LARGEST:
        raise InvalidInput(f"the problem has {problem.k} labels: exact optima are of at most {LARGEST}, use certify")
    if isinstance(problem.outputs, Grid):
        if not problem.unbiased and problem.bias_penalty:
            raise InvalidInput("exact optima on a grid have bias_penalty 0 or math.inf: use certify for others")
    elif not isinstance(problem.outputs, Line) or problem.loss != losses.squared or not problem.unbiased:
        raise InvalidInput(
            "exact optima off a grid are of unbiased_regression on the line: pass outputs=Grid(...), or use certify"
        )
