"""Solve with libqif, inside its own environment, and print JSON. It imports nothing but that library.

Usage: ``python libqif.py PROBLEM``, a JSON object: ``prior``, ``epsilon``, ``loss`` (``zero_one`` or ``squared``) and
``privacy`` (``pure``, or ``metric``: epsilon times the distance of the labels ``0 ... k - 1``).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from importlib import import_module
from importlib.metadata import version
from typing import Any

PATIENCE = 5.0
"""Seconds after which a solve is not repeated for the sake of a median."""

LOSSES = {
    "zero_one": lambda output, label: float(output != label),
    "squared": lambda output, label: (output - label) ** 2 / 2,
}

PRIVACY: dict[str, Any] = {
    "pure": lambda epsilon: (lambda y, z: epsilon * (y != z), {}),
    # Pairs that are chainable get no rows: those of neighbours imply them.
    "metric": lambda epsilon: (lambda y, z: epsilon * abs(y - z), {"d_priv_ch": lambda y, z: abs(y - z) > 1}),
}


def main(problem: str) -> int:
    """Solve up to five times, and print the median time and the table, rows of labels."""
    given = json.loads(problem)
    prior, loss = given["prior"], LOSSES[given["loss"]]
    distance, options = PRIVACY[given["privacy"]](given["epsilon"])
    numpy: Any = import_module("numpy")
    solve: Any = import_module("qif.mechanism").d_privacy.min_loss_given_d
    times: list[float] = []
    table: Any = None
    while len(times) < 5 and sum(times) < PATIENCE:
        start = time.perf_counter()
        table = solve(numpy.array(prior), len(prior), distance, loss, **options)
        times.append(time.perf_counter() - start)
    answer = {"version": version("qif"), "seconds": statistics.median(times), "matrix": numpy.asarray(table).tolist()}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
