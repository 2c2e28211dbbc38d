"""What many tests assert in one line."""

import pytest

from optrand.errors import InvalidInput


def assert_error(words, call, /, *arguments, error=InvalidInput, **options):
    """Assert that a call raises an error, invalid input by default, with words that match a pattern."""
    __tracebackhide__ = True
    with pytest.raises(error, match=words):
        call(*arguments, **options)
