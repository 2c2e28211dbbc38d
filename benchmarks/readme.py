"""The four pictures of the README and the tour: a shape, a proof, phases and solve times of weeks worked.

Shape, proof and times are at epsilon 1, phases at epsilon 4. Shape and proof are drawn of one exact mechanism, the
phases of another one, and both are certified first. The times are the rows of `mesh`, which is run first if it has
left none: the paper's program with a row for every pair of labels, the floor form on HiGHS, `ColumnGeneration`, and
`ReducedDual`, which needs no mesh. A time whose answer is not proven fails the run; a solve that was given up at the
limit has an arrow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import mesh, priors
from benchmarks.harness import options, print_table, write_json
from optrand import certify, solve, tabulate, unbiased_regression

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["IMAGES", "pictures", "timed_rows"]

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
"""Where the README and the tour look for their pictures: under version control."""

LARGEST = 120_000
"""Bytes that a picture may have."""

SIZE = (6.4, 4.6)
"""Inches of shape, proof and phases: flat enough that the whole picture is on the screen with the sentence above it."""

PHASED = 4.0
"""Epsilon of the phases: three bins, where epsilon 1 has two."""

CURVES = {
    mesh.LINE: "no mesh: outputs anywhere\non the real line",
    "pairwise, cvxpy (HiGHS)": "all pairs of labels [B23],\nin cvxpy, on HiGHS",
    "floor, HiGHS": "floor form, on HiGHS",
    "column generation": "column generation",
}
"""Which methods have a curve, and its name. Of the two backends of the paper's program, the one with exact answers."""

COLOURS = 64
"""Of a picture's palette: lines and letters need no more, and take a third of the bytes."""

COLUMNS = ("picture", "proven gap", "kB", "verdict")


def timed_rows(results: Path, name: str, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of `mesh`, which is run with some arguments where it has left none."""
    path = results / f"{name}.json"
    if not path.exists():
        mesh.main(arguments)
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    found = [row for row in rows if row["method"] in CURVES]
    found.sort(key=lambda row: list(CURVES).index(row["method"]))
    return [row | {"method": CURVES[row["method"]]} for row in found]


def pictures(k: int, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, FigureBase, float]]:
    """The names, the figures, and the largest gap of what each shows."""
    from optrand.plotting import dual_figure, phases_figure, pmf_figure, times_figure

    weeks = mesh.weeks_problem(None, k)
    mechanism = tabulate(solve(weeks))
    phased = tabulate(solve(unbiased_regression(weeks.labels, weeks.prior, PHASED)))
    for name, draw, drawn in (
        ("shape", pmf_figure, mechanism),
        ("proof", dual_figure, mechanism),
        ("phases", phases_figure, phased),
    ):
        proof = certify(drawn)
        figure = draw(drawn, size=SIZE)
        yield name, figure, math.inf if proof.findings else proof.gap
    title = f"The optimal unbiased randomizer of weeks worked, {k} labels, ε = {mesh.EPSILON:g}: time on one core"
    gaps = [row["exact_gap"] for row in rows if row["seconds"] is not None]
    gap = math.inf if None in gaps else max(gaps)
    yield "time", times_figure(rows, by="mesh", series="method", title=title), gap


def judged(picture: str, gap: float, size: int) -> dict[str, Any]:
    """What a picture shows and how large it is, as one flat record."""
    doubts = [f"not proven within {mesh.REQUIRED_GAP:g}"] * (not gap <= mesh.REQUIRED_GAP)
    doubts += [f"more than {LARGEST // 1000} kB"] * (size > LARGEST)
    return {
        "picture": picture,
        "gap": gap,
        "bytes": size,
        "right": not doubts,
        "verdict": "; ".join(doubts) or "proven",
    }


def row(record: dict[str, Any]) -> list[str]:
    """A row of the table."""
    return [record["picture"], f"{record['gap']:.1e}", f"{record['bytes'] / 1000:.0f}", record["verdict"]]


def main(arguments: Sequence[str]) -> int:
    """Draw, and return 1 if something that is drawn is not proven, or a picture is too large for a README."""
    from PIL import Image

    from optrand.plotting import save_figure

    parser = options("readme", __doc__, limit=60.0)
    parser.add_argument("--images", type=Path, default=IMAGES, help="where the pictures go (not of --smoke)")
    given = parser.parse_args(arguments)
    k, name, folder = (
        (6, "mesh-smoke", given.results / "readme-smoke") if given.smoke else (priors.WEEKS, "mesh", given.images)
    )
    folder.mkdir(parents=True, exist_ok=True)
    passed = ["--results", str(given.results), "--limit", f"{given.limit:g}", *["--smoke"] * given.smoke]
    drawn = []
    for picture, figure, gap in pictures(k, timed_rows(given.results, name, passed)):
        path = folder / f"{picture}.png"
        save_figure(figure, path, overwrite=True)
        Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
        drawn.append(judged(picture, gap, path.stat().st_size))
    print_table("The pictures of the README and the tour", COLUMNS, [row(record) for record in drawn])
    write_json(given.results, "readme-smoke" if given.smoke else "readme", drawn)
    print(f"pictures written to {folder}")
    return 0 if all(record["right"] for record in drawn) else 1
