"""What the cluster mechanisms of [E22] really spend, beside what the paper prints.

Among peers: epsilon at a delta of one over the squared size of the cluster, by binomial sums, beside Lemma 9, Theorem 3
and the flips alone. With a curator: the epsilon that is proven beside that of Theorem 1, whose proof counts one moved
entry of a histogram where replacing a label moves two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import product
from typing import Any

from benchmarks.harness import circumstances, options, print_table, write_json
from optrand.baselines import ClusterRR, PeerToPeerRow, peer_to_peer_table
from optrand.baselines.peer_to_peer import theorem3_flip

__all__ = ["curated", "peers"]

SIZES, FLIPS, RATES = (50, 200, 1_000), (0.05, 0.2), (0.2, 1.0)
SMALL_SIZES = (20, 50)
PROVEN_SIZE = 20_000
"""Large enough for Theorem 3 to speak: its flip is at most one half from there on."""

CURATED = ((2, 0.25, 4, 0.8), (10, 0.05, 10, 0.5), (10, 0.1, 2, 0.9), (100, 0.01, 50, 0.5), (100, 0.001, 5, 0.95))
PEER_COLUMNS = ("users", "flip", "rate", "delta", "epsilon", "Lemma 9", "Theorem 3", "flips alone", "verdict")
CURATED_COLUMNS = ("labels", "threshold", "noise", "resampling", "true epsilon", "printed", "verdict")


def peers(sizes: Sequence[int], *, theorem: bool) -> list[dict[str, Any]]:
    """Exact epsilons beside the bounds; every bound must be at least the truth."""
    cases = list(product(sizes, FLIPS, RATES))
    if theorem:
        cases.append((PROVEN_SIZE, theorem3_flip(PROVEN_SIZE, 1.0), 1.0))
    return [_peer(row) for row in peer_to_peer_table(cases)]


def _peer(row: PeerToPeerRow) -> dict[str, Any]:
    bounds = {"Lemma 9": row.lemma9, "Theorem 3": row.theorem3, "the flips": row.flips}
    broken = [name for name, bound in bounds.items() if bound < row.epsilon]
    verdict = f"BELOW THE TRUTH: {', '.join(broken)}" if broken else "all bounds hold"
    return {**asdict(row), "holds": not broken, "verdict": verdict}


def curated() -> list[dict[str, Any]]:
    """The epsilon that holds beside the printed one, and the parameters of Corollary 2."""
    mechanisms = [
        ClusterRR(k, threshold=Fraction(str(threshold)), noise_scale=noise, resampling=Fraction(str(share)))
        for k, threshold, noise, share in CURATED
    ]
    mechanisms += [ClusterRR.corollary2(10, epsilon, heterogeneity=0.05) for epsilon in (0.5, 1.0, 2.0)]
    return [
        {
            "k": mechanism.k,
            "threshold": float(mechanism.threshold),
            "noise_scale": float(mechanism.noise_scale),
            "resampling": float(mechanism.resampling),
            "epsilon": mechanism.epsilon,
            "printed": mechanism.printed_epsilon,
            "verdict": f"{mechanism.epsilon / mechanism.printed_epsilon - 1:.0%} more than printed",
        }
        for mechanism in mechanisms
    ]


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "says nothing"


def main(arguments: Sequence[str]) -> int:
    """Compute and print both tables; return 1 if a bound of the paper is below the truth among peers."""
    given = options("clusters", __doc__).parse_args(arguments)
    found = peers(SMALL_SIZES if given.smoke else SIZES, theorem=not given.smoke)
    print_table(
        f"Labels exchanged among peers, [E22] Algorithm 2\n{circumstances()}",
        PEER_COLUMNS,
        [
            [
                f"{row['size']:,}",
                f"{row['flip']:.4g}",
                f"{row['rate']:g}",
                f"{row['delta']:.1e}",
                *(_number(row[name]) for name in ("epsilon", "lemma9", "theorem3", "flips")),
                row["verdict"],
            ]
            for row in found
        ],
    )
    by_curator = curated()
    print_table(
        "Labels resampled by a curator, [E22] Algorithm 1",
        CURATED_COLUMNS,
        [[str(row["k"]), *(f"{row[name]:.4g}" for name in list(row)[1:-1]), row["verdict"]] for row in by_curator],
    )
    name = "clusters-smoke" if given.smoke else "clusters"
    write_json(given.results, name, found)
    write_json(given.results, f"curated-{name}", by_curator)
    return 0 if all(row["holds"] for row in found) else 1
