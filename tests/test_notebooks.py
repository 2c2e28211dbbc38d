"""The notebooks run from top to bottom, show their promised output, hold no logic of their own, and end in checks."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from test_package import script

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

LOGIC = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Definitions that belong into the package, with tests of their own."""

LARGEST = 1_000_000
"""Bytes of all notebooks with their outputs."""


@pytest.fixture(scope="module")
def written():
    """The script that runs notebooks and writes their outputs."""
    return script("notebooks")


@pytest.fixture
def run(tmp_path, tmp_path_factory, monkeypatch, written):
    """Execute a notebook in an empty folder, with nobody's settings. Raise the error of the first failing cell."""
    for name in written.SETTINGS:
        # The name of a socket, in one of these, may have about a hundred letters.
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("run")))
    return lambda notebook: written.executed(notebook, tmp_path)


def read(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tree_of(cell):
    return ast.parse(re.sub(r"^%.*$", "", cell.source, flags=re.MULTILINE))


def shows_a_figure(cell):
    """Whether the value of a cell, which Jupyter displays, is the return value of a drawing function."""
    *_, last = [None, *tree_of(cell).body]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("_figure")


def kinds_shown(cell):
    return {kind for output in cell.outputs for kind in output.get("data", ())}


def flaws(notebook):
    """List the faults of a notebook as it stands in the repository."""
    found = [] if notebook.metadata == METADATA else ["metadata"]
    for cell in notebook.cells:
        found += ["metadata of a cell"] * (cell.metadata not in ({}, {"tags": ["varies"]}))
        found += ["name of a cell"] * (not re.fullmatch(r"[a-z]+(-[a-z]+)*", cell.id))
    cells = code_cells(notebook)
    for count, cell in enumerate(cells, start=1):
        nodes = list(ast.walk(tree_of(cell)))
        found += ["not run from top to bottom"] * (cell.execution_count not in {None, count})
        found += ["another picture"] * ("image/png" in kinds_shown(cell)) * (not shows_a_figure(cell))
        found += ["logic"] * any(isinstance(node, LOGIC) for node in nodes)
        found += ["plots of its own"] * ("pyplot" in cell.source or "from matplotlib" in cell.source)
    last = ast.walk(tree_of(cells[-1])) if notebook.cells[-1].cell_type == "code" else ()
    kinds = [node.attr if isinstance(node, ast.Attribute) else type(node).__name__ for node in last]
    return found + [f"no {kind} at its end" for kind in ("Assert", "require") if kind not in kinds]


def test_there_are_five_and_their_names_tell_the_order():
    assert [path.name[:2] for path in NOTEBOOKS] == ["1_", "2_", "3_", "4_", "5_"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_words_calls_checks_and_outputs_only(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert flaws(notebook) == []
    assert notebook.cells[0].source.startswith("# ")
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(shows_a_figure(cell) for cell in cells)
    assert all("image/png" in kinds_shown(cell) for cell in cells if shows_a_figure(cell))


def test_notebooks_with_their_pictures_are_small():
    assert sum(path.stat().st_size for path in NOTEBOOKS) < LARGEST


@pytest.mark.docs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_committed(path, run, written, tmp_path):
    committed = read(path)
    done = run(committed)
    for cell in code_cells(done):
        assert not [output.text for output in cell.outputs if output.get("name") == "stderr"], cell.id
    assert written.changes(committed, done) == [], "run python .ci/notebooks.py"
    assert list(tmp_path.iterdir()) == []
