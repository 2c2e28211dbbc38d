"""Compilation of kernels by numba, where it is installed."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from optrand.base.lean import SWITCH

__all__ = ["COMPILED", "compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _decorator() -> Callable[..., Any] | None:
    """The decorator of numba; none without it, or where :data:`SWITCH` or its own NUMBA_DISABLE_JIT turns it off."""
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
    # Sums may be reordered; infinities and NaNs keep their meaning.
    relaxed = {"contract", "reassoc", "nsz"}
    decorator: Callable[..., Any] = numba.njit(cache=True, error_model="numpy", fastmath=relaxed, nogil=True)
    off: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined,unused-ignore]
    return None if off else decorator


_NUMBA = _decorator()

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
    if _NUMBA is None:
        return function
    # Numba itself looks at the function's own file only, not at those of what it calls; but names are part of its keys.
    function.__qualname__ += "-" + _digest(Path(function.__code__.co_filename).parent)
    compiled_function: Function = _NUMBA(function)
    return compiled_function
