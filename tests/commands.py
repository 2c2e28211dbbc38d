"""The command line as tests call it."""

from typer.testing import CliRunner

from optrand.cli import app


def invoke(*arguments, code=None):
    """Run a command and return its result. Assert that it ends with the exit code, if one is given."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert code is None or result.exit_code == code, result.output
    return result
