"""How the site is built: Markdown pages beside an API reference that is read from the docstrings."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib.util
import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon.docstring import NumpyDocstring
from sphinx.util import logging
from sphinx.util.nodes import make_refnode
from sphinx.writers.html5 import HTML5Translator

import optrand

project = "optrand"
author = "optrand developers"
project_copyright = "the optrand developers, Apache-2.0"
release = version = optrand.__version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "pictures",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "jupyter_execute"]
nitpicky = True
# Papers that only modules inside cite.
suppress_warnings = ["ref.citation"]

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"optrand {release}"
html_show_sourcelink = False
html_copy_source = False

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "inherited-members": "object, tuple, str, int, BaseException, Enum, Sequence, BaseEstimator, "
    "ClassifierMixin, RegressorMixin, _MetadataRequester",
    # Routing of metadata, which every estimator of scikit-learn inherits.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_score_request",
}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
add_module_names = True
python_maximum_signature_line_length = 88
# Copied code has neither prompts nor outputs.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
napoleon_google_docstring = False
# Fields of dataclasses are documented together, several on one line where they belong together.
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_param = False
napoleon_use_rtype = False

# The notebooks, as pages, with the outputs that are committed. Tests run them and compare.
TUTORIALS = Path(__file__).parent / "tutorials"
nb_execution_mode = "off"

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
# What GitHub shows as a formula is one here.
myst_fence_as_directive = ["math"]

# Formulas as docutils reads them: it knows no sizes of parentheses and no space around a logarithm, and takes two
# digits for one argument.
TEX = {
    r"\\[bB]ig(?![a-zA-Z])": "",
    r"\\dots(?![a-zA-Z])": r"\\ldots",
    r"\\([lr])brace(?![a-zA-Z])": lambda side: {"l": r"\{", "r": r"\}"}[side[1]],
    r"\\log(?![a-zA-Z_])": r"\\,\\log\\,",
    # The sign that it stands for is in few fonts.
    r"\\setminus(?![a-zA-Z])": r"\\smallsetminus",
    r"(frac|[\^_]) ?(\d)(?=\d)": r"\1{\2}",
}
# "The objective: derived, never stored" is a sentence, but napoleon would take the part before the colon for a type.
NumpyDocstring._consume_inline_attribute = lambda self: ("", self._consume_to_end())

PACKAGE = Path(optrand.__file__).parent
PAPERS = re.findall(r"^\.\. \[(\w+)\]", (Path(__file__).parent / "references.rst").read_text(), re.MULTILINE)
CITED = re.compile(rf"\[({'|'.join(PAPERS)})\](?!_)")


def cite(_app: Sphinx, _what: str, _name: str, _it: object, _options: object, lines: list[str]) -> None:
    """Link the papers that a docstring cites to the page of references."""
    lines[:] = [CITED.sub(r"[\1]_", line) for line in lines]


def complete(_app: Sphinx, _what: str, name: str, it: Any, _options: object, lines: list[str]) -> None:
    """Import what an example takes from its own module, so that it runs wherever it is pasted."""
    first = next((number for number, line in enumerate(lines) if line.lstrip().startswith(">>> ")), None)
    module = sys.modules.get(getattr(inspect.unwrap(getattr(it, "fget", it)), "__module__", None) or name)
    if first is None or module is None:
        return
    bound = set(dir(builtins))
    imports = []
    for example in doctest.DocTestParser().get_examples("\n".join(lines)):
        used, new = names_in(example.source)
        bound |= new
        imports += [import_line(each, module) for each in sorted(used - bound) if hasattr(module, each)]
        bound |= used
    indent = lines[first].partition(">>>")[0]
    lines[first:first] = [f"{indent}>>> {line}" for line in sorted(imports)]


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a statement reads, and those that it binds."""
    used, new = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else new).add(node.id)
        elif isinstance(node, ast.arg):
            new.add(node.arg)
        elif isinstance(node, ast.alias):
            new.add(node.asname or node.name.partition(".")[0])
    return used, new


def import_line(name: str, module: Any) -> str:
    """Return the statement that imports a name of a module from where users import it."""
    it = getattr(module, name)
    if inspect.ismodule(it):
        above, _, last = it.__name__.rpartition(".")
        if last != name:
            return f"import {it.__name__} as {name}"
        return f"from {above} import {name}" if above else f"import {name}"
    home = getattr(it, "__module__", module.__name__)
    public = PUBLIC.get((home, getattr(it, "__qualname__", name)), f"{home}.{name}")
    return f"from {public.rpartition('.')[0]} import {name}"


def public_names() -> dict[tuple[str, str], str]:
    """Return the name under which each public object is documented, by the module and the name of its definition."""
    names: dict[tuple[str, str], str] = {}
    listed = [("optrand", [name for name in dir(optrand) if not name.startswith("_")])]
    for page in sorted((Path(__file__).parent / "api").glob("*.rst")):
        for module in re.findall(r"automodule:: (\S+)", page.read_text()):
            listed.append((module, getattr(importlib.import_module(module), "__all__", [])))
        for module, name in re.findall(r"auto(?:class|function):: (\S+)\.(\w+)", page.read_text()):
            listed.append((module, [name]))
    for module, each in listed:
        for name in each:
            it = getattr(importlib.import_module(module), name)
            if hasattr(it, "__module__"):
                names.setdefault((it.__module__, getattr(it, "__qualname__", name)), f"{module}.{name}")
    return names


