"""Edges of what is solved: labels far away or close together, thin tails, tight intervals, and large epsilons.

Each problem is solved, tabulated and certified as a user would, in a process that is killed at the time limit. It must
be proven to 1e-9, or refused at once by an error that says what to do. Then a sweep of 7,280 hard problems of few
labels (:mod:`benchmarks.hard_problems`), of which the share proven is stated by class: a ninth, or all with --full.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hard_problems import EPSILONS, PLACES, Hard, hard_problems, posed
from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from benchmarks.priors import DIRICHLET_SEED, exponential, revenue
from benchmarks.worker import Worker
from optrand import Grid, Interval, certify, losses, regression, solve, tabulate, unbiased_range, unbiased_regression
from optrand.base.validation import Floats
from optrand.errors import InvalidInput, OptrandError
from optrand.model.problem import Problem
from optrand.studies import minimax

__all__ = ["ROWS", "Edge", "examined", "passed", "swept"]

CLOSED = 1e-9
AT_ONCE = 1.0
"""Seconds in which a problem must be refused."""

EVERY, EVERY_SMOKE = 9, 173
"""Without --full one in so many hard problems; coprime to the numbers of epsilons and of label counts."""

REHEARSAL = 120.0
"""Seconds for the first imports, and for compiling."""

COLUMNS = ("problem", "labels", "epsilon", "seconds", "gap", "")
CLASSES = ("outputs", "penalty", *EPSILONS, "slowest", "lost")


def near_feasibility(excess: float, epsilon: float) -> Problem:
    """Nine labels in an interval wider than the narrowest by a share; narrower where it is negative."""
    labels = np.arange(9.0)
    low, high = unbiased_range(labels, epsilon)
    margin = excess * (high - low)
    outputs = Interval(low - margin, high + margin)
    return unbiased_regression(labels, gaussian(9, 2.0), epsilon, outputs=outputs)


def gaussian(k: int, deviation: float, least: float = 0.0) -> Floats:
    """Normal weights around the middle label, but no less than `least`."""
    weights = np.maximum(np.exp(-(((np.arange(k) - (k - 1) / 2) / deviation) ** 2) / 2), least)
    prior: Floats = weights / weights.sum()
    return prior


def rough(k: int, least: float) -> Floats:
    """A Dirichlet draw, each entry raised by the same."""
    prior = np.random.default_rng([DIRICHLET_SEED, k]).dirichlet(np.full(k, 0.5)) + least
    raised: Floats = prior / prior.sum()
    return raised


def uniform(k: int) -> Floats:
    """Even weights."""
    return np.full(k, 1 / k)


def alternating(k: int) -> Floats:
    """Weights 1e-12 and 0.1 in turn."""
    weights = np.where(np.arange(k) % 2, 0.1, 1e-12)
    prior: Floats = weights / weights.sum()
    return prior


def on_grid(k: int, n: int, epsilon: float, penalty: float) -> Problem:
    """Even labels, a rough prior, and `n` outputs that span more than what unbiased answers need."""
    labels = np.arange(float(k))
    low, high = unbiased_range(labels, epsilon)
    outputs = Grid(np.linspace(low - (k - 1) / 4, high + (k - 1) / 4, n))
    return regression(labels, rough(k, 1e-4), epsilon, bias_penalty=penalty, outputs=outputs)


def absolute(k: int, n: int) -> Problem:
    """Absolute loss at a finite price of bias."""
    labels = np.linspace(0.0, 1.0, k)
    outputs = Grid(np.linspace(-0.2, 1.2, n))
    return regression(labels, rough(k, 1e-4), 1.0, bias_penalty=1.0, outputs=outputs, loss=losses.absolute)


class Edge(NamedTuple):
    """A problem at an edge.

    Attributes
    ----------
    name : str
    problem : callable
        The problem; raises where it is refused before it is solved.
    small : bool
        Whether it is solved in small as well.
    worst_case : bool
        The largest loss over labels instead of the prior's.
    """

    name: str
    problem: Callable[[], Problem]
    small: bool = True
    worst_case: bool = False


def far(distance: float) -> Edge:
    """Labels far from zero."""
    labels = distance + np.arange(11.0)
    return Edge(f"labels {distance:g} from zero", lambda: unbiased_regression(labels, rough(11, 1e-4), 1.0))


def without_ends(epsilon: float) -> Edge:
    """End labels of prior zero."""
    prior = [0.0, 0.2, 0.4, 0.4, 0.0]
    return Edge("end labels of prior zero", lambda: unbiased_regression(range(5), prior, epsilon))


def line(name: str, prior: Callable[[int], Floats], k: int, epsilon: float, small: bool = False) -> Edge:
    """Even labels on the line, no bias."""
    return Edge(name, lambda: unbiased_regression(np.arange(float(k)), prior(k), epsilon), small)


PAIRS = (0.0, 1e-6, 0.5, 0.5 + 1e-6, 1.0)
"""Labels of which some are a millionth of the range apart."""

ROWS = (
    far(1e9),
    far(1e12),
    Edge("labels a millionth apart", lambda: unbiased_regression(PAIRS, rough(5, 1e-4), 1.0)),
    Edge("labels a millionth apart, penalty 10", lambda: regression(PAIRS, rough(5, 1e-4), 1.0, bias_penalty=10)),
    Edge("labels 1e-14 of the range apart", lambda: unbiased_regression([0, 1e-14, 1], uniform(3), 1.0)),
    without_ends(12.0),
    without_ends(17.0),
    without_ends(25.0),
    without_ends(40.0),
    line("tails of 1e-30", lambda k: gaussian(k, k / 60, 1e-30), 101, 1.0, small=True),
    line("tails of 1e-30", lambda k: gaussian(k, k / 60, 1e-30), 4_001, 1.0),
    line("Dirichlet and 1e-4 / k", lambda k: rough(k, 1e-4 / k), 4_001, 1.0),
    line("exponential prior", exponential, 401, 8.0),
    line("revenue", revenue, 401, 8.0),
    Edge("interval within 1e-6 of the narrowest", lambda: near_feasibility(1e-6, 1.0)),
    Edge("interval within 1e-6 of the narrowest", lambda: near_feasibility(1e-6, 8.0)),
    Edge("interval too narrow by 1e-6", lambda: near_feasibility(-1e-6, 1.0)),
    Edge(
        "three even labels in the narrowest interval",
        lambda: unbiased_regression(range(3), uniform(3), 16.0, outputs=Interval(*unbiased_range([0, 1, 2], 16.0))),
    ),
    Edge("minimax", lambda: unbiased_regression(range(53), uniform(53), 4.0), worst_case=True),
    Edge("minimax", lambda: unbiased_regression(range(401), uniform(401), 4.0), small=False, worst_case=True),
    Edge("absolute loss, penalty 1, 1,001 outputs", lambda: absolute(41, 1_001), small=False),
    Edge("1,601 outputs, no bias", lambda: on_grid(401, 1_601, 1.0, math.inf), small=False),
    Edge("1,601 outputs, penalty 10", lambda: on_grid(401, 1_601, 1.0, 10.0), small=False),
    Edge(
        "alternating 1e-12 and 0.1, penalty 1,000",
        lambda: regression(range(401), alternating(401), 4.0, bias_penalty=1000),
        small=False,
    ),
    Edge("64 outputs, no bias", lambda: on_grid(200, 64, 6.0, math.inf), small=False),
    Edge("64 outputs, no penalty", lambda: on_grid(200, 64, 6.0, 0.0), small=False),
    Edge("penalty 0.001", lambda: regression(range(9), rough(9, 1e-4), 30.0, bias_penalty=0.001)),
    Edge("two labels, 17 outputs", lambda: on_grid(2, 17, 40.0, math.inf)),
)


def examined(number: int) -> dict[str, Any]:
    """Pose, solve, tabulate and certify a row; an error is part of the record, and whether it is about the question."""
    edge, start = ROWS[number], time.perf_counter()
    record = unanswered(number)
    try:
        problem = edge.problem()
        record |= {"k": problem.k, "epsilon": problem.epsilon}
        solution = minimax(problem.labels, problem.epsilon) if edge.worst_case else solve(problem)
        proof = certify(tabulate(solution), worst_case=edge.worst_case)
    except OptrandError as error:
        refused = isinstance(error, InvalidInput)
        seconds = time.perf_counter() - start
        return record | {"seconds": seconds, "refused": refused, "error": f"{type(error).__name__}: {error}"}
    gap = math.inf if proof.findings else proof.gap
    return record | {"seconds": time.perf_counter() - start, "gap": gap, "error": "; ".join(proof.findings)}


def unanswered(number: int) -> dict[str, Any]:
    """The record of a row without an answer."""
    record: dict[str, Any] = {"edge": ROWS[number].name, "k": None, "epsilon": None, "refused": False}
    return record | {"seconds": math.nan, "gap": math.inf, "error": ""}


def passed(record: dict[str, Any]) -> bool:
    """Whether a row is proven, or refused at once.

    Examples
    --------
    >>> passed({"gap": 1e-12, "refused": False, "seconds": 1.0}), passed({"gap": math.inf, "refused": False})
    (True, False)
    """
    return float(record["gap"]) <= CLOSED or (record["refused"] and record["seconds"] <= AT_ONCE)


def swept(hard: Hard) -> dict[str, Any]:
    """The record of a hard problem, solved, tabulated and certified."""
    start = time.perf_counter()
    record: dict[str, Any] = {**hard._asdict(), "gap": math.inf, "error": ""}
    try:
        proof = certify(tabulate(solve(posed(hard))))
        record |= {"gap": math.inf if proof.findings else proof.gap, "error": "; ".join(proof.findings)}
    except OptrandError as error:
        record["error"] = f"{type(error).__name__}: {error}"
    return record | {"seconds": time.perf_counter() - start}


def share(records: Sequence[dict[str, Any]]) -> str:
    """How many are proven."""
    proven = sum(record["gap"] <= CLOSED for record in records)
    return f"{proven / len(records):.1%} of {len(records)}" if records else "-"


def row(record: dict[str, Any]) -> list[str]:
    """A row of the first table."""
    said = "" if passed(record) and not record["refused"] else record["error"] or "not proven"
    given = ["-" if record[name] is None else f"{record[name]:g}" for name in ("k", "epsilon")]
    return [record["edge"], *given, duration(record["seconds"]), f"{record['gap']:.1e}", said[:100]]


def class_row(name: Sequence[str], records: Sequence[dict[str, Any]]) -> list[str]:
    """A row of the second table."""
    by_epsilon = [[r for r in records if r["epsilon"] in epsilons] for epsilons in EPSILONS.values()]
    slowest = max((record["seconds"] for record in records), default=math.nan)
    lost = sum(math.isinf(record["gap"]) for record in records)
    return [*name, *map(share, by_epsilon), duration(slowest), str(lost)]


def classes(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows of the second table: by kind of outputs and of penalty, and all."""
    rows = []
    for place in PLACES:
        for penalty, name in ((True, "infinite"), (False, "finite")):
            mine = [r for r in records if r["place"] == place and math.isinf(r["penalty"]) == penalty]
            rows.append(class_row((place, name), mine))
    return [*rows, class_row(("all", ""), records)]


