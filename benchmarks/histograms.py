"""Default releases: the cost of a prior without zeros, and how well the histogram of the labels is estimated.

First part: the loss of a default release, of which the prior is smoothed and debiased randomized response draws a few
labels, against that of the optimum for the prior of [B23], Algorithm 4, clipped and normalised, both under the *true*
distribution of the table, from the same noisy histograms.

Second part: releases of the bundled table at epsilon 0.5 to 8, and the largest multiple of the noise of debiased
randomized response that a count of their histograms has. A release that has no histogram, or a prior that costs more
than 1 % on average over the noise, is not right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from pyarrow import csv

from benchmarks.harness import Benchmark, Row
from benchmarks.priors import weeks
from optrand import solve, unbiased_regression
from optrand.base._validation import Floats
from optrand.data import WEEKS_LABEL, weeks_worked_path
from optrand.release._plan import Conditioning, condition, draw_histograms, find_mechanisms
from optrand.release._question import Question
from optrand.release._rows import Groups
from optrand.sampling._entropy import SeededEntropy
from optrand.sampling._priors import private_prior, smoothed_prior, split_budget

EPSILONS, ROWS, LABELS = (0.5, 1.0, 2.0, 4.0, 8.0), (1_000, 20_000, 1_000_000, 10_000_000), 53
TABLES = {
    "Loss under the true distribution": (
        "population count epsilon clipped:.4g smoothed:.4g drawn:.4g mean_cost:+.2% largest_cost:+.2%"
    ),
    "Histograms of weeks worked, 20,000 rows, 53 labels": ("releases epsilon of_optimum:.4g of_drawn:.4g cost:+.2%"),
}


def populations(k: int) -> dict[str, Floats]:
    """List the true distributions of ``k`` labels by name.

    Examples
    --------
    >>> list(populations(5))
    ['weeks', 'one label', 'both ends', 'zipf', 'mostly empty', 'uniform', 'geometric']
    """
    rng, places = np.random.default_rng(20_000), np.arange(float(k))
    shares: dict[str, Floats] = {
        "weeks": weeks(k),
        "one label": (places == k // 3).astype(np.float64),
        "both ends": np.isin(places, (0, k - 1)).astype(np.float64),
        "zipf": rng.permutation((1.0 + places) ** -1.5),
        "mostly empty": np.where(rng.random(k) < 0.1, rng.random(k), 1.0 * (places == min(3, k - 1))),
        "uniform": np.ones(k),
        "geometric": np.exp(-places / 2),
    }
    return {name: weights / weights.sum() for name, weights in shares.items()}


def measure_costs(population: Floats, rows: int, epsilon: float, repeats: int) -> Row:
    """Compare mean losses under the true distribution: clipped, smoothed, and as drawn."""
    k, found = population.size, []
    split = split_budget(epsilon, k, rows)
    for seed in range(repeats):
        counts = np.random.default_rng(seed).multinomial(rows, population)
        estimate = private_prior(counts, split.prior, source=SeededEntropy(seed))
        clip, smooth = (
            solve(unbiased_regression(np.arange(k), prior, split.labels))
            for prior in (estimate.probabilities, smoothed_prior(estimate, rows))
        )
        tables = (clip.randomizer, smooth.randomizer, condition(smooth).mechanism.randomizer)
        found.append([float(counts @ table.variances) / (2 * rows) for table in tables])
    clipped, smoothed, drawn = np.array(found).T
    row = {"clipped": float(clipped.mean()), "smoothed": float(smoothed.mean()), "drawn": float(drawn.mean())}
    row |= {"mean_cost": float(drawn.mean() / clipped.mean() - 1), "largest_cost": float((drawn / clipped).max() - 1)}
    return row | {"right": row["mean_cost"] <= 0.01}


def measure_releases(epsilon: float, releases: int) -> Row:
    """Plan releases of the bundled table, and return the largest multiples of the errors of their histograms."""
    labels = np.array(csv.read_csv(weeks_worked_path())[WEEKS_LABEL])
    counts = np.bincount(labels, minlength=LABELS)[np.newaxis]
    question, answers = Question(labels=range(LABELS), epsilon=epsilon), list[dict[str, float]]()
    for seed in range(releases):
        noisy = draw_histograms(question, counts, SeededEntropy(seed))
        (fit,), _ = find_mechanisms(question, Groups(), counts.sum(axis=1), noisy)
        optimum = Conditioning(solve(fit.mechanism.problem))
        answers.append({"of_optimum": optimum.multiple, "of_drawn": fit.multiple, "cost": fit.cost})
    row = {name: max(answer[name] for answer in answers) for name in answers[0]}
    return row | {"epsilon": epsilon, "releases": releases, "right": math.isfinite(row["of_drawn"])}


def measure(given: Any) -> Iterator[Row]:
    """Measure both parts."""
    sizes, epsilons, k = ((1_000,), (1.0,), 11) if given.smoke else (ROWS, EPSILONS, LABELS)
    for name, shares in populations(k).items():
        for rows in sizes:
            for epsilon in epsilons:
                row = {"population": name, "count": rows, "epsilon": epsilon}
                yield row | measure_costs(shares, rows, epsilon, 1 if given.smoke else given.repeats)
    for epsilon in epsilons:
        yield measure_releases(epsilon, 1 if given.smoke else given.releases)


def arguments(parser: Any) -> None:
    """Add the numbers of repetitions."""
    parser.add_argument("--releases", type=int, default=20, help="how many at each epsilon (default: 20)")
    parser.add_argument("--repeats", type=int, default=3, help="noisy histograms of each population (default: 3)")


main = Benchmark("histograms", __doc__, measure, TABLES, arguments=arguments).run
