"""Reading ahead and writing behind: what comes before and after a step runs in threads of its own, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["Behind", "ahead"]

Item = TypeVar("Item")

DEPTH = 3
"""Items made ahead, or waiting to be written."""


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield all items of an iterator, which runs in a thread; what it raises is raised here.

    Examples
    --------
    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1, thread_name_prefix="optrand-reading") as thread:
        made: deque[Future[tuple[Item, ...]]] = deque(thread.submit(_next, items) for _ in range(DEPTH))
        try:
            while found := made.popleft().result():
                made.append(thread.submit(_next, items))
                yield from found
        finally:
            for future in made:
                future.cancel()
            thread.shutdown()
            if isinstance(items, Generator):
                # Files that it holds open are closed.
                items.close()


def _next(items: Iterator[Item]) -> tuple[Item, ...]:
    """The next item alone, or nothing at the end."""
    for item in items:
        return (item,)
    return ()


class Behind:
    """Calls that run in a thread, one after the other, a few of them waiting at most.

    What a call raises is raised by a later one, or at the end of the block.

    Parameters
    ----------
    call : callable

    Examples
    --------
    >>> found = []
    >>> with Behind(found.append) as behind:
    ...     for i in range(9):
    ...         behind(i)
    >>> found == list(range(9))
    True
    """

    def __init__(self, call: Callable[..., object]) -> None:
        self._call, self._waiting = call, deque[Future[object]]()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="optrand-writing")

    def __call__(self, *arguments: Any) -> None:
        """Have it called with these arguments; wait if too many calls do."""
        if len(self._waiting) >= DEPTH:
            self._waiting.popleft().result()
        self._waiting.append(self._thread.submit(self._call, *arguments))

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._thread.shutdown(cancel_futures=error is not None)
        if error is None:
            for future in self._waiting:
                future.result()
