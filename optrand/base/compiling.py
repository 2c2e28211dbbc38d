"""Whether kernels are to be compiled, decided before they are loaded."""

from __future__ import annotations

import os

__all__ = ["SMALL", "SWITCH", "leave_uncompiled"]

SWITCH = "OPTRAND_COMPILE"
"""Environment variable: ``0`` leaves kernels as they are, and numba unloaded."""

SMALL = 1_000
"""Labels of a single problem up to which compiling, or loading what was compiled, costs more than it saves."""


def leave_uncompiled(labels: int) -> None:
    """Set :data:`SWITCH` for a process that solves one problem of so many labels, if it is small and nobody chose.

    It must be called before the first solve. Loading numba takes 90 MB of memory, and compiling 400 MB.
    """
    if labels <= SMALL:
        os.environ.setdefault(SWITCH, "0")
