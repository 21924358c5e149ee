"""The process that judges batches: Great Expectations takes seconds to import, and no run has to wait for it.

The judge is a child of the run and ends with it. Its standard input is one end of a pair of sockets: it reads requests
and writes answers as lines of JSON. What a judge cannot answer, the run's own process judges, so an error is raised
where it belongs.

It is started by `-c`, not by `-m`: at the depth of calls that this adds, a loop in Great Expectations' import lies
across two blocks of CPython's stack, which allocates one for each call: 1.9 instead of 1.5 seconds until the first
answer.

What a process for it saves, and what it does not import: `windowlib.engines`. In a thread of the run one of three runs
on Sail failed, because two threads imported parts of PySpark at once.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from windowlib.quality.lazy_imports import lazily
from windowlib.quality.terms import Terms

if TYPE_CHECKING:
    from windowlib.quality.figures import Figures
    from windowlib.quality.suite_files import Suite

Request: TypeAlias = (
    "tuple[Terms, Figures, Sequence[Figures], Sequence[Path]]"  # as `windowlib.quality.verdict.validate`
)
Outcomes: TypeAlias = list[dict[str, Any]]

OPTIONAL = ("pyspark", "sqlalchemy")
"""Packages that Great Expectations imports where it finds them. Our frames are pandas', so a judge has none of them."""

ANSWER_S = 600  # a judge that takes longer hangs: the run's own process judges, until `batch_timeout` ends the batch

_ONE_AT_A_TIME = threading.Lock()  # Great Expectations has one active batch of data in a process
_judge: Judge | None = None  # this process's


class Judge:
    """A judge in another process, as a run sees it."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        connection.settimeout(ANSWER_S)
        self._stream = connection.makefile("rw", encoding="utf-8")
        self._process = process
        self._lock = threading.Lock()
        connection.close()  # the stream keeps it open

    def ask(self, request: Request) -> Outcomes | None:
        """The outcome of each suite; None where it has no answer. Raises OSError when the other process has ended."""
        with self._lock:
            self._stream.write(_to_json(request) + "\n")
            self._stream.flush()
            answer = self._stream.readline()
        if not answer:
            raise ConnectionError("it closed the connection")
        outcomes: Outcomes | None = json.loads(answer)
        return outcomes

    def end(self) -> None:
        """Ends the process."""
        with suppress(OSError):  # what was not sent need not be
            self._stream.close()
        self._process.kill()
        self._process.wait()


def get_ready() -> None:
    """Starts the judge of this process; a second call does nothing."""
    global _judge
    if _judge is None:
        _judge = _started()
        atexit.register(_judge.end)


def judged(request: Request) -> Outcomes:
    """The outcome of each suite as JSON, by the judge that is ready, else in this process.

    Raises `InvalidSpec` where a suite is mistaken.
    """
    global _judge
    if _judge:
        try:
            if (outcomes := _judge.ask(request)) is not None:
                return outcomes
        except OSError as error:
            warnings.warn(f"the process that judges batches gives no answer ({error}): judged here", stacklevel=2)
            _judge.end()
            _judge = None
    return _validated(request)


def check_suites(suites: Sequence[Suite]) -> None:
    """Raises `InvalidSpec` where Great Expectations refuses an expectation: before a batch has to wait for it."""
    built = _verdict().built
    for suite in suites:
        built(suite)


START = "from windowlib.quality.judge import main; main()"
# Great Expectations' own imports warn of what does not concern a run, also where warnings are errors.
_COMMAND = (sys.executable, "-W", "ignore", "-P", "-c", START)


def _started() -> Judge:
    ours, theirs = socket.socketpair()
    with theirs:
        # In a group of its own: Ctrl-C is for the run, which may still want its batch judged.
        process = subprocess.Popen(_COMMAND, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, process_group=0)
    return Judge(ours, process)


def _validated(request: Request) -> Outcomes:
    with _ONE_AT_A_TIME:
        outcomes: Outcomes = _verdict().validate(*request)
    return outcomes


def _verdict() -> Any:
    """The module that judges. What it imports asks for the home of the user: `/` where there is none."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"
    return import_module("windowlib.quality.verdict")


def _to_json(request: Request) -> str:
    terms, figures, history, files = request
    return json.dumps([asdict(terms), figures, [*history], [*map(str, files)]], default=os.fspath)


def _from_json(line: str) -> Request:
    terms, figures, history, files = json.loads(line)
    return Terms.from_json(terms), figures, history, [*map(Path, files)]


# -- the other process --------------------------------------------------------------------------------------------


def main() -> None:
    """Gets ready, then answers."""
    for name in OPTIONAL:
        sys.modules[name] = None  # type: ignore[assignment]  # it cannot be imported
    gc.disable()  # it takes a fifth of the import, which makes objects by the hundred thousand and drops none
    with lazily():
        _verdict()
    gc.freeze()  # nor does any collection have to look at them, while a run waits
    gc.enable()
    _serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def _serve(connection: socket.socket) -> None:
    """Answers until the client has closed the connection."""
    with connection, connection.makefile("rw", encoding="utf-8") as stream, suppress(ConnectionError):
        for line in stream:
            stream.write(_answer(line) + "\n")
            stream.flush()


def _answer(line: str) -> str:
    """The outcomes, or null where there are none: then the client meets the error itself."""
    try:
        return json.dumps(_validated(_from_json(line)))
    except Exception:  # the client will raise it
        return "null"
