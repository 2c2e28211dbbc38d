"""RRWithPrior against the linear programs whose optimum it is ([G21], LP1 and LP2): certified gaps and times.

LP1 as printed, with a row for every pair of labels (to 40 classes), LP1 in the floor form, and LP2, each on HiGHS,
scipy and cvxpy (Clarabel, at cvxpy's own tolerance). The table that an engine leaves is judged as it is
(:mod:`benchmarks.raw`): the sums of its rows, its realised epsilon and its value, beside the optimum that the
certificate of the closed form proves. Nothing of ours repairs it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import exp
from typing import Any

from benchmarks import priors
from benchmarks.harness import Benchmark, Case, Clock, Method, Row, compare, describe, show, solve_program
from benchmarks.raw import measure_distance
from optrand import Mechanism, classification, rr_with_prior
from optrand.model._problem import Problem
from optrand.programs import Cvxpy, Highs, Program, lp1, lp2
from optrand.programs._certificate import Answer

EPSILONS, SIZES = (0.1, 1.0, 4.0), (10, 40, 200)
FAMILIES = ("weeks", "Dirichlet", "exponential", "spike")


def closed_form(problem: Problem) -> Mechanism:
    """Answer with RRWithPrior."""
    return rr_with_prior(problem.prior, problem.epsilon)


def state_lp1(form: str, problem: Problem) -> Program:
    """State LP1 with its privacy in one of two forms."""
    return lp1(problem.prior, problem.epsilon, form=form)


def state_lp2(problem: Problem) -> Program:
    """State the relaxation with the diagonal alone."""
    return lp2(problem.prior, problem.epsilon)


def show_diagonal(problem: Problem, answer: Answer, optimum: float) -> Row:
    """Judge the variables of LP2, which has no table: its rows as printed, ``exp(-epsilon)`` as a float, the value."""
    factor, kept = Fraction(exp(-problem.epsilon)), [Fraction(q) for q in answer.point.tolist()]
    excess = max(q + factor * (sum(kept) - q) - 1 for q in kept)
    value = sum(Fraction(p) * q for p, q in zip(problem.prior.tolist(), kept, strict=True))
    found = {"rows": float(max(excess, -min(kept), Fraction(0))), "bias": 0.0, "realised": 0.0, "delta": 0.0}
    return measure_distance(problem, optimum, found | {"value": float(value)}) | {"realised": None} | describe(answer)


# The printed form has K^2 (K - 1) rows.
FORMS: dict[str, tuple[Callable[[Problem], Program], Any, int]] = {
    "LP2": (state_lp2, show_diagonal, 200),
    "LP1 floor": (partial(state_lp1, "floor"), show, 200),
    "LP1 pairwise": (partial(state_lp1, "pairwise"), show, 40),
}
METHODS = [Method("RRWithPrior", closed_form)] + [
    Method(f"{form}, {engine}", partial(solve_program, state, backend), judge, True, largest)
    for form, (state, judge, largest) in FORMS.items()
    for engine, backend in (("HiGHS", Highs()), ("scipy", Cvxpy("SCIPY")), ("cvxpy", Cvxpy()))
]


def measure(given: Any) -> Iterator[Row]:
    """Solve each prior with every program that is not too large for it."""
    for family in FAMILIES:
        for k in (6,) if given.smoke else SIZES:
            prior = priors.PRIORS[family](min(k, priors.WEEKS) if family == "weeks" else k)
            cases = [
                Case(
                    {"prior": family, "k": prior.size, "epsilon": epsilon},
                    classification(prior, epsilon),
                    classification([0.6, 0.4], 1.0),
                    f"{prior.size} classes, {family}",
                )
                for epsilon in ((1.0,) if given.smoke else EPSILONS)
            ]
            yield from compare(cases, METHODS, Clock(given.limit))


TABLES = {
    "Classes (the value is the probability of keeping one)": (
        "k method prior epsilon seconds runs value:.10f rows realised said_optimal verdict"
    ),
}
main = Benchmark("lp1", __doc__, measure, TABLES, limit=30.0).run
