"""Hypothesis profiles, and fixtures of every test.

``HYPOTHESIS_PROFILE=ci`` draws four times as many examples as by default, ``nightly`` forty times, new ones each time.
"""

import os
import time
from functools import cache

import pytest
import typer.testing
from hypothesis import settings

# Threads of two test processes on two cores wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A runner reads the signatures of all commands for each line that it runs, which takes ten times as long as a refusal.
typer.testing._get_command = cache(typer.main.get_command)

settings.register_profile("dev", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("ci", max_examples=100, derandomize=True, deadline=None)
settings.register_profile("nightly", max_examples=1_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


BEGIN = time.monotonic()
NIGHTLY_MINUTES = 90
"""Time budget of ``make nightly`` on two cores."""


def pytest_terminal_summary(terminalreporter, config):
    """Print the counts that nightly tests record, such as the share proven by class, and the time they took."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
    if config.option.markexpr == "nightly":
        minutes = (time.monotonic() - BEGIN) / 60
        terminalreporter.write_line(f"{minutes:.0f} minutes of a budget of {NIGHTLY_MINUTES} on two cores")


@pytest.fixture(autouse=True)
def unsynced(monkeypatch):
    """Skip waiting for the disk, since only files after a crash of the machine depend on it."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory):
    """Folder of ledgers, in place of that of the person who runs the tests."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    yield
    os.environ.pop("XDG_STATE_HOME")
    if before is not None:
        os.environ["XDG_STATE_HOME"] = before
