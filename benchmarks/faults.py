"""Releases that are killed, raced, starved of disk and fed damaged files: what is counted, and how often it was tried.

A keyed release (`benchmarks.keyed_release`) runs in processes that are killed at random moments and begun again from
one charged ledger, so that every run has the same key: whatever a killed run had written must be the beginning of what
an uninterrupted one publishes, byte by byte, and nothing may stand under the final name before all of it does.
"""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.damage import ACCEPTABLE, damaged_keys, damaged_ledgers, damaged_mechanisms, forged_files
from benchmarks.harness import circumstances, options, print_table, write_json
from benchmarks.keyed_release import (
    ALREADY_SPENT,
    CHANGED,
    CHARGED,
    DATASET,
    DONE,
    DRAWING,
    REFUSED,
    STARTED,
    WRITTEN,
)
from benchmarks.shared_blocks import forked_blocks, threaded_blocks
from benchmarks.tables import write_table
from optrand.accounting import Ledger
from optrand.accounting.charge import State
from optrand.release.paths import mechanism_path, record_path
from optrand.release.publication import staging_folder

__all__ = ["Scene", "kills", "main"]

KILLS, ROWS, SMOKE_KILLS, SMOKE_ROWS = 200, 10_000_000, 2, 20_000
RACERS, WORKERS = 32, 64
DAMAGES, SMOKE_DAMAGES = {"mechanisms": 12_000, "keys": 4_000, "ledgers": 4_000}, 40
FORGERIES = 100
TARGETED = 4
"""Of so many kills one is aimed at the moment of publication."""

LEDGER = "ledger.sqlite"
PATIENCE = 600.0
COLUMNS = ("fault", "tried", "wrong", "what was seen")


@dataclass
class Scene:
    """A table, a ledger in which its release is charged, and what an uninterrupted run publishes.

    Attributes
    ----------
    folder : Path
    suffix : str
        Of the table.
    rows : int
    seconds : float
        Of the uninterrupted run, from its first word to its last.
    """

    folder: Path
    suffix: str
    rows: int
    seconds: float = 0.0
    reference: Path = field(init=False)

    def __post_init__(self) -> None:
        """Write the table, charge its release, and let one run end."""
        self.folder.mkdir()
        write_table(self.table, self.rows)
        self.fresh("charged")
        with self.begin("charged", stop=CHARGED) as run:
            run.wait_for(CHARGED)
            run.kill()
        with suppress(FileNotFoundError):
            shutil.rmtree(staging_folder(self.output("charged")))
        self.fresh("whole", of="charged")
        with self.begin("whole") as run:
            run.wait_for(STARTED)
            start = time.perf_counter()
            if run.code() != DONE:
                raise RuntimeError(f"an uninterrupted run ended with {run.errors()}")
            self.seconds = time.perf_counter() - start
        self.reference = self.output("whole")

    @property
    def table(self) -> Path:
        """The private table."""
        return self.folder / f"private{self.suffix}"

    def state(self, name: str) -> Path:
        """Folder of a ledger and an output."""
        return self.folder / name

    def output(self, name: str) -> Path:
        """Released table."""
        return self.state(name) / f"released{self.suffix}"

    def fresh(self, name: str, *, of: str | None = None) -> None:
        """Make a folder of a ledger, as a copy of another one if that is named."""
        shutil.rmtree(self.state(name), ignore_errors=True)
        if of is None:
            self.state(name).mkdir(mode=0o700)
        else:
            shutil.copytree(self.state(of), self.state(name))

    def begin(self, name: str, *, stop: str | None = None, output: Path | None = None, limit: int | None = None) -> Run:
        """Begin a run, or go on with one."""
        words = [str(self.table), str(output or self.output(name)), str(self.state(name) / LEDGER)]
        waits = ["--stop-at", stop, str(self.state(name) / "go")] if stop else []
        return Run([*words, *waits], limit=limit)

    def ledger(self, name: str) -> Ledger:
        """Ledger of a run that has ended."""
        return Ledger.open(self.state(name) / LEDGER)


class Run:
    """A process of `benchmarks.keyed_release`."""

    def __init__(self, words: Sequence[str], *, limit: int | None = None) -> None:
        def starve() -> None:
            if limit is not None:
                # A write beyond the limit then fails, as on a full disk.
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.seen: list[str] = []
        self._errors = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.keyed_release", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=starve if limit is not None else None,
        )

    def wait_for(self, stage: str) -> None:
        """Read until a stage is reached, or the process ends."""
        stream = self._process.stdout
        while stream is not None and stage not in self.seen and (line := stream.readline()):
            self.seen.append(line.strip())

    def kill(self) -> None:
        """Kill the process, which cannot prepare for it."""
        self._process.send_signal(signal.SIGKILL)
        self.code()

    def code(self) -> int:
        """Exit code, once the process has ended."""
        out, self._errors = self._process.communicate(timeout=PATIENCE)
        self.seen += out.splitlines()
        return self._process.returncode

    def errors(self) -> str:
        """What the process said of its end."""
        return self._errors.strip()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def row(fault: str, tried: int, wrong: int, seen: str) -> dict[str, Any]:
    """A line of the table."""
    return {"fault": fault, "tried": tried, "wrong": wrong, "what was seen": seen}


