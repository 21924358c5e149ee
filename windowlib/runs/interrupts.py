"""Ctrl-C before a command has begun, while Python still imports: the process ends at once, without a word.

Python would raise `KeyboardInterrupt` somewhere in the middle of an import, where a library may swallow it or print it.
So the first thing that the package imports is this module: in a process that was started as the command line, it has
the signal end the process until `windowlib.cli.main.main` calls `as_usual`. Nothing has been begun by then.
"""

import os.path
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT  # as shells count it


def is_command(started: list[str], arguments: list[str]) -> bool:
    """Whether a process is `windowlib` or `python -m windowlib`, by `sys.orig_argv` and `sys.argv`.

    >>> is_command(["python3", "-P", "-m", "windowlib", "run"], ["-m", "run"]), is_command(["python3"], [""])
    (True, False)
    """
    if not len(started) >= len(arguments) > 0:
        return False
    return os.path.basename(started[-len(arguments)]) in ("windowlib", "-mwindowlib")


def end(number: int, frame: object) -> None:
    """Ends the process, whatever it is doing."""
    os._exit(INTERRUPTED)


def as_usual() -> None:
    """From now on the signal raises `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if is_command(sys.orig_argv, sys.argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end)
