"""A hundred and twenty problems whose labels cluster at random. Run as a program, it prints how many are proven.

A program of its own, since the kernels of the linear algebra are chosen when a process starts.
"""

import math
import sys
from collections.abc import Iterator

import numpy as np

from optrand import certify, regression, solve
from optrand.errors import NotCertified
from optrand.model._problem import Problem

CLOSE = 1e-9


def clustered() -> Iterator[Problem]:
    """Up to 29 labels in three places, priors with entries of 1e-12, and every price of bias."""
    rng = np.random.default_rng(12)
    for _ in range(120):
        k = rng.integers(2, 30)
        labels = np.sort(rng.choice([1.0, 1e-3, 50.0], k) * rng.random(k) + rng.integers(0, 3, k) * 40)
        prior = rng.dirichlet(np.full(k, 0.4)) + 1e-12
        epsilon, penalty = math.exp(rng.uniform(-4.5, 1.5)), float(rng.choice([0.1, 3.0, 100.0, math.inf]))
        if np.diff(labels).min() >= 1e-8:
            yield regression(labels, prior / prior.sum(), epsilon, bias_penalty=penalty)


def main() -> None:
    """Solve them all. An error that is not ours ends the program."""
    proven = count = 0
    for count, problem in enumerate(clustered(), 1):
        try:
            proven += certify(solve(problem)).require(gap=CLOSE).gap <= CLOSE
        except NotCertified as error:
            sys.stderr.write(f"number {count}: {error}\n")
    sys.stdout.write(f"{proven} of {count} proven\n")


if __name__ == "__main__":
    main()
