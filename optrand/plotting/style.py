"""What all pictures share: a style, the marks of a signature, and how positions and numbers are named."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optrand.validation import Floats

__all__ = ["INK", "MARKS", "STYLE", "Mark", "number_texts", "spread"]

INK = "#1a1a1a"

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.usetex": False,
    "svg.hashsalt": "optrand",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Mark:
    """How one letter of a signature looks: a shade for its cell, a colour and a marker for its stem."""

    letter: str
    short: str
    meaning: str
    shade: str
    stem: str
    marker: str
    fill: str


# The shades are white and then cividis from light to dark: an order that survives printing in grey.
MARKS = (
    Mark("0", "0: never", "0: never, where another label may", "#ffffff", INK, "x", INK),
    Mark("L", "L: lowest", "L: lowest of its output", "#f1e180", "#a0a0a0", "o", "#ffffff"),
    Mark("S", "S: other", "S: neither of the two", "#8a8678", "#707070", "D", "#8a8678"),
    Mark("U", "U: highest", "U: highest, exp(ε) times the lowest", "#00224e", INK, "o", INK),
)


def spread(count: int, most: int) -> NDArray[np.intp]:
    """At most `most` positions out of `count`, the first and the last among them, at equal steps where that can be.

    Examples
    --------
    >>> spread(53, 6).tolist(), spread(54, 6).tolist(), spread(3, 6).tolist()
    ([0, 13, 26, 39, 52], [0, 11, 21, 32, 42, 53], [0, 1, 2])
    """
    even = [size for size in range(4, most + 1) if (count - 1) % (size - 1) == 0]
    size = max(even, default=most) if count > most else count
    return np.linspace(0, count - 1, size).round().astype(np.intp)


def number_texts(numbers: Floats) -> list[str]:
    """Increasing numbers in the fewest digits, from three up, that tell them apart by far; thousands without exponents.

    Examples
    --------
    >>> number_texts(np.array([0.0, 1 / 3, 20.0])), number_texts(np.array([1e9, 1e9 + 1]))
    (['0', '0.333', '20'], ['1000000000', '1000000001'])
    >>> number_texts(np.array([0.0, 5000.0, 1e4, 1e8]))
    ['0', '5000', '10000', '1e+08']
    """
    gap = float(np.diff(numbers).min(initial=math.inf))
    for digits in range(3, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        pairs = list(zip(texts, numbers.tolist(), strict=True))
        short = any("e+" in text and abs(number) < 1e6 for text, number in pairs)
        if not short and all(abs(float(text) - number) <= 0.1 * gap for text, number in pairs):
            break
    return [text.replace("-", "\N{MINUS SIGN}") for text in texts]