def main(arguments: Sequence[str]) -> int:
    """Examine every row and the sweep, print both tables, and return 1 if a row does not pass."""
    parser = options("edges", __doc__, limit=300.0)
    parser.add_argument("--full", action="store_true", help="the whole sweep, of some minutes")
    parser.add_argument("--only", default="", help="only rows whose name holds this, and no sweep")
    given = parser.parse_args(arguments)
    use_one_core()
    worker, records = Worker(), []
    worker.call(swept, next(hard_problems()), limit=REHEARSAL)
    for number, edge in enumerate(ROWS):
        if (edge.small or not given.smoke) and given.only in edge.name:
            record, error = worker.call(examined, number, limit=given.limit)
            records.append(unanswered(number) | {"error": error} if record is None else record)
    print_table(f"edges\n{circumstances()}", COLUMNS, [row(record) for record in records])
    step = EVERY_SMOKE if given.smoke else 1 if given.full else EVERY
    problems = [] if given.only else [hard for at, hard in enumerate(hard_problems()) if at % step == 0]
    sweep = []
    for hard in problems:
        record, error = worker.call(swept, hard, limit=given.limit)
        missing = {**hard._asdict(), "gap": math.inf, "error": error, "seconds": given.limit}
        sweep.append(missing if record is None else record)
    worker.close()
    if sweep:
        print_table(f"{len(sweep)} hard problems: share proven to {CLOSED:g}", CLASSES, classes(sweep))
    name = "edges-smoke" if given.smoke else "edges"
    write_json(given.results, name, [*records, *sweep])
    return 0 if all(map(passed, records)) else 1
