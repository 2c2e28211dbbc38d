"""The package as others get it: its description, its metadata, and the recipe for conda."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import optrand

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RELATIVE = re.compile(r"\]\((?!https?:|#|mailto:)")


def script(name: str) -> ModuleType:
    """A script of .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(f"ci_{name}", ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hook(monkeypatch):
    """The hook that makes the long description, without the builder that calls it."""
    interface = SimpleNamespace(MetadataHookInterface=object)
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    assert PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"] == ".ci/hatch_build.py"
    return script("hatch_build")


def test_links_of_the_long_description_are_absolute_where_the_repository_is_known(hook):
    text = hook.long_description(README, "1.2", "https://example.org/o/r/")
    assert RELATIVE.search(README)
    assert not RELATIVE.search(text)
    pictures = re.findall(r"!\[[^\]]*\]\((\S+?)\)", README)
    assert pictures
    for path in pictures:
        assert f"](https://example.org/o/r/raw/v1.2/{path})" in text
    assert "](https://example.org/o/r/blob/v1.2/docs/problems.md)" in text
    assert text.count("](") == README.count("](")


def test_without_a_repository_nothing_is_linked_that_is_not_there(hook):
    text = hook.long_description(README, "1.2", None)
    assert "![" not in text
    assert not RELATIVE.search(text)
    assert "[the tour]" not in text
    assert "the tour" in text


def test_anchors_and_absolute_links_are_left_as_they_are(hook):
    kept = "[a](#b) [c](https://d.e/f) ![g](https://d.e/h.png)\n[`i`](mailto:j)\n"
    assert hook.long_description(kept, "1", None) == kept
    assert hook.long_description("[`a[0]`](b.md)", "1", None) == "`a[0]`"


def test_the_hook_hands_over_what_is_built(hook):
    found = hook.LongDescription()
    found.root = str(ROOT)
    metadata = {"version": PROJECT["version"], "urls": PROJECT.get("urls", {})}
    found.update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert not RELATIVE.search(metadata["readme"]["text"])
    assert PROJECT["dynamic"] == ["readme"]


def test_version_and_authors_are_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["version"] == optrand.__version__ == cited["version"]
    assert PROJECT["authors"] == [{"name": "optrand developers"}] == cited["authors"]


def test_every_python_that_is_promised_is_tried():
    promised = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert promised == list(script("package").VERSIONS)
    assert all(version in SpecifierSet(PROJECT["requires-python"]) for version in promised)
    assert "3.10" not in SpecifierSet(PROJECT["requires-python"])


def test_what_the_archive_must_hold_is_there():
    package = script("package")
    assert all((ROOT / name).is_file() for name in [*package.IN_ARCHIVE, *package.TESTS])
    assert all(package.CACHE.search(name) for name in ("optrand/__pycache__/x.pyc", ".mypy_cache/x", "demo/weeks.csv"))
    assert not any(package.CACHE.search(name) for name in package.IN_ARCHIVE)


def test_blocks_that_need_more_than_the_wheel_are_known():
    imported = script("try_wheel").imported
    assert imported(">>> import pandas as pd, numpy\n>>> from sklearn.ensemble import X\n>>> x = 1\n") == {
        "pandas",
        "numpy",
        "sklearn",
    }
    assert imported("import optrand.errors\nfrom optrand import solve\n") == {"optrand"}


def test_the_conda_recipe_is_of_this_package():
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == PROJECT["scripts"]
    needed = {one.name: one.specifier for one in map(Requirement, PROJECT["dependencies"])}
    needed["matplotlib-base"] = needed.pop("matplotlib")
    needed["python"] = SpecifierSet(PROJECT["requires-python"])
    told = [Requirement(line) for line in recipe["requirements"]["run"]]
    assert {one.name: one.specifier for one in told} == needed
    (backend,) = map(Requirement, PYPROJECT["build-system"]["requires"])
    assert str(backend).replace(">", " >", 1) in recipe["requirements"]["host"]


def recipes() -> dict[str, list[str]]:
    """Commands behind each target of make, in an environment that is active."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n\t\t", "")
    found = {}
    for target, lines in re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE):
        plain = lines.replace("$(RUN)", "").replace("$(PYTHON)", "python3")
        found[target] = [line.strip() for line in plain.splitlines()]
    return found


def test_commands_without_make_are_those_that_make_runs():
    text = (ROOT / "docs" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Without make\n")[2].partition("\n## ")[0]
    told: dict[str, list[str]] = {}
    for target, command in re.findall(r"^\| (?:`make ([a-z-]+)`)? ?\| (.*) \|$", section, re.MULTILINE):
        rows = told.setdefault(target or list(told)[-1], [])
        rows += re.findall(r"^`(.*)`$", command)
    known = recipes()
    assert len(told) >= 10
    assert told == {target: known[target] for target in told}
    targets = set(known) - {"help", "everything", "floors", "newest", "clean", "mutation", "system-deps"}
    assert targets == set(told)
    setup = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(RUN)", ".venv/bin/")
    for line in re.findall(r"^\.venv/bin/python -m pip .*$", section, re.MULTILINE):
        assert f"\t{line}\n" in setup
