r"""The price of bias: every compromise between the least loss and no bias, which [B23] leaves to future work.

Weeks worked (53 labels) at four epsilons. A penalty :math:`\lambda` on squared bias goes from 0 to infinity; at every
penalty the mechanism is proven to have the least loss, so that no mechanism of the same bias has less variance. What
the two ends are is known by other names, and each is computed in three ways more: randomized response on bins and the
optimal unbiased randomizer, called by name; the flow at penalties of 1e-10 and 1e10, from which bounds on the ends
follow; and a linear program on HiGHS, over all tables with the outputs of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import circumstances, duration, options, print_table, write_json
from optrand import Grid, Solution, certify, rr_on_bins, solve, tabulate, unbiased_regression
from optrand.model.problem import Problem
from optrand.solvers import LinearProgram
from optrand.studies import SweepRow, sweep

__all__ = ["AGREEMENT", "ends", "penalties"]

EPSILONS = (0.5, 1.0, 2.0, 4.0)
NEARLY_FREE, NEARLY_UNBIASED = 1e-10, 1e10
BETWEEN = 1e-2, 1e4
COMPROMISES, SMALL_COMPROMISES = 25, 3
REQUIRED_GAP = 1e-9
AGREEMENT = 1e-8
"""Relative difference within which the ends must be what they are called."""

COLUMNS = ("epsilon", "penalty", "loss and penalty", "gap", "deviation", "bias", "outputs", "time", "verdict")
END_COLUMNS = ("end", "epsilon", "value", "by name", "nearly there", "linear program", "verdict")


def penalties(compromises: int) -> list[float]:
    """Penalties on bias from 0 to infinity.

    Examples
    --------
    >>> [f"{penalty:g}" for penalty in penalties(3)]
    ['0', '1e-10', '0.01', '10', '10000', '1e+10', 'inf']
    """
    return [0.0, NEARLY_FREE, *np.geomspace(*BETWEEN, compromises).tolist(), NEARLY_UNBIASED, math.inf]


def proven(solution: Solution) -> float:
    """The value of the exact mechanism of a solution, if it is proven."""
    return certify(tabulate(solution)).require(gap=REQUIRED_GAP).upper


def on_its_outputs(solution: Solution) -> float:
    """The least loss of any table with the outputs of a solution, by a linear program."""
    problem = replace(solution.problem, outputs=Grid(solution.randomizer.outputs))
    return certify(LinearProgram()(problem)).require(gap=AGREEMENT).upper


def ends(problem: Problem, rows: Sequence[SweepRow]) -> Iterator[dict[str, Any]]:
    """Both ends of a frontier, and by how much what they must equal differs from them, relative."""
    unbiased = replace(problem, bias_penalty=math.inf)
    bins = rr_on_bins(problem.labels, problem.prior, problem.epsilon)
    for name, end, near, solution in (
        ("RR-on-Bins", rows[0], rows[1], bins),
        ("unbiased optimum", rows[-1], rows[-2], solve(unbiased)),
    ):
        others = {
            "by_name": proven(solution),
            "nearly_there": near.value,
            "linear_program": on_its_outputs(solution),
        }
        differences = {key: abs(value / end.value - 1) for key, value in others.items()}
        equal = max(differences.values()) <= AGREEMENT
        verdict = f"{'equal' if equal else 'NOT EQUAL'} within {AGREEMENT:g}"
        found = {"end": name, "epsilon": problem.epsilon, "value": end.value, **differences}
        yield found | {"equal": equal, "verdict": verdict}


def record(row: SweepRow) -> dict[str, Any]:
    """A row of a frontier as a flat record."""
    closed = row.status == "certified" and row.gap <= REQUIRED_GAP
    return {
        "epsilon": row.epsilon,
        "penalty": f"{row.bias_penalty:g}",
        "value": row.value,
        "lower": row.lower,
        "gap": row.gap,
        "variance": row.variance,
        "squared_bias": row.squared_bias,
        "outputs": row.outputs,
        "seconds": row.seconds,
        "proven": closed,
        "verdict": f"proven within {REQUIRED_GAP:g}" if closed else f"not proven: {row.reason}",
    }


def table_row(found: dict[str, Any]) -> list[str]:
    """A row of the table."""
    return [
        f"{found['epsilon']:g}",
        found["penalty"],
        f"{found['value']:.6f}",
        f"{found['gap']:.1e}",
        f"{math.sqrt(found['variance']):.4f}",
        f"{math.sqrt(found['squared_bias']):.4f}",
        str(found["outputs"]),
        duration(found["seconds"]),
        found["verdict"],
    ]


def end_row(found: dict[str, Any]) -> list[str]:
    """A row of the table of ends."""
    differences = [f"{found[way]:.1e}" for way in ("by_name", "nearly_there", "linear_program")]
    return [found["end"], f"{found['epsilon']:g}", f"{found['value']:.8f}", *differences, found["verdict"]]


def main(arguments: Sequence[str]) -> int:
    """Sweep, print, draw, and return 1 if a row is not proven or an end is not what it is called."""
    from benchmarks.pictures import left
    from optrand.plotting import frontier_figure

    given = options("frontier", __doc__).parse_args(arguments)
    k, count = (6, SMALL_COMPROMISES) if given.smoke else (priors.WEEKS, COMPROMISES)
    labels, prior = np.arange(float(k)), priors.weeks(k)
    found: dict[float, list[SweepRow]] = {}
    checked = []
    for epsilon in EPSILONS:
        problem = unbiased_regression(labels, prior, epsilon)
        found[epsilon] = list(sweep(problem, bias_penalties=penalties(count)))
        checked += list(ends(problem, found[epsilon]))
    rows = [record(row) for here in found.values() for row in here]
    title = f"Weeks worked, {k} labels: bias and variance from penalty 0 to infinity\n{circumstances()}"
    print_table(title, COLUMNS, [table_row(row) for row in rows])
    title = "The ends, and the relative differences of what they must equal"
    print_table(title, END_COLUMNS, [end_row(end) for end in checked])
    for epsilon, here in found.items():
        print(f"epsilon {epsilon:g}: {len(here)} penalties in {duration(sum(row.seconds for row in here))}")
    name = "frontier-smoke" if given.smoke else "frontier"
    write_json(given.results, name, rows)
    write_json(given.results, f"ends-of-{name}", checked)
    left(frontier_figure([row for here in found.values() for row in here]), given.results, name)
    return 0 if all(row["proven"] for row in rows) and all(end["equal"] for end in checked) else 1
