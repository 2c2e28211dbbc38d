"""The pages for people: links and names exist, and examples print the shown output."""

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.main import get_command

import optrand
import optrand.plotting
from benchmarks.__main__ import BENCHMARKS
from optrand.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "how-to").glob("*.md"))]

LINK = re.compile(r"\[((?:`[^`]*`|[^\]`])*)\](?:\(([^)\s]+)\)|: (\S+)$)", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OURS = re.compile(r"\boptrand(?:\.[a-z_]\w*)+", re.IGNORECASE)
FILES = {".py", ".md", ".toml", ".csv", ".gz", ".json", ".png", ".html", ".txt", ".cff", ".ipynb"}

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


# ----------------------------------------------------------------------------------------------------- links and names
@cache
def defined(path: Path) -> frozenset[str]:
    """Every function, class, method and constant of a module, methods as ``Class.method``."""
    names = set[str]()

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names.update(prefix + target.id for target in targets if isinstance(target, ast.Name))

    visit(ast.parse(path.read_text()).body, "")
    return frozenset(names)


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


def broken_links(page: Path) -> list[str]:
    """Links to files or headings that are not there, and names that their modules do not define."""
    broken = []
    for text, *targets in LINK.findall(FENCE.sub("", page.read_text())):
        target = "".join(targets)
        where, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / where).resolve() if where else page
        name = text.strip("`")
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(target)
        elif path.suffix == ".py" and text.startswith("`") and "/" not in name and name != path.name:
            stem = path.parent.name if path.name == "__init__.py" else path.stem
            if name.removeprefix(f"{stem}.") not in defined(path):
                broken.append(f"{name} in {target}")
    return broken


def exists(dotted: str) -> bool:
    """Whether a dotted name is a module of ours, or something in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        name = ".".join(parts[:cut])
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and error.name.startswith("optrand"):
                continue
            raise
        for part in parts[cut:]:
            if part not in getattr(found, "__annotations__", {}) and not hasattr(found, part):
                return False
            found = getattr(found, part, None)
        return True
    return False


@cache
def known_tests() -> frozenset[str]:
    """The names of all test functions and modules."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return frozenset().union(*map(defined, files), {file.stem for file in files})


def unknown_names(page: Path) -> list[str]:
    """Names of ours, tests and files that a page mentions and that are not defined."""
    text = page.read_text()
    mentioned = " ".join([*CODE.findall(FENCE.sub("", text)), *FENCE.findall(text)])
    dotted = {name for name in OURS.findall(mentioned) if f".{name.rsplit('.', 1)[1]}" not in FILES}
    named = set(re.findall(r"\btest_\w+", mentioned))
    paths = set(re.findall(r"(?<![\w/.])(?:optrand|tests|benchmarks|docs|notebooks)/[\w/.]*\w", mentioned))
    return sorted(
        [name for name in dotted if not exists(name)]
        + [name for name in named if name not in known_tests()]
        + [path for path in paths if not (ROOT / path).exists() and not path.startswith("docs/_build")]
    )


@pages
def test_what_is_linked_is_there(page: Path) -> None:
    assert broken_links(page) == []


@pages
def test_what_is_named_exists(page: Path) -> None:
    assert unknown_names(page) == []


def commands(page: Path) -> dict[str, set[str]]:
    """The targets of make, the benchmarks and the commands of the command line that a page recommends."""
    text = page.read_text()
    lines = [*CODE.findall(FENCE.sub("", text)), *"\n".join(FENCE.findall(text)).splitlines()]
    lines += re.findall(r"^ {4}(.*)$", text, re.MULTILINE)
    told = "\n".join(line.split("  #")[0].strip() for line in lines)
    patterns = {
        "make": r"^make ([a-z-]+)",
        "benchmarks": r"python -m benchmarks ([a-z]\w*)",
        "optrand": r"^optrand (\w+)",
    }
    return {kind: set(re.findall(pattern, told, re.MULTILINE)) for kind, pattern in patterns.items()}


@pages
def test_commands_exist(page: Path) -> None:
    told = commands(page)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert told["make"] <= set(targets)
    assert told["benchmarks"] <= set(BENCHMARKS)
    assert told["optrand"] <= set(get_command(app).commands)


# ---------------------------------------------------------------------------------------------------- examples that run
@pytest.fixture
def one_thread() -> Iterator[None]:
    """Problems as small as those of pages are solved faster by one thread than by many that wait for each other."""
    import sklearn.ensemble  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def marks(page: Path) -> pytest.MarkDecorator | tuple[()]:
    """Mark all pages except the README as run by ``make docs``."""
    return () if page.name == "README.md" else pytest.mark.docs


