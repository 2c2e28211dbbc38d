"""The page of the command line describes every command, option and exit code, in their own words."""

import re
from pathlib import Path

import pytest
from asserting import by_case
from test_package import script
from typer.main import get_command
from typer.testing import CliRunner

from optrand.cli import app
from optrand.cli._console import EXIT_CODES
from optrand.cli._reading import parse_outputs

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = get_command(app).commands


def test_the_page_has_every_option_as_the_command_line_explains_it():
    assert script("command_line").page(PAGE) == PAGE, "run python .ci/command_line.py"
    for name, command in COMMANDS.items():
        section = PAGE.partition(f"### optrand {name}\n")[2].partition("\n### ")[0]
        for parameter in command.params:
            spelled = [parameter.metavar] if parameter.param_type_name == "argument" else parameter.opts
            assert parameter.help, f"{name} does not explain {parameter.name}"
            assert all(re.search(rf"^\| .*`{re.escape(one)}[ `]", section, re.MULTILINE) for one in spelled)


@pytest.mark.parametrize("name", ["randomize", "solve", "sweep"])
def test_every_form_of_outputs_is_in_the_help(name):
    (option,) = (one for one in COMMANDS[name].params if one.name == "outputs")
    for form in ("line", "interval:LOW:HIGH", "values:1,2.5,7", "grid:N"):
        assert form in option.help
        parse_outputs(form.replace("LOW", "0").replace("HIGH", "9").replace("N", "9"))


def test_exit_codes_are_those_of_the_help():
    told = re.findall(r"^ {2}(\d)  (.*)$", EXIT_CODES, re.MULTILINE)
    assert len(told) == 6
    assert re.findall(r"^\| (\d) \| (.*) \|$", PAGE, re.MULTILINE) == told


@by_case("typed, place, offered", ("optrand so", 1, "solve"), ("optrand solve --pr", 2, "--prior"))
def test_the_shell_completes_commands_and_options(typed, place, offered):
    asked = {"_OPTRAND_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(place)}
    result = CliRunner().invoke(app, [], prog_name="optrand", env=asked)
    assert result.stdout.split() == [offered]
