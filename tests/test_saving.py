"""Pictures as files: formats and metadata, every picture of a mechanism, and refusals before drawing."""

from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from asserting import assert_error
from matplotlib.figure import Figure

import optrand
from optrand.plotting import _saving, pmf_figure, save_figure
from optrand.plotting._saving import DRAWINGS, ENDINGS, gallery
from tests.tables import mechanism_of

IMAGES = Path(__file__).parent / "images"
SIX = IMAGES / "six.json"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(("suffix", "start"), [("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_are_written_by_their_ending_and_without_a_date(suffix: str, start: bytes, tmp_path: Path) -> None:
    save_figure(pmf_figure(optrand.load(SIX)), tmp_path / f"picture.{suffix}")
    data = (tmp_path / f"picture.{suffix}").read_bytes()
    assert data.startswith(start)
    assert not any(word in data for word in (b"dc:date", b"CreationDate", b"Creation Time"))


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for name in ("picture.jpg", "picture", "picture.png.txt", ".png"):
        assert_error(r"\.png, \.svg or \.pdf", save_figure, Figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_replaces_an_older_one_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "picture.png"
    target.write_bytes(b"an older picture")
    with patch.object(Figure, "savefig", side_effect=OSError("disk full")), pytest.raises(OSError, match="disk full"):
        save_figure(Figure(), target)
    assert target.read_bytes() == b"an older picture"
    save_figure(Figure(), target)
    assert target.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [target]


def test_what_cannot_be_drawn_is_left_out_with_its_reason(tmp_path: Path) -> None:
    problem = optrand.unbiased_regression([0, 1, 2], [0.4, 0.3, 0.3], 1.0)
    # The second output favours both ends and not the middle: no interval, and there are no multipliers.
    weights = np.array([[1, 2], [2, 1], [1, 2]], dtype=object)
    _, reasons = gallery(mechanism_of(problem, None, [0.0, 1.0], weights, Fraction(2)), tmp_path)
    assert names(tmp_path) == {f"{name}{ending}" for name in ("pmf", "matrix", "joint") for ending in ENDINGS}
    assert list(reasons) == ["flow", "phases", "dual"]
    assert "not an interval" in reasons["flow"]
    assert "no dual" in reasons["dual"]


def test_one_picture_that_exists_stops_the_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: DRAWINGS[name] for name in ("pmf", "dual")}
    monkeypatch.setattr(_saving, "DRAWINGS", few)
    (tmp_path / "dual.pdf").write_bytes(b"precious")
    assert_error("exists", gallery, optrand.load(SIX), tmp_path)
    assert names(tmp_path) == {"dual.pdf"}
    told: list[str] = []
    _, reasons = gallery(optrand.load(SIX), tmp_path, overwrite=True, announce=told.append)
    assert reasons == {}
    assert told == [*few, *(f"{name}{ending}" for name in few for ending in ENDINGS)]
    assert (tmp_path / "dual.pdf").read_bytes().startswith(b"%PDF")


def test_neither_a_file_nor_a_folder_out_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder, wrong in (("file", "file is not a folder"), ("no/such", "no is not a folder")):
        assert_error(wrong, gallery, optrand.load(SIX), tmp_path / folder)
    assert names(tmp_path) == {"file"}
