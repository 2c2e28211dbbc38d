"""RRWithPrior against the linear programs whose optimum it is ([G21], LP1 and LP2): certified gaps and times.

LP1 as printed, with a row for every pair of labels (to 40 classes), LP1 in the floor form, and LP2, each on HiGHS,
scipy and cvxpy (Clarabel). A certificate judges every answer, so that what an engine says can be compared with
what is true. The programs are solved in a process of their own that is killed at the time limit; building and reading a
program count, importing libraries does not. The closed form's time includes the checks of its arguments.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import priors
from benchmarks.harness import (
    circumstances,
    duration,
    median_seconds,
    options,
    print_table,
    use_one_core,
    write_json,
)
from benchmarks.worker import OVER_LIMIT, Measurement, Worker, measure, said_optimal
from optrand import certify, classification, rr_with_prior
from optrand.base.validation import Floats
from optrand.model.problem import Problem
from optrand.solvers import LinearProgram
from optrand.solvers.backends import Backend, Cvxpy, Highs, Scipy
from optrand.solvers.grid import LP2, Floor, Pairwise
from optrand.solvers.grid.linear_program import GridProgram

EPSILONS = (0.1, 1.0, 4.0)
LARGEST: dict[type[object], int] = {Pairwise: 40, Floor: 200, LP2: 200}
"""Classes up to which each form is solved; the printed one has ``K^2 (K - 1)`` rows."""

CLOSED_FORM = "RRWithPrior"
CLOSED_FORM_GAP = 1e-12
"""What the closed form must prove, or the benchmark fails."""

BACKENDS: dict[str, Backend] = {"HiGHS": Highs(), "scipy": Scipy(), "cvxpy": Cvxpy()}
FORMS: dict[str, GridProgram] = {"LP2": LP2(), "LP1 floor": Floor(), "LP1 pairwise": Pairwise()}
METHODS = {
    f"{form}, {engine}": LinearProgram(program, backend)
    for form, program in FORMS.items()
    for engine, backend in BACKENDS.items()
}
COLUMNS = ("method", "epsilon", "time", "runs", "time / closed form", "P(correct)", "certified gap", "verdict")
SUMMARY = (
    "method",
    "problems",
    "over limit",
    "failed",
    "said optimal",
    "right to 1e-9",
    "right to 1e-6",
    "refused",
    "largest gap",
    "median ratio",
    "largest ratio",
    "slowest",
)


def posed(smoke: bool) -> Iterator[tuple[str, Floats]]:
    """The priors by name."""
    families = {
        "weeks worked": (priors.weeks, (10, 40, priors.WEEKS)),
        "Dirichlet(1/2) + 1e-4": (priors.dirichlet, (10, 40, 200)),
        "exponential": (priors.exponential, (10, 40, 200)),
        "spike with zeros": (priors.spike, (10, 40, 200)),
    }
    for name, (make, sizes) in families.items():
        for k in (6,) if smoke else sizes:
            yield name, make(k)


def closed_form(problem: Problem) -> Measurement:
    """RRWithPrior, in this process."""
    seconds = median_seconds(lambda: rr_with_prior(problem.prior, problem.epsilon), 50)
    return Measurement((seconds,) * 50, rr_with_prior(problem.prior, problem.epsilon))


def judged(method: str, prior: str, problem: Problem, found: Measurement) -> dict[str, Any]:
    """A measurement with its certificate, as one flat record."""
    record: dict[str, Any] = {"method": method, "prior": prior, "k": problem.k, "epsilon": problem.epsilon}
    record |= {"seconds": found.seconds, "runs": len(found.times)}
    if found.solution is None:
        return record | {"verdict": found.error, "gap": math.inf, "said_optimal": False, "refused": False}
    proof = certify(found.solution)
    verdict = "; ".join(proof.findings) or next(
        (f"right to {step:g}" for step in (CLOSED_FORM_GAP, 1e-9, 1e-6) if proof.gap <= step), "wrong"
    )
    return record | {
        "value": found.solution.value,
        "gap": proof.gap,
        "lower": proof.lower,
        "upper": proof.upper,
        "status": found.solution.stats.status,
        "said_optimal": said_optimal(found.solution),
        "refused": bool(proof.findings),
        "verdict": verdict,
    }


def compared(worker: Worker, name: str, problem: Problem, limit: float) -> Iterator[dict[str, Any]]:
    """The closed form, then every program that is not too large."""
    base = judged(CLOSED_FORM, name, problem, closed_form(problem))
    yield base | {"ratio": 1.0}
    rehearsal = classification([0.6, 0.4], 1.0)
    for method, solver in METHODS.items():
        if problem.k <= LARGEST[type(solver.program)]:
            found = judged(method, name, problem, measure(worker, solver, problem, rehearsal=rehearsal, limit=limit))
            yield found | {"ratio": found["seconds"] / base["seconds"]}


def row(record: dict[str, Any]) -> list[str]:
    """A row of a table of one prior."""
    start = [record["method"], f"{record['epsilon']:g}"]
    if "value" not in record:
        return [*start, *("-" * 5), record["verdict"]]
    times = [duration(record["seconds"]), str(record["runs"]), f"{record['ratio']:.3g}"]
    return [*start, *times, f"{record['value']:.10f}", f"{record['gap']:.1e}", record["verdict"]]


def summary(method: str, records: Sequence[dict[str, Any]]) -> list[str]:
    """How one method did on all of its problems: what its engine said beside what is true."""
    mine = [record for record in records if record["method"] == method]
    ended = [record for record in mine if "value" in record]
    right = [sum(record["gap"] <= step for record in mine) for step in (1e-9, 1e-6)]
    late = sum(record["verdict"].startswith(OVER_LIMIT) for record in mine)
    ratios = [record["ratio"] for record in ended]
    gaps = [record["gap"] for record in ended if not record["refused"]]
    slowest = max(ended, key=lambda record: float(record["seconds"]), default=None)
    return [
        method,
        str(len(mine)),
        str(late),
        str(len(mine) - len(ended) - late),
        str(sum(record["said_optimal"] for record in mine)),
        *map(str, right),
        str(sum(record["refused"] for record in mine)),
        f"{max(gaps):.1e}" if gaps else "-",
        f"{statistics.median(ratios):.3g}" if ratios else "-",
        f"{max(ratios):.3g}" if ratios else "-",
        f"{duration(slowest['seconds'])}, K = {slowest['k']}" if slowest else "-",
    ]


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table for each prior and a summary, and return 1 if the closed form is not proven."""
    given = options("lp1", __doc__, limit=30.0).parse_args(arguments)
    use_one_core()
    print(circumstances())
    worker, records = Worker(), []
    for name, prior in posed(given.smoke):
        here = []
        for epsilon in EPSILONS[1:2] if given.smoke else EPSILONS:
            here += list(compared(worker, name, classification(prior, epsilon), given.limit))
        print_table(f"{name}, K = {prior.size}", COLUMNS, [row(record) for record in here])
        records += here
    worker.close()
    methods = [CLOSED_FORM, *METHODS]
    print_table("What the engines said, and what is true", SUMMARY, [summary(method, records) for method in methods])
    print(
        "ratio: time over that of the closed form. refused: not private or not normalised within 1e-9, so without a gap"
    )
    largest = max(record["gap"] for record in records if record["method"] == CLOSED_FORM)
    print(f"largest certified gap of the closed form: {largest:.1e}, expected at most {CLOSED_FORM_GAP:g}")
    write_json(given.results, "lp1-smoke" if given.smoke else "lp1", records)
    return 0 if largest <= CLOSED_FORM_GAP else 1
