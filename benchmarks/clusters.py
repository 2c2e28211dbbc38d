"""Epsilon that the cluster mechanisms of [E22] really spend, beside what the paper prints.

Among peers: epsilon at a delta of one over the squared size of the cluster, by binomial sums, beside Lemma 9, Theorem 3
and the flips alone. With a curator: the epsilon that is proven beside that of Theorem 1, whose proof counts one moved
entry of a histogram where replacing a label moves two.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from benchmarks.harness import Benchmark, Row
from optrand.baselines import ClusterRR, PeerToPeer, lemma9, theorem3
from optrand.baselines.peer_to_peer import theorem3_flip

PROVEN_SIZE = 20_000
"""Large enough for Theorem 3 to speak: its flip is at most one half from there on."""

CURATED = ((2, 0.25, 4, 0.8), (10, 0.05, 10, 0.5), (10, 0.1, 2, 0.9), (100, 0.01, 50, 0.5), (100, 0.001, 5, 0.95))
TABLES = {
    "Labels exchanged among peers, [E22] Algorithm 2": (
        "size flip:.4g rate:g delta:.1e epsilon:.4f lemma9:.4f theorem3:.4f flips:.4f verdict"
    ),
    "Labels resampled by a curator, [E22] Algorithm 1": (
        "threshold:.4g k noise_scale:.4g resampling:.4g epsilon:.4g printed:.4g verdict"
    ),
}


def measure(given: Any) -> Iterator[Row]:
    """Compute exact epsilons beside the printed bounds; among peers every bound must be at least the truth."""
    cases = list(product((20, 50) if given.smoke else (50, 200, 1_000), (0.05, 0.2), (0.2, 1.0)))
    if not given.smoke:
        cases.append((PROVEN_SIZE, theorem3_flip(PROVEN_SIZE, 1.0), 1.0))
    for size, flip, rate in cases:
        mechanism, delta = PeerToPeer(flip, rate), 1 / size**2
        epsilon = mechanism.at_delta(delta, size).epsilon
        bounds = {
            "lemma9": lemma9(mechanism, delta, size),
            "theorem3": theorem3(mechanism, size),
            "flips": mechanism.epsilon,
        }
        broken = ", ".join(name for name, bound in bounds.items() if bound < epsilon)
        row = {"size": size, "flip": flip, "rate": rate, "delta": delta, "epsilon": epsilon, **bounds}
        yield {**row, "right": not broken, "verdict": f"BELOW THE TRUTH: {broken}" if broken else "all hold"}
    for curator in [
        *(ClusterRR(k, threshold=_exact(t), noise_scale=noise, resampling=_exact(s)) for k, t, noise, s in CURATED),
        *(ClusterRR.corollary2(10, epsilon, heterogeneity=0.05) for epsilon in (0.5, 1.0, 2.0)),
    ]:
        yield {
            "k": curator.k,
            **{name: float(getattr(curator, name)) for name in ("threshold", "noise_scale", "resampling", "epsilon")},
            "printed": curator.printed_epsilon,
            "verdict": f"{curator.epsilon / curator.printed_epsilon - 1:.0%} more than printed",
        }


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


main = Benchmark("clusters", __doc__, measure, TABLES).run
