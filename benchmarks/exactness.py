"""Random problems and problems at the edges: private to the integer, unbiased, and proven to be optimal.

Without an option: even, clustered and half-empty priors, without bias, with a bias penalty and with free bias, on the
line and in an interval (`tests/random_problems.py`). With `--tails` also Gaussian tails and spikes. With `--thin`
priors that fade away, at several bias penalties. With `--edges` few labels in hard positions at epsilon up to 600.

Each problem is solved and certified as a user would, in a process that is killed at the time limit, and the
integer table is verified once more by code that shares nothing with the package. Privacy, totals and means must be
right for every mechanism. A gap that does not close is no error, since the certificate states it, but 199 of 200 must
close to 1e-9. With `--thin` it is 99 of 100, of bias penalties up to 100, and with `--edges` 49 of 50, up to an
epsilon of 10. Beyond them floats lose digits. Of all problems of these two sweeps it is 9 of 10.
"""

from __future__ import annotations

import decimal
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Clock, Row, Worker
from benchmarks.raw import largest_bias, largest_ratio
from optrand import certify, solve
from optrand.errors import OptrandError
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem
from tests.random_problems import FAMILIES, OPEN, TAILS, few_labels, random_problem, thin_tails

SHARES = {"edges": (0.98, 0.9), "thin": (0.99, 0.9), "random": (0.995, 0.995)}
"""Shares of the problems of each sweep that must be proven: without classes that may stay open, and of all."""


def verify(mechanism: Mechanism) -> Row:
    """Go through the table row by row and column by column, in integers.

    The mechanism is ``private`` if no two weights of one output have a ratio above its own, and that is at most
    ``exp(epsilon)``. ``totals`` is whether all rows have its own total. The ``bias`` is the largest ``|E[M(y)] - y|``,
    as a share of the range of the labels.

    Examples
    --------
    >>> from optrand import debiased_rr
    >>> verify(debiased_rr([0, 1, 2], 1.0))["private"]
    True
    """
    steps, labels = [dict(column) for column in mechanism.table.columns], mechanism.labels
    columns = [itertools.accumulate([column.get(y, 0) for y in range(labels.size)]) for column in steps]
    weights = np.array([list(column) for column in columns], dtype=object).T
    totals, ratio = weights.sum(axis=1), largest_ratio(weights)
    with decimal.localcontext() as context:
        context.prec = 60
        most = Fraction(decimal.Decimal(mechanism.problem.epsilon).exp()) * (1 - Fraction(1, 10**55))
    private = ratio is not None and ratio <= mechanism.realised_ratio <= most and weights.min() > 0
    bias = largest_bias(weights, totals, labels, mechanism.outputs)
    share = float(bias) / (float(np.ptp(labels)) or 1.0)
    return {"private": private, "totals": set(totals) == {mechanism.total}, "bias": share}


def examine(problem: Problem) -> Row:
    """Solve, certify and verify one problem. An error is part of the record."""
    start, row = time.perf_counter(), unanswered("")
    try:
        mechanism = solve(problem)
        row["seconds"] = time.perf_counter() - start
        proof = certify(mechanism)
    except OptrandError as error:
        return row | {"error": f"{type(error).__name__}: {error}"}
    row |= verify(mechanism)
    if not problem.unbiased:
        row["bias"] = None
    return row | {
        "gap": math.inf if proof.findings else proof.gap,
        "right": row["private"] and row["totals"] and not row["bias"],
        "error": "; ".join(proof.findings),
    }


def unanswered(error: str) -> Row:
    """Make the record of a problem without a mechanism: nothing is wrong, and no gap is closed."""
    return {"seconds": 0.0, "gap": math.inf, "right": True, "error": error}


def posed(given: Any) -> Iterator[tuple[int, tuple[str, ...], Problem]]:
    """List numbers, classes and problems of the chosen sweep."""
    first, last = given.start, given.start + (18 if given.smoke else given.count)
    if given.edges:
        step = 173 if given.smoke else max(1, 7280 // given.count)
        # Epsilons come in turns of 13 and numbers of labels in turns of 11: no step may leave some out.
        while math.gcd(step, 13 * 11) > 1:
            step += 1
        yield from ((n, one.family, one.problem) for n, one in enumerate(few_labels()) if n % step == 0)
    elif given.thin:
        yield from ((n, *one) for n, one in enumerate(thin_tails()) if n % (23 if given.smoke else 1) == 0)
    else:
        families = TAILS if given.tails else FAMILIES
        for number in range(first, last):
            kind, problem = random_problem(number, 8 if given.smoke else given.largest, families)
            yield number, kind[:2], problem


def summarize(kind: str, rows: Sequence[Row]) -> Row:
    """Count the results of one class, or of all."""
    made = [row for row in rows if "private" in row]
    worst = max(rows, key=lambda row: float(row["gap"]))
    return {
        "kind": kind,
        "made": len(made),
        "count": len(rows),
        **{promise: sum(row[promise] for row in made) for promise in ("private", "totals")},
        "bias": max((row["bias"] for row in made if row["bias"] is not None), default=None),
        "closed": sum(row["gap"] <= 1e-9 for row in rows) / len(rows),
        "nearly": sum(row["gap"] <= 1e-6 for row in rows) / len(rows),
        "worst": worst["gap"],
        "slowest": max(row["seconds"] for row in rows),
        "number": str(worst["number"]),
    }


def measure(given: Any) -> Iterator[Row]:
    """Examine every problem of the sweep, then count by class. The last row is right if enough are proven."""
    worker, clock, rows = Worker(), Clock(given.limit), list[Row]()
    worker.call(examine, random_problem(0, 8)[1], limit=clock.rehearsal)
    for number, kind, problem in posed(given):
        row, error = worker.call(examine, problem, limit=clock.limit)
        rows.append((unanswered(error) if row is None else row) | {"number": number, "class": ", ".join(kind)})
        if not rows[-1]["gap"] <= 1e-9:
            print(f"number {number}, {rows[-1]['class']}: gap {rows[-1]['gap']:.1e} {rows[-1]['error']}", flush=True)
        yield rows[-1]
    worker.close()
    for name in dict.fromkeys(row["class"] for row in rows):
        yield summarize(name, [row for row in rows if row["class"] == name])
    promised = [row for row in rows if not row["class"].endswith(OPEN)]
    shares = SHARES["edges" if given.edges else "thin" if given.thin else "random"]
    for name, some, share in zip(("promised", "all"), (promised, rows), shares, strict=True):
        total = summarize(name, some)
        still_open = sum(not row["gap"] <= 1e-9 for row in some)
        # In a small sample one problem weighs some per cent, and classes that may stay open are most of the rest.
        enough = still_open <= max(1, (1 - share) * len(some)) or (given.smoke and name == "all")
        yield total | {"right": enough}


def arguments(parser: Any) -> None:
    """Add the options of the sweeps."""
    parser.add_argument("--count", type=int, default=1_000, help="how many problems (default: 1,000)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first one (default: 0)")
    parser.add_argument("--largest", type=int, default=401, help="the most labels (default: 401)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tails", action="store_true", help="Gaussian tails and spikes as well")
    kinds.add_argument("--thin", action="store_true", help="instead, priors that fade away, at bias penalties")
    kinds.add_argument("--edges", action="store_true", help="instead, few labels in hard positions, epsilon to 600")


TABLES = {
    "Private, of one total, without bias, and proven to 1e-9 (closed) and to 1e-6 (nearly)": (
        "kind made count private totals bias closed:.1% nearly:.1% worst:.1e slowest number"
    ),
}
main = Benchmark("exactness", __doc__, measure, TABLES, 120.0, arguments).run
