"""What can go wrong, as one tree. A message says what was needed, what was given, and what to do."""

import re

_CLASS = re.compile(r"\b[A-Za-z]+(?:Exception|Error): ")


def reason_of(error: Exception) -> str:
    """What an error of a library says, in a line without the names of classes; with nothing to say, its own.

    >>> reason_of(OSError("Cannot read: TProtocolException: Invalid data.\\nIn a page.")), reason_of(KeyError())
    ('Cannot read: Invalid data', 'KeyError')
    """
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return _CLASS.sub("", first).rstrip(".")


def is_of_storage(error: Exception) -> bool:
    """Whether the system failed at reading or writing, which may pass; what Arrow says of a file is not that.

    >>> is_of_storage(OSError(5, "Input/output error")), is_of_storage(OSError("Corrupt snappy compressed data."))
    (True, False)
    """
    return isinstance(error, OSError) and bool(error.errno)


class WindowError(Exception):
    """The root of every error this project raises on purpose."""


class TryAgain(WindowError):
    """Not a mistake in the input: the same command may well succeed a little later."""


class InvalidSpec(WindowError, ValueError):
    """The definition contradicts itself, or nothing here can run it exactly."""


class InvalidElement(WindowError, ValueError):
    """The element cannot be placed in time: it lacks a timestamp, or brings a gap that is not positive."""


class UnknownWindow(WindowError, LookupError):
    """The window is not in flight for this key."""


class WatermarkRegression(WindowError, ValueError):
    """A run would move time backwards. Raised by jobs only: the operator does as Flink does."""


class StateMismatch(WindowError):
    """The state was stored by another spec or in another format."""


class ExpectationsFailed(WindowError):
    """A table broke its suite."""


class WindowsDiffer(WindowError):
    """A pipeline's windows are not those that its source gives."""
