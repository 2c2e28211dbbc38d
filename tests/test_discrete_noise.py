"""Integer noise over all bit strings: the probabilities of its formula."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from words import enumerated

from optrand.baselines import DiscreteStaircase
from optrand.sampling._discrete_noise import RandomBits, discrete_laplace, discrete_staircase


def laplace():
    """``(1 - q) / (1 + q) * q**abs(x)`` with ``q = exp(-1 / scale)``."""
    for scale in (Fraction(1, 2), Fraction(2, 3), Fraction(2)):
        q = math.exp(-1 / float(scale))
        expected = {x: (1 - q) / (1 + q) * q ** abs(x) for x in range(-3, 4)}
        yield lambda source, scale=scale: discrete_laplace(scale, 1, source=source)[0], 14, expected, Fraction(3, 5)


def staircases():
    for epsilon, length, rise in ((Fraction(2), 1, 1), (Fraction(1, 2), 2, 1), (Fraction(1), 3, 2)):
        noise = DiscreteStaircase([0, length], float(epsilon), rise=rise).noise
        expected = {x: noise.density(np.array([x]))[0] for x in range(-4, 5)}
        draw = partial(discrete_staircase, epsilon, 1, sensitivity=length, rise=rise)
        yield lambda source, draw=draw: draw(source=source)[0], 14, expected, Fraction(3, 5)


def coins():
    for x in (Fraction(0), Fraction(1, 4), Fraction(2, 3), Fraction(1)):
        parts = x.numerator, x.denominator
        draw = lambda source, parts=parts: RandomBits(source).bernoulli_exp(*parts)  # noqa: E731
        yield draw, 16, {True: math.exp(-x)}, Fraction(1, 8)
    for x in (Fraction(0), Fraction(1, 3), Fraction(3, 2), Fraction(2)):
        yield lambda source, x=x: RandomBits(source).survives(x), 16, {True: math.exp(-x)}, Fraction(1, 8)


NOISE = {"discrete Laplace noise": laplace, "discrete staircases": staircases, "coins": coins}
"""For each the draws, a number of bits, the probabilities, and the share that these bits may leave undecided."""


@pytest.mark.parametrize("noise", NOISE)
def test_probabilities_over_all_bit_strings(noise):
    """The decided share never exceeds a probability, and the undecided strings make up the rest."""
    for draw, depth, expected, most in NOISE[noise]():
        decided, undecided = enumerated(draw, depth)
        assert sum(decided.values()) + undecided == 1
        assert undecided <= most
        assert all(decided.get(x, 0) <= chance <= decided.get(x, 0) + undecided for x, chance in expected.items())
        assert all(decided.get(x) == decided.get(-x) for x in expected if -x in expected)
