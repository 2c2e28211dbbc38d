"""Questions that several commands begin with: a saved mechanism, or a problem from its options, solved and proven."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from optrand.base.suggestions import missing
from optrand.cli.options import read_epsilon, read_penalty
from optrand.cli.reporting import tell_prior
from optrand.errors import InvalidInput

if TYPE_CHECKING:
    from optrand.certificates.certificate import Certificate
    from optrand.mechanism.mechanism import Mechanism
    from optrand.model.problem import Problem
    from optrand.release.record import ReleaseRecord

__all__ = ["answered", "holds_record", "read_groups", "read_mechanism", "read_problem", "read_released"]


def read_mechanism(path: Path) -> Mechanism:
    """A saved mechanism, verified as it is loaded."""
    from optrand.mechanism.mechanism import load

    if not path.is_file():
        raise InvalidInput(f"{path} is {missing(path)}: expected a mechanism")
    return load(path)


def holds_record(path: Path) -> bool:
    """Whether a file says that it is the record of a release."""
    from optrand.base.strict_json import stated_format
    from optrand.release.record import FORMAT

    return path.is_file() and stated_format(path.read_bytes()) == FORMAT


def read_groups(path: Path) -> ReleaseRecord | None:
    """Record of a release by groups; None of any other file."""
    from optrand.release.record import load_release

    record = load_release(path) if holds_record(path) else None
    return record if record is not None and record.circumstances.groups else None


def read_released(path: Path) -> tuple[Mechanism, ReleaseRecord | None]:
    """A saved mechanism, or the one that the record of a release names, and that record."""
    from optrand.release.record import load_release

    if not holds_record(path):
        return read_mechanism(path), None
    record = load_release(path)
    return record.mechanism, record


def read_problem(
    labels: str, prior: Path, epsilon: str, *, outputs: str, bias_penalty: str, check: Callable[[], None]
) -> Problem:
    """The problem that options state; `check` is called before the user is told how the prior is taken."""
    from optrand.model.problem import regression
    from optrand.release.declared import allowed_outputs, parse_labels, parse_outputs, read_prior

    budget, penalty = read_epsilon(epsilon), read_penalty(bias_penalty)
    names = parse_labels(labels)
    allowed = allowed_outputs(parse_outputs(outputs), names, budget)
    public = read_prior(prior, names)
    problem = regression(names, public.probabilities, budget, bias_penalty=penalty, outputs=allowed)
    check()
    tell_prior(prior, public)
    return problem


def answered(problem: Problem, announce: Callable[[str], None]) -> tuple[Mechanism, Certificate]:
    """The exact mechanism of a problem, and its proof in exact arithmetic."""
    from optrand.certificates.certificate import certify
    from optrand.mechanism.tabulation import tabulate
    from optrand.solvers import solve

    announce("1 of 3, solving")
    solution = solve(problem)
    announce("2 of 3, making it exact")
    mechanism = tabulate(solution)
    announce("3 of 3, proving")
    return mechanism, certify(mechanism).require(gap=math.inf)
