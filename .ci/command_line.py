"""Every option, as ``docs/command-line.md`` describes it: what the command line says of itself, as tables.

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
INTRODUCTION = "As `--help` after a command has it. (Written by `python .ci/command_line.py`.)"


def options_text() -> str:
    """Return the section: a heading, what it does and a table for each command."""
    root: Any = get_command(app)
    parts = [HEADING, INTRODUCTION, "`optrand`", table(root.params)]
    for name, command in root.commands.items():
        parts += [f"### optrand {name}", prose(command.help), table(command.params)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def prose(text: str) -> str:
    """Docstring of a command as Markdown: its paragraphs, with options as code."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(marked(paragraph) for paragraph in paragraphs)


def marked(text: str) -> str:
    """Text with options and environment variables as code."""
    return re.sub(r"(?<![\w`-])(--[a-z][a-z0-9-]*|\$[A-Z_]+\S*?(?=[.]?(?:\s|$)))", r"`\1`", text)


def table(parameters: list[Any]) -> str:
    """One row a parameter."""
    rows = [f"| {names(one)} | {explained(one)} |" for one in parameters]
    return "\n".join(["| option | meaning |", "| --- | --- |", *rows])


def names(parameter: Any) -> str:
    """All spellings, with what follows them."""
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar}`"
    value = f" {parameter.metavar}".replace("|", "\\|") if parameter.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in parameter.opts)


def explained(parameter: Any) -> str:
    """Help, and what happens without the option."""
    told = marked(parameter.help).replace("|", "\\|")
    if parameter.required:
        return f"{told} *Required.*"
    default = parameter.default
    if default in (None, False, True, ()) or callable(default) or "default" in parameter.help:
        return told
    return f"{told} By default `{default}`."


def page(text: str) -> str:
    """Put the section into the page, in place of the one that is there."""
    return text.partition(HEADING)[0] + options_text()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
