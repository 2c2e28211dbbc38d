"""The ledger: charged before anything is drawn, whatever happens; each release begun once; edits noticed."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optrand.accounting import Ledger, Request, Spent, Vault, default_path
from optrand.accounting.charge import Charge, State
from optrand.cli import app
from optrand.errors import AlreadySpent, InputChanged, InvalidFile, InvalidInput, OptrandError, OverBudget

PARTS = {"prior": Spent(Fraction(1, 20)), "labels": Spent(Fraction(19, 20))}
DIGESTS = [str(i) * 64 for i in range(10)]


def asked(dataset="census", column="weeks", *, parts=PARTS, configuration=0, digest=1, **options):
    return Request(
        dataset, column, parts, DIGESTS[configuration], DIGESTS[digest], options.pop("output", "out.csv"), **options
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def finished(ledger, request, **options):
    with ledger.begin(request, **options) as entry:
        entry.keep_mechanism(DIGESTS[2])
        entry.complete()
    return entry


# ------------------------------------------------------------------------------------------------------- what it costs


def test_a_second_release_is_refused_and_says_what_was_spent(path):
    with Ledger.open(path) as ledger:
        finished(ledger, asked())
        with pytest.raises(
            AlreadySpent, match=r"'weeks' of dataset 'census'.*epsilon 1 in total.*--spend-again"
        ) as told:
            ledger.begin(asked())
        assert told.value.spent == Spent(1)
        for other in (asked(configuration=3), asked(digest=4), asked(output="elsewhere.csv")):
            with pytest.raises(AlreadySpent):
                ledger.begin(other)
        assert ledger.spent("census", "weeks") == Spent(1)


def test_again_adds_epsilons_by_basic_composition_and_draws_with_another_key(path):
    with Ledger.open(path) as ledger:
        keys = set()
        for i in range(1, 4):
            with ledger.begin(asked(), again=i > 1) as entry:
                keys.add(entry.key)
                entry.keep_mechanism(DIGESTS[2])
                entry.complete()
            assert ledger.spent("census", "weeks").epsilon == i
        assert len(keys) == 3


def test_a_budget_caps_exactly_over_all_columns(path):
    tenth = {"labels": Spent(Fraction(1, 10))}
    budget = Spent(Fraction(3, 10))
    with Ledger.open(path) as ledger:
        for column in ("a", "b", "c"):
            finished(ledger, asked(column=column, parts=tenth), budget=budget)
        assert ledger.spent("census") == budget
        least = {"labels": Spent(Fraction(1, 10**30))}
        with pytest.raises(OverBudget, match=r"together epsilon 0\.3\d+, over the budget of epsilon 0\.3"):
            ledger.begin(asked(column="d", parts=least), budget=budget)
        assert len(ledger.entries()) == 3
        finished(ledger, asked("another", parts=tenth), budget=budget)
        with pytest.raises(OverBudget):
            ledger.begin(asked("third", parts={"labels": Spent(Fraction(1, 10), Fraction(1, 10**9))}), budget=budget)


def test_ten_floats_of_a_tenth_are_more_than_one(path):
    with Ledger.open(path) as ledger:
        for i in range(9):
            finished(ledger, asked(column=str(i), parts={"labels": Spent(0.1)}), budget=Spent(1))
        with pytest.raises(OverBudget, match=r"1\.0000000000000001, over the budget of epsilon 1"):
            ledger.begin(asked(parts={"labels": Spent(0.1)}), budget=Spent(1))


def test_nothing_is_refunded(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked()) as entry:
            entry.withdraw()
        assert ledger.spent("census", "weeks") == Spent(1)
        with pytest.raises(AlreadySpent):
            ledger.begin(asked())


# ----------------------------------------------------------------------------------------------------- going on with it


def test_the_same_request_goes_on_with_its_key_and_prior_at_no_cost(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked()) as entry:
            key = entry.key
            entry.keep_prior([3, -1, 10**40])
        with ledger.begin(asked()) as again:
            assert (again.release, again.key, again.prior) == (entry.release, key, (3, -1, 10**40))
            assert again.state == State.PRIOR
            again.keep_prior([3, -1, 10**40])
            with pytest.raises(InputChanged, match="priors"):
                again.keep_prior([3, -1, 7])
            again.keep_mechanism(DIGESTS[3])
            with pytest.raises(InputChanged, match="mechanisms"):
                again.keep_mechanism(DIGESTS[4])
            again.publishing('{"table": "staged"}')
        with ledger.resume(entry.release) as last:
            assert json.loads(last.charge.journal) == {"table": "staged"}
            last.complete()
        assert ledger.spent("census") == Spent(1)
        with pytest.raises(InvalidInput, match="no unfinished"):
            ledger.resume(entry.release)


def test_another_input_or_configuration_does_not_go_on(path):
    with Ledger.open(path) as ledger:
        ledger.begin(asked()).close()
        with pytest.raises(InputChanged, match="other labels, ids or order"):
            ledger.begin(asked(digest=5))
        with pytest.raises(AlreadySpent, match="unfinished"):
            ledger.begin(asked(configuration=5))
        with ledger.begin(asked(digest=5), again=True) as other:
            key = other.key
        with ledger.begin(asked(digest=5), again=True) as same:
            assert same.key == key
        assert ledger.spent("census") == Spent(2)


def test_system_entropy_pays_again(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked(resumable=False)) as entry, pytest.raises(InvalidInput, match="no key"):
            entry.key  # noqa: B018
        with pytest.raises(AlreadySpent):
            ledger.begin(asked(resumable=False))
        ledger.begin(asked(resumable=False), again=True).close()
        assert ledger.spent("census") == Spent(2)


def test_groups_keep_a_prior_and_a_mechanism_each(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked()) as entry:
            entry.keep_priors({"a": [1, 2], "b": [0, 5]})
            entry.keep_mechanisms({"a": DIGESTS[3]})
            entry.keep_mechanisms({"b": DIGESTS[4]})
            with pytest.raises(InvalidInput, match="solved"):
                entry.keep_priors({"c": [1, 1]})
        (charge,) = ledger.entries()
        assert charge.priors == {"a": (1, 2), "b": (0, 5)}
        assert charge.mechanisms == {"a": DIGESTS[3], "b": DIGESTS[4]}


def test_steps_are_taken_in_order_and_not_after_the_end(path):
    with Ledger.open(path) as ledger:
        entry = ledger.begin(asked())
        for step in (entry.complete, lambda: entry.publishing("")):
            with pytest.raises(InvalidInput, match="in order"):
                step()
        entry.keep_mechanism(DIGESTS[2])
        entry.complete()
        for step in (entry.withdraw, lambda: entry.key, lambda: entry.keep_prior([1])):
            with pytest.raises(InvalidInput, match="nothing more is drawn"):
                step()


def test_a_closed_entry_writes_nothing(path):
    with Ledger.open(path) as ledger:
        entry = ledger.begin(asked())
        entry.close()
        with pytest.raises(InvalidInput, match="closed"):
            entry.keep_prior([1])


# ------------------------------------------------------------------------------------------------------------- the keys


def test_keys_are_destroyed_at_the_end_unless_kept(path):
    with Ledger.open(path) as ledger:
        gone = finished(ledger, asked())
        with ledger.begin(asked(), again=True) as kept:
            kept.key  # noqa: B018
            kept.keep_mechanism(DIGESTS[2])
            kept.complete(keep_key=True)
    vault = Vault(path.parent / "keys")
    Ledger.open(path).close()
    assert not vault.has_key(gone.release)
    assert vault.has_key(kept.release)


def test_a_key_that_outlived_its_release_is_destroyed_when_the_ledger_is_opened(path, monkeypatch):
    with Ledger.open(path) as ledger, monkeypatch.context() as patched:
        entry = ledger.begin(asked())
        entry.key  # noqa: B018
        patched.setattr(Vault, "destroy", lambda *_: None)
        entry.withdraw()
    assert Vault(path.parent / "keys").has_key(entry.release)
    Ledger.open(path).close()
    assert not Vault(path.parent / "keys").has_key(entry.release)


def test_a_lost_key_is_not_replaced_once_something_is_kept(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked()) as entry:
            first = entry.key
            (path.parent / "keys" / f"{entry.release}.key").unlink()
            # Nobody has seen anything drawn with it.
            assert entry.key != first
            entry.keep_prior([1, 2])
        (path.parent / "keys" / f"{entry.release}.key").unlink()
        with ledger.begin(asked()) as entry, pytest.raises(InvalidFile, match="lost"):
            entry.key  # noqa: B018


def test_a_given_key_is_not_private_and_stays_the_same(path):
    with Ledger.open(path) as ledger:
        with ledger.begin(asked(), key=bytes(32)) as entry:
            assert (entry.key, entry.private) == (bytes(32), False)
        with pytest.raises(InvalidInput, match="the key is not that"):
            ledger.begin(asked(), key=bytes(31) + b"1")
        with ledger.begin(asked(), key=bytes(32)) as entry:
            assert entry.key == bytes(32)
        with ledger.begin(asked(column="other")) as entry:
            assert entry.private
        with pytest.raises(InvalidInput, match="the key is not that"):
            ledger.begin(asked(column="other"), key=bytes(32))
        with pytest.raises(InvalidInput, match="31 bytes"):
            ledger.begin(asked(column="third"), key=bytes(31))
        assert len(ledger.entries()) == 2


def test_subkeys_are_of_the_release_and_its_column(path):
    with Ledger.open(path) as ledger:
        one, other = (ledger.begin(asked(column=column), key=bytes(32)) for column in ("a", "b"))
        subkeys = [entry.subkey(purpose, group=group) for entry in (one, other) for purpose in "pl" for group in "xy"]
        assert len(set(subkeys)) == 8


def test_files_are_for_their_owner_alone(path):
    umask = os.umask(0)
    try:
        with Ledger.open(path) as ledger:
            entry = ledger.begin(asked())
            entry.key  # noqa: B018
            files = [each for each in path.parent.rglob("*") if each.is_file()]
            assert {each.name.rsplit(".")[-1] for each in files} >= {"sqlite", "key", "lock", "secret", "sqlite-wal"}
            assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
        assert stat.S_IMODE((path.parent / "keys").stat().st_mode) == 0o700
    finally:
        os.umask(umask)


def test_the_default_is_in_the_folder_of_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Ledger.open().close()
    assert default_path() == tmp_path / "state" / "optrand" / "ledger.sqlite"
    assert stat.S_IMODE(default_path().parent.stat().st_mode) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_path() == Path.home() / ".local" / "state" / "optrand" / "ledger.sqlite"


def test_the_ledger_holds_no_key_and_no_plain_secret(path):
    with Ledger.open(path) as ledger:
        entry = ledger.begin(asked())
        secrets = [entry.key, ledger.digest_key, (path.parent / "keys" / "ledger.secret").read_bytes()]
        ledger.close()
    content = b"".join(each.read_bytes() for each in path.parent.glob("ledger.sqlite*"))
    assert b"census" in content
    for secret in secrets:
        assert secret not in content
        assert secret.hex().encode() not in content


# --------------------------------------------------------------------------------------------------- killed and racing

REQUEST = """
import os, sys, time
from fractions import Fraction
from pathlib import Path
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from optrand import accounting
from optrand.accounting import Ledger, Request, Spent
from optrand.errors import AlreadySpent
folder = Path(sys.argv[1])
parts = {"prior": Spent(Fraction(1, 20)), "labels": Spent(Fraction(19, 20))}
request = Request("census", "weeks", parts, "0" * 64, "1" * 64, "out.csv")
"""

KILLED = """
room = os.path.dirname(accounting.__file__)

