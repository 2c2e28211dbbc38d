"""The four pictures of the README and the tour: a shape, a proof, phases and solve times of weeks worked.

Shape, proof and times are at epsilon 1, phases at epsilon 4, where there are three bins. Every mechanism is certified
first. The times are the rows of `mesh`, which is run first if it has left none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import mesh, priors
from benchmarks.harness import Benchmark, Row
from optrand import certify, solve

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LARGEST = 120_000
"""Bytes that a picture in a README may have."""

CURVES = {
    mesh.LINE: "no mesh: outputs anywhere\non the real line",
    mesh.CVXPY: "Algorithm 1 of [B23],\nin cvxpy, on HiGHS",
    mesh.DIRECT: "Algorithm 1, on HiGHS",
    mesh.FLOOR: "floor form, on HiGHS",
    mesh.GRID: "optrand on a mesh",
    mesh.ADAPTIVE: "outputs placed for the prior",
    mesh.ROUNDED: "labels rounded to knots",
}
"""Methods with a curve, and its name. Through cvxpy the paper's program is shown on the backend with exact answers."""


def draw(k: int, rows: list[Row]) -> Iterator[tuple[str, Any, float]]:
    """Draw each picture. Yield its name, the figure, and the largest gap of the mechanisms in it."""
    from optrand.plotting import dual_figure, phases_figure, pmf_figure

    for name, figure, epsilon in (
        ("shape", pmf_figure, 1.0),
        ("proof", dual_figure, 1.0),
        ("phases", phases_figure, 4.0),
    ):
        mechanism = solve(priors.posed("weeks", k, epsilon))
        proof = certify(mechanism)
        yield name, figure(mechanism), math.inf if proof.findings else proof.gap
    title = f"The optimal unbiased randomizer of weeks worked, {k} labels, ε = {mesh.EPSILON:g}: processor time"
    unproven = [row for row in rows if row["method"] in CURVES and row["seconds"] is not None and not row["right"]]
    yield "time", mesh.picture(rows, CURVES, title), math.inf if unproven else 0.0


def measure(given: Any) -> Iterator[Row]:
    """Draw and save. A row is right if its mechanisms are proven and the picture is small enough."""
    from PIL import Image

    from optrand.plotting import save_figure

    name, k = ("mesh-smoke", 6) if given.smoke else ("mesh", priors.WEEKS)
    path = given.results / f"{name}.json"
    if not path.exists():
        mesh.main(["--results", str(given.results), "--limit", f"{given.limit:g}", *["--smoke"] * given.smoke])
    folder = given.results / "readme-smoke" if given.smoke else given.images
    folder.mkdir(parents=True, exist_ok=True)
    for picture, figure, gap in draw(k, json.loads(path.read_text(encoding="utf-8"))["rows"]):
        path = folder / f"{picture}.png"
        save_figure(figure, path)
        # Lines and letters need no more colours, and take a third of the bytes.
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
        size = path.stat().st_size
        yield {"picture": str(path), "gap": gap, "bytes": size, "right": gap <= 1e-9 and size <= LARGEST}


TABLES = {"The pictures of the README and the tour": "picture gap bytes:,"}
main = Benchmark(
    "readme",
    __doc__,
    measure,
    TABLES,
    60.0,
    lambda parser: parser.add_argument("--images", type=Path, default=IMAGES, help="folder, except of --smoke"),
).run
