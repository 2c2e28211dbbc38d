"""The ledger: charged before anything is drawn, exactly, once, and never refunded."""

import json
import os
import re
import sqlite3
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asserting import assert_error
from commands import invoke

import optrand
from optrand.accounting import Charge, Ledger, Spent, State, default_path
from optrand.accounting._ledger import check_name
from optrand.errors import AlreadySpent, InputChanged, InvalidFile, InvalidInput, MissingExtra, OverBudget


def charge(dataset: str = "census", column: str = "weeks", epsilon: Any = 1, **changed: str) -> Charge:
    given = {"question": "q", "input": "i", "output": "out.csv", **changed}
    return Charge(
        dataset=dataset, column=column, epsilon=Fraction(epsilon), prior_epsilon=Fraction(epsilon) / 20, **given
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


SERVER = os.environ.get("OPTRAND_TEST_SERVER")
"""URL of an empty database of PostgreSQL, such as postgresql://postgres@127.0.0.1:5433/empty."""


@pytest.fixture
def url() -> Iterator[str]:
    """A schema of its own for each test, for ledgers on a server."""
    if SERVER is None:
        pytest.skip("OPTRAND_TEST_SERVER names no database")
    psycopg = pytest.importorskip("psycopg")
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(SERVER, autocommit=True) as database:
        database.execute(f"CREATE SCHEMA {name}")
        yield f"{SERVER}?options=-csearch_path%3D{name}"
        database.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["file", "server"])
def where(request: pytest.FixtureRequest) -> str | Path:
    """A place for a ledger."""
    found: str | Path = request.getfixturevalue({"file": "path", "server": "url"}[request.param])
    return found


@pytest.fixture
def ledger(where: str | Path) -> Ledger:
    return Ledger(where)


def finish(ledger: Ledger, *charges: Charge, **options: Any) -> list[Charge]:
    begun = ledger.begin(charges, **options)
    ledger.complete(begun)
    return begun


def test_a_second_release_is_refused_and_says_what_was_spent(ledger: Ledger) -> None:
    finish(ledger, charge())
    with pytest.raises(AlreadySpent, match=r"'weeks' of dataset 'census'.*epsilon 1 in total.*again=True") as told:
        ledger.begin([charge()])
    assert told.value.spent == Spent(1)
    for other in (charge(question="r"), charge(input="j"), charge(output="elsewhere.csv")):
        assert_error(None, ledger.begin, [other], error=AlreadySpent)
    assert ledger.spent("census", "weeks") == Spent(1)
    assert len(ledger.entries()) == 1


def test_another_release_is_not_advised_if_it_would_exceed_the_budget(ledger: Ledger) -> None:
    finish(ledger, charge())
    with pytest.raises(AlreadySpent, match=r"to epsilon 2, and would exceed the budget of epsilon 1 of the dataset$"):
        ledger.begin([charge()], budget=1)
    assert_error("again=True", ledger.begin, [charge()], budget=2, error=AlreadySpent)


def test_a_budget_that_is_no_number_is_refused_by_its_name(ledger: Ledger) -> None:
    for call in (
        lambda: ledger.begin([charge()], budget="5"),  # type: ignore[arg-type]
        lambda: optrand.randomize([0, 1], 1.0, labels=[0, 1], dataset="d", ledger=ledger, budget="5"),
    ):
        assert_error(r"^budget is of type str, expected a Fraction or a float", call)


