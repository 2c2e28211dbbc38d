"""A new interpreter without modules that only POSIX has. No library is loaded before it is needed."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

POSIX = ("fcntl", "grp", "pwd", "resource", "termios")

PROGRAM = f"""
import importlib, sys

for name in {POSIX!r}:
    sys.modules[name] = None

import optrand
from optrand.accounting import Ledger
from optrand.cli import app
from optrand.release import Question, load_release, randomize_table

question = Question(column="y", labels=[0, 1], epsilon=1.0)
randomize_table("in.parquet", "out.parquet", question, ledger=None)
# Arrow would load it to recognise its objects, which takes 0.3 s and 40 MB.
assert "pandas" not in sys.modules
for name in dir(optrand):
    getattr(optrand, name)
ledger = Ledger("ledger.sqlite")
noisy, record = optrand.randomize([0, 1, 1, 0] * 50, 1.0, labels=[0, 1], dataset="memory", ledger=ledger)
randomize_table("in.csv", "out.parquet", question, dataset="file", ledger=ledger, force=True)
load_release("out.parquet.release.json").verify_table("out.parquet")
assert [entry.status for entry in ledger.entries()] == ["complete", "complete"]
options = ["--column", "y", "--labels", "0:1", "--epsilon", "1", "--dataset", "file", "--ledger", "ledger.sqlite"]
optrand.plotting.pmf_figure(optrand.rr([0, 1], 1.0))
importlib.import_module("optrand.learning.torch")
assert not {{"matplotlib.pyplot", "torch"}} & set(sys.modules)
app(["randomize", "in.csv", "again.csv", "--again", *options])
"""


def test_everything_but_spark_works_without_posix_and_nothing_opens_a_window(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("y\n" + "0\n1\n" * 50)
    pq.write_table(pa.table({"y": [0, 1] * 50}), tmp_path / "in.parquet")
    ran = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "again.csv.release.json").is_file()
