"""The lowest versions that are tested are those that the package declares."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_OURS = {"pyparsing"}


def floors() -> dict[str, Version]:
    """Lowest version that is declared, by the name of the package, without those that are pinned."""
    extras = PROJECT["optional-dependencies"].values()
    declared = [Requirement(line) for lines in (PROJECT["dependencies"], *extras) for line in lines]
    found: dict[str, Version] = {}
    for one in declared:
        if one.name == PROJECT["name"]:
            continue
        if all(each.operator == "==" for each in one.specifier):
            continue
        (floor,) = (Version(each.version) for each in one.specifier if each.operator == ">=")
        assert found.setdefault(one.name, floor) == floor, one.name
    return found


def pinned() -> dict[str, Version]:
    lines = (ROOT / "constraints-floors.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    return {name: Version(version) for name, version in pairs}


def test_every_dependency_is_tested_at_its_floor():
    assert {Requirement(line).name for line in PROJECT["dependencies"]} <= pinned().keys()


@pytest.mark.parametrize("name", sorted(pinned().keys() - NOT_OURS))
def test_what_is_tested_is_the_floor_that_is_declared(name):
    assert pinned()[name] == floors()[name]
