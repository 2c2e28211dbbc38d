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
        self.bits = np.array(bits, dtype=np.uint64)
        self.read = 0

    def words(self, count):
        begin, end = self.read, self.read + count
        if end > self.bits.size:
            raise OutOfBits
        self.read = end
        return self.bits[begin:end]


def enumerated(draw_from, depth):
    """The probability of each draw decided by at most `depth` bits, and the probability that is left undecided.

    The bits that a draw has read decide it, whatever follows them: the next string differs within these.
    """
    decided: dict[object, Fraction] = {}
    undecided = Fraction(0)
    bits = [0] * depth
    while True:
        tape = Tape(bits)
        try:
            draw = draw_from(tape)
        except OutOfBits:
            undecided += Fraction(1, 2**tape.read)
        else:
            decided[draw] = decided.get(draw, Fraction(0)) + Fraction(1, 2**tape.read)
        read = bits[: tape.read]
        while read and read[-1]:
            read.pop()
        if not read:
            return decided, undecided
        read[-1] = 1
        bits = read + [0] * (depth - len(read))
