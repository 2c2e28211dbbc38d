"""The notebooks run from top to bottom, show what they promise, hold no logic of their own, and end in checks."""

from __future__ import annotations

import ast
import copy
import re
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_runtime_dir
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

LOGIC = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""What belongs into the package, where it has tests of its own."""


class ThisPython(AsyncKernelManager):
    """A kernel of the Python that runs the tests, whatever kernels are registered; it talks over files, not ports."""

    def __init__(self, **options):
        place = {"transport": "ipc", "ip": str(Path(jupyter_runtime_dir()) / "kernel")}
        super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **place, **options)


@pytest.fixture
def run(tmp_path, tmp_path_factory, monkeypatch):
    """Execute a notebook in an empty folder, with nobody's settings; raises what the first failing cell raises."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("settings")))
    # The name of a socket may have about a hundred letters.
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))

    def executed(notebook):
        place = {"metadata": {"path": str(tmp_path)}}
        client = NotebookClient(copy.deepcopy(notebook), timeout=300, kernel_manager_class=ThisPython, resources=place)
        return client.execute()

    return executed


def read(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tree_of(cell):
    return ast.parse(re.sub(r"^%.*$", "", cell.source, flags=re.MULTILINE))


def shows_a_figure(cell):
    """Whether the value of a cell, which Jupyter displays, is what a function of pictures returns."""
    *_, last = [None, *tree_of(cell).body]
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("_figure")


def flaws(notebook):
    """What is wrong with a notebook as it stands in the repository."""
    found = [] if notebook.metadata == METADATA else ["metadata"]
    for cell in notebook.cells:
        found += ["metadata of a cell"] * bool(cell.metadata)
        found += ["name of a cell"] * (not re.fullmatch(r"[a-z]+(-[a-z]+)*", cell.id))
    cells = code_cells(notebook)
    for cell in cells:
        nodes = list(ast.walk(tree_of(cell)))
        found += ["not stripped"] * bool(cell.outputs or cell.execution_count)
        found += ["logic"] * any(isinstance(node, LOGIC) for node in nodes)
        found += ["plots of its own"] * ("pyplot" in cell.source or "from matplotlib" in cell.source)
    last = ast.walk(tree_of(cells[-1])) if notebook.cells[-1].cell_type == "code" else ()
    kinds = [node.attr if isinstance(node, ast.Attribute) else type(node).__name__ for node in last]
    return found + [f"no {kind} at its end" for kind in ("Assert", "require") if kind not in kinds]


def test_there_are_five_and_their_names_tell_the_order():
    assert [path.name[:2] for path in NOTEBOOKS] == ["1_", "2_", "3_", "4_", "5_"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stripped_and_has_words_calls_and_checks_only(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert flaws(notebook) == []
    assert notebook.cells[0].source.startswith("# ")
    assert any(shows_a_figure(cell) for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_shows_its_pictures_and_its_checks_hold(path, run, tmp_path):
    for cell in code_cells(run(read(path))):
        kinds = {kind for output in cell.outputs for kind in output.get("data", ())}
        assert ("image/png" in kinds) == shows_a_figure(cell), cell.id
        assert not [output.text for output in cell.outputs if output.get("name") == "stderr"], cell.id
    assert list(tmp_path.iterdir()) == []


def small(*sources):
    """A notebook of some code cells, without flaws if the sources have none."""
    cells = [nbformat.v4.new_code_cell(source, id=f"cell-{'abcdef'[i]}") for i, source in enumerate(sources)]
    return nbformat.v4.new_notebook(cells=cells, metadata=copy.deepcopy(METADATA))


SOLVED = "import optrand\nproof = optrand.certify(optrand.rr([0, 1], 1.0)).require(gap=1e-12)"


@pytest.mark.parametrize("check", ["assert proof.lower > 0.8", "proof.require(gap=-1.0)"])
def test_a_notebook_whose_last_check_fails_is_found_out(run, check):
    with pytest.raises(CellExecutionError, match=r"AssertionError|NotCertified"):
        run(small(SOLVED, check))


def test_a_notebook_is_run_by_the_python_that_runs_the_tests(run):
    assert run(small("import sys", "print(sys.executable)")).cells[1].outputs[0].text == sys.executable + "\n"


@pytest.mark.parametrize(
    ("sources", "flaw"),
    [
        (("def answer():\n    return 42",), "logic"),
        (("[number**2 for number in range(3)]",), "logic"),
        (("while True:\n    break",), "logic"),
        (("answer = lambda: 42",), "logic"),
        (("import matplotlib.pyplot as plt",), "plots of its own"),
    ],
)
def test_logic_and_own_plots_are_found_out(sources, flaw):
    end = SOLVED + "\nassert proof.gap < 1"
    assert flaws(small("%matplotlib inline", end)) == []
    assert flaws(small(*sources, end)) == [flaw]


def test_outputs_missing_checks_and_names_are_found_out(run):
    end = SOLVED + "\nassert proof.gap < 1"
    assert flaws(small(end, "proof")) == ["no Assert at its end", "no require at its end"]
    assert flaws(small("proof = 1", SOLVED)) == ["no Assert at its end"]
    assert "not stripped" in flaws(run(small("6 * 7", end)))
    unnamed = small(end)
    unnamed.cells[0].id = "f1a2"
    assert flaws(unnamed) == ["name of a cell"]
    ends_in_words = small(end)
    ends_in_words.cells.append(nbformat.v4.new_markdown_cell("The end.", id="end"))
    assert flaws(ends_in_words) == ["no Assert at its end", "no require at its end"]
