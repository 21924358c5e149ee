"""Progress of a command: a line at the bottom of a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
from rich.text import Text

from windowlib.cli.options import duration_ms

if TYPE_CHECKING:
    from rich.console import Console

    from windowlib.runs.run import Doing, Say

INTERVAL = "WINDOWLIB_PROGRESS"  # environment variable: duration between two lines; 0s for no lines


@contextmanager
def progress(screen: Console, step: str = "looking for new input") -> Iterator[Say]:
    """Yields a function that reports the current step. A terminal shows the step at its bottom.

    Elsewhere (a log, an Airflow task) a line on stderr names the step and its seconds every 15 s. A shorter step gets
    no line.
    """
    if screen.is_terminal:
        with Progress(SpinnerColumn(), _Words(), TimeElapsedColumn(), console=screen, transient=True) as shown:
            line = shown.add_task("", doing=step)
            yield lambda doing: shown.update(line, doing=doing)
        return
    lines = _Lines(step, duration_ms(INTERVAL, os.environ.get(INTERVAL, "15s")) / 1000)
    lines.start()
    try:
        yield lines.say
    finally:
        lines.over.set()


class _Words(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(words(task.fields["doing"]))


class _Lines(threading.Thread):
    """Prints the current step every `interval_s` seconds."""

    def __init__(self, doing: Doing, interval_s: float) -> None:
        super().__init__(name="windowlib-progress", daemon=True)
        self.interval_s, self.over = interval_s, threading.Event()
        self.say(doing)

    def say(self, doing: Doing) -> None:
        self.now = doing, time.monotonic()

    def run(self) -> None:
        while self.interval_s and not self.over.wait(self.interval_s):
            doing, since = self.now
            print(f"{words(doing)}, {time.monotonic() - since:.0f} s", file=sys.stderr, flush=True)


def words(doing: Doing) -> str:
    """Text of a step, which may be a function.

    >>> words("publishing"), words(lambda: "computing, 1 of 2 tasks")
    ('publishing', 'computing, 1 of 2 tasks')
    """
    return doing if isinstance(doing, str) else doing()
