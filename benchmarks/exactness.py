"""Random flow mechanisms, one after another: private to the integer, unbiased, and proven to be optimal.

Even, clustered and half-empty priors; no care for bias, a price of bias, no bias at all; outputs on the line and on an
interval. Each problem is solved, tabulated and certified as a user would, in a process of its own that is killed at the
time limit, and the integer table is verified once more by code that shares nothing with the package: totals and ratios
of its rows and columns, and the exponential of epsilon in decimals.

Privacy, totals and means must be right for every mechanism. A gap that does not close is no error, for the package says
so; 199 in 200 of each class of prior and bias must close.
"""

from __future__ import annotations

import decimal
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.worker import OVER_LIMIT, Worker
from optrand import Interval, certify, regression, solve, tabulate, unbiased_range
from optrand.errors import OptrandError
from optrand.mechanism.mechanism import Mechanism
from optrand.model.problem import Problem

__all__ = ["Verdict", "drawn", "examined", "verified"]

SEED = 271828
FAMILIES = ("spread", "clustered", "half zero")
TAILS = (*FAMILIES, "gaussian tails", "spikes")
"""With priors of which most entries are next to nothing."""

CARES = ("free", "priced", "unbiased")
PLACES = ("line", "interval")
LARGEST = 401
EPSILONS = 0.05, 8.0
PENALTIES = 1e-2, 1e2
CLOSED = 1e-9
NEARLY = 1e-6
SHARE = 0.995
"""How many of each class must close."""

REHEARSED, FEW, REHEARSAL = 30, 200, 300.0
"""Problems of every class that are solved first, labels of each at most, and seconds: they compile the kernel."""

LARGEST_BIAS = 0.0
"""Of the range of the labels."""

COLUMNS = ("prior", "bias", "mechanisms", "private", "totals", "largest bias", "<= 1e-9", "<= 1e-6", "worst")


