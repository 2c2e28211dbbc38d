"""Compilation of kernels by numba, where it is installed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
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


def compiled(function: Function) -> Function:
    """The function, compiled where numba is installed, and as it is elsewhere."""
    return function if _NUMBA is None else _NUMBA(function)
