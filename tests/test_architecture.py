"""Imports point to lower layers, as the drawing shows, and heavy packages are imported when they are needed."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest

import optrand

PACKAGE = Path(optrand.__file__).parent

NAMES = [name for name in dir(optrand) if not name.startswith("_")]
"""Every public name."""

LAYERS = [
    {"errors"},
    {"base"},
    {"data", "losses"},
    {"model"},
    {"sampling"},
    {"certificates"},
    {"mechanism"},
    {"closed_forms", "programs"},
    {"solvers"},
    {"studies"},
    {"baselines", "estimate", "states", "vectors"},
    {"accounting"},
    {"learning", "plotting", "release"},
    {"audits", "theory"},
    {"cli"},
    {"__init__", "__main__"},
]
"""From the lowest up: a module imports from lower layers, or within its own package."""

CHECKERS = {"checker", "program_checker"}
"""Modules that stand outside: each reads files with the standard library alone."""

HEAVY = (
    *("clarabel", "cryptography", "cvxpy", "dp_accounting", "flint", "highspy", "joblib", "matplotlib", "numpy"),
    *("opendp", "pandas", "polars", "pyarrow", "pyspark", "rich", "scipy", "sklearn", "torch", "typer"),
)


DELEGATES = ("fget", "func", "__func__")
"""Where properties, cached properties and class methods hold their function."""


def modules() -> dict[str, list[Path]]:
    """Every file of the package by the name of its module or sub-package directly under ``optrand``."""
    found: dict[str, list[Path]] = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        found.setdefault(name, []).append(path)
    return found


@cache
def import_nodes(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import of a file, and whether only a type checker reads it."""
    found: list[tuple[ast.Import | ast.ImportFrom, bool]] = []

    def visit(node: ast.AST, hidden: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, hidden))
        hidden |= isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                visit(child, hidden)

    visit(ast.parse(path.read_text(encoding="utf-8")), False)
    return found


def imported(path: Path) -> set[str]:
    """Modules of optrand that a file imports at run time: imports for type checkers only do not count."""
    names: set[str] = set()
    for node in (node for node, hidden in import_nodes(path) if not hidden):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "optrand":
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("optrand.")}
    return names


def roots(path: Path) -> set[str]:
    """Packages that a file imports, this one left out if named by dots."""
    return {
        name.split(".")[0]
        for node, _ in import_nodes(path)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }


def test_no_module_imports_what_only_posix_has() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not roots(path) & {"fcntl", "grp", "pwd", "resource", "termios"}, path


def test_every_module_has_its_layer_and_imports_point_down() -> None:
    layer_of = {name: level for level, names in enumerate(LAYERS) for name in names}
    found = modules()
    assert set(found) - CHECKERS == set(layer_of)
    for name, paths in found.items():
        for path in paths:
            for other in imported(path) & set(found):
                upward = name not in CHECKERS and other != name and layer_of[other] >= layer_of[name]
                assert not upward, f"{path.name} on layer {layer_of[name]} imports {other} on layer {layer_of[other]}"


