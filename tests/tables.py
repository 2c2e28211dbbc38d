"""Tables that tests of mechanisms and their files share, and a second way to seal a document."""

import hashlib
import json
import random
from fractions import Fraction

import numpy as np

from optrand.mechanism import Mechanism


def response(problem, outputs, *, ratio, dual=None):
    """Randomized response with one output per label: unequal columns, every ratio exactly `ratio`."""
    weights = np.full((problem.k, problem.k), ratio.denominator, dtype=object)
    np.fill_diagonal(weights, ratio.numerator)
    return Mechanism(problem, dual, outputs, weights, ratio)


def debiased(labels, ratio):
    """The outputs that make randomized response unbiased: ``y + (k y - sum of labels) / (ratio - 1)``."""
    exact = [Fraction(y) + (len(labels) * Fraction(y) - sum(map(Fraction, labels))) / (ratio - 1) for y in labels]
    return [float(v) for v in exact]


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


def resealed(document: dict) -> str:
    """The document as text with a fresh digest, by json and hashlib alone."""
    content = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**content, "digest": digest})
