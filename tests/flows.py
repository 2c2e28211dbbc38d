"""Random flows on a line: interval columns that cover every label equally, with outputs that are only a first guess."""

import math

import numpy as np

from optrand import Problem
from optrand.model._randomizer import Arcs

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


def forward(rng: np.random.Generator, k: int, crowd: float = 3.0) -> Columns:
    """Intervals that move forward, about `crowd` of them over each label, as in an optimal unbiased randomizer.

    At every node the oldest interval or two end, and as many or one more take over their mass.
    """
    done: list[tuple[int, int, float]] = []
    open_: list[tuple[int, float]] = []

    def begin(node: int, mass: float, count: int) -> None:
        shares = 0.99 * rng.dirichlet(np.ones(count)) + 0.01 / count
        open_.extend((node, mass * share) for share in shares)

    begin(0, 1.0, 1 + int(rng.integers(2 * crowd)))
    for node in range(1, k):
        freed = 0.0
        for _ in range(min(len(open_), 1 + int(rng.random() < 0.4))):
            first, mass = open_.pop(0)
            done.append((first, node - 1, mass))
            freed += mass
        begin(node, freed, 1 + int(rng.random() < (0.5 if len(open_) < crowd else 0.3)))
    done += [(first, k - 1, mass) for first, mass in open_]
    first, last, mass = np.array(done).T
    return first.astype(int), last.astype(int), mass


def mixed(rng: np.random.Generator, k: int, partitions: int) -> Columns:
    """Intervals of random partitions of the labels: some inside others, some twice."""
    first, last, mass = [], [], []
    for weight in rng.dirichlet(np.ones(partitions)):
        inner = np.flatnonzero(rng.random(k - 1) < rng.random()) + 1
        first.append(np.concatenate(([0], inner)))
        last.append(np.concatenate((inner - 1, [k - 1])))
        mass.append(np.full(inner.size + 1, weight))
    return np.concatenate(first), np.concatenate(last), np.concatenate(mass)


def arcs_of(problem: Problem, columns: Columns) -> Arcs:
    """The columns, normalised, each with the output of least squared error, and so biased."""
    first, last, mass = columns
    more = math.expm1(problem.epsilon)
    prior, labels = problem.prior, problem.labels
    sums = np.concatenate(([0.0], np.cumsum(prior)))
    moments = np.concatenate(([0.0], np.cumsum(prior * labels)))
    weight = 1 + more * (sums[last + 1] - sums[first])
    outputs = (moments[-1] + more * (moments[last + 1] - moments[first])) / weight
    return Arcs(problem.k, first, last, outputs, mass / (mass.sum() + more * mass[first == 0].sum()))
