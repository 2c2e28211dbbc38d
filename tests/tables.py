"""Tables that tests of mechanisms and their files share, and a second way to seal a document."""

import hashlib
import itertools
import json
import random
from fractions import Fraction

import numpy as np

from optrand.mechanism._mechanism import Mechanism
from optrand.model._table import IntegerArcs, Table


def mechanism_of(problem, dual, outputs, weights, ratio=None) -> Mechanism:
    """A mechanism of rows of weights, or of arcs with their ratio."""
    of = Table.of_arcs if isinstance(weights, IntegerArcs) else Table.of_rows
    more = (ratio,) if isinstance(weights, IntegerArcs) else ()
    return Mechanism(problem, of(problem.labels, outputs, weights, *more), dual)


def response(problem, outputs, *, ratio, dual=None):
    """Randomized response with one output per label: unequal columns, every ratio exactly `ratio`."""
    weights = np.full((problem.k, problem.k), ratio.denominator, dtype=object)
    np.fill_diagonal(weights, ratio.numerator)
    return mechanism_of(problem, dual, outputs, weights, ratio)


def debiased(labels, ratio):
    """The outputs that make randomized response unbiased: ``y + (k y - sum of labels) / (ratio - 1)``."""
    total = sum(map(Fraction, labels))
    return [float(Fraction(y) + (len(labels) * Fraction(y) - total) / (ratio - 1)) for y in labels]


def circulant(rng: random.Random, k: int, blocks: int, ratio: Fraction, scale: int) -> np.ndarray:
    """A random table that is private at `ratio`: each block's rows are rotations of one vector, so totals are equal."""
    parts = []
    for _ in range(blocks):
        unit = rng.randint(1, scale)
        vector = [rng.randint(unit * ratio.denominator, unit * ratio.numerator) for _ in range(k)]
        if rng.random() < 0.5:
            vector[0] = unit * ratio.denominator
            vector[-1] = unit * ratio.numerator
        parts.append([vector[y:] + vector[:y] for y in range(k)])
    rows = [[weight for part in parts for weight in part[y]] for y in range(k)]
    return np.array(rows, dtype=object).reshape(k, k * blocks)


def layered_arcs(rng: random.Random, k: int, layers: int, n: int, scale: int) -> IntegerArcs:
    """Random arcs that cover all labels equally: each layer cuts the labels into intervals and gives all one mass.

    Intervals are nested and repeated as chance has it, and so are the outputs, of which there are at most `n`.
    """
    arcs = []
    for _ in range(layers):
        cuts = sorted(rng.sample(range(1, k), rng.randint(0, k - 1)))
        mass = rng.randint(1, scale)
        arcs += [(rng.randrange(n), a, b - 1, mass) for a, b in itertools.pairwise([0, *cuts, k])]
    outputs, first, last, masses = zip(*sorted(arcs), strict=True)
    at = np.unique(outputs, return_inverse=True)[1]
    return IntegerArcs(k, np.array(first), np.array(last), at, np.array(masses, dtype=object))


def rows_of(arcs: IntegerArcs, ratio: Fraction) -> list[list[int]]:
    """The table of arcs by its definition, entry by entry."""
    parts = list(zip(arcs.first, arcs.last, arcs.at, arcs.masses, strict=True))
    return [
        [
            sum(mass * (ratio.numerator if a <= y <= b else ratio.denominator) for a, b, at, mass in parts if at == i)
            for i in range(arcs.n)
        ]
        for y in range(arcs.k)
    ]


def resealed(document: dict) -> str:
    """The document as text with a fresh digest, by json and hashlib alone."""
    content = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**content, "digest": digest})
