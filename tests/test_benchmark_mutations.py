"""Mutations of the package: each can be made, and one that nothing notices is told."""

from __future__ import annotations

import json

import pytest

from benchmarks import mutations
from benchmarks.mutants import MUTATIONS, Mutation
from benchmarks.mutations import ROOT, Trial, failures, misplaced, mutated
from optrand.theory import claims

HARMLESS = Mutation(
    "another name for a sum",
    "theory/sums.py",
    '"""',
    '"""',
    ("test_dyadic.py",),
    ("B23 Proposition 7: last step",),
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_what_is_there_once(mutation):
    assert not misplaced(mutation)
    assert mutation.old != mutation.new
    compile((ROOT / "optrand" / mutation.file).read_text().replace(mutation.old, mutation.new), mutation.file, "exec")


def test_mutations_are_many_and_name_claims_and_tests_that_exist():
    known = {claim.name for claim in claims()}
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 48
    for mutation in MUTATIONS:
        assert set(mutation.claims) <= known, mutation.name
        assert mutation.tests, mutation.name
        assert all((ROOT / "tests" / test).is_file() for test in mutation.tests), mutation.name


def test_a_mutation_is_made_in_a_copy():
    mutation = MUTATIONS[0]
    source = (ROOT / "optrand" / mutation.file).read_text()
    with mutated(mutation) as folder:
        assert (folder / "optrand" / mutation.file).read_text() == source.replace(mutation.old, mutation.new)
        assert (folder / "tests" / mutation.tests[0]).is_file()
    assert not folder.exists()
    assert (ROOT / "optrand" / mutation.file).read_text() == source


def test_code_that_moved_and_claims_that_are_none_stop_the_benchmark(monkeypatch, capsys):
    moved = Mutation("m", MUTATIONS[0].file, "no such text", "", ("test_dyadic.py",))
    gone = Mutation("g", "no_file.py", "", "", ("test_dyadic.py",))
    monkeypatch.setattr(mutations, "MUTATIONS", (moved, gone))
    assert mutations.main([]) == 1
    told = capsys.readouterr().err
    assert "m: its text is 0 times" in told
    assert "g: there is no file" in told


def test_a_test_that_is_not_there_is_no_test_that_passes():
    with mutated(None) as folder, pytest.raises(ValueError, match="no_such_test"):
        failures(folder, ["test_dyadic.py::no_such_test"], 60.0)


def test_what_nothing_notices_is_told(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(mutations, "SMOKE", (HARMLESS,))
    monkeypatch.setattr(mutations, "misplaced", lambda _: "")
    assert mutations.main(["--smoke", "--results", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "NOT NOTICED by B23 Proposition 7: last step" in told
    assert "NOT NOTICED by a test" in told
    [row] = json.loads((tmp_path / "mutations-smoke.json").read_text())["rows"]
    assert row["unnoticed"] == list(HARMLESS.claims)
    assert row["noticed"] == {}


def test_a_trial_passes_if_a_test_and_all_claims_notice():
    edit = ("name", "file.py", "old", "new")
    assert Trial(*edit, {"a": "refuted"}, (), "test_x.py::test_y", 1.0).passed
    assert not Trial(*edit, {"a": "refuted"}, ("b",), "test_x.py::test_y", 1.0).passed
    assert not Trial(*edit, {"a": "refuted"}, (), "", 1.0).passed


def test_a_small_run_is_noticed(tmp_path, capsys):
    assert mutations.main(["--smoke", "--results", str(tmp_path)]) == 0
    assert "┏" in capsys.readouterr().out
    rows = json.loads((tmp_path / "mutations-smoke.json").read_text())["rows"]
    assert all(row["test"] and row["noticed"] and not row["unnoticed"] for row in rows)
