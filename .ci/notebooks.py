"""Notebooks with their outputs, for readers in a browser.

``python .ci/notebooks.py`` runs them from top to bottom and writes them back, pictures in few colours. Tests run them
too and compare words and numbers, except the numbers of cells tagged ``varies`` (times, and noise without a seed).
"""

from __future__ import annotations

import base64
import copy
import io
import itertools
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_runtime_dir
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
SETTINGS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
VARIES = "varies"
COLOURS = 64
NUMBER = re.compile(r"-?(?:\b\d[\d,]*(?:\.\d*)?(?:e[+-]?\d+)?|\binf\b|\bnan\b)")
NEAR = 1e-6
"""Share of a number, and its size below which it is rounding, that kernels and versions may change."""


class ThisPython(AsyncKernelManager):
    """A kernel of the Python that runs this, whatever kernels are registered; it talks over files, not ports."""

    def __init__(self, **options: Any) -> None:
        place = {"transport": "ipc", "ip": str(Path(jupyter_runtime_dir()) / "kernel")}
        super().__init__(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]), **place, **options)


def executed(notebook: Any, folder: Path) -> Any:
    """Run a copy of a notebook in a folder. Raise the error of the first cell that fails."""
    place = {"metadata": {"path": str(folder)}}
    run = NotebookClient(
        copy.deepcopy(notebook), timeout=300, kernel_manager_class=ThisPython, resources=place
    ).execute()
    for count, cell in enumerate(code_cells(run), start=1):
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        cell.execution_count = count
        cell.outputs = merged(cell.outputs)
    run.metadata = notebook.metadata
    return run


def code_cells(notebook: Any) -> list[Any]:
    """Return the cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def merged(outputs: list[Any]) -> list[Any]:
    """Join the texts that a stream printed into one output."""
    kept: list[Any] = []
    for output in outputs:
        if kept and output.output_type == kept[-1].output_type == "stream" and output.name == kept[-1].name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


def shrunk(notebook: Any) -> Any:
    """Reduce the pictures of a notebook to few colours."""
    for output in itertools.chain.from_iterable(cell.outputs for cell in code_cells(notebook)):
        data = output.get("data", {})
        if "image/png" in data:
            picture, small = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))), io.BytesIO()
            picture.convert("RGB").quantize(COLOURS).save(small, "png", optimize=True)
            data["image/png"] = base64.b64encode(small.getvalue()).decode()
    return notebook


def changes(committed: Any, run: Any) -> list[str]:
    """Return the names of the cells whose outputs differ from the committed ones."""
    pairs = zip(code_cells(committed), code_cells(run), strict=True)
    return [old.id for old, new in pairs if not alike(old, new, numbers=VARIES not in old.metadata.get("tags", ()))]


def alike(old: Any, new: Any, *, numbers: bool) -> bool:
    """Return whether two cells have the same kinds of output, the same words and nearly the same numbers."""
    (words, values), (new_words, new_values) = read_outputs(old), read_outputs(new)
    if words != new_words:
        return False
    close = (math.isclose(a, b, rel_tol=NEAR, abs_tol=NEAR) for a, b in zip(values, new_values, strict=True))
    return not numbers or all(close)


def read_outputs(cell: Any) -> tuple[str, list[float]]:
    """Return kinds and words of the outputs, without space, and their numbers."""
    shown = [(kind, text) for output in cell.outputs for kind, text in texts(output)]
    whole = " ".join(f"{kind} {text}" for kind, text in shown)
    numbers = [float(each.replace(",", "").rstrip(".")) for each in NUMBER.findall(whole)]
    return re.sub(r"[\s-]+", " ", NUMBER.sub("#", whole)), numbers


def texts(output: Any) -> list[tuple[str, str]]:
    """Return the kinds of an output with its plain text, which is empty for a picture."""
    if output.output_type == "stream":
        return [(output.name, output.text)]
    plain = "" if "image/png" in output.data else output.data.get("text/plain", "")
    return [(" ".join(sorted(output.data)), plain)]


def main() -> int:
    """Write all of them, with nobody's settings."""
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as settings, tempfile.TemporaryDirectory() as folder:
            os.environ.update(dict.fromkeys(SETTINGS, settings))
            run = shrunk(executed(nbformat.read(path, as_version=nbformat.NO_CONVERT), Path(folder)))
        nbformat.write(run, path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
