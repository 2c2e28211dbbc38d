"""Build wheel and source archive, check their files, and try the wheel in a fresh environment.

``python .ci/package.py`` tries it with the Python that runs this, ``--all`` with each that :data:`VERSIONS` names and
the machine has, and runs :data:`TESTS` with those that do not run all tests. Both leave ``dist/``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
CONSTRAINTS = ROOT / "constraints.txt"

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""Versions of Python that the classifiers promise."""

TESTS = [f"tests/test_{name}.py" for name in ("certificate", "draw", "mechanism", "saved")]
"""Tests of proofs and draws, which run with every other Python."""

FOR_TESTS = ("hypothesis", "pytest")

EXTRAS = {
    "release": """
import numpy, optrand
noisy, record = optrand.randomize(numpy.arange(3000) % 3, 1.0, labels=range(3), ledger=None)
assert record.epsilon == 1.0
""",
    "report": """
import optrand
from optrand.plotting.report import report_page
mechanism = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
assert "<html" in report_page(mechanism, mechanism.certificate)
""",
    "learning": """
import numpy
from optrand.learning import LabelDPRegressor, PrivateLabels
from sklearn.linear_model import LinearRegression
X = numpy.arange(600.0).reshape(-1, 1)
y = PrivateLabels(numpy.arange(600) % 3, 1.0, range(3))
assert LabelDPRegressor(LinearRegression(), 1.0).fit(X, y).epsilon_ == 1.0
""",
    "accounting": """
import optrand
losses = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0).privacy_loss_distribution()
assert losses.get_delta_for_epsilon(1.0) == 0
""",
    "dask": """
import optrand
from distributed import Client
problems = [optrand.unbiased_regression([0, 1, 2], [0.5, 0.3, 0.2], epsilon) for epsilon in (1.0, 2.0)]
with Client(processes=False, dashboard_address=None) as client:
    found = optrand.solve_many(problems, executor=client.get_executor())
assert max(each.certificate.gap for each in found) < 1e-9
""",
    "all": """
import distributed, dp_accounting, numpy, sklearn
import optrand
from optrand.plotting.report import report_page
noisy, record = optrand.randomize(numpy.arange(3000) % 3, 1.0, labels=range(3), ledger=None)
mechanism = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
assert record.epsilon == 1.0 and "<html" in report_page(mechanism, mechanism.certificate)
""",
    "server": """
from optrand.accounting import Ledger
try:
    Ledger("postgresql://127.0.0.1:1/nobody_listens").entries()
except OSError as error:
    assert "Connection refused" in str(error)
else:
    raise AssertionError
""",
    "torch": """
import numpy, torch
from optrand.learning import LabelDPClassifier, PrivateLabels
from optrand.learning.torch import TorchClassifier
X, y = numpy.arange(60.0).reshape(-1, 1), numpy.arange(60) % 3
network = TorchClassifier(torch.nn.Linear(1, 3), epochs=1)
assert LabelDPClassifier(network, 1.0).fit(X, PrivateLabels(y, 1.0, range(3))).epsilon_ == 1.0
""",
    "spark": """
import os, sys, tempfile
os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
from pyspark.sql import SparkSession
from optrand.release import Question, randomize_table
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.createDataFrame([(number, number % 3) for number in range(300)], "id int, label int").coalesce(1)
with tempfile.TemporaryDirectory() as folder:
    question = Question(column="label", labels=range(3), epsilon=1.0, ids=("id",))
    assert randomize_table(frame, folder + "/noisy", question, ledger=None).epsilon == 1.0
""",
}
"""Extras, and a program for each alone."""

LARGE = {"spark": ("pyspark",), "torch": ("functorch", "torch", "torchgen")}
"""Packages of an extra that are linked from the tests' environment if it has them, since they take long to install."""

