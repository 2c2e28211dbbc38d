"""The optimal unbiased randomizer of a real prior on finer and finer grids, and on the real line.

Weeks worked (53 labels), epsilon 1, half squared error; grids by Algorithm 2 of [B23]. The paper's program, with a row
for every pair of labels, goes to cvxpy; the floor form to HiGHS; `ColumnGeneration` makes columns when a certificate
asks for them; `ReducedDual` needs no grid. Randomized response on bins stands beside them as in the paper's table
(Appendix G.3): it has less loss, and is biased. Every solve runs in a process of its own that is killed at the time
limit: building, compiling and reading a program count, the import of libraries does not. A peer that needed more than
the limit is not asked again on a finer grid. Every answer is certified, in floats and as the exact mechanism that is
made from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.worker import Measurement, Worker, measure, said_optimal
from optrand import certify, feasible_output_set, regression, tabulate, unbiased_regression
from optrand.certificates.certificate import Certificate
from optrand.errors import OptrandError
from optrand.model.problem import Problem
from optrand.model.solution import Solution
from optrand.solvers import BinPath, ColumnGeneration, LinearProgram, ReducedDual, Solver
from optrand.solvers.backends import Cvxpy, Highs
from optrand.solvers.grid import Floor, Pairwise

__all__ = ["weeks_problem"]

EPSILON = 1.0
MESHES = (52, 104, 208, 416, 832, 1_664, 4_000, 10_000)
SMALL_MESHES = (8, 24)
PRINTED = {52: 2.38, 416: 17.1, 1_664: 161.0}
"""Seconds that [B23], Appendix G.3, prints for the same labels: another machine, another year of the census."""

REQUIRED_GAP = 1e-6
"""The relative gap within which an answer is called proven."""

OUR_GAP = 1e-9
"""What our own solvers must prove, or the benchmark fails."""

ON_GRIDS: dict[str, Solver] = {
    "pairwise, cvxpy (Clarabel)": LinearProgram(Pairwise(), Cvxpy()),
    "pairwise, cvxpy (HiGHS)": LinearProgram(Pairwise(), Cvxpy("HIGHS")),
    "floor, HiGHS": LinearProgram(Floor(), Highs()),
    "column generation": ColumnGeneration(),
}
LINE, BINS = "real line, ReducedDual", "RR-on-Bins, BinPath"
OFF_GRIDS: dict[str, Solver] = {LINE: ReducedDual(), BINS: BinPath()}
OURS = ("column generation", LINE, BINS)
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
    """Every method on every grid, as far as the limit lets it get, then the line."""
    worker, late = Worker(), dict[str, str]()
    for mesh in meshes:
        for method, solver in ON_GRIDS.items():
            if method in late:
                found = Measurement((), None, f"not asked again: {late[method]}")
            else:
                problem, rehearsal = weeks_problem(mesh, k), weeks_problem(5, k=3)
                found = measure(worker, solver, problem, rehearsal=rehearsal, limit=limit)
                if not found.times:
                    late[method] = f"{found.error} at mesh {mesh:,}"
            yield judged(method, mesh, found) | {"limit": limit}
    for method, solver in OFF_GRIDS.items():
        problem, rehearsal = (weeks_problem(None, size) for size in (k, 3))
        if method == BINS:
            problem, rehearsal = (regression(given.labels, given.prior, EPSILON) for given in (problem, rehearsal))
        yield judged(method, None, measure(worker, solver, problem, rehearsal=rehearsal, limit=limit))
    worker.close()


def picture(found: Sequence[dict[str, Any]], limit: float, k: int, results: Path, name: str) -> None:
    """Time against mesh size; an arrow where a method went over the limit."""
    from benchmarks.pictures import FAINT, drawing, log_log, looks

    with drawing(results, name, (5.6, 3.8)) as figure:
        axes = figure.subplots()
        for look, method in zip(looks(ON_GRIDS, "methods"), ON_GRIDS, strict=True):
            mine = [record for record in found if record["method"] == method]
            ended = [record for record in mine if "value" in record]
            sizes, times = [record["mesh"] for record in ended], [record["seconds"] for record in ended]
            axes.plot(sizes, times, label=method, **look)
            if len(ended) < len(mine):
                missed = mine[len(ended)]["mesh"]
                axes.plot([*sizes[-1:], missed], [*times[-1:], limit], label="_", color=look["color"], linestyle=":")
                axes.plot(missed, limit, label="_", color=look["color"], marker=r"$\uparrow$", markersize=10)
        line = next(record["seconds"] for record in found if record["method"] == LINE)
        meshes = sorted({record["mesh"] for record in found if record["mesh"]})
        axes.axhline(
            line,
            color=looks(ON_GRIDS, "methods")[0]["color"],
            linewidth=2.2,
            alpha=0.35,
            label="the real line: no mesh",
        )
        if k == priors.WEEKS:
            axes.plot(list(PRINTED), list(PRINTED.values()), marker="x", label="printed in [B23], G.3", **FAINT)
        axes.axhline(limit, label="_limit", **FAINT)
        axes.annotate(f"limit, {limit:g} s", (meshes[-1], limit), ha="right", va="bottom", fontsize=8)
        log_log(axes, "mesh size", "solving (s)", meshes)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        figure.suptitle(f"Optimal unbiased randomizers of {k} labels, weeks worked, ε = {EPSILON:g}", fontsize=9)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, draw, and return 1 if an answer of ours is not proven."""
    given = options("mesh", __doc__, limit=60.0).parse_args(arguments)
    use_one_core()
    k, meshes = (6, SMALL_MESHES) if given.smoke else (priors.WEEKS, MESHES)
    found = []
    for record in records(k, meshes, given.limit):
        found.append(record)
        print(f"{record['method']}, mesh {record['mesh'] or 'none'}: {record['verdict']}", flush=True)
    line = next(record["seconds"] for record in found if record["method"] == LINE)
    title = f"Optimal unbiased randomizers of {k} labels, weeks worked, epsilon {EPSILON:g}, half squared error"
    print_table(f"{title}\n{circumstances()}", COLUMNS, [row(record, line) for record in found])
    name = "mesh-smoke" if given.smoke else "mesh"
    write_json(given.results, name, found)
    picture(found, given.limit, k, given.results, name)
    proven = [record.get("exact_gap", math.inf) <= OUR_GAP for record in found if record["method"] in OURS]
    return 0 if all(proven) else 1