def drawn(
    number: int, largest: int = LARGEST, families: Sequence[str] = FAMILIES
) -> tuple[tuple[str, str, str], Problem]:
    """The class and the problem of a number: every class in turn, all else at random.

    Examples
    --------
    >>> [drawn(number)[0] for number in (0, 1, 17)]
    [('spread', 'free', 'line'), ('clustered', 'free', 'line'), ('half zero', 'unbiased', 'interval')]
    """
    rest, at = divmod(number, len(families))
    family = families[at]
    care, place = CARES[rest % 3], PLACES[rest // 3 % 2]
    rng = np.random.default_rng([SEED, number])
    k = round(_log_uniform(rng, 2, largest))
    epsilon = _log_uniform(rng, *EPSILONS)
    gaps = np.ones(k)
    prior = rng.dirichlet(np.full(k, 0.5)) + 1e-4
    if family == "clustered":
        gaps[rng.random(k) < 0.5] = 1e-5 * k
    elif family == "half zero":
        prior[rng.permutation(k)[: k // 2]] = 0.0
    elif family == "gaussian tails":
        prior = np.maximum(np.exp(-(((np.arange(k) - rng.uniform(0, k)) * rng.uniform(2, 12) / k) ** 2) / 2), 1e-20)
    elif family == "spikes":
        prior = np.where(rng.random(k) < 3 / k, 1.0, 1e-6) * prior
    labels = np.cumsum(gaps) - gaps[0]
    penalty = {"free": 0.0, "priced": _log_uniform(rng, *PENALTIES), "unbiased": math.inf}[care]
    outputs = None
    if place == "interval":
        low, high = unbiased_range(labels, epsilon) if care == "unbiased" else (labels[0], labels[-1])
        margins = rng.uniform(0.0 if care == "unbiased" else -0.3, 0.5, 2) * (high - low)
        outputs = Interval(low - margins[0], high + margins[1])
    return (family, care, place), regression(
        labels, prior / prior.sum(), epsilon, bias_penalty=penalty, outputs=outputs
    )


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass(frozen=True)
class Verdict:
    """What was counted in the integers of a mechanism.

    Attributes
    ----------
    private : bool
        No two weights of one output have a ratio above the mechanism's own, and that is at most ``exp(epsilon)``.
    totals : bool
        All rows of weights have one total, the mechanism's own.
    bias : float
        The largest ``|E[M(y)] - y|``, as a share of the range of the labels.
    """

    private: bool
    totals: bool
    bias: float


def verified(mechanism: Mechanism) -> Verdict:
    """Go through the table row by row and column by column, in integers.

    Examples
    --------
    >>> from optrand import debiased_rr
    >>> verified(tabulate(debiased_rr([0, 1, 2], 1.0))).private
    True
    """
    rows = _rows(mechanism)
    with decimal.localcontext() as context:
        context.prec = 60
        exponential = Fraction(decimal.Decimal(mechanism.problem.epsilon).exp()) * (1 - Fraction(1, 10**55))
    ratio = mechanism.ratio
    tops, bottoms = [max(column) for column in zip(*rows, strict=True)], [min(c) for c in zip(*rows, strict=True)]
    within = all(
        bottom > 0 and top * ratio.denominator <= bottom * ratio.numerator
        for top, bottom in zip(tops, bottoms, strict=True)
    )
    outputs, labels = (list(map(Fraction, x.tolist())) for x in (mechanism.outputs, mechanism.labels))
    unit = math.lcm(*(x.denominator for x in outputs))
    pulls = [int(v * unit) for v in outputs]
    biases = [
        abs(Fraction(sum(w * v for w, v in zip(row, pulls, strict=True)), sum(row) * unit) - y)
        for row, y in zip(rows, labels, strict=True)
    ]
    return Verdict(
        private=within and ratio <= exponential,
        totals={sum(row) for row in rows} == {mechanism.total},
        bias=float(max(biases) / ((labels[-1] - labels[0]) or 1)),
    )


def _rows(mechanism: Mechanism) -> list[list[int]]:
    """The rows of weights, from the arcs where there are some."""
    arcs, ratio = mechanism.arcs, mechanism.ratio
    if arcs is None:
        table: list[list[int]] = mechanism.weights.tolist()
        return table
    rows = [[0] * mechanism.outputs.size for _ in range(mechanism.labels.size)]
    ends = zip(arcs.first.tolist(), arcs.last.tolist(), arcs.at.tolist(), arcs.masses.tolist(), strict=True)
    for first, last, at, mass in ends:
        for y, row in enumerate(rows):
            row[at] += mass * (ratio.numerator if first <= y <= last else ratio.denominator)
    return rows


def unanswered(number: int, largest: int, families: Sequence[str] = FAMILIES) -> dict[str, Any]:
    """The record of a problem without a mechanism."""
    (family, care, place), problem = drawn(number, largest, families)
    record: dict[str, Any] = {"number": number, "family": family, "care": care, "place": place, "k": problem.k}
    return record | {"epsilon": problem.epsilon, "penalty": problem.bias_penalty, "gap": math.inf, "error": ""}


def examined(number: int, largest: int = LARGEST, families: Sequence[str] = FAMILIES) -> dict[str, Any]:
    """Solve, tabulate, certify and verify one problem; what went wrong is part of the record."""
    problem = drawn(number, largest, families)[1]
    record = unanswered(number, largest, families)
    start = time.perf_counter()
    try:
        solution = solve(problem)
        record |= {"seconds": time.perf_counter() - start, "float_gap": certify(solution).gap}
        mechanism = tabulate(solution)
        proof = certify(mechanism)
    except OptrandError as error:
        return record | {"error": f"{type(error).__name__}: {error}"}
    verdict = verified(mechanism)
    return record | {
        "outputs": mechanism.n,
        "arcs": None if mechanism.arcs is None else mechanism.arcs.at.size,
        "private": verdict.private,
        "totals": verdict.totals,
        "bias": verdict.bias if problem.unbiased else None,
        "gap": math.inf if proof.findings else proof.gap,
        "error": "; ".join(proof.findings),
    }


def right(record: dict[str, Any]) -> bool:
    """Whether a mechanism keeps its promises; where none was made, none is broken."""
    return "private" not in record or bool(
        record["private"] and record["totals"] and (record["bias"] is None or record["bias"] <= LARGEST_BIAS)
    )


def closed(records: Sequence[dict[str, Any]], gap: float) -> float:
    """The share of problems with a proof within a gap."""
    return sum(float(record["gap"]) <= gap for record in records) / len(records)


def summary(name: Sequence[str], records: Sequence[dict[str, Any]]) -> list[str]:
    """A row of the table: how one class, or all, did."""
    made = [record for record in records if "private" in record]
    biases = [record["bias"] for record in made if record["bias"] is not None]
    worst = max(records, key=lambda record: float(record["gap"]))
    counts = [len(made), *(sum(record[promise] for record in made) for promise in ("private", "totals"))]
    shares = [closed(records, gap) for gap in (CLOSED, NEARLY)]
    return [
        *name,
        f"{counts[0]} of {len(records)}",
        *map(str, counts[1:]),
        f"{max(biases):.1e}" if biases else "-",
        *(f"{share:.1%}" for share in shares),
        f"{worst['gap']:.1e}, number {worst['number']}",
    ]


def examinations(
    numbers: Sequence[int], largest: int, limit: float, families: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Every problem in a worker that is killed when it takes too long."""
    worker = Worker()
    for number in range(REHEARSED):
        worker.call(examined, number, min(FEW, largest), families, limit=REHEARSAL)
    for number in numbers:
        record, error = worker.call(examined, number, largest, families, limit=limit)
        if record is None:
            record = unanswered(number, largest, families) | {"error": error}
        yield record
    worker.close()


def main(arguments: Sequence[str]) -> int:
    """Examine, print the table, and return 1 if a mechanism breaks a promise or too few gaps of a class close."""
    parser = options("exactness", __doc__, limit=120.0)
    parser.add_argument("--count", type=int, default=1_000, help="how many mechanisms (default: 1,000)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first one (default: 0)")
    parser.add_argument("--largest", type=int, default=LARGEST, help=f"the most labels (default: {LARGEST})")
    parser.add_argument("--tails", action="store_true", help="Gaussian tails and spikes as well")
    given = parser.parse_args(arguments)
    families = TAILS if given.tails else FAMILIES
    use_one_core()
    count, largest = (18, 8) if given.smoke else (given.count, given.largest)
    records = []
    for record in examinations(range(given.start, given.start + count), largest, given.limit, families):
        records.append(record)
        if not right(record) or not record["gap"] <= CLOSED:
            problem = f"{record['family']}, {record['care']}, {record['place']}, k = {record['k']}"
            print(f"number {record['number']} ({problem}): gap {record['gap']:.1e} {record['error']}", flush=True)
    classes = {
        (family, care): [r for r in records if (r["family"], r["care"]) == (family, care)]
        for family in families
        for care in CARES
    }
    classes = {name: mine for name, mine in classes.items() if mine}
    rows = [summary(name, mine) for name, mine in [*classes.items(), (("all", ""), records)]]
    title = f"{len(records)} random flow mechanisms, 2 to {largest} labels, outputs on the line and on intervals"
    print_table(f"{title}\n{circumstances()}", COLUMNS, rows)
    late = sum(record["error"].startswith(OVER_LIMIT) for record in records)
    slowest = max((record.get("seconds", 0.0) for record in records), default=0.0)
    print(f"over the limit: {late}; slowest solve: {duration(slowest)}; shares are of all problems, bias of the range")
    write_json(given.results, "exactness-smoke" if given.smoke else "exactness", records)
    return 0 if all(map(right, records)) and min(closed(mine, CLOSED) for mine in classes.values()) >= SHARE else 1
