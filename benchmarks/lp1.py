"""RRWithPrior against the linear programs whose optimum it is ([G21], LP1 and LP2): certified gaps and times.

LP1 as printed, with a row for every pair of labels (to 40 classes), LP1 in the floor form, and LP2, each on HiGHS,
scipy and cvxpy (Clarabel, at cvxpy's own tolerance). The table that an engine leaves is judged as it is
(:mod:`benchmarks.raw`): the sums of its rows, its realised epsilon and its value, beside the optimum that the
certificate of the closed form proves. Nothing of ours repairs it first.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import priors
from benchmarks.harness import Benchmark, Case, Clock, Method, Row, Table, compare, show
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


def notes(rows: Sequence[Row]) -> Iterator[str]:
    """Count for each method what its engine said and what is true, and compare its times with the closed form's."""
    base = {(row["prior"], row["k"], row["epsilon"]): row["seconds"] for row in rows if row["method"] == CLOSED_FORM}
    for method in METHODS[1:]:
        mine = [row for row in rows if row["method"] == method.name]
        ended = [row for row in mine if row["seconds"] is not None]
        right = [sum(row["distance"] <= step for row in ended) for step in (1e-9, 1e-6)]
        ratios = [row["seconds"] / base[row["prior"], row["k"], row["epsilon"]] for row in ended] or [math.nan]
        said = sum(row["said_optimal"] for row in ended)
        infinite = sum(row["realised"] == math.inf for row in ended)
        yield (
            f"{method.name}: {len(ended)} of {len(mine)} answered, {said} said optimal, {right[0]} right to 1e-9, "
            f"{right[1]} to 1e-6, {infinite} with infinite epsilon; time over the closed form's: median "
            f"{statistics.median(ratios):.3g}"
        )


main = Benchmark(
    "lp1",
    __doc__,
    measure,
    (
        Table(
            "Classes; the value is the probability of keeping one",
            "k method prior epsilon seconds runs value:.10f rows realised verdict",
        ),
    ),
    limit=30.0,
    notes=notes,
).run
