"""The process that judges batches: Great Expectations takes seconds to import, and here no run waits for it.

A run's own judge is its child, and ends with it. The warm engine keeps another one for all runs of its user, who find
its socket in the engine's folder. A run whose judge has ended judges by itself.

    python -m expectations.judge          a run's: its standard input is one end of a pair of sockets
    python -m expectations.judge SOCKET   the engine's: listens there until its standard input is closed
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import importlib
import os
import pickle
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from expectations.lazy_imports import lazily

if TYPE_CHECKING:
    from expectations.bounds import Figures
    from expectations.terms import Terms

Request: TypeAlias = "tuple[Terms, Figures, Sequence[Figures], Sequence[Path]]"  # as `expectations.suites.validate`
Outcomes: TypeAlias = list[dict[str, Any]]

HERE = Path(__file__).resolve().parent
OPTIONAL = ("pyspark", "sqlalchemy")
"""Packages that Great Expectations imports where it finds them. Our frames are pandas', so a judge has none of them."""

_ONE_AT_A_TIME = threading.Lock()  # Great Expectations has one active batch of data in a process
_judge: Judge | None = None  # this process's


class Judge:
    """A judge in another process, as a run sees it."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._stream = connection.makefile("rwb")
        self._process = process
        self._lock = threading.Lock()
        connection.close()  # the stream keeps it open

    @property
    def is_own(self) -> bool:
        """Whether it is a child of this process, and not the engine's."""
        return self._process is not None

    def ask(self, request: Request) -> Outcomes:
        """See `judged`. Raises EOFError or OSError when the other process has ended."""
        with self._lock:
            pickle.dump(request, self._stream)
            self._stream.flush()
            answer = pickle.load(self._stream)
        if isinstance(answer, Exception):
            raise answer
        outcomes: Outcomes = answer
        return outcomes

    def end(self) -> None:
        """Ends the process, if it is ours."""
        with suppress(OSError):  # what was not sent need not be
            self._stream.close()
        if self._process:
            self._process.kill()
            self._process.wait()


def get_ready() -> None:
    """Finds the judge of the warm engine, or starts one that gets ready beside this process, once."""
    global _judge
    if _judge is None:
        _judge = _found() or _started()
        atexit.register(_judge.end)


def judged(request: Request) -> Outcomes:
    """The outcome of each suite as JSON, by the judge that is ready, else in this process.

    Raises `InvalidSpec` when a suite of the pipeline's author cannot be read.
    """
    global _judge
    if _judge:
        try:
            return _judge.ask(request)
        except (EOFError, OSError) as error:
            if _judge.is_own:  # an engine may end when it likes
                warnings.warn(f"the process that judges batches has ended ({error!r}): judged here", stacklevel=2)
            _judge.end()
            _judge = None
    with _ONE_AT_A_TIME:
        return _suites().validate(*request)  # type: ignore[no-any-return]


def socket_in(place: Path) -> Path:
    """Where a judge of this very code listens."""
    newest = max(file.stat().st_mtime_ns for file in HERE.glob("*.py"))
    told = f"{version('great-expectations')} {sys.executable} {HERE} {newest}"
    return place / f"judge-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def command(*arguments: str) -> list[str]:
    """How a judge is started."""
    return [sys.executable, "-P", "-m", "expectations.judge", *arguments]


def environment() -> dict[str, str]:
    """What a judge needs in its environment."""
    path = os.pathsep.join(filter(None, (str(HERE.parent), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


def _found() -> Judge | None:
    from jobs.warm.state import folder_if_any

    place = folder_if_any()
    if place is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(socket_in(place)))
    except OSError:  # none listens, or none whose code is ours
        connection.close()
        return None
    return Judge(connection)


def _started() -> Judge:
    ours, theirs = socket.socketpair()
    with theirs:
        # In a group of its own: Ctrl-C is for the run, which may still want its batch judged.
        process = subprocess.Popen(
            command(), stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=environment(), process_group=0
        )
    return Judge(ours, process)


def _suites() -> Any:
    """The module that brings Great Expectations."""
    with lazily():
        return importlib.import_module("expectations.suites")


# -- the other process --------------------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> None:
    """Answers until nobody asks any more."""
    with connection, connection.makefile("rwb") as stream, suppress(EOFError, ConnectionError):
        while True:
            answer = _answer(pickle.load(stream))
            pickle.dump(answer, stream)
            stream.flush()


def _answer(request: Request) -> Outcomes | Exception:
    try:
        with _ONE_AT_A_TIME:
            outcomes: Outcomes = _suites().validate(*request)
        return outcomes
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an exception may be of any shape
            return RuntimeError(f"{type(error).__name__}: {error}")
        return error


def _listen(place: Path) -> None:
    """Answers whoever connects; does not come back."""
    for left in place.parent.glob("judge-*"):  # by a judge that was killed, or one whose engine has been replaced
        left.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_serve, args=(connection,), daemon=True).start()


def main() -> None:
    """Gets ready, then answers."""
    for name in OPTIONAL:
        sys.modules[name] = None  # type: ignore[assignment]  # so that it cannot be imported
    gc.disable()  # it takes a fifth of the import, which makes objects by the hundred thousand and drops none
    _suites()
    gc.freeze()
    gc.enable()
    if sys.argv[1:]:
        threading.Thread(target=_listen, args=(Path(sys.argv[1]),), daemon=True).start()
        sys.stdin.buffer.read()
    else:
        _serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))
    os._exit(0)  # there is nothing to put in order, and somebody may wait for us


if __name__ == "__main__":
    main()
