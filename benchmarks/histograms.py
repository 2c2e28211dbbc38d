"""Default releases: what the prior without zeros costs, and how well the histogram of the labels is estimated.

First part: the loss of a default release, of which the prior is smoothed and debiased randomized response draws a few
labels, against that of the optimum for the prior of [B23], Algorithm 4, clipped and normalised, both under the *true*
distribution of the table, from the same noisy histograms. Populations are weeks worked, one label alone, both ends,
Zipf, mostly empty, uniform and geometric.

Second part: releases of the bundled table at epsilon 0.5 to 8, each asked for its histogram; standard deviations of the
counts as the record states them, beside those of debiased randomized response, and the errors that were made, in
standard errors. Exit code 1 if a release does not answer, or costs more than 1 % on average over the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import circumstances, options, print_table, use_one_core, write_json
from benchmarks.priors import weeks
from optrand import solve, tabulate, unbiased_regression
from optrand.base.validation import Floats
from optrand.data import WEEKS_LABEL, weeks_worked_path
from optrand.errors import InvalidInput
from optrand.estimate import histogram
from optrand.release.conditioning import Conditioning, conditioned
from optrand.release.job import LabelJob
from optrand.release.table import read_labels
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import private_prior, split_budget
from optrand.sampling.smoothing import smoothed_prior

__all__ = ["costs", "populations", "released"]

SEED = 20_000
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
ROWS = (1_000, 20_000, 1_000_000, 10_000_000)
LABELS = 53
LARGEST_COST = 0.01

COST_COLUMNS = ("population", "rows", "epsilon", "clipped", "smoothed", "drawn", "mean cost", "largest cost")
COLUMNS = (
    "epsilon",
    "releases",
    "answer",
    "count's sd",
    "response's",
    "of optimum",
    "largest multiple",
    "cost",
    "error in sds",
)


def populations(k: int) -> Iterator[tuple[str, Floats]]:
    """Names and true distributions of ``k`` labels.

    Examples
    --------
    >>> [name for name, _ in populations(5)]
    ['weeks', 'one label', 'both ends', 'zipf', 'mostly empty', 'uniform', 'geometric']
    """
    rng, places = np.random.default_rng(SEED), np.arange(float(k))
    shares: dict[str, Floats] = {
        "weeks": weeks(k),
        "one label": (places == k // 3).astype(np.float64),
        "both ends": np.isin(places, (0, k - 1)).astype(np.float64),
        "zipf": rng.permutation((1.0 + places) ** -1.5),
        "mostly empty": np.where(rng.random(k) < 0.1, rng.random(k), 1.0 * (places == min(3, k - 1))),
        "uniform": np.ones(k),
        "geometric": np.exp(-places / 2),
    }
    for name, weights in shares.items():
        yield name, weights / weights.sum()


def costs(name: str, population: Floats, rows: int, epsilon: float, repeats: int) -> dict[str, Any]:
    """Mean losses under the true distribution, and the mean and largest share that smoothing and mixing add."""
    k = population.size
    split = split_budget(epsilon, k, rows)
    found = []
    for seed in range(repeats):
        counts = np.random.default_rng(seed).multinomial(rows, population)
        estimate = private_prior(counts, split.prior, source=SeededEntropy(seed))
        clip, smooth = (
            solve(unbiased_regression(np.arange(k), prior, split.labels))
            for prior in (estimate.probabilities, smoothed_prior(estimate, rows))
        )
        found.append(
            [
                float(counts @ table.variances) / (2 * rows)
                for table in (clip.randomizer, smooth.randomizer, conditioned(tabulate(smooth)).mechanism.randomizer)
            ]
        )
    clipped, smoothed, drawn = np.array(found).T
    return {
        "population": name,
        "rows": rows,
        "epsilon": epsilon,
        "clipped": float(clipped.mean()),
        "smoothed": float(smoothed.mean()),
        "drawn": float(drawn.mean()),
        "mean cost": float(drawn.mean() / clipped.mean() - 1),
        "largest cost": float((drawn / clipped).max() - 1),
    }


def released(epsilon: float, releases: int) -> dict[str, Any]:
    """Releases of the bundled table, and what their histograms are worth."""
    labels = read_labels(weeks_worked_path(), WEEKS_LABEL)
    true = np.bincount(labels.astype(int), minlength=LABELS) / labels.size
    root, answered, deviations, responses, errors = np.sqrt(labels.size), 0, [0.0], [0.0], [0.0]
    before, multiples, paid = [0.0], [0.0], [0.0]
    for seed in range(releases):
        release = LabelJob(labels=np.arange(float(LABELS)), epsilon=epsilon).run(labels, source=SeededEntropy(seed))
        fit = release.conditioning
        try:
            found = histogram(release.values, release.mechanism)
        except InvalidInput:
            continue
        if fit is None or fit.count_errors is None:
            continue
        answered += 1
        deviations.append(float(fit.count_errors.max() * root))
        responses.append(float(fit.response_errors.max() * root))
        before.append(Conditioning(tabulate(solve(release.mechanism.problem))).multiple)
        multiples.append(fit.multiple)
        paid.append(fit.cost)
        errors.append(float((np.abs(found.shares - true) / found.noise_errors).max()))
    return {
        "epsilon": epsilon,
        "releases": releases,
        "answer": answered,
        "count's sd": max(deviations),
        "response's": max(responses),
        "of optimum": max(before),
        "largest multiple": max(multiples),
        "cost": max(paid),
        "error in sds": max(errors),
    }


def main(arguments: Sequence[str]) -> int:
    """Print both tables; 1 if a release does not answer, or costs more than it may."""
    parser = options("histograms", __doc__)
    parser.add_argument("--releases", type=int, default=20, help="how many at each epsilon (default: 20)")
    parser.add_argument("--repeats", type=int, default=3, help="noisy histograms of each population (default: 3)")
    given = parser.parse_args(arguments)
    use_one_core()
    small = given.smoke
    sizes, budgets, k = ((1_000,), (1.0,), 11) if small else (ROWS, EPSILONS, LABELS)
    paid = [
        costs(name, shares, rows, epsilon, 1 if small else given.repeats)
        for name, shares in populations(k)
        for rows in sizes
        for epsilon in budgets
    ]
    print_table(f"Loss under the true distribution, {k} labels\n{circumstances()}", COST_COLUMNS, _cells(paid))
    made = [released(epsilon, 1 if small else given.releases) for epsilon in budgets]
    print_table("Histograms of weeks worked, 20,000 rows, 53 labels", COLUMNS, _cells(made))
    write_json(given.results, "histograms-smoke" if small else "histograms", [*paid, *made])
    worst = max(paid, key=lambda one: one["mean cost"])
    print(
        f"smoothing and mixing cost at most {worst['mean cost']:+.2%} on average over the noise ({worst['population']})"
    )
    fine = all(one["answer"] == one["releases"] for one in made)
    return 0 if fine and worst["mean cost"] <= LARGEST_COST else 1


def _cells(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [[_cell(name, value) for name, value in record.items()] for record in records]


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:+.2%}" if name.endswith("cost") else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