def kills(scene: Scene, count: int, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Kill a release `count` times at random moments, each time going on with what the last run has left.

    Yields
    ------
    dict
        Partial files under the final name, labels drawn otherwise than by the uninterrupted run, and ends that differ.
    """
    rng = np.random.default_rng(seed)
    partial, other, different, finished, compared, begun = 0, 0, 0, 0, 0, 0
    last: Counter[str] = Counter()
    whole = scene.reference.read_bytes()
    scene.fresh("killed", of="charged")
    for number in range(count):
        with scene.begin("killed") as run:
            run.wait_for(WRITTEN if number % TARGETED == 0 else STARTED)
            time.sleep(rng.uniform(0, 0.02 if number % TARGETED == 0 else 1.05 * scene.seconds))
            run.kill()
        begun += 1
        last[run.seen[-1] if run.seen else "nothing"] += 1
        output = scene.output("killed")
        if output.exists():
            partial += output.read_bytes() != whole
            partial += not (mechanism_path(output).exists() and record_path(output).exists())
        for staged in staging_folder(output).glob("*.*") if staging_folder(output).is_dir() else ():
            content = staged.read_bytes()
            if content.startswith(whole[:4]):
                compared += len(content)
                other += not whole.startswith(content)
        if output.exists():
            different += _ended(scene)
            finished += 1
            scene.fresh("killed", of="charged")
    different += _ended(scene)
    finished += 1
    where = ", ".join(f"{stage} {times}" for stage, times in last.most_common())
    kind = f"{scene.suffix[1:]}, {scene.rows:,} rows"
    yield row(f"killed: two outputs of a record ({kind})", begun, other, f"{compared:,} bytes of killed runs compared")
    yield row(f"killed: partial files under the final name ({kind})", begun, partial, f"last seen at: {where}")
    yield row(f"killed: lost or other records at the end ({kind})", finished, different, "final files, byte for byte")


def _ended(scene: Scene) -> int:
    """Let the last run end; 1 if that does not give the uninterrupted one's files for one epsilon."""
    with scene.begin("killed") as run:
        # A release that was published before it was killed is finished, or not begun again.
        code = run.code()
    with scene.ledger("killed") as ledger:
        complete = [charge.state for charge in ledger.entries()] == [State.COMPLETE]
        spent = ledger.spent(DATASET).epsilon
    ended = complete and _one(spent) and code in (DONE, REFUSED, ALREADY_SPENT)
    pairs = zip(_files(scene.output("killed")), _files(scene.reference), strict=True)
    same = all(found.is_file() and _digest(found) == _digest(right) for found, right in pairs)
    return int(not ended or not same or staging_folder(scene.output("killed")).exists())


def _files(output: Path) -> tuple[Path, ...]:
    return output, mechanism_path(output), record_path(output)


def _one(epsilon: Fraction) -> bool:
    """Whether one release of epsilon 1 was paid for; its parts are floats."""
    return 1 - Fraction(1, 10**9) < epsilon <= 1


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def race(scene: Scene, racers: int) -> dict[str, Any]:
    """Begin one release in many processes at once."""
    scene.fresh("race")
    runs = [scene.begin("race", stop=STARTED) for _ in range(racers)]
    for run in runs:
        run.wait_for(STARTED)
    (scene.state("race") / "go").touch()
    codes = Counter(run.code() for run in runs)
    with scene.ledger("race") as ledger:
        states, spent = [charge.state for charge in ledger.entries()], ledger.spent(DATASET)
    right = codes[DONE] == 1 and codes[DONE] + codes[ALREADY_SPENT] + codes[REFUSED] == racers
    right = right and states == [State.COMPLETE] and _one(spent.epsilon)
    told = f"{codes[DONE]} released, {racers - codes[DONE]} told; {spent} spent"
    return row("processes racing for one release", racers, int(not right), told)


def disk_full(scene: Scene, times: int) -> dict[str, Any]:
    """Stop every write beyond a random size, then go on without a limit."""
    rng, wrong, stopped = np.random.default_rng(1), 0, 0
    whole = scene.reference.read_bytes()
    for _ in range(times):
        scene.fresh("full", of="charged")
        with scene.begin("full", limit=int(rng.integers(0, len(whole)))) as run:
            code = run.code()
        stopped += code == REFUSED
        wrong += code != REFUSED or scene.output("full").exists()
        with scene.begin("full") as run:
            wrong += run.code() != DONE or scene.output("full").read_bytes() != whole
    seen = f"{stopped} refused without an output, all resumed"
    return row("disk full (a limit on the size of files)", times, wrong, seen)


def unwritable(scene: Scene) -> dict[str, Any]:
    """Name an output where nothing can be written, then one where it can."""
    closed = scene.folder / "closed"
    closed.mkdir(exist_ok=True)
    closed.chmod(0o500)
    # The superuser may write anywhere, but makes no folder in the kernel's.
    folder = Path("/proc") if os.geteuid() == 0 else closed
    scene.fresh("closed", of="charged")
    with scene.begin("closed", output=folder / f"released{scene.suffix}") as run:
        wrong = run.code() != REFUSED
    with scene.begin("closed") as run:
        wrong |= run.code() != DONE or scene.output("closed").read_bytes() != scene.reference.read_bytes()
    return row("folder that cannot be written", 1, int(wrong), "refused, then resumed elsewhere")


def changed(scene: Scene, times: int) -> Iterator[dict[str, Any]]:
    """Change one label between the passes, or before a run goes on; the table is as before afterwards."""
    rng, right = np.random.default_rng(2), scene.table.read_bytes()
    between = before = 0
    for _ in range(times):
        other = _with_another_label(right, rng)
        scene.fresh("changed", of="charged")
        with scene.begin("changed", stop=DRAWING) as run:
            run.wait_for(DRAWING)
            scene.table.write_bytes(other)
            (scene.state("changed") / "go").touch()
            between += run.code() != CHANGED or scene.output("changed").exists()
        with scene.begin("changed") as run:
            before += run.code() != CHANGED or scene.output("changed").exists()
        scene.table.write_bytes(right)
        with scene.begin("changed") as run:
            before += run.code() != DONE or scene.output("changed").read_bytes() != scene.reference.read_bytes()
    yield row("input changed between the passes", times, between, "refused, nothing released")
    yield row("input changed before a run goes on", times, before, "refused; the right input resumed")


def _with_another_label(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.splitlines(keepends=True)
    place = int(rng.integers(1, len(lines)))
    record, label, rest = lines[place].split(b",")
    lines[place] = b",".join((record, b"%d" % ((int(label) + 1) % 53), rest))
    return b"".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Try every fault; 1 if anything was wrong."""
    parser = options("faults", __doc__)
    parser.add_argument("--kills", type=int, help=f"how often a release is killed (default: {KILLS})")
    parser.add_argument("--rows", type=int, help=f"of the table that is released (default: {ROWS:,})")
    given = parser.parse_args(arguments)
    count = given.kills or (SMOKE_KILLS if given.smoke else KILLS)
    rows = given.rows or (SMOKE_ROWS if given.smoke else ROWS)
    damages = {what: SMOKE_DAMAGES if given.smoke else times for what, times in DAMAGES.items()}
    records: list[dict[str, Any]] = []

    def add(*found: dict[str, Any]) -> None:
        for each in found:
            print(
                f"{each['fault']}: {each['tried']:,} tried, {each['wrong']} wrong; {each['what was seen']}", flush=True
            )
        records.extend(found)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tried: dict[str, Callable[[Path, int], dict[str, int]]] = {
            "mechanisms": damaged_mechanisms,
            "keys": damaged_keys,
            "ledgers": damaged_ledgers,
        }
        for what, damaged in tried.items():
            seen = damaged(folder, damages[what])
            add(_judged(f"saved {what}, damaged at random", seen))
        forgeries, workers = (20, 8) if given.smoke else (FORGERIES, WORKERS)
        add(_judged("forged files with a right digest", forged_files(folder, forgeries)))
        add(row("forked workers sharing a random block", workers, *forked_blocks(workers)))
        add(row("threads sharing a random block", workers, *threaded_blocks(workers)))
        small = Scene(folder / "small", ".csv", min(rows, SMOKE_ROWS))
        add(race(small, 4 if given.smoke else RACERS), disk_full(small, 3 if given.smoke else 20), unwritable(small))
        add(*changed(small, 1 if given.smoke else 20))
        for suffix, share in ((".csv", count // 2), (".parquet", count - count // 2)):
            add(*kills(Scene(folder / suffix[1:], suffix, rows), share))
            shutil.rmtree(folder / suffix[1:])
    print_table(
        "Faults",
        COLUMNS,
        [[str(each["fault"]), f"{each['tried']:,}", str(each["wrong"]), each["what was seen"]] for each in records],
    )
    print(circumstances())
    write_json(given.results, "faults-smoke" if given.smoke else "faults", records)
    return int(any(each["wrong"] for each in records))


def _judged(fault: str, seen: dict[str, int]) -> dict[str, Any]:
    """Counts of what became of damaged files as a line; whatever is no refusal and not proven is wrong."""
    wrong = sum(times for what, times in seen.items() if what not in ACCEPTABLE)
    told = ", ".join(f"{times:,} {what}" for what, times in seen.items())
    return row(fault, sum(seen.values()), wrong, told)
