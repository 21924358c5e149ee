"""Tree of all errors. A message states what is wrong, what was expected, and what to do."""

import re

_CLASS = re.compile(r"\b[A-Za-z]+(?:Exception|Error): ")


def reason_of(error: Exception) -> str:
    """First line of a library error's message without class names; the error's class name if the message is empty.

    >>> reason_of(OSError("Cannot read: TProtocolException: Invalid data.\\nIn a page.")), reason_of(KeyError())
    ('Cannot read: Invalid data', 'KeyError')
    """
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return _CLASS.sub("", first).rstrip(".")


def is_of_storage(error: Exception) -> bool:
    """Tests if reading or writing failed in the operating system, so that a retry may help.

    An OSError that Arrow raises about a file's contents has no ``errno`` and is not such a failure.

    >>> is_of_storage(OSError(5, "Input/output error")), is_of_storage(OSError("Corrupt snappy compressed data."))
    (True, False)
    """
    return isinstance(error, OSError) and bool(error.errno)


class WindowError(Exception):
    """Root of every error that this project raises on purpose."""


class TryAgain(WindowError):
    """A temporary failure: the same command may succeed a little later."""


class InvalidSpec(WindowError, ValueError):
    """The definition contradicts itself, or no plan can run it exactly."""


class InvalidElement(WindowError, ValueError):
    """The element cannot be placed in time: it lacks a timestamp, or its gap is not positive."""


class UnknownWindow(WindowError, LookupError):
    """The window is not in flight for this key."""


class WatermarkRegression(WindowError, ValueError):
    """A batch would move the watermark backwards. The operator accepts a lower watermark, as Flink does."""


class StateMismatch(WindowError):
    """The state was stored by another spec or in another format."""


class ExpectationsFailed(WindowError):
    """A table failed a check of its suite."""


class WindowsDiffer(WindowError):
    """A pipeline's windows differ from a recomputation from its source."""
