"""Compilation of kernels by numba: from the first large problem of a process on, if numba is installed."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

__all__ = ["LARGE", "SWITCH", "compile_kernels", "compiled", "kernels_are_compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])

SWITCH = "OPTRAND_COMPILE"
"""Environment variable: ``1`` compiles kernels from the first problem on, ``0`` never."""

LARGE = 1_000
"""Number of labels above which compiling, or loading compiled code, is worth its time."""

RELAXED = {"contract", "reassoc", "nsz"}
"""Sums may be reordered; infinities and NaNs keep their meaning."""


class _Kernel:
    """A function, and the form that its calls run now.

    Attributes
    ----------
    form : callable
        Plain Python at first, compiled code later.
    """

    def __init__(self, function: Callable[..., Any], plain: Callable[..., Any]) -> None:
        self.function = function
        self.form = plain

        @wraps(function)
        def call(*arguments: Any) -> Any:
            return self.form(*arguments)

        self.call = call

    @property
    def options(self) -> dict[str, Any]:
        """Options of numba."""
        return {"fastmath": RELAXED, "error_model": "numpy"}

    def register(self, numba: Any) -> None:
        """Let compiled functions call this one."""
        function = self.function
        # Numba checks only the file of the function itself, not those of its callees. But names are part of its keys.
        function.__qualname__ = f"{function.__qualname__}-{_digest(Path(function.__code__.co_filename).parent)}"
        numba.extending.overload(self.call, jit_options=self.options, strict=False)(lambda *_: function)

    def compile(self, numba: Any) -> None:
        """Run compiled code from now on."""
        self.form = numba.njit(self.function, cache=True, nogil=True, **self.options)


_KERNELS: list[_Kernel] = []
_COMPILERS: list[Any] = []
"""Numba, once kernels are compiled."""
_LOCK = threading.RLock()


def compile_kernels(labels: int) -> None:
    """Compile kernels from now on if a problem has more than :data:`LARGE` labels and numba is installed.

    :data:`SWITCH` in the environment, or numba's own NUMBA_DISABLE_JIT, overrules this.
    """
    wanted = os.environ.get(SWITCH, "1" if labels > LARGE else "0")
    if wanted == "0" or kernels_are_compiled():
        return
    with _LOCK:
        numba = _numba()
        if numba is None or _COMPILERS:
            return
        for kernel in _KERNELS:
            kernel.register(numba)
        for kernel in _KERNELS:
            kernel.compile(numba)
        _COMPILERS.append(numba)


def kernels_are_compiled() -> bool:
    """Whether kernels are compiled in this process by now."""
    return bool(_COMPILERS)


@cache
def _numba() -> Any:
    """Return numba, or None without it; a broken one is named."""
    try:
        import numba
    except ModuleNotFoundError as error:
        if error.name != "numba":
            warnings.warn(f"numba is installed but broken ({error}): solving goes on without it", stacklevel=4)
        return None
    except Exception as error:
        warnings.warn(f"numba is installed but broken ({error}): solving goes on without it", stacklevel=4)
        return None
    off: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined,unused-ignore]
    return None if off else numba


@cache
def _digest(folder: Path) -> str:
    """Return the digest of the modules in a folder."""
    digest = hashlib.blake2b(digest_size=6)
    for module in sorted(folder.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def compiled(function: Function, plain: Callable[..., Any] | None = None) -> Function:
    """Return a function that runs compiled code after a call of :func:`compile_kernels`.

    Parameters
    ----------
    function : callable
        Function to compile. Compiled code is cached on disk until a module of the function's folder changes.
    plain : callable, optional
        Function to run before that: `function` itself by default.
    """
    return cast("Function", _registered(_Kernel(function, plain or function)))


def _registered(kernel: _Kernel) -> Any:
    with _LOCK:
        _KERNELS.append(kernel)
        for numba in _COMPILERS:
            kernel.register(numba)
            kernel.compile(numba)
    return kernel.call
