"""What is used of Python's own machinery behaves as windowlib expects."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

from tests.support.private_apis import holds, printed
from windowlib.definition import user_classes as own_code


def collections_of(objects: int) -> int:
    """How often garbage is looked for while so many objects are made and kept."""
    found: list[str] = []

    def seen(phase: str, about: dict[str, int]) -> None:
        found.append(phase)

    gc.collect()
    gc.callbacks.append(seen)
    try:
        kept: list[list[int]] = [[] for _ in range(objects)]
    finally:
        gc.callbacks.remove(seen)
    assert len(kept) == objects
    return found.count("start")


@holds("plans/general/worker.py", "gc")
@holds("quality/judge.py", "gc")
@holds("__main__.py", "gc")
def test_garbage_is_looked_for_as_seldom_as_asked() -> None:
    usual = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)  # as Python starts; other tests of this process may have asked for less
        assert collections_of(100_000) > 10
        gc.set_threshold(200_000, 20, 100)
        assert collections_of(100_000) == 0
        gc.set_threshold(*usual)
        gc.disable()
        assert collections_of(100_000) == 0
    finally:
        gc.set_threshold(*usual)
        gc.enable()


class Pair:
    """Two objects that know one another, as a session and its parts do."""

    def __init__(self) -> None:
        self.other = lambda: self


@holds("engines/sail.py", "gc")
def test_what_lies_in_a_cycle_is_gone_when_asked() -> None:
    pair = Pair()
    known = weakref.ref(pair)
    del pair
    gc.collect()
    assert known() is None


@holds("definition/user_classes.py", "sys.modules", "sys.path")
def test_two_folders_may_each_have_a_module_of_the_same_name(tmp_path: Path) -> None:
    path, made = list(sys.path), []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "held_by_a_test.py").write_text(
            "class Odd:\n    def evict_before(self, elements, window):\n        return elements\n"
            f"    def evict_after(self, elements, window):\n        return {name!r}\n"
        )
        made.append(own_code.load("evictor", "held_by_a_test:Odd", {}, tmp_path / name))
    assert [evictor.evict_after([], None) for evictor in made] == ["one", "two"]
    assert sys.path == path


@holds("__main__.py", "sys.path")
def test_a_start_file_hides_no_package(tmp_path: Path) -> None:
    """Next to it lies a module with the name of a package that the command line needs."""
    (tmp_path / "typer.py").write_text("raise ImportError('taken from the folder of the start file')\n")
    start = tmp_path / "start.py"
    start.write_text("from windowlib.__main__ import start\nstart('--version')\n")
    assert printed([sys.executable, str(start)]).startswith("windowlib ")


STUCK = """
import ctypes
from windowlib.runs import deadline
deadline.GRACE_S = 1
mutex, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
libc.pthread_mutex_lock(mutex)
with deadline.within(200, "batch 7"):
    libc.pthread_mutex_lock(mutex)  # for ever: no signal reaches it
"""


@holds("runs/deadline.py", "os._exit")
@holds("cli/interrupts.py", "os._exit")
def test_code_that_no_signal_reaches_ends_with_its_process() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: batch 7 has taken longer than batch_timeout = 200ms")
