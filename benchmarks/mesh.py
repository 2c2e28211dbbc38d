"""The optimal unbiased randomizer of a real prior on finer and finer grids, and on the real line.

Weeks worked (53 labels), epsilon 1, half squared error; grids by Algorithm 2 of [B23]. The paper's program, with a row
for every pair of labels, goes to cvxpy; the floor form to HiGHS; `ColumnGeneration` makes columns when a certificate
asks for them; `Flow` needs no grid. Every solve runs in a process of its own that is killed at the time limit:
building, compiling and reading a program count, the import of libraries does not. Every answer is certified, in floats
and as the exact mechanism that is made from it.

References
----------
.. [B23] Badanidiyuru et al., *Optimal Unbiased Randomizers for Regression with Label Differential Privacy*, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.worker import Measurement, Worker, measure, said_optimal
from optrand import certify, feasible_output_set, tabulate, unbiased_regression
from optrand.certificate import Certificate
from optrand.errors import OptrandError
from optrand.problem import Problem
from optrand.programs import Floor, Pairwise
from optrand.solution import Solution
from optrand.solvers import ColumnGeneration, Flow, LinearProgram, Solver
from optrand.solvers.backends import Cvxpy, Highs

__all__ = ["weeks_problem"]

EPSILON = 1.0
MESHES = (52, 416, 1_664)
REQUIRED_GAP = 1e-6
"""What our own solvers must prove, or the benchmark fails."""

ON_GRIDS: dict[str, Solver] = {
    "pairwise, cvxpy (Clarabel)": LinearProgram(Pairwise(), Cvxpy()),
    "pairwise, cvxpy (HiGHS)": LinearProgram(Pairwise(), Cvxpy("HIGHS")),
    "floor, HiGHS": LinearProgram(Floor(), Highs()),
    "column generation": ColumnGeneration(),
}
ON_THE_LINE: dict[str, Solver] = {"real line, Flow": Flow()}
OURS = ("column generation", "real line, Flow")
COLUMNS = ("method", "mesh", "time", "runs", "time / line", "value", "verified gap", "exact gap", "said", "verdict")


def weeks_problem(mesh: int | None, k: int = priors.WEEKS) -> Problem:
    """The unbiased problem of the weeks-worked prior on `mesh` outputs ([B23], Algorithm 2), or on the line for None.

    Examples
    --------
    >>> weeks_problem(None).k, weeks_problem(52).outputs.values.size
    (53, 52)
    """
    labels = np.arange(float(k))
    outputs = None if mesh is None else feasible_output_set(labels, EPSILON, mesh)
    return unbiased_regression(labels, priors.weeks(k), EPSILON, outputs=outputs)


def exact_proof(solution: Solution) -> tuple[Certificate | None, str]:
    """The certificate of the exact mechanism made from an answer, or why none could be made."""
    try:
        return certify(tabulate(solution)), ""
    except OptrandError as error:
        return None, str(error)


def judged(method: str, mesh: int | None, found: Measurement) -> dict[str, Any]:
    """A measurement with its certificates, as one flat record."""
    record: dict[str, Any] = {"method": method, "mesh": mesh, "seconds": found.seconds, "runs": len(found.times)}
    if found.solution is None:
        return record | {"verdict": found.error}
    proof = certify(found.solution)
    exact, refusal = exact_proof(found.solution)
    exact_gap = math.inf if exact is None or exact.findings else exact.gap
    closed = exact_gap <= REQUIRED_GAP
    doubts = [*proof.findings, *(exact.findings if exact else (refusal,))]
    verdict = "; ".join(
        (*doubts, "the exact mechanism closes") if closed else (*doubts, f"not closed within {REQUIRED_GAP:g}")
    )
    return record | {
        "value": found.solution.value,
        "gap": proof.gap,
        "exact_gap": exact_gap,
        "lower": proof.lower,
        "upper": proof.upper if exact is None else exact.upper,
        "status": found.solution.stats.status,
        "said_optimal": said_optimal(found.solution),
        "verdict": verdict if doubts or not closed else f"proven within {REQUIRED_GAP:g}",
    }


def row(record: dict[str, Any], line: float) -> list[str]:
    """A row of the table."""
    mesh = "none" if record["mesh"] is None else f"{record['mesh']:,}"
    if "value" not in record:
        return [record["method"], mesh, *("-" * 7), record["verdict"]]
    ratio = f"{record['seconds'] / line:.3g}" if math.isfinite(line) else "-"
    gaps = [f"{record[name]:.1e}" for name in ("gap", "exact_gap")]
    start = [record["method"], mesh, duration(record["seconds"]), str(record["runs"]), ratio]
    return [*start, f"{record['value']:.4f}", *gaps, record["status"], record["verdict"]]


def records(k: int, meshes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """Every method on every grid, then the line."""
    worker = Worker()
    tasks = [(method, solver, mesh) for mesh in meshes for method, solver in ON_GRIDS.items()]
    for method, solver, mesh in [*tasks, *((name, solver, None) for name, solver in ON_THE_LINE.items())]:
        print(f"{method}, mesh {mesh or 'none'} ...", flush=True)
        rehearsal = weeks_problem(None if mesh is None else 5, k=3)
        yield judged(method, mesh, measure(worker, solver, weeks_problem(mesh, k), rehearsal=rehearsal, limit=limit))
    worker.close()


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and return 1 if an answer of ours is not proven."""
    given = options("mesh", __doc__, limit=60.0).parse_args(arguments)
    use_one_core()
    k, meshes = (6, (8, 24)) if given.smoke else (priors.WEEKS, MESHES)
    found = list(records(k, meshes, given.limit))
    line = next(record["seconds"] for record in found if record["mesh"] is None)
    title = f"Optimal unbiased randomizers of {k} labels, weeks worked, epsilon {EPSILON:g}, half squared error"
    print_table(f"{title}\n{circumstances()}", COLUMNS, [row(record, line) for record in found])
    write_json(given.results, "mesh-smoke" if given.smoke else "mesh", found)
    proven = [record.get("exact_gap", math.inf) <= REQUIRED_GAP for record in found if record["method"] in OURS]
    return 0 if all(proven) else 1
