"""Verdicts of ``optrand theory --budget quick`` on the claims that are named, as JSON, a line each as it is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from optrand.theory import Budget, Finding, claims
from optrand.theory.running import Outcome, run

__all__ = ["BLIND", "FAILED", "told"]

BLIND, FAILED = "blind", "breaks off"


def told(outcome: Outcome) -> str:
    """The verdict of a finding, or how its check failed."""
    if isinstance(outcome, Finding):
        return outcome.verdict.value
    return BLIND if outcome.blind else FAILED if outcome.failed else "not installed"


def main(names: Sequence[str]) -> int:
    """Try the claims of these names, all of them without one."""
    chosen = [claim for claim in claims() if not names or claim.name in names]
    for claim, outcome in zip(chosen, run(chosen, Budget.QUICK, jobs=1), strict=True):
        print(json.dumps([claim.name, told(outcome)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
