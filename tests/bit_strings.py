"""Every bit string that a draw may read: the exact distribution of a sampler, by enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


class OutOfBits(Exception):
    pass


class Tape:
    """A source of single bits that are written down beforehand."""

    width = 1
    private = False

    def __init__(self, bits):
        self.bits = list(bits)
        self.read = 0

    def words(self, count):
        if self.read + count > len(self.bits):
            raise OutOfBits
        taken = self.bits[self.read : self.read + count]
        self.read += count
        return np.array(taken, dtype=np.uint64)


def enumerated(draw_from, depth):
    """The probability of each draw decided by at most `depth` bits, and the probability that is left undecided."""
    decided: dict[object, Fraction] = {}
    undecided = Fraction(0)
    stack = [()]
    while stack:
        bits = stack.pop()
        tape = Tape(bits)
        try:
            draw = draw_from(tape)
        except OutOfBits:
            if len(bits) == depth:
                undecided += Fraction(1, 2**depth)
            else:
                stack += [(*bits, 0), (*bits, 1)]
        else:
            assert tape.read == len(bits)
            decided[draw] = decided.get(draw, Fraction(0)) + Fraction(1, 2 ** len(bits))
    return decided, undecided
