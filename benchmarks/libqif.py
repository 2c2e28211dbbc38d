"""Against libqif, the one public library that computes an optimal randomizer: times, values, and what is true of both.

Its linear program minimises an expected loss over all epsilon-DP tables with as many outputs as there are labels. It
knows no unbiasedness and no output that is not listed beforehand, and does not say how good its answer is. So both
solve what it can state: keeping a class (``zero_one``, [G21] LP1) and the least squared loss with the labels as
outputs. A certificate judges both. libqif lives in an environment of its own, made by ``--setup-peers``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import priors
from benchmarks.environments import ask, set_up
from benchmarks.harness import circumstances, duration, median_seconds, options, print_table, use_one_core, write_json
from optrand import Randomizer, certify, classification, regression, rr_with_prior, solve
from optrand.errors import InvalidInput, NotCertified
from optrand.model.problem import Problem
from optrand.model.solution import Solution

EPSILONS = (0.1, 1.0, 4.0, 17.0)
SIZES = (10, 20, 40, priors.WEEKS)
OUR_GAP = 1e-9
"""What our answers must prove, or the benchmark fails."""

COLUMNS = ("loss", "K", "epsilon", "ours", "our gap", "libqif", "time / ours", "its gap", "verdict on libqif")


def posed(smoke: bool) -> Iterator[tuple[str, Problem]]:
    """The losses by their names, on a rough prior."""
    for k in SIZES[:1] if smoke else SIZES:
        prior = priors.dirichlet(k)
        for epsilon in EPSILONS[1:2] if smoke else EPSILONS:
            yield "zero_one", classification(prior, epsilon)
            yield "squared", regression(range(k), prior, epsilon, outputs=range(k))


def solved(loss: str, problem: Problem) -> Solution:
    """Our answer: RRWithPrior, or what dispatch chooses."""
    if loss == "zero_one":
        return rr_with_prior(problem.prior, problem.epsilon)
    try:
        return solve(problem)
    except NotCertified as refusal:
        best: Solution | None = refusal.solution
        if best is None:
            raise
        return best


def theirs(loss: str, problem: Problem, limit: float) -> dict[str, Any]:
    """What libqif answers, and what a certificate makes of it."""
    asked = {"prior": problem.prior.tolist(), "epsilon": problem.epsilon, "loss": loss}
    found = ask("libqif", "libqif.py", (json.dumps(asked),), benchmark="libqif", limit=limit)
    if "error" in found:
        return {"their_seconds": math.inf, "their_gap": math.inf, "verdict": found["error"]}
    record = {"their_seconds": found["seconds"], "version": found["version"]}
    try:
        answer = Randomizer(problem.labels, problem.labels, found["matrix"], problem.epsilon)
    except InvalidInput as refusal:
        return record | {"their_gap": math.inf, "verdict": str(refusal)}
    best = solved(loss, problem).dual
    proof = certify(problem, answer, dual=best)
    verdict = "; ".join(proof.findings) or f"private; within {max(proof.gap, 1e-16):.0e} of the optimum"
    return record | {"their_gap": proof.gap, "their_value": problem.value(answer), "verdict": verdict}


def compared(loss: str, problem: Problem, limit: float) -> dict[str, Any]:
    """One problem, solved by both."""
    ours = solved(loss, problem)
    proof = certify(ours)
    return {
        "loss": loss,
        "k": problem.k,
        "epsilon": problem.epsilon,
        "seconds": median_seconds(lambda: solved(loss, problem), 5),
        "value": ours.value,
        "gap": proof.gap,
        **theirs(loss, problem, limit),
    }


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    ratio = record["their_seconds"] / record["seconds"]
    return [
        record["loss"],
        str(record["k"]),
        f"{record['epsilon']:g}",
        duration(record["seconds"]),
        f"{record['gap']:.0e}",
        duration(record["their_seconds"]),
        f"{ratio:.3g}" if math.isfinite(ratio) else "-",
        f"{record['their_gap']:.0e}" if math.isfinite(record["their_gap"]) else "-",
        record["verdict"],
    ]


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and return 1 if an answer of ours is not proven."""
    parser = options("libqif", __doc__, limit=120.0)
    parser.add_argument("--setup-peers", action="store_true", help="install libqif first")
    given = parser.parse_args(arguments)
    if given.setup_peers:
        set_up("libqif")
    use_one_core()
    print(circumstances())
    records = [compared(loss, problem, given.limit) for loss, problem in posed(given.smoke)]
    print_table("The same problems, solved by both", COLUMNS, [row(record) for record in records])
    worst = max(record["gap"] for record in records)
    print(f"largest certified gap of ours: {worst:.1e}, expected at most {OUR_GAP:g}")
    write_json(given.results, "libqif-smoke" if given.smoke else "libqif", records)
    return 0 if worst <= OUR_GAP else 1
