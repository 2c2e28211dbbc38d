"""What the best unbiased randomizers look like, on optima that are proven: [B23] asks, and observes some of it.

Three tables and a picture, for labels of positive prior and outputs on the real line:

* the columns of named priors: the interval ``[a, b]`` of labels that an output favours, from output to output, walks
  from the first label alone to the last one alone by steps of (0, 1), (1, 0) or (1, 1); how many outputs there are, and
  the mixture of randomized responses on bins that they are;
* the epsilon from which on debiased randomized response is optimal, against the number of labels;
* random problems: how often every optimum has outputs outside the range of debiased randomized response, where [B23],
  Algorithm 2, puts its grid, and what the best randomizer inside that range loses, which no grid there improves on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.clock import required_gap
from benchmarks.harness import circumstances, options, print_table, write_json
from optrand import Interval, Mechanism, certify, debiased_rr, feasible_output_set, solve, tabulate, unbiased_regression
from optrand.base.validation import Floats
from optrand.errors import InvalidInput, OptrandError
from optrand.mechanism import decompose_paths
from optrand.model.problem import Problem

__all__ = ["STEPS", "drawn", "examined", "intervals", "response_is_optimal", "threshold"]

SEED = 314159
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
SIZES = (5, 11, 21, 53, 101)
EPSILON_TICKS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
THRESHOLD_SIZES = (3, 5, 10, 20, 53, 101, 201, 401)
COUNT = 300
RANDOM_SIZES, RANDOM_EPSILONS = (3, 101), (0.05, 8.0)
BANDS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
OPTIMAL = 1e-12
"""A closed form within this gap is the optimum: beyond it are roundings only."""

RESOLUTION = 1e-4
STEPS = {(0, 1): "grow", (1, 0): "shrink", (1, 1): "shift"}
"""What an interval does from one output to the next."""


def uniform(k: int) -> Floats:
    """All labels alike."""
    return np.full(k, 1 / k)


NAMED: dict[str, Callable[[int], Floats]] = {
    "uniform": uniform,
    "Dirichlet": priors.dirichlet,
    "exponential": priors.exponential,
    "weeks": priors.weeks,
}
COLUMNS = (
    "prior",
    "k",
    "epsilon",
    "outputs",
    "2k - 2",
    *STEPS.values(),
    "other steps",
    "mixture of",
    "bins",
    "outside",
    "loss inside",
    "debiased RR",
    "gap",
    "verdict",
)
THRESHOLD_COLUMNS = ("prior", "k", "epsilon", "exp(epsilon)", "power of k", "verdict")
BAND_COLUMNS = (
    "epsilon",
    "problems",
    "2k - 2 outputs",
    "debiased RR optimal",
    "all optima leave",
    "median loss inside",
    "largest loss inside",
    "proven",
)


def posed(prior: str, k: int, epsilon: float) -> Problem:
    """The unbiased problem of a named prior on the labels 0 ... k-1."""
    return unbiased_regression(np.arange(float(k)), NAMED[prior](k), epsilon)


def drawn(number: int, largest: int = RANDOM_SIZES[1]) -> Problem:
    """A random problem: labels at random distances, a rough prior.

    Examples
    --------
    >>> drawn(7).k, round(drawn(7).epsilon, 3)
    (6, 0.066)
    """
    rng = np.random.default_rng([SEED, number])
    k = round(math.exp(rng.uniform(math.log(RANDOM_SIZES[0]), math.log(largest))))
    epsilon = math.exp(rng.uniform(math.log(RANDOM_EPSILONS[0]), math.log(RANDOM_EPSILONS[1])))
    labels = np.cumsum(rng.uniform(0.2, 1.8, k))
    prior = rng.dirichlet(np.full(k, 0.5)) + 1e-4
    return unbiased_regression(labels, prior / prior.sum(), epsilon)


def intervals(mechanism: Mechanism) -> list[tuple[int, int]]:
    """The first and the last label that each output favours, outputs increasing.

    Examples
    --------
    >>> intervals(tabulate(debiased_rr([0, 1, 2], 1.0)))
    [(0, 0), (1, 1), (2, 2)]
    """
    if mechanism.arcs is None:
        raise InvalidInput("the mechanism is a table, expected one that is made of arcs")
    _, arcs = mechanism.unsplit.rounded()
    order = np.argsort(arcs.at, kind="stable")
    return list(zip(arcs.first[order].tolist(), arcs.last[order].tolist(), strict=True))


def response_is_optimal(problem: Problem) -> bool:
    """Whether debiased randomized response is proven to be the optimum; where it is, its own dual proves it."""
    return certify(debiased_rr(problem.labels, problem.epsilon, prior=problem.prior)).gap <= OPTIMAL


def examined(problem: Problem) -> dict[str, Any]:
    """The optimum on the line and inside the range of debiased randomized response, both proven, and its structure."""
    record: dict[str, Any] = {"k": problem.k, "epsilon": problem.epsilon, "proven": False}
    grid = feasible_output_set(problem.labels, problem.epsilon, 2)
    try:
        mechanism = tabulate(solve(problem))
        proof = certify(mechanism)
        inside = certify(tabulate(solve(replace(problem, outputs=Interval(grid.low, grid.high)))))
    except OptrandError as error:
        return record | {"gap": math.inf, "verdict": f"{type(error).__name__}: {error}"}
    gap = max(math.inf if one.findings else one.gap for one in (proof, inside))
    favoured = intervals(mechanism)
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(favoured)]
    mixture = decompose_paths(mechanism)
    outside = max(grid.low - mechanism.outputs[0], mechanism.outputs[-1] - grid.high, 0.0)
    proven = gap <= required_gap(problem)
    return record | {
        "outputs": mechanism.n,
        **{name: steps.count(step) for step, name in STEPS.items()},
        "others": sum(step not in STEPS for step in steps),
        "from_first_to_last": (favoured[0], favoured[-1]) == ((0, 0), (problem.k - 1,) * 2),
        "everything": (0, problem.k - 1) in favoured,
        "components": len(mixture),
        "fewest_bins": int(mixture.bins.min()),
        "most_bins": int(mixture.bins.max()),
        "outside": float(outside / (grid.high - grid.low)),
        "all_leave": inside.lower > proof.upper,
        "loss_inside": max(inside.upper / proof.upper - 1, 0.0),
        "response": response_is_optimal(problem),
        "gap": gap,
        "proven": proven,
        "verdict": f"{'proven' if proven else 'NOT proven'} within {required_gap(problem):g}",
    }


def threshold(prior: str, k: int) -> dict[str, Any]:
    """The least epsilon from which on debiased randomized response is optimal, by bisection over certificates."""
    low, high = 0.0, 1.0
    while not response_is_optimal(posed(prior, k, high)):
        low, high = high, 2 * high
    while high - low > RESOLUTION:
        middle = (low + high) / 2
        low, high = (low, middle) if response_is_optimal(posed(prior, k, middle)) else (middle, high)
    return {"prior": prior, "k": k, "epsilon": high, "below": low, "verdict": f"proven at {high:.4f}, not at {low:.4f}"}


def table_row(found: dict[str, Any]) -> list[str]:
    """A row of the first table."""
    start = [found["prior"], str(found["k"]), f"{found['epsilon']:g}"]
    if "outputs" not in found:
        return [*start, *("-" * (len(COLUMNS) - 4)), found["verdict"]]
    return [
        *start,
        *(str(number) for number in (found["outputs"], 2 * found["k"] - 2)),
        *(str(found[name]) for name in (*STEPS.values(), "others", "components")),
        f"{found['fewest_bins']} to {found['most_bins']}",
        f"{found['outside']:.2%}",
        f"{found['loss_inside']:.1e}" if found["all_leave"] else "-",
        "optimal" if found["response"] else "-",
        f"{found['gap']:.1e}",
        found["verdict"],
    ]


def bands(found: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Rows of the table of random problems, by epsilon."""
    made = [record for record in found if "outputs" in record]
    for low, high in [*pairwise(BANDS), (BANDS[0], BANDS[-1])]:
        here = [record for record in made if low <= record["epsilon"] <= high]
        if not here:
            continue
        shares = (
            sum(record["outputs"] == 2 * record["k"] - 2 for record in here),
            sum(record["response"] for record in here),
            sum(record["all_leave"] for record in here),
        )
        losses = [record["loss_inside"] if record["all_leave"] else 0.0 for record in here]
        yield [
            f"{low:g} to {high:g}",
            str(len(here)),
            *(f"{share / len(here):.0%}" for share in shares),
            f"{statistics.median(losses):.1e}",
            f"{max(losses):.1e}",
            f"{sum(record['proven'] for record in here)} of {len(here)}",
        ]


