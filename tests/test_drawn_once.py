"""A release under a ledger: charged first, and resumed wherever it was killed, with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optrand.accounting import Ledger, Spent
from optrand.accounting.charge import State
from optrand.errors import AlreadySpent, InputChanged, InvalidInput, NotCertified, OverBudget, SpentNote
from optrand.release.job import LabelJob
from optrand.release.paths import paid_prior_path, record_path
from optrand.release.record import load_release
from optrand.release.recovery import recover
from optrand.release.table_job import TableJob

KEY = bytes(range(32))
ROWS = 600
POINTS = 12
"""Kills, spread over all calls of a release that reach the disk."""

RUNS = """
import json, os, signal, sys, traceback
from dataclasses import replace
import numpy as np
import optrand.accounting.ledger as ledgers
import cryptography.hazmat.primitives.ciphers, cryptography.hazmat.primitives.kdf.hkdf, optrand.solvers, pandas
import pyarrow.compute, pyarrow.csv, scipy.optimize
from optrand.accounting import entry, secrets
from optrand.release import journal, publication
from optrand.release.column_groups import ColumnGroups
from optrand.release.job import LabelJob
from optrand.release.streams import csv_files
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions

calls = 0

def counted(module, name):
    found = getattr(module, name)
    def call(*arguments, **options):
        global calls
        for moment in ("before", "after"):
            calls += 1
            if calls == stop:
                print(f"{moment} {name}", flush=True)
                os._exit(9) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
            if moment == "before":
                answer = found(*arguments, **options)
        return answer
    setattr(module, name, call)

def run(columns):
    charged = ledgers._charged
    ledgers._charged = lambda *a, **o: replace(charged(*a, **o), release="11111111-2222-4333-8444-555555555555")
    counted(os, "fsync")
    counted(os, "link")
    counted(os, "replace")
    counted(os, "unlink")
    counted(entry.Entry, "_write")
    counted(secrets.Vault, "new_key")
    counted(secrets.Vault, "destroy")
    counted(publication, "take_name")
    job = LabelJob(labels=range(5), epsilon=1.0)
    options = TableOptions(id_column="id", grouping=ColumnGroups(tuple(columns)) if columns else None)
    TableJob(job=job, column="y", options=options).run(
        "in.csv", "out.csv", dataset="census", ledger="state/ledger.sqlite", key=bytes(range(32))
    )
    print("calls", calls)

