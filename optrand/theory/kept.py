"""Findings kept in a database of SQLite: a long run that was stopped goes on where it was.

Each is kept with the digest of the package's code, so that what other code found is tried again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import optrand
from optrand.errors import InvalidInput
from optrand.theory.claim import Budget
from optrand.theory.finding import Case, Evidence, Finding

__all__ = ["code_digest", "keep", "kept_findings"]


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Digest of every source file of the package."""
    root = Path(optrand.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        whole.update(path.relative_to(root).as_posix().encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def kept_findings(path: str | os.PathLike[str], budget: Budget) -> dict[str, Finding]:
    """Findings in a file that this code made with this budget, by the names of their claims.

    Raises
    ------
    InvalidInput
        A file of something else, or no plain file: it would be damaged by adding to it.
    """
    with _opened(path) as database:
        rows = database.execute(
            "select claim, finding from findings where budget = ? and code = ?", (budget.value, code_digest())
        )
        return {claim: _read(json.loads(text)) for claim, text in rows}


def keep(path: str | os.PathLike[str], finding: Finding) -> None:
    """Add one finding to a file, on the disk when this returns; begin the file if there is none."""
    text = json.dumps(dataclasses.asdict(finding))
    with _opened(path) as database:
        row = finding.claim, finding.budget, code_digest(), text
        database.execute("insert or replace into findings values (?, ?, ?, ?)", row)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    file = Path(path)
    if file.is_symlink() or (file.exists() and not file.is_file()):
        raise InvalidInput(f"{file} is not a plain file: name another one for the findings")
    try:
        with closing(sqlite3.connect(file)) as database, database:
            if {name for (name,) in database.execute("select name from sqlite_master where type = 'table'")} - {
                "findings"
            }:
                raise sqlite3.DatabaseError("a database of something else")
            columns = "claim text, budget text, code text, finding text, primary key (claim, budget)"
            database.execute(f"create table if not exists findings ({columns})")
            yield database
    except sqlite3.OperationalError as error:
        raise InvalidInput(f"{file} cannot be read or written ({error}): name another one for the findings") from error
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{file} is not a file of findings: name another one, or delete it") from error


def _read(fields: dict[str, Any]) -> Finding:
    for name in ("printed", "corrected", "false"):
        if fields[name] is not None:
            evidence = fields[name] | {"sides": tuple(map(tuple, fields[name]["sides"]))}
            cases = {case: evidence[case] and Case(**evidence[case]) for case in ("worst", "broken")}
            fields[name] = Evidence(**evidence | cases)
    return Finding(**fields)
