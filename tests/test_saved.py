"""Files that version 0.1 saved still load and verify, byte by byte, and its import paths still lead somewhere."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import optrand
from optrand import _moved, checker
from optrand.release.randomizer_file import load_randomizer

SAVED = Path(__file__).parent / "saved"
MECHANISMS = sorted(path for path in SAVED.glob("*.json") if not path.name.endswith(".randomizer.json"))


@pytest.mark.parametrize("path", MECHANISMS, ids=lambda path: path.stem)
def test_a_saved_mechanism_loads_and_verifies(path: Path, tmp_path: Path) -> None:
    mechanism = optrand.load(path)
    proof = optrand.certify(mechanism)
    assert proof.epsilon <= mechanism.problem.epsilon
    if path.stem != "no_dual":
        proof.require(gap=1e-12)
    assert checker.check(path.read_text()).epsilon == pytest.approx(proof.epsilon, rel=1e-12)
    mechanism.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("name", "variance"), [("laplace", 18.0), ("staircase", 17.262931781119725)])
def test_a_saved_randomizer_loads(name: str, variance: float) -> None:
    randomizer = load_randomizer(SAVED / f"{name}.randomizer.json")
    assert randomizer.epsilon == 1.0
    assert randomizer.moments([0.0, 3.0]).variances.tolist() == pytest.approx([variance, variance], rel=1e-12)


@pytest.mark.parametrize("old", sorted(_moved.MODULES))
def test_an_old_module_is_found_with_a_warning(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"^{old} is now {_moved.MODULES[old]};"):
        importlib.import_module(old)
    now = importlib.import_module(_moved.MODULES[old])
    for name in now.__all__:
        assert getattr(importlib.import_module(old), name) is getattr(now, name)


@pytest.mark.parametrize("old", sorted(_moved.NAMES))
def test_an_old_name_is_found_with_a_warning(old: str) -> None:
    vars(optrand).pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"optrand.{old} is now"):
        assert getattr(optrand, old) is not None


def test_other_names_and_modules_are_unknown() -> None:
    with pytest.raises(AttributeError, match="module 'optrand' has no attribute 'no_such'"):
        optrand.no_such  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("optrand.no_such")