def test_the_drawing_shows_the_layers() -> None:
    drawing = (PACKAGE.parent / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")
    packages = re.findall(r'font-weight="bold" fill="#1d2733">(\w+)<', drawing)
    assert set(packages) == {name for layer in LAYERS for name in layer if not name.startswith("_")}
    layer_of = {name: level for level, names in enumerate(LAYERS) for name in names}
    assert [layer_of[name] for name in packages] == sorted(layer_of[name] for name in packages)


def test_the_certificate_sees_no_solver_and_no_backend() -> None:
    for name in ("certificates", "mechanism", "closed_forms"):
        for path in modules()[name]:
            text = path.read_text(encoding="utf-8")
            assert "solvers" not in imported(path), path
            assert not any(f"import {engine}" in text for engine in ("highspy", "clarabel", "cvxpy")), path


@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_stands_alone(name: str) -> None:
    path = PACKAGE / f"{name}.py"
    assert roots(path) <= set(sys.stdlib_module_names)
    assert name != "checker" or "decimal" not in roots(path), (
        "a second witness takes no brackets from decimal, as optrand"
    )
    assert len(path.read_text(encoding="utf-8").splitlines()) < 320


def test_no_module_bears_the_name_of_a_public_function() -> None:
    """A module would replace the function of its name as soon as it is imported."""
    public = {name for name in NAMES if callable(getattr(optrand, name))}
    stems = {path.parent.name if path.name == "__init__.py" else path.stem for path in PACKAGE.rglob("*.py")}
    assert not stems & public
    for package in PACKAGE.rglob("__init__.py"):
        module = importlib.import_module(".".join(package.parent.relative_to(PACKAGE.parent).parts))
        here = {path.stem for path in package.parent.glob("*.py")}
        assert not here & {
            name for name in getattr(module, "__all__", ()) if inspect.isfunction(getattr(module, name))
        }, package


def test_modules_without_an_underscore_are_those_that_users_import_from() -> None:
    plain = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.name.startswith("_")}
    claims = {path for path in plain if path.parts[0] == "theory" and len(path.parts) == 3}
    assert sorted(map(str, plain - claims)) == [
        *["checker.py", "errors.py", "learning/torch.py", "losses.py", "plotting/report.py", "program_checker.py"]
    ]
    for path in PACKAGE.rglob("*.py"):
        exported = any(
            isinstance(node, ast.Assign) and any(isinstance(it, ast.Name) and it.id == "__all__" for it in node.targets)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
        assert exported <= (path.name == "__init__.py" or path.relative_to(PACKAGE) in plain), path


def test_import_optrand_is_light() -> None:
    script = f"import sys, optrand; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


FIRST = """
import sys
import optrand
mechanism = optrand.solve(optrand.unbiased_regression(labels=[0, 1, 2], prior=[0.5, 0.3, 0.2], epsilon=1.0))
mechanism.certificate.require(gap=1e-9)
print([name for name in {names} if name in sys.modules])
"""


def test_a_first_proof_loads_no_library_that_it_does_not_use() -> None:
    heavy = (*(name for name in HEAVY if name not in ("flint", "numpy", "scipy")), "scipy.optimize", "scipy.stats")
    script = FIRST.format(names=heavy)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_is_imported_from_where_type_checkers_find_it() -> None:
    (block,) = (node for node in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    told = {
        alias.asname: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(map(str, told)) == NAMES
    for name, module in told.items():
        home = importlib.import_module(str(module))
        expected = getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{module}.{name}")
        optrand.__dict__.pop(name, None)
        assert getattr(optrand, name) is expected, name


def test_every_public_package_is_an_attribute() -> None:
    for name in sorted(name for layer in LAYERS for name in layer if name.islower() and name[0] != "_"):
        if name != "cli":
            optrand.__dict__.pop(name, None)
            assert getattr(optrand, name) is importlib.import_module(f"optrand.{name}"), name


def test_help_opens_with_every_name_on_one_line() -> None:
    told = optrand.__doc__
    assert told is not None
    lines = told.splitlines()
    assert len(lines) < 80
    listed = [found for line in lines if (found := re.match(r":\w+:`(\w+)`\s+\S", line))]
    assert sorted(found[1] for found in listed) == NAMES


def test_public_names_exist_and_are_documented() -> None:
    for name in NAMES:
        assert getattr(optrand, name).__doc__, name


def test_public_classes_document_what_they_do() -> None:
    """Modules with an underscore are private to ruff, which demands no docstring there."""
    exported = {id(it): it for it in map(partial(getattr, optrand), NAMES)}
    for package in filter(inspect.ismodule, list(exported.values())):
        exported |= {id(it): it for it in (getattr(package, name) for name in dir(package) if name[0] != "_")}
    bare = []
    for owner in filter(inspect.isclass, exported.values()):
        for name in (name for name in dir(owner) if not name.startswith("_")):
            member = inspect.getattr_static(owner, name)
            it = next((found for part in DELEGATES if (found := getattr(member, part, None))), member)
            if inspect.isfunction(it) and it.__module__.startswith("optrand.") and not inspect.getdoc(it):
                bare.append(f"{owner.__name__}.{name}")
    assert bare == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Imports at run time, those inside functions among them, have no circle within a layer either."""
    files = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    arrows = {name: sources(path) & set(files) - {name} for name, path in files.items()}
    done, open_ = set[str](), list[str]()

    def visit(name: str) -> None:
        assert name not in open_, f"a circle: {' -> '.join([*open_[open_.index(name) :], name])}"
        if name in done:
            return
        open_.append(name)
        for other in sorted(arrows[name]):
            visit(other)
        open_.pop()
        done.add(name)

    for name in files:
        visit(name)


def sources(path: Path) -> set[str]:
    """Modules of optrand that a file takes names from, packages left out."""
    names = set[str]()
    for node, _ in import_nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