RUN_WITH_COMMANDS = {"audit.md", *(page.name for page in (ROOT / "docs" / "how-to").glob("*.md"))}
"""Pages whose code and command lines `test_readme_commands` runs together."""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=marks(page)) for page in PAGES if page.name not in RUN_WITH_COMMANDS],
    ids=lambda page: page.name,
)
def test_what_is_shown_is_what_comes_out(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All examples of a page, one after the other. The fences around them are not output."""
    text = re.sub(r"^ *```.*$", "", page.read_text(), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    told: list[str] = []
    monkeypatch.chdir(tmp_path)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=told.append)
    assert results.failed == 0, "".join(told)


def programs(page: Path) -> list[str]:
    """Python without prompts."""
    return re.findall(r"^```python\n((?!>>>).*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_program_of_the_readme_ends_with_a_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = programs(ROOT / "README.md")
    names: dict[str, Any] = {}
    exec(compile(program, "README.md", "exec"), names)  # noqa: S102
    assert names["proof"].findings == ()
    assert names["proof"].gap <= 1e-9
    assert names["noisy"].shape == (4,)
    assert (tmp_path / "labels.json").is_file()


@pages
def test_other_pages_have_examples_with_prompts_which_are_compared(page: Path) -> None:
    assert page.name == "README.md" or programs(page) == []


# -------------------------------------------------------------------------------------------------------- the reference
@cache
def documented() -> frozenset[str]:
    """Every name under which the reference shows something, as users import it."""
    found = set[str]()
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        text = page.read_text()
        found |= set(re.findall(r"^\.\. auto(?:class|data|exception|function):: (\S+)$", text, re.MULTILINE))
        for module, options in re.findall(r"^\.\. automodule:: (\S+)\n((?: {3}:.*\n)*)", text, re.MULTILINE):
            excluded = re.findall(r"\w+", "".join(re.findall(r":exclude-members: (.*)", options)))
            shown = re.findall(r"\w+", "".join(re.findall(r":members: (.*)", options)))
            found |= {f"{module}.{name}" for name in shown if name not in excluded}
            if ":imported-members:" in options:
                names = importlib.import_module(module).__all__
                found |= {f"{module}.{name}" for name in names if name not in excluded}
    return frozenset(found)


PACKAGES = ["accounting", "audits", "baselines", "closed_forms", "data", "errors", "estimate", "learning", "losses"]
PACKAGES += ["plotting", "programs", "release", "sampling", "solvers", "states", "studies", "theory", "vectors"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    names = getattr(optrand, package).__all__
    hidden = [name for name in names if not {f"optrand.{package}.{name}", f"optrand.{name}"} & documented()]
    assert hidden == []
    assert {name for name in names if {f"optrand.{package}.{name}", f"optrand.{name}"} <= documented()} == set()


def test_names_of_the_package_itself_are_in_the_reference() -> None:
    names = [name for name in dir(optrand) if not isinstance(getattr(optrand, name), ModuleType)]
    assert [name for name in names if not name.startswith("__") and f"optrand.{name}" not in documented()] == []


def test_the_reference_begins_with_every_name_of_the_package() -> None:
    listed = re.findall(r":py:obj:`~optrand\.(\w+)`", (ROOT / "docs" / "api" / "index.rst").read_text())
    assert sorted(listed) == [name for name in dir(optrand) if not name.startswith("_")]


def test_the_gallery_shows_every_picture() -> None:
    text = (ROOT / "docs" / "gallery.md").read_text()
    shown = set(re.findall(r"^figure = (\w+)\(", text, re.MULTILINE))
    assert shown | {"save_figure"} == set(optrand.plotting.__all__)
    names = re.findall(r"^```{picture} (\S+)$", text, re.MULTILINE)
    assert len(names) == len(set(names))


# ------------------------------------------------------------------------------------------------------------- citation
def test_the_citation_file_is_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["cff-version"], cited["version"]) == ("1.2.0", optrand.__version__)
    assert cited["license"] == "Apache-2.0"
    assert {"message", "title", "authors", "abstract"} <= set(cited)
    assert len(cited["references"]) == 4
    assert all({"type", "title", "authors", "year"} <= set(reference) for reference in cited["references"])


def test_the_changelog_knows_this_version() -> None:
    changelog = (ROOT / "docs" / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(optrand.__version__)}\]", changelog, re.MULTILINE)
