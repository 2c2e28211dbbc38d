"""Subjects of pictures that several test files draw, and the artists of a picture by their labels."""

import math
import re
from pathlib import Path

import numpy as np

import optrand
from optrand.model._randomizer import Arcs, Randomizer

IMAGES = Path(__file__).parent / "images"

SIX = optrand.load(IMAGES / "six.json")
"""Unbiased optimum for labels 0 to 5, prior .3, .2, .2, .1, .1, .1, epsilon 2."""

WEEKS = optrand.load(IMAGES / "weeks.json")
"""Unbiased optimum for weeks worked, 0 to 52, epsilon 1: 104 outputs in two parts far apart."""


def windows(k: int) -> Randomizer:
    """Windows over a third of `k` labels that move forward, each of the same mass."""
    width = k // 3
    steps = np.arange(1 - width, k)
    first, last = np.maximum(steps, 0), np.minimum(steps + width - 1, k - 1)
    masses = np.full(steps.size, 1 / (steps.size + (math.e - 1) * width))
    return Randomizer.of_arcs(np.arange(k), Arcs(k, first, last, np.linspace(-k, 2 * k, steps.size), masses), 1.0)


def written_out(table: Randomizer) -> Randomizer:
    """Return the randomizer with its table in place of its arcs."""
    return Randomizer(table.labels, table.outputs, table.matrix, table.epsilon)


def line(axes, label):
    """Points of the line with this label."""
    (found,) = [artist for artist in axes.lines if artist.get_label() == label]
    return np.asarray(found.get_xydata())


def collected(axes, label):
    """Collections with this label."""
    return [each for each in axes.collections if each.get_label() == label]


def stairs(axes, label):
    """Values, edges and baseline of the stairs with this label."""
    return [patch.get_data() for patch in axes.patches if patch.get_label() == label]


def read_number(text):
    """Number that a picture has typeset, with a raised exponent and its own minus."""
    found = re.fullmatch("(?:(.+)·)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    mantissa, exponent = (found[1] or "1", found[2]) if found else (text, "0")
    return float(f"{mantissa}e{exponent}".translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹\N{MINUS SIGN}", "-0123456789-")))


def legend_texts(figure):
    """Texts of all legends below a picture."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]
