"""Compilation of kernels by numba, where it is installed."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from optrand.base.lean import SWITCH

__all__ = ["COMPILED", "compiled", "compiled_strictly"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _decorator() -> Callable[..., Any] | None:
    """The decorator of numba; none without it, or where :data:`SWITCH` or its own NUMBA_DISABLE_JIT turns it off.

    It takes what arithmetic may be changed to, as numba's option ``fastmath`` does.
    """
    if os.environ.get(SWITCH) == "0":
        return None
    try:
        import numba
    except ModuleNotFoundError as error:
        if error.name != "numba":
            warnings.warn(f"numba is installed but broken ({error}): solving goes on without it", stacklevel=2)
        return None
    except Exception as error:
        warnings.warn(f"numba is installed but broken ({error}): solving goes on without it", stacklevel=2)
        return None
    decorator = partial(numba.njit, cache=True, error_model="numpy", nogil=True)
    off: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined,unused-ignore]
    return None if off else decorator


_NUMBA = _decorator()

RELAXED = {"contract", "reassoc", "nsz"}
"""Sums may be reordered; infinities and NaNs keep their meaning."""

COMPILED = _NUMBA is not None
"""Whether kernels are compiled."""


@cache
def _digest(folder: Path) -> str:
    """Of the modules in a folder."""
    digest = hashlib.blake2b(digest_size=6)
    for module in sorted(folder.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def compiled(function: Function) -> Function:
    """The function, compiled where numba is installed, and as it is elsewhere.

    Compiled code is kept on disk until a module of the function's folder changes.
    """
    return _compiled(function, RELAXED)


def compiled_strictly(function: Function) -> Function:
    """As :func:`compiled`, with every operation rounded on its own, as bounds of rounding errors suppose."""
    return _compiled(function, set())


def _compiled(function: Function, changes: set[str]) -> Function:
    if _NUMBA is None:
        return function
    # Numba itself looks at the function's own file only, not at those of what it calls; but names are part of its keys.
    function.__qualname__ += "-" + _digest(Path(function.__code__.co_filename).parent)
    compiled_function: Function = _NUMBA(function, fastmath=changes or False)
    return compiled_function
