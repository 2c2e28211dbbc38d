"""Exceptions, one class for each thing that can go wrong, under one base.

Bad arguments raise :class:`InvalidInput` (also a ``ValueError``). The outcome of a solve is data, not an exception.
Only requiring a guarantee that does not hold (``proof.require()``) raises :class:`NotCertified`. Messages state the
given value, the expected one and the remedy, and never repeat a private label.
"""

from __future__ import annotations

import pickle
from typing import Any

__all__ = [
    "AlreadySpent",
    "DrawFailed",
    "Infeasible",
    "InputChanged",
    "Interrupted",
    "InvalidFile",
    "InvalidInput",
    "MissingExtra",
    "NotCertified",
    "OptrandError",
    "OutOfTime",
    "OverBudget",
    "SolverFailed",
    "SomeFailed",
    "SpentNote",
    "UnknownParameter",
]


class OptrandError(Exception):
    """Base of every error that optrand raises on purpose. A pickle keeps message, attributes and notes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts of a pickle, which do not depend on the arguments of the constructor.

        An attribute that cannot be pickled, such as a solution whose loss is a lambda, becomes None, so that the error
        reaches the other process.
        """
        attributes = {name: value if _travels(value) else None for name, value in vars(self).items()}
        return _restore, (type(self), self.args), attributes


class InvalidInput(OptrandError, ValueError):
    """An argument that is invalid for the call."""


class UnknownParameter(InvalidInput, TypeError):
    """Arguments that do not fit the parameters of a function. The message lists them, or names the nearest one."""


class Infeasible(InvalidInput):
    """No epsilon-DP randomizer meets the constraints of the problem, whatever the solver."""


class InputChanged(InvalidInput):
    """The input of a release, or data derived from it, that changed after the release began."""


class Interrupted(OptrandError):
    """A signal or a disk failure ended a release. The message states which parts were released.

    Attributes
    ----------
    released : bool
        Whether the release is complete under its final names.
    """

    def __init__(self, message: str, *, released: bool) -> None:
        super().__init__(message)
        self.released = released


class AlreadySpent(OptrandError):
    """A release of labels that were released before, without permission to release them again.

    Attributes
    ----------
    spent : Spent or None
        Cost of their releases so far.
    """

    def __init__(self, message: str, *, spent: Any = None) -> None:
        super().__init__(message)
        self.spent = spent


class OverBudget(OptrandError):
    """A release that would cost more than a stated budget has left."""


class DrawFailed(OptrandError, RuntimeError):
    """A randomizer that failed while it was reading private labels. Its own message is withheld."""


class InvalidFile(OptrandError, ValueError):
    """A saved file that is damaged, of an unknown format, or fails verification."""


class SolverFailed(OptrandError, RuntimeError):
    """A backend ended without an answer that could be read."""


class OutOfTime(OptrandError, TimeoutError):
    """A time limit has passed before there was a certified answer."""


class MissingExtra(OptrandError, ImportError):
    """An optional dependency that is not installed. The message names the command that installs it."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return an error with the command that installs a missing package, or None if no extra has it.

    Examples
    --------
    >>> missing_extra(ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"))
    MissingExtra("pyarrow is not installed: pip install 'optrand[release]'")
    """
    package = (error.name or "").partition(".")[0]
    extras = {
        "cryptography": "release",
        "dp_accounting": "accounting",
        "jinja2": "report",
        "pyarrow": "release",
        "pyspark": "spark",
        "sklearn": "learning",
        "torch": "torch",
    }
    if package not in extras:
        return None
    return MissingExtra(f"{package} is not installed: pip install 'optrand[{extras[package]}]'")


class NotCertified(OptrandError):
    """A guarantee was required that the certificate does not prove.

    Attributes
    ----------
    certificate : Certificate or None
        Certificate of the facts that were proven.
    mechanism : Mechanism or None
        The best mechanism found when a solve failed.
    """

    def __init__(
        self,
        message: str,
        *,
        certificate: Any = None,
        mechanism: Any = None,
    ) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.mechanism = mechanism


class SomeFailed(OptrandError):
    """Some of many problems have no certified answer.

    Attributes
    ----------
    results : list
        For each problem its solution, or the error in its place.
    """

    def __init__(self, message: str, results: list[Any]) -> None:
        super().__init__(message)
        self.results = results


def _travels(value: object) -> bool:
    """Return whether a value can be pickled."""
    try:
        pickle.dumps(value)
    except Exception:
        # The type of the exception depends on the value.
        return False
    return True


def _restore(kind: type[OptrandError], arguments: tuple[Any, ...]) -> OptrandError:
    error = kind.__new__(kind, *arguments)
    super(OptrandError, error).__init__(*arguments)
    return error


class SpentNote(str):
    """Note on an error: the part of a privacy budget that was spent before it.

    It has its own type to distinguish it from other notes, which may repeat a label.
    """

    __slots__ = ()
