"""Sources whose words are written down, so that a draw can be followed by hand, or counted."""

from fractions import Fraction

import numpy as np


class ExhaustedError(Exception):
    """The given words were not enough to decide."""


class GivenWords:
    """A source whose words are written down."""

    private = False

    def __init__(self, width, words):
        self.width = width
        self.left = list(words)

    def words(self, count):
        if count > len(self.left):
            raise ExhaustedError
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def numbered(low, high=None):
    """Ids of the integers below `low`, or from `low` up to, but not, `high`."""
    first, last = (0, low) if high is None else (low, high)
    ids = np.zeros((last - first, 2), dtype=np.uint64)
    ids[:, 0] = np.arange(first, last)
    return ids


class SpelledIds:
    """Records whose ids spell their words: over all ids every stream comes once."""

    def __init__(self, width, depth):
        self.width = width
        self.depth = depth

    def _digits(self, number):
        return [number >> self.width * place & (1 << self.width) - 1 for place in reversed(range(self.depth))]

    def first_words(self, ids):
        return np.array([self._digits(number)[0] for number in ids[:, 0].tolist()], dtype=np.uint64)

    def substream(self, record):
        return GivenWords(self.width, self._digits(int(record[0]))[1:])


def enumerated(draw_from, depth):
    """The probability of each draw decided by at most `depth` bits, and the probability that is left undecided.

    The bits that a draw has read decide it, whichever follow them: the next string differs within these.
    """
    decided: dict[object, Fraction] = {}
    undecided = Fraction(0)
    bits = [0] * depth
    while True:
        tape = GivenWords(1, bits)
        try:
            draw = draw_from(tape)
        except ExhaustedError:
            undecided += Fraction(1, 2 ** (depth - len(tape.left)))
        else:
            decided[draw] = decided.get(draw, Fraction(0)) + Fraction(1, 2 ** (depth - len(tape.left)))
        read = bits[: depth - len(tape.left)]
        while read and read[-1]:
            read.pop()
        if not read:
            return decided, undecided
        read[-1] = 1
        bits = read + [0] * (depth - len(read))
