"""What a JVM says on its standard error comes out on ours, and stands in the way of nothing there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep

import pytest

from windowlib.engines import jvm_output as words
from windowlib.engines.jvm_output import ProcessStderr, listening

MORE = b"a line of a log\n" * 10_000  # than a pipe holds


def until(is_so: Callable[[], bool]) -> None:
    limit = monotonic() + 10
    while not is_so():
        assert monotonic() < limit
        sleep(0.01)


def test_what_is_kept_comes_out_first_and_the_rest_as_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(words, "STDERR", write)
    with listening() as made:
        os.write(made.given, b"kept ")
        until(lambda: made._kept == [b"kept "])
        made.pass_on()
        until(lambda: made._is_up)
        os.write(made.given, b"said")
        assert [os.read(read, 5), os.read(read, 4)] == [b"kept ", b"said"]


@pytest.mark.parametrize("place", ["full", "closed"])
@pytest.mark.fault("the JVM writes to an error output that is full, closed or not read", "the run continues")
def test_a_full_or_closed_stderr_stops_no_run(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(words, "STDERR", os.open("/dev/full", os.O_WRONLY) if place == "full" else -1)
    made = ProcessStderr()
    os.write(made.given, b"kept")
    until(lambda: made._kept == [b"kept"])
    made.pass_on()
    until(lambda: made._is_up)
    os.write(made.given, MORE)
    os.close(made.given)
    made._thread.join(10)
    assert not made._thread.is_alive()


def test_who_starts_a_process_does_not_wait_for_who_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while os.write(write, MORE):
            pass
    os.set_blocking(write, True)
    monkeypatch.setattr(words, "STDERR", write)
    with listening() as made:
        os.write(made.given, b"kept")
        until(lambda: made._kept == [b"kept"])
        made.pass_on()
        until(lambda: made._is_up)
    assert made._kept == [b"kept"], "it waits by itself, until it is read"
    while made._kept:
        os.read(read, 1 << 16)
