"""Unbiased one-hot vectors of a class: the proven best beside randomized response, subset selection and bits.

Each rival has its best unbiased decoder for the prior, and subset selection its best size; "debiased bits" are those of
[Z25] with a decoder that takes every bit by itself. The losses are half the expected squared distance from the one-hot
vector, as multiples of the best.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.harness import circumstances, duration, options, print_table, use_one_core, write_json
from optrand import unbiased_vectors
from optrand.base.validation import Floats
from optrand.baselines import UnaryBits
from optrand.vectors import best_decoder

__all__ = ["bits", "measured", "posed", "response", "right", "selection"]

PRIORS = ("uniform", "geometric", "spike", "Dirichlet")
SIZES = (3, 6, 9, 12)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
SMALL = (3, 5)
CLOSED = 1e-12

COLUMNS = ("prior", "K", "epsilon", "best", "gap", "subsets", "response", "selection", "bits", "debiased bits", "time")


def posed(name: str, k: int) -> Floats:
    """Prior of a name: equal, halving, nine tenths on one class, or a random one.

    Examples
    --------
    >>> posed("spike", 3).round(3).tolist()
    [0.9, 0.05, 0.05]
    """
    weights = {
        "uniform": np.ones(k),
        "geometric": 0.5 ** np.arange(k),
        "spike": np.r_[0.9, np.full(k - 1, 0.1 / (k - 1))],
        "Dirichlet": np.random.default_rng(k).dirichlet(np.ones(k)),
    }[name]
    return np.asarray(weights / weights.sum())


def response(k: int, ratio: float) -> Floats:
    """Table of randomized response."""
    return np.asarray((1 + (ratio - 1) * np.eye(k)) / (ratio + k - 1))


def selection(k: int, ratio: float, d: int) -> Floats:
    """Table of a random subset of size `d`."""
    members = np.array(list(itertools.combinations(range(k), d)))
    columns = np.ones((k, len(members)))
    np.put_along_axis(columns.T, members, ratio, axis=1)
    return np.asarray(columns / columns.sum(axis=1, keepdims=True))


def bits(k: int, ratio: float) -> Floats:
    """Table of the ``2**k`` vectors of bits of [Z25]."""
    right = math.sqrt(ratio) / (1 + math.sqrt(ratio))
    vectors = np.array(list(product([False, True], repeat=k)))
    return np.array([np.where(vectors == row, right, 1 - right).prod(axis=1) for row in np.eye(k, dtype=bool)])


def measured(name: str, k: int, epsilon: float) -> dict[str, Any]:
    """The best with its certificate, and what the others lose."""
    prior, ratio, start = posed(name, k), math.exp(epsilon), time.perf_counter()
    best = unbiased_vectors(prior, epsilon)
    proof, seconds = best.certificate, time.perf_counter() - start
    rivals = {
        "response": best_decoder(response(k, ratio), prior).value,
        "selection": min(best_decoder(selection(k, ratio, d), prior).value for d in range(1, k)),
        "bits": best_decoder(bits(k, ratio), prior).value,
        "debiased": UnaryBits(k, epsilon).debiased_moments([0]).loss([1.0]),
    }
    record = {"prior": name, "k": k, "epsilon": epsilon, "lower": proof.lower, "upper": proof.upper, "gap": proof.gap}
    record |= {"findings": "; ".join(proof.findings), "subsets": best.n, "seconds": seconds}
    return record | rivals


def right(record: dict[str, Any]) -> bool:
    """Whether the best is proven, and no rival is below the bound."""
    rivals = min(record[name] for name in ("response", "selection", "bits", "debiased"))
    return not record["findings"] and record["gap"] <= CLOSED and rivals >= record["lower"] * (1 - 1e-9)


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    return [
        record["prior"],
        str(record["k"]),
        f"{record['epsilon']:g}",
        f"{record['upper']:.5g}",
        f"{record['gap']:.0e}",
        str(record["subsets"]),
        *(f"{record[name] / record['upper']:.3f}" for name in ("response", "selection", "bits", "debiased")),
        duration(record["seconds"]),
    ]


def main(arguments: Sequence[str]) -> int:
    """Measure every prior, size and budget, print the table, and return 1 if something is not proven."""
    given = options("vectors", __doc__).parse_args(arguments)
    use_one_core()
    sizes, epsilons = (SMALL, (0.5, 2.0)) if given.smoke else (SIZES, EPSILONS)
    records = [measured(*one) for one in product(PRIORS, sizes, epsilons)]
    title = "Half the expected squared distance; rivals, with their best decoders, as multiples of the best"
    print_table(f"{title}\n{circumstances()}", COLUMNS, [row(record) for record in records])
    write_json(given.results, "vectors-smoke" if given.smoke else "vectors", records)
    return 0 if all(map(right, records)) else 1
