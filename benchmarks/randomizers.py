"""Every randomizer at equal epsilon: what the papers compare with, beside what is proven to be the best of its class.

Weeks worked, revenue and visits to a physician, at five epsilons: the noisy label loss (the mean half squared error of
what is released), the largest bias, the variance, and labels drawn a second on one core. No randomizer may lose less
than the certified optimum of its class: of all randomizers, or of all unbiased ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from benchmarks import priors
from benchmarks.harness import circumstances, median_seconds, options, print_table, rate, use_one_core, write_json
from optrand import Interval, certify, debiased_rr, rr, rr_on_bins, solve, tabulate, unbiased_regression
from optrand.base.validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, Laplace, Moments, Staircase, UnaryBits
from optrand.mechanism.mechanism import Mechanism
from optrand.model.problem import Problem

__all__ = ["Entry", "Optima", "entries", "optima"]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
REQUIRED_GAP = 1e-8
UNBIASED = 1e-9
"""A larger bias, as a share of the labels' range, puts a randomizer among the biased ones."""

DRAWS = 20_000
COLUMNS = ("randomizer", "epsilon", "loss", "over the best", "largest bias", "variance", "draws a second", "verdict")


class Draws(Protocol):
    """Whatever draws a noisy label."""

    def sample(self, values: ArrayLike, /) -> Any:
        """One draw a value."""
        ...


@dataclass(frozen=True, eq=False)
class Entry:
    """A randomizer, and the moments of what it releases."""

    name: str
    randomizer: Draws
    moments: Moments


@dataclass(frozen=True, eq=False)
class Optima:
    """What no randomizer, and no unbiased one, gets below; and the mechanisms that get there."""

    any_bias: float
    unbiased: float
    mechanisms: dict[str, Mechanism]

    def bound(self, entry: Entry, spread: float) -> float:
        """The one that holds for an entry."""
        return self.unbiased if entry.moments.bias <= UNBIASED * spread else self.any_bias


def optima(problem: Problem) -> Optima:
    """Both optima of an unbiased problem, proven."""
    unbiased = tabulate(solve(problem))
    bins = tabulate(rr_on_bins(problem.labels, problem.prior, problem.epsilon))
    bounds = [certify(mechanism).require(gap=REQUIRED_GAP).lower for mechanism in (bins, unbiased)]
    return Optima(bounds[0], bounds[1], {"optimal unbiased": unbiased, "RR-on-Bins": bins})


def of_bits(labels: Floats, epsilon: float) -> Entry:
    """Unary bits, debiased, and the number read off them that has no bias and the least variance."""
    bits = UnaryBits(labels.size, epsilon)
    variance = bits.variance * float(np.square(labels - labels.mean()).sum())
    return Entry("unary bits, read off", bits, Moments(np.zeros(labels.size), np.full(labels.size, variance)))


def entries(problem: Problem, best: Optima) -> Iterator[Entry]:
    """All of them, the best ones first; labels are evenly spaced."""
    labels, epsilon = problem.labels, problem.epsilon
    for name, mechanism in best.mechanisms.items():
        yield Entry(name, mechanism, mechanism.moments(mechanism.labels))
    for name, solution in (("debiased RR", debiased_rr(labels, epsilon)), ("randomized response", rr(labels, epsilon))):
        mechanism = tabulate(solution)
        yield Entry(name, mechanism, mechanism.moments(mechanism.labels))
    ends, step = Interval(float(labels[0]), float(labels[-1])), float(labels[1] - labels[0])
    for clip in (None, ends):
        suffix = ", clipped" if clip else ""
        additive: dict[str, Any] = {
            "Laplace": Laplace(ends, epsilon, clip=clip),
            "staircase": Staircase(ends, epsilon, clip=clip),
            "discrete Laplace": DiscreteLaplace(ends, epsilon, clip=clip, step=step),
            "discrete staircase": DiscreteStaircase(ends, epsilon, clip=clip, step=step),
        }
        for name, randomizer in additive.items():
            yield Entry(name + suffix, randomizer, randomizer.moments(labels))
    yield of_bits(labels, epsilon)


def drawn_per_second(entry: Entry, labels: Floats, prior: Floats, count: int) -> float:
    """Labels of the prior, many at a time; classes are the labels' numbers."""
    places = np.random.default_rng(0).choice(labels.size, size=count, p=prior / prior.sum())
    values = places if isinstance(entry.randomizer, UnaryBits) else labels[places]
    return count / median_seconds(lambda: entry.randomizer.sample(values), repeats=1)


