"""Times, values and errors beside those of libqif, the one public library that computes an optimal randomizer.

Its linear program minimises an expected loss over all tables with as many outputs as there are labels, private by any
metric of the labels. It supports neither unbiasedness nor outputs that are not listed beforehand, and does not bound
the error of its answer. So both solve two problems that it can state: keeping a class (``zero_one``, [G21] LP1) and the
least squared loss with the labels as outputs, each for pure privacy and for metric privacy. Under metric privacy
epsilon is per unit of the labels, both have rows for neighbours alone, and our time includes the exact table.

A certificate judges ours. The table of libqif is judged unrepaired (:mod:`benchmarks.raw`), beside our proven optimum.
libqif lives in an environment of its own, made by ``--setup-peers``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import Benchmark, Peer, Row, add_setup, median_seconds
from benchmarks.raw import judge_metric_table, judge_table
from optrand import classification, regression, rr_with_prior, solve
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem
from optrand.programs import Metric, Program
from optrand.programs._mechanism import ProgramMechanism

SIZES = (10, 20, 40, priors.WEEKS)
EPSILONS = {"pure": (0.1, 1.0, 4.0, 17.0), "metric": (0.1, 0.3, 1.0)}
GAP = 1e-9
"""Relative gap within which our answers must be proven."""

PEER = Peer("libqif")


def our_answer(loss: str, problem: Problem, privacy: str = "pure") -> Mechanism | ProgramMechanism:
    """Answer by RRWithPrior, by the solver that dispatch chooses, or by a program with metric privacy."""
    if privacy == "metric":
        return solve(metric_program(loss, problem))
    return rr_with_prior(problem.prior, problem.epsilon) if loss == "zero_one" else solve(problem)


def metric_program(loss: str, problem: Problem) -> Program:
    """State a problem with metric privacy in place of pure, its epsilon per unit of the labels, and labels as outputs.

    Examples
    --------
    >>> program = metric_program(
    ...     "squared", regression(range(3), np.full(3, 1 / 3), 0.5, outputs=range(3))
    ... )
    >>> program
    <Program: minimise over 9 variables, 15 rows: sum, privacy>
    """
    parts = problem.labels, problem.prior, problem.labels
    privacy = Metric(problem.labels, problem.epsilon)
    if loss == "zero_one":
        return Program(*parts, loss=np.eye(problem.k), privacy=privacy, maximize=True)
    return Program(*parts, privacy=privacy)


def their_answer(loss: str, problem: Problem, optimum: float, limit: float, privacy: str = "pure") -> Row:
    """Run libqif, and judge the table that it returns."""
    request = {"prior": problem.prior.tolist(), "epsilon": problem.epsilon, "loss": loss, "privacy": privacy}
    found = PEER.run("libqif.py", json.dumps(request), limit=limit)
    if "error" in found:
        return {"verdict": found["error"]}
    row, table = {"their_seconds": found["seconds"]}, np.array(found["matrix"], dtype=np.float64)
    if table.shape != (problem.k, problem.k) or not np.isfinite(table).all():
        return row | {"verdict": f"a table of shape {table.shape}, expected finite numbers, {problem.k} x {problem.k}"}
    if privacy == "metric":
        truth = judge_metric_table(problem, table, optimum)
    else:
        truth = judge_table(problem, problem.labels, table, optimum)
    return row | {"their_value": truth["value"], "distance": truth["distance"], "verdict": truth["verdict"]}


def measure(given: Any) -> Iterator[Row]:
    """Solve every problem by both."""
    if given.setup_peers:
        PEER.set_up()
    for privacy, epsilons in EPSILONS.items():
        for k in SIZES[:1] if given.smoke else SIZES:
            for epsilon in epsilons[1:2] if given.smoke else epsilons:
                prior = priors.dirichlet(k)
                yield compare_on(privacy, "zero_one", classification(prior, epsilon), given.limit)
                on_labels = regression(range(k), prior, epsilon, outputs=range(k))
                yield compare_on(privacy, "squared", on_labels, given.limit)


def compare_on(privacy: str, loss: str, problem: Problem, limit: float) -> Row:
    """Return the times, values and verdicts of one problem."""
    ours = our_answer(loss, problem, privacy)
    gap = ours.certificate.gap
    seconds = median_seconds(lambda: our_answer(loss, problem, privacy))
    row: Row = {
        "privacy": privacy,
        "loss": loss,
        "k": problem.k,
        "epsilon": problem.epsilon,
        "seconds": seconds,
        "value": ours.value,
        "gap": gap,
        "right": gap <= GAP,
    }
    row |= their_answer(loss, problem, ours.value, limit, privacy)
    return row | {"ratio": row["their_seconds"] / seconds if "their_seconds" in row else None}


TABLES = {
    "The same problems, solved by both (the time is ours)": (
        "k privacy loss epsilon seconds value gap their_seconds:time their_value:.8g ratio:.3g distance verdict"
    ),
}
main = Benchmark("libqif", __doc__, measure, TABLES, 120.0, add_setup).run
