"""Every picture can be drawn anew, from mechanisms that are proven."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import figures
from optrand import certify

ROOT = Path(__file__).resolve().parents[1]


def test_the_mechanisms_of_the_galleries_are_proven_and_of_four_kinds():
    found = dict(figures.mechanisms(6))
    assert set(found) == {"unbiased", "bins", "between", "classes"}
    for mechanism in found.values():
        certify(mechanism).require(gap=1e-9)
    penalties = [found[name].problem.bias_penalty for name in ("bins", "between", "unbiased")]
    assert penalties == [0.0, 10.0, float("inf")]


def test_a_small_run_draws_all_of_them(tmp_path):
    """Solve times only where another benchmark has left rows."""
    rows = [{"prior": "Dirichlet", "k": k, "seconds": 1e-3 * k} for k in (11, 21, 53)]
    (tmp_path / "labels-smoke.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks", "figures", "--smoke", "--results", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    folder = tmp_path / "figures-smoke"
    drawn = {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}
    every = {"pmf", "matrix", "joint", "flow", "paths", "dual"}
    galleries = {f"{name}/{picture}.png" for name in ("unbiased", "bins", "between") for picture in every}
    assert galleries <= drawn
    assert {"classes/pmf.png", "classes/dual.png", "frontier.png", "moments.png", "rr-with-prior.png"} <= drawn
    assert "times-by-labels.png" in drawn
    assert "times-by-mesh.png" not in drawn
    assert "python -m benchmarks mesh" in run.stdout
    assert "┏" in run.stdout
    assert all((folder / path).read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_a_picture_of_something_unproven_fails_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "REQUIRED_GAP", -1.0)
    monkeypatch.setattr(figures, "comparisons", lambda *_: iter(()))
    classes = dict(figures.mechanisms(3))["classes"]
    monkeypatch.setattr(figures, "mechanisms", lambda _: iter([("classes", classes)]))
    assert figures.main(["--smoke", "--results", str(tmp_path)]) == 1
    assert "classes" in capsys.readouterr().out
