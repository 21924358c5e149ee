"""Standard output and error with handling of failed writes, such as to a full disk or a closed pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from windowlib.cli.exits import UNEXPECTED, CannotPrint, print_error


class Output:
    """Stream that raises `CannotPrint` if a write fails. A closed pipe, as by `head`, ends the command silently."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a string to the stream."""
        if text == "":  # a library tests the kind of the stream with it, and would hide an error
            return 0
        self._attempt(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._attempt(self.stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _attempt(self, operation: Callable[[], object]) -> None:
        try:
            operation()
            return
        except OSError as error:
            refusal = error
        _discard_rest(self.stream)
        self._refused(refusal)

    def _refused(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(UNEXPECTED)
        raise CannotPrint(
            f"standard output cannot be written to: {error.strerror}. Work that the command has finished is kept."
            " Free some space, then run it again"
        )


class ErrorStream(Output):
    """Standard error. Text that it refuses is lost, but the command continues and its exit code stays the same."""

    def _refused(self, error: OSError) -> None:
        pass


def _discard_rest(stream: TextIO) -> None:
    """Redirects the stream to nowhere, so that Python's buffer for it is discarded, also when Python ends."""
    with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nowhere:  # OSError: a stream in memory
        os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def output() -> Iterator[None]:
    """Makes the block print to `Output` and `ErrorStream`, also the text of libraries, such as `--help`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Output(before[0]), ErrorStream(before[1])
    try:
        yield
    except CannotPrint as error:
        sys.exit(print_error(error, ""))
    finally:
        sys.stdout, sys.stderr = before