def records(
    name: str, prior: Floats, labels: Floats, count: int, epsilons: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """A row for each randomizer and epsilon."""
    spread = float(np.ptp(labels))
    for epsilon in epsilons:
        problem = unbiased_regression(labels, prior, epsilon)
        best = optima(problem)
        for entry in entries(problem, best):
            loss, bound = entry.moments.loss(prior), best.bound(entry, spread)
            # The optimum itself may be told from its bound by the proven gap, and by the rounding of floats here.
            holds = loss >= bound * (1 - REQUIRED_GAP)
            yield {
                "prior": name,
                "epsilon": epsilon,
                "randomizer": entry.name,
                "loss": loss,
                "bias": entry.moments.bias,
                "variance": entry.moments.variance(prior),
                "unbiased": entry.moments.bias <= UNBIASED * spread,
                "bound": bound,
                "draws": drawn_per_second(entry, labels, prior, count),
                "holds": holds,
                "verdict": "not below the optimum" if holds else "BELOW THE CERTIFIED OPTIMUM",
            }


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    return [
        record["randomizer"],
        f"{record['epsilon']:g}",
        f"{record['loss']:.6g}",
        f"{record['loss'] / record['bound']:.4f}",
        "none" if record["unbiased"] else f"{record['bias']:.4g}",
        f"{record['variance']:.6g}",
        rate(record["draws"]),
        record["verdict"],
    ]


def picture(rows: Sequence[dict[str, Any]], results: Path, name: str) -> None:
    """The noisy label loss against epsilon: unbiased ones above, and all of them below."""
    from benchmarks.pictures import drawing, log_log, looks

    # To the eye noise from the real line is the same as noise on a lattice.
    rows = [row for row in rows if not row["randomizer"].startswith(("Laplace", "staircase"))]
    names = list(dict.fromkeys(row["prior"] for row in rows))
    with drawing(results, name, (3.2 * len(names), 6.4)) as figure:
        grid = figure.subplots(2, len(names), squeeze=False)
        for column, prior in enumerate(names):
            for axes, unbiased, title in zip(grid[:, column], (True, False), ("no bias", "any bias"), strict=True):
                here = [row for row in rows if row["prior"] == prior and row["unbiased"] == unbiased]
                drawn = list(dict.fromkeys(row["randomizer"] for row in here))
                for look, randomizer in zip(looks(drawn, "randomizers"), drawn, strict=True):
                    found = [row for row in here if row["randomizer"] == randomizer]
                    width = 2.0 if randomizer in ("optimal unbiased", "RR-on-Bins") else 0.9
                    x, y = [row["epsilon"] for row in found], [row["loss"] for row in found]
                    axes.plot(x, y, label=randomizer, linewidth=width, **look)
                log_log(axes, "epsilon", "half squared error" if column == 0 else "", EPSILONS)
                axes.set_title(f"{prior}: {title}", fontsize=8)
                axes.legend(fontsize=6)


PROBLEMS: dict[str, Callable[[], tuple[Floats, Floats]]] = {
    "weeks worked": lambda: (np.arange(53.0), priors.weeks()),
    "revenue": lambda: (np.linspace(0.0, 400.0, 101), priors.revenue(101)),
    "visits": lambda: (np.arange(78.0), priors.visits()),
}
SMALL_PROBLEMS: dict[str, Callable[[], tuple[Floats, Floats]]] = {
    "weeks worked": lambda: (np.arange(6.0), priors.weeks(6)),
    "visits": lambda: (np.arange(9.0), priors.visits(9)),
}


def main(arguments: Sequence[str]) -> int:
    """Measure, print, draw, and return 1 if anything is below the optimum of its class."""
    given = options("randomizers", __doc__).parse_args(arguments)
    use_one_core()
    problems, count, epsilons = (SMALL_PROBLEMS, 200, (1.0, 4.0)) if given.smoke else (PROBLEMS, DRAWS, EPSILONS)
    found: list[dict[str, Any]] = []
    for name, make in problems.items():
        labels, prior = make()
        here = list(records(name, prior, labels, count, epsilons))
        print_table(f"{name}, {labels.size} labels\n{circumstances()}", COLUMNS, [row(record) for record in here])
        found += here
    name = "randomizers-smoke" if given.smoke else "randomizers"
    write_json(given.results, name, found)
    picture(found, given.results, name)
    below = sum(not record["holds"] for record in found)
    print(f"{len(found)} rows, {below} below the certified optimum of their class")
    return 1 if below else 0
