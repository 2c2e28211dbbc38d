"""The tables of cluster mechanisms: bounds above the truth, and the printed epsilon below it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks import clusters
from optrand.baselines import peer_to_peer_table


def test_the_bounds_hold_among_peers_and_one_that_does_not_is_named(monkeypatch):
    rows = clusters.peers([20], theorem=False)
    assert len(rows) == len(clusters.FLIPS) * len(clusters.RATES)
    assert all(row["holds"] and 0 < row["epsilon"] < row["flips"] for row in rows)
    below = [replace(row, lemma9=row.epsilon / 2) for row in peer_to_peer_table([(20, 0.2, 0.5)])]
    monkeypatch.setattr(clusters, "peer_to_peer_table", lambda _: below)
    assert clusters.peers([20], theorem=False)[0]["verdict"] == "BELOW THE TRUTH: Lemma 9"


def test_the_curators_epsilon_is_above_the_printed_one_by_what_the_second_entry_costs():
    for row in clusters.curated():
        assert row["epsilon"] - row["printed"] == pytest.approx(1 / row["noise_scale"], rel=1e-9)


def test_a_small_run_leaves_both_tables(tmp_path, capsys):
    assert clusters.main(["--smoke", "--results", str(tmp_path)]) == 0
    for name in ("clusters-smoke", "curated-clusters-smoke"):
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["rows"]
    assert "more than printed" in capsys.readouterr().out