def release(folder, stop):
    left = stop
    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(room):
            return None
        left -= event == "line"
        if left == 0:
            os._exit(9)
        return trace
    drawn = folder / "drawn"
    if stop:
        sys.settrace(trace)
    with Ledger.open(folder / "ledger.sqlite") as ledger, ledger.begin(request) as entry:
        prior = entry.subkey("prior").hex()
        with drawn.open("a") as file:
            file.write(f"prior {entry.release} {prior}\\n")
        entry.keep_prior([ord(letter) for letter in prior])
        entry.keep_mechanism("2" * 64)
        labels = entry.subkey("labels").hex()
        with drawn.open("a") as file:
            file.write(f"labels {entry.release} {labels}\\n")
        entry.publishing("{}")
        entry.complete()

def run(folder, stop):
    child = os.fork()
    if not child:
        try:
            release(folder, stop)
        except AlreadySpent:
            os._exit(5)
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

stop, tried, code = 1, 0, 9
while code == 9:
    here = folder / str(stop)
    here.mkdir()
    code = run(here, stop)
    with Ledger.open(here / "ledger.sqlite") as ledger:
        spent, ended = ledger.spent("census", "weeks"), any(not charge.state.open for charge in ledger.entries())
    assert spent == Spent(1) or not (here / "drawn").exists(), stop
    assert run(here, 0) == (5 if ended else 0), stop
    with Ledger.open(here / "ledger.sqlite") as ledger:
        (charge,) = ledger.entries()
        assert (charge.state, ledger.spent("census")) == ("complete", Spent(1)), stop
    assert not list((here / "keys").glob("*.key")), stop
    # However often, what is drawn for one purpose is drawn from one key.
    assert len(set((here / "drawn").read_text().splitlines())) == 2, stop
    stop, tried = stop + int(sys.argv[2]), tried + 1
