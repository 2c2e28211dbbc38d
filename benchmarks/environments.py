"""Other libraries live in environments of their own, with pinned versions: made once, asked over a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS

__all__ = ["ask", "set_up"]

HERE = Path(__file__).parent / "peers"
ENVIRONMENTS = RESULTS / "peers"


def _python(peer: str) -> Path:
    return ENVIRONMENTS / peer / "bin" / "python"


def _log(peer: str) -> Path:
    return ENVIRONMENTS / f"{peer}.log"


def set_up(peer: str) -> None:
    """Make the environment of a peer anew; what fails is left in its log, for the table to name."""
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    print(f"installing {peer} ...", flush=True)
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(ENVIRONMENTS / peer)],
        [str(_python(peer)), "-m", "pip", "install", "--quiet", "--requirement", str(HERE / f"{peer}.txt")],
    )
    with _log(peer).open("w") as log:
        for command in commands:
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                print(f"{peer} could not be installed: see {_log(peer)}")
                return


def ask(peer: str, script: str, arguments: Sequence[str], *, benchmark: str, limit: float) -> dict[str, Any]:
    """What a script printed as JSON on its last line, or ``{"error": ...}``.

    Parameters
    ----------
    peer : str
        Whose environment.
    script : str
        A file of the folder ``peers``.
    arguments : sequence of str
        Of the script.
    benchmark : str
        The one that would install the peer.
    limit : float
        Seconds.
    """
    if not _python(peer).exists():
        return {"error": f"not installed: python -m benchmarks {benchmark} --setup-peers"}
    command = [str(_python(peer)), str(HERE / script), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"error": f"over the limit of {limit:g} s"}
    if run.returncode:
        log = _log(peer).read_text() if _log(peer).exists() else ""
        return {"error": _last_line(log if "ERROR" in log else run.stderr)}
    answer: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answer


def _last_line(text: str) -> str:
    """The line of an error output that names the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "ERROR" in line]
    return (errors or lines or ["no output"])[-1]
