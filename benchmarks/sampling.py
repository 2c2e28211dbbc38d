"""Labels a second on one core: exact draws from integer tables, against other libraries' randomized response.

All draw from randomized response over 53 labels at epsilon 1, one label at a time and in batches. The other libraries
live in environments of their own, with pinned versions, made by ``--setup-peers``; one that cannot be installed or run
keeps its row, with the error.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import ask, set_up
from benchmarks.harness import machine, median_seconds, print_table, rate, use_one_core
from optrand.base.arithmetic import privacy_ratio
from optrand.sampling import Sampler

LABELS = 53
EPSILON = 1.0
BATCH = 1_000_000
PEERS = {
    "opendp": "operating system; exact coin of a float probability",
    "diffprivlib": "operating system; floats (ExponentialCategorical)",
    "multi-freq-ldpy": "Mersenne twister; floats (numba loop over GRR_Client)",
    "pure-ldp": "Mersenne twister; floats (DEClient)",
}
OURS = "operating system; exact integers"
COLUMNS = ("who", "version", "one by one /s", "in batches /s", "batch", "kept", "randomness; arithmetic")
PEER_TIMEOUT = 600


def randomized_response(k: int, epsilon: float) -> Sampler:
    """The table with two kinds of entries, ``R`` on the diagonal and 1 elsewhere, in integers."""
    ratio = privacy_ratio(epsilon)
    weights = np.full((k, k), ratio.denominator, dtype=object)
    np.fill_diagonal(weights, ratio.numerator)
    labels = np.arange(float(k))
    return Sampler(labels, labels, weights, ratio.numerator + (k - 1) * ratio.denominator)


def unbiased_table(k: int, epsilon: float) -> Sampler:
    """An unbiased table of the shape of optimal ones: ``2k - 2`` outputs, raised for one label or two neighbours.

    Three partitions of the labels into such intervals, each with an integer mass of some 60 bits, give every row the
    same total; the outputs solve for the means.
    """
    pairs = [[(a, a + 1) for a in range(start, k - 1, 2)] for start in (0, 1)]
    pairs[0].remove((k - 3, k - 2) if k % 2 else (k - 2, k - 1))
    partitions = [[(a, a) for a in range(k)]]
    for chosen in pairs:
        covered = {label for pair in chosen for label in pair}
        partitions.append(chosen + [(a, a) for a in range(k) if a not in covered])
    masses: dict[tuple[int, int], int] = {}
    for partition, mass in zip(partitions, (2**60 + 1, 2**58 + 3, 2**58 + 5), strict=True):
        for interval in partition:
            masses[interval] = masses.get(interval, 0) + mass
    ratio = privacy_ratio(epsilon)
    weights = np.array(
        [
            [c * (ratio.numerator if a <= y <= b else ratio.denominator) for (a, b), c in masses.items()]
            for y in range(k)
        ],
        dtype=object,
    )
    total = int(weights[0].sum())
    labels = np.arange(float(k))
    outputs = np.linalg.lstsq((weights / total).astype(np.float64), labels)[0]
    order = np.argsort(outputs)
    return Sampler(labels, outputs[order], weights[:, order], total)


def given_labels(size: int, k: int) -> NDArray[np.int64]:
    """Labels in an order that no branch predictor learns; the peers' script has the same."""
    return ((np.arange(size, dtype=np.int64) * 2654435761) >> 16) % k


def measure(sampler: Sampler, size: int, repeats: int) -> dict[str, Any]:
    """Labels a second, one by one and in a batch, and the share of labels that come out unchanged, if any can."""
    values = given_labels(size, sampler.labels.size)
    few = values[: max(1, size // 20)].tolist()

    def one_by_one() -> None:
        for value in few:
            sampler.sample(value)

    return {
        "version": version("optrand"),
        "single": len(few) / median_seconds(one_by_one, repeats),
        "batch": size / median_seconds(lambda: sampler.sample(values), repeats),
        "batch_size": size,
        "kept": float(np.mean(sampler.sample(values) == values)) if np.isin(values, sampler.outputs).all() else None,
    }


def row(who: str, found: dict[str, Any], note: str) -> list[str]:
    """A row of the table."""
    if "error" in found:
        return [who, "-", "-", "-", "-", "-", found["error"]]
    kept = "-" if found["kept"] is None else f"{found['kept']:.4f}"
    return [who, found["version"], rate(found["single"]), rate(found["batch"]), f"{found['batch_size']:,}", kept, note]


def preparation(sampler: Sampler, repeats: int) -> float:
    """Milliseconds from the sampler's table of integers to a first draw."""
    table = sampler.labels, sampler.outputs, sampler.weights, sampler.total
    return 1e3 * median_seconds(lambda: Sampler(*table).sample(0), repeats)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sampling", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a small version, of a few seconds")
    parser.add_argument("--setup-peers", action="store_true", help="install the other libraries first")
    options = parser.parse_args(arguments)
    if options.setup_peers:
        for peer in PEERS:
            set_up(peer)
    use_one_core()
    size, repeats, seconds = (20_000, 1, 0.05) if options.smoke else (BATCH, 7, 1.0)
    response, unbiased = randomized_response(LABELS, EPSILON), unbiased_table(LABELS, EPSILON)
    rows = [
        row("optrand", measure(response, size, repeats), OURS),
        row(f"optrand, unbiased {LABELS} x {unbiased.outputs.size}", measure(unbiased, size, repeats), OURS),
    ]
    asked = (str(LABELS), str(EPSILON), str(size), str(seconds))
    for peer, note in PEERS.items():
        found = ask(peer, "run.py", (peer, *asked), benchmark="sampling", limit=PEER_TIMEOUT)
        rows.append(row(peer, found, note))
    share = math.exp(EPSILON) / (math.exp(EPSILON) + LABELS - 1)
    title = f"Labels a second on one core: {LABELS} labels, epsilon {EPSILON:g}, which keeps {share:.4f} of them"
    print_table(f"{title}\n{machine()}", COLUMNS, rows)
    for name, sampler in (("randomized response", response), ("unbiased", unbiased)):
        print(f"{name}: {preparation(sampler, repeats):.1f} ms from the table of integers to the first draw")
    return 0
