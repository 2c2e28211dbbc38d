"""Time one other library, inside its own environment, and print JSON. It imports nothing but that library.

Usage: ``python run.py PEER LABELS EPSILON SIZE``, with SIZE labels in a batch. A library without a
call for many labels is timed in a loop.
"""

from __future__ import annotations

import json
import math
import sys
import timeit
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """Functions that draw for one label and for many, and that convert labels to the type of the library."""

    one: Callable[[Any], Any]
    many: Callable[[Any], Any]
    labels: Callable[[Sequence[int]], Any]


def loop(one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a loop for a library that draws one label per call: a list comprehension, the fastest that Python has."""
    return lambda values: [one(value) for value in values]


def opendp(k: int, epsilon: float) -> Peer:
    """Draw by `make_randomized_response` of OpenDP."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    measurement = dp.m.make_randomized_response(list(range(k)), math.exp(epsilon) / (math.exp(epsilon) + k - 1))
    return Peer(measurement, loop(measurement), list)


def diffprivlib(k: int, epsilon: float) -> Peer:
    """Draw by ExponentialCategorical of diffprivlib, which with these utilities is randomized response on k labels."""
    mechanisms: Any = import_module("diffprivlib.mechanisms")
    utilities = [[str(a), str(b), 1.0] for a in range(k) for b in range(a)]
    randomise = mechanisms.ExponentialCategorical(epsilon=epsilon, utility_list=utilities).randomise
    return Peer(randomise, loop(randomise), lambda values: [str(value) for value in values])


def multi_freq_ldpy(k: int, epsilon: float) -> Peer:
    """Draw by `GRR_Client` of multi-freq-ldpy: numba compiles it, so that a loop over it can be compiled too."""
    client: Any = import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
    numpy: Any = import_module("numpy")
    empty_like = numpy.empty_like

    def compiled(values: Any) -> Any:
        drawn = empty_like(values)
        for i in range(values.size):
            drawn[i] = client(values[i], k, epsilon)
        return drawn

    return Peer(lambda value: client(value, k, epsilon), import_module("numba").njit(compiled), numpy.array)


def pure_ldp(k: int, epsilon: float) -> Peer:
    """Draw by direct encoding of pure-ldp."""
    encoding: Any = import_module("pure_ldp.frequency_oracles.direct_encoding")
    privatise = encoding.DEClient(epsilon, k, lambda value: value).privatise
    return Peer(privatise, loop(privatise), list)


PEERS = {"opendp": opendp, "diffprivlib": diffprivlib, "multi-freq-ldpy": multi_freq_ldpy, "pure-ldp": pure_ldp}


def rate(run: Callable[[Any], Any], values: Any) -> float:
    """Return how many values per second are drawn, after a first run that may compile."""
    run(values)
    runs, seconds = timeit.Timer(lambda: run(values)).autorange()
    return len(values) * runs / seconds


def main(arguments: Sequence[str]) -> int:
    """Time the peer, and print the results."""
    name, k, epsilon, size = arguments
    peer = PEERS[name](int(k), float(epsilon))
    labels = [((i * 2654435761) >> 16) % int(k) for i in range(int(size))]
    batch = peer.labels(labels)
    drawn = peer.many(batch)
    found = {
        "version": version(name),
        "single": rate(loop(peer.one), batch.tolist() if name == "multi-freq-ldpy" else batch),
        "batch": rate(peer.many, batch),
        "kept": sum(a == b for a, b in zip(batch, drawn, strict=True)) / len(batch),
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
