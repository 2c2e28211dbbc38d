"""RRWithPrior against the linear programs whose optimum it is ([G21], LP1 and LP2): certified gaps and times.

LP1 as printed, with a row for every pair of labels (to 40 classes), LP1 in the floor form, and LP2, each on HiGHS,
scipy and cvxpy (Clarabel, at cvxpy's own tolerance). The table that an engine leaves is judged as it is
(:mod:`benchmarks.raw`): the sums of its rows, its realised epsilon and its value, beside the optimum that the
certificate of the closed form proves. Nothing of ours repairs it first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import priors
from benchmarks.harness import Benchmark, Case, Clock, Method, Row, compare, show
from benchmarks.raw import RawProgram, diagonal_form, floor_form, pairwise_form
from optrand import Mechanism, classification, rr_with_prior
from optrand.model.problem import Problem
from optrand.programs import Cvxpy, Highs, Scipy
from optrand.programs.backends import Backend

EPSILONS, SIZES = (0.1, 1.0, 4.0), (10, 40, 200)
FAMILIES = ("weeks", "Dirichlet", "exponential", "spike")
CLOSED_FORM = "RRWithPrior"


def closed_form(problem: Problem) -> Mechanism:
    """Answer with RRWithPrior."""
    return rr_with_prior(problem.prior, problem.epsilon)


# The printed form has K^2 (K - 1) rows.
FORMS = {
    "LP2": (diagonal_form, 200),
    "LP1 floor": (floor_form, 200),
    "LP1 pairwise": (pairwise_form, 40),
}
ENGINES: dict[str, Backend] = {"HiGHS": Highs(), "scipy": Scipy(), "cvxpy": Cvxpy()}
METHODS = [Method(CLOSED_FORM, closed_form)] + [
    Method(f"{form}, {engine}", RawProgram(state, backend), show, largest)
    for form, (state, largest) in FORMS.items()
    for engine, backend in ENGINES.items()
]


def measure(given: Any) -> Iterator[Row]:
    """Solve each prior with every program that is not too large for it."""
    for family in FAMILIES:
        for k in (6,) if given.smoke else SIZES:
            prior = priors.PRIORS[family](min(k, priors.WEEKS) if family == "weeks" else k)
            cases = [
                Case(
                    {"prior": family, "k": prior.size, "epsilon": epsilon},
                    (classification(prior, epsilon),),
                    (classification([0.6, 0.4], 1.0),),
                    f"{prior.size} classes, {family}",
                )
                for epsilon in ((1.0,) if given.smoke else EPSILONS)
            ]
            yield from compare(cases, METHODS, Clock(given.limit))


TABLES = {
    "Classes; the value is the probability of keeping one": (
        "k method prior epsilon seconds runs value:.10f rows realised said_optimal verdict"
    ),
}
main = Benchmark("lp1", __doc__, measure, TABLES, limit=30.0).run
