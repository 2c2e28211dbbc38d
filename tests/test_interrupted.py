"""Releases that are killed, raced, stopped by a signal, out of disk, or whose input changes meanwhile."""

import errno
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asserting import assert_error

from optrand.accounting import Ledger, State
from optrand.errors import AlreadySpent, InputChanged, Interrupted, InvalidInput, SpentNote
from optrand.release import Question, _files, load_release, randomize_table
from optrand.release._batches import Listener

ROWS = 40_000
QUESTION = Question(column="y", labels=range(6), epsilon=1.0, ids=("id",), groups=("g",))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = {"id": rng.permutation(ROWS), "y": rng.integers(0, 6, ROWS).astype(np.int8), "g": ["p", "q"] * (ROWS // 2)}
    pq.write_table(pa.table(table), "in.parquet")
    return tmp_path


def release(target: str = "out.csv", question: Question = QUESTION, **options: Any) -> Any:
    return randomize_table(
        "in.parquet", target, question, **{"dataset": "d", "ledger": "ledger.sqlite", "budget": 1.0, **options}
    )


def forked(target: str) -> int:
    """Release in another process that has everything loaded. Its exit code is that of the release."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            release(target, listener=Listener())
            code = 0
        except (AlreadySpent, InvalidInput):
            code = 5
        finally:
            os._exit(code)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def staged(target: str) -> list[bytes]:
    """Whole lines that a run that was killed has staged."""
    path = Path(f".{target}.release", "table")
    return path.read_bytes().split(b"\n")[1:-1] if path.is_file() else []


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_release_that_is_killed_at_any_moment_goes_on_with_the_same_noise(rounds: int) -> None:
    begun = time.perf_counter()
    assert exit_code(forked("first.csv")) == 0
    whole, reached = time.perf_counter() - begun, set()
    for number in range(rounds):
        Path("ledger.sqlite").unlink()
        target = f"out{number}.csv"
        drawn = []
        for _ in range(3):
            child = forked(target)
            time.sleep(random.Random(number).uniform(0, 1.1) * whole)
            os.kill(child, signal.SIGKILL)
            exit_code(child)
            drawn.append(staged(target))
            entries = Ledger("ledger.sqlite").entries()
            reached |= {entry.status for entry in entries}
            assert len(entries) <= 1
            if Path(target).exists():
                # A file under the final name is complete and described.
                load_release(f"{target}.release.json").verify_table(target)
        assert exit_code(forked(target)) in (0, 5)
        record = load_release(f"{target}.release.json")
        record.verify_table(target)
        final = Path(target).read_bytes().split(b"\n")[1:-1]
        assert len(final) == record.rows == ROWS
        assert all(part == final[: len(part)] for part in drawn)
        (entry,) = Ledger("ledger.sqlite").entries()
        assert (entry.state, entry.key, entry.epsilon, entry.id) == (State.COMPLETE, None, 1, record.release)
        assert not list(Path().glob(".out*"))
    if rounds > 100:
        assert reached == {"charged", "drawn", "complete"}


@pytest.mark.parametrize("processes", [4, pytest.param(32, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("same", [True, False])
def test_racing_processes_pay_once_and_one_output_wins(processes: int, same: bool) -> None:
    children = [forked("out.csv" if same else f"out{i}.csv") for i in range(processes)]
    codes = [exit_code(child) for child in children]
    assert codes.count(0) == 1
    assert set(codes) <= {0, 5}
    (entry,) = Ledger("ledger.sqlite").entries()
    assert entry.state == "complete"
    (table,) = Path().glob("out*.csv")
    record = load_release(f"{table}.release.json")
    record.verify_table(table)
    assert record.release == entry.id


def test_a_signal_says_what_was_released_and_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(_files.FileSink, "write", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
            with pytest.raises(Interrupted, match="stopped by SIGTERM: nothing was released") as stopped:
                release()
        (note,) = stopped.value.__notes__
        assert isinstance(note, SpentNote)
        assert "epsilon 1 is charged to dataset 'd', once" in note
        assert not list(Path().glob("*out*"))

        def interrupted(*given: Any, **options: Any) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            original(*given, **options)

        original = _files.publish
        with monkeypatch.context() as patched:
            patched.setattr(_files, "publish", interrupted)
            with pytest.raises(Interrupted, match="the release was complete by then") as stopped:
                release()
        assert stopped.value.released
    finally:
        signal.signal(signal.SIGTERM, before)
    load_release("out.csv.release.json").verify_table("out.csv")
    # The next command completes the ledger.
    assert release().release == load_release("out.csv.release.json").release
    assert [entry.status for entry in Ledger("ledger.sqlite").entries()] == ["complete"]


@pytest.mark.parametrize("moment", range(1, 12))
def test_a_disk_that_is_full_at_any_moment_leaves_nothing_half(moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    flush, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == moment:
            raise OSError(errno.ENOSPC, "No space left on device")
        flush(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        try:
            release()
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017
            assert not Path("out.csv").exists() or len(calls) > 3
    record = release() if not calls or len(calls) >= moment else load_release("out.csv.release.json")
    record.verify_table("out.csv")
    assert len(Ledger("ledger.sqlite").entries()) == 1


def test_an_input_that_changes_between_the_passes_is_not_released() -> None:
    def change(stage: str) -> None:
        if stage == "drawing labels":
            table = pq.read_table("in.parquet")
            ids = table["id"].to_numpy().copy()
            ids[[0, 1]] = ids[[1, 0]]
            pq.write_table(table.set_column(0, "id", pa.array(ids)), "in.parquet")

    assert_error("changed while it was read", release, listener=Listener(stage=change), error=InputChanged)
    assert not list(Path().glob("out*"))
    assert_error("began with other labels or ids", release, error=InputChanged)


def test_what_is_under_way_or_was_left_is_not_overwritten() -> None:
    with _files.staging_folder(Path("out.csv")), pytest.raises(InvalidInput, match="another process prepares"):
        release()
    assert not Path("ledger.sqlite").exists() or not Ledger("ledger.sqlite").entries()
    Path(".out.csv.release").mkdir()
    Path(".out.csv.release", "table").write_text("what a killed run has left")
    release()
    Path("out.csv").unlink()
    assert_error("left over from another release", release, again=True, budget=None)
    Path(".link.csv.release").symlink_to(".")
    assert_error("is a symbolic link", release, "link.csv")
    # As on a full disk, the lock can never be taken.
    Path(".full.csv.release", "lock").mkdir(parents=True)
    assert_error("full.csv.release cannot be locked", release, "full.csv", error=OSError)
    assert len(Ledger("ledger.sqlite").entries()) == 1


def test_a_release_that_was_published_is_completed_for_its_own_dataset_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def publish_and_stop(_: Ledger, __: object, publish: Callable[[], object]) -> None:
        publish()
        raise OSError("stopped")

    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "complete", publish_and_stop)
        assert_error("stopped", release, error=OSError)
    assert_error("exists", release, dataset="e")
    assert load_release("out.csv.release.json") == release()
    assert [(entry.dataset, entry.status) for entry in Ledger("ledger.sqlite").entries()] == [("d", "complete")]


@pytest.mark.parametrize("target", ["out.csv", "out"])
def test_an_output_is_replaced_as_a_whole_by_force(target: str) -> None:
    Path("folder").mkdir()
    Path("in.parquet").rename("folder/in.parquet")
    Path("folder").rename("in.parquet")
    first = release(target, budget=None)
    with pytest.raises(InvalidInput, match=r"exists: choose another name, or overwrite it with force=True"):
        release(target, again=True, budget=None)
    second = release(target, again=True, force=True, budget=None)
    assert first.release != second.release
    second.verify_table(target)
    assert load_release(f"{target}.release.json") == second
    assert len(list(Path().iterdir())) == 4
