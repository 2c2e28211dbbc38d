"""A public gap, then a private bit: proven wherever its condition holds, beaten elsewhere; and a million labels.

Random problems: 2 to 60 labels at random distances, priors of several kinds, epsilon from 0.02 to 2.5. Where the
condition of `closed_forms.gap_response_is_optimal` holds, its own dual must prove it within 1e-12; where a chord
is longer than 1 by more than 1e-6, the optimum that the solver finds must lose less. Then the times of large problems
at epsilon 0.5: to state the problem, to make randomizer and dual, to prove them in floats and in exact arithmetic, and
to tabulate the mechanism.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import circumstances, duration, options, print_table, write_json
from optrand import certify, solve, tabulate, unbiased_regression
from optrand.base.validation import Floats
from optrand.certificates.quick import quick_gap
from optrand.closed_forms import gap_response, gap_response_is_optimal
from optrand.model.problem import Problem
from optrand.solvers import Flow

__all__ = ["CLOSED", "KINDS", "drawn", "judged", "timed"]

SEED = 577215
COUNT, SMALL_COUNT = 10_000, 60
LARGEST = 60
EPSILONS = (0.02, 2.5)
SIZES, SMALL_SIZES = (10_000, 100_000, 1_000_000), (1_000,)
EPSILON = 0.5
CLOSED = 1e-12
"""The gap within which the closed form must be proven."""

QUICK = 1e-9
"""The gap within which it must be proven in floats."""

BEYOND = 1e-6
"""A chord that is longer than 1 by more must be beaten."""

KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda _, k: np.ones(k),
    "Dirichlet": lambda rng, k: rng.dirichlet(np.full(k, rng.uniform(0.1, 2))) + 1e-12,
    "geometric": lambda rng, k: np.power(rng.uniform(0.3, 1.0), np.arange(float(k))),
    "spike": lambda rng, k: 1e-3 + (np.arange(k) == rng.integers(k)),
    "zeros": lambda rng, k: rng.random(k) * (rng.random(k) < 0.4) + (np.arange(k) == rng.integers(k)),
}
COLUMNS = (
    "prior",
    "problems",
    "holds",
    "largest gap",
    "fails",
    "beaten",
    "undecided",
    "least excess",
    "largest excess",
)
STEPS = ("state", "closed form", "prove in floats", "certify", "tabulate", "certify exactly")
SIZE_COLUMNS = ("labels", *STEPS, "gap in floats", "gap", "verdict")


def drawn(number: int) -> tuple[str, Problem]:
    """A random problem and the kind of its prior.

    Examples
    --------
    >>> kind, problem = drawn(3)
    >>> kind, problem.k
    ('spike', 10)
    """
    rng = np.random.default_rng([SEED, number])
    kind = list(KINDS)[number % len(KINDS)]
    k = int(rng.integers(2, LARGEST + 1))
    prior = KINDS[kind](rng, k)
    labels = np.cumsum(rng.uniform(0.2, 1.8, k)) if rng.random() < 0.5 else np.arange(float(k))
    return kind, unbiased_regression(labels, prior / prior.sum(), float(rng.uniform(*EPSILONS)))


def chord(problem: Problem) -> float:
    """Distance of the two points of the condition, in floats."""
    gain, (first, last) = math.expm1(problem.epsilon), problem.prior[[0, -1]] / problem.prior.sum()
    ends = [math.sqrt((1 + gain * end) * (1 + gain * (1 - end))) for end in (first, last)]
    return math.hypot(gain * (1 - first - last), ends[1] - ends[0])


def judged(kind: str, problem: Problem) -> dict[str, Any]:
    """What the closed form is on one problem: proven, beaten, or too near to tell."""
    found = certify(gap_response(problem.labels, problem.prior, problem.epsilon))
    holds = gap_response_is_optimal(problem.labels, problem.prior, problem.epsilon)
    record = {
        "kind": kind,
        "k": problem.k,
        "epsilon": problem.epsilon,
        "holds": holds,
        "findings": list(found.findings),
    }
    if holds:
        return record | {"gap": found.gap, "right": not found.findings and found.gap <= CLOSED}
    length = chord(problem)
    best = certify(solve(problem, Flow()))
    excess, decided = found.upper / best.upper - 1, length > 1 + BEYOND
    beaten = best.upper < found.upper and not best.findings
    return record | {
        "chord": length,
        "excess": excess,
        "beaten": beaten,
        "decided": decided,
        "right": beaten or not decided,
    }


def timed(k: int) -> dict[str, Any]:
    """Seconds of each step of a large problem."""
    rng = np.random.default_rng([SEED, k])
    labels, prior = np.arange(float(k)), rng.dirichlet(np.full(k, 0.5)) + 1e-9
    record: dict[str, Any] = {"k": k}

    def step(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        done = run()
        record[name] = time.perf_counter() - start
        return done

    problem = step("state", lambda: unbiased_regression(labels, prior / prior.sum(), EPSILON))
    solution = step("closed form", lambda: gap_response(problem.labels, problem.prior, EPSILON))
    quick = step("prove in floats", lambda: quick_gap(solution))
    proof = step("certify", lambda: certify(solution))
    mechanism = step("tabulate", lambda: tabulate(solution))
    exact = step("certify exactly", lambda: certify(mechanism))
    gap = math.inf if proof.findings or exact.findings or exact.bias else max(proof.gap, exact.gap)
    return record | {"quick gap": quick, "gap": gap, "right": gap <= CLOSED and quick <= QUICK}


def row(kind: str, found: Sequence[dict[str, Any]]) -> list[str]:
    """A row of the table of random problems."""
    held, failed = [each for each in found if each["holds"]], [each for each in found if not each["holds"]]
    clear = [each for each in failed if each["decided"]]
    excess = [each["excess"] for each in clear]
    return [
        kind,
        f"{len(found):,}",
        f"{len(held):,}",
        f"{max((each['gap'] for each in held), default=0.0):.1e}",
        f"{len(failed):,}",
        f"{sum(each['beaten'] for each in clear):,} of {len(clear):,}",
        f"{len(failed) - len(clear):,}",
        *(f"{pick(excess):.1e}" if excess else "-" for pick in (min, max)),
    ]


def main(arguments: Sequence[str]) -> int:
    """Judge, time, print, and return 1 if the closed form is not what it claims to be."""
    given = options("closed_form", __doc__).parse_args(arguments)
    found = [judged(*drawn(number)) for number in range(SMALL_COUNT if given.smoke else COUNT)]
    kinds = {kind: [each for each in found if each["kind"] == kind] for kind in KINDS}
    title = f"A gap and a bit on {len(found):,} random problems\n{circumstances()}"
    print_table(title, COLUMNS, [row(kind, some) for kind, some in (*kinds.items(), ("all", found))])
    sizes = [timed(k) for k in (SMALL_SIZES if given.smoke else SIZES)]
    rows = [
        [
            f"{each['k']:,}",
            *(duration(each[name]) for name in STEPS),
            f"{each['quick gap']:.1e}",
            f"{each['gap']:.1e}",
            "proven" if each["right"] else "NOT proven",
        ]
        for each in sizes
    ]
    print_table(f"Large problems at epsilon {EPSILON:g}", SIZE_COLUMNS, rows)
    for each in sizes:
        spent = sum(each[name] for name in STEPS[:3])
        print(f"{each['k']:,} labels stated, answered and proven in floats: {duration(spent)}")
    wrong = [each for each in (*found, *sizes) if not each["right"]]
    for each in wrong:
        print(each)
    print(f"{len(found) + len(sizes) - len(wrong):,} of {len(found) + len(sizes):,} are as they must be")
    name = "closed_form-smoke" if given.smoke else "closed_form"
    write_json(given.results, name, [*found, *sizes])
    return 1 if wrong else 0