IN_WHEEL = {
    "optrand/py.typed",
    "optrand/checker.py",
    "optrand/data/README.md",
    "optrand/data/weeks_worked.csv.gz",
    "optrand/data/weeks_worked_counts.csv",
}
IN_ARCHIVE = {
    ".ci/hatch_build.py",
    ".ci/package.py",
    ".ci/try_wheel.py",
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "benchmarks/__main__.py",
    "constraints.txt",
    "constraints-floors.txt",
    "docs/conf.py",
    "docs/images/shape.png",
    "notebooks/1_the_papers_in_order.ipynb",
    "pyproject.toml",
    "tests/conftest.py",
    *IN_WHEEL,
}
ALONE = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""An environment in which no other optrand is found."""

CACHE = re.compile(
    r"__pycache__|\.pyc$|_cache/|\.hypothesis/|^demo/|^\.venv|docs/_build|^benchmarks/results/|\.egg-info"
)


def main(arguments: list[str]) -> None:
    """Build once, and try the wheel with one Python or with all."""
    pythons = found() if arguments == ["--all"] else [Path(sys.executable)]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        wheel = built(Path(folder) / "build")
        print(f"built {', '.join(sorted(path.name for path in DIST.iterdir()))}: {time.monotonic() - begin:.0f} s")
        for number, python in enumerate(pythons):
            begin = time.monotonic()
            own = tried(python, wheel, Path(folder) / str(number))
            if not number:
                tried_extras(own, wheel, Path(folder))
            if not python.samefile(sys.executable):
                tested(own)
            print(f"the wheel works with {python}: {time.monotonic() - begin:.0f} s", flush=True)


def found() -> list[Path]:
    """Return each Python of :data:`VERSIONS` of pyenv or on the path, and print the missing ones."""
    pythons = []
    for version in VERSIONS:
        candidates = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        named = shutil.which(f"python{version}")
        works = [path for path in [*candidates, *([Path(named)] if named else [])] if runs(path)]
        if works:
            pythons.append(works[0])
        else:
            print(f"SKIPPED: no Python {version} on this machine", flush=True)
    if not pythons:
        sys.exit(f"none of Python {', '.join(VERSIONS)} is on this machine")
    return pythons


def runs(python: Path) -> bool:
    """Return whether it starts. Some names of pyenv do not."""
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0


def environment(python: Path, folder: Path) -> Path:
    """Make an environment with nothing in it, not even pip, and return its Python."""
    run([python, "-m", "venv", "--without-pip", folder])
    return folder / "bin" / "python"


def install(python: Path, *packages: str | Path) -> None:
    """Install packages in the versions that CI has, by the pip of the Python that runs this."""
    quiet = ["--quiet", "--no-compile", "--disable-pip-version-check", "--constraint", CONSTRAINTS]
    run([sys.executable, "-m", "pip", "--python", python, "install", *quiet, *packages])


def run(command: list[str | Path]) -> None:
    """Run a command, or end with its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")


def built(folder: Path) -> Path:
    """Build the source archive, and the wheel from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    python = environment(Path(sys.executable), folder)
    install(python, "build", "hatchling", "twine")
    run([python, "-m", "build", "--no-isolation", "--outdir", DIST, ROOT])
    run([python, "-m", "twine", "check", "--strict", *DIST.iterdir()])
    (wheel,) = DIST.glob("*.whl")
    (archive,) = DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
        (metadata,) = (opened.read(name).decode() for name in held if name.endswith(".dist-info/METADATA"))
    roots = {name.split("/")[0] for name in held}
    if roots != {"optrand", wheel.name.split("-py3")[0] + ".dist-info"}:
        sys.exit(f"{wheel.name} holds {sorted(roots)}")
    if re.search(r"\]\((?!https?:|#|mailto:)", metadata):
        sys.exit(f"the long description of {wheel.name} has a link that no package index can follow")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    for name, names, needed in ((wheel.name, held, IN_WHEEL), (archive.name, packed, IN_ARCHIVE)):
        caches = [one for one in names if CACHE.search(one)]
        if needed - names or caches:
            sys.exit(f"{name} lacks {sorted(needed - names)} and holds caches {caches}")
    return wheel


def tried(python: Path, wheel: Path, folder: Path) -> Path:
    """Install the wheel in an empty environment, and run the README there."""
    own = environment(python, folder / "environment")
    install(own, wheel)
    (folder / "work").mkdir()
    command = [own, ROOT / ".ci" / "try_wheel.py", ROOT / "README.md"]
    done = subprocess.run(command, cwd=folder / "work", env=ALONE, check=False)
    if done.returncode:
        sys.exit(f"the wheel fails with {python}")
    return own


def tried_extras(own: Path, wheel: Path, folder: Path) -> None:
    """Use each extra alone on top of the wheel.

    Without it the error names the command that brings it, unless the wheel's own dependencies bring the same packages.
    """
    (site,) = (own.parent.parent / "lib").glob("python*/site-packages")
    shared = ROOT / ".venv" / "lib" / site.parent.name / "site-packages"
    for extra, program in EXTRAS.items():
        refused = subprocess.run([own, "-c", program], env=ALONE, capture_output=True, text=True, check=False)
        # Dask, torch and Spark are imported by their users.
        expected = rf"MissingExtra: .*optrand\[{extra}\]|No module named '(distributed|torch|pyspark)'"
        if refused.returncode and not re.search(expected, refused.stderr):
            sys.exit(f"without the extra {extra}: {refused.stderr}")
        begin = time.monotonic()
        layer = environment(own, folder / extra)
        (added,) = (layer.parent.parent / "lib").glob("python*/site-packages")
        (added / "below.pth").write_text(f"{site}\n", encoding="utf-8")
        for path in (path for name in LARGE.get(extra, ()) for path in shared.glob(f"{name}*")):
            if not (added / path.name).exists():
                (added / path.name).symlink_to(path)
        install(layer, f"{wheel}[{extra}]")
        used = subprocess.run(
            [layer, "-c", program], env=ALONE, cwd=folder, capture_output=True, text=True, check=False
        )
        if used.returncode:
            sys.exit(f"the extra {extra} fails alone: {used.stderr}")
        print(f"the extra {extra} works alone: {time.monotonic() - begin:.0f} s", flush=True)


def tested(python: Path) -> None:
    """Run some tests of the clone."""
    install(python, *FOR_TESTS)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    if subprocess.run(command, cwd=ROOT, env=ALONE, check=False).returncode:
        sys.exit(f"tests fail with {python}")


if __name__ == "__main__":
    main(sys.argv[1:])