def threshold_row(found: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """A row of the table of thresholds; the power is that by which exp(epsilon) grew from the row before."""
    power = "-"
    if before and before["prior"] == found["prior"]:
        power = f"{(found['epsilon'] - before['epsilon']) / math.log(found['k'] / before['k']):.2f}"
    numbers = (f"{found['epsilon']:.4f}", f"{math.exp(found['epsilon']):.4g}", power)
    return [found["prior"], str(found["k"]), *numbers, found["verdict"]]


def picture(
    named: Sequence[dict[str, Any]],
    thresholds: Sequence[dict[str, Any]],
    numbered: Sequence[dict[str, Any]],
    results: Path,
    name: str,
) -> None:
    """Outputs against epsilon, the walk of the intervals, the thresholds, and what the range of the grid costs."""
    from benchmarks.pictures import drawing, light, log_x, looks

    four = looks(range(4), "curves")
    with drawing(results, name, (7.6, 6.4)) as figure:
        (counts, walk), (limits, losses) = figure.subplots(2, 2)
        sizes = sorted({record["k"] for record in named})
        for look, k in zip(four, sizes[-4:], strict=False):
            mine = [record for record in named if (record["prior"], record["k"]) == ("Dirichlet", k)]
            mine = [record for record in mine if "outputs" in record]
            shares = [record["outputs"] / k for record in mine]
            counts.plot([record["epsilon"] for record in mine], shares, label=f"{k} labels", **look)
        log_x(counts, EPSILON_TICKS)
        counts.set(xlabel="epsilon", ylabel="outputs per label", title="how many outputs: Dirichlet prior")
        k = max(size for size in sizes if size <= priors.WEEKS)
        for look, epsilon in zip(four, (1.0, 3.0, 5.0, 8.0), strict=True):
            ends = np.array(intervals(tabulate(solve(posed("weeks", k, epsilon))))).T
            walk.plot(*ends, label=f"ε = {epsilon:g}", **{**look, "markersize": 2.5})
        title = f"which labels each output favours: weeks, {k} labels"
        walk.set(xlabel="first label", ylabel="last label", title=title)
        for look, prior in zip(four, NAMED, strict=True):
            mine = [record for record in thresholds if record["prior"] == prior]
            limits.plot([record["k"] for record in mine], [record["epsilon"] for record in mine], label=prior, **look)
        log_x(limits, sorted({record["k"] for record in thresholds}))
        limits.set(xlabel="labels", ylabel="epsilon", title="debiased randomized response is optimal above")
        leaving = [record for record in numbered if record.get("all_leave")]
        amounts = [record["loss_inside"] for record in leaving]
        losses.scatter([record["epsilon"] for record in leaving], amounts, s=9, color=four[0]["color"])
        log_x(losses, EPSILON_TICKS)
        losses.set(
            yscale="log",
            xlabel="epsilon",
            ylabel="relative loss",
            xlim=RANDOM_EPSILONS,
            title="cost of staying in the range of debiased RR",
        )
        for axes in (counts, walk, limits):
            axes.legend()
        for axes in figure.axes:
            light(axes)


def sound(found: dict[str, Any]) -> bool:
    """Whether an optimum is proven and has the structure that a generic one must have."""
    return bool(
        found["proven"]
        and not found["others"]
        and found["from_first_to_last"]
        and not found["everything"]
        and found["outputs"] <= 2 * found["k"] - 2
        and found["most_bins"] <= found["fewest_bins"] + 1
    )


def main(arguments: Sequence[str]) -> int:
    """Examine, print, draw, and return 1 if an optimum is not proven or does not look as it must."""
    given = options("structure", __doc__).parse_args(arguments)
    sizes, epsilons = ((5, 8), EPSILONS[2::2]) if given.smoke else (SIZES, EPSILONS)
    count, largest = (12, 12) if given.smoke else (COUNT, RANDOM_SIZES[1])
    named = [
        {"prior": prior} | examined(posed(prior, k, epsilon))
        for prior in NAMED
        for k in sizes
        if prior != "weeks" or k <= priors.WEEKS
        for epsilon in epsilons
    ]
    print_table(f"Optimal unbiased randomizers\n{circumstances()}", COLUMNS, [table_row(record) for record in named])
    thresholds = [
        threshold(prior, k)
        for prior in NAMED
        for k in (THRESHOLD_SIZES[:4] if given.smoke else THRESHOLD_SIZES)
        if prior != "weeks" or k <= priors.WEEKS
    ]
    title = "From which epsilon on debiased randomized response is optimal"
    print_table(
        title, THRESHOLD_COLUMNS, [threshold_row(*pair) for pair in zip(thresholds, [None, *thresholds], strict=False)]
    )
    numbered = [{"number": number} | examined(drawn(number, largest)) for number in range(count)]
    title = f"{count} random problems, 3 to {largest} labels: optima outside the range of debiased randomized response"
    print_table(title, BAND_COLUMNS, list(bands(numbered)))
    odd = [record for record in (*named, *numbered) if not ("outputs" in record and sound(record))]
    print(f"{len(named) + count - len(odd)} of {len(named) + count} optima are proven and walk by unit steps")
    for record in odd:
        print(record)
    name = "structure-smoke" if given.smoke else "structure"
    write_json(given.results, name, [*named, *numbered])
    write_json(given.results, f"thresholds-of-{name}", thresholds)
    picture(named, thresholds, numbered, given.results, name)
    return 1 if odd else 0
