"""Every randomizer at equal epsilon: those that the papers compare with, beside the proven best of its class.

Weeks worked, at five epsilons: the noisy label loss (half the mean squared error of
a released label), the largest bias, the variance, and labels drawn per second on one core. No randomizer may lose less
than the certified optimum of its class: of all randomizers, or of all unbiased ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import priors
from benchmarks.harness import Benchmark, Row, median_seconds
from optrand import Interval, certify, debiased_rr, rr, rr_on_bins, solve, unbiased_regression
from optrand.base._validation import Floats
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, Laplace, Moments, Staircase, UnaryBits
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import Problem

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
GAP = 1e-8
"""Relative gap within which the optima must be proven."""


class Entry(NamedTuple):
    """A randomizer, and the moments of its outputs."""

    name: str
    randomizer: Any
    moments: Moments


def entries(problem: Problem, best: dict[str, Mechanism]) -> Iterator[Entry]:
    """List all randomizers, the best ones first, for evenly spaced labels."""
    labels, epsilon = problem.labels, problem.epsilon
    randomizers: dict[str, Any] = dict(best)
    randomizers |= {"debiased RR": debiased_rr(labels, epsilon), "randomized response": rr(labels, epsilon)}
    ends, step = Interval(float(labels[0]), float(labels[-1])), float(labels[1] - labels[0])
    for clip, suffix in ((None, ""), (ends, ", clipped")):
        for name, noise in {"Laplace": Laplace, "staircase": Staircase}.items():
            randomizers[name + suffix] = noise(ends, epsilon, clip=clip)
        for name, noise in {"discrete Laplace": DiscreteLaplace, "discrete staircase": DiscreteStaircase}.items():
            randomizers[name + suffix] = noise(ends, epsilon, clip=clip, step=step)
    for name, randomizer in randomizers.items():
        yield Entry(name, randomizer, randomizer.moments(labels))
    # Debiased bits have independent noise of one variance: the number read off them that has no bias and the least
    # variance is the sum of them times the centred labels.
    bits = UnaryBits(labels.size, epsilon)
    variance = bits.variance * float(np.square(labels - labels.mean()).sum())
    moments = Moments(np.zeros(labels.size), np.full(labels.size, variance))
    yield Entry("unary bits, read off", bits, moments)


def compare_with_optima(name: str, labels: Floats, prior: Floats, epsilon: float, count: int) -> Iterator[Row]:
    """Measure each randomizer, and compare its loss with the proven bound of its class."""
    problem, spread = unbiased_regression(labels, prior, epsilon), float(np.ptp(labels))
    best = {"optimal unbiased": solve(problem), "RR-on-Bins": rr_on_bins(labels, prior, epsilon)}
    unbiased, any_bias = (certify(mechanism).require(gap=GAP).lower for mechanism in best.values())
    places = np.random.default_rng(0).choice(labels.size, size=count, p=prior / prior.sum())
    for entry in entries(problem, best):
        loss, sample = entry.moments.loss(prior), entry.randomizer.sample
        # Bias up to a billionth of the range of the labels is rounding.
        bound = unbiased if entry.moments.bias <= 1e-9 * spread else any_bias
        values = places if isinstance(entry.randomizer, UnaryBits) else labels[places]
        holds = loss >= bound * (1 - GAP)
        yield {
            "randomizer": entry.name,
            "prior": name,
            "epsilon": epsilon,
            "loss": loss,
            "ratio": loss / bound,
            "bias": entry.moments.bias if bound == any_bias else None,
            "variance": entry.moments.variance(prior),
            "draws": count / median_seconds(lambda sample=sample, values=values: sample(values), 1),  # type: ignore[misc]
            "right": holds,
            "verdict": "not below the optimum" if holds else "BELOW THE CERTIFIED OPTIMUM",
        }


def measure(given: Any) -> Iterator[Row]:
    """Compare at every epsilon."""
    k = 6 if given.smoke else priors.WEEKS
    for epsilon in (1.0, 4.0) if given.smoke else EPSILONS:
        yield from compare_with_optima(
            "weeks worked", np.arange(float(k)), priors.weeks(k), epsilon, 200 if given.smoke else 20_000
        )


TABLES = {
    "At equal epsilon (the ratio is to the best)": (
        "randomizer prior epsilon loss:.6g ratio:.4f bias:.4g variance:.6g draws verdict"
    ),
}
main = Benchmark("randomizers", __doc__, measure, TABLES).run