for line in sys.stdin:
    folder, stop, how, columns = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        log = os.open("state/log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        code = 1
        try:
            run(columns)
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def write_table(path: Path, *, changed: int | None = None) -> None:
    rng = np.random.default_rng(5)
    y, a = rng.integers(0, 5, ROWS), rng.choice(["p", "q"], ROWS)
    if changed is not None:
        y[changed] = (y[changed] + 1) % 5
    path.write_text("id,a,y\n" + "".join(f"{i * 7},{a[i]},{y[i]}\n" for i in range(ROWS)))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    write_table(tmp_path / "in.csv")
    return tmp_path


def job(**options) -> TableJob:
    return TableJob(job=LabelJob(labels=range(5), epsilon=1.0, **options), column="y")


def run(task=None, output="out.csv", **options):
    return (task or job()).run("in.csv", output, dataset="census", ledger="state/ledger.sqlite", **options)


def charges():
    with Ledger.open("state/ledger.sqlite") as ledger:
        return ledger.entries()


@pytest.fixture(scope="module")
def runs():
    """Processes that release a table in a folder, all forks of one that has loaded what they need."""
    command, here = [sys.executable, "-c", RUNS], {**os.environ, "OPTRAND_COMPILE": "0"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1, env=here) as process:

        def run(folder: Path, columns: list[str], stop: int = 0, how: str = "exit") -> tuple[int, str]:
            print(json.dumps([str(folder), stop, how, columns]), file=process.stdin)
            return int(process.stdout.readline()), (folder / "state" / "log").read_text()

        yield run
        process.stdin.close()


def released(folder: Path) -> dict[str, bytes]:
    """All files of a release, hidden ones that were left over among them."""
    found = (path for path in folder.rglob("*") if path.is_file() and "state" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.name != "in.csv"}


def test_a_release_is_charged_exactly_and_its_key_destroyed(here):
    summary = run()
    (charge,) = charges()
    assert charge.state is State.COMPLETE
    assert charge.parts["prior"].epsilon == Fraction(summary.split.prior)
    assert charge.parts["labels"].epsilon == Fraction(summary.split.labels)
    assert charge.total.epsilon <= 1
    assert list((here / "state" / "keys").glob("*.key")) == []
    record = load_release(record_path("out.csv"))
    around = record.circumstances
    assert (around.dataset, around.ledger, around.entropy, record.private) == ("census", True, "keyed", True)
    assert around.release == charge.release.replace("-", "")
    assert charge.priors[""] == record.noisy_counts
    assert charge.mechanisms[""] == record.randomizers[0].sha256
    assert not paid_prior_path("out.csv").exists()


def test_an_injected_key_is_recorded_and_decides_the_labels():
    run(key=KEY)
    assert not load_release(record_path("out.csv")).private
    assert not charges()[0].private


def test_a_second_release_is_refused_unless_it_is_asked_for(here):
    run()
    before = released(here)
    with pytest.raises(AlreadySpent, match=r"was released before, for epsilon \S+ in total"):
        run(output="other.csv")
    assert released(here) == before
    with pytest.raises(OverBudget):
        run(output="other.csv", spend_again=True, budget=1.5)
    run(output="other.csv", spend_again=True, budget=2.0)
    with Ledger.open("state/ledger.sqlite") as ledger:
        assert 1.9 < ledger.spent("census", "y").epsilon <= 2
    assert (here / "out.csv").read_bytes() != (here / "other.csv").read_bytes()


def test_without_a_ledger_nothing_else_may_be_asked_of_one():
    for option in ({"dataset": "census"}, {"budget": 1.0}, {"spend_again": True}, {"key": KEY}, {"entropy": "keyed"}):
        with pytest.raises(InvalidInput, match="ledger"):
            job().run("in.csv", "out.csv", **option)
    with pytest.raises(InvalidInput, match="the dataset's name"):
        job().run("in.csv", "out.csv", ledger="state/ledger.sqlite")
    job().run("in.csv", "out.csv")
    around = load_release(record_path("out.csv")).circumstances
    assert (around.ledger, around.entropy, around.dataset) == (False, "system", None)


def test_a_refused_gap_keeps_the_prior_for_the_retry(here):
    with pytest.raises(NotCertified, match="verified gap") as caught:
        run(job(max_gap=0.0))
    assert any(isinstance(note, SpentNote) and "goes on from there" in note for note in caught.value.__notes__)
    (kept,) = charges()
    assert kept.state is State.PRIOR
    assert not (here / "out.csv").exists()
    run()
    (charge,) = charges()
    assert charge.release == kept.release
    assert charge.priors == kept.priors
    assert load_release(record_path("out.csv")).noisy_counts == kept.priors[""]


def test_retries_do_not_draw_the_prior_again(monkeypatch):
    import optrand.release.job as jobs

    drawn = []

    def counted(*arguments, **options):
        drawn.append(1)
        return private_prior(*arguments, **options)

    private_prior = jobs.private_prior
    monkeypatch.setattr(jobs, "private_prior", counted)
    for _ in range(3):
        with pytest.raises(NotCertified):
            run(job(max_gap=0.0))
    run()
    assert len(drawn) == 1


def test_an_input_that_changed_since_the_release_began_is_refused(here):
    with pytest.raises(NotCertified):
        run(job(max_gap=0.0))
    write_table(here / "in.csv", changed=3)
    with pytest.raises(InputChanged):
        run()
    assert not (here / "out.csv").exists()
    write_table(here / "in.csv")
    run()


def test_another_configuration_is_another_release():
    with pytest.raises(NotCertified):
        run(job(max_gap=0.0))
    with pytest.raises(AlreadySpent):
        run(job(prior_epsilon=0.1))


def test_noise_of_the_system_pays_again(here):
    with pytest.raises(NotCertified) as caught:
        run(job(max_gap=0.0), entropy="system")
    assert any("a retry pays again" in note for note in caught.value.__notes__)
    assert charges()[0].state is State.WITHDRAWN
    with pytest.raises(AlreadySpent):
        run(entropy="system")
    run(entropy="system", spend_again=True)
    assert load_release(record_path("out.csv")).circumstances.entropy == "system"
    assert list((here / "state" / "keys").glob("*.key")) == []


def test_a_neighbouring_column_draws_the_same_noise_elsewhere():
    """Under one key a label decides its own noisy label, given the mechanism: nothing else changes."""
    from optrand import load
    from optrand.release.ids import row_ids
    from optrand.sampling.keyed import RecordStreams

    run()
    mechanism = load("out.csv.mechanism.json")
    labels = np.random.default_rng(5).integers(0, 5, ROWS).astype(float)
    other = labels.copy()
    other[7] = (other[7] + 1) % 5
    one, two = (mechanism.sample_records(y, row_ids(0, ROWS), RecordStreams(KEY)) for y in (labels, other))
    assert set(np.flatnonzero(one != two)) <= {7}


@pytest.mark.parametrize("columns", [[], ["a"]], ids=["whole", "groups"])
def test_a_job_that_is_killed_anywhere_goes_on_with_the_same_bytes(columns, runs, tmp_path_factory):
    def fresh() -> Path:
        folder = tmp_path_factory.mktemp("run")
        (folder / "state").mkdir(mode=0o700)
        write_table(folder / "in.csv")
        return folder

    whole = fresh()
    code, told = runs(whole, columns)
    assert code == 0, told
    expected, calls = released(whole), int(told.split()[-1])
    beside = ["out.csv.mechanisms/0.json", "out.csv.mechanisms/1.json"] if columns else ["out.csv.mechanism.json"]
    assert sorted(expected) == ["out.csv", *beside, "out.csv.release.json"]
    assert json.loads(expected["out.csv.release.json"])["private"] is False
    assert calls > 40
    for stop in range(1, calls + 1, max(1, calls // POINTS)):
        folder = fresh()
        code, where = runs(folder, columns, stop, "exit" if stop % 2 else "kill")
        assert code in (9, -signal.SIGKILL), where
        if (folder / "out.csv").exists():
            there = {name: found for name, found in released(folder).items() if not name.startswith(".")}
            assert there == expected, where
        code, told = runs(folder, columns)
        if code:
            # Everything was there, or its publication is finished now: no label was drawn again.
            assert "finished now" in told or "AlreadySpent" in told or "exists" in told
        assert released(folder) == expected, (where, told)
        os.chdir(folder)
        recover("out.csv", Ledger.open("state/ledger.sqlite"))
        (charge,) = charges()
        assert charge.state is State.COMPLETE, where
        assert list((folder / "state" / "keys").glob("*.key")) == [], where


def test_recovery_gives_up_only_what_it_is_told_to():
    with pytest.raises(NotCertified):
        run(job(max_gap=0.0))
    with Ledger.open("state/ledger.sqlite") as ledger:
        found = recover("out.csv", ledger)
        assert (found.state, len(found.unfinished)) == ("nothing", 1)
        assert recover("out.csv", ledger, withdraw=True).unfinished == ()
        assert ledger.entries()[0].state is State.WITHDRAWN
        assert ledger.spent("census") == Spent(ledger.entries()[0].total.epsilon)
    with pytest.raises(AlreadySpent):
        run()
