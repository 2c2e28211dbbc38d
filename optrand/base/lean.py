"""What a process that makes one release leaves out, decided before it is loaded."""

from __future__ import annotations

import os
import sys

__all__ = ["SMALL", "SWITCH", "kernels_loaded", "lean_process"]

SWITCH = "OPTRAND_COMPILE"
"""Environment variable: ``0`` leaves kernels as they are, and numba unloaded."""

POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""Environment variable of Arrow: its own pools hold on to memory that batches of other columns could use."""

SMALL = 1_000
"""Labels of a single problem up to which compiling, or loading what was compiled, costs more than it saves."""


def lean_process(labels: int) -> None:
    """Set :data:`POOL`, and :data:`SWITCH` for one problem of few labels, unless they are set.

    It must be called before anything is solved. Loading numba takes 90 MB of memory, compiling 400 MB, the pool 50 MB
    of a release.
    """
    if POOL not in os.environ:
        os.environ[POOL] = "system"
        if (arrow := sys.modules.get("pyarrow")) is not None:
            arrow.set_memory_pool(arrow.system_memory_pool())
    if labels <= SMALL:
        os.environ.setdefault(SWITCH, "0")


def kernels_loaded() -> bool:
    """Whether kernels are compiled in this process, and loaded already."""
    return getattr(sys.modules.get("optrand.base.compiled"), "COMPILED", False)
