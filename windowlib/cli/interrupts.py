"""Ctrl-C. Before a command has begun, while Python still imports, it ends the process at once, without a word.

Python would raise `KeyboardInterrupt` somewhere in the middle of an import, where a library may swallow it or print it.
So the first thing that the package imports is this module: in a process that was started as the command line, it has
the signal end the process until `windowlib.cli.main.main` calls `raised`. Nothing has been begun by then.

From then on it is raised, so that a run lets go of its pipeline. An engine may not let go of the process: PySpark asks
it to cancel what it computes, and once more when Python ends, and tries again for minutes where Sail is too busy to
answer. So the process ends after `GRACE_S`, or at a second Ctrl-C, as if it had been killed: a run may be at any time.
"""

import contextvars
import os.path
import signal
import sys
import threading
import time
from collections.abc import Callable

INTERRUPTED = 128 + signal.SIGINT  # as shells count it
GRACE_S = 5
said = threading.Event()  # set where it was said how the command ended


def is_command(started: list[str], arguments: list[str]) -> bool:
    """Tests if a process is `windowlib` or `python -m windowlib`, by `sys.orig_argv` and `sys.argv`.

    >>> is_command(["python3", "-P", "-m", "windowlib", "run"], ["-m", "run"]), is_command(["python3"], [""])
    (True, False)
    """
    if not len(started) >= len(arguments) > 0:
        return False
    return os.path.basename(started[-len(arguments)]) in ("windowlib", "-mwindowlib")


def end(number: int, frame: object) -> None:
    """Ends the process, whatever it is doing."""
    os._exit(INTERRUPTED)


def raised(say: Callable[[], None]) -> None:
    """From now on the signal raises `KeyboardInterrupt`; `say` is called where nothing else has said how it ended."""

    def end_late(context: contextvars.Context) -> None:
        time.sleep(GRACE_S)
        if not said.is_set():
            context.run(say)
        os._exit(INTERRUPTED)

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, end)
        threading.Thread(target=end_late, args=(contextvars.copy_context(),), daemon=True).start()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) in (end, signal.default_int_handler):
        signal.signal(signal.SIGINT, interrupt)


if is_command(sys.orig_argv, sys.argv) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, end)
