"""Tables of every option for ``docs/command-line.md``, from the help of the command line.

``python .ci/command_line.py`` writes them into the page, below its last heading of its own. Tests compare.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_command

from optrand.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
HEADING = "## Every option\n"
INTRODUCTION = "This is the text of `--help`, written here by `python .ci/command_line.py`."


def options_text() -> str:
    """Return the section: a heading, the help and a table of options for each command."""
    root: Any = get_command(app)
    parts = [HEADING, INTRODUCTION, "`optrand`", table(root.params)]
    for name, command in root.commands.items():
        parts += [f"### optrand {name}", prose(command.help), table(command.params)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def prose(text: str) -> str:
    """Write the docstring of a command as Markdown, with options as code."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(marked(paragraph) for paragraph in paragraphs)


def marked(text: str) -> str:
    """Mark options and environment variables as code."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z0-9-]*|\$[A-Z_]+\S*?(?=[.,]?(?:\s|$)))", r"`\1`", text)


def table(parameters: list[Any]) -> str:
    """Write a table with one row per parameter."""
    rows = [f"| {names(one)} | {explained(one)} |" for one in parameters]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows])


def names(parameter: Any) -> str:
    """Write all spellings of a parameter, with the name of its value."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    value = f" {parameter.metavar}".replace("|", "\\|") if parameter.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in parameter.opts)


def explained(parameter: Any) -> str:
    """Write the help of a parameter, and its default."""
    text = marked(parameter.help).replace("|", "\\|")
    if parameter.required:
        return f"{text} *Required.*"
    default = parameter.default
    if default in (None, False, True, ()) or callable(default) or "default" in parameter.help:
        return text
    return f"{text} By default `{default}`."


def page(text: str) -> str:
    """Replace the section of a page."""
    return text.partition(HEADING)[0] + options_text()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
