"""Reading ahead: the next items of an iterator are made in a thread while one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

Item = TypeVar("Item")

DEPTH = 3
"""Items made ahead."""


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
