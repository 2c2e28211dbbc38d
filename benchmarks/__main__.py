"""Run a benchmark by its name: ``python -m benchmarks NAME [options]``, or all of them with ``--all [--smoke]``."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module

BENCHMARKS = {
    "exactness": "random flow mechanisms and problems at the edges: private, unbiased, proven, by class",
    "histograms": "default releases: cost of a prior without zeros, and histograms",
    "labels": "time and peak memory against the number of labels, 11 to 100,001, and the cubic program of bins",
    "learning": "models trained on private labels, experiment by experiment",
    "libqif": "the one public library that computes optimal randomizers, judged as it is",
    "lp1": "RRWithPrior against the linear programs LP1 and LP2: certified gaps and times",
    "many": "one problem and a thousand priors",
    "mesh": "the unbiased program on finer and finer grids: time, value, verified gap",
    "randomizers": "every randomizer at equal epsilon, beside the proven optimum",
    "readme": "the four pictures of the README and the tour: a shape, a proof, phases, solve times",
    "release": "rows per second and peak memory of a release, up to 100 million rows",
    "sampling": "labels per second on one core, against other libraries",
    "vectors": "unbiased one-hot vectors: the proven best against response and bits",
}
"""Modules of this package with ``main(arguments) -> exit code``, and the measured quantity in a line."""


def run_all(arguments: Sequence[str]) -> int:
    """Run every benchmark in a process of its own, then print a summary. Return 1 if one failed."""
    codes, lines = [], []
    for name in BENCHMARKS:
        print(f"==== {name}", flush=True)
        start = time.perf_counter()
        codes.append(subprocess.run([sys.executable, "-m", "benchmarks", name, *arguments], check=False).returncode)
        verdict = f"FAILED with {codes[-1]}" if codes[-1] else "passed"
        lines.append(f"{name:12} {time.perf_counter() - start:7.1f} s  {verdict}")
    print("\n".join(["==== summary", *lines, f"{codes.count(0)} of {len(codes)} passed"]))
    return int(any(codes))


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names with the others. Return 2 for an unknown name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m benchmarks NAME [--smoke] [options]\n       python -m benchmarks --all [--smoke]\n")
        for name, summary in BENCHMARKS.items():
            print(f"  {name:12}{summary}")
        return 0
    name, *rest = arguments
    if name == "--all":
        return run_all(rest)
    if name not in BENCHMARKS:
        print(f"no benchmark is called {name!r}: choose one of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    module = "benchmarks.learning.run" if name == "learning" else f"benchmarks.{name}"
    code: int = import_module(module).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
