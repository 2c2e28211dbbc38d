"""Signals that ask a release to end: errors that say what was released, held back around its publication."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from optrand.errors import Interrupted

__all__ = ["Signals"]

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Signals:
    """SIGINT, SIGTERM and SIGHUP raise :class:`~optrand.errors.Interrupted` inside the block, once; later ones wait.

    Outside the main thread, which alone receives signals, the block changes nothing. A signal that was ignored before
    it stays ignored.

    Attributes
    ----------
    outcome : str
        What was and what was not released so far, for the message.
    released : bool
        Whether the release is complete.

    Examples
    --------
    >>> import os
    >>> with Signals() as signals:
    ...     with signals.held():
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...         signals.outcome = "all of it was released"
    Traceback (most recent call last):
        ...
    optrand.errors.Interrupted: stopped by SIGTERM: all of it was released
    """

    def __init__(self, outcome: str = "nothing was released") -> None:
        self.outcome, self.released = outcome, False
        self._waiting = False
        self._pending: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for name in NAMES:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._waiting = True
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _received(self, number: int, _: FrameType | None) -> None:
        if self._waiting:
            self._pending = number
            return
        self._waiting = True
        raise self._interrupted(number)

    def _interrupted(self, number: int) -> Interrupted:
        return Interrupted(f"stopped by {signal.Signals(number).name}: {self.outcome}", released=self.released)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back until the block has ended; one that came in it is raised then, unless an error ends it."""
        before, self._waiting = self._waiting, True
        yield
        self._waiting = before
        if self._pending is not None and not before:
            self._waiting = True
            raise self._interrupted(self._pending)
