"""Labels per second on one core: exact draws from integer tables, against other libraries' randomized response.

All draw from randomized response over 53 labels at epsilon 1, one label at a time and in batches, ours also from the
optimal unbiased mechanism of a rough prior. The other libraries live in environments of their own, with pinned
versions, made by ``--setup-peers``. One that cannot be installed or run keeps its row, with the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Benchmark, Peer, Row, add_setup, find_version, median_seconds
from benchmarks.priors import posed
from optrand import rr, solve

LABELS, EPSILON = 53, 1.0
PEERS = {
    "opendp": "operating system, exact coin of a float probability",
    "diffprivlib": "operating system, floats (ExponentialCategorical)",
    "multi-freq-ldpy": "Mersenne twister, floats (numba loop over GRR_Client)",
    "pure-ldp": "Mersenne twister, floats (DEClient)",
}


def draw_ours(who: str, sampler: Any, size: int, repeats: int) -> Row:
    """Draw labels, one by one and in a batch, and count the labels that come out unchanged."""
    # An order that no branch predictor learns. The peers' script has the same.
    values = ((np.arange(size, dtype=np.int64) * 2654435761) >> 16) % LABELS
    few = values[: max(1, size // 20)].tolist()
    drawn = sampler.sample(values)
    return {
        "who": who,
        "version": find_version("optrand"),
        "single": len(few) / median_seconds(lambda: [sampler.sample(value) for value in few], repeats),
        "batch": size / median_seconds(lambda: sampler.sample(values), repeats),
        "kept": float(np.mean(drawn == values)),
        "right": bool(np.isin(drawn, sampler.outputs).all()),
        "verdict": "operating system, exact integers",
    }


def measure(given: Any) -> Iterator[Row]:
    """Draw with ours, then with each peer."""
    for peer in PEERS if given.setup_peers else ():
        Peer(peer).set_up()
    size, repeats = (20_000, 1) if given.smoke else (1_000_000, 7)
    yield draw_ours("optrand", rr(range(LABELS), EPSILON).sampler, size, repeats)
    unbiased = solve(posed("Dirichlet", LABELS, EPSILON))
    yield draw_ours(f"optrand, unbiased {LABELS} x {unbiased.n}", unbiased.sampler, size, repeats)
    for peer, note in PEERS.items():
        found = Peer(peer).run("run.py", peer, *map(str, (LABELS, EPSILON, size // 50)), limit=600)
        yield {"who": peer, "verdict": found.get("error", note), **found}


TITLE = f"{LABELS} labels, epsilon {EPSILON:g}, which keeps {math.e / (math.e + LABELS - 1):.4f} of them"
TABLES = {TITLE: "who version single batch kept:.4f verdict"}
main = Benchmark("sampling", __doc__, measure, TABLES, arguments=add_setup).run
