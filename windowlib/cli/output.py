"""Standard output and error, which may be a full disk or a pipe that is no longer read: not the warehouse's fault."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import typer

from windowlib.cli.exits import UNEXPECTED, CannotPrint, print_error


class Output:
    """A stream whose refusals are `CannotPrint`. One that is read no more, as by `head`, ends the command silently."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """As of the stream."""
        if text == "":  # a library looks what kind of stream it is, and keeps to itself what it is answered
            return 0
        self._asked(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """As of the stream."""
        self._asked(self.stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _asked(self, ask: Callable[[], object]) -> None:
        try:
            ask()
            return
        except OSError as error:
            refused = error
        _to_nowhere(self.stream)
        self._refused(refused)

    def _refused(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(UNEXPECTED)
        raise CannotPrint(
            f"standard output cannot be written to: {error.strerror}. What the command had done before stays done:"
            " give it room, and ask again"
        )


class ErrorStream(Output):
    """Standard error: what it refuses is lost, and nothing else. The command goes on, and its exit code stays."""

    def _refused(self, error: OSError) -> None:
        pass


def _to_nowhere(stream: TextIO) -> None:
    """Has Python write what it still keeps for the stream, at its end too, to where nothing is refused."""
    with suppress(OSError), open(os.devnull, "w", encoding="utf-8") as nothing:  # OSError: it is kept in memory
        os.dup2(nothing.fileno(), stream.fileno())


@contextmanager
def output() -> Iterator[None]:
    """Has the block print to such streams; also what a command prints that is none of ours, such as `--help`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Output(before[0]), ErrorStream(before[1])
    try:
        yield
    except CannotPrint as error:
        sys.exit(print_error(error, ""))
    finally:
        sys.stdout, sys.stderr = before
