"""Unbiased one-hot vectors of a class: the proven best beside randomized response, subset selection and bits.

Each rival has its best unbiased decoder for the prior, and subset selection its best size. "Debiased bits" are those of
[Z25] with a decoder that takes every bit by itself. The losses are half the expected squared distance from the one-hot
vector, those of rivals as multiples of the best.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Row
from optrand import unbiased_vectors
from optrand.base._validation import Floats
from optrand.baselines import UnaryBits
from optrand.vectors import best_decoder

SIZES, EPSILONS = (3, 6, 9, 12), (0.25, 0.5, 1.0, 2.0, 4.0)


def priors(k: int) -> dict[str, Floats]:
    """List the priors by name: equal, halving, nine tenths on one class, and a random one."""
    weights = {
        "uniform": np.ones(k),
        "geometric": 0.5 ** np.arange(k),
        "spike": np.r_[0.9, np.full(k - 1, 0.1 / (k - 1))],
        "Dirichlet": np.random.default_rng(k).dirichlet(np.ones(k)),
    }
    return {name: one / one.sum() for name, one in weights.items()}


def selection(k: int, ratio: float, d: int) -> Floats:
    """Make the table of a random subset of size `d`. A set of size 1 is randomized response."""
    members = np.array(list(itertools.combinations(range(k), d)))
    columns = np.ones((k, len(members)))
    np.put_along_axis(columns.T, members, ratio, axis=1)
    return np.asarray(columns / columns.sum(axis=1, keepdims=True))


def bits(k: int, ratio: float) -> Floats:
    """Make the table of the ``2**k`` vectors of bits of [Z25]."""
    right = math.sqrt(ratio) / (1 + math.sqrt(ratio))
    vectors = np.array(list(itertools.product([False, True], repeat=k)))
    return np.array([np.where(vectors == row, right, 1 - right).prod(axis=1) for row in np.eye(k, dtype=bool)])


def measure(given: Any) -> Iterator[Row]:
    """Solve and prove each prior, size and budget. No rival may be below the bound."""
    for k, epsilon in itertools.product((3, 5) if given.smoke else SIZES, (0.5, 2.0) if given.smoke else EPSILONS):
        for name, prior in priors(k).items():
            ratio, start = math.exp(epsilon), time.perf_counter()
            best = unbiased_vectors(prior, epsilon)
            proof, seconds = best.certificate, time.perf_counter() - start
            sizes = [best_decoder(selection(k, ratio, d), prior).value for d in range(1, k)]
            debiased = UnaryBits(k, epsilon).debiased_moments([0]).loss([1.0])
            losses = (sizes[0], min(sizes), best_decoder(bits(k, ratio), prior).value, debiased)
            right = not proof.findings and proof.gap <= 1e-12 and min(losses) >= proof.lower * (1 - 1e-9)
            row = {"prior": name, "k": k, "epsilon": epsilon, "upper": proof.upper, "gap": proof.gap, "right": right}
            multiples = [loss / proof.upper for loss in losses]
            row |= dict(zip(("response", "selection", "bits", "debiased"), multiples, strict=True))
            yield row | {"subsets": best.n, "seconds": seconds}


TABLES = {
    "Rivals as multiples of the best, the upper bound": (
        "k prior epsilon upper:.5g gap subsets response:.3f selection:.3f bits:.3f debiased:.3f seconds"
    ),
}
main = Benchmark("vectors", __doc__, measure, TABLES).run