def failing(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a disk fail as soon as a statement was carried out."""

    class Failing(sqlite3.Connection):
        def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
            done = super().execute(query, *values)
            if statement in query:
                raise sqlite3.OperationalError("disk I/O error")
            return done

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Failing))


def test_a_disk_that_fails_after_the_charge_is_said_and_the_same_call_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"labels": [0, 1], "dataset": "census", "ledger": Ledger(path)}
    with monkeypatch.context() as patched:
        failing("COMMIT", patched)
        with pytest.raises(OSError, match="disk I/O error") as told:
            optrand.randomize([0, 1] * 50, 1.0, **options)
    (note,) = told.value.__notes__
    assert note.startswith("epsilon 1 may be charged to dataset 'census', once. Once the cause is gone, the same")
    assert Ledger(path).spent("census") == Spent(1)
    optrand.randomize([0, 1] * 50, 1.0, **options)
    assert [entry.status for entry in Ledger(path).entries()] == ["complete"]


def test_a_log_that_cannot_be_emptied_loses_no_release(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path)
    failing("wal_checkpoint", monkeypatch)
    record = optrand.randomize([0, 1] * 50, 1.0, labels=[0, 1], dataset="census", ledger=ledger).record
    assert [(entry.id, entry.status) for entry in ledger.entries()] == [(record.release, "complete")]


def test_again_adds_epsilons_and_draws_with_another_key(ledger: Ledger) -> None:
    keys = set()
    for number in range(1, 4):
        (begun,) = finish(ledger, charge(), again=number > 1)
        keys.add(begun.key)
        assert ledger.spent("census").epsilon == number
    assert len(keys) == 3


def test_a_budget_caps_exactly_over_all_columns(ledger: Ledger) -> None:
    tenth, budget = Fraction(1, 10), Spent(Fraction(3, 10))
    for column in "abc":
        finish(ledger, charge(column=column, epsilon=tenth), budget=budget)
    with pytest.raises(OverBudget, match=r"together epsilon 0\.3\d+, over the budget of epsilon 0\.3"):
        ledger.begin([charge(column="d", epsilon=Fraction(1, 10**30))], budget=budget)
    finish(ledger, charge("another", epsilon=tenth), budget=0.3)
    assert ledger.spent("census") == budget


def test_columns_are_charged_together_or_not_at_all(ledger: Ledger) -> None:
    both = [charge(column=name, epsilon=Fraction(6, 10)) for name in "ab"]
    assert_error(r"costs epsilon 1\.2", ledger.begin, both, budget=Spent(1), error=OverBudget)
    finish(ledger, both[1])
    assert_error("column 'b'", ledger.begin, both, error=AlreadySpent)
    assert ledger.spent("census") == Spent(0.6)


def test_the_same_request_goes_on_with_its_key_and_record_at_no_cost(ledger: Ledger, where: str | Path) -> None:
    (begun,) = ledger.begin([charge()])
    assert (begun.status, begun.record) == ("charged", None)
    assert ledger.draw(begun, "first record") == "first record"
    (again,) = Ledger(where).begin([charge()])
    assert (again.id, again.key, again.record, again.state) == (begun.id, begun.key, "first record", State.DRAWN)
    # The second process draws with the entries of the first.
    assert ledger.draw(begun, "second record") == "first record"
    for other, error in ((charge(input="j"), InputChanged), (charge(question="r"), AlreadySpent)):
        assert_error(None, ledger.begin, [other], error=error)
    # Another release was requested, not this one.
    (second,) = ledger.begin([charge()], again=True)
    assert second.id != begun.id
    ledger.complete([again])
    assert (ledger.begin([charge()], again=True)[0].id, ledger.spent("census")) == (second.id, Spent(2))


def test_a_complete_release_has_no_key_and_is_completed_once(ledger: Ledger, path: Path) -> None:
    (begun,) = ledger.begin([charge()])
    ledger.draw(begun, "record")
    published = []
    ledger.complete([begun], lambda: published.append(1))
    for late in (lambda: ledger.complete([begun], lambda: published.append(2)), lambda: ledger.draw(begun, "record")):
        assert_error("another run", late, error=AlreadySpent)
    assert published == [1]
    (entry,) = ledger.entries()
    assert (entry.state, entry.key, entry.record, entry.open) == (State.COMPLETE, None, None, False)
    assert all(begun.key not in file.read_bytes() for file in path.parent.glob("ledger*"))  # type: ignore[operator]
    assert not path.with_name("ledger.sqlite-wal").exists()


def test_columns_are_complete_together_or_not_at_all(ledger: Ledger) -> None:
    begun = ledger.begin([charge(column=name) for name in "ab"])
    ledger.withdraw(begun[1].id)
    published = []
    assert_error("another run", ledger.complete, begun, lambda: published.append(1), error=AlreadySpent)
    assert not published
    first, second = ledger.entries()
    assert (first.state, first.key, first.open) == (State.CHARGED, begun[0].key, True)
    assert (second.status, second.key) == ("charged, withdrawn", None)


def test_a_publication_that_fails_leaves_the_release_to_go_on(ledger: Ledger) -> None:
    (begun,) = ledger.begin([charge()])

    def fail() -> None:
        raise OSError("the disk is full")

    assert_error("the disk is full", ledger.complete, [begun], fail, error=OSError)
    assert ledger.begin([charge()])[0].key == begun.key


def test_nothing_is_refunded(ledger: Ledger) -> None:
    (begun,) = ledger.begin([charge()])
    ledger.withdraw(begun.id)
    assert_error("no unfinished release", ledger.withdraw, begun.id)
    assert ledger.entries()[0].status == "charged, withdrawn"
    assert ledger.spent("census", "weeks") == Spent(1)
    assert_error(None, ledger.begin, [charge()], error=AlreadySpent)


def test_any_number_of_ledgers_share_a_folder(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir(mode=0o755)
    for name in "abc":
        finish(Ledger(tmp_path / name), charge())
    for name in "abc":
        assert Ledger(tmp_path / name).spent("census") == Spent(1)
    assert len({Ledger(tmp_path / name).digest_key for name in "abc"}) == 3


def test_threads_take_turns(ledger: Ledger) -> None:
    """64 charges of a hundredth by eight threads fill a budget of three tenths exactly."""
    refused = []

    def run(thread: int) -> None:
        for number in range(8):
            try:
                finish(ledger, charge(column=f"{thread} {number}", epsilon=Fraction(1, 100)), budget=0.3)
            except OverBudget:
                refused.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(ledger.entries()), len(refused)) == (30, 34)
    assert ledger.spent("census").epsilon == Fraction(3, 10)


def test_cost_does_not_grow_with_the_number_of_releases(path: Path) -> None:
    ledger = Ledger(path)
    finish(ledger, charge())
    with closing(sqlite3.connect(path)) as database, database:
        database.executemany(
            "INSERT INTO release SELECT ?, dataset, ?, epsilon, prior_epsilon, question, input, output, again, begun, "
            "state, NULL, NULL FROM release LIMIT 1",
            [(str(number), str(number)) for number in range(5000)],
        )
        for query in ("dataset = 'census' AND \"column\" = 'weeks' AND key IS NOT NULL", "id = '7'"):
            steps = database.execute(f"EXPLAIN QUERY PLAN SELECT * FROM release WHERE {query}").fetchall()  # noqa: S608
            assert all("USING INDEX" in step[-1] for step in steps)
    finish(ledger, charge(), again=True)
    assert ledger.spent("census", "weeks") == Spent(2)


@pytest.mark.parametrize("content", [b"label,count\n0,9173\n", b"SQLite format 2", b"\x00" * 4096])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_another_file_is_refused_and_left_as_it_is(path: Path, content: bytes, mode: int) -> None:
    path.write_bytes(content)
    path.chmod(mode)
    with pytest.raises(InvalidFile, match="not a ledger") as told:
        Ledger(path)
    assert "9173" not in str(told.value)
    assert (path.read_bytes(), [each.name for each in path.parent.iterdir()]) == (content, [path.name])


def test_the_database_of_another_program_and_a_damaged_one_are_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE people (label INTEGER)")
    path.chmod(0o600)
    assert_error("another program", Ledger, path, error=InvalidFile)
    path.unlink()
    finish(Ledger(path), charge())
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(4096)
    path.write_bytes(data)
    assert_error("damaged", Ledger(path).entries, error=InvalidFile)


def test_a_ledger_that_is_removed_meanwhile_does_not_begin_anew(path: Path) -> None:
    ledger = Ledger(path)
    finish(ledger, charge())
    path.unlink()
    assert_error("cannot be used", ledger.begin, [charge()], error=OSError)
    assert not path.exists()


def test_a_ledger_that_others_may_read_or_a_missing_folder_is_refused(path: Path) -> None:
    Ledger(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert_error("chmod 600", Ledger, path, error=InvalidFile)
    assert_error("is not a folder", Ledger, path.parent / "none" / "ledger.sqlite")
    assert_error("is not a file", Ledger, path.parent, error=InvalidFile)


def test_the_default_is_in_the_folder_of_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "optrand" / "ledger.sqlite"
    Ledger()
    assert default_path().parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_path() == Path.home() / ".local/state/optrand/ledger.sqlite"


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "a\x00", "\ud800", "x" * 201, 7, None])
def test_names_are_short_and_printable(path: Path, name: Any) -> None:
    for call in (lambda: check_name(name, "the dataset"), lambda: Ledger(path).spent(name)):
        assert_error(None, call)


def test_composed_and_decomposed_names_are_one() -> None:
    assert check_name("Zu\u0308rich", "the dataset") == check_name("Z\u00fcrich", "the dataset")


def test_names_that_differ_in_case_are_one(path: Path) -> None:
    options: dict[str, Any] = {"labels": [0, 1], "ledger": path}
    optrand.randomize([0, 1] * 50, 1.0, dataset="Census", **options)
    assert_error(None, optrand.randomize, [0, 1] * 50, 1.0, dataset="CENSUS", **options, error=AlreadySpent)
    assert Ledger(path).spent("Census") == Ledger(path).spent("CENSUS", "labels") == Spent(1)
    assert len(Ledger(path).entries("cEnsus")) == 1
    assert json.loads(invoked("--ledger", path, "--dataset", "census", "--json").stdout)["totals"] == [
        {"dataset": "census", "column": "labels", "epsilon": "1"}
    ]


invoked = partial(invoke, "ledger", code=0)


def test_the_command_lists_and_withdraws(ledger: Ledger, where: str | Path, tmp_path: Path) -> None:
    finish(ledger, charge(epsilon=Fraction(1, 3)))
    (begun,) = ledger.begin([charge(column="other")])
    assert ledger.find_unfinished(begun.id) == begun
    told = invoked("--ledger", where).stdout
    assert "census, column 'weeks': epsilon 0.33333333333333334 (prior" in told
    assert "total of census, all columns: epsilon 1.3333333333333334" in told
    answer = json.loads(invoked("--ledger", where, "--withdraw", begun.id, "--json").stdout)
    assert [entry["state"] for entry in answer["entries"]] == ["complete", "charged, withdrawn"]
    assert answer["totals"][-1]["epsilon"] == "1"
    assert ledger.find_unfinished(begun.id) is None
    optrand.randomize([0, 1] * 50, 1.0, labels=[0, 1], dataset="other", ledger=ledger)
    assert ", complete, in memory, release " in invoked("--ledger", where, "--dataset", "other").stdout
    assert "nothing was spent on dataset 'x'" in invoked("--ledger", where, "--dataset", "x").stdout
    assert "nothing was spent" in invoked("--ledger", tmp_path / "none.sqlite").stdout
    assert not (tmp_path / "none.sqlite").exists()
    for release in (begun.id, "", ".", " "):
        invoked("--ledger", where, "--withdraw", release, code=2)
    (tmp_path / "other").write_bytes(b"no ledger")
    invoked("--ledger", tmp_path / "other", code=3)


def test_a_server_that_is_not_there_is_an_error_of_the_run() -> None:
    pytest.importorskip("psycopg")
    url = "postgresql://somebody:s%40cret@127.0.0.1:1/none"
    with pytest.raises(OSError, match=r"ledger 127.0.0.1/none cannot be used: .*port 1 failed: Connection refused$"):
        Ledger(url)
    told = invoke("ledger", "--ledger", url)
    assert (told.exit_code, "cret" in told.output) == (1, False)


def test_the_reason_of_a_server_is_said_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")

    def fail(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("no s%40cret or s@cret\nDETAIL: more")

    monkeypatch.setattr(psycopg, "connect", fail)
    with pytest.raises(OSError, match=r"cannot be used: no \*\*\* or \*\*\*$"):
        Ledger("postgresql://somebody:s%40cret@127.0.0.1/none")


@pytest.mark.parametrize("scheme", ["mysql", "postgresql+psycopg", "file", "PostgreSQL"])
def test_another_kind_of_url_is_refused_without_its_password(scheme: str) -> None:
    with pytest.raises(InvalidInput, match=rf"a URL of '{re.escape(scheme)}', expected postgresql://") as caught:
        Ledger(f"{scheme}://somebody:s3cret@127.0.0.1/none")
    assert "s3cret" not in str(caught.value)


def test_a_server_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert_error(r"optrand\[server\]", Ledger, "postgresql://localhost/none", error=MissingExtra)


def test_a_release_is_charged_on_a_server_and_goes_on(where: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"labels": [0, 1], "dataset": "census", "ledger": where}
    with monkeypatch.context() as patched:
        patched.setattr("optrand.release._batches.Sink.close", lambda *_: 1 / 0)
        assert_error(None, optrand.randomize, [0, 1] * 50, 1.0, **options, error=ZeroDivisionError)
    (broken,) = Ledger(where).entries("census")
    assert (broken.state, broken.open) == (State.DRAWN, True)
    record = optrand.randomize([0, 1] * 50, 1.0, **options).record
    (entry,) = Ledger(where).entries()
    assert (entry.id, entry.state, entry.key) == (record.release, State.COMPLETE, None)
    assert broken.id == record.release
    assert_error(None, optrand.randomize, [0, 1] * 50, 1.0, **options, error=AlreadySpent)