PUBLIC = public_names()


def known(target: str, module: str | None, owner: str | None) -> str | None:
    """Return the full name that a reference means, seen from the module that it stands in, or None if it means nothing.

    A public object goes by the name that users import, any other by the name of the module that defines it.
    """
    # A name in the docstring of a public object is one of the module that defines it.
    ours = sorted(name for name in sys.modules if name.startswith("optrand."))
    for prefix in (f"{module}.{owner}", module, None, *ours):
        *path, last = (f"{prefix}.{target}" if prefix else target).split(".")
        for cut in range(len(path), 0, -1):
            try:
                it: Any = importlib.import_module(".".join(path[:cut]))
                for part in path[cut:]:
                    it = getattr(it, part)
            except (ImportError, AttributeError):
                continue
            if last in getattr(it, "__annotations__", {}):
                owner = PUBLIC.get((getattr(it, "__module__", ""), getattr(it, "__qualname__", "")))
                return f"{owner}.{last}" if owner else ".".join((*path, last))
            if not hasattr(it, last):
                continue
            found = getattr(it, last)
            home, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
            if isinstance(it, type) and (it.__module__, it.__qualname__) in PUBLIC:
                return f"{PUBLIC[it.__module__, it.__qualname__]}.{last}"
            return PUBLIC.get((home, name), f"{home}.{name}") if home and name else ".".join((*path, last))
    try:
        return target if importlib.util.find_spec(target) else None
    except ModuleNotFoundError:
        return None


def unlink(_app: Sphinx, tree: nodes.document) -> None:
    """Link the types in docstrings that name a class of ours, and no others."""
    for node in list(tree.findall(addnodes.pending_xref)):
        if node.get("refspecific"):
            name = known(node["reftarget"], node.get("py:module"), node.get("py:class")) or ""
            if name.startswith("optrand.") and node["reftarget"][:1].isupper():
                node["refspecific"], node["reftarget"] = False, name
            else:
                node.replace_self(node.children)


def refer(app: Sphinx, tree: nodes.document) -> None:
    """Lead links to our source files and notebooks, which a reader of the repository follows, to their pages."""
    for node in list(tree.findall(addnodes.download_reference)):
        path = (Path(app.env.doc2path(app.env.docname)).parent / node["reftarget"]).resolve()
        if path.suffix != ".py" or PACKAGE not in path.parents:
            continue
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module, name = ".".join(parts).removesuffix(".__init__"), node.astext()
        full = module if name.endswith((path.name, "/")) else f"{module}.{name.removeprefix(parts[-1] + '.')}"
        xref = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=full, refdoc=app.env.docname)
        xref.extend(node.children)
        node.replace_self(xref)
    for node in tree.findall(addnodes.pending_xref):
        path = Path(node["reftarget"])
        if node.get("refdomain") == "doc" and path.parent.name == "notebooks":
            node["reftarget"] = f"tutorials/{path.name}"


def link(app: Sphinx, env: BuildEnvironment, node: nodes.Element, text: nodes.Element) -> nodes.Element | None:
    """Link shorter names to their objects, and leave objects unlinked that exist but are on no page."""
    if node.get("refdomain") != "py":
        return None
    name = known(node["reftarget"], node.get("py:module"), node.get("py:class"))
    if name is None:
        return None
    entry = env.domains["py"].data["objects"].get(name)
    if entry is None:
        return text
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, [text], name)


def formula(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula in the browser's own language, so that the site needs nothing from elsewhere."""
    tex = node.astext()
    for written, read in TEX.items():
        tex = re.sub(written, read, tex)
    try:
        translator.body.append(tex2mathml(tex, as_block=isinstance(node, nodes.math_block)))
    except MathError as error:
        logging.getLogger(__name__).warning("a formula cannot be read (%s): %s", error, tex, location=node)
    raise nodes.SkipNode


def copy_notebooks(_app: Sphinx) -> None:
    """Bring the notebooks below the folder of the pages, where alone they are found."""
    TUTORIALS.mkdir(exist_ok=True)
    # A notebook that was renamed would stay under its old name as a page of its own.
    for path in TUTORIALS.glob("*.ipynb"):
        path.unlink()
    for path in (Path(__file__).parents[1] / "notebooks").glob("*.ipynb"):
        shutil.copyfile(path, TUTORIALS / path.name)


def setup(app: Sphinx) -> None:
    """Connect all of these, citations before napoleon reads the sections of a docstring."""
    app.connect("builder-inited", copy_notebooks)
    app.connect("autodoc-process-docstring", cite, priority=400)
    app.connect("autodoc-process-docstring", complete, priority=450)
    app.connect("doctree-read", unlink)
    app.connect("doctree-read", refer)
    app.connect("missing-reference", link)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
