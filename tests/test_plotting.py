"""The pictures: that they show what they promise, where they promise it."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure

from optrand.closed_forms import debiased_rr, rr_with_prior
from optrand.closed_forms.debiased import design_debiased_rr
from optrand.errors import InvalidInput
from optrand.mechanism.mechanism import Mechanism
from optrand.mechanism.paths import decompose_paths
from optrand.model.arcs import Arcs
from optrand.model.randomizer import Randomizer
from optrand.plotting import matrix_figure, mechanism_figure, paths_figure, pmf_figure, save_figure
from optrand.plotting.style import MARKS, above, number_texts, spread

BROKEN = "output, by rank; a dotted line is a gap"

THREE = debiased_rr([0, 1, 2], 0.5)
"""The labels of [B23], Table 1, at the epsilon of its Figure 2."""


def staircase(k: int) -> Randomizer:
    """Prefixes and suffixes of `k` labels, each with the same mass: a table with the shape of an optimal one."""
    row, last = np.arange(k)[:, np.newaxis], np.arange(k - 1)
    matrix = np.where(np.hstack([row <= last, row > last]), math.e, 1.0)
    outputs = np.concatenate([np.linspace(-0.7 * k, -0.4 * k, k - 1), np.linspace(1.4 * k, 1.8 * k, k - 1)])
    return Randomizer(np.arange(k), outputs, matrix / matrix.sum(axis=1, keepdims=True), 1.0)


def stems(axes: matplotlib.axes.Axes) -> dict[float, float]:
    """Output and height of every stem of a panel."""
    segments = [s for c in axes.collections if isinstance(c, LineCollection) for s in c.get_segments()]
    for (x0, y0), (x1, _) in segments:
        assert (x0, y0) == (x1, 0)
    return {float(s[1][0]): float(s[1][1]) for s in segments}


def line(axes: matplotlib.axes.Axes, label: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    (found,) = [artist for artist in axes.lines if artist.get_label() == label]
    return np.asarray(found.get_xydata())


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_each_label_has_a_panel_with_its_own_stems() -> None:
    # Outputs that are split between two floats are drawn as one.
    figure, table = pmf_figure(THREE), design_debiased_rr([0, 1, 2], 0.5).randomizer
    assert len(figure.axes) == 3
    for row, axes in enumerate(figure.axes):
        assert axes.get_ylabel() == f"label {row}"
        np.testing.assert_allclose(sorted(stems(axes).items()), np.stack((table.outputs, table.matrix[row]), 1), 1e-12)
        assert line(axes, "the label")[:, 0].tolist() == [row, row]
        np.testing.assert_allclose(line(axes, "mean output"), [[row, 0]], atol=1e-14)
        low, high = axes.get_xlim()
        assert low < table.outputs[0]
        assert table.outputs[-1] < high
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] > table.matrix.max()
    assert figure.axes[-1].get_xlabel() == "output (label units)"
    assert figure.get_supylabel() == "probability of the output"
    assert figure.get_suptitle() == "Labels 0, 1, 2, ε = 0.5"


def test_classes_have_no_mean() -> None:
    figure = pmf_figure(rr_with_prior([0.5, 0.3, 0.2], 1.0))
    assert "mean output" not in legend_texts(figure)
    assert "S: neither of the two" in legend_texts(figure)
    assert all(artist.get_label() != "mean output" for axes in figure.axes for artist in axes.lines)


@pytest.mark.parametrize(
    ("k", "title"),
    [
        (53, "Labels 0, 13, 26, 39, 52 of 53, ε = 1"),
    ],
)
def test_of_many_labels_some_are_shown_and_named(k: int, title: str) -> None:
    table = staircase(k)
    figure = pmf_figure(table)
    assert figure.get_suptitle() == title
    for axes in figure.axes:
        row = int(axes.get_ylabel().removeprefix("label "))
        assert stems(axes) == pytest.approx(dict(zip(table.outputs, table.matrix[row], strict=True)))


def test_the_matrix_is_a_heat_map_beside_its_signature() -> None:
    table = staircase(53)
    figure = matrix_figure(table)
    heat, signature = figure.axes[:2]
    (image,), (letters,) = heat.images, signature.images
    np.testing.assert_array_equal(image.get_array(), table.matrix)
    assert isinstance(image.norm, LogNorm)
    assert (image.norm.vmin, image.norm.vmax) == (table.matrix.min(), table.matrix.max())
    assert np.array_equal(letters.get_array() == 1, table.signature() == "U")
    assert (heat.get_xlabel(), heat.get_ylabel(), signature.get_xlabel()) == (BROKEN, "label, by rank", BROKEN)
    assert [axes.get_xlabel() for axes in figure.axes[2:]] == [
        "probability (log scale)",
        "U is exp(ε) times L",
    ]
    assert [text.get_text() for text in figure.axes[3].get_xticklabels()] == ["L: lowest", "U: highest"]
    # Rows and columns are named by the labels and outputs that stand there, lowest label at the bottom.
    assert heat.get_ylim() == (-0.5, 52.5)
    for axes in (heat, signature):
        for tick, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
            named = float(text.get_text().replace("\N{MINUS SIGN}", "-"))
            assert named == pytest.approx(table.outputs[int(tick)], rel=5e-3)
    assert [int(text.get_text()) for text in heat.get_yticklabels()] == heat.get_yticks().tolist()


def test_text_in_cells_can_be_read() -> None:
    heat, signature = matrix_figure(rr_with_prior([0.3, 0.25, 0.25, 0.1, 0.1], 2.0)).axes[:2]
    for axes in (heat, signature):
        (image,) = axes.images
        colours = image.to_rgba(image.get_array())
        for text in axes.texts:
            i, y = (int(at) for at in text.get_position())
            assert abs(brightness(colours[y, i, :3]) - brightness(to_rgb(text.get_color()))) > 0.35


def brightness(colour: object) -> float:
    """How light a colour is on paper without colour, from 0 to 1 (Rec. 601)."""
    return float(np.asarray(colour) @ [0.299, 0.587, 0.114])


def test_shades_keep_their_order_in_grey() -> None:
    shades = [brightness(to_rgb(mark.shade)) for mark in MARKS]
    assert all(light - dark > 0.1 for light, dark in pairwise(shades))
    assert len({(mark.marker, mark.fill) for mark in MARKS}) == len(MARKS)


def test_probabilities_of_zero_are_shown_as_such() -> None:
    # The table of an implementation that answers from all labels where the label is not among the likeliest.
    broken = Randomizer([0, 1, 2], [0, 1, 2], [[0.7, 0.3, 0], [0.3, 0.7, 0], [0.3, 0.3, 0.4]], 1.0)
    heat, signature = matrix_figure(broken).axes[:2]
    assert np.array_equal(np.ma.getmaskarray(heat.images[0].get_array()), broken.matrix == 0)
    assert [text.get_text() for text in signature.texts].count("0") == 2
    assert "0: never, where another label may" in legend_texts(pmf_figure(broken))


def test_the_mechanism_is_one_picture_with_a_caption() -> None:
    figure = mechanism_figure(THREE, THREE.certificate)
    gap = above(THREE.certificate.gap, 2)
    assert THREE.certificate.epsilon <= 0.5
    assert figure.get_suptitle() == f"ε = 0.5, 3 labels, 3 outputs, certified gap {gap}, realised ε ≤ 0.500000"
    upper, lower = figure.subfigs
    assert upper.get_suptitle() == "Labels 0, 1, 2"
    assert [axes.get_ylabel() for axes in upper.axes] == ["label 0", "label 1", "label 2"]
    assert [axes.get_title() for axes in lower.axes[:2]] == ["Probability of each output", "Staircase signature"]
    assert mechanism_figure(THREE).get_suptitle() == "ε = 0.5, 3 labels, 3 outputs"


def test_a_caption_rounds_what_is_certified_to_the_safe_side() -> None:
    proof = dataclasses.replace(THREE.certificate, lower=1.0, upper=1.0 / (1 - 0.01204), epsilon=0.4999994001)
    assert mechanism_figure(THREE, proof).get_suptitle().endswith("certified gap 0.013, realised ε ≤ 0.500000")


def test_a_caption_claims_no_gap_that_was_not_certified() -> None:
    unproved = Mechanism(THREE.problem, THREE.table).certificate
    assert "no certified gap" in mechanism_figure(THREE, unproved).get_suptitle()


def helix(k: int) -> Randomizer:
    """Intervals of `k` labels that move forward, a third of the labels long, each of the same mass."""
    steps = np.arange(-(k // 3) + 1, k)
    first, last = np.maximum(steps, 0), np.minimum(steps + k // 3 - 1, k - 1)
    masses = np.full(steps.size, 1 / (steps.size + (math.e - 1) * (k // 3)))
    return Randomizer.of_arcs(np.arange(k), Arcs(k, first, last, np.linspace(-k, 2 * k, steps.size), masses), 1.0)


def borders(axes: matplotlib.axes.Axes, label: str = "borders of bins") -> set[tuple[float, ...]]:
    """The upright lines of a picture of paths: place, bottom and top."""
    (found,) = [c for c in axes.collections if c.get_label() == label]
    assert isinstance(found, LineCollection)
    return {(x0, round(y0, 9), round(y1, 9)) for (x0, y0), (_, y1) in found.get_segments()}


def test_each_component_is_a_strip_as_high_as_its_weight_and_cut_into_its_bins() -> None:
    table = helix(9)
    paths = decompose_paths(table)
    figure = paths_figure(table)
    axes = figure.axes[0]
    mesh = axes.collections[0]
    tops = np.cumsum([float(weight) for weight in paths.weights])
    np.testing.assert_allclose(mesh.get_coordinates()[:, 0, 1], [0, *tops])
    np.testing.assert_allclose(mesh.get_coordinates()[0, :, 0], np.arange(10) - 0.5)
    expected = [np.repeat(path.outputs, path.last - path.first + 1) for path in paths]
    np.testing.assert_array_equal(mesh.get_array(), expected)
    cuts = {
        (first - 0.5, round(bottom, 9), round(top, 9))
        for path, bottom, top in zip(paths, [0, *tops], tops, strict=False)
        for first in path.first.tolist()[1:]
    }
    assert borders(axes) == borders(axes, "under the borders") == cuts
    assert figure.get_suptitle() == "A mixture of 3 randomized responses on 3 to 4 bins: 9 labels, ε = 1"
    assert [axes.get_xlabel(), axes.get_ylabel()] == ["label, by rank", "share of the mixture"]
    assert figure.axes[1].get_ylabel() == "output of the label's bin (label units)"
    assert len(axes.texts) == paths.bins.sum()
    assert {text.get_text().replace("\N{MINUS SIGN}", "-") for text in axes.texts} == {
        f"{output:.3g}" for output in paths.outputs
    }


def test_of_many_components_those_at_even_heights_are_drawn() -> None:
    table = helix(3001)
    paths = decompose_paths(table)
    figure = paths_figure(table)
    mesh = figure.axes[0].collections[0]
    shown = np.asarray(mesh.get_array())
    assert shown.shape[0] == 400 < len(paths) == 1000
    assert shown.shape[1] <= 801
    assert figure.axes[0].texts[:] == []
    middle = paths[int(np.searchsorted(np.cumsum(np.array(paths.weights, dtype=float)), 200.5 / 400))]
    assert set(shown[200].tolist()) == set(middle.outputs.tolist())


@pytest.mark.parametrize(("suffix", "start"), [("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_are_written_by_their_ending_and_without_a_date(suffix: str, start: bytes, tmp_path: Path) -> None:
    save_figure(mechanism_figure(THREE), tmp_path / f"picture.{suffix}")
    data = (tmp_path / f"picture.{suffix}").read_bytes()
    assert data.startswith(start)
    assert not any(word in data for word in (b"dc:date", b"CreationDate", b"Creation Time"))


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("picture.jpg", "picture", "picture.png.txt", ".png"):
        with pytest.raises(InvalidInput, match=r"\.png, \.svg or \.pdf"):
            save_figure(Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_is_not_overwritten_unasked_nor_left_half_written(tmp_path: Path) -> None:
    target = tmp_path / "picture.png"
    target.write_bytes(b"precious")
    with pytest.raises(InvalidInput, match="exists"):
        save_figure(pmf_figure(THREE), target)
    assert target.read_bytes() == b"precious"
    save_figure(pmf_figure(THREE), target, overwrite=True)
    assert target.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [target]


def test_settings_of_the_session_are_neither_used_nor_changed() -> None:
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 30, "axes.labelsize": 30}):
        assert matrix_figure(THREE).axes[0].xaxis.label.get_size() == 9
    assert dict(matplotlib.rcParams) == before


def test_ticks_are_evenly_spread_where_that_can_be() -> None:
    for count in range(1, 500):
        for most in range(2, 9):
            positions = spread(count, most)
            assert (positions[0], positions[-1]) == (0, count - 1)
            assert len(set(positions.tolist())) == positions.size <= max(most, min(count, most))
            steps = np.diff(positions)
            assert steps.size == 0 or steps.max() - steps.min() <= 1
    assert spread(11, 7).tolist() == [0, 2, 4, 6, 8, 10]


def test_numbers_are_told_apart() -> None:
    assert number_texts(np.array([-2.5, 0.0, 1 / 3])) == ["\N{MINUS SIGN}2.5", "0", "0.333"]
    assert len(set(number_texts(1e9 + np.arange(5)))) == 5
    assert number_texts(np.array([7.0])) == ["7"]
    assert number_texts(np.array([0.0, 1250.0, 1e4])) == ["0", "1250", "10000"]
    assert number_texts(np.array([1e-9, 1e7])) == ["1e-09".replace("-", "\N{MINUS SIGN}"), "1e+07"]
