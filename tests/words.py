"""Sources whose words are written down: what a draw does with each of them can be told by hand."""

from __future__ import annotations

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
