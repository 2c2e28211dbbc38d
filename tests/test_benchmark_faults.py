"""The benchmark of faults, in small: what it counts is what happened."""

from __future__ import annotations

import numpy as np

from benchmarks import faults
from benchmarks.damage import ACCEPTABLE, damaged_keys, damaged_ledgers, damaged_mechanisms, forged_files
from benchmarks.shared_blocks import forked_blocks, repeated, threaded_blocks
from optrand.release.paths import mechanism_path


def test_damaged_and_forged_files_are_refused_or_proven(tmp_path):
    for damaged in (damaged_mechanisms, damaged_keys, damaged_ledgers, forged_files):
        seen = damaged(tmp_path, 20)
        assert sum(seen.values()) == 20
        assert seen["refused"] > 5
        assert set(seen) <= set(ACCEPTABLE)


def test_workers_and_threads_share_no_words():
    assert forked_blocks(4)[0] == threaded_blocks(4)[0] == 0
    assert repeated(np.array([5, 5, 5, 1], dtype=np.uint64)) == 2


def test_killed_releases_end_as_one_that_was_not_and_another_end_is_noticed(tmp_path):
    scene = faults.Scene(tmp_path / "scene", ".csv", 2_000)
    found = list(faults.kills(scene, 2))
    assert [each["wrong"] for each in found] == [0, 0, 0]
    assert found[0]["tried"] == 2
    mechanism_path(scene.reference).write_text("another")
    *_, ends = faults.kills(scene, 1)
    assert ends["wrong"] == ends["tried"]
