"""Shared parts of all pictures: a style, the marks of a signature, and the names of positions and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from optrand.base.numerals import shown_above, shown_below
from optrand.base.validation import Floats

__all__ = [
    "INK",
    "LINE_SHADES",
    "MARKS",
    "STYLE",
    "Mark",
    "above",
    "below",
    "line_edges",
    "log_shades",
    "number_texts",
    "spread",
]

INK = "#1a1a1a"

LINE_SHADES = ("#d9c84a", "#a59c74", "#7c7b78", "#575d6d", "#22406b", "#00224e")
"""Cividis from light to dark, without its lightest part, in which lines would vanish on white."""

STYLE: Any = {
    # Comes with matplotlib, so that a picture is the same on every machine.
    "font.family": ["DejaVu Sans"],
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
    """Look of one letter of a signature: a shade for its cell, a colour and a marker for its stem."""

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
    """Positions out of `count`, at most `most`, the first and the last among them, at equal steps where that can be.

    Examples
    --------
    >>> spread(53, 6).tolist(), spread(54, 6).tolist(), spread(3, 6).tolist()
    ([0, 13, 26, 39, 52], [0, 11, 21, 32, 42, 53], [0, 1, 2])
    """
    even = [size for size in range(4, most + 1) if (count - 1) % (size - 1) == 0]
    size = max(even, default=most) if count > most else count
    return np.linspace(0, count - 1, size).round().astype(np.intp)


def line_edges(numbers: Floats) -> Floats:
    """Edges of the cells around increasing numbers: halfway, and as far beyond both ends.

    Examples
    --------
    >>> line_edges(np.array([0.0, 1.0, 3.0])).tolist(), line_edges(np.array([5.0])).tolist()
    ([-0.5, 0.5, 2.0, 4.0], [4.5, 5.5])
    """
    if numbers.size == 1:
        return np.array([numbers[0] - 0.5, numbers[0] + 0.5])
    middles = (numbers[1:] + numbers[:-1]) / 2
    edges: Floats = np.concatenate(([2 * numbers[0] - middles[0]], middles, [2 * numbers[-1] - middles[-1]]))
    return edges


def log_shades(low: float, high: float) -> tuple[LogNorm, list[float]]:
    """Logarithmic shades for numbers between two positive ones, and five of them, at equal ratios, for the scale."""
    if high < low * 1.001:
        return LogNorm(low / 1.1, high * 1.1), [low]
    return LogNorm(low, high), np.geomspace(low, high, 5).tolist()


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


def below(number: float, digits: int) -> str:
    """Number rounded down as :func:`~optrand.base.numerals.shown_below` does, in exactly so many digits.

    Examples
    --------
    >>> below(2.71828, 3), above(2.71828, 3), below(-1e-17, 2), above(1348.3746, 7), above(0.5, 3)
    ('2.71', '2.72', '−1.1e-17', '1348.375', '0.500')
    """
    return _typeset(shown_below(number, digits), digits)


def above(number: float, digits: int) -> str:
    """Number rounded up, in exactly so many digits."""
    return _typeset(shown_above(number, digits), digits)


def _typeset(numeral: str, digits: int) -> str:
    """Numeral with zeros up to so many digits, at most 15 of which are exact, and a typeset minus."""
    rounded = float(numeral)
    return f"{rounded:#.{digits}g}".replace("-", "\N{MINUS SIGN}", 1 if rounded < 0 else 0) if rounded else "0"
