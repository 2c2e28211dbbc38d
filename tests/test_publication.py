"""Publication: a release appears whole or not at all, wherever a process dies or a disk fails."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal

import pytest
from tables import resealed

import optrand.base.files
from optrand.errors import Interrupted, InvalidFile, InvalidInput
from optrand.release.interruption import Signals
from optrand.release.publication import Publication, Recovered, recover, staging_folder

CALLS = ("chmod", "fsync", "link", "mkdir", "rename", "replace", "rmdir", "unlink")
"""Of the operating system: a process may die, or a disk fail, before any of them."""

NAMES = ("out.csv.mechanism.json", "out.csv.release.json", "out.csv")


def contents(folder):
    """What can be seen in a folder, without its hidden files."""
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and path.name[0] != "."}


def put(folder, words):
    for name in NAMES:
        (folder / name).write_text(f"{words} {name}")


def publish(folder, *, overwrite):
    with Publication(folder / "out.csv", release="new", overwrite=overwrite) as publication:
        for name in NAMES:
            publication.stage(folder / name).write_text(f"new {name}")
        publication.publish()


NEW = {name: f"new {name}" for name in NAMES}
OLD = {name: f"old {name}" for name in NAMES}


def consistent(seen, before):
    """Whether nobody who looks at a table can take it for one of another mechanism."""
    table = seen.get("out.csv")
    kinds = {words.split()[0] for words in seen.values()}
    return kinds <= {"new", "old"} and (
        table is None or (len(kinds) == 1 and (seen == NEW if table.startswith("new") else seen == before))
    )


def at_call(count, what):
    """Calls to the operating system, the one of a number replaced by something else."""
    calls = itertools.count()

    def wrapped(function):
        def call(*arguments, **options):
            if next(calls) == count:
                what()
            return function(*arguments, **options)

        return call

    return {name: wrapped(getattr(os, name)) for name in CALLS}


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_that_dies_at_any_moment_leaves_what_can_be_finished_or_withdrawn(
    tmp_path, monkeypatch, overwrite, links
):
    if not links:
        refused = OSError(errno.EPERM, "no hard links here")
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(refused))
        monkeypatch.setattr(optrand.base.files, "_renameat2", lambda: None)
    before = OLD if overwrite else {}
    outcomes = []
    for count in itertools.count():
        folder = tmp_path / str(count)
        folder.mkdir()
        if overwrite:
            put(folder, "old")
        child = os.fork()
        if child == 0:
            for name, call in at_call(count, lambda: os._exit(9)).items():
                setattr(os, name, call)
            try:
                publish(folder, overwrite=overwrite)
            finally:
                os._exit(0)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert consistent(contents(folder), before), count
        found = recover(folder / "out.csv")
        after = contents(folder)
        assert after in (NEW, before), count
        assert (found.state == "finished") <= (after == NEW)
        assert [path.name for path in folder.iterdir() if path.name[0] == "."] == []
        assert recover(folder / "out.csv") == Recovered("nothing")
        outcomes.append(found.state)
        if not died:
            break
    assert {"nothing", "withdrawn", "finished"} <= set(outcomes)
    assert len(outcomes) > 15


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_disk_that_fails_at_any_moment_leaves_all_of_the_old_or_all_of_the_new(tmp_path, overwrite):
    before = OLD if overwrite else {}

    def fail():
        raise OSError(errno.EIO, "input/output error")

    ends = []
    for count in itertools.count():
        folder = tmp_path / str(count)
        folder.mkdir()
        if overwrite:
            put(folder, "old")
        with pytest.MonkeyPatch.context() as patch:
            for name, call in at_call(count, fail).items():
                patch.setattr(os, name, call)
            try:
                publish(folder, overwrite=overwrite)
                ends.append("done")
            except Interrupted as error:
                ends.append("confirmed by nobody" if error.released else "lost")
            except OSError:
                ends.append("refused")
        assert contents(folder) == (before if ends[-1] == "refused" else NEW), count
        recover(folder / "out.csv")
        assert contents(folder) in (NEW, before)
        assert [path.name for path in folder.iterdir() if path.name[0] == "."] == []
        if ends[-3:] == ["done"] * 3 and len(ends) > 25:
            break
    assert {"refused", "confirmed by nobody", "done"} <= set(ends)


def test_only_one_release_of_an_output_runs_at_a_time(tmp_path):
    target = tmp_path / "out.csv"
    with Publication(target, release="1"):
        with pytest.raises(InvalidInput, match=r"another release of out\.csv is running"):
            Publication(target, release="2")
        with pytest.raises(InvalidInput, match=r"another release of out\.csv is running"):
            recover(target)
        with Publication(tmp_path / "other.csv", release="3"):
            pass
    with Publication(target, release="2") as publication:
        assert publication.found.state == "nothing"
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_published_is_withdrawn(tmp_path):
    target = tmp_path / "out.csv"
    with Publication(target, release="1") as publication:
        publication.stage(target).write_text("noisy")
        assert staging_folder(target).stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_complete_set_that_a_killed_run_left_is_withdrawn_at_the_next_start(tmp_path):
    staging_folder(tmp_path / "out.csv").mkdir()
    (staging_folder(tmp_path / "out.csv") / "x.0").write_text("noisy")
    with Publication(tmp_path / "out.csv", release="1") as publication:
        assert publication.found.state == "withdrawn"
        assert list(publication.folder.iterdir()) == []


def interrupted(folder):
    """A release whose process died when its journal was written."""
    child = os.fork()
    if child == 0:
        optrand.release.publication._advance = lambda *_: os._exit(9)
        publish(folder, overwrite=False)
    os.waitpid(child, 0)
    return staging_folder(folder / "out.csv") / "journal.json"


def test_the_next_start_finishes_a_publication_and_does_nothing_else(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(InvalidInput, match=r"is finished now: out\.csv\.mechanism\.json, .*, out\.csv;"):
        Publication(tmp_path / "out.csv", release="2")
    assert contents(tmp_path) == NEW
    assert not staging_folder(tmp_path / "out.csv").exists()


def test_recovery_says_which_release_it_was(tmp_path):
    interrupted(tmp_path)
    assert recover(tmp_path / "out.csv") == Recovered("finished", "new", NAMES)


def test_a_file_of_others_is_not_replaced_by_recovery(tmp_path):
    interrupted(tmp_path)
    (tmp_path / "out.csv").write_text("theirs")
    with pytest.raises(InvalidInput, match="exists"):
        recover(tmp_path / "out.csv")
    assert contents(tmp_path)["out.csv"] == "theirs"
    (tmp_path / "out.csv").unlink()
    assert recover(tmp_path / "out.csv").state == "finished"
    assert contents(tmp_path) == NEW


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": "x"},
        {"retired": ["../precious"]},
        {"retired": [""]},
        {"files": [{"staged": "new.0", "target": "/precious", "sha256": ""}]},
        {"files": [{"staged": "../../precious", "target": "out.csv", "sha256": ""}]},
        {"files": [{"staged": "new.2", "target": "out.csv", "sha256": "0" * 64}]},
        {"overwrite": 3},
        None,
    ],
    ids=str,
)
def test_a_journal_that_somebody_changed_is_refused_and_nothing_moves(tmp_path, change):
    journal = interrupted(tmp_path)
    document = json.loads(journal.read_text())
    journal.write_text("{}" if change is None else resealed({**document, **change}))
    with pytest.raises(InvalidFile):
        recover(tmp_path / "out.csv")
    assert contents(tmp_path) == {}
    assert journal.exists()


def test_a_link_in_place_of_the_hidden_folder_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    staging_folder(tmp_path / "out.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        Publication(tmp_path / "out.csv", release="1")


def test_folders_are_published_and_replaced_like_files(tmp_path):
    for words, overwrite in (("old", False), ("new", True)):
        with Publication(tmp_path / "out", release=words, overwrite=overwrite) as publication:
            staged = publication.stage(tmp_path / "out")
            (staged / "a=1").mkdir(parents=True)
            (staged / "a=1" / words).write_text(words)
            publication.publish()
    assert [path.name for path in (tmp_path / "out" / "a=1").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with Publication(tmp_path / "out", release="x") as publication:
        publication.stage(tmp_path / "out").mkdir()
        with pytest.raises(InvalidInput, match="exists"):
            publication.publish()
    assert [path.name for path in (tmp_path / "out" / "a=1").iterdir()] == ["new"]


def test_what_described_the_old_table_goes_with_it(tmp_path):
    put(tmp_path, "old")
    (tmp_path / "out.csv.randomizer.json").write_text("old")
    with Publication(tmp_path / "out.csv", release="new", overwrite=True) as publication:
        for name in NAMES:
            publication.stage(tmp_path / name).write_text(f"new {name}")
        publication.publish(retire=[tmp_path / "out.csv.randomizer.json"])
    assert contents(tmp_path) == NEW


def test_permissions_are_no_more_than_those_of_the_input(tmp_path):
    private = tmp_path / "in.csv"
    private.write_text("y")
    private.chmod(0o600)
    before = os.umask(0o022)
    try:
        with Publication(tmp_path / "out.csv", release="1") as publication:
            publication.stage(tmp_path / "out.json").write_text("{}")
            publication.stage(tmp_path / "out.csv", like=private).write_text("y")
            publication.publish()
    finally:
        os.umask(before)
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_are_errors_that_wait_while_they_are_held(name):
    number = getattr(signal, name)
    if signal.getsignal(number) is signal.SIG_IGN:
        # As under nohup, which ignored signals respect.
        signal.signal(number, signal.SIG_DFL)
    before = signal.getsignal(number)
    done = []

    def late():
        with Signals() as signals:
            with signals.held():
                os.kill(os.getpid(), number)
                done.append("held")
                signals.outcome, signals.released = "all is there", True
            done.append("never")

    def early():
        with Signals():
            try:
                os.kill(os.getpid(), number)
            finally:
                os.kill(os.getpid(), number)
                done.append("cleaned up")

    with pytest.raises(Interrupted, match=f"stopped by {name}: all is there") as caught:
        late()
    assert caught.value.released
    assert done == ["held"]
    assert signal.getsignal(number) is before
    with pytest.raises(Interrupted, match="nothing was released") as caught:
        early()
    assert not caught.value.released
    assert done[-1] == "cleaned up"


def test_a_signal_that_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