print(tried, stop)
"""


def test_killed_between_any_two_statements_it_goes_on_and_never_counts_less_than_was_drawn(tmp_path):
    """Every 53rd of all statements that a release runs here; each time another process then finishes the release."""
    script = [sys.executable, "-c", REQUEST + KILLED, tmp_path, "53"]
    run = subprocess.run(script, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    tried, statements = map(int, run.stdout.split()[-2:])
    assert tried > 10
    assert statements > 500


RACE = """
go = folder / "go"
for _ in range(32):
    if not os.fork():
        while not go.exists():
            time.sleep(0.01)
        told = "won"
        with Ledger.open(folder / "ledger.sqlite") as ledger:
            try:
                with ledger.begin(request) as entry:
                    entry.keep_mechanism("2" * 64)
                    entry.complete()
            except AlreadySpent:
                told = "told"
        os.write(1, f"{told}\\n".encode())
        os._exit(0)
go.touch()
for _ in range(32):
    os.wait()
"""


def test_of_32_processes_one_wins(tmp_path):
    run = subprocess.run([sys.executable, "-c", REQUEST + RACE, tmp_path], capture_output=True, text=True, check=True)
    assert sorted(run.stdout.split()) == ["told"] * 31 + ["won"]
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert [charge.state for charge in ledger.entries()] == [State.COMPLETE]


def test_of_32_threads_one_wins(path):
    with Ledger.open(path) as ledger:

        def begun(_):
            try:
                return ledger.begin(asked())
            except AlreadySpent:
                return None

        with ThreadPoolExecutor(32) as pool:
            entries = [each for each in pool.map(begun, range(32)) if each]
        assert len(entries) == 1
        assert ledger.spent("census") == Spent(1)


def test_a_fork_may_not_write(path):
    with Ledger.open(path) as ledger:
        child = os.fork()
        if not child:
            try:
                ledger.begin(asked())
            except InvalidInput:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ledger.begin(asked()).close()


# ------------------------------------------------------------------------------------------------ damaged and forged


@pytest.fixture
def written(path):
    """A closed ledger of a finished and an unfinished release."""
    with Ledger.open(path) as ledger:
        finished(ledger, asked())
        with ledger.begin(asked(column="income")) as entry:
            entry.key  # noqa: B018
            entry.keep_prior(list(range(200)))
    return path


def test_random_damage_is_refused_or_does_no_harm(written, tmp_path):
    with Ledger.open(written) as ledger:
        right = ledger.entries()
    (key,) = (written.parent / "keys").glob("*.key")
    files = [written, key, written.parent / "keys" / "ledger.secret"]
    random_ = random.Random(5)
    refused = 0
    for i in range(300):
        folder = tmp_path / f"copy-{i}"
        folder.mkdir()
        shutil.copy(written, folder)
        shutil.copytree(written.parent / "keys", folder / "keys")
        victim = folder / random_.choice(files).relative_to(written.parent)
        content = bytearray(victim.read_bytes())
        if i % 3 == 0:
            del content[random_.randrange(len(content)) :]
        else:
            for _ in range(random_.choice([1, 1, 3, 50])):
                content[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
        victim.write_bytes(content)
        try:
            with Ledger.open(folder / "ledger.sqlite") as ledger:
                assert ledger.entries() == right
                assert ledger.spent("census") == Spent(2)
                with ledger.begin(asked(column="income")) as entry:
                    assert entry.prior == tuple(range(200))
                    assert entry.key == Vault(written.parent / "keys").key(entry.release)
        except (OptrandError, OSError):
            refused += 1
        shutil.rmtree(folder)
    assert 150 < refused <= 300


def test_a_damaged_log_of_a_killed_process_hides_no_charge(path, tmp_path):
    """SQLite drops what follows a damaged frame of its log without a word: the marks of the locks tell."""
    child = os.fork()
    if not child:
        entry = Ledger.open(path).begin(asked())
        entry.key  # noqa: B018
        entry.keep_prior([1, 2])
        os._exit(0)
    os.waitpid(child, 0)
    log = path.with_name("ledger.sqlite-wal")
    content = log.read_bytes()
    random_ = random.Random(7)
    refused = 0
    for i in range(60):
        folder = tmp_path / f"copy-{i}"
        folder.mkdir()
        shutil.copy(path, folder)
        shutil.copytree(path.parent / "keys", folder / "keys")
        damaged = bytearray(content)
        if i % 2:
            del damaged[random_.randrange(len(content)) :]
        else:
            damaged[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
        (folder / log.name).write_bytes(damaged)
        try:
            with Ledger.open(folder / "ledger.sqlite") as ledger:
                assert ledger.spent("census") == Spent(1)
        except InvalidFile:
            refused += 1
    assert 10 < refused < 60


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM charges WHERE sequence = 2",
        "DELETE FROM charges WHERE sequence = 1",
        "DELETE FROM charges",
        "UPDATE charges SET sequence = 3 - sequence + 100 * (sequence = 1)",
        "UPDATE charges SET content = replace(CAST(content AS TEXT), 'census', 'censor')",
        "UPDATE charges SET content = CAST(replace(CAST(content AS TEXT), '\"19\"', '\"1\"') AS BLOB)",
        "UPDATE charges SET content = (SELECT content FROM charges WHERE sequence = 1),"
        " seal = (SELECT seal FROM charges WHERE sequence = 1)",
        "UPDATE charges SET seal = zeroblob(32)",
        "DROP TABLE charges",
        "ALTER TABLE charges RENAME TO others",
        "PRAGMA user_version=99",
        "PRAGMA user_version=0",
        "PRAGMA application_id=7",
    ],
)
def test_an_edited_ledger_is_noticed(written, statement):
    with sqlite3.connect(written, isolation_level=None) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(InvalidFile):
        Ledger.open(written)


def test_a_ledger_of_another_secret_is_noticed(written, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    Ledger.open(other / "ledger.sqlite").close()
    shutil.copy(written, other / "ledger.sqlite")
    with pytest.raises(InvalidFile, match="edited"):
        Ledger.open(other / "ledger.sqlite")


def test_a_ledger_that_is_gone_is_not_begun_anew(written):
    written.unlink()
    with pytest.raises(InvalidFile, match="missing"):
        Ledger.open(written)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"SQLite format 3\0", bytes(4096)])
def test_another_file_is_refused_and_left_as_it_is(path, content):
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidFile, match="no ledger"):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_as_it_is(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    path.chmod(0o600)
    content = path.read_bytes()
    with pytest.raises(InvalidFile, match="another program"):
        Ledger.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["ledger.sqlite", "keys", "keys/ledger.secret", "keys/KEY"])
@pytest.mark.parametrize("wrong", ["mode", "link"])
def test_files_that_others_may_have_touched_are_refused(written, name, wrong):
    (key,) = (written.parent / "keys").glob("*.key")
    victim = key if name.endswith("KEY") else written.parent / name
    if wrong == "mode":
        victim.chmod(0o755 if victim.is_dir() else 0o640)
    else:
        moved = victim.rename(victim.with_name("moved"))
        victim.symlink_to(moved)
    with pytest.raises(InvalidFile), Ledger.open(written) as ledger:
        ledger.begin(asked(column="income")).key  # noqa: B018


def test_a_key_of_another_release_is_refused(written):
    (key,) = (written.parent / "keys").glob("*.key")
    with Ledger.open(written) as ledger:
        with ledger.begin(asked(column="third")) as entry:
            entry.key  # noqa: B018
        shutil.copy(key, written.parent / "keys" / f"{entry.release}.key")
        with ledger.begin(asked(column="third")) as entry, pytest.raises(InvalidFile, match="another's"):
            entry.key  # noqa: B018


def test_a_line_reads_back_as_it_was():
    request = asked()
    charge = Charge(
        release="r", dataset="d", column="c\n", parts=request.parts, configuration=DIGESTS[0], input_digest=DIGESTS[1],
        output="o", resumable=True, begun="now", again=False, private=True, priors={"": (-1, 0, 10**50)},
        mechanisms={"g": DIGESTS[2]}, state=State.SOLVED, journal="{}",
    )  # fmt: skip
    assert Charge.of_content(charge.content()) == charge


@pytest.mark.parametrize("name", ["", " census", "a\nb", "x" * 201, 7, "\ud800"])
def test_names_are_short_and_printable(name):
    with pytest.raises(InvalidInput, match="the dataset's name"):
        asked(name)


def test_composed_and_decomposed_names_are_one(path):
    with Ledger.open(path) as ledger:
        finished(ledger, asked("Caf\u00e9"))
        with pytest.raises(AlreadySpent):
            ledger.begin(asked("Cafe\u0301"))


@pytest.mark.parametrize("wrong", [{"parts": {}}, {"parts": {"labels": 1.0}}, {"resumable": "no"}])
def test_bad_requests_are_refused(wrong):
    with pytest.raises(InvalidInput):
        asked(**wrong)
    with pytest.raises(InvalidInput):
        Request("d", "c", PARTS, "abc", DIGESTS[0], "out.csv")


# ------------------------------------------------------------------------------------------------- on the command line


def test_the_command_lists_what_was_spent(written):
    run = CliRunner().invoke(app, ["ledger", "--ledger", str(written)])
    assert run.exit_code == 0, run.output
    assert "census, column 'weeks': epsilon 1 (labels epsilon 0.95, prior epsilon 0.05)" in run.output
    assert "total of census, all columns: epsilon 2" in run.output
    document = json.loads(CliRunner().invoke(app, ["ledger", "--ledger", str(written), "--json"]).output)
    assert [entry["state"] for entry in document["entries"]] == ["complete", "prior"]
    assert document["totals"][-1]["epsilon"] == {"numerator": "1", "denominator": "1"}


def test_the_command_makes_no_ledger_and_reports_damage(path):
    run = CliRunner().invoke(app, ["ledger", "--ledger", str(path)])
    assert (run.exit_code, list(path.parent.iterdir())) == (0, [])
    assert "nothing was spent" in run.output
    path.write_bytes(b"nonsense")
    path.chmod(0o600)
    run = CliRunner().invoke(app, ["ledger", "--ledger", str(path)])
    assert run.exit_code == 3
    assert "no ledger" in run.output
