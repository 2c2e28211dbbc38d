"""The solver of unbiased problems on the line, compiled and not, and a thousand priors at once.

Only `solve` is timed, in processor seconds of one warm process for each form, with one thread of arithmetic; every
mechanism is then proven. Numba's own switch turns it off in the process of the form without it. A
thousand Dirichlet priors of 53 labels at epsilon 0.5 to 4 are solved by `solve_many`; bins and classes likewise.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import ONE_THREAD, Benchmark, Clock, Row, Worker, prove
from benchmarks.priors import posed
from optrand import Mechanism, classification, regression, solve, solve_many, unbiased_regression
from optrand.base.compiled import LARGE, compile_kernels, kernels_are_compiled
from optrand.model.problem import Problem

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


def compile_now() -> str:
    """Compile the kernels of this process if numba is there, and return the name of its form."""
    compile_kernels(LARGE + 1)
    return "compiled" if kernels_are_compiled() else "numpy and LAPACK"


def prove_all(problems: Sequence[Sequence[Problem]], answers: Sequence[Sequence[Mechanism]], _: float) -> Row:
    """Prove many problems at once."""
    return prove(problems[0], answers[0])


def rows_of(environment: dict[str, str], given: Any) -> Iterator[Row]:
    """Time everything in a process of one form."""
    before = dict(os.environ)
    os.environ.update(ONE_THREAD | environment)
    worker, clock = Worker(), Clock(given.limit, patience=3.0, rehearsal=600.0)
    os.environ.clear()
    os.environ.update(before)
    form, error = worker.call(compile_now, limit=clock.rehearsal)
    if error:
        raise RuntimeError(error)
    row: Row
    for k, epsilon in SMALL_ONE if given.smoke else ONE:
        if k > 10_001 and form != "compiled":
            continue
        problem = posed("Dirichlet", k, epsilon)
        row = {"what": f"{k:,} labels, epsilon {epsilon:g}", "form": form, "k": k, "epsilon": epsilon, "count": 1}
        row |= clock.measure(worker, solve, [problem], [problem])
        row |= clock.judge(worker, prove, [problem], math.nan) if row["runs"] else {"right": False}
        yield row | {"each": row.get("processor")}
    for kind in ("unbiased", "bins", "classes"):
        many = problems(kind, 20 if given.smoke else 1_000)
        row = {"what": f"{len(many):,} priors, {LABELS} labels, {kind}", "form": form, "count": len(many)}
        row |= clock.measure(worker, solve_many, [many], [many[:3]])
        row |= clock.judge(worker, prove_all, [many], math.nan) if row["runs"] else {"right": False}
        yield row | {"each": float(row.get("processor", math.nan)) / len(many)}
    worker.close()


def measure(given: Any) -> Iterator[Row]:
    """Time the form that this machine has, and the one without numba beside it."""
    rows = list(rows_of({}, given))
    yield from rows
    if any(row["form"] == "compiled" for row in rows):
        yield from rows_of({"NUMBA_DISABLE_JIT": "1"}, given)


TABLES = {
    "`solve` alone, processor seconds": "what form each count exact_gap verdict",
}
main = Benchmark("many", __doc__, measure, TABLES, 600.0, one_core=False).run
