"""Results kept for an object in this process, as long as the object and the data that they were computed from stay.

They are kept beside the object and not in it, so that no pickle and no copy carries them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import finalize

from optrand.base.validation import Floats
from optrand.model.losses import Tabulated
from optrand.model.outputs import Grid
from optrand.model.problem import Problem

__all__ = ["content", "kept"]

T = TypeVar("T")

_RESULTS: dict[int, dict[str, tuple[Hashable, Any]]] = {}
"""By the identity of the holder: an equal object has results of its own."""


def content(problem: Problem, *arrays: Any) -> Hashable:
    """Return the key of a problem and of arrays beside it, equal where all of their numbers are.

    Examples
    --------
    >>> import optrand
    >>> coin, same = (optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.0) for _ in range(2))
    >>> content(coin) == content(same), content(coin) == content(optrand.regression([0, 1], [0.5, 0.5], 1.0))
    (True, False)
    """
    loss, outputs = problem.loss, problem.outputs
    parts: list[Floats] = [problem.labels, problem.prior, *arrays]
    if isinstance(loss, Tabulated):
        parts.append(loss.entries)
    if isinstance(outputs, Grid):
        parts.append(outputs.values)
    digest = hashlib.blake2b()
    for part in parts:
        digest.update(part.tobytes())
    shapes = tuple((part.dtype.char, part.shape) for part in parts)
    allowed = type(outputs), outputs.low, outputs.high
    return digest.digest(), shapes, problem.epsilon, problem.bias_penalty, allowed, loss


def kept(holder: object, name: str, key: Hashable, compute: Callable[[], T]) -> T:
    """Return the result of `compute`, or the one that is kept for `holder` under this name and key.

    Examples
    --------
    >>> class Holder: ...
    >>> holder, calls = Holder(), []
    >>> [kept(holder, "length", key, lambda: len(calls) or calls.append(0)) for key in (1, 1, 2)], calls
    ([None, None, 1], [0])
    >>> vars(holder)
    {}
    """
    results = _RESULTS.get(id(holder))
    if results is None:
        results = _RESULTS[id(holder)] = {}
        finalize(holder, _RESULTS.pop, id(holder)).atexit = False
    known = results.get(name)
    if known is None or known[0] != key:
        known = results[name] = (key, compute())
    result: T = known[1]
    return result
