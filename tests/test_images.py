"""Pictures are what they were when somebody looked at them: compared, pixel by pixel, with references.

The references in ``images`` are small, of fixed mechanisms, in the font that comes with matplotlib. To make them again
after a change that was meant, and looked at: ``python -m tests.test_images``.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

import optrand
from optrand.closed_forms import rr_with_prior
from optrand.model.arcs import Arcs
from optrand.model.randomizer import Randomizer
from optrand.plotting import chord_figure, flow_figure, gap_figure, matrix_figure, pmf_figure
from optrand.plotting.gallery import DRAWINGS
from optrand.plotting.style import STYLE

IMAGES = Path(__file__).parent / "images"

DPI = 38

TOLERANCE = 0.012
"""Root mean squared difference, of a brightness from 0 to 1: less than half of what another mechanism makes.

Pictures are blurred over four pixels first, so that a letter may move by one.
"""


def of(mechanism: str, name: str) -> Figure:
    """A picture of a saved mechanism, the unbiased optimum on the line.

    ``six``: labels 0 to 5 with the prior .3, .2, .2, .1, .1, .1 at epsilon 2. ``weeks``: weeks worked, 0 to 52, at
    epsilon 1, with outputs so close together that the proof needs a closer look.
    """
    return DRAWINGS[name](optrand.load(IMAGES / f"{mechanism}.json"))


def many() -> Randomizer:
    """Ten thousand labels in windows that move forward: too many to be drawn one by one."""
    k, width = 10_000, 3_333
    steps = np.arange(1 - width, k)
    first, last = np.maximum(steps, 0), np.minimum(steps + width - 1, k - 1)
    masses = np.full(steps.size, 1 / (steps.size + (math.e - 1) * width))
    return Randomizer.of_arcs(np.arange(k), Arcs(k, first, last, np.linspace(-k, 2 * k, steps.size), masses), 1.0)


def gaps(epsilon: float) -> optrand.Problem:
    """Six labels at unequal distances."""
    return optrand.unbiased_regression([0, 1, 2, 4, 5, 9], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1], epsilon)


PICTURES: dict[str, Callable[[], Figure]] = {
    **{f"six-{name}": partial(of, "six", name) for name in DRAWINGS},
    **{f"weeks-{name}": partial(of, "weeks", name) for name in ("dual", "joint", "matrix")},
    "many-pmf": lambda: pmf_figure(many()),
    "many-matrix": lambda: matrix_figure(many()),
    "many-flow": lambda: flow_figure(many()),
    "gaps-chord": lambda: chord_figure(gaps(0.9)),
    "gaps-outputs": lambda: gap_figure(gaps(0.9)),
    "classes-pmf": lambda: pmf_figure(rr_with_prior([0.4, 0.3, 0.2, 0.1], 1.0)),
}


def pixels(figure: Figure) -> NDArray[np.float64]:
    """The picture at a low resolution, red, green and blue from 0 to 1."""
    data = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(data, format="png", dpi=DPI)
    data.seek(0)
    return np.asarray(matplotlib.image.imread(data)[:, :, :3], dtype=np.float64)


def difference(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The root mean squared difference of two pictures of one size, blurred."""
    assert one.shape == other.shape
    apart = np.cumsum(np.cumsum(one - other, axis=0), axis=1)
    blurred = (apart[4:, 4:] - apart[:-4, 4:] - apart[4:, :-4] + apart[:-4, :-4]) / 16
    return float(np.sqrt((blurred**2).mean()))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_look_as_they_did(name: str) -> None:
    reference = np.asarray(matplotlib.image.imread(IMAGES / f"{name}.png")[:, :, :3], dtype=np.float64)
    assert difference(pixels(PICTURES[name]()), reference) < TOLERANCE


def test_references_are_small_and_none_is_left_over() -> None:
    found = {path.stem: path.stat().st_size for path in IMAGES.glob("*.png")}
    assert set(found) == set(PICTURES)
    assert max(found.values()) < 60_000


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        matplotlib.image.imsave(IMAGES / f"{name}.png", pixels(draw()))
        sys.stdout.write(f"{name}\n")
