"""Standard error of a JVM: it is passed on to ours, and blocks nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep

import pytest

from windowlib.engines import jvm_output as words
from windowlib.engines.jvm_output import ProcessStderr, captured_stderr

MORE = b"a line of a log\n" * 10_000  # than a pipe holds


def until(is_so: Callable[[], bool]) -> None:
    limit = monotonic() + 10
    while not is_so():
        assert monotonic() < limit
        sleep(0.01)


def test_kept_output_is_written_first_and_later_output_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    monkeypatch.setattr(words, "STDERR", write)
    with captured_stderr() as made:
        os.write(made.write_end, b"kept ")
        until(lambda: made._kept == [b"kept "])
        made.pass_on()
        until(lambda: made._is_up)
        os.write(made.write_end, b"said")
        assert [os.read(read, 5), os.read(read, 4)] == [b"kept ", b"said"]


@pytest.mark.parametrize("place", ["full", "closed"])
@pytest.mark.fault("a JVM says something, and the error output is full, closed or not read", "the run goes on")
def test_a_process_continues_if_its_output_cannot_be_written(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(words, "STDERR", os.open("/dev/full", os.O_WRONLY) if place == "full" else -1)
    made = ProcessStderr()
    os.write(made.write_end, b"kept")
    until(lambda: made._kept == [b"kept"])
    made.pass_on()
    until(lambda: made._is_up)
    os.write(made.write_end, MORE)
    os.close(made.write_end)
    made._thread.join(10)
    assert not made._thread.is_alive()


def test_passing_on_does_not_wait_for_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while os.write(write, MORE):
            pass
    os.set_blocking(write, True)
    monkeypatch.setattr(words, "STDERR", write)
    with captured_stderr() as made:
        os.write(made.write_end, b"kept")
        until(lambda: made._kept == [b"kept"])
        made.pass_on()
        until(lambda: made._is_up)
    assert made._kept == [b"kept"], "it waits by itself, until it is read"
    os.set_blocking(read, False)

    def is_passed_on() -> bool:
        with suppress(BlockingIOError):  # nothing is in the pipe for a moment, or all has been read
            os.read(read, 1 << 16)
        return not made._kept

    until(is_passed_on)
