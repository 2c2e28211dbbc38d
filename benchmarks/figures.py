"""Every picture, drawn anew from mechanisms that are certified on the way.

Four mechanisms, each with its gallery: the optimal unbiased randomizer of weeks worked, randomized response on bins for
the same labels, a price of bias between the two, and RRWithPrior of ten classes. Then the pictures that compare: bias
against variance, many randomizers against epsilon, RRWithPrior's choice, and solve times as far as `mesh` and `labels`
have left rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import priors
from benchmarks.harness import options, print_table
from optrand import (
    Interval,
    certify,
    classification,
    debiased_rr,
    regression,
    rr,
    rr_on_bins,
    solve,
    tabulate,
    unbiased_regression,
)
from optrand.base.validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase
from optrand.mechanism.mechanism import Mechanism
from optrand.studies import sweep

__all__ = ["comparisons", "mechanisms"]

REQUIRED_GAP = 1e-9
EPSILONS = (0.5, 1.0, 2.0, 4.0)
FINE = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
CLASSES = 10
COLUMNS = ("mechanism", "exact gap", "pictures", "left out")


def mechanisms(k: int) -> Iterator[tuple[str, Mechanism]]:
    """What galleries are made of."""
    labels, prior = np.arange(float(k)), priors.weeks(k)
    yield "unbiased", tabulate(solve(unbiased_regression(labels, prior, 1.0)))
    yield "bins", tabulate(rr_on_bins(labels, prior, 1.0))
    yield "between", tabulate(solve(regression(labels, prior, 1.0, bias_penalty=10.0)))
    yield "classes", tabulate(solve(classification(priors.exponential(CLASSES), 2.0)))


def randomizers(labels: Floats, prior: Floats) -> dict[str, Callable[[float], Any]]:
    """What is compared over epsilon."""
    ends = Interval(float(labels[0]), float(labels[-1]))
    return {
        "optimal unbiased": lambda epsilon: tabulate(solve(unbiased_regression(labels, prior, epsilon))),
        "RR-on-Bins": lambda epsilon: tabulate(rr_on_bins(labels, prior, epsilon)),
        "debiased RR": lambda epsilon: tabulate(debiased_rr(labels, epsilon)),
        "randomized response": lambda epsilon: tabulate(rr(labels, epsilon)),
        "discrete Laplace": lambda epsilon: DiscreteLaplace(ends, epsilon).moments(labels),
        "discrete staircase": lambda epsilon: DiscreteStaircase(ends, epsilon).moments(labels),
        "discrete staircase, clipped": lambda epsilon: DiscreteStaircase(ends, epsilon, clip=ends).moments(labels),
    }


def measured(results: Path, name: str) -> list[dict[str, Any]]:
    """The rows that a benchmark has left, if it has."""
    path = results / f"{name}.json"
    if not path.exists():
        print(f"no solve times yet: python -m benchmarks {name.removesuffix('-smoke')}")
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row.get("method") != "RR-on-Bins, BinPath"]


def comparisons(k: int, results: Path, suffix: str) -> Iterator[tuple[str, Any]]:
    """The names of the pictures that compare, and the figures."""
    from optrand.plotting import frontier_figure, moments_figure, rr_with_prior_figure, times_figure

    labels, prior = np.arange(float(k)), priors.weeks(k)
    penalties = [0.0, *np.geomspace(0.01, 1e4, 13).tolist(), math.inf]
    problem = unbiased_regression(labels, prior, 1.0)
    yield "frontier", frontier_figure(sweep(problem, epsilons=EPSILONS, bias_penalties=penalties))
    yield "moments", moments_figure(randomizers(labels, prior), prior, epsilons=FINE)
    yield "rr-with-prior", rr_with_prior_figure(priors.exponential(CLASSES), epsilons=EPSILONS)
    for name, size, series, what in (
        ("mesh", "mesh", "method", "weeks worked, epsilon 1"),
        ("labels", "k", "prior", "epsilon 1"),
    ):
        rows = measured(results, name + suffix)
        if rows:
            title = f"Optimal unbiased randomizers, {what}"
            yield f"times-by-{name}", times_figure(rows, by=size, series=series, title=title)


def main(arguments: Sequence[str]) -> int:
    """Solve, certify, draw; return 1 if a mechanism is not proven."""
    from optrand.plotting import save_figure
    from optrand.plotting.gallery import gallery

    given = options("figures", __doc__).parse_args(arguments)
    k, suffix = (6, "-smoke") if given.smoke else (priors.WEEKS, "")
    folder = given.results / f"figures{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    unproven, rows = 0, []
    for name, mechanism in mechanisms(k):
        proof = certify(mechanism)
        unproven += bool(proof.findings) or not proof.gap <= REQUIRED_GAP
        made = gallery(mechanism, folder / name, endings=(".png",), overwrite=True)
        left_out = ", ".join(picture for picture, _ in made.left_out)
        rows.append([name, f"{proof.gap:.1e}", str(len(made.pictures)), left_out or "nothing"])
    print_table("Galleries", COLUMNS, rows)
    for name, figure in comparisons(k, given.results, suffix):
        save_figure(figure, folder / f"{name}.png", overwrite=True)
        print(f"{name}.png")
    print(f"pictures written to {folder}")
    return 1 if unproven else 0
