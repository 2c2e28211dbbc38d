"""Exceptions, one class for each thing that can go wrong, under one base.

Bad arguments raise :class:`InvalidInput` (also a ``ValueError``). The outcome of a solve is data, not an exception;
only asking for a guarantee that does not hold (``proof.require()``) raises :class:`NotCertified`. Messages say what was
given, what was expected and what to do, and never repeat a private label.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlreadySpent",
    "DrawFailed",
    "Finished",
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
    "UnexpectedInput",
]


class OptrandError(Exception):
    """Base of every error that optrand raises on purpose."""


class InvalidInput(OptrandError, ValueError):
    """An argument that cannot mean what the call needs."""


class Infeasible(InvalidInput):
    """No epsilon-DP randomizer meets the constraints of the problem, whatever the solver."""


class Finished(InvalidInput):
    """An earlier release of the output, interrupted as it was published, is finished now, and nothing else was done."""

    def __init__(self, output: object, files: tuple[str, ...]) -> None:
        super().__init__(
            f"an earlier release of {output} had been interrupted as it was published and is finished now: "
            f"{', '.join(files)}; nothing else was done or spent"
        )


class InputChanged(InvalidInput):
    """A table, or what was made of it, is not what a release began with."""


class UnexpectedInput(InputChanged):
    """A table of another digest than expected: a fact about private labels, for their owner alone."""


class Interrupted(OptrandError):
    """A signal, or a disk that failed, ended a release; the message says what was and what was not released.

    Attributes
    ----------
    released : bool
        Whether the release is complete under its final names.
    """

    def __init__(self, message: str, *, released: bool) -> None:
        super().__init__(message)
        self.released = released


class AlreadySpent(OptrandError):
    """A release of labels that were released before, and nobody said that they may be again.

    Attributes
    ----------
    spent : Spent or None
        What their releases have cost so far.
    """

    def __init__(self, message: str, *, spent: Any = None) -> None:
        super().__init__(message)
        self.spent = spent


class OverBudget(OptrandError):
    """A release that would cost more than a stated budget has left."""


class DrawFailed(OptrandError, RuntimeError):
    """A randomizer that failed while it was reading private labels; its own message is withheld."""


class InvalidFile(OptrandError, ValueError):
    """A saved mechanism that is damaged, unknown, or does not keep its promise."""


class SolverFailed(OptrandError, RuntimeError):
    """A backend ended without an answer that could be read."""


class OutOfTime(OptrandError, TimeoutError):
    """A time limit has passed before there was a certified answer."""


class MissingExtra(OptrandError, ImportError):
    """An optional dependency is not installed; the message names the command that brings it."""


class NotCertified(OptrandError):
    """A guarantee was required that the certificate does not give.

    Attributes
    ----------
    certificate : Certificate or None
        What could be verified.
    solution : Solution or None
        The best solution known when a solve gave up.
    """

    def __init__(
        self,
        message: str,
        *,
        certificate: Any = None,
        solution: Any = None,
    ) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.solution = solution


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Parts of a pickle."""
        return type(self), (str(self), self.results)


class SpentNote(str):
    """A note on an error: what of a privacy budget had been spent before it.

    A type of its own, so that it can be told from the notes of others, which may repeat a label.
    """

    __slots__ = ()
