"""The blocks of Python and the first commands of a README, with an optrand that was installed from a wheel.

Run in an empty folder by the Python of the environment that has the wheel. A block that imports a package which is not
installed is skipped, and its name printed.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import optrand

COMMANDS = (
    "optrand --version",
    "optrand solve --labels 0:52 --prior {data}/weeks_worked_counts.csv --epsilon 1 -o weeks.json",
    "optrand verify weeks.json --gap 1e-9",
    "{python} {package}/checker.py weeks.json",
    "optrand plot weeks.json -o weeks.png",
)


def main(readme: Path) -> None:
    """Run all, or end with what failed."""
    package = Path(optrand.__file__).parent
    if not package.is_relative_to(sys.prefix):
        sys.exit(f"optrand was imported from {package}, which is not in {sys.prefix}")
    ran = 0
    for block in re.findall(r"^```python\n(.*?)^```$", readme.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        lacking = sorted(name for name in imported(block) if find_spec(name) is None)
        if lacking:
            print(f"left out: a block that needs {', '.join(lacking)}")
        elif block.startswith(">>>"):
            examples = doctest.DocTestParser().get_doctest(block, {}, "README", str(readme), 0)
            if doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples).failed:
                sys.exit(1)
            ran += 1
        else:
            exec(compile(block, str(readme), "exec"), {})
            ran += 1
    if not ran:
        sys.exit(f"{readme} has no block of Python that runs without extras")
    scripts = Path(sys.executable).parent
    surroundings = {
        **os.environ,
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(Path.cwd() / "state"),
    }
    for command in COMMANDS:
        line = command.format(data=package / "data", package=package, python=sys.executable)
        done = subprocess.run(line.split(), env=surroundings, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        if command.endswith("--version") and done.stdout.split() != ["optrand", version("optrand")]:
            sys.exit(f"{line}: {done.stdout}")
    print(f"{ran} blocks and {len(COMMANDS)} commands with Python {sys.version.split()[0]}")


def imported(block: str) -> set[str]:
    """Top-level packages that a block imports."""
    lines = re.findall(r"^(?:>>> )?(?:import|from) (.*?)(?: import .*)?$", block, re.MULTILINE)
    return {name.split(" as ")[0].strip().split(".")[0] for line in lines for name in line.split(",")}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
