"""The solver of unbiased problems on the line, compiled and not, beside the older one; and a thousand priors at once.

Only `solve` is timed, in processor seconds of one warm process a form, with one thread of arithmetic; every answer is
then certified in exact arithmetic, at sizes where that takes minutes in floats, rounded down. Numba's own switch turns
it off in the process of the form without it. A thousand Dirichlet priors of 53 labels at epsilon 0.5 to 4 are solved by
`solve_many`; bins and classes likewise.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness import ONE_THREAD, circumstances, duration, options, print_table, write_json
from benchmarks.priors import dirichlet
from optrand import certify, classification, regression, solve, solve_many, unbiased_regression
from optrand.base.compiled import COMPILED
from optrand.certificates.quick import quick_gap
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import Flow, Solver

__all__ = ["ONE", "grown", "problems", "readings"]

ONE = (*((k, epsilon) for k in (53, 401, 4_001, 10_001) for epsilon in (1.0, 3.0)), (100_001, 1.0))
SMOKE = ((11, 1.0), (53, 3.0))
MANY, SMOKE_MANY, LABELS = 1_000, 20, 53
EXACT, OLD = 10_001, 4_001
"""Labels up to which answers are certified exactly, and up to which the older solver is asked."""

REQUIRED = 1e-9
PATIENCE = 3.0
"""Seconds after which a solve is not repeated."""

SEED = 53
COLUMNS = ("what", "form", "each", "count", "worst gap", "proven")


def problems(kind: str, count: int) -> list[Problem]:
    """Problems of one kind, their priors and epsilons drawn with a seed."""
    rng = np.random.default_rng(SEED)
    priors = rng.dirichlet(np.ones(LABELS), count)
    epsilons = np.exp(rng.uniform(math.log(0.5), math.log(4.0), count))
    pairs = list(zip(priors, epsilons.tolist(), strict=True))
    if kind == "classes":
        return [classification(prior, epsilon) for prior, epsilon in pairs]
    state = unbiased_regression if kind == "unbiased" else regression
    return [state(np.arange(LABELS), prior, epsilon) for prior, epsilon in pairs]


def readings(smoke: bool, *, old: bool) -> list[dict[str, Any]]:
    """Rows of the form that this process has, and of the older solver where asked."""
    form = "compiled" if COMPILED else "numpy and LAPACK"
    found = []
    for k, epsilon in SMOKE if smoke else ONE:
        if k > EXACT and not COMPILED:
            continue
        problem = unbiased_regression(np.arange(k), dirichlet(k), epsilon)
        found.append(_one(problem, form, None))
        if old and k <= OLD:
            found.append(_one(problem, "the older solver", Flow()))
    for kind in ("unbiased", "bins", "classes"):
        given = problems(kind, SMOKE_MANY if smoke else MANY)
        solve_many(given[:3])
        start = time.process_time()
        solutions = solve_many(given)
        seconds = time.process_time() - start
        found.append(_row(f"{len(given):,} priors, {LABELS} labels, {kind}", form, seconds / len(given), solutions))
    return found


def _one(problem: Problem, form: str, solver: Solver | None) -> dict[str, Any]:
    """Median of up to five solves after one that is not counted."""
    times, solution = list[float](), solve(problem, solver)
    while len(times) < 5 and sum(times) < PATIENCE:
        start = time.process_time()
        solution = solve(problem, solver)
        times.append(time.process_time() - start)
    row = _row(f"{problem.k:,} labels, epsilon {problem.epsilon:g}", form, float(np.median(times)), [solution])
    return {**row, "k": problem.k, "epsilon": problem.epsilon}


def rows_of_a_process(scope: str, environment: dict[str, str], *, smoke: bool) -> list[dict[str, Any]]:
    """Rows of a process of its own with one thread of arithmetic and some more environment."""
    command = [sys.executable, "-m", "benchmarks", "many", "--rows", scope, *(["--smoke"] if smoke else [])]
    run = subprocess.run(command, env=os.environ | ONE_THREAD | environment, check=True, capture_output=True, text=True)
    rows: list[dict[str, Any]] = json.loads(run.stdout)
    return rows


def _row(what: str, form: str, seconds: float, solutions: Sequence[Solution]) -> dict[str, Any]:
    gaps = [quick_gap(one) if one.problem.k > EXACT else certify(one).gap for one in solutions]
    worst = max(gaps)
    proven = sum(gap <= REQUIRED for gap in gaps)
    return {"what": what, "form": form, "seconds": seconds, "count": len(gaps), "gap": worst, "proven": proven}


def grown(rows: Sequence[dict[str, Any]], form: str, epsilon: float) -> float:
    """Power of the number of labels that the times of a form grow with, from 401 labels on; NaN of one size.

    Examples
    --------
    >>> rows = [{"form": "new", "epsilon": 1.0, "k": k, "seconds": 1e-5 * k**1.2} for k in (401, 4001, 10001)]
    >>> round(grown(rows, "new", 1.0), 6), grown(rows, "old", 1.0)
    (1.2, nan)
    """
    some = [(row["k"], row["seconds"]) for row in rows if (row["form"], row.get("epsilon")) == (form, epsilon)]
    sizes = [(k, seconds) for k, seconds in some if k >= 401]
    if len(sizes) < 2:
        return math.nan
    x, y = np.log(np.array(sizes)).T
    return float(np.polyfit(x, y, 1)[0])


def picture(rows: Sequence[dict[str, Any]], results: Any, name: str) -> None:
    """Time against the number of labels, of every form."""
    from benchmarks.pictures import drawing, log_log, looks

    forms = list(dict.fromkeys(row["form"] for row in rows))
    with drawing(results, name, (4.8, 3.4)) as figure:
        axes = figure.subplots()
        for look, form in zip(looks(forms, "forms"), forms, strict=True):
            some = [row for row in rows if row["form"] == form and row.get("epsilon") == ONE[0][1]]
            if some:
                axes.plot([row["k"] for row in some], [row["seconds"] for row in some], label=form, **look)
        sizes = [row["k"] for row in rows if "k" in row]
        log_log(axes, "labels", "solving (s of one core)", [k for k in (53, 401, 4_001, 100_001) if k <= max(sizes)])
        axes.legend(loc="upper left")


def main(arguments: Sequence[str]) -> int:
    """Measure, print, draw, and return 1 if an answer is not proven."""
    parser = options("many", __doc__)
    parser.add_argument(
        "--rows", choices=("all", "new"), help="print rows of this process as JSON, with or without the older solver's"
    )
    given = parser.parse_args(arguments)
    if given.rows:
        print(json.dumps(readings(given.smoke, old=given.rows == "all")))
        return 0
    rows = rows_of_a_process("all", {}, smoke=given.smoke)
    if COMPILED:
        rows += rows_of_a_process("new", {"NUMBA_DISABLE_JIT": "1"}, smoke=given.smoke)
    rows.sort(key=lambda row: (row.get("k", math.inf), row["what"], row["form"]))
    cells = [
        [
            row["what"],
            row["form"],
            duration(row["seconds"]),
            f"{row['count']:,}",
            f"{row['gap']:.1e}",
            f"{row['proven']:,}",
        ]
        for row in rows
    ]
    print_table(f"Unbiased on the line: `solve` alone, processor seconds\n{circumstances()}", COLUMNS, cells)
    for form, epsilon in dict.fromkeys((row["form"], row["epsilon"]) for row in rows if "epsilon" in row):
        power = grown(rows, form, epsilon)
        if math.isfinite(power):
            print(f"{form}, epsilon {epsilon:g}: time grows as k^{power:.2f} from 401 labels on")
    name = "many-smoke" if given.smoke else "many"
    write_json(given.results, name, rows)
    picture(rows, given.results, name)
    return 0 if all(row["proven"] == row["count"] for row in rows) else 1
