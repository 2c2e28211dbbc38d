"""Findings that were made before, in a file of one line each: a long run that was stopped goes on where it was.

Every line carries its own digest and the digest of the code that found it. What a crash tore, what somebody edited and
what other code found is tried again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path

import optrand
from optrand.base.strict_json import Document, canonical, sealed, unsealed
from optrand.errors import InvalidFile, InvalidInput
from optrand.theory.claim import Budget
from optrand.theory.finding import Case, Evidence, Finding

__all__ = ["code_digest", "keep", "kept_findings"]

KIND = "optrand.finding"
HEADER = canonical({"format": "optrand.findings"})


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Of every source file of the package: findings of other code are not these."""
    root = Path(optrand.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        whole.update(path.relative_to(root).as_posix().encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def kept_findings(path: str | os.PathLike[str], budget: Budget) -> dict[str, Finding]:
    """The findings of a file that this code made with this budget, by the names of their claims.

    Parameters
    ----------
    path : path
        A file that :func:`keep` began, or none yet.
    budget : Budget

    Returns
    -------
    dict of str to Finding
        Lines that do not read, and those of other code or another budget, are left out.

    Raises
    ------
    InvalidInput
        A file of something else, or no file: it would be damaged by adding to it.
    OSError
        As from the operating system.
    """
    source = Path(path)
    if not source.exists() and not source.is_symlink():
        return {}
    if source.is_symlink() or not source.is_file():
        raise InvalidInput(f"{source} is not a plain file: name another one for the findings")
    lines = source.read_bytes().splitlines(keepends=True)
    # An empty one may be what a full disk left of an earlier run.
    if lines and lines[0] != HEADER:
        raise InvalidInput(f"{source} is not a file of findings: name another one, or delete it")
    found: dict[str, Finding] = {}
    for line in lines[1:]:
        try:
            content = unsealed(line, ["code", "finding"], kind=KIND)
            finding = _read(content["finding"])
        except (InvalidFile, KeyError, TypeError, ValueError):
            continue
        if content["code"] == code_digest() and finding.budget == budget.value:
            found[finding.claim] = finding
    return found


def keep(path: str | os.PathLike[str], finding: Finding) -> None:
    """Add one finding to a file, on the disk when this returns; begin the file if there is none.

    Raises
    ------
    OSError
        As from the operating system.
    """
    line = canonical(sealed({"code": code_digest(), "finding": _written(finding)}, kind=KIND))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    with os.fdopen(descriptor, "r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        if not size:
            line = HEADER + line
        else:
            stream.seek(size - 1)
            # A line that a crash tore ends here, so that it takes no other with it.
            line = line if stream.read(1) == b"\n" else b"\n" + line
        stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())


def _written(finding: Finding) -> str:
    # Python's own JSON has infinities; the strict one, of which it becomes a string, has not.
    return json.dumps(dataclasses.asdict(finding))


def _read(text: str) -> Finding:
    fields: Document = json.loads(text)
    evidence = {name: _evidence(fields.pop(name)) for name in ("printed", "corrected", "false")}
    printed, false = evidence["printed"], evidence["false"]
    if printed is None or false is None:
        raise InvalidFile("a finding without evidence")
    return Finding(**fields, printed=printed, corrected=evidence["corrected"], false=false)


def _evidence(fields: Document | None) -> Evidence | None:
    if fields is None:
        return None
    sides = tuple((left, right) for left, right in fields.pop("sides"))
    worst, broken = fields.pop("worst"), fields.pop("broken")
    return Evidence(**fields, sides=sides, worst=Case(**worst), broken=None if broken is None else Case(**broken))
