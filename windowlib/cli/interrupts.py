"""Ctrl-C before and while a command runs.

While Python still imports, Ctrl-C ends the process at once, without a message. `KeyboardInterrupt` in the middle of an
import could be swallowed or printed by a library. So the package imports this module first. In a process started as the
command line, the signal ends the process until `windowlib.cli.main.main` calls `raise_on_interrupt`. No work has begun
by then.

From then on Ctrl-C raises `KeyboardInterrupt`, so that a run releases its pipeline. An engine may keep the process
alive: PySpark asks Sail to cancel its work, and asks again when Python ends. If Sail is too busy to answer, PySpark
repeats this for minutes. So the process ends after `GRACE_S`, or at a second Ctrl-C, as if it were killed. A run can be
killed at any time without harm.
"""

import contextvars
import os.path
import signal
import sys
import threading
import time
from collections.abc import Callable

INTERRUPTED = 128 + signal.SIGINT  # exit code that shells report for the signal
GRACE_S = 5
end_reported = threading.Event()  # set once the end of the command was printed


def is_command(started: list[str], arguments: list[str]) -> bool:
    """Tests if a process is `windowlib` or `python -m windowlib`, by `sys.orig_argv` and `sys.argv`.

    >>> is_command(["python3", "-P", "-m", "windowlib", "run"], ["-m", "run"]), is_command(["python3"], [""])
    (True, False)
    """
    if not len(started) >= len(arguments) > 0:
        return False
    return os.path.basename(started[-len(arguments)]) in ("windowlib", "-mwindowlib")


def end(number: int, frame: object) -> None:
    """Ends the process at once."""
    os._exit(INTERRUPTED)


def raise_on_interrupt(say: Callable[[], None]) -> None:
    """Makes the signal raise `KeyboardInterrupt` from now on. `say` prints the message, unless already printed."""

    def end_late(context: contextvars.Context) -> None:
        time.sleep(GRACE_S)
        if not end_reported.is_set():
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
