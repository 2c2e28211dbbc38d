"""Randomized response on bins against the cubic dynamic program of [GKK23] and a linear program, for three losses.

Labels are 0 ... k-1 and priors those of `benchmarks.priors`. The paper's algorithm is written here as it is told: the
cost of every bin, and for every number of bins the best place where the last one begins; its loops are over NumPy
arrays. The linear program is the floor form on HiGHS, with outputs at all labels and halfway between them: more would
come nearer to the line and take longer. `BinPath` is timed with its proof, over `solve` and `certify`, and what counts
is the gap of the exact mechanism; the others are timed without. All bins are judged by the same multipliers. A peer
that needed more than the limit is not asked again for more labels.

A second table says how often multipliers close the gap, over random problems of several kinds, and a third how the time
of `BinPath` alone grows, its certificate beside the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import read_clock, required_gap
from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.speed import PRIORS
from benchmarks.worker import Measurement, Worker, measure
from optrand import Grid, certify, losses, regression
from optrand.base.validation import Floats
from optrand.model.arcs import Arcs
from optrand.model.losses import Loss
from optrand.model.problem import Problem
from optrand.model.randomizer import Randomizer
from optrand.model.solution import Solution, Stats
from optrand.solvers import BinPath, LinearProgram, Solver
from optrand.solvers.backends import Highs
from optrand.solvers.grid import Floor

__all__ = ["KINDS", "CubicProgram", "posed", "random_problem"]

SIZES = (11, 53, 101, 201, 401, 1_001, 2_001, 4_001)
SMALL_SIZES = (5, 9)
GROWING, SMALL_GROWING = (4_001, 20_001, 100_001), (101, 401)
LOSSES = (losses.squared, losses.absolute, losses.poisson_log)
REPEATS = 5
PATIENCE = 20.0
"""Seconds on the clock after which a row is not repeated."""

OURS, CUBIC, LINEAR = "BinPath, proof included", "cubic dynamic program", "linear program"
AGREEMENT = 1e-9
"""Relative difference within which two ways to the same bins must agree."""

SEED, TRIALS, SMALL_TRIALS, LARGEST = 20_23, 100, 3, 100
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
KINDS = ("spread", "clustered", "spike", "half zero", "specks")
COLUMNS = ("method", "loss", "labels", "time", "runs", "outputs", "loss of it", "above ours", "verified gap", "verdict")
GROWTH_COLUMNS = ("loss", "labels", "time", "runs", "outputs", "verified gap", "growth")
SHARE_COLUMNS = ("loss", "kind of problem", "problems", "proven", "largest gap", "slowest", "verdict")


@dataclass(frozen=True)
class CubicProgram:
    """The algorithm of [GKK23]: ``best[d, j]`` of the first ``j`` labels in ``d`` bins, for every ``d`` and ``j``.

    Examples
    --------
    >>> import optrand
    >>> problem = optrand.regression([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    >>> CubicProgram()(problem).randomizer.outputs.round(3).tolist()
    [0.396, 0.72]
    """

    def accepts(self, problem: Problem) -> bool:
        """What randomized response on bins answers."""
        return BinPath().accepts(problem)

    def __call__(self, problem: Problem) -> Solution:
        """Cost ``O(k^3)``, memory ``O(k^2)``."""
        start, k, ratio = time.perf_counter(), problem.k, math.exp(problem.epsilon)
        costs, outputs = bins(problem)
        best, before = np.append(0.0, np.full(k, math.inf)), np.zeros((k + 1, k + 1), dtype=np.int32)
        found, count = math.inf, 0
        for d in range(1, k + 1):
            totals = best[:, np.newaxis] + costs
            before[d] = totals.argmin(axis=0)
            best = totals[before[d], np.arange(k + 1)]
            if best[k] / (ratio + d - 1) < found:
                found, count = best[k] / (ratio + d - 1), d
        nodes = [k]
        for d in range(count, 0, -1):
            nodes.append(int(before[d, nodes[-1]]))
        nodes.reverse()
        first, after = np.array(nodes[:-1]), np.array(nodes[1:])
        masses = np.full(count, 1 / (ratio + count - 1))
        arcs = Arcs(k, first, after - 1, outputs[first, after], masses)
        stats = Stats(repr(self), time.perf_counter() - start, k, "every number of bins tried")
        return Solution(problem, Randomizer.of_arcs(problem.labels, arcs, problem.epsilon), None, stats)


def bins(problem: Problem) -> tuple[Floats, Floats]:
    """What the column of the bin between two nodes costs, and its best output; shape ``(k + 1, k + 1)`` each."""
    p, y, gain = problem.prior, problem.labels, math.expm1(problem.epsilon)
    backwards = np.tri(p.size + 1, dtype=bool)

    def weighted(terms: Floats) -> Floats:
        sums = np.append(0.0, np.cumsum(terms))
        inside: Floats = np.where(backwards, 0.0, sums - sums[:, np.newaxis])
        return float(terms.sum()) + gain * inside

    if problem.loss == losses.absolute:
        costs, outputs = np.full(backwards.shape, math.inf), np.zeros(backwards.shape)
        for v in y:
            found = weighted(p * np.abs(v - y))
            better = found < costs
            costs[better], outputs[better] = found[better], v
    else:
        weight, pull = weighted(p), weighted(p * y)
        outputs = pull / weight
        squared = problem.loss == losses.squared
        costs = (weighted(p * y**2) - pull * outputs) / 2 if squared else pull - pull * np.log(outputs)
    return np.where(backwards, math.inf, costs), outputs


def tiny(problem: Problem) -> Problem:
    """A problem of two labels, which pays for imports."""
    return replace(problem, labels=np.array([1.0, 2.0]), prior=np.array([0.5, 0.5]))


def posed(prior: str, k: int, epsilon: float, loss: Loss) -> Problem:
    """The labels 0 ... k-1 under a named prior, with no care for bias; labels of prior zero are left out.

    Examples
    --------
    >>> posed("spike", 9, 1.0, losses.absolute).k
    6
    """
    chances = PRIORS[prior](k)
    kept = np.flatnonzero(chances)
    return regression(kept.astype(np.float64), chances[kept], epsilon, loss=loss)


def judged(loss: Loss, k: int, method: str, best: Solution, found: Measurement) -> dict[str, Any]:
    """The answer of a peer with its certificate, as one flat record."""
    record = {"loss": loss.name, "k": k, "method": method, "seconds": found.seconds, "runs": len(found.times)}
    if found.solution is None:
        return record | {"verdict": found.error}
    solution = found.solution
    proof = certify(solution) if solution.dual else certify(best.problem, solution.randomizer, best.dual)
    excess = (solution.value - best.value) / abs(best.value)
    agrees = proof.gap <= AGREEMENT
    said = "proven on its grid" if solution.dual else "the same bins" if abs(excess) <= AGREEMENT else "OTHER BINS"
    return record | {
        "outputs": solution.randomizer.n,
        "value": solution.value,
        "excess": excess,
        "gap": proof.gap,
        "agrees": agrees and excess >= -AGREEMENT,
        "verdict": said if agrees else f"not proven within {AGREEMENT:g}",
    }


def ours(loss: Loss, k: int, best: Solution, worker: Worker, limit: float) -> dict[str, Any]:
    """Our own answer by the clock, as one flat record."""
    problem = best.problem
    read_clock(worker, (tiny(problem),), repeats=1, patience=0.0, limit=limit)
    found = read_clock(worker, (problem,), repeats=REPEATS, patience=PATIENCE, limit=limit)
    needed = required_gap(problem)
    proven = found.gap <= needed
    return {
        "loss": loss.name,
        "k": k,
        "method": OURS,
        "seconds": found.median,
        "runs": len(found.seconds),
        "outputs": max(found.outputs, default=0),
        "value": best.value,
        "excess": 0.0,
        "gap": found.gap,
        "agrees": proven,
        "verdict": found.error or f"{'' if proven else 'NOT '}proven within {needed:g}",
    }


def records(prior: str, epsilon: float, sizes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """Every loss and every size; peers as far as the limit lets them get."""
    worker = Worker()
    for loss in LOSSES:
        late = dict[str, str]()
        for k in sizes:
            problem = posed(prior, k, epsilon, loss)
            best = BinPath()(problem)
            yield ours(loss, k, best, worker, limit)
            grid = Grid(np.arange(loss.positive_outputs, 2 * k - 1) / 2)
            peers: dict[str, tuple[Solver, Problem]] = {
                CUBIC: (CubicProgram(), problem),
                LINEAR: (LinearProgram(Floor(), Highs()), replace(problem, outputs=grid)),
            }
            for method, (solver, asked) in peers.items():
                if method in late:
                    continue
                found = measure(worker, solver, asked, rehearsal=tiny(asked), limit=limit)
                if not found.times:
                    late[method] = found.error
                yield judged(loss, k, method, best, found)
    worker.close()


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    start = [record["method"], record["loss"], f"{record['k']:,}"]
    if "value" not in record:
        return [*start, *("-" * 6), record["verdict"]]
    excess = f"{100 * record['excess']:.3f} %" if record["method"] == LINEAR else f"{record['excess']:.0e}"
    numbers = [duration(record["seconds"]), str(record["runs"]), str(record["outputs"]), f"{record['value']:.8g}"]
    return [*start, *numbers, excess, f"{record['gap']:.1e}", record["verdict"]]


def random_problem(kind: str, trial: int, loss: Loss) -> Problem:
    """Up to 100 labels with a random prior.

    Examples
    --------
    >>> random_problem("half zero", 0, losses.squared).k <= LARGEST
    True
    """
    rng = np.random.default_rng([SEED, KINDS.index(kind), trial])
    k = int(rng.integers(2, LARGEST + 1))
    place = np.arange(k)
    labels = np.sort(10 * rng.integers(0, 4, k) + 1e-3 * rng.random(k)) if kind == "clustered" else 100 * rng.random(k)
    chances = {
        "spike": np.where(place == rng.integers(k), 10.0 * k, 1.0),
        "half zero": np.where(place == k - 1, 1.0, rng.integers(0, 2, k) * rng.random(k)),
        "specks": 10.0 ** rng.integers(-12, 1, k),
    }.get(kind, rng.dirichlet(np.full(k, 0.5)) + 1e-9)
    return regression(labels, chances / chances.sum(), float(rng.choice(EPSILONS)), loss=loss)


def shares(trials: int) -> Iterator[dict[str, Any]]:
    """How many duals of random problems close the gap, by loss and kind."""
    for loss in LOSSES:
        for kind in KINDS:
            gaps, times = [], []
            for trial in range(trials):
                solution = BinPath()(random_problem(kind, trial, loss))
                gaps.append(certify(solution).gap)
                times.append(solution.stats.seconds)
            proven = sum(gap <= AGREEMENT for gap in gaps)
            found = {"loss": loss.name, "kind": kind, "problems": trials, "proven": proven}
            yield found | {"gap": max(gaps), "seconds": max(times)}


def share_row(record: dict[str, Any]) -> list[str]:
    """A row of the second table."""
    missing = record["problems"] - record["proven"]
    verdict = f"{missing} not proven within {AGREEMENT:g}" if missing else f"all proven within {AGREEMENT:g}"
    numbers = [str(record["problems"]), str(record["proven"]), f"{record['gap']:.1e}", duration(record["seconds"])]
    return [record["loss"], record["kind"], *numbers, verdict]


def growth(prior: str, epsilon: float, sizes: Sequence[int], limit: float) -> Iterator[dict[str, Any]]:
    """Times of `BinPath` without its certificate, and the power of the number of labels that fits them best."""
    worker = Worker()
    for loss in LOSSES:
        found = list[dict[str, Any]]()
        for k in sizes:
            problem = posed(prior, k, epsilon, loss)
            timed = measure(worker, BinPath(), problem, rehearsal=tiny(problem), limit=limit)
            if timed.solution is None:
                break
            record = {"loss": loss.name, "k": problem.k, "seconds": timed.seconds, "runs": len(timed.times)}
            gap = certify(timed.solution).gap
            found.append(record | {"outputs": timed.solution.randomizer.n, "gap": gap, "agrees": gap <= AGREEMENT})
        labels, times = (np.log([record[name] for record in found]) for name in ("k", "seconds"))
        power = float(np.polyfit(labels, times, 1)[0]) if len(found) > 1 else math.nan
        yield from (record | {"growth": power} for record in found)
    worker.close()


def growth_row(record: dict[str, Any]) -> list[str]:
    """A row of the third table."""
    start = [record["loss"], f"{record['k']:,}", duration(record["seconds"]), str(record["runs"])]
    return [*start, str(record["outputs"]), f"{record['gap']:.1e}", f"k^{record['growth']:.2f}"]


def picture(found: Sequence[dict[str, Any]], epsilon: float, results: Path, name: str) -> None:
    """Time against the number of labels, a panel for each loss."""
    from benchmarks.pictures import drawing, log_log, looks

    with drawing(results, name, (9.0, 3.2)) as figure:
        for axes, loss in zip(figure.subplots(1, 3, sharey=True), LOSSES, strict=True):
            methods = (OURS, CUBIC, LINEAR)
            for look, method in zip(looks(methods, "methods"), methods, strict=True):
                mine = [one for one in found if (one["loss"], one["method"]) == (loss.name, method) and "value" in one]
                axes.plot([one["k"] for one in mine], [one["seconds"] for one in mine], label=method, **look)
            sizes = sorted({one["k"] for one in found})
            log_log(axes, "labels", "seconds", [k for k in (11, 101, 1_001, 4_001) if k in sizes] or sizes)
            axes.set_title(loss.name, fontsize=9)
        axes.legend(loc="upper left", fontsize=7)
        figure.suptitle(f"Randomized response on bins, ε = {epsilon:g}", fontsize=9)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the tables, draw, and return 1 if an answer is not proven or two disagree."""
    parser = options("bins", __doc__, limit=60.0)
    parser.add_argument("--epsilon", type=float, default=4.0, help="(default: 4)")
    parser.add_argument("--prior", choices=[name for name in PRIORS if name != "weeks"], default="Dirichlet")
    given = parser.parse_args(arguments)
    use_one_core()
    found = []
    for record in records(given.prior, given.epsilon, SMALL_SIZES if given.smoke else SIZES, given.limit):
        found.append(record)
        print(f"{record['loss']}, {record['k']:,} labels, {record['method']}: {record['verdict']}", flush=True)
    title = f"Randomized response on bins, {given.prior} prior, epsilon {given.epsilon:g}"
    print_table(f"{title}\n{circumstances()}", COLUMNS, [row(record) for record in found])
    closed = list(shares(SMALL_TRIALS if given.smoke else TRIALS))
    title = f"Random problems, 2 to {LARGEST} labels, epsilon {EPSILONS[0]:g} to {EPSILONS[-1]:g}"
    print_table(title, SHARE_COLUMNS, [share_row(record) for record in closed])
    growing = list(growth(given.prior, given.epsilon, SMALL_GROWING if given.smoke else GROWING, given.limit))
    print_table("BinPath alone", GROWTH_COLUMNS, [growth_row(record) for record in growing])
    suffix = "-smoke" if given.smoke else ""
    write_json(given.results, f"bins{suffix}", found)
    write_json(given.results, f"growth-of-bins{suffix}", growing)
    write_json(given.results, f"shares-of-bins{suffix}", closed)
    picture(found, given.epsilon, given.results, f"bins{suffix}")
    return 0 if all(record.get("agrees", True) for record in [*found, *growing]) else 1
