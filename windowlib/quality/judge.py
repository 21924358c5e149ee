"""Separate process that judges batches. It imports Great Expectations while the run computes. This takes seconds.

The judge is a child process of the run and ends with the run. Its standard input is one end of a socket pair, over
which it reads requests and writes answers as lines of JSON. If the judge returns no answer, the run's own process
judges the batch and raises any error.

The judge is started by `-c`, not by `-m`. `-m` adds call depth. Then a loop in Great Expectations' import crosses two
blocks of CPython's stack, and each call allocates a block. So the first answer takes 1.9 instead of 1.5 seconds.

`windowlib.engines` says how much time this process saves. A thread is no alternative: one of three runs on Sail failed,
because two threads imported parts of PySpark at the same time.
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
from windowlib.storage.address import store_at
from windowlib.storage.handover import variables_for_children
from windowlib.storage.object_file import ObjectFile

if TYPE_CHECKING:
    from windowlib.quality.figures import Figures
    from windowlib.quality.suite_files import Suite

Request: TypeAlias = (  # arguments of `windowlib.quality.verdict.validate`
    "tuple[Terms, Figures, Sequence[Figures], Sequence[ObjectFile]]"
)
Outcomes: TypeAlias = list[dict[str, Any]]

OPTIONAL = ("pyspark", "sqlalchemy")
"""Packages that Great Expectations imports if they are installed. A judge uses pandas only, so it hides them."""

ANSWER_S = 600  # a slower judge counts as hung; then the run's own process judges, limited by `batch_timeout`

_ONE_AT_A_TIME = threading.Lock()  # Great Expectations has one active batch of data per process
_judge: Judge | None = None  # the judge that this process started


class Judge:
    """Connection of a run to its judge in another process."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        connection.settimeout(ANSWER_S)
        self._stream = connection.makefile("rw", encoding="utf-8")
        self._process = process
        self._lock = threading.Lock()
        connection.close()  # the stream keeps it open

    def ask(self, request: Request) -> Outcomes | None:
        """Sends a request. Returns the outcome of each suite, or None if judging failed.

        Raises OSError if the judge has ended or does not answer in time.
        """
        with self._lock:
            self._stream.write(_to_json(request) + "\n")
            self._stream.flush()
            answer = self._stream.readline()
        if not answer:
            raise ConnectionError("the process closed the connection")
        outcomes: Outcomes | None = json.loads(answer)
        return outcomes

    def end(self) -> None:
        """Kills the judge's process."""
        with suppress(OSError):  # unsent data are not needed
            self._stream.close()
        self._process.kill()
        self._process.wait()


def start_judge() -> None:
    """Starts the judge of this process, unless it already has a judge."""
    global _judge
    if _judge is None:
        _judge = _started()
        atexit.register(_judge.end)


def judge_batch(request: Request) -> Outcomes:
    """Judges a batch and returns the outcome of each suite as JSON.

    This process judges if no judge was started, or if the judge has no answer. Raises `InvalidSpec` for a mistake in a
    suite.
    """
    global _judge
    if _judge:
        try:
            if (outcomes := _judge.ask(request)) is not None:
                return outcomes
        except OSError as error:
            warnings.warn(
                f"the process that judges batches does not answer ({error}); this process judges instead", stacklevel=2
            )
            _judge.end()
            _judge = None
    return _validated(request)


def check_suites(suites: Sequence[Suite]) -> None:
    """Raises `InvalidSpec` if Great Expectations refuses an expectation, before any batch is judged."""
    built = _verdict().built
    for suite in suites:
        built(suite)


START = "from windowlib.quality.judge import main; main()"
# The imports of Great Expectations emit warnings that do not concern a run and must not become errors.
_COMMAND = (sys.executable, "-W", "ignore", "-P", "-c", START)


def _started() -> Judge:
    ours, theirs = socket.socketpair()
    with theirs:
        # Own process group: Ctrl-C reaches only the run, which may still need the judge.
        process = subprocess.Popen(
            _COMMAND,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            env=variables_for_children(),
            process_group=0,
        )
    return Judge(ours, process)


def _validated(request: Request) -> Outcomes:
    with _ONE_AT_A_TIME:
        outcomes: Outcomes = _verdict().validate(*request)
    return outcomes


def _verdict() -> Any:
    """Imports `windowlib.quality.verdict`. Its imports need `HOME`; a user without a home directory gets `/`."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"
    return import_module("windowlib.quality.verdict")


def _to_json(request: Request) -> str:
    terms, figures, history, files = request
    places = [(file.store.url, file.path, file.size_bytes) for file in files]
    return json.dumps([asdict(terms), figures, [*history], places], default=os.fspath)


def _from_json(line: str) -> Request:
    terms, figures, history, files = json.loads(line)
    return Terms.from_json(terms), figures, history, [ObjectFile(store_at(url), *place) for url, *place in files]


# -- the other process --------------------------------------------------------------------------------------------


def main() -> None:
    """Imports Great Expectations, then answers requests."""
    for name in OPTIONAL:
        sys.modules[name] = None  # type: ignore[assignment]  # makes its import fail
    gc.disable()  # garbage collection takes a fifth of the import, which creates 100,000s of objects and frees none
    with lazily():
        _verdict()
    gc.freeze()  # later collections skip these objects, so a waiting run is faster
    gc.enable()
    _serve(socket.socket(fileno=os.dup(sys.stdin.fileno())))


def _serve(connection: socket.socket) -> None:
    """Answers requests until the run closes the connection."""
    with connection, connection.makefile("rw", encoding="utf-8") as stream, suppress(ConnectionError):
        for line in stream:
            stream.write(_answer(line) + "\n")
            stream.flush()


def _answer(line: str) -> str:
    """Judges a batch. Returns the outcomes as JSON, or null after an error."""
    try:
        return json.dumps(_validated(_from_json(line)))
    except Exception:  # after null, the run judges the batch itself and raises this error
        return "null"
