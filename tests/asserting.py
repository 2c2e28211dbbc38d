"""Assertions and parameters that many tests have, in one line each."""

import pytest

from optrand.errors import InvalidInput


def assert_error(words, call, /, *arguments, error=InvalidInput, **options):
    """Assert that a call raises an error, invalid input by default, with words that match a pattern or None."""
    __tracebackhide__ = True
    with pytest.raises(error, match=words):
        call(*arguments, **options)


def by_case(names, *cases, **options):
    """Run a test for each case: ``pytest.mark.parametrize`` with a case per argument."""
    return pytest.mark.parametrize(names, cases, **options)
