"""Run a benchmark by its name: ``python -m benchmarks NAME [options]``; without a name, list them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple


class Benchmark(NamedTuple):
    """A module with ``main(arguments) -> exit code``, and what it measures, in a line."""

    module: str
    summary: str


BENCHMARKS = {
    "bins": Benchmark("benchmarks.bins", "randomized response on bins against the cubic dynamic program and an LP"),
    "closed_form": Benchmark("benchmarks.closed_form", "a gap and a bit: where it is optimal, and a million labels"),
    "clusters": Benchmark("benchmarks.clusters", "what cluster mechanisms really spend, beside what is printed"),
    "edges": Benchmark("benchmarks.edges", "far labels, thin tails, tight intervals, large epsilons: what is proven"),
    "exact": Benchmark("benchmarks.exact_optima", "optima in rationals: gap 0 on grids, below 1e-30 on the line"),
    "exactness": Benchmark("benchmarks.exactness", "1,000 random flow mechanisms: private, unbiased, proven, by class"),
    "faults": Benchmark("benchmarks.faults", "releases killed, raced, starved and fed damaged files: what is wrong"),
    "figures": Benchmark("benchmarks.figures", "every picture, from certified mechanisms"),
    "frontier": Benchmark("benchmarks.frontier", "bias against variance, from randomized response on bins to no bias"),
    "histograms": Benchmark("benchmarks.histograms", "default releases: cost of a prior without zeros, and histograms"),
    "labels": Benchmark("benchmarks.labels", "time and peak memory against the number of labels, 11 to 100,001"),
    "learning": Benchmark("benchmarks.learning.run", "models trained on private labels, experiment by experiment"),
    "libqif": Benchmark("benchmarks.libqif", "the one public library that computes optimal randomizers, certified"),
    "lp1": Benchmark("benchmarks.lp1", "RRWithPrior against the linear programs LP1 and LP2: certified gaps and times"),
    "many": Benchmark("benchmarks.many", "one problem and a thousand priors: compiled, not compiled, the older solver"),
    "mesh": Benchmark("benchmarks.mesh", "the unbiased program on finer and finer grids: time, value, verified gap"),
    "mutations": Benchmark("benchmarks.mutations", "the package broken on purpose: which claims and tests notice"),
    "randomizers": Benchmark("benchmarks.randomizers", "every randomizer at equal epsilon, beside the proven optimum"),
    "readme": Benchmark(
        "benchmarks.readme", "the four pictures of the README and the tour: a shape, a proof, phases, solve times"
    ),
    "release": Benchmark("benchmarks.release", "rows a second and peak memory of a release, up to 100 million rows"),
    "sampling": Benchmark("benchmarks.sampling", "labels a second on one core, against other libraries"),
    "speed": Benchmark("benchmarks.speed", "solving and proving against written-down limits, on named priors"),
    "structure": Benchmark("benchmarks.structure", "what the best unbiased randomizers look like, on proven optima"),
    "thin_tails": Benchmark("benchmarks.thin_tails", "priors that fade away, at every price of bias: what is proven"),
    "vectors": Benchmark("benchmarks.vectors", "unbiased one-hot vectors: the proven best against response and bits"),
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names with the others; 2 for a name that is none."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m benchmarks NAME [--smoke] [options]\n")
        for name, benchmark in BENCHMARKS.items():
            print(f"  {name:12}{benchmark.summary}")
        return 0
    name, *rest = arguments
    if name not in BENCHMARKS:
        print(f"no benchmark is called {name!r}: choose one of {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    code: int = import_module(BENCHMARKS[name].module).main(rest)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
