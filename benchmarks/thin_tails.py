"""Priors that fade away, at every price of bias: what is proven of the best randomizers.

Poisson, binomial, normal and geometric priors have entries far below what floats resolve beside 1, and at a finite bias
penalty the multipliers of those labels are charged in proportion to the inverse of their prior. Outputs lie on the
line, between the first and the last label, or in an interval within, which many labels are beyond. Each problem is
solved, tabulated and certified as a user would, in a process that is killed at the time limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.worker import Worker
from optrand import Interval, certify, regression, solve, tabulate
from optrand.base.validation import Floats
from optrand.errors import OptrandError
from optrand.model.problem import Problem

__all__ = ["asked", "examined", "faded"]

FAMILIES = ("poisson", "binomial", "normal", "geometric")
PLACES = ("line", "labels", "within")
PENALTIES = (0.1, 1.0, 3.0, 10.0, 100.0, 1000.0)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CLOSED = 1e-9
SHARE = 0.99
"""How many of each class must close."""

COLUMNS = ("prior", "outputs", "proven to 1e-9", "worst gap", "slowest", "not proven")

Class = tuple[str, str, float, float]
"""Prior, place, bias penalty and epsilon."""


def faded(family: str) -> tuple[Floats, Floats]:
    """Labels and prior: Poisson of mean 5, 30 trials of chance 0.1, a normal of deviation 3, halves and less.

    Examples
    --------
    >>> labels, prior = faded("poisson")
    >>> labels.size, float(f"{prior.min():.0e}")
    (41, 8e-23)
    """
    if family == "poisson":
        labels = np.arange(41.0)
        logarithms = labels * math.log(5) - np.array([math.lgamma(y + 1) for y in labels])
    elif family == "binomial":
        labels = np.arange(31.0)
        choices = np.array([math.lgamma(31) - math.lgamma(y + 1) - math.lgamma(31 - y) for y in labels])
        logarithms = choices + labels * math.log(0.1) + (30 - labels) * math.log(0.9)
    elif family == "normal":
        labels = np.arange(-30.0, 31.0)
        logarithms = -(labels**2) / 18
    else:
        labels = np.arange(60.0)
        logarithms = labels * math.log(0.4)
    weights = np.exp(logarithms - logarithms.max())
    return labels, weights / math.fsum(weights)


def asked(family: str, place: str, penalty: float, epsilon: float) -> Problem:
    """The problem of a class; within means from one deviation below the mean to two above it."""
    labels, prior = faded(family)
    mean = float(prior @ labels)
    deviation = math.sqrt(prior @ (labels - mean) ** 2)
    outputs = {
        "line": None,
        "labels": Interval(labels[0], labels[-1]),
        "within": Interval(mean - deviation, mean + 2 * deviation),
    }[place]
    return regression(labels, prior, epsilon, bias_penalty=penalty, outputs=outputs)


def classes(*, smoke: bool = False) -> list[Class]:
    """All of them; in small each prior and place once."""
    if not smoke:
        return list(product(FAMILIES, PLACES, PENALTIES, EPSILONS))
    pairs = list(product(FAMILIES, PLACES))
    return [(*pair, PENALTIES[at % 6], EPSILONS[at % 4]) for at, pair in enumerate(pairs)]


def examined(family: str, place: str, penalty: float, epsilon: float) -> dict[str, Any]:
    """Solve, tabulate and certify; what went wrong is part of the record."""
    start = time.perf_counter()
    record = unanswered(family, place, penalty, epsilon)
    try:
        proof = certify(tabulate(solve(asked(family, place, penalty, epsilon))))
    except OptrandError as error:
        return record | {"seconds": time.perf_counter() - start, "error": f"{type(error).__name__}: {error}"}
    return record | {
        "seconds": time.perf_counter() - start,
        "gap": math.inf if proof.findings else proof.gap,
        "error": "; ".join(proof.findings),
    }


def unanswered(family: str, place: str, penalty: float, epsilon: float) -> dict[str, Any]:
    """The record of a problem without an answer."""
    record: dict[str, Any] = {"family": family, "place": place, "penalty": penalty, "epsilon": epsilon}
    return record | {"seconds": math.nan, "gap": math.inf, "error": ""}


def closed(record: dict[str, Any]) -> bool:
    """Whether the mechanism is proven optimal."""
    return float(record["gap"]) <= CLOSED


def row(family: str, place: str, records: Sequence[dict[str, Any]]) -> list[str]:
    """A row of the table."""
    proven = [record for record in records if closed(record)]
    rest = [f"{r['penalty']:g} at {r['epsilon']:g}: {r['gap']:.1e}" for r in records if not closed(r)]
    return [
        family,
        place,
        f"{len(proven)} of {len(records)}",
        f"{max((record['gap'] for record in proven), default=math.nan):.1e}",
        duration(max(record["seconds"] for record in records)),
        "; ".join(rest),
    ]


def main(arguments: Sequence[str]) -> int:
    """Examine every class, print the table, and return 1 if too few of a prior and a place are proven."""
    given = options("thin_tails", __doc__, limit=60.0).parse_args(arguments)
    use_one_core()
    worker, records = Worker(), []
    for one in classes(smoke=given.smoke):
        record, error = worker.call(examined, *one, limit=given.limit)
        records.append(unanswered(*one) | {"error": error} if record is None else record)
    worker.close()
    groups = {
        (family, place): [r for r in records if (r["family"], r["place"]) == (family, place)]
        for family, place in product(FAMILIES, PLACES)
    }
    rows = [row(*name, mine) for name, mine in groups.items()]
    print_table(f"{len(records)} problems whose priors fade away\n{circumstances()}", COLUMNS, rows)
    write_json(given.results, "thin_tails-smoke" if given.smoke else "thin_tails", records)
    return 0 if all(sum(map(closed, mine)) >= SHARE * len(mine) for mine in groups.values()) else 1
