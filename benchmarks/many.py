"""The solver of unbiased problems on the line, and a thousand priors at once.

Only `solve` is timed, in processor seconds of one warm process, with one thread of arithmetic. Every mechanism is then
proven. A thousand Dirichlet priors of 53 labels at epsilon 0.5 to 4 are solved by `solve_many`, bins and classes
likewise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.harness import ONE_THREAD, Benchmark, Case, Clock, Method, Row, Worker
from benchmarks.priors import posed
from optrand import classification, regression, solve, solve_many, unbiased_regression
from optrand.model._problem import Problem

ONE = (*((k, epsilon) for k in (53, 401, 4_001, 10_001) for epsilon in (1.0, 3.0)), (100_001, 1.0))
SMALL_ONE = ((11, 1.0), (53, 3.0))
LABELS = 53


def problems(kind: str, count: int) -> list[Problem]:
    """Pose problems of one kind, their priors and epsilons drawn with a seed."""
    rng = np.random.default_rng(LABELS)
    priors = rng.dirichlet(np.ones(LABELS), count)
    pairs = list(zip(priors, np.exp(rng.uniform(math.log(0.5), math.log(4.0), count)).tolist(), strict=True))
    if kind == "classes":
        return [classification(prior, epsilon) for prior, epsilon in pairs]
    state = unbiased_regression if kind == "unbiased" else regression
    return [state(np.arange(LABELS), prior, epsilon) for prior, epsilon in pairs]


def measure(given: Any) -> Iterator[Row]:
    """Time everything in one process."""
    with patch.dict(os.environ, ONE_THREAD):
        worker, clock = Worker(), Clock(given.limit, patience=3.0, rehearsal=600.0)
        for k, epsilon in SMALL_ONE if given.smoke else ONE:
            key = {"what": f"{k:,} labels, epsilon {epsilon:g}", "k": k, "epsilon": epsilon, "count": 1}
            problem = posed("Dirichlet", k, epsilon)
            yield key | clock.measure(worker, Method("solve", solve), Case(key, problem, problem))
        for kind in ("unbiased", "bins", "classes"):
            many = problems(kind, 20 if given.smoke else 1_000)
            key = {"what": f"{len(many):,} priors, {LABELS} labels, {kind}", "count": len(many)}
            yield key | clock.measure(worker, Method("solve_many", solve_many), Case(key, many, many[:3]))
        worker.close()


TABLES = {
    "`solve` alone, processor seconds": "what count processor exact_gap verdict",
}
main = Benchmark("many", __doc__, measure, TABLES, 600.0, one_core=False).run
