"""Old import paths of modules and names: kept for one version, each with a :class:`DeprecationWarning`.

``import optrand.certificate`` finds ``optrand.certificates.certificate``; ``optrand.grids.place_knots`` is looked up
where it now lives.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import warnings
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader

__all__ = ["MODULES", "NAMES", "install", "moved_name"]

MODULES = MappingProxyType(
    {
        "optrand." + old: "optrand." + new
        for old, new in {
            "arcs": "model.arcs",
            "baselines.alibi": "baselines.vector",
            "baselines.cluster_priors": "baselines.cluster",
            "baselines.laplace": "baselines.additive",
            "baselines.lattice_additive": "baselines.additive",
            "baselines.peer_bounds": "baselines.peer_to_peer",
            "baselines.protocol": "model.protocol",
            "baselines.staircase": "baselines.additive",
            "baselines.staircase_noise": "baselines.noise",
            "certificate": "certificates.certificate",
            "continuous": "studies.continuous",
            "discrete_noise": "sampling.discrete_noise",
            "entropy": "sampling.entropy",
            "exact": "base.arithmetic",
            "files": "base.files",
            "gallery": "plotting.gallery",
            "grids": "studies",
            "grids.adaptive": "studies.adaptive",
            "grids.feasible": "model.outputs",
            "grids.knots": "studies.knots",
            "inverse": "studies.inverse",
            "largest_loss": "certificates.largest_loss",
            "losses": "model.losses",
            "measurements": "certificates.measurements",
            "outputs": "model.outputs",
            "path_decomposition": "mechanism.paths",
            "pricing": "certificates.prices",
            "priors": "sampling.priors",
            "privacy": "mechanism.privacy",
            "problem": "model.problem",
            "programs": "solvers.grid",
            "programs.floor": "solvers.grid.floor",
            "programs.linear": "solvers.backends.linear",
            "programs.lp2": "solvers.grid.lp2",
            "programs.pairwise": "solvers.grid.pairwise",
            "randomizer": "model.randomizer",
            "release.outputs": "release.declared",
            "report": "plotting.report",
            "rounding": "sampling.rounding",
            "solution": "model.solution",
            "solvers.bin_path": "solvers.bins.path",
            "solvers.column_generation": "solvers.grid.column_generation",
            "solvers.linear_program": "solvers.grid.linear_program",
            "solvers.minimax": "solvers.flow.minimax_solver",
            "staircase": "model.staircase",
            "strict_json": "base.strict_json",
            "sweeps": "studies.sweeps",
            "tabulation": "mechanism.tabulation",
            "without_prior": "studies.worst_case",
        }.items()
    }
)
"""New path of every module of version 0.1 that moved."""

NAMES = MappingProxyType(
    {
        name: home
        for home, names in {
            "optrand.studies": (
                "AdaptiveOutputs ContinuousMechanism ContinuousPrior EpsilonBracket KnotCount Knots Minimax Sweep "
                "SweepRow adaptive_outputs continuous_mechanism knot_sweep minimax place_knots smallest_epsilon sweep"
            ),
            "optrand.closed_forms": "RRWithPriorBatch rr_with_prior_batch",
            "optrand.mechanism": "decompose_paths",
            "optrand.sampling": "unbiased_rounding",
            "optrand.errors": "Infeasible InvalidFile InvalidInput NotCertified OptrandError",
            "optrand.model.outputs": "Line",
            "optrand.model.solution": "Stats",
            "optrand.solvers.grid": "programs",
        }.items()
        for name in names.split()
    }
)
"""Names that ``optrand`` exported in version 0.1, and the module that has or is each of them."""


def moved_name(name: str) -> Any:
    """Look up a name that ``optrand`` exported in version 0.1.

    Raises
    ------
    AttributeError
        There was none.
    """
    home = NAMES.get(name)
    if home is None:
        raise AttributeError(f"module 'optrand' has no attribute {name!r}")
    module = importlib.import_module(home)
    whole = hasattr(module, name)
    _warn(f"optrand.{name}", f"{home}.{name}" if whole else home)
    return getattr(module, name) if whole else module


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; the old path goes in the next version", DeprecationWarning, stacklevel=3)


class _Finder:
    """Finder and loader of old paths, without the slow import of their base classes."""

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        loader = cast("Loader", self)
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=True) if fullname in MODULES else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        _warn(spec.name, MODULES[spec.name])
        return _Old(spec.name, importlib.import_module(MODULES[spec.name]))

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it has been executed under its new path."""


class _Old(ModuleType):
    """Attributes of the module that another became."""

    def __init__(self, name: str, now: ModuleType) -> None:
        super().__init__(name, now.__doc__)
        self.__dict__.update(_now=now, __path__=[])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_now"], name)


def install() -> None:
    """Let old paths be imported; once is enough."""
    if not any(type(finder).__name__ == "_Finder" and type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
